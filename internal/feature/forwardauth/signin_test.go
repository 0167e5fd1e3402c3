package forwardauth

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

func TestWhereToSignIn(t *testing.T) {
	page := exchangetest.Head("GET", "/a%20b?c=d&e=%26", "Accept: text/html,*/*;q=0.8")
	for _, c := range []struct{ signin, want string }{
		{"https://auth.example.com/oauth2/start", "https://auth.example.com/oauth2/start?rd=https%3A%2F%2Fshop.example.com%3A8443%2Fa%2520b%3Fc%3Dd%26e%3D%2526"},
		{"/oauth2/start?", "/oauth2/start?rd=https%3A%2F%2Fshop.example.com%3A8443%2Fa%2520b%3Fc%3Dd%26e%3D%2526"},
		{"/start?x=1#top", "/start?x=1&rd=https%3A%2F%2Fshop.example.com%3A8443%2Fa%2520b%3Fc%3Dd%26e%3D%2526#top"},
		{"/start?rd=/home", "/start?rd=/home"},
		{"/start?x=1&rd=", "/start?x=1&rd="},
		{"https://auth.example.com/?rd={scheme}://{authority}{path}&m={method}", "https://auth.example.com/?rd=https://shop.example.com%3A8443%2Fa%2520b&m=GET"},
		{"{scheme}://{authority}/start?q={query}", "https://shop.example.com:8443/start?q=c%3Dd%26e%3D%2526"},
	} {
		a := &auth{reply: reply(401, "sign in", "Set-Cookie: csrf=1", "X-Other: y")}
		got, ex, passed := run(t, compile(t, &Config{SigninURL: c.signin}, a.env(t)), page, exchangetest.Secure(), exchangetest.Host("shop.example.com:8443"))
		if passed || got.Status != 302 || got.Field("Location") != c.want || got.Field("Set-Cookie") != "csrf=1" || got.Field("Cache-Control") != "no-store" || ex.Reason != exchange.AuthRequired {
			t.Errorf("%s: passed %v, status %d, fields %q, want Location %s", c.signin, passed, got.Status, got.Fields, c.want)
		}
	}
}

func TestOnlyPagesAreSentToSignIn(t *testing.T) {
	for _, c := range []struct {
		name, method string
		fields       []string
		want         int
	}{
		{"page", "GET", []string{"Accept: text/html"}, 302},
		{"page, XHTML", "GET", []string{"Accept: application/xhtml+xml"}, 302},
		{"navigation", "GET", []string{"Sec-Fetch-Mode: navigate", "Accept: */*"}, 302},
		{"script", "GET", []string{"Sec-Fetch-Mode: cors", "Accept: text/html"}, 401},
		{"image", "GET", []string{"Sec-Fetch-Mode: no-cors", "Accept: image/png"}, 401},
		{"program", "GET", []string{"Accept: */*"}, 401},
		{"nothing", "GET", nil, 401},
		{"not HTML", "GET", []string{"Accept: text/html;q=0, */*"}, 401},
		{"old script", "GET", []string{"Accept: text/html", "X-Requested-With: XMLHttpRequest"}, 401},
		{"form", "POST", []string{"Sec-Fetch-Mode: navigate", "Accept: text/html"}, 401},
		{"head", "HEAD", []string{"Accept: text/html"}, 401},
	} {
		a := &auth{reply: reply(401, "sign in")}
		got, _, _ := run(t, compile(t, &Config{SigninURL: "/start"}, a.env(t)), exchangetest.Head(c.method, "/", c.fields...))
		if got.Status != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got.Status, c.want)
		}
	}
	a := &auth{reply: reply(403, "no")}
	if got, _, _ := run(t, compile(t, &Config{SigninURL: "/start"}, a.env(t)), exchangetest.Head("GET", "/", "Accept: text/html")); got.Status != 403 {
		t.Errorf("who is known and refused is sent to sign in: %d", got.Status)
	}
}

