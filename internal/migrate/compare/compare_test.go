package compare

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two starts an old and a new proxy and returns the options that ask both.
func two(t *testing.T, old, ours http.HandlerFunc, targets ...string) Options {
	t.Helper()
	a, b := httptest.NewServer(old), httptest.NewServer(ours)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	// A busy machine is slow at any moment, which is not what is tested.
	o := Options{Rate: 10_000, Timeout: 10 * time.Second, Slower: 1e9,
		Old: Side{HTTP: a.Listener.Addr().String()}, New: Side{HTTP: b.Listener.Addr().String()}}
	for _, target := range targets {
		o.Requests = append(o.Requests, Request{Method: "GET", Scheme: "http", Host: "shop.example.com", Target: target, Proxy: "shop"})
	}
	return o
}

func run(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answers returns a handler with fixed fields and a body.
func answers(status int, body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		name      string
		old, ours http.HandlerFunc
		want      []string // kind weight name
	}{
		{"alike", answers(200, "x", "Vary: a, b"), answers(200, "x", "Vary: B,  a", "Date: never"), nil},
		{"status", answers(200, ""), answers(404, ""), []string{"status breaks "}},
		{"redirect", answers(301, "", "Location: https://a.test/"), answers(301, "", "Location: https://b.test/"), []string{"location breaks Location"}},
		{"port of the test", answers(301, "", "Location: https://a.test/x"), answers(301, "", "Location: https://a.test:8443/x"), []string{"location note Location"}},
		{"a relative redirect", answers(301, "", "Location: http://shop.example.com/x"), answers(301, "", "Location: /x"), []string{"location note Location"}},
		{"another path", answers(301, "", "Location: /x"), answers(301, "", "Location: /y"), []string{"location breaks Location"}},
		{"body", answers(200, "one"), answers(200, "two"), []string{"body breaks "}},
		{"page below a redirect", answers(301, "nginx", "Location: /x"), answers(301, "headgate", "Location: /x"), []string{"body note "}},
		{"pages of a server", answers(404, "one"), answers(404, "two"), []string{"body differs "}},
		{"cookie value", answers(200, "", "Set-Cookie: sid=1; Path=/; HttpOnly"), answers(200, "", "Set-Cookie: sid=2; HttpOnly; Path=/"), nil},
		{"cookie attribute", answers(200, "", "Set-Cookie: sid=1; Path=/; Secure"), answers(200, "", "Set-Cookie: sid=1; Path=/"), []string{"cookie breaks sid"}},
		{"cookie missing", answers(200, "", "Set-Cookie: sid=1"), answers(200, ""), []string{"cookie breaks sid"}},
		{"cookie new", answers(200, ""), answers(200, "", "Set-Cookie: affinity=1"), []string{"cookie differs affinity"}},
		{"cors", answers(200, "", "Access-Control-Allow-Origin: *"), answers(200, ""), []string{"cors breaks Access-Control-Allow-Origin"}},
		{"cache", answers(200, "", "Cache-Control: max-age=60, public"), answers(200, "", "Cache-Control: no-store"), []string{"cache differs Cache-Control"}},
		{"weak", answers(200, "", `ETag: "a"`), answers(200, "", `ETag: W/"a"`), nil},
		{"security", answers(200, "", "Strict-Transport-Security: max-age=1"), answers(200, ""), []string{"security differs Strict-Transport-Security"}},
		{"server", answers(200, "", "Server: nginx"), answers(200, ""), []string{"header note Server"}},
		{"other", answers(200, ""), answers(200, "", "X-Odd: 1"), []string{"header differs X-Odd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, two(t, c.old, c.ours, "/"))
			var got []string
			for _, one := range r.Results {
				for _, d := range one.Differences {
					got = append(got, fmt.Sprintf("%s %s %s", d.Kind, d.Weight, d.Name))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, want %q\n%+v", got, c.want, r.Results)
			}
		})
	}
}

func TestNoiseOfTheOldSideIsLeftOut(t *testing.T) {
	var n atomic.Int64
	noisy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Id", fmt.Sprint(n.Add(1)))
		fmt.Fprint(w, "page ", n.Load())
	}
	if r := run(t, two(t, noisy, noisy, "/", "/a")); r.Percent != 100 || len(r.Results) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestCompressedAndPlainContentAreAlike(t *testing.T) {
	text := strings.Repeat("a page ", 1000)
	packed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, text)
		z.Close()
	}
	if r := run(t, two(t, answers(200, text, "Content-Type: text/plain"), packed, "/")); r.Ready != 1 {
		t.Errorf("%+v", r.Results)
	}
	// What cannot be decoded, and what ends too early, is told.
	for name, ours := range map[string]http.HandlerFunc{
		"not gzip": answers(200, "not gzip", "Content-Encoding: gzip"),
		"cut off":  answers(200, "a page a", "Content-Length: 10"),
	} {
		r := run(t, two(t, answers(200, text), ours, "/"))
		if r.Ready != 0 || !strings.Contains(fmt.Sprint(r.Results), "the body ends too early or cannot be decoded") {
			t.Errorf("%s: %+v", name, r.Results)
		}
	}
}

