package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// What is held counts for the client while somebody is waited for, and who holds too
// much gets 503 for what is next, until it is given back.
func TestWhatIsHeldIsBoundedByClient(t *testing.T) {
	const most = 3 * 32 << 10
	bound := limits(func(p *exchange.Port) { p.MaxClientMemory = most })
	for name, hold := range map[string]struct {
		text string // what each of three clients sends and then waits
		used int64  // by each
	}{
		"a server that thinks":        {"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", 32 << 10},
		"a body that has to come":     {post("/wait", 10) + "x", 32 << 10},
		"a head that has to come":     {"GET /wait HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("a", 20<<10), 28 << 10},
		"a response that is not read": {"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n", 32 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			let := make(chan struct{})
			o := newOrigin(t, func(c *peer, _ int) {
				switch head := c.head(); {
				case strings.Contains(head, "/endless"):
					c.try("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
					for piece := fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat("x", 1<<16)); c.try(piece) == nil; {
					}
				case strings.Contains(head, "/wait"):
					<-let
					c.ok("")
				default:
					c.ok("")
				}
			})
			p := newProxy(t, o.addr, bound)
			var waiting []*peer
			for range 3 {
				c := p.client()
				c.send(hold.text)
				waiting = append(waiting, c)
			}
			known := p.front.Clients
			testhouse.Eventually(t, "all is counted", func() bool { return known.Used() >= 3*hold.used })
			if used := known.Used(); used > most {
				t.Errorf("%d bytes are counted, more than the bound", used)
			}
			for _, next := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", post("/", 10) + "x"} {
				c := p.client()
				c.send(next)
				a := c.answer("GET")
				equal(t, "status", a.StatusCode, 503)
				equal(t, "Retry-After", a.Header.Get("Retry-After"), "1")
				c.ends()
				equal(t, "reason", p.logged().reason, exchange.Overloaded)
			}
			close(let)
			for _, c := range waiting {
				c.Close()
			}
			testhouse.Eventually(t, "the memory is given back", func() bool { return known.Used() == 0 })
			c := p.client()
			equal(t, "status", c.get("/").StatusCode, 200)
		})
	}
}
