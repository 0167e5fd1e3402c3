package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/plan/inputs"
	"headgate/internal/proto/header"
)

// load reads a configuration that begins with a port "web" on 8080.
func load(t testing.TB, text string) *config.Config {
	t.Helper()
	if !strings.Contains(text, "ports:\n") {
		text = "ports:\n  web: {address: \"0.0.0.0:8080\", protocol: http}\n" + text
	}
	cfg, _, problems := config.Load("test.yaml", []byte("version: 1\n"+text))
	for _, p := range problems {
		t.Error(p)
	}
	if cfg == nil {
		t.FailNow()
	}
	return cfg
}

func compile(t testing.TB, text string) *Plan {
	t.Helper()
	return compileIn(t, text, House{})
}

// testEnvironment returns a house with what a configuration needs from outside.
func testEnvironment(cfg *config.Config) House {
	return House{Inputs: inputs.NewLoader(inputs.Options{}).Prepare(cfg, "")}
}

// compileIn compiles a configuration in a house.
func compileIn(t testing.TB, text string, with House) *Plan {
	t.Helper()
	cfg := load(t, text)
	if with.Inputs == nil {
		with.Inputs = testEnvironment(cfg).Inputs
	}
	p, problems := Compile(cfg, nil, with, nil)
	for _, problem := range problems {
		t.Error(problem)
	}
	if p == nil {
		t.FailNow()
	}
	return p
}

// sent is a front that keeps what a client would see.
type sent struct {
	status int
	text   string
	reason exchange.Reason
}

func (s *sent) Send(ex *exchange.Exchange) error {
	s.status, s.text, s.reason = ex.Response.Status, string(ex.Response.Text), ex.Reason
	return nil
}
func (s *sent) Inform(*exchange.Exchange, int, *header.List) error { return nil }
func (s *sent) Abort(*exchange.Exchange)                           {}
func (s *sent) Gone() bool                                         { return false }

var client = &exchange.Conn{Remote: netip.MustParseAddrPort("192.0.2.7:1234"), Peer: "192.0.2.7", Scheme: "http"}

// request has a port serve a request.
func request(p *Port, method, host, target string) sent {
	var s sent
	ex := &exchange.Exchange{}
	prepare(ex, p, &s, method, host, target)
	p.Front().Serve(ex)
	return s
}

func prepare(ex *exchange.Exchange, p *Port, front exchange.Front, method, host, target string) {
	conn := *client
	ex.Reset(&conn, front)
	ex.Place, ex.Limits, ex.ClientIP = p.Front().Place, p.Front().Limits, conn.Remote.Addr()
	rq := &ex.Request
	rq.Method, rq.Host, rq.Scheme, rq.Proto = method, host, "http", exchange.HTTP11
	rq.Path, rq.Query, _ = strings.Cut(target, "?")
	if rq.Query != "" {
		rq.Query = "?" + rq.Query
	}
}

// named makes a proxy whose routes answer with "proxy path".
func named(name, hosts string, paths ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s:\n", name)
	if hosts != "" {
		fmt.Fprintf(&b, "    virtual_hosts: [%s]\n", hosts)
	}
	b.WriteString("    routes:\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "      - {path: %q, fixed_response: {status: 200, body: \"{proxy} {route}\"}}\n", path)
	}
	return b.String()
}
