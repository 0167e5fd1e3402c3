package matchers

import (
	"strings"
	"testing"

	"headgate/internal/exchange"
)

func request(method, query string, fields ...string) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Request.Method, ex.Request.Query = method, query
	for i := 0; i+1 < len(fields); i += 2 {
		ex.Request.Header.AddField(fields[i], fields[i+1])
	}
	return ex
}

func headers(c ...Condition) *Config { return &Config{Headers: c} }
func query(c ...Condition) *Config   { return &Config{Query: c} }

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		config *Config
		ex     *exchange.Exchange
		miss   string // "" if it matches
	}{
		{"nothing asked", nil, request("GET", ""), ""},
		{"method", &Config{Methods: []string{"GET", "PUT"}}, request("PUT", ""), ""},
		{"no HEAD for GET", &Config{Methods: []string{"GET"}}, request("HEAD", ""), "the method HEAD is not among GET"},
		{"value", headers(Condition{Name: "x-a", Value: "b"}), request("GET", "", "X-A", "b"), ""},
		{"capitals of a value", headers(Condition{Name: "X-A", Value: "b"}), request("GET", "", "X-A", "B"), `the header X-A is "B", not "b"`},
		{"known field", headers(Condition{Name: "Accept", Value: "a/b"}), request("GET", "", "accept", "a/b"), ""},
		{"known field absent", headers(Condition{Name: "Accept"}), request("GET", "", "X-A", "b"), "the request has no header Accept"},
		{"repeated field", headers(Condition{Name: "X-A", Value: "b"}), request("GET", "", "X-A", "b", "x-a", "c"), `the header X-A is "b, c", not "b"`},
		{"repeated field together", headers(Condition{Name: "X-A", Value: "b, c"}), request("GET", "", "X-A", "b", "x-a", "c"), ""},
		{"expression", headers(Condition{Name: "X-A", Regex: "^b[0-9]$"}), request("GET", "", "X-A", "b7"), ""},
		{"other expression", headers(Condition{Name: "X-A", Regex: "^b$"}), request("GET", "", "X-A", "b7"), `the header X-A is "b7", which ^b$ does not match`},
		{"secret", headers(Condition{Name: "X-Token", Value: "s3"}), request("GET", "", "X-Token", "other"), "the header X-Token has another value"},
		{"parameter", query(Condition{Name: "v", Value: "2"}), request("GET", "?a=1&v=2"), ""},
		{"encoded parameter", query(Condition{Name: "v w", Value: "a&b%"}), request("GET", "?v+%77=a%26b%25"), ""},
		{"broken encoding", query(Condition{Name: "v", Value: "%zz%4"}), request("GET", "?v=%zz%4"), ""},
		{"first parameter", query(Condition{Name: "v", Value: "2"}), request("GET", "?v=1&v=2"), `the query parameter v is "1", not "2"`},
		{"present without value", query(Condition{Name: "beta"}), request("GET", "?beta"), ""},
		{"longer name", query(Condition{Name: "beta"}), request("GET", "?betas=1"), "the request has no query parameter beta"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Compile(c.config)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Miss(c.ex); got != c.miss || m.Match(c.ex) != (c.miss == "") {
				t.Errorf("match %v, miss %q, want %q", m.Match(c.ex), got, c.miss)
			}
		})
	}
	upgrade, _ := Compile(headers(Condition{Name: "Upgrade", Value: "websocket"}))
	ex := request("GET", "")
	if ex.Request.Upgrade = "WebSocket"; !upgrade.Match(ex) {
		t.Error("a WebSocket does not match")
	}
	if ex.Request.Upgrade = ""; upgrade.Match(ex) {
		t.Error("a request without Upgrade matches")
	}
}

