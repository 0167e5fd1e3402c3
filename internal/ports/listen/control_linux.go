package listen

import (
	"errors"
	"math"
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

// sharePackets allows a socket for datagrams beside others, before it is bound.
func sharePackets(raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	})
	return errors.Join(err, failed)
}

// share allows or forbids other sockets of this user on overlapping addresses.
func share(l syscall.Conn, yes bool) {
	raw, err := l.SyscallConn()
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

// deferTime is how long the system withholds a silent client, in seconds; it
// treats 1 as the time until it sends its part of the handshake again.
const deferTime = 1

// DeferAccept sets whether clients are accepted only when they have sent something, or
// have closed their side. It is for protocols in which the client sends first. A silent
// client is accepted after a second. On a system without this option, all are accepted
// at once.
func (s *Socket) DeferAccept(yes bool) {
	if s.deferred.Swap(yes) != yes {
		s.setDeferred(yes)
	}
}

func (s *Socket) setDeferred(yes bool) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	value := 0
	if yes {
		value = deferTime
	}
	// It is only a saving.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, value)
	})
}

// isDeferred reports whether the system keeps back clients that say nothing.
func (s *Socket) isDeferred() (yes bool) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT)
		yes = err == nil && n > 0
	})
	return yes
}

// emptyQueue ends the accept loop when it has accepted all clients in the
// system's queue: closing a listening socket resets those.
func (s *Socket) emptyQueue() {
	s.setDeferred(false)
	s.hide()
	s.file.SetDeadline(time.Now().Add(queueTime))
	s.accepting.Wait()
}

// hasQueue reports whether clients wait in the system's queue.
func (s *Socket) hasQueue() (yes bool) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		yes = err == nil && n == 1
	})
	return yes
}

// hide prevents new clients from queueing, while handshakes in progress still complete. The
// socket is bound to an interface that does not exist, so that new clients find the address
// closed, or its new listener. If the kernel does not allow that (before 5.7, without
// CAP_NET_RAW), a filter drops the first packet of a handshake: the client tries again a
// second later. Without either, the queue is emptied as far as possible.
func (s *Socket) hide() {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, math.MaxInt32) == nil {
			return
		}
		filter := dropSYN()
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	})
}

// dropSYN returns a filter that drops packets which start a handshake. The last
// packet of a handshake passes: for that client the connection is already
// established. A filter of a TCP socket sees packets from the TCP header on.
func dropSYN() []unix.SockFilter {
	const (
		flags = 13 // offset of the flags in the TCP header
		syn   = 0x02
		ack   = 0x10
		all   = 0xffffffff
	)
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: all},
	}
}