func TestAnswersAreKeptForASession(t *testing.T) {
	a := &auth{reply: reply(200, "", "Remote-User: ada")}
	c := &Config{ResponseHeaders: []string{"Remote-User"}, Cache: &Cache{TTL: unit.Duration(10 * time.Second), Key: "cookie:s"}}
	f := compile(t, c, a.env(t))
	now := exchange.Now()
	asks := func(at time.Duration, options ...exchangetest.Option) bool {
		t.Helper()
		before := len(a.asked)
		_, ex, passed := run(t, f, append(options, func(ex *exchange.Exchange) { ex.Times.Start = now + int64(at) })...)
		if !passed || ex.User != "ada" || !ex.Personal {
			t.Errorf("passed %v, user %q", passed, ex.User)
		}
		return len(a.asked) > before
	}
	get := func(path string, fields ...string) exchangetest.Option {
		return exchangetest.Head("GET", path, fields...)
	}
	for _, c := range []struct {
		name    string
		at      time.Duration
		options []exchangetest.Option
		asks    bool
	}{
		{"first", 0, []exchangetest.Option{get("/a", "Cookie: x=y; s=1")}, true},
		{"again", 0, []exchangetest.Option{get("/a", "Cookie: s=1")}, false},
		{"no session", 0, []exchangetest.Option{get("/a")}, true},
		{"no session again", 0, []exchangetest.Option{get("/a", "Cookie: x=y")}, true},
		{"another session", 0, []exchangetest.Option{get("/a", "Cookie: s=2")}, true},
		{"another path", 0, []exchangetest.Option{get("/b", "Cookie: s=1")}, true},
		{"another query", 0, []exchangetest.Option{get("/a?x", "Cookie: s=1")}, true},
		{"another method", 0, []exchangetest.Option{exchangetest.Head("POST", "/a", "Cookie: s=1")}, true},
		{"another host", 0, []exchangetest.Option{get("/a", "Cookie: s=1"), exchangetest.Host("b.example")}, true},
		{"another scheme", 0, []exchangetest.Option{get("/a", "Cookie: s=1"), exchangetest.Secure()}, true},
		{"another address", 0, []exchangetest.Option{get("/a", "Cookie: s=1"), exchangetest.From("192.0.2.77")}, true},
		{"other credentials", 0, []exchangetest.Option{get("/a", "Cookie: s=1", "Authorization: Basic x")}, true},
		{"shortly before its end", 9 * time.Second, []exchangetest.Option{get("/a", "Cookie: s=1")}, false},
		{"after its end", 11 * time.Second, []exchangetest.Option{get("/a", "Cookie: s=1")}, true},
	} {
		if got := asks(c.at, c.options...); got != c.asks {
			t.Errorf("%s: asks %v, want %v", c.name, got, c.asks)
		}
	}
	c.Cache.AnyPath = true
	f = compile(t, c, a.env(t))
	if !asks(0, get("/a", "Cookie: s=1")) || asks(0, get("/b?x", "Cookie: s=1")) || !asks(0, get("/b", "Cookie: s=2")) {
		t.Error("any_path: an answer is not kept for all paths of a session, or for another session's")
	}
}

