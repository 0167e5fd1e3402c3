package headers

import (
	"slices"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// fields returns what rules for requests make of fields.
// both returns the filters of both directions.
func both(c Config) (request, response exchange.Filter, err error) {
	if request, err = CompileRequest(c, exchange.Env{}); err == nil {
		response, err = CompileResponse(c, exchange.Env{})
	}
	return request, response, err
}

func fields(t testing.TB, c Config, before ...string) ([]string, *exchange.Answer) {
	t.Helper()
	ex := exchangetest.New(t, exchangetest.Head("GET", "/a?q=1", before...))
	request, _, err := both(c)
	if err != nil {
		t.Fatal(err)
	}
	answer := request.Request(ex)
	var all []string
	for _, f := range ex.Request.Header.All() {
		all = append(all, f.Name+": "+f.Value)
	}
	return all, answer
}

func TestRulesChangeFields(t *testing.T) {
	in := func(o Operation, name, value, regex string) Config {
		return Config{{Direction: Request, Operation: o, Name: name, Value: value, Regex: regex}}
	}
	for _, c := range []struct {
		name         string
		rules        Config
		before, want []string
	}{
		{"set", in(Set, "X-Real-IP", "{client_ip}", ""), nil, []string{"X-Real-IP: 192.0.2.1"}},
		{"set in place of all", in(Set, "x-a", "n", ""), []string{"X-A: 1", "B: 2", "X-A: 3"}, []string{"X-A: n", "B: 2"}},
		{"set to nothing", in(Set, "X-User", "{user}", ""), []string{"X-User: root"}, nil},
		{"append", in(Append, "X-A", "n", ""), []string{"X-A: 1"}, []string{"X-A: 1", "X-A: n"}},
		{"append nothing", in(Append, "X-A", "{user}", ""), []string{"X-A: 1"}, []string{"X-A: 1"}},
		{"append a cookie", in(Append, "Cookie", "b=2", ""), []string{"Cookie: a=1"}, []string{"Cookie: a=1; b=2"}},
		{"append the first cookie", in(Append, "Cookie", "b=2", ""), nil, []string{"Cookie: b=2"}},
		{"remove", in(Remove, "accept", "", ""), []string{"Accept: 1", "B: 2", "Accept: 3"}, []string{"B: 2"}},
		{"remove an unknown name", in(Remove, "x-b", "", ""), []string{"X-A: 1", "X-B: 2"}, []string{"X-A: 1"}},
		{"set_if_absent", in(SetIfAbsent, "X-A", "n", ""), nil, []string{"X-A: n"}},
		{"set_if_absent, there", in(SetIfAbsent, "X-A", "n", ""), []string{"x-a: 1"}, []string{"x-a: 1"}},
		{"replace", in(Replace, "X-A", "<$1>", "b(.)"), []string{"X-A: abcbd", "X-A: x", "B: bc"}, []string{"X-A: a<c><d>", "X-A: x", "B: bc"}},
		{"replace with a variable", in(Replace, "Referer", "https://{host}", "^http://[^/]*"), []string{"Referer: http://x/y"}, []string{"Referer: https://example.com/y"}},
		{"replace by nothing", in(Replace, "X-A", "", ".*"), []string{"X-A: 1"}, nil},
		{"replace what is not there", in(Replace, "X-A", "n", ".*"), nil, nil},
		{"twins of a set", in(Set, "X-User", "n", ""), []string{"X_User: a", "x.user: b", "XXUser: c"}, []string{"XXUser: c", "X-User: n"}},
		{"twins of a remove", in(Remove, "User-Agent", "", ""), []string{"User_Agent: a"}, nil},
		{"remove by pattern", in(Remove, "*_*", "", ""), []string{"X_A: 1", "_: 2", "a_: 3", "_a: 4", "X-A: 5", "Accept: 6"}, []string{"X-A: 5", "Accept: 6"}},
		{"remove by prefix", in(Remove, "x-Debug-*", "", ""), []string{"X-Debug-A: 1", "X-DEBUG-: 2", "X-Debug: 3", "AX-Debug-B: 4"}, []string{"X-Debug: 3", "AX-Debug-B: 4"}},
		{"remove by suffix", in(Remove, "*-id", "", ""), []string{"X-Request-ID: 1", "X-Id-X: 2"}, []string{"X-Id-X: 2"}},
		{"remove by parts", in(Remove, "a*b*b", "", ""), []string{"abb: 1", "ab: 2", "axbyb: 3", "abbc: 4", "aBxBxB: 5"}, []string{"ab: 2", "abbc: 4"}},
		{"order", append(in(Set, "X-A", "1", ""), append(in(Append, "X-A", "2", ""), in(Remove, "X-B", "", "")...)...),
			[]string{"X-B: 1"}, []string{"X-A: 1", "X-A: 2"}},
		{"all variables", in(Set, "X", "{method} {scheme} {path} {query} {proxy}{{", ""), nil, []string{"X: GET http /a q=1 site{"}},
	} {
		got, answer := fields(t, c.rules, c.before...)
		if answer != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, answer, c.want)
		}
	}
}

