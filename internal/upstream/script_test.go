package upstream

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
	"headgate/internal/upstream/fcgi"
)

// php is a FastCGI server that answers with the bytes a test wants.
type php struct {
	address string
	mu      struct {
		sync.Mutex
		conns, requests int
		bodies          []string
		params          []map[string]string
		closed          int
	}
}

// newPHP starts a server that calls answer for each request, and keeps the connection while
// it returns true.
func newPHP(t *testing.T, answer func(net.Conn) bool) *php {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &php{address: ln.Addr().String()}
	testhouse.ServerOn(t, ln, func(c net.Conn) {
		p.mu.Lock()
		p.mu.conns++
		p.mu.Unlock()
		for p.request(c) && answer(c) {
		}
	})
	return p
}

// request reads one request.
func (p *php) request(c net.Conn) bool {
	var params, body []byte
	for {
		var head [8]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return false
		}
		content := make([]byte, int(binary.BigEndian.Uint16(head[4:]))+int(head[6]))
		if _, err := io.ReadFull(c, content); err != nil {
			return false
		}
		switch head[1] {
		case 4:
			params = append(params, content...)
		case 5:
			body = append(body, content...)
			if len(content) > 0 {
				continue
			}
			all := map[string]string{}
			pairs, _ := fcgi.Pairs(params)
			for _, pair := range pairs {
				all[pair[0]] = pair[1]
			}
			p.mu.Lock()
			p.mu.requests++
			p.mu.bodies, p.mu.params = append(p.mu.bodies, string(body)), append(p.mu.params, all)
			p.mu.Unlock()
			return true
		}
	}
}

