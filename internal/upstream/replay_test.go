package upstream

import (
	"io"
	"testing"

	"headgate/internal/exchange"
)

// endless is a body whose bytes have come, and whose end has not.
type endless struct{ text string }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text)
	e.text = e.text[n:]
	return n, nil
}

func (e *endless) Ready() bool  { return true }
func (e *endless) Close() error { return nil }

// A copy of a request needs its bytes, and not its end: over HTTP/2 that may come in a
// frame of its own, behind the answer.
func TestABodyIsKeptBeforeItsEndIsTold(t *testing.T) {
	r := newReplay(&endless{"hello"}, 5, 8)
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
	ex := &exchange.Exchange{Received: 5}
	if r.rewind(ex) {
		t.Error("it can be sent again without its end")
	}

	unknown := newReplay(&endless{"hello"}, -1, 8)
	unknown.Read(make([]byte, 16))
	if _, ok := unknown.all(); ok {
		t.Error("a body of unknown length is there before its end")
	}
	long := newReplay(&endless{"too long a body"}, 15, 8)
	if _, err := io.ReadFull(long, make([]byte, 15)); err != nil {
		t.Fatal(err)
	}
	if _, ok := long.all(); ok {
		t.Error("a body that is too long is kept")
	}
}
