package https

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"headgate/internal/testhouse"
)

// load is clients that ask for the same thing as fast as they are answered, over
// HTTP/1.1 and HTTP/2, without a second try for what was sent.
type load struct {
	address atomic.Value // string
	plain   bool         // the port may speak HTTP without TLS: then that is tried, too

	served, lost, turned, conns atomic.Int64
	first                       atomic.Value // error: of the first that was lost

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	beat    chan struct{} // one for each request that was served, if anyone waits
}

// startLoad starts clients of each protocol.
func startLoad(t *testing.T, address string, h1, h2 int, plain bool) *load {
	l := &load{plain: plain, beat: make(chan struct{})}
	l.address.Store(address)
	l.ctx, l.stop = context.WithCancel(t.Context())
	t.Cleanup(l.end)
	for range h1 {
		l.running.Go(l.one)
	}
	if h2 > 0 {
		tr := &http.Transport{Protocols: onlyHTTP2(), DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return l.connect(ctx, "h2")
		}}
		t.Cleanup(tr.CloseIdleConnections)
		for range h2 {
			l.running.Go(func() { l.two(tr) })
		}
	}
	return l
}

// end stops the clients after the requests at hand.
func (l *load) end() {
	l.stop()
	l.running.Wait()
}

// await returns when n more requests were served.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-l.beat:
		case <-l.late(t):
			t.Fatalf("no request is served any more; %s", l)
		}
	}
}

// late is closed when a test has waited too long.
func (l *load) late(t *testing.T) <-chan struct{} {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}

func (l *load) String() string {
	return fmt.Sprintf("%d requests served, %d lost, on %d connections (%d were refused before they asked); first loss: %v",
		l.served.Load(), l.lost.Load(), l.conns.Load(), l.turned.Load(), l.first.Load())
}

// errTurned is the error of a connection that ended before anything was asked,
// in a way that tells the client what to do: nobody listens there any more, or
// another protocol is spoken.
var errTurned = errors.New("turned away")

// connect connects to where the port is now.
func (l *load) connect(ctx context.Context, proto string) (net.Conn, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp4", l.address.Load().(string))
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		l.turned.Add(1)
		return nil, errTurned
	case err != nil:
		return nil, err
	}
	c := tls.Client(nc, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true, NextProtos: []string{proto}})
	err = c.HandshakeContext(ctx)
	var other tls.RecordHeaderError
	switch {
	case err == nil:
		l.conns.Add(1)
		return c, nil
	case l.plain && errors.As(err, &other):
		l.turned.Add(1)
		err = errTurned
	}
	nc.Close()
	return nil, err
}

// count notes what came of a request. It reports whether to go on.
func (l *load) count(status int, err error) bool {
	switch {
	case l.ctx.Err() != nil:
		return false
	case errors.Is(err, errTurned):
	case err == nil && status == 200:
		l.served.Add(1)
		select {
		case l.beat <- struct{}{}:
		default:
		}
	default:
		l.lost.Add(1)
		l.first.CompareAndSwap(nil, fmt.Errorf("status %d: %w", status, err))
	}
	return true
}

// two asks over HTTP/2. The transport tries again only what the server has said
// that it did not take.
func (l *load) two(tr *http.Transport) {
	for ; ; testhouse.Pause() {
		rq, _ := http.NewRequest(http.MethodGet, "https://a.example/", nil)
		rs, err := tr.RoundTrip(rq)
		status := 0
		if err == nil {
			status = rs.StatusCode
			_, err = io.Copy(io.Discard, rs.Body)
			rs.Body.Close()
		}
		if !l.count(status, err) {
			return
		}
	}
}

// one asks over HTTP/1.1 on one connection after the other.
func (l *load) one() {
	for l.ctx.Err() == nil {
		nc, err := l.connect(l.ctx, "http/1.1")
		if errors.Is(err, errTurned) && l.plain {
			nc, err = net.Dial("tcp4", l.address.Load().(string))
		}
		if err != nil {
			l.count(0, err)
			continue
		}
		l.use(nc)
		nc.Close()
	}
}

// use asks on a connection until it ends.
func (l *load) use(nc net.Conn) {
	r := bufio.NewReader(nc)
	rq, _ := http.NewRequest(http.MethodGet, "https://a.example/", nil)
	for n := 0; ; n++ {
		testhouse.Pause()
		status, last := 0, true
		err := rq.Write(nc)
		if err == nil {
			var rs *http.Response
			if rs, err = http.ReadResponse(r, rq); err == nil {
				status, last = rs.StatusCode, rs.Close
				_, err = io.Copy(io.Discard, rs.Body)
			}
		}
		if _, secure := nc.(*tls.Conn); !secure && n == 0 && status == 400 && err == nil {
			l.turned.Add(1) // the port has begun to speak TLS
			return
		}
		if !l.count(status, err) || last || err != nil {
			return
		}
	}
}
