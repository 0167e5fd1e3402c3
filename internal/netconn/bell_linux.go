package netconn

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bell wakes a goroutine through the runtime's poller.
//
// A goroutine that is made ready by a channel or a lock makes the runtime wake another
// processor if one is idle, which finds nothing if the goroutine that sent waits at once:
// two futex calls and a thread that searches for work. A goroutine that the poller reports
// is run by the processor that looks, which is the one that has become free.
type Bell struct {
	file *os.File
	raw  syscall.RawConn
	ring func(uintptr)
	look func(uintptr) bool
}

// NewBell returns a bell. Wait ends when ready reports true. It needs a descriptor, and may
// fail where there is none left.
func NewBell(ready func() bool) (*Bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	file := os.NewFile(uintptr(fd), "bell")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Bell{
		file: file, raw: raw,
		ring: func(fd uintptr) { sysRemind(int(fd), reminder) },
		look: func(uintptr) bool { return ready() },
	}, nil
}

// Ring makes Wait look again, soon: when a processor has nothing else to run. Any goroutine
// may call it; after Close it does nothing.
func (b *Bell) Ring() { _ = b.raw.Control(b.ring) }

// Wait waits until ready reports true, which it asks at the start and after each Ring. One
// goroutine may wait at a time. The error is that of a closed file.
func (b *Bell) Wait() error { return b.raw.Read(b.look) }

// Close releases the descriptor.
func (b *Bell) Close() error { return b.file.Close() }