func TestTargetsAndHostsAreSentAsTheyAre(t *testing.T) {
	for _, target := range []string{"/", "/a%2Fb", "//x/../y", "/a//b?", "/?q=%20&x", "/%7Euser/;v=1"} {
		seen := make(chan string, 3)
		record := func(_ http.ResponseWriter, rq *http.Request) { seen <- rq.Host + " " + rq.RequestURI }
		run(t, two(t, record, record, target))
		for range 3 {
			if got := <-seen; got != "shop.example.com "+target {
				t.Errorf("got %q, want %q", got, target)
			}
		}
	}
}

func TestOnlySafeMethodsAreSentUnlessAsked(t *testing.T) {
	var posts atomic.Int64
	count := func(_ http.ResponseWriter, rq *http.Request) {
		if rq.Method == "POST" {
			posts.Add(1)
		}
	}
	o := two(t, count, count, "/")
	o.Requests = append(o.Requests, Request{Method: "POST", Scheme: "http", Host: "a.test", Target: "/"},
		Request{Method: "GET", Scheme: "https", Host: "a.test", Target: "/"})
	if r := run(t, o); posts.Load() != 0 || r.Requests != 1 || len(r.Notes) != 2 {
		t.Errorf("%d POST, %+v", posts.Load(), r)
	}
	o.Unsafe = true
	if run(t, o); posts.Load() != 3 {
		t.Errorf("%d POST, want 3", posts.Load())
	}
}

func TestASideThatDoesNotAnswer(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	o := two(t, answers(200, "x"), answers(200, "x"), "/")
	o.New.HTTP = gone.Addr().String()
	r := run(t, o)
	if r.Percent != 0 || r.Results[0].Differences[0].Kind != KindError || r.Results[0].Differences[0].Weight != Breaks {
		t.Errorf("%+v", r.Results)
	}
	o.Old.HTTP = o.New.HTTP
	if r = run(t, o); r.Percent != 0 { // a wrong address is not a proxy that is ready
		t.Errorf("neither answers: %+v", r.Results)
	}
}

