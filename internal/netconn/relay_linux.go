package netconn

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNoPipe means that no pipe is available; copying still works.
var errNoPipe = errors.New("no pipe")

// pour moves what is there to read through a pipe. While it waits it holds none.
func (d *direction) pour() (int64, error) {
	d.from.unwatch()
	d.from.rd = readOp{does: draws, pipeMax: maxSplice, leaves: true}
	err := d.from.rawRead()
	p := d.from.rd.pipe
	d.from.rd = readOp{}
	if p == nil {
		return 0, err
	}
	defer givePipe(p)
	n := int64(p.held)
	if n == 0 {
		return 0, err
	}
	if err := d.to.push(p); err != nil {
		return n - int64(p.held), &WriteError{err}
	}
	return n, nil
}

func (c *Conn) onDraw(fd uintptr) bool {
	r := &c.rd
	if r.pipe == nil {
		p, err := takePipe()
		if err != nil {
			r.err = errNoPipe
			return true
		}
		r.pipe = p
	}
	n, err := spliceOnce(int(fd), r.pipe.w, r.pipeMax)
	switch {
	case err == unix.EAGAIN:
		givePipe(r.pipe)
		r.pipe = nil
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

// notConnected reports whether an end could not be forwarded because the peer is gone: the
// other direction has the reason.
func notConnected(err error) bool { return errors.Is(err, syscall.ENOTCONN) }
