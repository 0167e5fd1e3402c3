//go:build !linux

package listen

import (
	"syscall"
	"time"
)

func control(syscall.RawConn, bool) error { return nil }

func sharePackets(syscall.RawConn) error { return nil }

func share(syscall.Conn, bool) {}

// DeferAccept does nothing on this system: all clients come at once.
func (s *Socket) DeferAccept(bool) {}

// isDeferred reports false: no clients are kept back.
func (s *Socket) isDeferred() bool { return false }

// hasHandshakes reports false: clients come when their handshake is over.
func hasHandshakes(uint16) bool { return false }

// hasQueue reports false: this system cannot be queried.
func (s *Socket) hasQueue() bool { return false }

// emptyQueue lets the accept loop accept the clients in the system's queue
// before the socket is closed.
func (s *Socket) emptyQueue() {
	s.file.SetDeadline(time.Now().Add(queueTime))
	s.accepting.Wait()
}
