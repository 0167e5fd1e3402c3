package accept

import (
	"io"
	"testing"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

func TestAFreshConnectionWithSomethingToReadStays(t *testing.T) {
	near, far := testhouse.Pair(t)
	f := &fresh{nc: near, began: 1}
	io.WriteString(far, "hello")
	testhouse.Eventually(t, "the bytes are there", func() bool { return netconn.HasUnread(near) })
	if f.Yield(1) {
		t.Error("it made room for another")
	}
	if _, err := io.ReadFull(near, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if !f.Yield(1) {
		t.Error("with nothing to read it made no room")
	}
}
