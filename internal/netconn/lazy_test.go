package netconn

import (
	"io"
	"net"
	"testing"
	"time"

	"headgate/internal/clock"
	"headgate/internal/testhouse"
)

// TestHeldBytesGoWithTheNextRead shows what is sent when: nothing while it is
// held, all of it before the wait for an answer.
func TestHeldBytesGoWithTheNextRead(t *testing.T) {
	server, client := testhouse.Pair(t)
	l := NewLazy(server)
	l.holding = true
	for _, s := range []string{"one ", "two"} {
		if _, err := l.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	l.holding = false
	client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := client.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatalf("the peer got %d bytes that are held", n)
	}
	client.SetReadDeadline(time.Now().Add(time.Minute))
	answered := make(chan error, 1)
	go func() {
		var p [16]byte
		n, err := l.Read(p[:])
		if err == nil && string(p[:n]) != "answer" {
			err = io.ErrUnexpectedEOF
		}
		answered <- err
	}()
	got := make([]byte, len("one two"))
	if _, err := io.ReadFull(client, got); err != nil || string(got) != "one two" {
		t.Fatalf("the peer got %q, %v; want %q", got, err, "one two")
	}
	if _, err := client.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}

func TestLazyWritesAtOnceWhenNotTold(t *testing.T) {
	server, client := testhouse.Pair(t)
	l := NewLazy(server)
	if _, err := l.Write([]byte("now")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(client, got); err != nil || string(got) != "now" {
		t.Fatalf("the peer got %q, %v; want %q", got, err, "now")
	}
}

// TestYieldWhileWaiting holds that a reader gives up its turn for the time of its
// wait, and that it does not read on when it gets none any more.
func TestYieldWhileWaiting(t *testing.T) {
	server, client := testhouse.Pair(t)
	l := NewLazy(server)
	held, waits := true, make(chan struct{}, 1)
	var denied error
	l.Yield(func() { held = false; waits <- struct{}{} }, func() error { held = denied == nil; return denied })
	for _, denied = range []error{nil, io.ErrClosedPipe} {
		go func() {
			<-waits
			client.Write([]byte("x"))
		}()
		n, err := l.Read(make([]byte, 8))
		if n != 1 || err != denied || held != (denied == nil) {
			t.Errorf("got %d bytes, %v, turn %v; want 1, %v, %v", n, err, held, denied, denied == nil)
		}
	}
	l.Yield(nil, nil)
	go client.Write([]byte("y"))
	if n, err := l.Read(make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("without a turn: %d, %v", n, err)
	}
}

// sealed stands for TLS over a Lazy.
type sealed struct{ *Lazy }

func (s sealed) NetConn() net.Conn { return s.Lazy }

func TestALongWaitUnderTLSHoldsNoMemory(t *testing.T) {
	server, client := testhouse.Pair(t)
	c := New(sealed{NewLazy(server)})
	if c.lazy.direct == nil {
		t.Skip("this system waits in the plain way")
	}
	var b Buffer
	var held []int
	c.SetReadWait(testhouse.Patience)
	c.SetWatch(func() error {
		if held = append(held, b.Cap()); len(held) == 2 {
			client.Write([]byte("x"))
		}
		return nil
	})
	if err := c.Fill(&b); err != nil || string(b.Bytes()) != "x" {
		t.Fatalf("got %q, %v; want %q", b.Bytes(), err, "x")
	}
	if len(held) != 2 || held[0] == 0 || held[1] != 0 {
		t.Fatalf("memory at the looks of the wait was %v, want some and then none", held)
	}
}

// records stands for TLS with records of two bytes.
type records struct{ sealed }

func (r records) Read(p []byte) (int, error) {
	for n := 0; ; {
		m, err := r.Lazy.Read(p[n : n+1])
		switch n += m; {
		case err != nil:
			return 0, err
		case n == 2:
			return n, nil
		}
	}
}

func TestALateReadUnderTLSTakesWhatIsThereAndWaitsNoLongerForTheRest(t *testing.T) {
	server, client := testhouse.Pair(t)
	c := New(records{sealed{NewLazy(server)}})
	if c.lazy.direct == nil {
		t.Skip("this system cannot tell what is there")
	}
	var b Buffer
	for _, sent := range []string{"ab", "c"} {
		if _, err := client.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		testhouse.Eventually(t, "bytes are there", func() bool { return !c.Silent() })
		c.SetReadUntil(clock.Now() - 1)
		err := c.Fill(&b)
		if sent == "ab" && (err != nil || string(b.Bytes()) != "ab") {
			t.Errorf("got %q, %v; want %q", b.Bytes(), err, sent)
		}
		if sent == "c" && err != ErrTimeout {
			t.Errorf("a part of a record: got %v, want that it was too late", err)
		}
		b.Use(b.Len())
	}
}
