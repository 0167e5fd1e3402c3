//go:build !linux

package listen

import (
	"syscall"
	"time"
)

func control(syscall.RawConn, bool) error { return nil }

func sharePackets(syscall.RawConn) error { return nil }

func share(syscall.Conn, bool) {}

// emptyQueue lets the accept loop take the clients that wait in the system's
// queue before the socket is closed.
func (s *Socket) emptyQueue() {
	s.file.SetDeadline(time.Now().Add(queueTime))
	s.accepting.Wait()
}