func TestOverlap(t *testing.T) {
	a := func(value, regex string) *Config { return headers(Condition{Name: "X-A", Value: value, Regex: regex}) }
	for _, c := range []struct {
		name string
		a, b *Config
		want bool
	}{
		{"nil", nil, a("1", ""), true},
		{"values", a("1", ""), a("2", ""), false},
		{"same value", a("1", ""), a("1", ""), true},
		{"value and expression", a("1", ""), a("", "^[2-9]$"), false},
		{"expression and its value", a("", "^[1-9]$"), a("1", ""), true},
		{"expressions", a("", "^1$"), a("", "^2$"), true},
		{"value and presence", a("1", ""), a("", ""), true},
		{"names", a("1", ""), headers(Condition{Name: "X-B", Value: "2"}), true},
		{"name in other case", a("1", ""), headers(Condition{Name: "x-a", Value: "2"}), false},
		{"header and parameter", a("1", ""), query(Condition{Name: "X-A", Value: "2"}), true},
		{"methods", &Config{Methods: []string{"GET"}}, &Config{Methods: []string{"PUT", "POST"}}, false},
		{"common method", &Config{Methods: []string{"GET", "PUT"}}, &Config{Methods: []string{"PUT", "POST"}}, true},
	} {
		if Overlap(c.a, c.b) != c.want || Overlap(c.b, c.a) != c.want {
			t.Errorf("%s: overlap is not %v", c.name, c.want)
		}
	}
}

func TestCovers(t *testing.T) {
	get, a, b := &Config{Methods: []string{"GET", "HEAD"}}, headers(Condition{Name: "X-A", Value: "1"}), headers(Condition{Name: "X-B", Regex: "^2"})
	for _, c := range []struct {
		name    string
		c, a, b *Config
		want    bool
	}{
		{"the matchers of both", headers(a.Headers[0], b.Headers[0]), a, b, true},
		{"a wider one of each", headers(Condition{Name: "x-a", Regex: "[0-9]"}, Condition{Name: "X-B"}), a, b, true},
		{"method and header", &Config{Methods: []string{"GET", "HEAD", "PUT"}, Headers: a.Headers}, get, a, true},
		{"a method is missing", &Config{Methods: []string{"GET"}, Headers: a.Headers}, get, a, false},
		{"methods that nobody asked for", &Config{Methods: []string{"GET"}, Headers: []Condition{a.Headers[0]}}, a, b, false},
		{"another value", headers(Condition{Name: "X-A", Value: "2"}, b.Headers[0]), a, b, false},
		{"as many", a, a, b, false},
		{"nil", headers(a.Headers[0], b.Headers[0]), nil, nil, false},
	} {
		if got := Covers(c.c, c.a, c.b); got != c.want || Covers(c.c, c.b, c.a) != got {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestLabel(t *testing.T) {
	c := &Config{
		Methods: []string{"PUT", "GET"}, Query: []Condition{{Name: "v", Regex: "^2"}, {Name: "beta"}},
		Headers: []Condition{{Name: "X-Version", Value: "2"}, {Name: "Authorization", Value: "s3cret"}},
	}
	got := Label("/api", c)
	if strings.Contains(got, "s3cret") || !strings.HasPrefix(got, "/api GET,PUT authorization=#") || !strings.HasSuffix(got, " x-version=2 ?beta ?v=~^2") {
		t.Errorf("label %q", got)
	}
	if got := Label("/", nil); got != "/" {
		t.Errorf("label %q without matchers", got)
	}
	one := Label("/", headers(Condition{Name: "X-A", Value: strings.Repeat("é", 400) + "1"}))
	two := Label("/", headers(Condition{Name: "X-A", Value: strings.Repeat("é", 400) + "2"}))
	if one == two || len(one) > maxLabel+2 {
		t.Errorf("long labels %q and %q", one, two)
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	m, err := Compile(&Config{
		Methods: []string{"GET"}, Headers: []Condition{{Name: "Accept", Value: "a, b"}, {Name: "X-A", Regex: "^b"}}, Query: []Condition{{Name: "v w", Value: "a b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ex := &exchange.Exchange{}
	var conn exchange.Conn
	if n := testing.AllocsPerRun(100, func() {
		ex.Reset(&conn, nil)
		ex.Request.Method, ex.Request.Query = "GET", "?a=%20&v%20w=a+b"
		ex.Request.Header.AddField("Accept", "a")
		ex.Request.Header.AddField("Accept", "b")
		ex.Request.Header.AddField("X-A", "bc")
		if !m.Match(ex) {
			t.Fatal(m.Miss(ex))
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
