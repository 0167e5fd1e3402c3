package netconn_test

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"headgate/internal/netconn"
)

// A socket tells of a reset once. When a write has heard of it, a read tells of it too,
// behind what came before, and does not take it for an orderly end.
func TestAResetThatAWriteHasHeardOfIsToldByReads(t *testing.T) {
	for name, read := range map[string]func(c *netconn.Conn) error{
		"into a buffer": func(c *netconn.Conn) error {
			var b netconn.Buffer
			defer b.Drop()
			return c.Fill(&b)
		},
		"into memory": func(c *netconn.Conn) error {
			_, err := c.Read(make([]byte, 100))
			return err
		},
		"into a pipe": func(c *netconn.Conn) error {
			dst, _ := pair(t)
			defer dst.Close()
			_, _, err := netconn.Splice(dst, c, -1)
			if err == nil {
				return io.EOF
			}
			return err
		},
	} {
		for _, orderly := range []bool{false, true} {
			c, far := pair(t)
			far.Write([]byte("x"))
			heard := syscall.ECONNRESET
			if orderly {
				far.CloseWrite()
				heard = syscall.EPIPE
			} else {
				far.SetLinger(0)
			}
			far.Close()
			var err error
			for p := make([]byte, 64<<10); err == nil; {
				if _, err = c.Write(p); err == nil {
					err = c.Flush()
				}
			}
			if !errors.Is(err, heard) {
				t.Errorf("%s: the write heard of %v, want %v", name, err, heard)
			}
			for err = nil; err == nil; {
				err = read(c)
			}
			if orderly && err != io.EOF || !orderly && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s, orderly %v: the read ended by %v", name, orderly, err)
			}
			c.Close()
		}
	}
}
