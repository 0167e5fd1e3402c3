package forwardauth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/setting/unit"
)

// auth is an auth server that answers as a function says, and notes what it was
// asked.
type auth struct {
	asked  []string // "GET ?query" and its fields, one a line
	reply  func(ex *exchange.Exchange) *exchange.Answer
	source string
}

func (a *auth) Describe() string { return "auth" }

func (a *auth) Respond(ex *exchange.Exchange) *exchange.Answer {
	rq := &ex.Request
	lines := []string{rq.Method + " " + rq.Target + rq.Query}
	for _, f := range rq.Header.All() {
		lines = append(lines, strings.ToLower(f.Name)+": "+strings.Clone(f.Value))
	}
	a.asked = append(a.asked, strings.Join(lines, "\n"))
	return a.reply(ex)
}

// reply returns a reply with a status, fields and a body.
func reply(status int, body string, fields ...string) func(*exchange.Exchange) *exchange.Answer {
	return (&exchangetest.Source{Status: status, Fields: fields, Body: body}).Respond
}

func (a *auth) env(t testing.TB) exchange.Env {
	env := exchangetest.Env(t)
	env.Source = func(url string) (exchange.Source, error) { a.source = url; return a, nil }
	return env
}

func compile(t testing.TB, c *Config, env exchange.Env) exchange.Filter {
	t.Helper()
	c.Enabled = true
	if c.URL == "" {
		c.URL = "http://auth:9091/api/authz/forward-auth"
	}
	c.Timeout = unit.Duration(5 * time.Second)
	f, err := Compile(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// run takes a request through the filter; what reached the server is in ex.
func run(t testing.TB, f exchange.Filter, options ...exchangetest.Option) (*exchangetest.Front, *exchange.Exchange, bool) {
	t.Helper()
	ex := exchangetest.New(t, options...)
	source := &exchangetest.Source{Status: 200, Body: "page"}
	front := exchangetest.Run(t, ex, source, f)
	return front, ex, source.Asked > 0
}

func fieldsOf(ex *exchange.Exchange) (all []string) {
	for _, f := range ex.Request.Header.All() {
		all = append(all, f.Name+": "+f.Value)
	}
	return all
}

func TestWhatTheAuthServerIsAsked(t *testing.T) {
	a := &auth{reply: reply(200, "")}
	f := compile(t, &Config{URL: "http://auth:9091/verify?rd=https%3A%2F%2Fauth.example.com%2F"}, a.env(t))
	run(t, f, exchangetest.Head("POST", "/a%20b?c=d", "Cookie: s=1", "Authorization: Bearer x", "Accept: text/html", "X-Custom: y",
		"If-None-Match: \"x\"", "Range: bytes=0-1", "Content-Type: text/plain", "Content-Encoding: gzip", "Expect: 100-continue", "CDN-Loop: other"),
		exchangetest.Content("body"), exchangetest.Secure(), exchangetest.Host("shop.example.com:8443"), exchangetest.From("2001:db8::7"))
	want := `GET ?rd=https%3A%2F%2Fauth.example.com%2F
cookie: s=1
authorization: Bearer x
accept: text/html
x-custom: y
content-type: text/plain
cdn-loop: other
x-forwarded-method: POST
x-forwarded-proto: https
x-forwarded-host: shop.example.com:8443
x-forwarded-uri: /a%20b?c=d
x-forwarded-for: 2001:db8::7
x-original-url: https://shop.example.com:8443/a%20b?c=d
x-original-method: POST
cdn-loop: headgate;asks`
	if len(a.asked) != 1 || a.asked[0] != want || a.source != "http://auth:9091/verify" {
		t.Errorf("%s was asked\n%s\nwant\n%s", a.source, strings.Join(a.asked, "\n\n"), want)
	}
}

func TestWhatATrustedPeerSays(t *testing.T) {
	a := &auth{reply: reply(200, "")}
	told := func(ex *exchange.Exchange) {
		ex.Told = exchange.Forwarded{Method: "PUT", Host: "outer.example.com", URI: "/outer?x"}
	}
	run(t, compile(t, &Config{}, a.env(t)), told)
	run(t, compile(t, &Config{TrustForwardHeader: true}, a.env(t)), told)
	for i, want := range []string{"x-original-url: http://example.com/\n", "x-original-url: http://outer.example.com/outer?x\n"} {
		if !strings.Contains(a.asked[i], want) {
			t.Errorf("asked\n%s\nwant %s", a.asked[i], want)
		}
	}
	if !strings.Contains(a.asked[1], "x-forwarded-method: PUT\n") || !strings.Contains(a.asked[1], "x-forwarded-host: outer.example.com\n") {
		t.Errorf("asked\n%s", a.asked[1])
	}
}

// Nothing that a client sends under the names of the auth server reaches a server.
func TestForgedFieldsAreDropped(t *testing.T) {
	forged := []string{"Remote-User: admin", "REMOTE-USER: admin", "remote_user: admin", "Remote.User: admin", "Remote-Groups: admins", "Accept: */*"}
	for _, c := range []struct {
		name, path string
		said       []string
		want       []string
		user       string
	}{
		{"let in", "/", []string{"Remote-User: ada", "Remote-Groups: a", "Remote-Groups: b", "X-Other: no"}, []string{"Accept: */*", "Remote-User: ada", "Remote-Groups: a", "Remote-Groups: b"}, "ada"},
		{"the answer lacks them", "/", nil, []string{"Accept: */*"}, ""},
		{"skipped", "/open/x", []string{"Remote-User: ada"}, []string{"Accept: */*"}, ""},
	} {
		a := &auth{reply: reply(204, "", c.said...)}
		f := compile(t, &Config{ResponseHeaders: []string{"Remote-User", "Remote-Groups"}, SkipPaths: []string{"/open/"}}, a.env(t))
		got, ex, passed := run(t, f, exchangetest.Head("GET", c.path, forged...))
		if !passed || got.Status != 200 || !slices.Equal(fieldsOf(ex), c.want) || ex.User != c.user {
			t.Errorf("%s: passed %v, the server gets %q, user %q; want %q, %q", c.name, passed, fieldsOf(ex), ex.User, c.want, c.user)
		}
		if skipped := c.name == "skipped"; len(a.asked) == 0 != skipped || ex.Personal == skipped {
			t.Errorf("%s: asked %d times, personal %v", c.name, len(a.asked), ex.Personal)
		}
		if len(a.asked) > 0 && strings.Contains(a.asked[0], "admin") {
			t.Errorf("%s: the auth server hears the forged fields:\n%s", c.name, a.asked[0])
		}
	}
}

// An auth server that turns credentials into others has to see the first ones.
func TestCredentialsAreReplaced(t *testing.T) {
	a := &auth{reply: reply(200, "", "Authorization: Bearer token")}
	_, ex, _ := run(t, compile(t, &Config{ResponseHeaders: []string{"Authorization"}}, a.env(t)), exchangetest.Head("GET", "/", "Authorization: Basic x"))
	if !strings.Contains(a.asked[0], "authorization: Basic x") || !slices.Equal(fieldsOf(ex), []string{"Authorization: Bearer token"}) {
		t.Errorf("asked\n%s\nthe server gets %q", a.asked[0], fieldsOf(ex))
	}
	a.reply = reply(200, "")
	_, ex, _ = run(t, compile(t, &Config{ResponseHeaders: []string{"Authorization"}}, a.env(t)), exchangetest.Head("GET", "/", "Authorization: Basic x"))
	if got := fieldsOf(ex); len(got) > 0 {
		t.Errorf("the server gets %q, want nothing", got)
	}
}

func TestSkippedPaths(t *testing.T) {
	a := &auth{reply: reply(403, "no")}
	f := compile(t, &Config{SkipPaths: []string{"/open", "/static/"}}, a.env(t))
	for path, skipped := range map[string]bool{
		"/open": true, "/open/": true, "/open/a": true, "/static/a.css": true, "/static": true, "/": false, "/opened": false,
		"/other/open": false, "/OPEN": false, "/open/..%2Fadmin": false, "/open%2F..%2Fadmin": false, "/open/a%5Cb": false,
		"/open/..%252Fadmin": false, "/open;x": false, "/open/;/x": false, "/open/a.": false, "/open/A%20b": true,
	} {
		if _, _, passed := run(t, f, exchangetest.Head("GET", path)); passed != skipped {
			t.Errorf("%s: passed %v, want %v", path, passed, skipped)
		}
	}
}

func TestCookiesOfTheAuthServer(t *testing.T) {
	a := &auth{reply: reply(200, "", "Set-Cookie: s=2; Path=/", "Set-Cookie: t=3")}
	got, _, _ := run(t, compile(t, &Config{}, a.env(t)))
	if want := []string{"Set-Cookie: s=2; Path=/", "Set-Cookie: t=3"}; !slices.Equal(got.Fields, want) || got.Body != "page" {
		t.Errorf("the client gets %q %q, want %q", got.Fields, got.Body, want)
	}
}

func TestRefusalsAreRelayed(t *testing.T) {
	long := strings.Repeat("x", maxRelayed)
	for _, c := range []struct {
		name         string
		status       int
		body         string
		fields, want []string
		text         string
	}{
		{"403", 403, "no", []string{"Content-Type: text/plain", "X-Why: because", "Alt-Svc: h3"}, []string{"Content-Type: text/plain", "X-Why: because"}, "no"},
		{"401", 401, "", []string{"WWW-Authenticate: Bearer", "Set-Cookie: a=b"}, []string{"WWW-Authenticate: Bearer", "Set-Cookie: a=b"}, ""},
		{"redirect", 302, "", []string{"Location: https://auth.example.com/?rd=x"}, []string{"Location: https://auth.example.com/?rd=x"}, ""},
		{"redirect to itself", 307, "", []string{"Location: http://example.com/"}, []string{"Location: http://example.com/"}, ""},
		{"500", 500, "oops", nil, nil, "oops"},
		{"just 64 KiB", 403, long, nil, nil, long},
		{"more", 403, long + "y", nil, nil, long},
		{"more, coded", 403, long + "y", []string{"Content-Encoding: gzip", "X-A: b"}, []string{"X-A: b"}, ""},
	} {
		a := &auth{reply: reply(c.status, c.body, c.fields...)}
		got, ex, passed := run(t, compile(t, &Config{}, a.env(t)))
		if passed || got.Status != c.status || got.Body != c.text || !slices.Equal(got.Fields, c.want) || ex.Reason != exchange.AuthRequired || ex.Personal {
			t.Errorf("%s: passed %v, status %d, %q, %d bytes, reason %v; want %q, %d bytes", c.name, passed, got.Status, got.Fields, len(got.Body), ex.Reason, c.want, len(c.text))
		}
	}
}

// breaking is a body that ends early.
type breaking struct{ exchange.Body }

func (breaking) Read([]byte) (int, error) {
	return 0, &exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("closed")}
}

func TestFailsClosed(t *testing.T) {
	fail := func(reason exchange.Reason) func(*exchange.Exchange) *exchange.Answer {
		return func(*exchange.Exchange) *exchange.Answer { return exchange.Fail(reason, "cause") }
	}
	broken := func(ex *exchange.Exchange) *exchange.Answer {
		answer := reply(403, "x")(ex)
		ex.Response.Body = breaking{ex.Response.Body}
		return answer
	}
	for _, c := range []struct {
		name  string
		reply func(*exchange.Exchange) *exchange.Answer
		want  exchange.Reason
	}{
		{"refused", fail(exchange.UpstreamRefused), exchange.AuthFailed},
		{"no name", fail(exchange.UpstreamDNS), exchange.AuthFailed},
		{"closed", fail(exchange.UpstreamReset), exchange.AuthFailed},
		{"no HTTP", fail(exchange.UpstreamInvalid), exchange.AuthFailed},
		{"TLS", fail(exchange.UpstreamTLS), exchange.AuthFailed},
		{"circuit", fail(exchange.CircuitOpen), exchange.AuthFailed},
		{"late", fail(exchange.UpstreamTimeout), exchange.AuthTimeout},
		{"client left", fail(exchange.ClientClosed), exchange.ClientClosed},
		{"body breaks off", broken, exchange.AuthFailed},
		{"1xx", reply(101, ""), exchange.AuthFailed},
	} {
		a := &auth{reply: c.reply}
		got, ex, passed := run(t, compile(t, &Config{ResponseHeaders: []string{"Remote-User"}}, a.env(t)))
		if passed || ex.Reason != c.want || got.Status == 200 {
			t.Errorf("%s: passed %v, status %d, reason %v, want %v", c.name, passed, got.Status, ex.Reason, c.want)
		}
	}
}

func TestAQuestionAboutAQuestionEnds(t *testing.T) {
	a := &auth{reply: reply(200, "")}
	f := compile(t, &Config{}, a.env(t))
	if _, _, passed := run(t, f, exchangetest.Head("GET", "/", "CDN-Loop: headgate;asks")); !passed {
		t.Error("an auth server behind another headgate cannot be asked")
	}
	for _, fields := range [][]string{{"CDN-Loop: headgate;asks", "CDN-Loop: headgate;asks"}, {"CDN-Loop: headgate;asks, other, headgate;asks"}} {
		if _, ex, passed := run(t, f, exchangetest.Head("GET", "/", fields...)); passed || ex.Reason != exchange.Loop {
			t.Errorf("%q: passed %v, reason %v, want loop", fields, passed, ex.Reason)
		}
	}
	// The source of this one is the route itself.
	depth := 0
	var self exchange.Filter
	a.reply = func(ex *exchange.Exchange) *exchange.Answer {
		depth++
		inner := exchangetest.New(t)
		ex.Request.Header.CopyTo(&inner.Request.Header)
		got := exchangetest.Run(t, inner, &exchangetest.Source{Status: 200}, self)
		return reply(got.Status, got.Body)(ex)
	}
	self = compile(t, &Config{}, a.env(t))
	if got, _, passed := run(t, self); passed || got.Status != exchange.Loop.Status() || depth != maxDepth {
		t.Errorf("passed %v, status %d after %d questions; want 508 after %d", passed, got.Status, depth, maxDepth)
	}
}

func TestRehearsalAsksNobody(t *testing.T) {
	a := &auth{reply: reply(403, "")}
	f := compile(t, &Config{ResponseHeaders: []string{"Remote-User"}, SkipPaths: []string{"/open"}}, a.env(t))
	rehearse := func(ex *exchange.Exchange) { ex.Rehearsal = true }
	_, ex, passed := run(t, f, rehearse, exchangetest.Head("GET", "/", "Remote-User: admin"))
	if !passed || len(a.asked) > 0 || len(fieldsOf(ex)) > 0 || len(ex.Notes) != 1 || !strings.Contains(ex.Notes[0], "would send a subrequest to http://auth:9091/") {
		t.Errorf("passed %v, asked %q, fields %q, notes %q", passed, a.asked, fieldsOf(ex), ex.Notes)
	}
	if _, ex, _ := run(t, f, rehearse, exchangetest.Head("GET", "/open")); len(ex.Notes) != 1 || !strings.Contains(ex.Notes[0], "sends no subrequest") {
		t.Errorf("notes %q", ex.Notes)
	}
}

func TestTheNameOfTheUser(t *testing.T) {
	for name, want := range map[string]bool{
		"Remote-User": true, "X-Auth-Request-User": true, "X-authentik-username": true, "X-Forwarded-User": true,
		"Remote-Groups": false, "X-User-Id": false, "Remote-Email": false,
	} {
		if got := tellsUser(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
