package listen

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How a dead client is found on an idle connection.
const (
	keepAliveIdle     = 60 // seconds of silence before the first question
	keepAliveInterval = 15 // seconds between questions
	keepAliveCount    = 4  // unanswered questions that end a connection
)

// control sets up a socket before it is bound. Accepted connections inherit all
// of it, so it costs nothing for each.
func control(raw syscall.RawConn, shared bool) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		set := func(level, option, value int) {
			if err := unix.SetsockoptInt(int(fd), level, option, value); err != nil && failed == nil {
				failed = os.NewSyscallError("setsockopt", err)
			}
		}
		set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		set(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepAliveIdle)
		set(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAliveInterval)
		set(unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveCount)
		if shared {
			set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
	})
	return errors.Join(err, failed)
}

// share allows or forbids other sockets of this user on overlapping addresses.
func (s *Socket) share(yes bool) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	value := 0
	if yes {
		value = 1
	}
	// An error only means that the address is refused as busy.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, value)
	})
}

// emptyQueue ends the accept loop when it has taken every client that waits in
// the system's queue: to close a listening socket resets those. New clients are
// kept from queueing by a filter that drops their first packet; a client that
// goes on trying finds the address closed.
func (s *Socket) emptyQueue() {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	dropAll := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	program := unix.SockFprog{Len: uint16(len(dropAll)), Filter: &dropAll[0]}
	// Without the filter the queue is emptied all the same, as far as it goes.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	})
	s.file.SetDeadline(time.Now().Add(queueTime))
	s.accepting.Wait()
}
