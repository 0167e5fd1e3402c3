//go:build !linux

package netconn

import (
	"net"
	"os"
	"syscall"
)

func rawOf(net.Conn) syscall.RawConn { return nil }

func (c *Conn) read() (int, error) { return c.readPlain() }

func (c *Conn) rawRead() error { return syscall.EINVAL }

func (c *Conn) onReadable(uintptr) bool { return true }

func (c *Conn) onWritable(uintptr) bool { return true }

func (c *Conn) writeNow(p []byte) (int, error) { return c.writePlain(p) }

func (c *Conn) writeBehind(p []byte) (int, error) { return c.writePlain(p) }

func (c *Conn) unsent() int { return 0 }

// isClosed reports true: there is nothing to wait for.
func (c *Conn) isClosed() bool { return true }

func (c *Conn) writeLast(p []byte) error {
	_, err := c.writePlain(p)
	return err
}

// Quiet reports whether the connection is open and has nothing to read. On this
// system this cannot be determined and is assumed, unless a read has found the
// end.
func (c *Conn) Quiet() bool { return !c.over }

// Silent reports whether the socket is open and has nothing to read. On this
// system this cannot be determined and is assumed.
func (c *Conn) Silent() bool { return true }

// Peer reports what is known of the peer. On this system nothing can be known
// without a read.
func (c *Conn) Peer() Presence { return Present }

// HasLeft reports false on this system: only a read could detect it.
func HasLeft(net.Conn) bool { return false }

// HasUnread reports false on this system: only a read could detect it.
func HasUnread(net.Conn) bool { return false }

type pipe struct{}

// Splice moves nothing on this system.
func Splice(dst, src *Conn, n int64) (int64, bool, error) { return 0, false, nil }

// SpliceReady moves nothing on this system.
func SpliceReady(dst, src *Conn) (int64, error) { return 0, nil }

// SendFile moves nothing on this system.
func SendFile(dst *Conn, f *os.File, off, n int64) (int64, bool, error) { return 0, false, nil }
