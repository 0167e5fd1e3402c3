package redirects

import (
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/uri"
	"headgate/internal/schema"
)

// sent returns where one rule sends a request, "" for nowhere, and the answer.
func sent(t testing.TB, regex, target, host, path string) (string, *exchange.Answer) {
	t.Helper()
	f, err := Compile(Config{{Regex: regex, Target: target, Status: 302}}, exchange.Env{})
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	ex := exchangetest.New(t, exchangetest.Head("GET", path), exchangetest.Host(host))
	answer := f.Request(ex)
	if answer == nil {
		return "", nil
	}
	for _, field := range answer.Fields {
		if field.ID == header.Location {
			return field.Value, answer
		}
	}
	return "", answer
}

func TestTargets(t *testing.T) {
	for _, c := range []struct{ name, regex, target, path, want string }{
		{"path", "^/a$", "/b", "/a", "/b"},
		{"no match", "^/a$", "/b", "/c", ""},
		{"matched anywhere", "x", "/b", "/a/x/c", "/b"},
		{"group", "^/old/(.*)$", "/new/$1", "/old/x/y", "/new/x/y"},
		{"named group", "^/(?P<lang>..)/", "/${lang}_site/", "/de/x", "/de_site/"},
		{"query kept", "^/a", "/b", "/a?x=1&y", "/b?x=1&y"},
		{"query replaced", "^/a", "/b?z=2", "/a?x=1", "/b?z=2"},
		{"query dropped", "^/a", "/b?", "/a?x=1", "/b"},
		{"query put elsewhere", "^/a", "/b?from=1&{query}", "/a?x=1", "/b?from=1&x=1"},
		{"fragment", "^/a", "/b#top", "/a?x=1", "/b?x=1#top"},
		{"fragment with a question mark", "^/a", "/b#top?", "/a?x=1", "/b?x=1#top?"},
		{"absolute", "^/a(.*)$", "https://other.example$1", "/a/b?q", "https://other.example/b?q"},
		{"absolute, nothing left", "^/a(.*)$", "https://other.example$1", "/a", "https://other.example/"},
		{"absolute, text behind", "^/a(.*)$", "https://other.example$1.html", "/a/b", "https://other.example/b.html"},
		{"scheme and host", "^/a", "{scheme}://{host}/b", "/a", "http://shop.example/b"},
		{"scheme and authority", "^/a", "{scheme}://{authority}/b", "/a", "http://shop.example:8080/b"},
		{"authority in another scheme", "^/a", "https://{authority}/b", "/a", "https://shop.example/b"},
		{"authority and a port", "^/a", "http://{authority}:81/b", "/a", "http://shop.example:81/b"},
		{"other scheme", "^/a", "https://{host}{path}", "/a", "https://shop.example/a"},
		{"other port", "^/a", "https://{host}:8443{path}", "/a", "https://shop.example:8443/a"},
		{"before the host", "^/a", "http://www.{authority}/", "/a", "http://www.shop.example:8080/"},
		{"label", "^/u/([a-z]+)/", "https://$1.shop.example/", "/u/ann/", "https://ann.shop.example/"},
		{"value in a query", "^/a", "/login?next={path}", "/a&b=c%2Fd", "/login?next=/a%26b%3Dc%252Fd"},
		{"not ASCII", "^/a", "/größe#ö", "/a", "/gr%C3%B6%C3%9Fe#%C3%B6"},
		{"to itself", "^/a", "/a", "/a", ""},
		{"to itself with its query", "^/a", "/a", "/a?x", ""},
		{"to itself without its query", "^/a", "/a?", "/a?x", "/a"},
		{"to a place in itself", "^/a", "/a#top", "/a", ""},
		{"to itself by its URL", "^/", "http://shop.example:8080/a", "/a", ""},
		{"to another scheme of itself", "^/", "https://{host}{path}", "/a", "https://shop.example/a"},
		{"no way to another host", "^/a(.*)$", "/$1", "/a/evil.example", "/evil.example"},
		{"no way with more slashes", "^/a(.*)$", "/$1$1", "/a/", "/"},
		{"no way by a variable", "^/", "/{path}", "/evil.example", ""},
	} {
		got, answer := sent(t, c.regex, c.target, "shop.example:8080", c.path)
		if got != c.want || answer != nil && answer.Reason != exchange.Redirected {
			t.Errorf("%s: %q with %q, %s -> %q, %+v, want %q", c.name, c.regex, c.target, c.path, got, answer, c.want)
		}
	}
}

