//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is the client and the upstream of the rows of latency, in one thread: two that
// share a core wait for each other for as long as the system lets one of them run, some
// milliseconds, which is far more than what is measured. While a client measures it does
// not sleep either.
type loop struct {
	epoll, listener, wake int
	address               string
	served                [][]byte // what came of a request, by descriptor; nil for others

	// resting guards the loop: who serves requests between measurements has it.
	resting sync.WaitGroup
}

// loopAnswer is what the upstream answers, unless it is asked for a path of a small site.
var loopAnswer = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
	strconv.Itoa(len(hundredBytes)) + "\r\n\r\n" + hundredBytes)

// The paths of a small site, and what the upstream answers: a page that is made for each
// request, and a file that may be kept.
const (
	sitePage = "/page"
	siteFile = "/file"
)

var (
	sitePageAnswer = siteAnswer("text/html", "no-store", 8<<10)
	siteFileAnswer = siteAnswer("application/octet-stream", "max-age=3600", 12<<10)
)

func siteAnswer(kind, control string, size int) []byte {
	body := pageText(size)
	return []byte("HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nCache-Control: " + control + "\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// answerTo returns the upstream's answer to a request.
func answerTo(request []byte) []byte {
	switch {
	case bytes.HasPrefix(request, []byte("GET "+sitePage)):
		return sitePageAnswer
	case bytes.HasPrefix(request, []byte("GET "+siteFile)):
		return siteFileAnswer
	}
	return loopAnswer
}

// startLoop starts the upstream.
func startLoop() (*loop, error) {
	l := &loop{epoll: -1, listener: -1, wake: -1}
	if err := l.open(); err != nil {
		l.shut()
		return nil, fmt.Errorf("loop: %w", err)
	}
	l.rest()
	return l, nil
}

func (l *loop) open() (err error) {
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if l.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return err
	}
	if err = unix.Bind(l.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err = unix.Listen(l.listener, 4096); err != nil {
		return err
	}
	at, err := unix.Getsockname(l.listener)
	if err != nil {
		return err
	}
	l.address = fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
	return errors.Join(l.watch(l.listener), l.watch(l.wake))
}

// watch adds a descriptor.
func (l *loop) watch(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// rest serves requests in the background until pause.
func (l *loop) rest() {
	l.resting.Go(func() {
		for {
			stop := false
			_ = l.turn(-1, func(fd int) error { stop = stop || fd == l.wake; return nil }) // a client will tell
			if stop {
				return
			}
		}
	})
}

// pause ends rest.
func (l *loop) pause() {
	one := [8]byte{1}
	_, _ = unix.Write(l.wake, one[:])
	l.resting.Wait()
	_, _ = unix.Read(l.wake, one[:])
}

// stop ends the loop.
func (l *loop) stop() {
	l.pause()
	l.shut()
}

func (l *loop) shut() {
	for fd, buf := range l.served {
		if buf != nil {
			_ = unix.Close(fd)
		}
	}
	for _, fd := range []int{l.listener, l.wake, l.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// alone runs do on a thread of its own and without collections.
// Nothing else turns the loop meanwhile.
func (l *loop) alone(do func() error) error {
	l.pause()
	defer l.rest()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return do()
}

// turn handles what is there: requests itself, other descriptors by client. wait is how
// long it waits for the first; 0 means not at all, less without end.
func (l *loop) turn(wait time.Duration, client func(fd int) error) error {
	var events [64]unix.EpollEvent
	var n int
	if wait == 0 {
		// The scheduler need not hear of a call that does not wait.
		r, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events)), uintptr(len(events)), 0, 0, 0)
		if errno == 0 {
			n = int(r)
		}
	} else {
		var limit *unix.Timespec
		if wait > 0 {
			limit = new(unix.NsecToTimespec(wait.Nanoseconds()))
		}
		r, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), uintptr(unsafe.Pointer(&events)), uintptr(len(events)), uintptr(unsafe.Pointer(limit)), 0, 0)
		if errno == 0 {
			n = int(r)
		}
	}
	for _, event := range events[:n] {
		fd := int(event.Fd)
		switch {
		case fd == l.listener:
			l.accept()
		case fd < len(l.served) && l.served[fd] != nil:
			l.serve(fd)
		default:
			if err := client(fd); err != nil {
				return err
			}
		}
	}
	return nil
}

// accept takes a connection of a proxy.
func (l *loop) accept() {
	fd, _, err := unix.Accept4(l.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return // it has gone again
	}
	if err := errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), l.watch(fd)); err != nil {
		_ = unix.Close(fd)
		return
	}
	for len(l.served) <= fd {
		l.served = append(l.served, nil)
	}
	l.served[fd] = make([]byte, 0, 4<<10)
}

// serve answers a request once its head is there.
func (l *loop) serve(fd int) {
	buf := l.served[fd]
	n, err := rawRead(fd, buf[len(buf):cap(buf)])
	switch {
	case err == unix.EAGAIN:
		return
	case err != nil || n == 0:
		l.served[fd] = nil
		_ = unix.Close(fd)
		return
	}
	buf = buf[:len(buf)+n]
	if bytes.HasSuffix(buf, []byte("\r\n\r\n")) {
		if _, err := rawWrite(fd, answerTo(buf)); err != nil {
			l.served[fd] = nil
			_ = unix.Close(fd)
			return
		}
		buf = buf[:0]
	}
	l.served[fd] = buf
}

// connectLoop returns a connected socket that does not block, which the loop watches.
func (l *loop) connect(address string) (int, error) {
	fd, err := connect(address)
	if err != nil {
		return -1, fmt.Errorf("connect %s: %w", address, err)
	}
	if err := l.watch(fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// rawRead reads without telling the scheduler: the socket does not block.
func rawRead(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// rawWrite writes the whole of p without telling the scheduler.
func rawWrite(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	if int(n) < len(p) {
		return int(n), errors.New("the socket took only a part")
	}
	return int(n), nil
}

// sleepless is how many turns pass between two looks at the deadline.
const sleepless = 1 << 10

// errLate says that answers are missing.
func errLate(have, want int) error {
	return fmt.Errorf("%d of %d requests answered after %v", have, want, patience)
}

// spin turns the loop until over reports that all is done, or until an end. wait is how long
// it may wait for an event; 0 means not at all.
func (l *loop) spin(end time.Time, step func() (over bool, err error), wait func() time.Duration, client func(fd int) error) (late bool, err error) {
	for n := 0; ; n++ {
		over, err := step()
		if over || err != nil {
			return false, err
		}
		if err := l.turn(wait(), client); err != nil {
			return false, err
		}
		if n%sleepless == 0 && time.Now().After(end) {
			return true, nil
		}
	}
}