// A side that answers garbage, without end, or not at all costs no more than its
// bounds.
func TestHostileSides(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 64<<20))
	z.Close()
	for name, serve := range map[string]func(net.Conn){
		"garbage": func(c net.Conn) { fmt.Fprint(c, "\x00\x01SSH-2.0\r\n\r\n") },
		"endless body": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
			for _, err := c.Write(make([]byte, 64<<10)); err == nil; {
				_, err = c.Write(make([]byte, 64<<10))
			}
		},
		"endless header": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n")
			for _, err := fmt.Fprint(c, "X: y\r\n"); err == nil; {
				_, err = fmt.Fprint(c, "X: y\r\n")
			}
		},
		"another protocol": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		},
		"interim without end": func(c net.Conn) {
			for _, err := fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err == nil; {
				_, err = fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\n\r\n")
			}
		},
		"drop by drop": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			for _, err := fmt.Fprint(c, "x"); err == nil; _, err = fmt.Fprint(c, "x") {
				<-time.After(50 * time.Millisecond)
			}
		},
		"silent": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"bomb": func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", b.Len(), b.Bytes())
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := two(t, answers(200, "x"), answers(200, "x"), "/")
			o.New.HTTP, o.Timeout, o.MaxBody = testhouse.Server(t, serve), 500*time.Millisecond, 1<<20
			if r := run(t, o); r.Requests != 1 || r.Ready != 0 {
				t.Errorf("%+v", r)
			}
			o.New, o.Old = o.Old, o.New
			if r := run(t, o); r.Requests != 1 || r.Ready != 0 {
				t.Errorf("as the old side: %+v", r)
			}
			// Over TLS it is garbage before anything else.
			o.Old.HTTPS, o.New.HTTPS = o.Old.HTTP, o.New.HTTP
			o.Requests[0].Scheme = "https"
			if r := run(t, o); r.Requests != 1 || r.Ready != 0 || r.Results[0].Old.Error == "" {
				t.Errorf("over TLS: %+v", r)
			}
		})
	}
}

func TestCertificatesAndProtocolsAreCompared(t *testing.T) {
	a, b := httptest.NewUnstartedServer(answers(200, "x")), httptest.NewTLSServer(answers(200, "x"))
	a.EnableHTTP2 = true
	a.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	a.StartTLS()
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	o := Options{Rate: 1000, Old: Side{HTTPS: a.Listener.Addr().String()}, New: Side{HTTPS: b.Listener.Addr().String()},
		Requests: []Request{{Method: "GET", Scheme: "https", Host: "example.com", Target: "/"}}}
	r := run(t, o)
	if len(r.Results) != 1 || len(r.Results[0].Differences) != 1 || r.Results[0].Differences[0].Kind != KindProtocol {
		t.Errorf("want one difference, of the protocol: %+v", r.Results)
	}
	trusted, ours := &tlsFacts{version: tls.VersionTLS13, covers: true, trusted: true, notAfter: time.Now().AddDate(0, 2, 0)},
		&tlsFacts{version: tls.VersionTLS12, notAfter: time.Now().AddDate(0, 0, 1)}
	c := &comparison{old: &answer{tls: trusted}, new: &answer{tls: ours}}
	if c.certificate(); len(c.found) != 4 {
		t.Errorf("want name, trust, end and version: %+v", c.found)
	}
}

func TestReadiness(t *testing.T) {
	ours := func(w http.ResponseWriter, rq *http.Request) {
		if strings.HasPrefix(rq.URL.Path, "/bad") {
			w.WriteHeader(404)
		}
	}
	o := two(t, answers(200, ""), ours, "/", "/bad/1", "/bad/2", "/ok")
	o.Requests = append(o.Requests, Request{Method: "GET", Scheme: "http", Host: "b.test", Target: "/", Proxy: "b"})
	r := run(t, o)
	if len(r.Proxies) != 2 || r.Proxies[0].Proxy != "shop" || r.Proxies[0].Percent != 50 || r.Proxies[1].Percent != 100 {
		t.Fatalf("%+v", r.Proxies)
	}
	if reasons := r.Proxies[0].Reasons; len(reasons) != 1 || reasons[0].Requests != 2 || reasons[0].Text != "status 200 became 404" {
		t.Errorf("%+v", reasons)
	}
	var text, html bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteHTML(&html)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 of 5 requests are answered alike: 60 %", " 50 %  shop", "status 200 became 404", "/bad/1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if !strings.Contains(html.String(), "GET http://shop.example.com/bad/2") {
		t.Errorf("page:\n%s", &html)
	}
}