func TestNoClientChoosesTheHost(t *testing.T) {
	for _, c := range []struct{ regex, target, host, path string }{
		{"^/a(.*)$", "https://other.example$1", "a.example", "/a.evil.example"},
		{"^/a(.*)$", "https://other.example$1", "a.example", "/a@evil.example"},
		{"^/a(.*)$", "https://other.example$1", "a.example", "/a:x"},
		{"^/u/(.*)$", "https://$1.shop.example/", "a.example", "/u/evil.example/x"},
		{"^/u/(.*)$", "https://$1.shop.example/", "a.example", "/u/evil.example%2F"},
		{"^/u/(.*)$", "https://$1.shop.example/", "a.example", "/u/"},
		{"^/", "https://{host}/", "", "/x"},
	} {
		got, answer := sent(t, c.regex, c.target, c.host, c.path)
		if got != "" || answer == nil || answer.Reason != exchange.BadRequest {
			t.Errorf("%q with %q, %s -> %q, %+v, want bad_request", c.regex, c.target, c.path, got, answer)
		}
	}
}

func TestTargetIsBounded(t *testing.T) {
	_, answer := sent(t, "^(.*)$", strings.Repeat("/$1", 100), "a.example", "/"+strings.Repeat("a", 8000))
	if answer == nil || answer.Reason != exchange.URITooLong {
		t.Errorf("%+v, want uri_too_long", answer)
	}
}

