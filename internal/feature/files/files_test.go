package files

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/schema"
)

// old is a modification time that makes tags strong.
var old = time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC)

// tree writes files below a new folder; a name that ends with a slash is a folder.
func tree(t *testing.T, list map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range list {
		full := filepath.Join(root, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(full, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, full, text, old)
	}
	return root
}

func write(t *testing.T, full, text string, at time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(full, at, at); err != nil {
		t.Fatal(err)
	}
}

// site is a source under test.
type site struct {
	t      *testing.T
	source exchange.Source
	open   *openFiles
}

func newSite(t *testing.T, c Config, route exchange.Route) *site {
	t.Helper()
	s, err := Compile(&c, "", route, exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	folder := s.(*source).folder
	t.Cleanup(folder.Retire) // Windows does not remove an open folder
	return &site{t, s, folder.open}
}

// get requests a target and returns the response with its body.
func (s *site) get(method, target string, fields ...string) (*reply, string) {
	s.t.Helper()
	ex := exchangetest.New(s.t, exchangetest.Head(method, target, fields...))
	front := exchangetest.Run(s.t, ex, s.source)
	if n := s.open.open.Load(); n != 0 {
		s.t.Errorf("%s %s: %d files are open after the response", method, target, n)
	}
	return &reply{ex, front}, front.Body
}

// reply is a finished exchange and what the client got.
type reply struct {
	*exchange.Exchange
	front *exchangetest.Front
}

func field(r *reply, id header.ID) string { return r.front.Field(id.String()) }

func TestFilesAreServed(t *testing.T) {
	root := tree(t, map[string]string{
		"index.html": "home", "a b.txt": "blank", "ü.css": "css", "app.JS": "js", "raw": "?", "sub/index.html": "sub", "empty/": "",
		".well-known/security.txt": "known", "zero.txt": "",
	})
	s := newSite(t, Config{Root: root, CacheControl: "max-age=60"}, exchange.Route{Strip: true})
	for _, c := range []struct{ target, text, kind string }{
		{"/", "home", "text/html; charset=utf-8"},
		{"/index.html?x=/../y", "home", "text/html; charset=utf-8"},
		{"/a%20b.txt", "blank", "text/plain; charset=utf-8"},
		{"/%C3%BC.css", "css", "text/css; charset=utf-8"},
		{"/app.JS", "js", "text/javascript; charset=utf-8"},
		{"/raw", "?", "application/octet-stream"},
		{"/sub/", "sub", "text/html; charset=utf-8"},
		{"/.well-known/security.txt", "known", "text/plain; charset=utf-8"},
		{"/zero.txt", "", "text/plain; charset=utf-8"},
	} {
		ex, text := s.get("GET", c.target)
		if ex.Response.Status != 200 || text != c.text || ex.Response.Length != int64(len(c.text)) {
			t.Errorf("GET %s: %d %q (%d, %v %s)", c.target, ex.Response.Status, text, ex.Response.Length, ex.Reason, ex.Cause)
		}
		if got := field(ex, header.ContentType); got != c.kind {
			t.Errorf("GET %s: type %q, want %q", c.target, got, c.kind)
		}
		if field(ex, header.CacheControl) != "max-age=60" || field(ex, header.AcceptRanges) != "bytes" || field(ex, header.LastModified) != "Fri, 17 May 2024 10:00:00 GMT" {
			t.Errorf("GET %s: fields %v", c.target, ex.front.Fields)
		}
		if tag := field(ex, header.ETag); len(tag) < 4 || tag[0] != '"' {
			t.Errorf("GET %s: ETag %s is not strong", c.target, tag)
		}
		ex, text = s.get("HEAD", c.target)
		if ex.Response.Status != 200 || text != "" || ex.Response.Body != nil || ex.Response.Length != int64(len(c.text)) {
			t.Errorf("HEAD %s: %d %q (%d)", c.target, ex.Response.Status, text, ex.Response.Length)
		}
	}
}

func TestOtherPathsAreNotServed(t *testing.T) {
	outside := tree(t, map[string]string{"secret.txt": "secret", "dir/secret.txt": "secret"})
	root := tree(t, map[string]string{
		"index.html": "home", ".htpasswd": "secret", ".git/config": "secret", "sub/.env": "secret", "sub/.well-known/x": "secret",
		"file.txt": "x", "empty/": "", "in/real.txt": "real",
	})
	links := map[string]string{
		"out.txt": filepath.Join(outside, "secret.txt"), "out": filepath.Join(outside, "dir"), "up.txt": "../" + filepath.Base(outside) + "/secret.txt",
		"loop": "loop", "dangling": "nothing",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	if err := os.Symlink("in/real.txt", filepath.Join(root, "inside.txt")); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		os.Symlink("/proc/self/environ", filepath.Join(root, "environ"))
		os.Symlink("/dev/zero", filepath.Join(root, "zero"))
	}
	s := newSite(t, Config{Root: root}, exchange.Route{Strip: true})
	for _, target := range []string{
		"/none", "/file.txt/", "/file.txt/x", "/empty/", "/.htpasswd", "/.git/config", "/sub/.env", "/sub/.well-known/x", "/%2ehtpasswd",
		"/out.txt", "/out/secret.txt", "/up.txt", "/loop", "/dangling", "/environ", "/zero",
		"//index.html", "/sub//x", "/..%2findex.html", "/sub/..%2f..%2fetc/passwd", "/%2e%2e/x", "/../x", "/sub/%2e%2e/index.html", "/.", "/./index.html",
		"/..%5cx", "/..\\x", "/index.html%00", "/index.html%00.txt", "/%00", "/a%0d%0ab", "/%7f", "/index.html%", "/index.html%2", "/%zz",
		"/" + strings.Repeat("a", 5000), "/" + strings.Repeat("a/", 3000), "/well-known/", "/.WELL-KNOWN/x", "*", "",
	} {
		ex, text := s.get("GET", target)
		if strings.Contains(text, "secret") || ex.Reason != exchange.NotFound && target != "" {
			t.Errorf("GET %.80s: %v, %d %.80q, %.200s", target, ex.Reason, ex.Response.Status, text, ex.Cause)
		}
	}
	if _, text := s.get("GET", "/inside.txt"); text != "real" {
		t.Errorf("a link within the root: %q", text)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "get"} {
		if ex, _ := s.get(method, "/file.txt"); ex.Reason != exchange.MethodRefused || field(ex, header.Allow) != "GET, HEAD" {
			t.Errorf("%s: %v, Allow %q", method, ex.Reason, field(ex, header.Allow))
		}
	}
}

func TestFoldersRedirectToTheirSlash(t *testing.T) {
	root := tree(t, map[string]string{"sub/index.html": "x", "a b/": ""})
	for _, c := range []struct {
		route          exchange.Route
		target, result string
	}{
		{exchange.Route{Strip: true}, "/sub?q=1", "/sub/?q=1"},
		{exchange.Route{Strip: true}, "/a%20b", "/a%20b/"},
		{exchange.Route{Strip: true, Prefix: "/docs"}, "/docs", "/docs/"},
		{exchange.Route{Strip: true, Prefix: "/docs"}, "/docs/sub", "/docs/sub/"},
		{exchange.Route{Prefix: "/sub"}, "/sub", "/sub/"},
	} {
		s := newSite(t, Config{Root: root}, c.route)
		ex, _ := s.get("GET", c.target)
		if ex.Response.Status != 301 || field(ex, header.Location) != c.result {
			t.Errorf("%s: %d, Location %q, want %q", c.target, ex.Response.Status, field(ex, header.Location), c.result)
		}
	}
	// An empty segment in front would make the target another host.
	s := newSite(t, Config{Root: root}, exchange.Route{Strip: true})
	for _, target := range []string{"//sub", "//evil.example/../sub", "/%2Fsub", "/%5Csub"} {
		if ex, _ := s.get("GET", target); field(ex, header.Location) != "" {
			t.Errorf("%s redirects to %q", target, field(ex, header.Location))
		}
	}
}

func TestSinglePageApplicationsGetTheirIndex(t *testing.T) {
	root := tree(t, map[string]string{"index.html": "app", "assets/app.js": "js", ".env": "secret"})
	s := newSite(t, Config{Root: root, SPA: true}, exchange.Route{Strip: true})
	for target, want := range map[string]string{
		"/": "app", "/users/7": "app", "/assets/": "app", "/assets/none.js": "app", "/assets/app.js": "js", "/assets/app.js/": "app",
	} {
		if ex, text := s.get("GET", target); ex.Response.Status != 200 || text != want {
			t.Errorf("%s: %d %q, want %q", target, ex.Response.Status, text, want)
		}
	}
	for _, target := range []string{"/.env", "/x/..%2f", "//x", "/a%00"} {
		if ex, _ := s.get("GET", target); ex.Reason != exchange.NotFound {
			t.Errorf("%s: %v", target, ex.Reason)
		}
	}
}

func TestConditions(t *testing.T) {
	root := tree(t, map[string]string{"f.txt": "0123456789"})
	fresh := filepath.Join(root, "fresh.txt")
	write(t, fresh, "0123456789", time.Now())
	write(t, filepath.Join(root, "future.txt"), "0123456789", time.Now().Add(time.Hour))
	write(t, filepath.Join(root, "epoch.txt"), "0123456789", time.Unix(1, 0))
	s := newSite(t, Config{Root: root}, exchange.Route{Strip: true})
	ex, _ := s.get("GET", "/f.txt")
	tag := strings.Clone(field(ex, header.ETag))
	const day, before, after = "Fri, 17 May 2024 10:00:00 GMT", "Fri, 17 May 2024 09:59:59 GMT", "Friday, 17-May-24 10:00:01 GMT"
	for _, c := range []struct {
		fields string
		want   int
	}{
		{"If-None-Match: " + tag, 304}, {"If-None-Match: W/" + tag, 304}, {`If-None-Match: "a", ` + tag, 304}, {"If-None-Match: *", 304},
		{`If-None-Match: "a"`, 200}, {`If-None-Match: ` + strings.Trim(tag, `"`), 200},
		{"If-Modified-Since: " + day, 304}, {"If-Modified-Since: " + after, 304}, {"If-Modified-Since: " + before, 200}, {"If-Modified-Since: x", 200},
		{"If-None-Match: \"a\"\nIf-Modified-Since: " + day, 200},
		{"If-Match: " + tag, 200}, {"If-Match: *", 200}, {"If-Match: W/" + tag, 412}, {`If-Match: "a"`, 412}, {"If-Match: ,", 412},
		{"If-Unmodified-Since: " + day, 200}, {"If-Unmodified-Since: " + before, 412},
		{"If-Match: " + tag + "\nIf-Unmodified-Since: " + before, 200},
		{"Range: bytes=0-0\nIf-Range: " + tag, 206}, {"Range: bytes=0-0\nIf-Range: W/" + tag, 200}, {"Range: bytes=0-0\nIf-Range: \"a\"", 200},
		{"Range: bytes=0-0\nIf-Range: " + day, 206}, {"Range: bytes=0-0\nIf-Range: " + after, 200}, {"Range: bytes=0-0\nIf-Range: x", 200},
		{"Range: bytes=0-0\nIf-None-Match: " + tag, 304},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			want := c.want
			if method == "HEAD" && want == 206 {
				want = 200
			}
			ex, text := s.get(method, "/f.txt", strings.Split(c.fields, "\n")...)
			if ex.Response.Status != want {
				t.Errorf("%s with %q: %d, want %d", method, c.fields, ex.Response.Status, want)
			}
			if want == 304 && (text != "" || field(ex, header.ETag) != tag || ex.Response.Length >= 0) {
				t.Errorf("%s with %q: %q, ETag %s, length %d", method, c.fields, text, field(ex, header.ETag), ex.Response.Length)
			}
		}
	}
	if ex, _ := s.get("GET", "/fresh.txt"); !strings.HasPrefix(field(ex, header.ETag), `W/"`) {
		t.Errorf("a file of this second has the tag %s", field(ex, header.ETag))
	}
	ex, _ = s.get("GET", "/future.txt")
	if at, ok := dateOf(field(ex, header.LastModified)); !ok || at > time.Now().Unix() {
		t.Errorf("Last-Modified %q is in the future", field(ex, header.LastModified))
	}
	ex, _ = s.get("GET", "/epoch.txt", "If-Modified-Since: "+day, `If-None-Match: "x"`)
	if ex.Response.Status != 200 || field(ex, header.ETag) != "" || field(ex, header.LastModified) != "" {
		t.Errorf("a file without a time: %d %v", ex.Response.Status, ex.front.Fields)
	}
}

func TestRanges(t *testing.T) {
	root := tree(t, map[string]string{"f.txt": "0123456789"})
	s := newSite(t, Config{Root: root}, exchange.Route{Strip: true})
	for _, c := range []struct {
		value  string
		status int
		text   string
	}{
		{"bytes=0-3", 206, "0123"}, {"bytes=4-", 206, "456789"}, {"bytes=-3", 206, "789"}, {"bytes=-99", 206, "0123456789"},
		{"bytes=9-99999999999999999999999", 206, "9"}, {"Bytes= 2-2 ,", 206, "2"},
		{"bytes=10-", 416, ""}, {"bytes=-0", 416, ""}, {"bytes=99999999999999999999-", 416, ""}, {"bytes=10-,11-12", 416, ""},
		{"bytes=3-2", 200, "0123456789"}, {"bytes=", 200, "0123456789"}, {"bytes=a-b", 200, "0123456789"}, {"bytes=+1-2", 200, "0123456789"},
		{"bytes=--1", 200, "0123456789"}, {"bytes=0x1-2", 200, "0123456789"}, {"lines=0-1", 200, "0123456789"}, {"bytes", 200, "0123456789"},
		{"bytes=0-5,3-8", 200, "0123456789"}, {"bytes=0-4,5-9", 200, "0123456789"}, {"bytes=0-0,0-0", 200, "0123456789"},
		{"bytes=" + strings.Repeat("0-0,", 1000) + "1-1", 200, "0123456789"}, {"bytes=10-,1-1", 206, "1"},
	} {
		ex, text := s.get("GET", "/f.txt", "Range: "+c.value)
		if ex.Response.Status != c.status || c.status != 416 && text != c.text {
			t.Errorf("%.60s: %d %q, want %d %q", c.value, ex.Response.Status, text, c.status, c.text)
		}
		if c.status == 416 && field(ex, header.ContentRange) != "bytes */10" {
			t.Errorf("%s: Content-Range %q", c.value, field(ex, header.ContentRange))
		}
	}
	if ex, text := s.get("GET", "/f.txt", "Range: bytes=0-1", "Range: bytes=2-3"); ex.Response.Status != 200 {
		t.Errorf("two fields: %d %q", ex.Response.Status, text)
	}
	ex, text := s.get("GET", "/f.txt", "Range: bytes=8-8, 0-1,-1")
	boundary, ok := strings.CutPrefix(field(ex, header.ContentType), "multipart/byteranges; boundary=")
	part := func(at, text string) string {
		return "--" + boundary + "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes " + at + "/10\r\n\r\n" + text + "\r\n"
	}
	want := part("8-8", "8") + part("0-1", "01") + part("9-9", "9") + "--" + boundary + "--\r\n"
	if !ok || len(boundary) < 16 || ex.Response.Status != 206 || text != want || ex.Response.Length != int64(len(want)) {
		t.Errorf("%d %s (%d)\n%q\nwant\n%q", ex.Response.Status, field(ex, header.ContentType), ex.Response.Length, text, want)
	}
}

func TestPrecompressedCopies(t *testing.T) {
	root := tree(t, map[string]string{
		"app.js": "plain", "app.js.br": "br", "app.js.zst": "zst", "app.js.gz": "gz", "only.js": "plain", "only.js.gz": "gz", "copy.js.gz": "gz",
	})
	write(t, filepath.Join(root, "stale.js"), "plain", old.Add(time.Hour))
	write(t, filepath.Join(root, "stale.js.gz"), "gz", old)
	s := newSite(t, Config{Root: root, Precompressed: []string{"zstd", "br", "gzip"}}, exchange.Route{Strip: true})
	for _, c := range []struct{ target, accept, text, coding string }{
		{"/app.js", "", "plain", ""}, {"/app.js", "gzip", "gz", "gzip"}, {"/app.js", "gzip, br, zstd", "zst", "zstd"}, {"/app.js", "x-gzip", "gz", "gzip"},
		{"/app.js", "zstd;q=0.5, br;q=0.8, gzip;q=0.8", "br", "br"}, {"/app.js", "*", "zst", "zstd"}, {"/app.js", "*;q=0, gzip;q=0.1", "gz", "gzip"},
		{"/app.js", "zstd;q=0, br;q=0, gzip;q=0", "plain", ""}, {"/app.js", "identity;q=1, gzip;q=0.5", "plain", ""}, {"/app.js", "gzip;q=2", "plain", ""},
		{"/app.js", "deflate", "plain", ""}, {"/only.js", "br, gzip", "gz", "gzip"}, {"/stale.js", "gzip", "plain", ""}, {"/app.js.gz", "gzip", "gz", ""},
	} {
		ex, text := s.get("GET", c.target, "Accept-Encoding: "+c.accept)
		if text != c.text || field(ex, header.ContentEncoding) != c.coding || field(ex, header.Vary) != "Accept-Encoding" {
			t.Errorf("%s with %q: %q, coding %q, Vary %q; want %q, %q", c.target, c.accept, text, field(ex, header.ContentEncoding), field(ex, header.Vary), c.text, c.coding)
		}
		if want := "text/javascript; charset=utf-8"; !strings.HasSuffix(c.target, ".gz") && field(ex, header.ContentType) != want {
			t.Errorf("%s with %q: type %q", c.target, c.accept, field(ex, header.ContentType))
		}
	}
	if ex, _ := s.get("GET", "/copy.js", "Accept-Encoding: gzip"); ex.Reason != exchange.NotFound {
		t.Errorf("a copy without its file: %v", ex.Reason)
	}
	plain, _ := s.get("GET", "/app.js")
	coded, _ := s.get("GET", "/app.js", "Accept-Encoding: br")
	if field(plain, header.ETag) == field(coded, header.ETag) {
		t.Errorf("both have the tag %s", field(plain, header.ETag))
	}
	if ex, text := s.get("GET", "/app.js", "Accept-Encoding: br", "Range: bytes=1-"); ex.Response.Status != 206 || text != "r" {
		t.Errorf("a range of the compressed copy: %d %q", ex.Response.Status, text)
	}
}

func TestListingEscapesNames(t *testing.T) {
	root := tree(t, map[string]string{"sub/": "", "b.txt": "12345", ".hidden": "x"})
	hostile := []string{`a"><script>alert(1)</script>`, `javascript:alert(1)`, `100%25.txt`, `a&lt;b`, `q?x#y`}
	if runtime.GOOS != "windows" {
		for _, name := range hostile {
			write(t, filepath.Join(root, strings.ReplaceAll(name, "/", "_")), "x", old)
		}
	}
	s := newSite(t, Config{Root: root, Listing: true}, exchange.Route{Strip: true})
	ex, text := s.get("GET", "/")
	if ex.Response.Status != 200 || strings.Contains(text, "<script") || strings.Contains(text, "hidden") || strings.Contains(text, `href="javascript`) {
		t.Errorf("%d %s", ex.Response.Status, text)
	}
	for _, want := range []string{`<a href="./sub/">sub/</a>`, `<a href="./b.txt">b.txt</a></td><td>5</td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Index(text, "sub/") > strings.Index(text, "b.txt") {
		t.Error("folders are not first")
	}
	if runtime.GOOS != "windows" && (!strings.Contains(text, `href="./q%3Fx%23y"`) || !strings.Contains(text, `href="./100%2525.txt"`)) {
		t.Errorf("names are not encoded in\n%s", text)
	}
	if _, text := s.get("GET", "/sub/"); !strings.Contains(text, `<a href="../">`) {
		t.Errorf("no way up in\n%s", text)
	}
	if ex, _ := s.get("HEAD", "/"); ex.Response.Status != 200 || ex.Response.Length == 0 {
		t.Errorf("HEAD: %d, length %d", ex.Response.Status, ex.Response.Length)
	}
}

func TestFileThatChangesWhileItIsSent(t *testing.T) {
	root := tree(t, map[string]string{"f.bin": strings.Repeat("x", 100_000)})
	name := filepath.Join(root, "f.bin")
	for _, c := range []struct {
		what   string
		change func() error
		broken bool
	}{
		{"truncated", func() error { return os.Truncate(name, 10) }, true},
		{"rewritten", func() error { return os.Chtimes(name, old.Add(time.Second), old.Add(time.Second)) }, true},
		{"replaced", func() error {
			write(t, name+".new", "new", old)
			return os.Rename(name+".new", name)
		}, false},
	} {
		write(t, name, strings.Repeat("x", 100_000), old)
		s := newSite(t, Config{Root: root}, exchange.Route{Strip: true})
		ex := exchangetest.New(t, exchangetest.Head("GET", "/f.bin"))
		if answer := s.source.Respond(ex); answer != nil {
			t.Fatal(answer)
		}
		b := ex.Response.Body
		if _, err := io.ReadFull(b, make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
		if err := c.change(); err != nil {
			if runtime.GOOS == "windows" {
				continue // an open file cannot be replaced
			}
			t.Fatal(err)
		}
		rest, err := io.ReadAll(b)
		b.Close()
		if broken := exchange.ReasonOf(err) == exchange.FileUnreadable; broken != c.broken || !c.broken && (err != nil || len(rest) != 95_000) {
			t.Errorf("%s: %d bytes more, %v", c.what, len(rest), err)
		}
	}
}

func TestReplacedRootIsUsed(t *testing.T) {
	base := tree(t, map[string]string{"one/index.html": "one", "two/index.html": "two"})
	link := filepath.Join(base, "current")
	if err := os.Symlink("one", link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	s := newSite(t, Config{Root: link}, exchange.Route{Strip: true})
	if _, text := s.get("GET", "/"); text != "one" {
		t.Fatalf("got %q", text)
	}
	os.Remove(link)
	if err := os.Symlink("two", link); err != nil {
		t.Fatal(err)
	}
	// What is old enough is opened again.
	f := s.source.(*source).folder
	f.root.Load().at -= rootAge
	if _, text := s.get("GET", "/"); text != "two" {
		t.Errorf("after the change: %q", text)
	}
	f.root.Load().Close() // as another request does in between
	f.root.Load().at -= rootAge
	if _, text := s.get("GET", "/"); text != "two" {
		t.Errorf("after another request has opened the root: %q", text)
	}
	os.Remove(link)
	f.root.Load().at -= rootAge
	if ex, _ := s.get("GET", "/"); ex.Reason != exchange.FileUnreadable || !strings.Contains(ex.Cause, "current") {
		t.Errorf("without a root: %v, %s", ex.Reason, ex.Cause)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	root := tree(t, map[string]string{"f.txt": "x"})
	s := newSite(t, Config{Root: root}, exchange.Route{Strip: true})
	s.open.open.Store(s.open.max)
	ex := exchangetest.New(t, exchangetest.Head("GET", "/f.txt"))
	exchangetest.Run(t, ex, s.source)
	if ex.Reason != exchange.Overloaded || ex.Response.Header.Get(header.RetryAfter) == "" {
		t.Errorf("%v", ex.Reason)
	}
	if n := s.open.open.Load(); n != s.open.max {
		t.Errorf("%d files are counted, want %d", n, s.open.max)
	}
}

func TestWindowsNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a.txt": true, "CON": false, "con.txt": false, "NUL .txt": false, "COM1": false, "com¹.x": false, "lpt9": false, "CONIN$": false, "console.txt": true,
		"a.txt::$DATA": false, "a:b": false, "a.": false, "a ": false, "PROGRA~1": false, "a~b": true, "a*": false, "a?": false, "com10": true,
	} {
		if windowsName([]byte(name)) != ok {
			t.Errorf("%q: %v, want %v", name, !ok, ok)
		}
	}
	for name, ok := range map[string]bool{"a.txt": true, "\u200c.git": false, "a\ufeff": false, "ü": true, "\xff": false} {
		if darwinName([]byte(name)) != ok {
			t.Errorf("macOS: %q: %v, want %v", name, !ok, ok)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		set  Config
		want string
	}{
		{Config{Root: "www"}, ""},
		{Config{Root: filepath.FromSlash("/srv/www"), Index: []string{"index.html", "index.htm"}, CacheControl: "no-cache"}, ""},
		{Config{Root: "a\x00b"}, "at.root: the path contains a NUL"},
		{Config{Root: "www", Index: []string{"a/b"}}, `at.index[0]: "a/b" is not the name of a file`},
		{Config{Root: "www", Index: []string{".htaccess"}}, `at.index[0]: ".htaccess" is not the name`},
		{Config{Root: "www", Precompressed: []string{"br", "br"}}, "at.precompressed[1]: br is listed twice"},
		{Config{Root: "www", CacheControl: "a\r\nX: y"}, "at.cache_control: the header value contains"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("at"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
	if runtime.GOOS != "windows" {
		r := schema.NewReport("", nil)
		(&Config{Root: "/srv/.."}).Check(r.Root().Field("at"))
		if r.Empty() {
			t.Error("the whole file system can be served")
		}
	}
}

func FuzzRanges(f *testing.F) {
	for _, s := range []string{"bytes=0-1", "bytes=-1,2-", "bytes=1-0", "bytes=0-0,2-2,4-4", "x=1"} {
		f.Add(s, int64(10))
	}
	f.Fuzz(func(t *testing.T, s string, size int64) {
		if size < 0 {
			return
		}
		list, _ := parseRanges(s, size)
		total := int64(0)
		for _, r := range list {
			if r.start < 0 || r.length <= 0 || r.start > size-r.length {
				t.Fatalf("%q of %d: %+v", s, size, r)
			}
			total += r.length
		}
		if len(list) > maxRanges || total > size {
			t.Fatalf("%q of %d: %d ranges of %d bytes", s, size, len(list), total)
		}
	})
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"/", "/a/b", "/%2e%2e/x", "/a%00", "/.well-known/x", "//", "/a/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, _, ok := nameOf(&exchange.Text{}, s)
		if !ok || name == "." {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsAny(name, "\x00\\\r\n") || strings.HasSuffix(name, "/") {
			t.Fatalf("%q is the name %q", s, name)
		}
		for i, segment := range strings.Split(name, "/") {
			if segment == "" || segment[0] == '.' && (i > 0 || segment != wellKnown) {
				t.Fatalf("%q is the name %q", s, name)
			}
		}
	})
}
