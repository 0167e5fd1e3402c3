package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/proto/uri"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
	"headgate/internal/upstream/fcgi"
)

// runner is the servers of a route: it answers with what it was to run.
type runner struct {
	ran    *fcgi.Script
	body   string
	length int64
}

func (r *runner) Describe() string { return "runner" }

func (r *runner) Respond(ex *exchange.Exchange) *exchange.Answer {
	script := *fcgi.Scripts.Get(ex)
	script.Filename, script.Name, script.PathInfo = strings.Clone(script.Filename), strings.Clone(script.Name), strings.Clone(script.PathInfo)
	r.ran, r.length = &script, ex.Request.Length
	if ex.Request.Body != nil {
		all, _ := io.ReadAll(ex.Request.Body)
		r.body = string(all)
	}
	ex.Response.Reset()
	ex.Response.Status, ex.Response.Text = 200, []byte("ran")
	ex.Response.Length = 3
	return nil
}

func phpSite(t testing.TB, c FastCGI, route exchange.Route) (*Scripts, *runner) {
	t.Helper()
	r := &runner{}
	s, err := CompileScripts(&c, "", route, r, exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.files.folder.Retire)
	return s, r
}

// usual are the settings that a configuration has without more.
func usual(root string) FastCGI {
	return FastCGI{Root: root, FrontController: true, Static: true, RequestBuffer: unit.Size(1 << 20)}
}

// requestPath requests a target as the plan leaves it, and returns what happened: the script with
// its PATH_INFO, or the status and the body.
func requestPath(t testing.TB, s *Scripts, r *runner, target string) string {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	b, err := uri.AppendNormal(nil, path)
	if err != nil {
		return "refused"
	}
	if path = string(b); query != "" {
		path += "?" + query
	}
	r.ran = nil
	ex := exchangetest.New(t, exchangetest.Head("GET", path))
	front := exchangetest.Run(t, ex, s)
	if n := s.files.folder.open.open.Load(); n != 0 {
		t.Errorf("%s: %d files are open", target, n)
	}
	switch {
	case r.ran != nil:
		return r.ran.Name + " + " + r.ran.PathInfo
	case ex.Reason == exchange.Redirected:
		return "to " + front.Field("Location")
	case ex.Reason == exchange.None:
		return front.Body
	}
	return ex.Reason.String()
}

func phpTree(t *testing.T) string {
	root := tree(t, map[string]string{
		"index.php": "<?php index", "wp-login.php": "<?php", "wp-admin/index.php": "<?php", "wp-content/style.css": "css", "wp-content/uploads/": "",
		"upload/x.jpg": "<?php evil", "upload/y.php.txt": "<?php evil", "wp-config.php~": "secret", "wp-config.php.bak": "secret", "db.INC": "secret", "old.PHTML": "secret", "graph.txt": "graph",
		"remote.php": "<?php", "dir.php/real.php": "<?php", "dir.php/a.txt": "text", "UPPER.PHP": "<?php secret", ".env": "secret", ".hidden/x.php": "<?php", "docs/index.html": "docs", ".php": "<?php",
	})
	outside := t.TempDir()
	write(t, filepath.Join(outside, "out.php"), "<?php outside", old)
	os.Symlink(filepath.Join(outside, "out.php"), filepath.Join(root, "link.php"))
	os.Symlink(outside, filepath.Join(root, "linked"))
	return root
}

