package netconn

import (
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSplice is the maximum number of bytes of one call, and the requested
// size of a pipe. A call with that many takes about 0.2 ms.
const maxSplice = 1 << 20

// readyRounds is how many pieces SpliceReady moves at most, so that its caller
// comes to know that bytes are moving although the sender never pauses.
const readyRounds = 64

// pipe carries bytes from one socket to another inside the kernel. With file it is a file
// that is sent: r is its descriptor, off is where the next bytes are.
type pipe struct {
	r, w int
	held int // bytes in the pipe, or left to be sent of the file
	file bool
	off  int64
}

// pipes keeps pipes for the next splice. A pipe that the collector drops from
// the pool closes its descriptors by a cleanup.
var pipes sync.Pool

func takePipe() (*pipe, error) {
	if p, _ := pipes.Get().(*pipe); p != nil {
		return p, nil
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	// A smaller pipe works too, only slower.
	unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, maxSplice)
	p := &pipe{r: fds[0], w: fds[1]}
	runtime.AddCleanup(p, closePipe, fds)
	return p, nil
}

func closePipe(fds [2]int) {
	unix.Close(fds[0])
	unix.Close(fds[1])
}

// givePipe keeps an empty pipe. One that still holds bytes is dropped.
func givePipe(p *pipe) {
	if p.held == 0 {
		pipes.Put(p)
	}
}

// Splice moves n bytes from src to dst without copying them through this
// process; a negative n means until the end of the stream. What dst has
// collected is sent first. It reports false if the two cannot be spliced and
// nothing was moved. Both sides are bounded by their own waits, which restart
// with every piece. io.ErrUnexpectedEOF means that src ended early.
func Splice(dst, src *Conn, n int64) (moved int64, ok bool, err error) {
	if dst.raw == nil || src.raw == nil {
		return 0, false, nil
	}
	p, err := takePipe()
	if err != nil {
		return 0, false, nil // no descriptor to be had: copying still works
	}
	defer givePipe(p)
	if err := dst.Flush(); err != nil {
		return 0, true, &WriteError{err}
	}
	for n < 0 || moved < n {
		limit := maxSplice
		if n >= 0 {
			limit = int(min(n-moved, maxSplice))
		}
		if err := src.pull(p, limit); err != nil {
			if err == io.EOF && n >= 0 {
				err = io.ErrUnexpectedEOF
			}
			if err == io.EOF {
				err = nil
			}
			return moved, true, err
		}
		got := int64(p.held)
		err := dst.push(p)
		moved += got - int64(p.held)
		if err != nil {
			return moved, true, &WriteError{err}
		}
	}
	return moved, true, nil
}

// SpliceReady moves what is there to read from src to dst inside the kernel,
// without waiting for more; a sender that never pauses is left after a while. It
// returns io.EOF at the end of the stream, and moves nothing where Splice would
// not. Nothing may be collected in dst.
func SpliceReady(dst, src *Conn) (moved int64, err error) {
	if dst.raw == nil || src.raw == nil {
		return 0, nil
	}
	p, err := takePipe()
	if err != nil {
		return 0, nil
	}
	defer givePipe(p)
	for range readyRounds {
		src.rd = readOp{does: pulls, pipe: p, pipeMax: maxSplice, once: true}
		err := src.rawRead()
		src.rd = readOp{}
		if err == unix.EAGAIN {
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
		moved += int64(p.held)
		if err := dst.push(p); err != nil {
			return moved, &WriteError{err}
		}
	}
	return moved, nil
}

// pull moves at least one and at most limit bytes from the socket into p.
func (c *Conn) pull(p *pipe, limit int) error {
	c.rd = readOp{does: pulls, pipe: p, pipeMax: limit}
	err := c.rawRead()
	c.rd = readOp{}
	return err
}

func (c *Conn) onPull(fd uintptr) bool {
	r := &c.rd
	n, err := spliceOnce(int(fd), r.pipe.w, r.pipeMax)
	switch {
	case err == unix.EAGAIN && r.once:
		r.err = unix.EAGAIN
	case err == unix.EAGAIN:
		c.arm()
		return false
	case err != nil:
		r.err = os.NewSyscallError("splice", err)
	case n == 0:
		r.err = c.readError(0)
	default:
		r.pipe.held += n
	}
	return true
}

// push moves all that p holds to the socket.
func (c *Conn) push(p *pipe) error {
	c.wr = writeOp{pipe: p}
	err := c.rawWrite()
	c.wr = writeOp{}
	return err
}

func (c *Conn) onPush(fd uintptr) bool {
	w := &c.wr
	for w.pipe.held > 0 {
		n, err := w.pipe.sendOnce(int(fd))
		if err == unix.EAGAIN {
			c.armWrite()
			return false
		}
		if err != nil {
			if err == unix.ECONNRESET {
				c.reset.Store(true)
			}
			w.err = w.pipe.failure(err)
			return true
		}
		w.pipe.held -= n
	}
	return true
}

// sendOnce moves what it can to a socket without waiting for it.
func (p *pipe) sendOnce(to int) (int, error) {
	if p.file {
		return sendFileOnce(p, to)
	}
	return spliceOnce(p.r, to, p.held)
}

// failure returns the error of a push.
func (p *pipe) failure(err error) error {
	switch {
	case err == io.ErrUnexpectedEOF:
		return err
	case p.file:
		return os.NewSyscallError("sendfile", err)
	}
	return os.NewSyscallError("splice", err)
}

// spliceOnce moves what it can without waiting. Like the calls of a socket it
// bypasses the scheduler: it does not block, and a scheduler that assumed so would
// wake another thread for each piece.
func spliceOnce(from, to, limit int) (int, error) {
	const flags = unix.SPLICE_F_MOVE | unix.SPLICE_F_NONBLOCK
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(limit), flags)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
			continue
		}
		return 0, errno
	}
}
