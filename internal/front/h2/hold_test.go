package h2

import (
	"net"
	"testing"

	"headgate/internal/front/clients"
	"headgate/internal/testhouse"
)

// A connection that is held is closed when its place is wanted, or there is no time.
func TestAHeldConnectionLetsGo(t *testing.T) {
	for name, end := range map[string]func(*Conn){
		"drain": (*Conn).Drain,
		"close": func(c *Conn) { c.Close() },
		"yield": func(c *Conn) {
			if _, since, idle := c.Idle(); !idle || !c.Yield(since) {
				t.Error("it does not make room for another")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			defer b.Close()
			f := &Front{Clients: clients.New()}
			c := f.NewConn(a, 1)
			c.mu.quiet = 1
			over := make(chan struct{})
			go func() { c.hold(); close(over) }()
			testhouse.Eventually(t, "it is held", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.mu.held != nil && f.Clients.Delayed() == 1
			})
			end(c)
			<-over
			if n := f.Clients.Delayed(); n != 0 {
				t.Errorf("%d places are taken", n)
			}
		})
	}
}
