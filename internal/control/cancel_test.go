package control

import (
	"errors"
	"io"
	"net"
	"testing"

	"headgate/internal/testhouse"
)

// visit is a participant that comes as a client while a change is prepared, and refuses it.
type visit struct {
	address string
	came    *client
}

func (v *visit) Prepare(next *Next) (Change, error) {
	if v.address == "" {
		return visited{}, nil
	}
	c, err := connect(v.address)
	if err != nil {
		return nil, err
	}
	v.came = c
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		return nil, err
	}
	return nil, errors.New("refused")
}

type visited struct{}

func (visited) Commit() {}
func (visited) Cancel() {}

// A socket that was opened beside one that listens on more addresses gets its clients at
// once. When the change is not made, they are served.
func TestNobodyIsLostByAChangeThatIsRefused(t *testing.T) {
	number := testhouse.Ports(t, 1)[0]
	h := prepare(t, document(201, "a 0.0.0.0:"+number))
	v := &visit{}
	h.c.Join(v)
	h.run()
	v.address = net.JoinHostPort("127.0.0.1", number)
	if err := h.try(document(202, "a "+v.address)); err == nil || err.Error() != "refused" {
		t.Fatalf("got %v", err)
	}
	defer v.came.Close()
	if got, err := v.came.answer(); got != 201 {
		t.Errorf("who came meanwhile got %d and %v, want 201", got, err)
	}
	v.address = ""
	expectStatus(t, "127.0.0.1:"+number, 201)
	h.apply(document(203, "a 127.0.0.1:"+number))
	expectStatus(t, "127.0.0.1:"+number, 203)
}
