package netconn

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SendFile moves n bytes of a regular file, from off on, to dst without copying them
// through this process. What dst has collected is sent first. It reports false if that
// is not possible, and then nothing was moved. The wait for the client is bounded by the
// write wait, anew with every piece. io.ErrUnexpectedEOF means that the file ended early, a
// *WriteError that dst failed.
func SendFile(dst *Conn, f *os.File, off, n int64) (moved int64, ok bool, err error) {
	if dst.raw == nil || n <= 0 {
		return 0, false, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false, nil
	}
	if err := dst.Flush(); err != nil {
		return 0, true, &WriteError{err}
	}
	p := &pipe{file: true, off: off}
	inUse := raw.Control(func(fd uintptr) {
		p.r = int(fd)
		for moved < n && err == nil {
			p.held = int(min(n-moved, maxSplice))
			piece := int64(p.held)
			err = dst.push(p)
			moved += piece - int64(p.held)
		}
	})
	switch {
	case inUse != nil:
		return 0, false, nil
	case err == io.ErrUnexpectedEOF:
		return moved, true, err
	case err != nil:
		return moved, true, &WriteError{err}
	}
	return moved, true, nil
}

// sendFileOnce sends what it can of a file without waiting for the socket. Where the piece
// is in memory, the call goes past the scheduler, as that of a splice does; where the disk
// may have to be read, it is a system call to the scheduler.
func sendFileOnce(p *pipe, to int) (int, error) {
	for {
		n, err := 0, error(nil)
		if offsetsFit && p.cached() {
			sent, _, errno := syscall.RawSyscall6(unix.SYS_SENDFILE, uintptr(to), uintptr(p.r), uintptr(unsafe.Pointer(&p.off)), uintptr(p.held), 0, 0)
			if n = int(sent); errno != 0 {
				n, err = 0, errno
			}
		} else {
			n, err = syscall.Sendfile(to, p.r, &p.off, p.held)
		}
		switch {
		case err == syscall.EINTR:
			continue
		case err == nil && n == 0:
			return 0, io.ErrUnexpectedEOF
		}
		return max(n, 0), err
	}
}

// offsetsFit is whether the system call takes offsets of 64 bits.
const offsetsFit = strconv.IntSize == 64

// cached reports whether the piece of the file is in memory, as far as its first and its
// last byte show: the kernel reads ahead. It is false where the file system cannot tell.
func (p *pipe) cached() bool {
	var b [1]byte
	at := [...][]byte{b[:]}
	for _, off := range [...]int64{p.off, p.off + int64(p.held) - 1} {
		if n, err := unix.Preadv2(p.r, at[:], off, unix.RWF_NOWAIT); n != 1 || err != nil {
			return false
		}
	}
	return true
}
