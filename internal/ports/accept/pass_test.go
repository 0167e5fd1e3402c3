package accept

import (
	"net"
	"testing"
	"time"

	"headgate/internal/ports/hello"
)

// says is a connection on which a client says something, a piece a read.
type says struct {
	net.Conn
	pieces [][]byte
	room   int // the most that a read had room for
}

func (s *says) Read(p []byte) (int, error) {
	s.room = max(s.room, len(p))
	if len(s.pieces) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}
func (s *says) SetReadDeadline(time.Time) error { return nil }

// A client that announces the longest ClientHello there can be costs no more memory
// than what it sends: thousands of them cost it nothing.
func TestAnAnnouncedHelloCostsNoMemory(t *testing.T) {
	nc := &says{pieces: [][]byte{{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff, 3, 3}}}
	f := &fresh{nc: nc}
	if h, valid := f.readHello(); valid {
		t.Errorf("got %+v of a message that is not whole", h)
	}
	if cap(f.early) > 2*helloRoom || nc.room > 2*helloRoom {
		t.Errorf("11 bytes have taken memory for %d", max(cap(f.early), nc.room))
	}
	// What does come has room, up to the bound.
	nc = &says{}
	for range 100 {
		nc.pieces = append(nc.pieces, append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 0x4000)...))
	}
	copy(nc.pieces[0][5:], []byte{1, 0, 0xff, 0xff})
	f = &fresh{nc: nc}
	f.readHello()
	if len(f.early) < 0xffff || len(f.early) > 2*hello.MaxSize {
		t.Errorf("%d bytes were read of a long one", len(f.early))
	}
}
