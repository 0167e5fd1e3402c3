package h3_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"

	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/testhouse"
)

const codeRejected = 0x10b

// The memory of a client is counted by its address, over all of its connections. It
// cannot know that there is none: the connection goes on, and is served later.
func TestMemoryIsBoundedByAddress(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 10)
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		if _, ok := ex.Request.Header.Lookup("x-wait"); ok {
			begun <- struct{}{}
			<-release
		}
		return text("x")(ex)
	}, func(p *exchange.Port) { p.MaxClientMemory = 4 * clients.RequestMemory })
	one, other := f.dial(), f.dial()
	for range 3 { // for the third one it takes memory for two
		one.stream(frame(1, section(with("x-wait", "1")...)), true)
		<-begun
	}
	for n := range 600 {
		if rs := other.await(other.stream(frame(1, section(get...)), true)); rs.reset() != codeRejected {
			t.Fatalf("request %d of another connection: got %+v, want H3_REQUEST_REJECTED", n, rs)
		}
	}
	let()
	testhouse.Eventually(t, "the memory is given back", func() bool { return f.speak.Clients.Used() == 0 })
	if rs := other.await(other.stream(frame(1, section(get...)), true)); rs.status != "200" {
		t.Errorf("then got %+v", rs)
	}
}

// What a connection may have under way beyond its first window counts for its client.
func TestWindowsAreCounted(t *testing.T) {
	f := newFront(t, text("x"), func(p *exchange.Port) { p.MaxClientMemory = 1 << 20 })
	c := f.dial()
	if rs := c.await(c.stream(frame(1, section(get...)), true)); rs.status != "200" {
		t.Fatalf("got %+v", rs)
	}
	qc, allow := <-f.served, f.speak.Config().AllowConnectionWindowIncrease
	if !allow(qc, 700<<10) || allow(qc, 700<<10) || allow(nil, 1) {
		t.Error("a window grows beyond the bound, or not within it")
	}
	c.conn.CloseWithError(0x100, "")
	testhouse.Eventually(t, "the memory is given back", func() bool { return f.speak.Clients.Used() == 0 })
	if allow(qc, 1) {
		t.Error("a connection that has ended is given memory")
	}
}

// Where nothing bounds the head or the pauses of a body, no deadline of our own that was
// set to look for a body ends it later.
func TestABodyThatComesLateHasNoDeadline(t *testing.T) {
	begun := make(chan struct{}, 1)
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		ex.Request.Body.Ready()
		begun <- struct{}{}
		p, err := io.ReadAll(ex.Request.Body)
		if err != nil {
			t.Errorf("the body broke off: %v", err)
		}
		return text(string(p))(ex)
	}, func(p *exchange.Port) { p.HeadTimeout, p.Limits.BodyIdle = 0, 0 })
	c := f.dial()
	post := []string{":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/"}
	for name, fields := range map[string][]string{"found by waiting": post, "asked for": append(post[:8:8], "expect", "100-continue")} {
		s := c.stream(frame(1, section(fields...)), false)
		<-begun
		s.Write(frame(0, []byte("late")))
		s.Close()
		if rs := c.await(s); rs.status != "200" || rs.body != "late" {
			t.Errorf("%s: got %+v", name, rs)
		}
	}
}

// A client that floods us on connection after connection is let go late, and nothing of
// it is taken meanwhile.
func TestOffendersAreDelayed(t *testing.T) {
	f := newFront(t, text("x"), nil)
	for m := f.speak.Clients.Join(netip.MustParseAddr("127.0.0.1")); !m.Offend(); {
	}
	c := f.dial()
	go func() {
		for {
			r, err := c.conn.OpenStreamSync(t.Context())
			if err != nil {
				return
			}
			r.Write(frame(1, section("Upper", "x"))) // malformed
			r.Close()
		}
	}()
	testhouse.Eventually(t, "the connection waits for its end", func() bool { return f.speak.Clients.Delayed() == 1 })
	<-c.conn.Context().Done()
	var end *quic.ApplicationError
	if err := context.Cause(c.conn.Context()); !errors.As(err, &end) || end.ErrorCode != 0x107 {
		t.Errorf("it ended by %v, want H3_EXCESSIVE_LOAD", err)
	}
	testhouse.Eventually(t, "nobody waits", func() bool { return f.speak.Clients.Delayed() == 0 })
}