func phpRecord(kind byte, text string) string {
	b := []byte{1, kind, 0, 1, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(b[4:], uint16(len(text)))
	return string(b) + text
}

func phpOut(text string) string { return phpRecord(6, text) }

var phpEnd = phpRecord(3, "\x00\x00\x00\x00\x00\x00\x00\x00")

func phpText(text string, keep bool) func(net.Conn) bool {
	return func(c net.Conn) bool {
		_, err := io.WriteString(c, text)
		return err == nil && keep
	}
}

// fastCGI returns a source for a server.
func fastCGI(t *testing.T, p *php, keep bool, log *slog.Logger) *Servers {
	t.Helper()
	to := target(p.address, 1)
	to.FastCGI, to.KeepConnections = true, keep
	env := exchange.Env{Log: log, Clock: time.Now, Keep: func(_ string, open func() exchange.Kept) exchange.Kept {
		k := open()
		t.Cleanup(k.Retire)
		return k
	}}
	return New([]Target{to}, settings, Policy{}, env)
}

func TestResponsesOfFastCGIServers(t *testing.T) {
	long := strings.Repeat("x", 60000)
	const head = "Content-Type: text/plain\r\n\r\n"
	for _, c := range []struct {
		name, response string
		method         string
		status         int
		reason         exchange.Reason
		body           string
	}{
		{name: "usual", response: phpOut(head+"hello") + phpOut("") + phpEnd, status: 200, body: "hello"},
		{name: "in pieces", response: phpOut("Content-Ty") + phpRecord(7, "notice") + phpOut("pe: a/b\r") + phpOut("\n\r") + phpOut("\nhel") + phpOut("lo") + phpEnd, status: 200, body: "hello"},
		{name: "long", response: phpOut(head+long) + phpOut(long) + phpOut(long) + phpEnd, status: 200, body: long + long + long},
		{name: "a length", response: phpOut("Content-Length: 5\n\nhello") + phpEnd, status: 200, body: "hello"},
		{name: "a status", response: phpOut("Status: 404 Not Found\r\n\r\nno") + phpEnd, status: 404, body: "no"},
		{name: "no body", response: phpOut("Status: 304\r\n\r\n") + phpEnd, status: 304},
		{name: "a body that does not belong to it", response: phpOut("Status: 304\r\n\r\nbody") + phpEnd, status: 304},
		{name: "head", method: "HEAD", response: phpOut("Content-Length: 5\r\n\r\nhello") + phpEnd, status: 200},
		{name: "nothing", response: phpEnd, status: 502, reason: exchange.UpstreamInvalid},
		{name: "no end of the head", response: phpOut("A: b\r\n") + phpEnd, status: 502, reason: exchange.UpstreamInvalid},
		{name: "closed before the head", response: phpOut("A: b\r\n"), status: 502, reason: exchange.UpstreamReset},
		{name: "closed", response: "", status: 502, reason: exchange.UpstreamReset},
		{name: "no field", response: phpOut("Fatal error\r\n\r\n") + phpEnd, status: 502, reason: exchange.UpstreamInvalid},
		{name: "folded", response: phpOut("A: b\r\n c\r\n\r\n") + phpEnd, status: 502, reason: exchange.UpstreamInvalid},
		{name: "control characters", response: phpOut("A: b\x00\r\n\r\n") + phpEnd, status: 502, reason: exchange.UpstreamInvalid},
		{name: "two lengths", response: phpOut("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello") + phpEnd, status: 502, reason: exchange.UpstreamInvalid},
		{name: "an interim status", response: phpOut("Status: 101\r\n\r\n") + phpEnd, status: 502, reason: exchange.UpstreamInvalid},
		{name: "endless head", response: strings.Repeat(phpOut("A: "+strings.Repeat("a", 60000)+"\r\n"), 40), status: 502, reason: exchange.UpstreamInvalid},
		{name: "http", response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", status: 502, reason: exchange.UpstreamInvalid},
		{name: "cut off", response: phpOut(head + "hello"), status: 200, reason: exchange.UpstreamReset, body: "hello"},
		{name: "cut off in a record", response: phpOut(head + long)[:1000], status: 200, reason: exchange.UpstreamReset},
		{name: "longer than its length", response: phpOut("Content-Length: 3\r\n\r\nhello") + phpEnd, status: 200, reason: exchange.UpstreamInvalid, body: "hel"},
		{name: "shorter than its length", response: phpOut("Content-Length: 9\r\n\r\nhello") + phpEnd, status: 200, reason: exchange.UpstreamInvalid, body: "hello"},
		{name: "a bad record in the body", response: phpOut(head+"hello") + "xxxxxxxxxxxxxxxx", status: 200, reason: exchange.UpstreamInvalid, body: "hello"},
		{name: "endless errors", response: phpOut(head) + strings.Repeat(phpRecord(7, long), 20), status: 200, reason: exchange.UpstreamInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fastCGI(t, newPHP(t, phpText(c.response, false)), false, slog.New(slog.DiscardHandler))
			method := c.method
			if method == "" {
				method = "GET"
			}
			ex := exchangetest.New(t, exchangetest.Head(method, "/a"))
			front := exchangetest.Run(t, ex, s)
			if front.Status != c.status || ex.Reason != c.reason {
				t.Fatalf("%d %v (%s), want %d %v", front.Status, ex.Reason, ex.Cause, c.status, c.reason)
			}
			if c.reason == exchange.None || c.body != "" {
				if front.Body != c.body {
					t.Errorf("body of %d bytes %.50q, want %d", len(front.Body), front.Body, len(c.body))
				}
			}
		})
	}
}

func TestFastCGIConnectionsAreKeptOnlyIfAsked(t *testing.T) {
	for _, keep := range []bool{false, true} {
		p := newPHP(t, phpText(phpOut("A: b\r\n\r\nhello")+phpOut("")+phpEnd, true))
		s := fastCGI(t, p, keep, slog.New(slog.DiscardHandler))
		for range 3 {
			ex := exchangetest.New(t, exchangetest.Head("POST", "/a"), exchangetest.Content("body"))
			if front := exchangetest.Run(t, ex, s); front.Status != 200 || front.Body != "hello" {
				t.Fatalf("%d %q, %s", front.Status, front.Body, ex.Cause)
			}
		}
		p.mu.Lock()
		conns, requests, bodies := p.mu.conns, p.mu.requests, p.mu.bodies
		p.mu.Unlock()
		if want := map[bool]int{false: 3, true: 1}[keep]; conns != want || requests != 3 {
			t.Errorf("keep %v: %d connections for %d requests, want %d", keep, conns, requests, want)
		}
		if !slices.Equal(bodies, []string{"body", "body", "body"}) {
			t.Errorf("bodies %q", bodies)
		}
		want := 0
		if keep {
			want = 1
		}
		if got := s.List()[0].pool.Idle(); got != want {
			t.Errorf("keep %v: %d idle connections, want %d", keep, got, want)
		}
	}
}

// A kept connection with anything behind the response is not used again.
func TestFastCGIResponsesAreNotMixedUp(t *testing.T) {
	surplus := phpOut("A: b\r\n\r\nhello") + phpEnd + phpOut("A: b\r\n\r\nevil") + phpEnd
	p := newPHP(t, phpText(surplus, true))
	s := fastCGI(t, p, true, slog.New(slog.DiscardHandler))
	for range 3 {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/a"))
		if front := exchangetest.Run(t, ex, s); front.Body != "hello" {
			t.Fatalf("%d %q, %s", front.Status, front.Body, ex.Cause)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.conns != 3 {
		t.Errorf("%d connections, want 3", p.mu.conns)
	}
}

func TestLongBodiesAreStreamedToFastCGIServers(t *testing.T) {
	p := newPHP(t, phpText(phpOut("A: b\r\n\r\nhello")+phpEnd, false))
	s := fastCGI(t, p, false, slog.New(slog.DiscardHandler))
	piece := strings.Repeat("p", 50000)
	ex := exchangetest.New(t, exchangetest.Head("POST", "/a"))
	ex.Request.Length, ex.Request.Body = 4*int64(len(piece)), exchangetest.Body(piece, piece, piece, piece)
	if front := exchangetest.Run(t, ex, s); front.Status != 200 {
		t.Fatalf("%d, %s", front.Status, ex.Cause)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.mu.bodies[0]; got != strings.Repeat(piece, 4) || p.mu.params[0]["CONTENT_LENGTH"] != "200000" {
		t.Errorf("%d bytes, CONTENT_LENGTH %s", len(got), p.mu.params[0]["CONTENT_LENGTH"])
	}
}

// A client that leaves ends its script: the connection is closed.
func TestAScriptEndsWithItsClient(t *testing.T) {
	closed := make(chan struct{})
	p := newPHP(t, func(c net.Conn) bool {
		c.Read(make([]byte, 1))
		close(closed)
		return false
	})
	s := fastCGI(t, p, true, slog.New(slog.DiscardHandler))
	ex := exchangetest.New(t, exchangetest.Head("GET", "/a"))
	ex.Limits.RequestTimeout = time.Minute
	ex.Front.(*exchangetest.Front).Left = true
	exchangetest.Run(t, ex, s)
	if ex.Reason != exchange.ClientClosed {
		t.Errorf("%v, want client_closed", ex.Reason)
	}
	select {
	case <-closed:
	case <-time.After(testhouse.Patience):
		t.Error("the connection stays open")
	}
}

func TestASilentFastCGIServerTimesOut(t *testing.T) {
	block := make(chan struct{})
	p := newPHP(t, func(net.Conn) bool { <-block; return false })
	defer close(block)
	s := fastCGI(t, p, false, slog.New(slog.DiscardHandler))
	ex := exchangetest.New(t, exchangetest.Head("GET", "/a"))
	ex.Limits.RequestTimeout = 20 * time.Millisecond
	if exchangetest.Run(t, ex, s); ex.Reason != exchange.UpstreamTimeout {
		t.Errorf("%v, want upstream_timeout", ex.Reason)
	}
}

func TestErrorsOfScriptsAreLogged(t *testing.T) {
	var log strings.Builder
	p := newPHP(t, phpText(phpRecord(7, "PHP message: "+strings.Repeat("n", 50000)+"\n")+phpOut("A: b\r\n\r\nhello")+phpEnd, false))
	s := fastCGI(t, p, false, slog.New(slog.NewTextHandler(&log, nil)))
	exchangetest.Run(t, exchangetest.New(t, exchangetest.Head("GET", "/a")), s)
	if got := log.String(); !strings.Contains(got, `stderr="PHP message: nnn`) || len(got) > 4096 || strings.Count(got, "\n") != 1 {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}

// FuzzFastCGIServer plays a server that answers with any bytes: the request ends.
func FuzzFastCGIServer(f *testing.F) {
	f.Add([]byte(phpOut("Status: 200\r\n\r\nhello") + phpEnd))
	f.Add([]byte(phpOut("Content-Length: 3\n\nhello") + phpRecord(7, "x") + phpEnd))
	f.Fuzz(func(t *testing.T, answer []byte) {
		s := fastCGI(t, newPHP(t, phpText(string(answer), false)), true, slog.New(slog.DiscardHandler))
		ex := exchangetest.New(t, exchangetest.Head("GET", "/a"))
		ex.Limits.RequestTimeout = time.Second
		front := exchangetest.Run(t, ex, s)
		if front.Status < 200 || front.Status > 599 {
			t.Errorf("status %d", front.Status)
		}
	})
}