func TestReportsCannotBeSteeredByTheOtherSide(t *testing.T) {
	r := run(t, two(t, answers(200, "", "X-Odd: \u009b31m<script>"), answers(200, ""), "/"))
	var text, html bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteHTML(&html)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "\u009b") || strings.Contains(html.String(), "<script>") || !strings.Contains(text.String(), "X-Odd") {
		t.Errorf("%q\n%s", &text, &html)
	}
}

func TestAComparisonCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := two(t, answers(200, ""), answers(200, ""), "/1", "/2", "/3", "/4")
	o.Rate = 1
	o.Progress = func(int, int) { cancel() }
	if r, err := Run(ctx, o); !errors.Is(err, context.Canceled) || r == nil || r.Requests > 3 {
		t.Errorf("%+v %v", r, err)
	}
}

// What Dial refuses is not asked.
func TestDialMayRefuse(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer s.Close()
	at := Side{HTTP: s.Listener.Addr().String()}
	refused := errors.New("not allowed")
	report, err := Run(t.Context(), Options{Old: at, New: at, Rate: 1000, Requests: []Request{{Method: "GET", Scheme: "http", Host: "a.example", Target: "/"}},
		Dial: func(context.Context, string, string, syscall.RawConn) error { return refused }})
	if err != nil || asked.Load() != 0 || len(report.Results) != 1 || !strings.Contains(report.Results[0].New.Error, "not allowed") {
		t.Errorf("%v %d %+v", err, asked.Load(), report)
	}
}

