package netconn_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/clock"
	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come at once.
const patience = time.Minute

// pair returns a connection and the socket at its other end.
func pair(t testing.TB) (*netconn.Conn, *net.TCPConn) {
	t.Helper()
	near, far := testhouse.Pair(t)
	c := netconn.New(near)
	c.SetReadWait(patience)
	c.SetWriteWait(patience)
	return c, far
}

// plain hides what a connection is, so that the plain way is taken.
type plain struct{ *net.TCPConn }

// peer is the other end of a connection.
type peer interface {
	net.Conn
	CloseWrite() error
}

// each runs a test over the fast way, with a connection of package net and with one of
// our own, over the plain one, and under TLS.
func each(t *testing.T, test func(t *testing.T, c *netconn.Conn, far peer)) {
	t.Run("fast", func(t *testing.T) {
		c, far := pair(t)
		test(t, c, far)
	})
	if socket := socketPair; socket != nil {
		t.Run("socket", func(t *testing.T) {
			c, far := socket(t)
			test(t, c, far)
		})
	}
	t.Run("plain", func(t *testing.T) {
		c, far := pair(t)
		p := netconn.New(plain{c.NetConn().(*net.TCPConn)})
		p.SetReadWait(patience)
		p.SetWriteWait(patience)
		test(t, p, far)
	})
	t.Run("TLS", func(t *testing.T) {
		near, far := testhouse.Pair(t)
		c, client := overTLS(t, near, far)
		test(t, c, client)
	})
}

func TestAskSendsAndWaits(t *testing.T) {
	each(t, func(t *testing.T, c *netconn.Conn, far peer) {
		go io.Copy(far, far) // echoes
		var b netconn.Buffer
		for i := range 200 {
			want := strings.Repeat("x", i+1)
			c.Write([]byte(want))
			for got := 0; got < len(want); got = b.Len() {
				if err := c.RoundTrip(&b); err != nil {
					t.Fatal(err)
				}
			}
			if string(b.Bytes()) != want {
				t.Fatalf("got %q, want %q", b.Bytes(), want)
			}
			b.Use(b.Len())
			b.Release()
		}
		far.CloseWrite()
	})
}

// Abort resets a peer that was not told an end, and no other.
func TestAbortResetsWhoWasToldNoEnd(t *testing.T) {
	for _, ended := range []bool{false, true} {
		each(t, func(t *testing.T, c *netconn.Conn, far peer) {
			c.Write([]byte("some"))
			if err := c.Flush(); err != nil {
				t.Fatal(err)
			}
			if ended {
				c.CloseWrite()
			}
			b := make([]byte, 4)
			if _, err := io.ReadFull(far, b); err != nil {
				t.Fatal(err)
			}
			c.Abort()
			if _, err := far.Read(b); ended && err != io.EOF || !ended && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("told of the end %v: the peer got %v", ended, err)
			}
		})
	}
}

// Who has not got what was to be sent before the end was told no end.
func TestAbortResetsWhoTakesNothing(t *testing.T) {
	for name, end := range map[string]func(*netconn.Conn) error{"CloseWrite": (*netconn.Conn).CloseWrite, "Finish": (*netconn.Conn).Finish} {
		near, far := testhouse.Pair(t)
		testhouse.FillUp(near, far)
		c := netconn.New(near)
		c.SetWriteWait(10 * time.Millisecond)
		c.SetPending(append(c.Pending(), "last"...))
		if err := end(c); !errors.Is(err, netconn.ErrTimeout) {
			t.Fatalf("%s to who takes nothing got %v, want %v", name, err, netconn.ErrTimeout)
		}
		c.Abort()
		if n, err := io.Copy(io.Discard, far); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the peer got %d bytes and then %v, want a reset", name, n, err)
		}
	}
}