func TestResponseRulesSeeOurOwnAnswersLast(t *testing.T) {
	_, response, err := both(Config{
		{Direction: Response, Operation: Set, Name: "Cache-Control", Value: "max-age=1"},
		{Direction: Response, Operation: Append, Name: "X-Seen", Value: "{path}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	refuse := exchange.Filter{Request: func(*exchange.Exchange) *exchange.Answer { return exchange.Fail(exchange.AddressDenied, "") }}
	front := exchangetest.Run(t, exchangetest.New(t, exchangetest.Head("GET", "/x")), nil, response, refuse)
	if front.Status != 403 || front.Field("Cache-Control") != "max-age=1" || front.Field("X-Seen") != "/x" {
		t.Errorf("%d %q", front.Status, front.Fields)
	}
}

func TestHugeValuesAreBounded(t *testing.T) {
	long := "/" + strings.Repeat("a", 8<<10)
	for _, rule := range []Rule{
		{Operation: Set, Name: "X-A", Value: "{path}{path}{path}"},
		{Operation: Replace, Name: "X-A", Regex: "a", Value: "aaaa{path}"},
		{Operation: Replace, Name: "X-A", Regex: "(a*)", Value: "$1$1$1"},
		{Operation: Replace, Name: "X-A", Regex: "", Value: "x"}, // matches everywhere
	} {
		rule.Direction = Request
		request, _, err := both(Config{rule})
		if err != nil {
			t.Fatal(err)
		}
		ex := exchangetest.New(t, exchangetest.Head("GET", long, "X-A: "+long))
		if answer := request.Request(ex); answer == nil || answer.Reason != exchange.HeadTooLarge {
			t.Errorf("%+v: %v, want head_too_large", rule, answer)
		}
		rule.Direction = Response
		_, response, err := both(Config{rule})
		if err != nil {
			t.Fatal(err)
		}
		ex.Response.Header.AddField("X-A", long)
		response.Response(ex)
		if got, there := ex.Response.Header.Lookup("X-A"); there {
			t.Errorf("%+v: the response has %.20q, want no field", rule, got)
		}
	}
}

// FuzzNoValueBreaksItsLine holds that nothing that a client, a certificate or a
// server writes can end a field.
func FuzzNoValueBreaksItsLine(f *testing.F) {
	f.Add("CN=a\r\nX-Evil: 1", "x\r\ny", "$1")
	f.Add("\x00\x7f", "\n", "{client_cert_subject}")
	f.Add(" a ", "\t", "")
	f.Fuzz(func(t *testing.T, subject, value, replacement string) {
		for _, direction := range []Direction{Request, Response} {
			c := Config{
				{Direction: direction, Operation: Set, Name: "X-A", Value: "<{client_cert_subject}|{user}|{host}>"},
				{Direction: direction, Operation: Append, Name: "X-B", Value: "{client_cert_subject}"},
				{Direction: direction, Operation: Replace, Name: "X-C", Regex: `(?s)(.)(.*)`, Value: "$2$1{user}"},
				{Direction: direction, Operation: Replace, Name: "X-C", Regex: `(?s)(.)`, Value: replacement},
			}
			report := schema.NewReport("", nil)
			c.Check(report.Root())
			if !report.Empty() {
				return
			}
			request, response, err := both(c)
			if err != nil {
				t.Fatal(err)
			}
			ex := exchangetest.New(t)
			ex.Conn.ClientSubject, ex.User, ex.Request.Host = subject, value, value
			ex.Request.Header.AddField("X-C", value)
			ex.Response.Header.AddField("X-C", value)
			list := &ex.Request.Header
			if direction == Request {
				request.Request(ex)
			} else {
				response.Response(ex)
				list = &ex.Response.Header
			}
			for _, f := range list.All() {
				if f.Name != "X-C" && !http1.ValidValue(f.Value) {
					t.Fatalf("%s %s: %q", direction, f.Name, f.Value)
				}
				if f.Name == "X-C" && f.Value != value && !http1.ValidValue(f.Value) {
					t.Fatalf("%s %s: %q", direction, f.Name, f.Value)
				}
			}
		}
	})
}

func TestFixedRulesAllocateNothing(t *testing.T) {
	request, response, err := both(Config{
		{Direction: Request, Operation: Set, Name: "X-Real-IP", Value: "{client_ip}"},
		{Direction: Request, Operation: Remove, Name: "Cookie"},
		{Direction: Response, Operation: Set, Name: "Strict-Transport-Security", Value: "max-age=1"},
		{Direction: Response, Operation: Replace, Name: "Location", Regex: "^http:", Value: "https:"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: a", "X-Real-IP: 1"))
	ex.Response.Header.Add(header.Location, "/x")
	if n := testing.AllocsPerRun(20, func() { request.Request(ex); response.Response(ex) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// BenchmarkRules is what three rules cost a request; "none" is the rest of it.
func BenchmarkRules(b *testing.B) {
	request, response, err := both(Config{
		{Direction: Request, Operation: Set, Name: "X-Real-IP", Value: "{client_ip}"},
		{Direction: Response, Operation: Set, Name: "Strict-Transport-Security", Value: "max-age=63072000"},
		{Direction: Response, Operation: Remove, Name: "X-Powered-By"},
	})
	if err != nil {
		b.Fatal(err)
	}
	var list header.List
	for _, name := range []string{"Accept", "Accept-Encoding", "User-Agent", "x-forwarded-for", "x-forwarded-host", "X-Other"} {
		list.AddField(name, "value")
	}
	ex := exchangetest.New(b)
	conn, ip := ex.Conn, ex.ClientIP
	for _, ruled := range []bool{false, true} {
		name := "none"
		if ruled {
			name = "three"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ex.Reset(conn, nil)
				ex.ClientIP = ip
				list.CopyTo(&ex.Request.Header)
				list.CopyTo(&ex.Response.Header)
				if ruled {
					request.Request(ex)
					response.Response(ex)
				}
			}
		})
	}
}

// TestWhoToldTheClientGetsItsOwn: what a server answers to the name in a client's
// certificate is for that client.
func TestWhoToldTheClientGetsItsOwn(t *testing.T) {
	certificate := func(ex *exchange.Exchange) { ex.Conn.ClientSubject, ex.Conn.ClientFingerprint = "CN=ada", "00ff" }
	nobody := func(*exchange.Exchange) {}
	for _, c := range []struct {
		name string
		rule Rule
		who  exchangetest.Option
		want bool
	}{
		{"subject", Rule{Direction: Request, Operation: Set, Name: "X-Client", Value: "is {client_cert_subject}"}, certificate, true},
		{"fingerprint", Rule{Direction: Request, Operation: Append, Name: "X-Client", Value: "{client_cert_fingerprint}"}, certificate, true},
		{"replace", Rule{Direction: Request, Operation: Replace, Name: "X-Client", Value: "{client_cert_subject}", Regex: ".*"}, certificate, true},
		{"without a certificate", Rule{Direction: Request, Operation: Set, Name: "X-Client", Value: "{client_cert_subject}"}, nobody, false},
		{"another variable", Rule{Direction: Request, Operation: Set, Name: "X-Client", Value: "{client_ip}"}, certificate, false},
		{"told to the client", Rule{Direction: Response, Operation: Set, Name: "X-Client", Value: "{client_cert_subject}"}, certificate, false},
	} {
		request, response, err := both(Config{c.rule})
		if err != nil {
			t.Fatal(err)
		}
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "X-Client: x"), c.who)
		exchangetest.Run(t, ex, &exchangetest.Source{}, request, response)
		if ex.Personal != c.want {
			t.Errorf("%s: personal %v, want %v", c.name, ex.Personal, c.want)
		}
	}
}
