package upstream

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
)

// unasked is an answer that no request asked for, such as the end of a body that is longer
// than its length says.
const unasked = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked"

// gathered is a connection whose writes are sent as one, once it gathers.
type gathered struct {
	net.Conn
	gathers bool
	out     []byte
}

func (g *gathered) Write(p []byte) (int, error) {
	if !g.gathers {
		return g.Conn.Write(p)
	}
	g.out = append(g.out, p...)
	return len(p), nil
}

func (g *gathered) flush() {
	g.Conn.Write(g.out)
	g.out = nil
}

// What a server says behind its answer is never taken for the answer to another request,
// however short the rest between them, and however it was cut into reads and records.
func TestWhatIsSaidUnaskedAnswersNobody(t *testing.T) {
	cert := certstest.Sign(t, certstest.Authority("example.com"), nil)
	for name, c := range map[string]struct {
		secure bool
		body   int           // of the first answer
		rest   time.Duration // between the requests
	}{
		"behind a short body":                  {body: 10},
		"where the first buffer ends":          {body: 4<<10 - len("HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n")},
		"behind a long body":                   {body: 20_000},
		"behind a very long body":              {body: 200_000},
		"behind a short body, under TLS":       {secure: true, body: 10},
		"behind a long body, under TLS":        {secure: true, body: 20_000},
		"behind a short body, TLS, and a rest": {secure: true, body: 10, rest: 2 * time.Duration(lookAfter)},
		"behind a long body, TLS, and a rest":  {secure: true, body: 20_000, rest: 2 * time.Duration(lookAfter)},
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int64
			address := testhouse.Server(t, func(nc net.Conn) {
				g := &gathered{Conn: nc}
				rw := net.Conn(g)
				if c.secure {
					shaken := tls.Server(g, &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})
					if shaken.Handshake() != nil {
						return
					}
					rw = shaken
				}
				g.gathers = true
				first := conns.Add(1) == 1
				for b := bufio.NewReader(rw); ; {
					if _, err := http.ReadRequest(b); err != nil {
						return
					}
					if first {
						io.WriteString(rw, "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(c.body)+"\r\n\r\n"+strings.Repeat("x", c.body))
						io.WriteString(rw, unasked)
					} else {
						io.WriteString(rw, fine)
					}
					g.flush()
				}
			})
			to := target(address, 1)
			if c.secure {
				to.Secure = &Secure{Name: "example.com", Unverified: true}
			}
			s := newServers(t, settings, to)
			for i, want := range []string{strings.Repeat("x", c.body), "ok"} {
				ex := exchangetest.New(t)
				front := exchangetest.Run(t, ex, s)
				if front.Status != 200 || front.Body != want {
					t.Errorf("request %d got %d with %.20q", i, front.Status, front.Body)
				}
				for end := exchange.Now() + int64(c.rest); exchange.Now() < end; {
					testhouse.Pause()
				}
			}
		})
	}
}
