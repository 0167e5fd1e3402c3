package h3_test

import (
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
)

// A client that takes back requests which servers work on already is bounded as
// over HTTP/2 (CVE-2023-44487): however few of them run at once, each was sent on.
func TestRequestsThatAreTakenBackAreAFlood(t *testing.T) {
	var asked atomic.Int64
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		asked.Add(1)
		for until := time.Now().Add(patience); !ex.Front.Gone() && time.Now().Before(until); {
			time.Sleep(time.Millisecond)
		}
		return exchange.Fail(exchange.ClientClosed, "gone")
	}, nil)
	c := f.dial()
	request := frame(1, section(get...))
	for range 3000 {
		s, err := c.conn.OpenStreamSync(t.Context())
		if err != nil {
			break
		}
		s.Write(request)
		s.Close()
		seen := asked.Load()
		for until := time.Now().Add(20 * time.Millisecond); asked.Load() == seen && time.Now().Before(until); {
			time.Sleep(100 * time.Microsecond)
		}
		s.CancelRead(0x10c)
	}
	if got := c.ended(); got != codeLoad {
		t.Errorf("a flood of requests that were taken back: got %#x after %d, want H3_EXCESSIVE_LOAD", got, asked.Load())
	}
}

// A client that wants a CONNECT says nothing more before it has the answer.
func TestConnectIsRefusedAtOnce(t *testing.T) {
	f := newFront(t, text("x"), nil)
	c := f.dial()
	s := c.stream(frame(1, section(":method", "CONNECT", ":authority", "h:443")), false)
	s.SetReadDeadline(time.Now().Add(patience / 4))
	if rs := c.await(s); rs.status != "501" {
		t.Errorf("got %+v", rs)
	}
}
