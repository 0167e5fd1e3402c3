package netconn_test

import (
	"bytes"
	"net"
	"testing"

	"headgate/internal/netconn"
)

// fill puts n bytes of c into b, piece by piece.
func fill(t *testing.T, c *netconn.Conn, far net.Conn, b *netconn.Buffer, text []byte) {
	t.Helper()
	far.Write(text)
	for want := b.Len() + len(text); b.Len() < want; {
		if b.Full() && !b.Grow(1<<20) {
			t.Fatal("full")
		}
		if err := c.Fill(b); err != nil {
			t.Fatal(err)
		}
	}
}

// What is held stays as it is, whatever is read behind it and wherever.
func TestHeldBytesStay(t *testing.T) {
	c, far := pair(t)
	for _, size := range []int{1, 100, 3000, 3800, 4096, 9000} {
		var b netconn.Buffer
		head := bytes.Repeat([]byte("h"), size)
		fill(t, c, far, &b, head)
		view := b.Bytes()[:size]
		b.Use(size)
		b.Hold()
		for range 20 {
			fill(t, c, far, &b, bytes.Repeat([]byte("b"), 900))
			b.Use(900)
			b.Release()
		}
		fill(t, c, far, &b, []byte("xyz"))
		b.Use(1)
		b.Compact()
		if string(b.Bytes()) != "yz" {
			t.Errorf("unused bytes: %q", b.Bytes())
		}
		b.Drop()
		fill(t, c, far, &b, []byte("new"))
		b.Use(3)
		b.Drop()
		if !bytes.Equal(view, head) {
			t.Errorf("size %d: what was held has changed", size)
		}
		b.Free()
		b.Drop()
		if b.Cap() != 0 {
			t.Errorf("%d bytes are kept", b.Cap())
		}
	}
}