func TestServeSeesEveryByte(t *testing.T) {
	each(t, func(t *testing.T, c *netconn.Conn, far peer) {
		const rounds = 3000
		go func() {
			for i := range rounds {
				far.Write(bytes.Repeat([]byte{byte(i)}, 1+i%9000))
			}
			far.CloseWrite()
		}()
		var back int
		read := make(chan struct{})
		go func() {
			defer close(read)
			n, _ := io.Copy(io.Discard, far)
			back = int(n)
		}()
		var b netconn.Buffer
		got, want := 0, 0
		for i := range rounds {
			want += 1 + i%9000
		}
		err := c.Serve(&b, func() bool {
			got += b.Len()
			c.Write(b.Bytes())
			b.Use(b.Len())
			return true
		})
		c.CloseWrite()
		<-read
		if err != io.EOF || got != want || back != want {
			t.Errorf("got %d and back %d of %d bytes, %v", got, back, want, err)
		}
	})
}

// When a process has stood still, what a wait was for may be there when its time is over.
func TestWhatCameInTimeIsReadWhenTheTimeIsOver(t *testing.T) {
	each(t, func(t *testing.T, c *netconn.Conn, far peer) {
		if _, is := c.NetConn().(plain); is {
			t.Skip("the plain way cannot tell")
		}
		if _, err := far.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		testhouse.Eventually(t, "a byte is there", func() bool { return !c.Silent() })
		c.SetReadUntil(clock.Now() - 1)
		var b netconn.Buffer
		if err := c.RoundTrip(&b); err != nil || string(b.Bytes()) != "x" {
			t.Errorf("got %q, %v; want %q", b.Bytes(), err, "x")
		}
		b.Use(b.Len())
		if err := c.RoundTrip(&b); err != netconn.ErrTimeout {
			t.Errorf("with nothing there: got %v, want that it was too late", err)
		}
	})
}

// A wait ends in time, also when its deadline had to be looked at in between.
func TestReadWaitEnds(t *testing.T) {
	for _, wait := range []time.Duration{30 * time.Millisecond, 3100 * time.Millisecond} {
		each(t, func(t *testing.T, c *netconn.Conn, _ peer) {
			t.Parallel()
			wait := wait
			c.SetReadWait(wait)
			begun := time.Now()
			var b netconn.Buffer
			err := c.Fill(&b)
			if took := time.Since(begun); !errors.Is(err, netconn.ErrTimeout) || took < wait || took > wait+3*time.Second {
				t.Errorf("got %v after %v, want a time-out after %v", err, took, wait)
			}
			wait = min(wait, 100*time.Millisecond)
			begun = time.Now()
			c.SetReadUntil(clock.Now() + int64(wait))
			err = c.Serve(&b, func() bool { return true })
			if took := time.Since(begun); !errors.Is(err, netconn.ErrTimeout) || took < wait-time.Millisecond || took > wait+3*time.Second {
				t.Errorf("Serve: got %v after %v, want a time-out after %v", err, took, wait)
			}
		})
	}
}

// A deadline that is left over from one wait does not cut the next.
func TestDeadlinesDoNotLeakIntoTheNextWait(t *testing.T) {
	each(t, func(t *testing.T, c *netconn.Conn, far peer) {
		var b netconn.Buffer
		for range 20 {
			c.SetReadWait(20 * time.Millisecond)
			far.Write([]byte("x"))
			if err := c.Fill(&b); err != nil {
				t.Fatal(err)
			}
			b.Use(1)
			c.SetReadWait(patience)
			timer := time.AfterFunc(30*time.Millisecond, func() { far.Write([]byte("y")) })
			if err := c.Fill(&b); err != nil {
				t.Fatal(err)
			}
			b.Use(1)
			timer.Stop()
		}
	})
}

