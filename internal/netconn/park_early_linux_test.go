package netconn_test

import (
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"headgate/internal/clock"
	"headgate/internal/netconn"
)

// served returns a connection of our own that has served once and is to wait now, and
// what serves it.
func served(t *testing.T) (c *netconn.Conn, far *net.TCPConn, serve func() error) {
	t.Helper()
	c, far = socketPair(t)
	var b netconn.Buffer
	serve = func() error {
		return c.ServeOrQuiet(&b, func() bool {
			c.Write(b.Bytes())
			b.Use(b.Len())
			return true
		})
	}
	exchangeByte(t, far, func() {
		if err := serve(); err != netconn.ErrQuiet {
			t.Fatalf("got %v, want that the wait is given up", err)
		}
	})
	return c, far, serve
}

// exchangeByte sends a byte, lets it be served, and wants it back.
func exchangeByte(t *testing.T, far *net.TCPConn, serve func()) {
	t.Helper()
	far.Write([]byte("x"))
	serve()
	far.SetReadDeadline(time.Now().Add(patience))
	if n, err := far.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Fatalf("got %d bytes back, %v", n, err)
	}
}

// A new connection that was served is parked before the poller hears of it, once.
func TestServedConnectionIsParkedAtOnce(t *testing.T) {
	c, far, serve := served(t)
	socket := c.NetConn().(*netconn.Socket)
	resumed := make(chan struct{}, 1)
	if !c.ParkWait(func() { resumed <- struct{}{} }) {
		t.Fatal("it was not parked")
	}
	awaitParked(t, 1)
	if netconn.IsPolled(socket) {
		t.Error("the poller has heard of it")
	}
	end := make(chan error, 1)
	exchangeByte(t, far, func() {
		<-resumed
		go func() { end <- serve() }()
	})
	for until := time.Now().Add(patience); !netconn.IsPolled(socket); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatal("its second wait is not the poller's")
		}
	}
	// Silent for a while, it is parked as any other is.
	if err := <-end; err != netconn.ErrQuiet {
		t.Errorf("got %v", err)
	}
	if netconn.IsKnown(c) {
		t.Error("while it waited in a goroutine the watcher was told of it too")
	}
	c.Close()
}

func TestEarlyParkedConnectionEndsInTime(t *testing.T) {
	c, _, serve := served(t)
	c.SetReadUntil(clock.Now()) // which the wait given up does not look at any more
	resumed := make(chan struct{})
	if !c.Park(clock.Now()+int64(50*time.Millisecond), func() { close(resumed) }) {
		t.Fatal("it was not parked")
	}
	<-resumed
	if err := serve(); !errors.Is(err, netconn.ErrTimeout) {
		t.Errorf("got %v, want a time-out", err)
	}
}

func TestEarlyParkedConnectionIsKicked(t *testing.T) {
	c, _, serve := served(t)
	resumed := make(chan struct{})
	if !c.ParkWait(func() { close(resumed) }) {
		t.Fatal("it was not parked")
	}
	c.Kick()
	<-resumed
	if err := serve(); !errors.Is(err, netconn.ErrKicked) {
		t.Errorf("got %v, want the kick", err)
	}
	c.SetReadWait(20 * time.Millisecond)
	if err := serve(); !errors.Is(err, netconn.ErrTimeout) {
		t.Errorf("after the kick: %v, want a time-out", err)
	}
}

// A connection that is closed while it is parked leaves another alone that is parked
// with the number of its descriptor already.
func TestParkedConnectionsWithOneNumber(t *testing.T) {
	before, _, _ := served(t)
	number := netconn.Descriptor(before.NetConn().(*netconn.Socket))
	gone := make(chan struct{})
	if !before.ParkWait(func() { close(gone) }) {
		t.Fatal("it was not parked")
	}
	l := listening(t)
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	before.NetConn().Close()
	near, err := l.Accept() // which takes the least number that is free
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if got := netconn.Descriptor(near.(*netconn.Socket)); got != number {
		t.Skipf("the number %d went to somebody else, %d came", number, got)
	}
	now := netconn.New(near)
	resumed := make(chan struct{})
	if !now.Park(clock.Now()+int64(patience), func() { close(resumed) }) {
		t.Fatal("the second was not parked")
	}
	before.Close()
	<-gone
	far.Write([]byte("x"))
	select {
	case <-resumed:
	case <-time.After(patience):
		t.Fatal("the second is not woken any more")
	}
	awaitParked(t, 0)
}
