package plan

import (
	"strings"
	"testing"

	"headgate/internal/exchange"
)

// answering makes a route that answers with its own name.
func answering(path, matchers string) string {
	return "      - {path: " + path + ", " + matchers + "fixed_response: {status: 200, body: \"{route}\"}}\n"
}

const matched = "proxies:\n  shop:\n    virtual_hosts: [shop.example]\n    routes:\n"

func TestMatchersDecideAfterThePath(t *testing.T) {
	p := compile(t, matched+
		answering("/", "")+
		answering("/api", "")+
		answering("/api", "matchers: {methods: [POST, PUT]}, ")+
		answering("/api", "matchers: {methods: [POST], query: [{name: v, value: \"2\"}]}, ")+
		answering("/only", "matchers: {methods: [POST]}, ")+
		answering("/only/deep", "matchers: {query: [{name: beta}]}, ")).Port("web")
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/x", "/"},
		{"GET", "/api/x", "/api"},
		{"PUT", "/api/x", "/api POST,PUT"},
		{"POST", "/api", "/api POST,PUT"},
		{"POST", "/api?v=2", "/api POST ?v=2"},
		{"PUT", "/api?v=2", "/api POST,PUT"},
		{"POST", "/only/deep/x", "/only POST"},
		{"GET", "/only/deep/x", "/"},
		{"GET", "/only/deep/x?beta", "/only/deep ?beta"},
	} {
		if got := request(p, c.method, "shop.example", c.target); got.text != c.want {
			t.Errorf("%s %s went to %q, want %q", c.method, c.target, got.text, c.want)
		}
	}
}

// Proxies without a route for everybody answer 404 where nothing matches, and explain
// says why.
func TestExplainTellsOfMatchers(t *testing.T) {
	p := compile(t, matched+answering("/api", "matchers: {methods: [POST]}, ")+
		answering("/api", "matchers: {methods: [POST], query: [{name: v, value: \"2\"}]}, "))
	e := p.Explain(Question{Method: "GET", Scheme: "http", Authority: "shop.example:8080", Target: "/api"})
	if e.Answer == nil || e.Answer.Status != 404 || len(e.Routes) != 2 || e.Routes[0].Why != "the method GET is not among POST" {
		t.Errorf("%+v", e)
	}
	e = p.Explain(Question{Method: "POST", Scheme: "http", Authority: "shop.example:8080", Target: "/api?v=2"})
	if e.Route != "/api POST ?v=2" || e.Routes[1].Route != "/api POST" || e.Routes[1].Why != "it has fewer matchers than /api POST ?v=2: 1, not 2" {
		t.Errorf("%+v", e)
	}
	e = p.Explain(Question{Method: "POST", Scheme: "http", Authority: "shop.example:8080", Target: "/api?v=3"})
	if e.Route != "/api POST" || e.Routes[1].Why != `the query parameter v is "3", not "2"` {
		t.Errorf("%+v", e)
	}
}

func TestMatchersOfTwoProxiesThatTieAreRefused(t *testing.T) {
	cfg := load(t, "proxies:\n"+
		"  a:\n    virtual_hosts: [x.example]\n    routes:\n"+answering("/api", "matchers: {headers: [{name: X-A, value: \"1\"}]}, ")+
		"  b:\n    virtual_hosts: [x.example]\n    routes:\n"+answering("/api", "matchers: {headers: [{name: x-a, value: \"2\"}]}, ")+
		answering("/api", "")+
		"  c:\n    virtual_hosts: [x.example]\n    routes:\n"+answering("/api", "matchers: {methods: [GET]}, "))
	_, problems := Compile(cfg, nil, House{}, nil)
	if len(problems) != 1 {
		t.Fatalf("%d problems %v, want 1", len(problems), problems)
	}
	want := "proxies.c.routes[0].matchers: port web, host x.example: a request can match both route /api GET and route /api x-a=1 of proxies.a.routes[0], which have as many matchers"
	if got := problems[0].Field + ": " + problems[0].What; got != want || problems[0].Remedy == "" {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// Two routes of two proxies may meet where a third takes the requests of both.
func TestMatchersThatTieMayMeetInAThirdRoute(t *testing.T) {
	cfg := load(t, "proxies:\n"+
		"  a:\n    virtual_hosts: [x.example]\n    routes:\n"+answering("/api", "matchers: {headers: [{name: X-A, value: \"1\"}]}, ")+
		"  b:\n    virtual_hosts: [x.example]\n    routes:\n"+answering("/api", "matchers: {methods: [GET]}, ")+
		answering("/api", "matchers: {methods: [GET], headers: [{name: X-A, value: \"1\"}]}, "))
	plan, problems := Compile(cfg, nil, House{}, nil)
	if len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	for _, c := range []struct{ method, a, want string }{{"GET", "", "/api GET"}, {"POST", "1", "/api x-a=1"}, {"GET", "1", "/api GET x-a=1"}, {"POST", "2", ""}} {
		ex := &exchange.Exchange{}
		prepare(ex, plan.Port("web"), &sent{}, c.method, "x.example", "/api")
		if c.a != "" {
			ex.Request.Header.AddField("X-A", c.a)
		}
		got := ""
		if r, _ := plan.Port("web").selectRoute(ex); r != nil {
			got = r.label
		}
		if got != c.want {
			t.Errorf("%s with %q: route %q, want %q", c.method, c.a, got, c.want)
		}
	}
}

// A reading of a path belongs to the route that would take the request with its matchers.
func TestAmbiguousPathsRespectMatchers(t *testing.T) {
	server := "servers: [{url: \"http://127.0.0.1:3000\"}]}\n"
	p := compile(t, matched+
		"      - {path: /, "+server+
		"      - {path: /admin, "+server+
		"      - {path: /admin, matchers: {methods: [POST]}, ip_filter: {deny: [192.0.2.0/24]}, "+server).Port("web")
	take := func(method, path string) *exchange.Answer {
		ex := &exchange.Exchange{}
		prepare(ex, p, &sent{}, method, "shop.example", path)
		_, answer := p.selectRoute(ex)
		return answer
	}
	for _, path := range []string{"/ADMIN", "/admin;x", "/x/..%2fadmin"} {
		if answer := take("POST", path); answer == nil || answer.Reason != exchange.AmbiguousPath || !strings.Contains(answer.Cause, "/admin POST of proxy shop") {
			t.Errorf("POST %s: %+v, want a refusal", path, answer)
		}
		if answer := take("GET", path); answer != nil {
			t.Errorf("GET %s: refused, %s", path, answer.Cause)
		}
	}
}

func TestMatchersAllocateNothing(t *testing.T) {
	p := compile(t, matched+answering("/", "")+answering("/api", "")+
		answering("/api", "matchers: {methods: [GET], headers: [{name: X-A, regex: \"^b\"}], query: [{name: v, value: \"2 3\"}]}, ")).Port("web")
	ex := &exchange.Exchange{}
	conn := *client
	front := &sent{}
	for _, query := range []string{"", "?x=1&v=2%203"} {
		if n := testing.AllocsPerRun(100, func() {
			ex.Reset(&conn, front)
			ex.Place = p.Front().Place
			ex.Request.Method, ex.Request.Host, ex.Request.Path, ex.Request.Query = "GET", "shop.example", "/api/x", query
			ex.Request.Header.AddField("X-A", "bc")
			if r, _ := p.selectRoute(ex); r == nil || (r.matchers != nil) != (query != "") {
				t.Fatal("another route")
			}
		}); n != 0 {
			t.Errorf("%q: %v allocations, want 0", query, n)
		}
	}
}