func TestKickIsNeverLost(t *testing.T) {
	each(t, func(t *testing.T, c *netconn.Conn, far peer) {
		var b netconn.Buffer
		var kicks sync.WaitGroup
		for i := range 500 {
			if i%3 == 0 {
				c.Kick() // before
			} else {
				kicks.Go(c.Kick) // while
			}
			c.SetReadWait([]time.Duration{patience, 0, patience / 2}[i%3])
			var err error
			if i%2 == 0 {
				err = c.Fill(&b)
			} else {
				err = c.Serve(&b, func() bool { return true })
			}
			if !errors.Is(err, netconn.ErrKicked) {
				t.Fatalf("round %d: %v", i, err)
			}
			kicks.Wait()
		}
		// And none is left over.
		c.SetReadWait(patience)
		far.Write([]byte("x"))
		if err := c.Fill(&b); err != nil {
			t.Error(err)
		}
	})
}

func TestWatchEndsAWait(t *testing.T) {
	each(t, func(t *testing.T, c *netconn.Conn, _ peer) {
		t.Parallel()
		enough := errors.New("enough")
		looks := 0
		c.SetWatch(func() error {
			if looks++; looks == 2 {
				return enough
			}
			return nil
		})
		var b netconn.Buffer
		c.Write([]byte("ask"))
		if err := c.RoundTrip(&b); err != enough || looks != 2 {
			t.Errorf("got %v after %d looks", err, looks)
		}
	})
}

// The end of a stream is seen at once although it came along with the first
// bytes.
func TestEndThatCameWithTheFirstBytes(t *testing.T) {
	c, far := pair(t)
	far.Write([]byte("last"))
	far.CloseWrite()
	var b netconn.Buffer
	begun := time.Now()
	err := c.Serve(&b, func() bool {
		b.Use(b.Len())
		return true
	})
	if took := time.Since(begun); err != io.EOF || took > time.Second {
		t.Errorf("got %v after %v", err, took)
	}
}

func TestPresence(t *testing.T) {
	c, far := pair(t)
	if p := c.Peer(); p != netconn.Present || !c.Quiet() {
		t.Errorf("at first: %v", p)
	}
	far.Write([]byte("x"))
	var b netconn.Buffer
	if err := c.Fill(&b); err != nil || c.Peer() != netconn.Present {
		t.Errorf("after a byte: %v, %v", c.Peer(), err)
	}
	b.Use(1)
	far.CloseWrite()
	if err := c.Fill(&b); err != io.EOF || c.Peer() != netconn.HalfClosed || c.Quiet() {
		t.Errorf("after its end: %v, %v", c.Peer(), err)
	}
	c.Close()
	if p := c.Peer(); p != netconn.Gone {
		t.Errorf("after our close: %v", p)
	}
	c, far = pair(t)
	far.SetLinger(0)
	far.Close()
	if err := c.Fill(&b); err == nil || c.Peer() == netconn.Present {
		t.Errorf("after a reset: %v, %v", c.Peer(), err)
	}
}

func TestWriteIsCutOnlyWithoutProgress(t *testing.T) {
	c, far := pair(t)
	far.SetReadBuffer(256 << 10)
	c.SetWriteWait(time.Second)
	big := make([]byte, 64<<20)
	wrote := make(chan error)
	go func() {
		_, err := c.Write(big)
		wrote <- err
	}()
	piece := make([]byte, 512<<10)
	for range 8 {
		io.ReadFull(far, piece)
		select {
		case err := <-wrote:
			t.Fatalf("cut although the peer reads: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
	if err := <-wrote; !errors.Is(err, netconn.ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

func TestWriteSendsWhatIsCollectedBeforeMuch(t *testing.T) {
	for _, size := range []int{20 << 10, 64 << 10, 8 << 20} {
		near, far := pair(t)
		want := append([]byte("head"), bytes.Repeat([]byte("0123456789abcde"), size/15)...)
		got := make(chan []byte, 1)
		go func() {
			all, err := io.ReadAll(far)
			if err != nil {
				t.Error(err)
			}
			got <- all
		}()
		near.Write(want[:4])
		if n, err := near.Write(want[4:]); n != len(want)-4 || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
		if err := near.CloseWrite(); err != nil {
			t.Error(err)
		}
		if all := <-got; !bytes.Equal(all, want) {
			t.Errorf("%d bytes came, want %d, or they differ", len(all), len(want))
		}
	}
}
