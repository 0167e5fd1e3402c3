package accesslog

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample returns a finished exchange with every field set.
func sample() *exchange.Exchange {
	ex := &exchange.Exchange{
		Conn: &exchange.Conn{Peer: "198.51.100.7", Serial: 3, Remote: netip.MustParseAddrPort("198.51.100.7:4711"),
			TLSVersion: tls.VersionTLS13, TLSCipher: tls.TLS_AES_128_GCM_SHA256},
		ServerStatus: 200,
		Place:        &exchange.Place{Port: "web", Proxy: "shop", Route: "/api"},
		ClientIP:     netip.MustParseAddr("203.0.113.9"),
		User:         "ada",
		Server:       "http://127.0.0.1:3000/v2/",
		Attempts:     1,
		Sent:         100,
		Received:     7,
	}
	ex.Request.Method, ex.Request.Scheme = "GET", "http"
	ex.Request.Host, ex.Request.Path, ex.Request.Query = "shop.example.com", "/api/x", "?a=1"
	ex.Request.Proto = exchange.HTTP11
	ex.Request.Header.Add(header.UserAgent, "curl/8")
	ex.Request.Header.Add(header.Referer, "http://example.org/")
	ex.Response.Status, ex.Response.HeadSent = 200, true
	ex.Times = exchange.Times{Start: 1, Dialed: 1, Connected: 250_001, Head: 1_250_001, End: 2_000_001}
	return ex
}

