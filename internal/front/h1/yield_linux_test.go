package h1_test

import (
	"io"
	"testing"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

// A client whose request has come, but is not read yet since the machine is busy, does not
// lose it to another that needs the room. Here nobody reads it at all.
func TestAConnectionWithARequestThatIsNotReadYetStays(t *testing.T) {
	p := newProxy(t, "127.0.0.1:1")
	near, far := testhouse.Pair(t)
	c := p.front.NewConn(near, 1<<40)
	t.Cleanup(func() { c.Close() })
	_, since, ok := c.Idle()
	if !ok {
		t.Fatal("it is not idle")
	}
	io.WriteString(far, "GET / HTTP/1.1\r\n")
	testhouse.Eventually(t, "the request is there", func() bool { return netconn.HasUnread(near) })
	if c.Yield(since) {
		t.Error("it made room for another")
	}
	if _, err := io.ReadFull(near, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if !c.Yield(since) {
		t.Error("with nothing to read it made no room")
	}
}
