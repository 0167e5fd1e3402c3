package gate

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/store/memory"
)

// testedPage is a sign-in page at an address of its own.
type testedPage struct {
	Sites
	port   int
	engine atomic.Pointer[Engine] // that responds
	status atomic.Int32           // 0 is the response of the engine
}

func (p *testedPage) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	if status := p.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		return
	}
	proof, err := p.engine.Load().ProveSelfTest(strings.TrimPrefix(rq.URL.Path, SelfTestPath))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	io.WriteString(w, proof)
}

func (p *testedPage) SignInHost() (string, map[string]int) {
	return "127.0.0.1", map[string]int{"": p.port}
}

// startSelfTest returns an engine that tests a page very often, and what it publishes. With a
// nil pool the page's certificate is not trusted.
func startSelfTest(t *testing.T, trusted bool) (*Engine, *testedPage, chan Event) {
	t.Helper()
	p := &testedPage{}
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)
	p.port = server.Listener.Addr().(*net.TCPAddr).Port
	pool := x509.NewCertPool()
	if trusted {
		pool.AddCert(server.Certificate())
	}
	events := make(chan Event, 64)
	e := New(Options{
		Store: memory.New(), Roots: pool, Publish: func(ev Event) { events <- ev },
		selfTests: selfTestPace{first: time.Millisecond, again: time.Millisecond, failing: time.Millisecond, fine: time.Millisecond},
	})
	t.Cleanup(e.Close)
	p.engine.Store(e)
	return e, p, events
}

// nextEvent returns the next event.
func nextEvent(t *testing.T, events chan Event) Event {
	t.Helper()
	select {
	case ev := <-events:
		return ev
	case <-time.After(time.Minute):
		t.Fatal("no event")
		return Event{}
	}
}

func TestASignInPageThatCannotBeReachedIsReported(t *testing.T) {
	e, p, events := startSelfTest(t, true)
	other := New(Options{Store: memory.New()})
	t.Cleanup(other.Close)
	e.Use(&Config{SelfTest: true}, p)
	for _, c := range []struct {
		cause      string
		fail, mend func()
	}{
		{"another server responds, with status 404", func() { p.status.Store(404) }, func() { p.status.Store(0) }},
		{"another server responds, with status 302", func() { p.status.Store(302) }, func() { p.status.Store(0) }},
		{"another server responds", func() { p.engine.Store(other) }, func() { p.engine.Store(e) }},
		{"another server responds", func() { p.engine.Store(other) }, func() { p.status.Store(403) }}, // refused by a filter: unknown
	} {
		c.fail()
		if ev := nextEvent(t, events); ev.Kind != SignInUnreachable || !strings.HasSuffix(ev.Cause, c.cause) {
			t.Errorf("got %+v, want %s", ev, c.cause)
		}
		if u := e.Unreachable(); u == nil || u.Hint == "" || !strings.HasPrefix(u.String(), "the sign-in page cannot be reached: https://127.0.0.1:") {
			t.Errorf("%s: got %v", c.cause, u)
		}
		c.mend()
		if ev := nextEvent(t, events); ev.Kind != SignInReachable || e.Unreachable() != nil {
			t.Errorf("%s: mended: got %+v, %v", c.cause, ev, e.Unreachable())
		}
	}
	e.Use(&Config{}, p) // switched off
	p.engine.Store(e)
	p.status.Store(500)
	if err := e.testOnce(t.Context()); err != errNotTested {
		t.Errorf("switched off: %v", err)
	}
}

func TestASelfTestSaysWhatIsWrong(t *testing.T) {
	e, p, events := startSelfTest(t, false)
	e.Use(&Config{SelfTest: true}, p)
	if ev := nextEvent(t, events); !strings.Contains(ev.Cause, "browsers do not accept the certificate: x509: certificate signed by unknown authority") {
		t.Errorf("certificate: got %+v", ev)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", IsNotFound: true}, "the host does not exist in the DNS"},
		{&net.DNSError{Err: "server misbehaving"}, "the host cannot be looked up: server misbehaving"},
		{&net.OpError{Op: "dial", Err: io.EOF}, "no connection: EOF"},
	} {
		if got, hint := explainUnreachable(c.err); got != c.want || hint == "" {
			t.Errorf("got %q, %q; want %q", got, hint, c.want)
		}
	}
}

func TestASelfTestProvesSecretsOnly(t *testing.T) {
	e := New(Options{Store: memory.New()})
	t.Cleanup(e.Close)
	for _, text := range []string{"", "x", strings.Repeat("a", 42), strings.Repeat("a", 44), strings.Repeat("/", 43)} {
		if proof, err := e.ProveSelfTest(text); err == nil {
			t.Errorf("%q: %q", text, proof)
		}
	}
}