func TestWhatIsNotKept(t *testing.T) {
	for name, reply := range map[string]func(*exchange.Exchange) *exchange.Answer{
		"refusal": reply(403, ""), "redirect": reply(302, ""), "cookie": reply(200, "", "Set-Cookie: s=2"),
		"long": reply(200, "", "Remote-User: "+strings.Repeat("x", maxKeptBody)),
	} {
		a := &auth{reply: reply}
		f := compile(t, &Config{ResponseHeaders: []string{"Remote-User"}, Cache: &Cache{TTL: unit.Duration(time.Minute), Key: "header:X-S"}}, a.env(t))
		for range 2 {
			run(t, f, exchangetest.Head("GET", "/", "X-S: 1"))
		}
		if len(a.asked) != 2 {
			t.Errorf("%s: asked %d times, want 2", name, len(a.asked))
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Config
		want string
	}{
		{"good", Config{Enabled: true, URL: "https://auth.example.com/verify?rd=x", ResponseHeaders: []string{"Remote-User"}, SkipPaths: []string{"/a"}, SigninURL: "/start", Cache: &Cache{Key: "cookie:s"}}, ""},
		{"off", Config{}, ""},
		{"no URL", Config{Enabled: true}, "forward_auth.url: missing"},
		{"no scheme", Config{URL: "auth:9091"}, "forward_auth.url: the URL has no scheme"},
		{"query", Config{URL: "http://a/?x y"}, "forward_auth.url: the query contains invalid"},
		{"no name", Config{URL: "http://a", ResponseHeaders: []string{"Remote User"}}, `forward_auth.response_headers[0]: "Remote User" is not a header name`},
		{"ours", Config{URL: "http://a", ResponseHeaders: []string{"x-forwarded-for"}}, "forward_auth.response_headers[0]: x-forwarded-for cannot be set"},
		{"host", Config{URL: "http://a", ResponseHeaders: []string{"Host"}}, "forward_auth.response_headers[0]: Host cannot be set"},
		{"hop", Config{URL: "http://a", ResponseHeaders: []string{"Connection"}}, "forward_auth.response_headers[0]: Connection cannot be set"},
		{"cookie", Config{URL: "http://a", ResponseHeaders: []string{"Set-Cookie"}}, "forward_auth.response_headers[0]: Set-Cookie always goes to the client"},
		{"twice", Config{URL: "http://a", ResponseHeaders: []string{"Remote-User", "remote_user"}}, "forward_auth.response_headers[1]: duplicate entry Remote-User"},
		{"sign-in", Config{URL: "http://a", SigninURL: "auth.example.com"}, "forward_auth.signin_url: the URL starts with neither"},
		{"script", Config{URL: "http://a", SigninURL: "javascript:alert(1)"}, "forward_auth.signin_url: the URL starts with neither"},
		{"other host", Config{URL: "http://a", SigninURL: "//evil"}, "forward_auth.signin_url: the URL starts with neither"},
		{"variable", Config{URL: "http://a", SigninURL: "/x?{uri}"}, "forward_auth.signin_url: unknown variable {uri}"},
		{"newline", Config{URL: "http://a", SigninURL: "/x\r\ny"}, "forward_auth.signin_url: the URL contains invalid"},
		{"skips all", Config{URL: "http://a", SkipPaths: []string{"/"}}, "forward_auth.skip_paths[0]: every path would be skipped"},
		{"skip form", Config{URL: "http://a", SkipPaths: []string{"/a/../b"}}, "forward_auth.skip_paths[0]:"},
		{"skip relative", Config{URL: "http://a", SkipPaths: []string{"a"}}, "forward_auth.skip_paths[0]:"},
		{"key", Config{URL: "http://a", Cache: &Cache{Key: "session"}}, `forward_auth.cache.key: unknown key "session"`},
		{"key name", Config{URL: "http://a", Cache: &Cache{Key: "cookie:a b"}}, `forward_auth.cache.key: "a b" is not a name`},
		{"key field", Config{URL: "http://a", Cache: &Cache{Key: "header:X-Forwarded-For"}}, "forward_auth.cache.key: X-Forwarded-For is not a field"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("forward_auth"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzSignin(f *testing.F) {
	f.Add("https://auth.example.com/?rd={scheme}://{host}{path}", "/a b\r\n")
	f.Fuzz(func(t *testing.T, signin, path string) {
		s, err := parseSignin(signin)
		if err != nil {
			return
		}
		ex := exchangetest.New(t)
		ex.Request.Path, ex.Request.Query = path, "?"+path
		a := &exchange.Answer{}
		s.answer(a, ex)
		if strings.ContainsAny(a.Fields[0].Value, "\r\n \"<>") {
			t.Errorf("%q with %q leads to %q", signin, path, a.Fields[0].Value)
		}
	})
}

// BenchmarkSession is what forward_auth adds when the answer is kept, and when it
// asks a source that costs nothing.
func BenchmarkSession(b *testing.B) {
	for _, kept := range []bool{true, false} {
		name := map[bool]string{true: "kept", false: "asked"}[kept]
		b.Run(name, func(b *testing.B) {
			a := &auth{reply: func(ex *exchange.Exchange) *exchange.Answer {
				ex.Response.Reset()
				ex.Response.Status = 200
				ex.Response.Header.AddField("Remote-User", "ada")
				return nil
			}}
			env := a.env(b)
			env.Source = func(string) (exchange.Source, error) { return free{a.reply}, nil }
			c := &Config{ResponseHeaders: []string{"Remote-User", "Remote-Groups"}}
			if kept {
				c.Cache = &Cache{TTL: unit.Duration(time.Minute), Key: "cookie:s"}
			}
			f := compile(b, c, env)
			ex := exchangetest.New(b)
			conn, front, ip, now := ex.Conn, ex.Front, ex.ClientIP, exchange.Now()
			b.ReportAllocs()
			for b.Loop() {
				ex.Reset(conn, front)
				ex.ClientIP, ex.Times.Start = ip, now
				ex.Request.Method, ex.Request.Path, ex.Request.Host, ex.Request.Scheme = "GET", "/", "example.com", "http"
				ex.Request.Header.AddField("Cookie", "s=0123456789abcdef")
				if f.Request(ex) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}

// free is a source that costs nothing.
type free struct {
	reply func(*exchange.Exchange) *exchange.Answer
}

func (f free) Respond(ex *exchange.Exchange) *exchange.Answer { return f.reply(ex) }
func (free) Describe() string                                 { return "free" }
