package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"headgate/internal/exchange"
)

// endless is a body that is always at hand.
type endless struct{ left int }

func (b *endless) Read(p []byte) (int, error) {
	n := min(len(p), b.left)
	if b.left -= n; b.left == 0 {
		return n, io.EOF
	}
	return n, nil
}
func (b *endless) Ready() bool  { return true }
func (b *endless) Close() error { return nil }

// large answers with so many bytes; the length is not told.
func large(n int) option {
	return source(func(ex *exchange.Exchange) *exchange.Answer {
		ex.Response.Status, ex.Response.Length = 200, -1
		ex.Response.Body = &endless{n}
		return nil
	})
}

func TestWindowsHold(t *testing.T) {
	p := newProxy(t, "", large(100000))
	c := p.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	read := func(n int) {
		t.Helper()
		for n > 0 {
			f, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			d, ok := f.(*http2.DataFrame)
			if !ok {
				continue
			}
			if n -= len(d.Data()); n < 0 {
				t.Fatalf("%d bytes too many", -n)
			}
		}
	}
	c.request(1, true, get...)
	c.flush()
	read(1000)
	// A larger initial window opens the windows there are.
	c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3000})
	c.flush()
	read(2000)
	c.WriteWindowUpdate(1, 500)
	c.flush()
	read(500)
	// A smaller one makes them negative: nothing comes until that is made good.
	c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	c.WriteWindowUpdate(1, 3000)
	c.WritePing(false, [8]byte{1})
	c.flush()
	if f, err := c.next(); err != nil || f.Header().Type != http2.FramePing {
		t.Fatalf("got %v, %v", f, err)
	}
	c.WriteWindowUpdate(1, 10)
	c.flush()
	read(10)
	// The connection's own window ends it at 65535.
	c.WriteWindowUpdate(1, 1<<20)
	c.flush()
	read(65535 - 3510)
	c.WriteWindowUpdate(0, 1<<20)
	c.flush()
	if rs := c.await(1); len(rs.body) != 100000-65535 {
		t.Errorf("got %d bytes at the end", len(rs.body))
	}
}

// paused is a body of unknown length that ends only when it is let go.
type paused struct {
	bytes.Reader
	end chan struct{}
}

func (b *paused) Read(p []byte) (int, error) {
	if b.Len() == 0 {
		<-b.end
	}
	return b.Reader.Read(p)
}
func (b *paused) Ready() bool  { return b.Len() > 0 }
func (b *paused) Close() error { return nil }

// TestABodyEndsInAWindowBelowZero takes some of a body and makes the window smaller than
// that. The end is a frame without content, which needs no window.
func TestABodyEndsInAWindowBelowZero(t *testing.T) {
	end := make(chan struct{})
	p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
		ex.Response.Status, ex.Response.Length = 200, -1
		ex.Response.Body = &paused{*bytes.NewReader(make([]byte, 1000)), end}
		return nil
	}))
	c := p.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	c.request(1, true, get...)
	c.flush()
	for got := 0; got < 1000; {
		f, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := f.(*http2.DataFrame); ok {
			got += len(d.Data())
		}
	}
	c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	c.WritePing(false, [8]byte{1})
	c.flush()
	if f, err := c.next(); err != nil || f.Header().Type != http2.FramePing {
		t.Fatalf("got %v, %v", f, err)
	}
	close(end)
	if rs := c.await(1); rs.reset != 0 || len(rs.body) != 0 {
		t.Errorf("the end: %+v", rs)
	}
}

func TestWindowOfZeroForEverIsCut(t *testing.T) {
	p := newProxy(t, "", large(100000), limits(func(port *exchange.Port) { port.WriteIdle = 50 * time.Millisecond }))
	c := p.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	c.request(1, true, get...)
	c.flush()
	if rs := c.await(1); rs.status != "200" || rs.reset != http2.ErrCodeCancel {
		t.Errorf("got %+v", rs)
	}
	if e := p.logged(); e.reason != exchange.ClientTimeout {
		t.Errorf("logged %+v", e)
	}
}

func TestClientThatNeverReadsIsCut(t *testing.T) {
	p := newProxy(t, "", large(1<<30), limits(func(port *exchange.Port) { port.WriteIdle = 100 * time.Millisecond }))
	c := p.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	c.WriteWindowUpdate(0, 1<<30)
	c.request(1, true, get...)
	c.flush()
	if e := p.logged(); e.reason != exchange.ClientTimeout || e.sent > 64<<20 {
		t.Errorf("logged %+v", e)
	}
}

// TestBlockedStreamDoesNotHoldOthers opens a stream without a window and then
// others.
func TestBlockedStreamDoesNotHoldOthers(t *testing.T) {
	p := newProxy(t, "", large(20000))
	c := p.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	c.request(1, true, get...)
	c.request(3, true, get...)
	c.WriteWindowUpdate(3, 20000)
	c.flush()
	if rs := c.await(3); len(rs.body) != 20000 {
		t.Errorf("got %d bytes", len(rs.body))
	}
}

