package upstream

import (
	"io"
	"os"
	"testing"

	"headgate/internal/exchange"
)

// endless is a body whose bytes have come, and whose end has not.
type endless struct {
	text   string
	closed bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.closed {
		return 0, os.ErrClosed
	}
	n := copy(p, e.text)
	e.text = e.text[n:]
	return n, nil
}

func (e *endless) Ready() bool { return true }
func (e *endless) Close() error {
	e.closed = true
	return nil
}

// Sending a body again takes its bytes, and not its end: over HTTP/2 that may come in a
// frame of its own, after the response of a fast server.
func TestABodyIsKeptBeforeItsEndIsTold(t *testing.T) {
	r := newReplay(&endless{text: "hello"}, 5, 8)
	if _, ok := r.all(); ok {
		t.Error("it is there before it was read")
	}
	if n, err := r.Read(make([]byte, 16)); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	if kept, ok := r.all(); !ok || string(kept) != "hello" {
		t.Errorf("got %q, %v", kept, ok)
	}
	r.Close()
	if kept, ok := r.all(); !ok || string(kept) != "hello" {
		t.Errorf("closed: got %q, %v", kept, ok)
	}
	if n, err := r.Read(make([]byte, 16)); err == nil {
		t.Errorf("read %d bytes more", n)
	}
	ex := &exchange.Exchange{Received: 5}
	if !r.rewind(ex) {
		t.Error("it cannot be sent again")
	}
	if again, err := io.ReadAll(r); err != nil || string(again) != "hello" {
		t.Errorf("sent again: got %q, %v", again, err)
	}

	unknown := newReplay(&endless{text: "hello"}, -1, 8)
	unknown.Read(make([]byte, 16))
	if _, ok := unknown.all(); ok {
		t.Error("a body of unknown length is there before its end")
	}
	long := newReplay(&endless{text: "too long a body"}, 15, 8)
	if _, err := io.ReadFull(long, make([]byte, 15)); err != nil {
		t.Fatal(err)
	}
	if _, ok := long.all(); ok {
		t.Error("a body that is too long is kept")
	}
}