func TestPathsMeanScriptsAndFiles(t *testing.T) {
	root := phpTree(t)
	const front, missing = "/index.php + ", "not_found"
	for _, c := range []struct{ target, want, strict string }{
		{"/", front, front}, {"/index.php", front, front}, {"/index.php/apps/files/a%20b", "/index.php + /apps/files/a b", "/index.php + /apps/files/a b"},
		{"/2024/05/hello/?x=/a.php", front, missing}, {"/wp-login.php?a=b", "/wp-login.php + ", "/wp-login.php + "}, {"/wp-login.php/", "/wp-login.php + /", "/wp-login.php + /"},
		{"/wp-admin", "to /wp-admin/", "to /wp-admin/"}, {"/wp-admin/", "/wp-admin/index.php + ", "/wp-admin/index.php + "}, {"/wp-content/style.css", "css", "css"},
		{"/wp-content", front, missing}, {"/wp-content/uploads/", front, missing}, {"/docs/", "docs", "docs"}, {"/docs", "to /docs/", "to /docs/"},
		// The hole of cgi.fix_pathinfo: a file that is no script is never one because of what follows.
		{"/upload/x.jpg", "<?php evil", "<?php evil"}, {"/upload/x.jpg/a.php", front, missing}, {"/upload/x.jpg/.php", front, missing}, {"/upload/x.jpg%00.php", "refused", "refused"},
		{"/upload/x.jpg%2fa.php", front, missing}, {"/upload/y.php.txt", front, missing}, {"/upload/x.jpg/index.php", front, missing},
		// Sources are never sent.
		{"/wp-config.php~", front, missing}, {"/wp-config.php.bak", front, missing}, {"/db.INC", front, missing}, {"/old.PHTML", front, missing}, {"/UPPER.PHP", front, missing}, {"/graph.txt", "graph", "graph"},
		{"/index.PHP", front, missing}, {"/index.php.", front, missing}, {"/index.php%20", front, missing}, {"/.php", front, missing}, {"/index.ph%70", front, front},
		// The first script that exists is run.
		{"/dir.php/real.php/x", "/dir.php/real.php + /x", "/dir.php/real.php + /x"}, {"/dir.php/a.txt", "text", "text"}, {"/none.php/remote.php", front, missing}, {"/remote.php/dav/.hidden/b.php", "/remote.php + /dav/.hidden/b.php", "/remote.php + /dav/.hidden/b.php"},
		{"/none.php", front, missing},
		// Nothing outside, and no hidden file.
		{"/link.php", front, missing}, {"/linked/out.php", front, missing}, {"/.env", front, missing}, {"/.hidden/x.php", front, missing}, {"/../remote.php", "refused", "refused"}, {"/a/%2e%2e/remote.php", "/remote.php + ", "/remote.php + "},
		{"/remote.php/..%2f..%2fetc", front, missing}, {"/remote.php/%2e%2e%2fx", front, missing}, {"/remote.php/a%2fb", "/remote.php + /a/b", "/remote.php + /a/b"}, {"/a%5c..%5cremote.php", front, missing}, {"//remote.php", "/remote.php + ", "/remote.php + "},
	} {
		for _, strict := range []bool{false, true} {
			settings, want := usual(root), c.want
			if settings.FrontController = !strict; strict {
				want = c.strict
			}
			s, r := phpSite(t, settings, exchange.Route{Strip: true})
			got := requestPath(t, s, r, c.target)
			if want == "refused" {
				if got != "refused" && got != "/remote.php + " && !strings.HasPrefix(got, front) && got != missing {
					t.Errorf("%s: %q", c.target, got)
				}
				continue
			}
			if got != want {
				t.Errorf("%s, strict %v: %q, want %q", c.target, strict, got, want)
			}
			if r.ran != nil && r.ran.Filename != root+r.ran.Name {
				t.Errorf("%s runs %s", c.target, r.ran.Filename)
			}
		}
	}
}

func TestScriptsBelowAPrefixAndInAContainer(t *testing.T) {
	root := phpTree(t)
	settings := usual(root)
	settings.ServerRoot, settings.Static, settings.Params = "/var/www/html/", false, []Param{{Name: "A", Value: "b"}}
	s, r := phpSite(t, settings, exchange.Route{Prefix: "/blog", Strip: true})
	ex := exchangetest.New(t, exchangetest.Head("GET", "/blog/remote.php/x"))
	ex.Request.Target = "/remote.php/x"
	exchangetest.Run(t, ex, s)
	if r.ran == nil || r.ran.Filename != "/var/www/html/remote.php" || r.ran.Root != "/var/www/html" || r.ran.Name != "/blog/remote.php" || r.ran.PathInfo != "/x" || len(r.ran.Params) != 1 {
		t.Errorf("%+v", r.ran)
	}
	if got := requestPath(t, s, r, "/wp-content/style.css"); got != "/blog/index.php + " {
		t.Errorf("without static: %q", got)
	}
}

func TestFilesBesideScriptsAreReadOnly(t *testing.T) {
	s, r := phpSite(t, usual(phpTree(t)), exchange.Route{})
	ex := exchangetest.New(t, exchangetest.Head("POST", "/wp-content/style.css"))
	exchangetest.Run(t, ex, s)
	if ex.Reason != exchange.MethodRefused || r.ran != nil {
		t.Errorf("%v, ran %v", ex.Reason, r.ran)
	}
	s, r = phpSite(t, usual(filepath.Join(t.TempDir(), "none")), exchange.Route{})
	if got := requestPath(t, s, r, "/index.php"); got != "file_unreadable" {
		t.Errorf("without the root: %q", got)
	}
}