// TestUrgentGoesFirst fills the connection's window with one stream and asks for
// two others meanwhile; when it opens, the urgent one comes first.
func TestUrgentGoesFirst(t *testing.T) {
	for _, how := range []string{"field", "frame before", "frame behind"} {
		t.Run(how, func(t *testing.T) {
			// A stream whose worker has not run yet has nothing to send, however
			// urgent it is; that is seldom, and never five times in turn.
			var order []uint32
			for range 5 {
				order = orderOfFrames(t, how)
				// Once in a while the one that waited longest goes first. The
				// least urgent may not be among the first at all.
				i, j := slices.Index(order, 9), slices.Index(order, 7)
				if i >= 0 && i <= 1 && (j < 0 || j > i) {
					return
				}
			}
			t.Errorf("the frames came as %v", order)
		})
	}
}

// orderOfFrames returns the streams of the first frames that a client gets when
// its window opens for many streams, of which 9 is urgent and 7 is not.
func orderOfFrames(t *testing.T, how string) []uint32 {
	p := newProxy(t, "", large(100000))
	c := p.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	for id := uint32(1); id < 6; id += 2 {
		c.request(id, true, get...) // 65535 of 300000 bytes
	}
	c.flush()
	for left := 65535; left > 0; {
		f, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := f.(*http2.DataFrame); ok {
			left -= len(d.Data())
		}
	}
	slow, fast := append(bytesFields(get), "priority", "u=6"), bytesFields(get)
	update := append([]byte{0, 0, 0, 9}, "u=0"...)
	switch how {
	case "field":
		fast = append(fast, "priority", "u=0, i")
	case "frame before":
		c.WriteRawFrame(0x10, 0, 0, update)
	}
	c.request(7, true, slow...)
	c.request(9, true, fast...)
	if how == "frame behind" {
		c.WriteRawFrame(0x10, 0, 0, update)
	}
	c.flush()
	for n := 0; n < 2; { // both wait when their heads are here
		f, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Header().Type == http2.FrameHeaders {
			n++
		}
	}
	c.WritePing(false, [8]byte{})
	c.flush()
	c.next()
	c.WriteWindowUpdate(0, 1<<20)
	c.flush()
	var order []uint32
	for len(order) < 20 {
		f, err := c.next()
		if err != nil {
			break
		}
		if d, ok := f.(*http2.DataFrame); ok {
			order = append(order, d.StreamID)
		}
	}
	return order
}

// TestUploadsDoNotFillMemory sends more than anyone takes.
func TestUploadsDoNotFillMemory(t *testing.T) {
	hold := make(chan struct{})
	p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
		<-hold
		ex.Response.Status = 200
		return nil
	}))
	defer close(hold)
	c := p.dial()
	for id := uint32(1); id < 100; id += 2 {
		c.request(id, false, post...)
	}
	for id := uint32(1); id < 100; id += 2 {
		for range 4 {
			c.WriteData(id, false, make([]byte, 16000))
		}
	}
	c.flush()
	if code := c.goAway(); code != http2.ErrCodeFlowControl {
		t.Errorf("got %v", code)
	}
}

func TestStreamWindowHolds(t *testing.T) {
	hold := make(chan struct{})
	p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
		<-hold
		return exchange.Fail(exchange.Internal, "")
	}))
	defer close(hold)
	c := p.dial()
	c.request(1, false, post...)
	for range 5 {
		c.WriteData(1, false, make([]byte, 16000))
	}
	c.flush()
	if rs := c.await(1); rs.reset != http2.ErrCodeFlowControl {
		t.Errorf("got %+v", rs)
	}
}

func TestBodyThatPausesIsCut(t *testing.T) {
	got := make(chan seen, 1)
	p := newProxy(t, "", recorder(got), limits(func(port *exchange.Port) { port.Limits.BodyIdle = 30 * time.Millisecond }))
	c := p.dial()
	c.request(1, false, post...)
	c.WriteData(1, false, []byte("abc"))
	c.flush()
	if s := <-got; s.body != "abc request_timeout: the request body paused for too long" {
		t.Errorf("got %+v", s)
	}
}

// TestManyAtOnce runs many requests with bodies through one connection.
func TestManyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, options ...option) {
		addr := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			io.Copy(w, r.Body)
		})
		p := newProxy(t, addr, options...)
		cl := p.client()
		errs := make(chan error, 64)
		for i := range cap(errs) {
			go func() {
				want := bytes.Repeat([]byte{byte(i)}, i*i*i)
				rs, err := cl.Post(p.url("/"), "text/plain", bytes.NewReader(want))
				if err == nil {
					var got []byte
					if got, err = io.ReadAll(rs.Body); err == nil && !bytes.Equal(got, want) {
						err = fmt.Errorf("%d: got %d bytes, want %d", i, len(got), len(want))
					}
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}