func TestFirstMatchAnswers(t *testing.T) {
	f, err := Compile(Config{
		{Regex: "^/a", Target: "/a", Status: 301},
		{Regex: "^/a", Target: "/b", Status: 308},
		{Regex: "^/a", Target: "/c", Status: 302},
	}, exchange.Env{})
	if err != nil {
		t.Fatal(err)
	}
	front := exchangetest.Run(t, exchangetest.New(t, exchangetest.Head("POST", "/a")), nil, f)
	if front.Status != 308 || front.Field("Location") != "/b" || front.Body != "" {
		t.Errorf("%d %q %q", front.Status, front.Fields, front.Body)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct{ regex, target, want string }{
		{"^/a$", "/b", ""},
		{"^/a", "{scheme}://{host}/b", ""},
		{"^/(.*)$", "https://$1.a.example/", ""},
		{"^/(.*)$", "https://a.example/$1?x={path}#y", ""},
		{"(", "/b", "regex: invalid regular expression"},
		{"(?=a)", "/b", "regex: invalid regular expression"},
		{"a", "", "target: the target begins with neither"},
		{"a", "b", "target: the target begins with neither"},
		{"a", "ftp://b/", "target: the target begins with neither"},
		{"a", "javascript:alert(1)", "target: the target begins with neither"},
		{"a", "{path}", "target: the target begins with neither"},
		{"(a)", "$1", "target: the target begins with neither"},
		{"a", "{host}/x", "target: the target begins with neither"},
		{"a", "//b", "target: the target begins with //"},
		{"a", "/\\b", "target: the target contains a character"},
		{"a", "/b c", "target: the target contains a character"},
		{"a", "/b\nc", "target: the header value contains"},
		{"a", "https://", "target: the target has no host"},
		{"a", "https:///b", "target: the target has no host"},
		{"a", "https://größe.de/ö", "target: the target's host is not in its ASCII form"},
		{"(a)", "https://$1", "target: what a client writes would be the host"},
		{"(a)", "https://$1/b", "target: what a client writes would be the host"},
		{"(a)", "https://{path}", "target: what a client writes would be the host"},
		{"(a)", "https://a{query}", "target: {query} is in the host"},
		{"(a)", "/b#$1", "target: a variable or group follows the #"},
		{"a", "/$1", "target: the expression has no group"},
		{"a", "/{x}", "target: unknown variable {x}"},
		{"^/a$", "/a", "target: /a is sent to itself"},
		{`^/a\.b$`, "/a.b", "target: /a.b is sent to itself"},
	} {
		r := schema.NewReport("", nil)
		Config{{Regex: c.regex, Target: c.target, Status: 302}}.Check(r.Root().Field("redirects"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q %q: %q, want %q", c.regex, c.target, got, c.want)
		}
	}
	r := schema.NewReport("", nil)
	Config{{Regex: "a", Target: "/b", Status: 304}}.Check(r.Root().Field("redirects"))
	if r.Empty() || !strings.Contains(r.Problems()[0].Error(), "304 is not a redirect status") {
		t.Errorf("%v", r.Problems())
	}
}

func TestExamplesMatch(t *testing.T) {
	for regex, want := range map[string]string{
		`^/old/(.*)$`: "/old/x", `^/a$`: "/a", `^/(\d+)/([a-z]{2})?`: "/0/xx", `x`: "/x", `^/(a|b)+$`: "/x",
		`(?i)^/A`: "/A", `(`: "",
	} {
		got := Examples(Config{{Regex: regex}})[0]
		if regex == `^/(a|b)+$` {
			want = "/a"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", regex, got, want)
		}
	}
}

// FuzzLocation holds that whatever path, query, host and user come, a Location is
// one field value, on the host that the target names.
func FuzzLocation(f *testing.F) {
	f.Add("/a//evil.example", "x", "bob\r\nX: y")
	f.Add("/a.evil.example/%2F%5C", "", "\\")
	f.Add("/a/%09/evil", "a#b", "/")
	targets := []string{"/$1", "/{user}$1", "$1", "https://good.example$1", "https://$1.good.example/", "https://good.example/{user}?u={user}&{query}"}
	f.Fuzz(func(t *testing.T, raw, query, user string) {
		path, err := uri.AppendNormal(nil, raw)
		if err != nil {
			return
		}
		if query != "" {
			query = "?" + query
		}
		for _, target := range targets {
			filter, err := Compile(Config{{Regex: "^/a?(.*)$", Target: target, Status: 302}}, exchange.Env{})
			if err != nil {
				continue
			}
			ex := exchangetest.New(t, exchangetest.Head("GET", string(path)))
			ex.Request.Query, ex.User = query, user
			answer := filter.Request(ex)
			if answer == nil || answer.Reason != exchange.Redirected {
				continue
			}
			url := answer.Fields[0].Value
			if !http1.ValidValue(url) {
				t.Fatalf("%q: %q is no field value", target, url)
			}
			rest, absolute := strings.CutPrefix(url, "https://")
			if !absolute {
				if url[0] != '/' || len(url) > 1 && (url[1] == '/' || url[1] == '\\') {
					t.Fatalf("%q: %q leads to another host", target, url)
				}
				continue
			}
			if i := strings.IndexAny(rest, "/?#\\"); i >= 0 {
				rest = rest[:i]
			}
			if rest != "good.example" && !strings.HasSuffix(rest, ".good.example") || strings.Contains(rest, "@") {
				t.Fatalf("%q: %q leads to another host", target, url)
			}
		}
	})
}

func BenchmarkNoMatch(b *testing.B) {
	f, err := Compile(Config{{Regex: "^/old/(.*)$", Target: "/new/$1", Status: 301}}, exchange.Env{})
	if err != nil {
		b.Fatal(err)
	}
	ex := exchangetest.New(b, exchangetest.Head("GET", "/shop/cart"))
	b.ReportAllocs()
	for b.Loop() {
		f.Request(ex)
	}
}