func open(t testing.TB, format string) (*Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := Open(Config{Format: format, Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, path
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestJSONLineHasEveryField(t *testing.T) {
	l, path := open(t, JSON)
	l.Record(sample())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	line := read(t, path)
	id := sample().ID()
	when := regexp.MustCompile(`"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)
	if !when.MatchString(line) {
		t.Errorf("time is not RFC 3339 with milliseconds: %s", line)
	}
	got := when.ReplaceAllString(line, `"time":"T"`)
	want := `{"time":"T","client_ip":"203.0.113.9","peer":"198.51.100.7","client_port":4711,"method":"GET","scheme":"http",` +
		`"host":"shop.example.com","path":"/api/x","query":"a=1","proto":"HTTP/1.1","tls_version":"TLS 1.3","tls_cipher":"TLS_AES_128_GCM_SHA256","status":200,"port":"web",` +
		`"proxy":"shop","route":"/api","server":"http://127.0.0.1:3000/v2/","attempts":1,"upstream_status":200,"user":"ada","request_id":"` + id +
		`","user_agent":"curl/8","referer":"http://example.org/","bytes_sent":100,"bytes_received":7,` +
		`"duration_ms":2.000,"connect_ms":0.250,"upstream_head_ms":1.000}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// Fields can be chosen: some of the request's are there too, some are not.
func TestALineHasTheFieldsThatAreChosen(t *testing.T) {
	o, err := newChoice(&Config{Headers: []string{"X-Tenant", "X-None", "X-Two"}, ResponseHeaders: []string{"Content-Type", "ETag"}, Omit: Omittable()})
	if err != nil {
		t.Fatal(err)
	}
	ex := sample()
	ex.Cause = "left out"
	ex.Request.Header.AddField("x-tenant", "a\"b")
	ex.Request.Header.AddField("X-Two", strings.Repeat("x", 2000))
	ex.Response.Header.Add(header.ContentType, "text/\nhtml")
	ex.Response.Header.AddField("X-Two", "not chosen")
	line := string(o.appendRecord(nil, ex, &clock{}))
	for _, absent := range []string{"203.0.113.9", "198.51.100.7", "4711", "ada", "a=1", "curl", "example.org", "left out", "TLS", "not chosen"} {
		if strings.Contains(line, absent) {
			t.Errorf("%q is in %s", absent, line)
		}
	}
	var fields struct {
		Headers  map[string]string `json:"request_headers"`
		Response map[string]string `json:"response_headers"`
	}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if h := fields.Headers; len(h) != 2 || h["x-tenant"] != `a"b` || len(h["x-two"]) != maxHeader+len("…") {
		t.Errorf("got %q", h)
	}
	if h := fields.Response; len(h) != 1 || h["content-type"] != "text/\nhtml" {
		t.Errorf("of the response: got %q", h)
	}
	if _, err := newChoice(&Config{Omit: []string{"path"}}); err == nil {
		t.Error("a line without a path is made")
	}
}

// A sample has its part of what went well, and all of what did not.
func TestASampleIsOfWhatWentWell(t *testing.T) {
	for percent, want := range map[int]int{0: 1000, 100: 1000, -1: 0, 10: 100, 50: 500} {
		o, _ := newChoice(&Config{Sample: percent})
		good, bad := 0, 0
		for serial := range uint64(100) {
			conn := &exchange.Conn{Serial: serial + 1}
			ex := &exchange.Exchange{}
			for range 10 {
				ex.Reset(conn, nil)
				ex.Response.Status = 200
				if o.selects(ex) {
					good++
				}
				ex.Response.Status = 404
				if o.selects(ex) {
					bad++
				}
			}
		}
		if good < want*8/10 || good > want*12/10 || bad != 1000 {
			t.Errorf("%d%%: %d of 1000 that went well, want about %d; %d of 1000 that did not", percent, good, want, bad)
		}
	}
}

func TestCombinedLineCannotBeForged(t *testing.T) {
	l, path := open(t, Combined)
	ex := sample()
	ex.User = "a b] \"x"
	ex.Request.Path, ex.Request.Query = "/\"\n\\\x1b", "?é"
	ex.Request.Header.Set(header.UserAgent, "x\" 200 \"\r\n127.0.0.1 - -")
	ex.Request.Header.Del(header.Referer)
	l.Record(ex)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	when := regexp.MustCompile(`\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]`)
	got := when.ReplaceAllString(read(t, path), "[T]")
	want := `203.0.113.9 - a\x20b]\x20\x22x [T] "GET /\x22\x0A\x5C\x1B?\xC3\xA9 HTTP/1.1" 200 100 "-" "x\x22 200 \x22\x0D\x0A127.0.0.1 - -"` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestCombinedLineInventsNothing(t *testing.T) {
	for want, rq := range map[string]exchange.Request{
		`"-"`:               {},
		`"GET"`:             {Method: "GET"},
		`"GET /a?b"`:        {Method: "GET", Path: "/a", Query: "?b"},
		`"GET /a HTTP/1.0"`: {Method: "GET", Path: "/a", Proto: exchange.HTTP10},
	} {
		ex := sample()
		ex.Request = rq
		var c clock
		c.set()
		if line := string(appendCombined(nil, ex, &c)); !strings.Contains(line, "] "+want+" ") {
			t.Errorf("got %q, want %s", line, want)
		}
	}
}

func TestStatusIs499WhenNothingWasSent(t *testing.T) {
	for _, test := range []struct {
		name     string
		reason   exchange.Reason
		headSent bool
		status   int
		want     int
	}{
		{"client gone before the head", exchange.ClientClosed, false, 200, 499},
		{"client gone before a response was made", exchange.ClientClosed, false, 0, 499},
		{"client gone in the body", exchange.ClientClosed, true, 200, 200},
		{"answer of our own", exchange.NoRoute, true, 404, 404},
	} {
		ex := sample()
		ex.Reason, ex.Response.HeadSent, ex.Response.Status = test.reason, test.headSent, test.status
		if got := ex.Status(); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func TestLongTextIsCutBetweenCharacters(t *testing.T) {
	got := string(appendText(nil, strings.Repeat("é", 40), 11))
	if want := `"` + strings.Repeat("é", 5) + `…"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(appendQuoted(nil, "abcdef", 3)), "abc..."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	for _, format := range []string{JSON, Combined} {
		l, _ := open(t, format)
		ex := sample()
		l.Record(ex)
		if n := testing.AllocsPerRun(2000, func() { l.Record(ex) }); n != 0 && !raceEnabled {
			t.Errorf("%s: %v allocations a record", format, n)
		}
	}
}

func TestRecordsOfManyGoroutinesAreAllWrittenWhole(t *testing.T) {
	l, path := open(t, JSON)
	const goroutines, each = 8, 2000
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			ex := sample()
			for range each {
				l.Record(ex)
			}
		})
	}
	group.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines([]byte(read(t, path))) {
		if !json.Valid(line) {
			t.Fatalf("line is no JSON: %s", line)
		}
		n++
	}
	if n+int(l.Lost()) != goroutines*each {
		t.Errorf("got %d lines and %d lost, want %d", n, l.Lost(), goroutines*each)
	}
}

func TestReopenGoesOnInANewFile(t *testing.T) {
	l, path := open(t, JSON)
	l.Record(sample())
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(read(t, path+".1"), "\n"); n != 1 {
		t.Errorf("old file has %d lines after Reopen, want 1", n)
	}
	l.Record(sample())
	l.Record(sample())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(read(t, path), "\n"); n != 2 {
		t.Errorf("new file has %d lines, want 2", n)
	}
	if err := l.Reopen(); err == nil {
		t.Error("Reopen of a closed log returned nil")
	}
}

func TestReopenKeepsTheOldFileWhenTheNewCannotBeOpened(t *testing.T) {
	l, path := open(t, JSON)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("Reopen of a folder returned nil")
	}
	l.Record(sample())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(read(t, path+".1"), "\n"); n != 1 {
		t.Errorf("old file has %d lines, want 1", n)
	}
}

func TestRecordAfterRetireIsWrittenAtOnce(t *testing.T) {
	l, path := open(t, JSON)
	l.Record(sample())
	l.Retire()
	l.Record(sample())
	if n := strings.Count(read(t, path), "\n"); n != 2 {
		t.Errorf("got %d lines, want 2", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Record(sample())
	if l.Lost() != 1 {
		t.Errorf("got %d lost after Close, want 1", l.Lost())
	}
}

func TestBuffersAreWrittenSoonWithoutTraffic(t *testing.T) {
	l, path := open(t, JSON)
	l.Record(sample())
	for deadline := time.Now().Add(time.Minute); ; {
		if strings.Contains(read(t, path), "\n") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no line after 10s")
		}
		time.Sleep(time.Millisecond) // polls a file, which cannot be waited for
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for _, c := range []Config{
		{Format: "xml", Path: filepath.Join(t.TempDir(), "a")},
		{Format: JSON, Path: filepath.Join(t.TempDir(), "absent", "a")},
	} {
		if l, err := Open(c, slog.New(slog.DiscardHandler)); err == nil {
			l.Close()
			t.Errorf("Open(%+v) returned nil", c)
		}
	}
}

func FuzzLineIsOneLine(f *testing.F) {
	f.Add("curl/8", "/a", "?b=\"", "host")
	f.Add("\xff\x00\u2028\u202e", "/\x1b[2J", "?\n", strings.Repeat("x", 600))
	f.Fuzz(func(t *testing.T, agent, path, query, host string) {
		ex := sample()
		ex.Request.Header.Set(header.UserAgent, agent)
		ex.Request.Path, ex.Request.Host, ex.User, ex.Cause = path, host, agent, host
		ex.Request.Query = ""
		if query != "" {
			ex.Request.Query = "?" + query
		}
		var c clock
		c.set()
		line := new(choice).appendRecord(nil, ex, &c)
		var record struct {
			Agent string `json:"user_agent"`
			Path  string `json:"path"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if bytes.Count(line, []byte{'\n'}) != 1 || !utf8.Valid(line) {
			t.Fatalf("not one line of UTF-8: %q", line)
		}
		if utf8.ValidString(path) && len(path) <= maxTarget && record.Path != path {
			t.Fatalf("path: got %q, want %q", record.Path, path)
		}
		c.set()
		line = appendCombined(nil, ex, &c)
		for i, b := range line {
			if (b < ' ' || b > 0x7e) && i != len(line)-1 {
				t.Fatalf("byte %d is not printable: %q", i, line)
			}
		}
		if bytes.Count(line, []byte{'"'}) != 6 {
			t.Fatalf("quotes do not pair: %q", line)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, format := range []string{JSON, Combined} {
		b.Run(format, func(b *testing.B) {
			l, err := Open(Config{Format: format, Path: os.DevNull}, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				ex := sample()
				for n := 1; pb.Next(); n++ {
					l.Record(ex)
					if n%64 == 0 {
						runtime.Gosched() // a request would wait for the network here
					}
				}
			})
			b.StopTimer()
			l.Close()
			if lost := l.Lost(); lost > 0 {
				b.ReportMetric(float64(lost)/float64(b.N), "lost/op")
			}
		})
	}
}
