package upstream

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// mirrored is a mirror between servers of a test.
type mirrored struct {
	*Mirror
	mu     sync.Mutex
	counts [4]int
	told   chan Copied
}

func newMirrored(t *testing.T, of, to *odd, c Copies) *mirrored {
	t.Helper()
	m := &mirrored{told: make(chan Copied, 1000)}
	c.Told = func(result Copied) {
		m.mu.Lock()
		m.counts[result]++
		m.mu.Unlock()
		m.told <- result
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	state := &MirrorState{}
	front, _ := withRetry(t, nil, of)
	back, _ := withRetry(t, nil, to)
	m.Mirror = NewMirror(front, back, c, state)
	t.Cleanup(func() {
		state.Retire()
		for begun := time.Now(); state.running.Load() > 0; {
			if time.Since(begun) > time.Minute {
				t.Fatal("a copy goes on after the mirror was retired")
			}
			<-time.After(time.Millisecond)
		}
	})
	return m
}

// next waits for what becomes of a copy.
func (m *mirrored) next(t *testing.T) Copied {
	t.Helper()
	select {
	case c := <-m.told:
		return c
	case <-time.After(time.Minute):
		t.Fatal("nothing becomes of the copy")
		return 0
	}
}

func mute(t *testing.T) *odd {
	return newOdd(t, func(c net.Conn, _ *http.Request) bool {
		c.Read(make([]byte, 1)) // until it is given up
		return false
	})
}

var copies = Copies{Percent: 100, MaxBody: 16, MaxRequests: 8}

func TestCopiesHaveBodyAndFields(t *testing.T) {
	main := newOdd(t, respondText(fine))
	got := make(chan string, 10)
	second := newOdd(t, func(c net.Conn, r *http.Request) bool {
		got <- r.Method + " " + r.URL.String() + " " + r.Host + " " + r.Header.Get("X-A")
		io.WriteString(c, fine)
		return true
	})
	m := newMirrored(t, main, second, copies)
	for _, option := range []exchangetest.Option{exchangetest.Content("some text"), exchangetest.Chunks("some", " ", "text")} {
		ex := exchangetest.New(t, exchangetest.Head("POST", "/x?q", "X-A: 1"), option)
		equal(t, "status", exchangetest.Run(t, ex, m).Status, 200)
		equal(t, "copy", m.next(t), CopySent)
		equal(t, "head", <-got, "POST /x?q example.com 1")
	}
	second.mu.Lock()
	defer second.mu.Unlock()
	for _, body := range second.mu.bodies {
		equal(t, "body", body, "some text")
	}
}

func TestBodiesThatAreTooLongAreNotCopied(t *testing.T) {
	main, second := newOdd(t, respondText(fine)), newOdd(t, respondText(fine))
	m := newMirrored(t, main, second, copies)
	for _, option := range []exchangetest.Option{exchangetest.Content("more than sixteen bytes"), exchangetest.Chunks("more than ", "sixteen bytes")} {
		ex := exchangetest.New(t, exchangetest.Head("POST", "/"), option)
		equal(t, "status", exchangetest.Run(t, ex, m).Status, 200)
		equal(t, "copy", m.next(t), CopyTooLong)
	}
	main.mu.Lock()
	equal(t, "body", main.mu.bodies[1], "more than sixteen bytes")
	main.mu.Unlock()
	_, n := second.seen()
	equal(t, "copies", n, 0)
}

func TestAMirrorThatHangsCostsTheClientNothing(t *testing.T) {
	m := newMirrored(t, newOdd(t, respondText(fine)), mute(t), copies)
	for range 20 {
		ex := exchangetest.New(t)
		begun := time.Now()
		equal(t, "status", exchangetest.Run(t, ex, m).Status, 200)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	}
	m.mu.Lock()
	equal(t, "dropped", m.counts[CopyDropped], 12)
	m.mu.Unlock()
}

func TestACopyEndsWithItsTimeout(t *testing.T) {
	drip := newOdd(t, func(c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				return false
			}
			<-time.After(5 * time.Millisecond)
		}
	})
	c := copies
	c.Timeout = 50 * time.Millisecond
	for _, second := range []*odd{mute(t), drip} {
		m := newMirrored(t, newOdd(t, respondText(fine)), second, c)
		begun := time.Now()
		exchangetest.Run(t, exchangetest.New(t), m)
		m.next(t)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the copy took %v", took)
		}
	}
}

// A server that never ends its answer to a copy costs no more than a bound, however
// fast it is.
func TestAnEndlessAnswerToACopyIsGivenUp(t *testing.T) {
	var sent atomic.Int64
	endless := newOdd(t, func(c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for p := make([]byte, 64<<10); sent.Load() < 1<<30; {
			n, err := c.Write(p)
			if sent.Add(int64(n)); err != nil {
				return false
			}
		}
		return false
	})
	m := newMirrored(t, newOdd(t, respondText(fine)), endless, copies)
	exchangetest.Run(t, exchangetest.New(t), m)
	if result := m.next(t); result != CopySent || sent.Load() > 4*maxDiscarded {
		t.Errorf("the copy is %s, and %d bytes of its answer were taken; the bound is %d", result, sent.Load(), maxDiscarded)
	}
}

func TestUpgradesAndOtherShareAreNotCopied(t *testing.T) {
	none := copies
	none.Percent = 0
	for _, c := range []struct {
		set    Copies
		change func(*exchange.Exchange)
	}{
		{none, func(*exchange.Exchange) {}},
		{copies, func(ex *exchange.Exchange) { ex.Request.Upgrade = "websocket" }},
		{copies, func(ex *exchange.Exchange) { ex.Request.Method = "CONNECT" }},
	} {
		m := NewMirror(nil, nil, c.set, &MirrorState{})
		ex := exchangetest.New(t)
		c.change(ex)
		equal(t, "copied", m.selects(ex), false)
	}
	half := copies
	half.Percent = 30
	m, n := NewMirror(nil, nil, half, &MirrorState{}), 0
	ex := exchangetest.New(t)
	for range 10_000 {
		if m.selects(ex) {
			n++
		}
	}
	if n < 2700 || n > 3300 {
		t.Errorf("%d of 10000 are copied, want about 3000", n)
	}
}

// A copy holds nothing of the exchange that it was made from.
func TestACopyOutlivesItsExchange(t *testing.T) {
	line := []byte("X-A: value of a field")
	ex := exchangetest.New(t, exchangetest.Head("GET", "/x"))
	ex.Request.Header.AddField(unsafeString(line[:3]), unsafeString(line[5:]))
	c := newCopy(ex)
	clear(line)
	c.newSubrequest(time.Second)
	field := c.subrequest.Request.Header.All()[0]
	equal(t, "field", field.Name+": "+field.Value, "X-A: value of a field")
}

func unsafeString(b []byte) string { return unsafe.String(&b[0], len(b)) }
