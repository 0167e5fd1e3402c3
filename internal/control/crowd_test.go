package control

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// Clients that hang at a port's limit, and then all leave, leave no rest: those that
// stood in the queue are not taken to the server one after the other, which would hold
// up whoever comes next for as long as the server thinks.
func TestServiceComesBackWhenHungClientsHaveLeft(t *testing.T) {
	for _, protocol := range []string{"http", "https"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			const limit, crowd = 8, 80
			at := testhouse.Addresses(t, 1)
			server := startSlow(t)
			text := through(server.url, "a "+at[0]+fmt.Sprintf(" limits: {max_connections: %d}", limit))
			text += "  quick: {virtual_hosts: [quick.test], routes: [{fixed_response: {status: 204}}]}\n"
			text = strings.Replace(text, "protocol: http,", "protocol: "+protocol+",", 1)
			h := start(t, text)
			var hung []net.Conn
			for i := range crowd {
				nc, err := net.Dial("tcp", at[0])
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if protocol == "https" && i < limit {
					nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
				}
				fmt.Fprint(nc, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
				hung = append(hung, nc)
			}
			for range limit {
				<-server.arrived
			}
			p, _ := h.port("a", at[0])
			testhouse.Eventually(t, "the port says that it is full", func() bool {
				p, _ = h.port("a", at[0])
				return p.AtLimit
			})
			if page := metricsPage(h); !strings.Contains(page, `headgate_connections_at_limit{port="a"} 1`) {
				t.Errorf("the page says %s", lines(page, "at_limit"))
			}
			if n := h.log.count("connection limit reached"); n != 1 {
				t.Errorf("the log says %d times that the limit is reached, want once", n)
			}
			for _, nc := range hung {
				nc.Close()
			}
			// On a busy machine a client may be too slow to keep its room from those in the
			// queue of whom nobody knows yet that they have left. It comes again, then.
			testhouse.Eventually(t, "service is back", func() bool {
				c, err := connect(at[0])
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if protocol == "https" && shake(c) != nil {
					return false
				}
				fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: quick.test\r\n\r\n")
				got, err := c.answer()
				if err == nil && got != 204 {
					t.Errorf("got %d, want 204", got)
				}
				return err == nil
			})
			if n := len(server.arrived); n > 0 {
				t.Errorf("%d requests of clients who had left came to the server", n)
			}
			testhouse.Eventually(t, "the port is not full any more", func() bool {
				p, _ = h.port("a", at[0])
				return !p.AtLimit
			})
		})
	}
}