func TestCookiesAreComparedAttributeByAttribute(t *testing.T) {
	for _, c := range []struct{ name, old, again, ours, want string }{
		{"order and case", "sid=1; path=/; httponly; SameSite=lax", "", "sid=2; SameSite=Lax; HttpOnly; Path=/", ""},
		{"missing and changed", "sid=1; Path=/; Secure; SameSite=Lax", "", "sid=1; Path=/; SameSite=None", "cookie sid: Secure is missing; SameSite was Lax and is None"},
		{"new", "sid=1; Path=/", "", "sid=1; Path=/; Partitioned", "cookie sid: Partitioned is new"},
		{"unknown attributes count", "sid=1; Priority=High", "", "sid=1", "cookie sid: Priority is missing"},
		{"session and lasting", "sid=1", "", "sid=1; Expires=Fri, 01 Jan 2100 00:00:00 GMT", "cookie sid: Expires is new"},
		{"an age that runs down is noise", "sid=1; Max-Age=9; Path=/", "sid=1; Max-Age=8; Path=/", "sid=1; Max-Age=7; Path=/", ""},
		{"but nothing else of it is", "sid=1; Max-Age=9; Secure", "sid=1; Max-Age=8; Secure", "sid=1; Max-Age=7", "cookie sid: Secure is missing"},
		{"deleted either way", "sid=; Max-Age=-1", "", "sid=; Max-Age=0", ""},
		{"domain", "sid=1; Domain=.Example.com", "", "sid=1; Domain=example.com", ""},
		{"what net/http would not take", "a b=1; Secure", "", "a b=1", "cookie a b: Secure is missing"},
		{"no name", "loose", "", "", "cookie  is missing"},
		{"twice with other paths", "sid=1; Path=/\nsid=1; Path=/a", "", "sid=1; Path=/a\nsid=1; Path=/b", "cookie sid: Path was / and is /b"},
	} {
		answerOf := func(fields string) *answer {
			a := &answer{header: http.Header{}}
			for line := range strings.SplitSeq(fields, "\n") {
				if line != "" {
					a.header.Add("Set-Cookie", line)
				}
			}
			return a
		}
		again := answerOf(c.again)
		if c.again == "" {
			again = answerOf(c.old)
		}
		compared := &comparison{old: answerOf(c.old), again: again, new: answerOf(c.ours)}
		compared.cookies()
		got := ""
		for _, d := range compared.found {
			got += d.Text
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A proxy that sends its clients in a circle is told, and not followed.
func TestCirclesAreTold(t *testing.T) {
	circle := func(w http.ResponseWriter, rq *http.Request) {
		w.Header().Set("Location", "http://"+rq.Host+rq.RequestURI)
		w.WriteHeader(302)
	}
	for _, c := range []struct {
		name      string
		old, ours http.HandlerFunc
		want      string
		ready     int
	}{
		{"only the new one", answers(302, "", "Location: /b"), circle, "the new proxy sends the client back to where it is, in a circle", 0},
		{"both", circle, circle, "both proxies send the client back to where it is, in a circle", 1},
		{"only the old one", circle, answers(302, "", "Location: /b"), "Location was http://shop.example.com/a?b and is /b", 0},
	} {
		r := run(t, two(t, c.old, c.ours, "/a?b"))
		if r.Ready != c.ready || len(r.Results) != 1 || !strings.Contains(r.Results[0].Differences[0].Text, c.want) {
			t.Errorf("%s: %+v", c.name, r.Results)
		}
	}
}

// A side that says nothing, or is not there, ends the comparison after a while, and what
// was not asked is told.
func TestASilentSideEndsTheComparison(t *testing.T) {
	gone := free(t)
	for name, address := range map[string]string{"gone": gone, "silent": testhouse.Server(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })} {
		targets := make([]string, 100)
		for i := range targets {
			targets[i] = fmt.Sprint("/", i)
		}
		o := two(t, answers(200, ""), answers(200, ""), targets...)
		o.Old.HTTP, o.Timeout = address, 50*time.Millisecond
		r := run(t, o)
		if r.Requests < maxSilent || r.Requests > maxSilent+2*atOnce || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "the old proxy did not answer 20 consecutive requests") {
			t.Errorf("%s: %d requests, %q", name, r.Requests, r.Notes)
		}
	}
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// What one answer can make the report hold is bounded, and so is the whole.
func TestWhatIsToldIsBounded(t *testing.T) {
	flood := func(w http.ResponseWriter, _ *http.Request) {
		for i := range 5000 {
			w.Header().Set(fmt.Sprintf("X-%d-%s", i, strings.Repeat("n", 20)), "v")
		}
		w.Header().Set("Set-Cookie", strings.Repeat("c", 50_000)+"=1; "+strings.Repeat("a", 50_000))
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(200)
	}
	r := run(t, two(t, flood, answers(200, ""), "/"))
	if len(r.Results) != 1 || len(r.Results[0].Differences) != maxDifferences+1 {
		t.Fatalf("%d results", len(r.Results))
	}
	size := 0
	for _, d := range r.Results[0].Differences {
		size += len(d.Text) + len(d.Old) + len(d.New) + len(d.Name)
	}
	if size > maxDifferences*2000 {
		t.Errorf("%d bytes are kept", size)
	}
	k := &runner{budget: 100}
	one := Result{Request: Request{Method: "GET"}, Differences: []Difference{{Weight: Note, Text: strings.Repeat("x", 100)}, {Weight: Breaks, Text: strings.Repeat("y", 500)}}}
	if got := k.keep(one); len(got.Differences) != 1 || got.Differences[0].Weight != Breaks || len(got.Differences[0].Text) > 2*maxName || k.cut != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestTextsForATerminal(t *testing.T) {
	for _, hostile := range []string{"\x1b[2J", "\u009b31m", "\u202eabc", "\u2066", "a\r\nb", "\x7f", "\u2028", "\xff"} {
		if got := visible(hostile); !strings.Contains(got, "\uFFFD") || strings.ContainsAny(got, "\x1b\u009b\u202e\u2066\r\n\x7f\u2028") {
			t.Errorf("%q became %q", hostile, got)
		}
	}
	if got := visible("Grüße ✓ 你好"); got != "Grüße ✓ 你好" {
		t.Errorf("got %q", got)
	}
}