func TestBodiesWithoutLengthAreBuffered(t *testing.T) {
	settings := usual(phpTree(t))
	settings.RequestBuffer = 10
	s, r := phpSite(t, settings, exchange.Route{})
	for _, c := range []struct {
		pieces []string
		reason exchange.Reason
	}{
		{[]string{"hello"}, exchange.None}, {[]string{"hello", "world"}, exchange.None}, {[]string{"hello", "world", "!"}, exchange.LengthRequired}, {nil, exchange.None},
	} {
		r.ran = nil
		want := strings.Join(c.pieces, "")
		ex := exchangetest.New(t, exchangetest.Head("POST", "/index.php"), exchangetest.Chunks(c.pieces...))
		front := exchangetest.Run(t, ex, s)
		if ex.Reason != c.reason || c.reason == exchange.None && (r.body != want || r.length != int64(len(want))) || c.reason != exchange.None && (r.ran != nil || front.Status != 411) {
			t.Errorf("%q: %v, body %q of %d", c.pieces, ex.Reason, r.body, r.length)
		}
		if n := s.buffers.used.Load(); n != 0 {
			t.Errorf("%q: %d bytes are still counted", c.pieces, n)
		}
	}
	s.buffers.used.Store(maxBuffered)
	ex := exchangetest.New(t, exchangetest.Head("POST", "/index.php"), exchangetest.Chunks("hello"))
	if exchangetest.Run(t, ex, s); ex.Reason != exchange.Overloaded || s.buffers.used.Load() != maxBuffered {
		t.Errorf("%v with all memory in use, %d", ex.Reason, s.buffers.used.Load())
	}
}

func TestSettingsOfScriptsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*FastCGI){
		"":                        func(*FastCGI) {},
		"whole file system":       func(c *FastCGI) { c.Root = "/" },
		"not absolute":            func(c *FastCGI) { c.ServerRoot = "www" },
		"not the name of a file":  func(c *FastCGI) { c.Index = []string{"a/index.php"} },
		"not an extension":        func(c *FastCGI) { c.SplitPath = []string{"php"} },
		`".p/p" is not`:           func(c *FastCGI) { c.SplitPath = []string{".p/p"} },
		"front_controller needs":  func(c *FastCGI) { c.Index = []string{"index.html"} },
		"name of a parameter":     func(c *FastCGI) { c.Params = []Param{{Name: "A-B"}} },
		"header fields":           func(c *FastCGI) { c.Params = []Param{{Name: "HTTP_PROXY"}} },
		"set by headgate":         func(c *FastCGI) { c.Params = []Param{{Name: "SCRIPT_FILENAME"}} },
		"is set twice":            func(c *FastCGI) { c.Params = []Param{{Name: "A"}, {Name: "A"}} },
		"the value contains a NU": func(c *FastCGI) { c.Params = []Param{{Name: "A", Value: "\x00"}} },
	} {
		c := usual("/srv/www")
		change(&c)
		report := schema.NewReport("", nil)
		c.Check(report.Root())
		var got strings.Builder
		for _, p := range report.Problems() {
			got.WriteString(p.Error())
		}
		if (got.Len() == 0) != (want == "") || !strings.Contains(got.String(), want) {
			t.Errorf("%q, want %q", got.String(), want)
		}
	}
}

// FuzzScripts requests any path: a script that runs is a regular file of the folder.
func FuzzScripts(f *testing.F) {
	for _, target := range []string{"/", "/index.php/a/..%2fb", "/upload/x.jpg/a.php", "/a/../remote.php", "/dir.php/real.php", "/wp-config.php~", "//index.php", "/%2e%2e/index.php"} {
		f.Add(target)
	}
	root := f.TempDir()
	scripts := map[string]bool{"/index.php": true, "/wp-admin/index.php": true, "/dir.php/real.php": true}
	for _, name := range []string{"index.php", "wp-admin/index.php", "dir.php/real.php", "upload/x.jpg", "secret.php~", "style.css"} {
		full := filepath.Join(root, filepath.FromSlash(name))
		if os.MkdirAll(filepath.Dir(full), 0o755) != nil || os.WriteFile(full, []byte("<?php"), 0o644) != nil {
			f.Fatal("the folder cannot be made")
		}
	}
	f.Fuzz(func(t *testing.T, target string) {
		path, err := uri.AppendNormal(nil, target)
		if err != nil {
			return
		}
		s, r := phpSite(t, usual(root), exchange.Route{})
		ex := exchangetest.New(t)
		ex.Request.Path, ex.Request.Target = string(path), string(path)
		front := exchangetest.Run(t, ex, s)
		if r.ran != nil {
			info := r.ran.PathInfo
			if !scripts[r.ran.Name] || r.ran.Filename != root+r.ran.Name || info != "" && info[0] != '/' || strings.Contains(info, "/../") || strings.ContainsRune(info, 0) {
				t.Errorf("%q runs %+v", target, r.ran)
			}
		} else if ex.Reason == exchange.None && front.Field(header.ContentType.String()) == "application/octet-stream" {
			t.Errorf("%q sends a source", target)
		}
	})
}
