package control

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// connectFrom is connect from an address of loopback's network.
func connectFrom(t *testing.T, from string, to string) *client {
	t.Helper()
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return &client{nc, bufio.NewReader(nc)}
}

// Clients that hang at a port's limit lose their places to others: those who have most
// lose first, so that neither a request under way nor the idle connection of somebody
// else is closed for them.
func TestHungClientsMakeRoomForOthers(t *testing.T) {
	for name, hang := range map[string]struct{ port, text string }{
		"silent":            {"", ""},
		"a head in part":    {"", "GET / HTTP/1.1\r\n"},
		"between requests":  {"", "GET / HTTP/1.1\r\nHost: quick.test\r\n\r\n"},
		"silent, TLS":       {"https", ""},
		"a record of TLS":   {"https", "\x16\x03\x01\x02\x00\x01"},
		"silent, HTTP/2":    {"h2c", ""},
		"HTTP/2, no stream": {"h2c", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit, crowd, others = 8, 80, 20
			at := testhouse.Addresses(t, 1)
			server := startSlow(t)
			text := through(server.url, "a "+at[0]+fmt.Sprintf(" limits: {max_connections: %d}", limit))
			text += "  quick: {virtual_hosts: [quick.test], routes: [{fixed_response: {status: 204}}]}\n"
			switch hang.port {
			case "https":
				text = strings.Replace(text, "protocol: http,", "protocol: https,", 1)
			case "h2c":
				text = strings.Replace(text, "protocol: http,", "protocol: http, h2c: true,", 1)
			}
			h := start(t, text)
			come := func(from string) *client {
				c := connectFrom(t, from, at[0])
				if hang.port == "https" {
					if err := shake(c); err != nil {
						t.Fatal(err)
					}
				}
				return c
			}
			ask := func(c *client) {
				t.Helper()
				fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: quick.test\r\n\r\n")
				if got, err := c.answer(); got != 204 || err != nil {
					t.Errorf("got %d and %v, want 204", got, err)
				}
			}
			honest, busy := come("127.0.0.2"), come("127.0.0.1")
			ask(honest)
			fmt.Fprint(busy, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
			<-server.arrived
			for range crowd {
				fmt.Fprint(connectFrom(t, "127.0.0.1", at[0]), hang.text)
			}
			yields := func() string { return lines(metricsPage(h), "headgate_connections_yielded_total{") }
			// The system may keep back those that are silent for a second.
			testhouse.Eventually(t, "the crowd is at the limit", func() bool { return yields() != "" && !strings.HasSuffix(yields(), " 0\n") })
			for range others {
				c := come("127.0.0.3")
				ask(c)
				c.Close()
			}
			ask(honest)
			close(server.release)
			if got, err := busy.answer(); got != 200 || err != nil {
				t.Errorf("a request under way got %d and %v", got, err)
			}
			if n := h.log.count("connection limit reached"); n != 1 {
				t.Errorf("the log says %d times that the limit is reached, want once", n)
			}
		})
	}
}
