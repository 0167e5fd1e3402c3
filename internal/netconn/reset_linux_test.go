package netconn_test

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
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

// A write that hears of a reset comes back with that after the socket tells of it no more.
// A read between the two takes nothing for an orderly end.
func TestAReadWaitsForWhatAWriteHasHeard(t *testing.T) {
	for _, heard := range []error{unix.ECONNRESET, nil} {
		c, far := pair(t)
		raw, err := c.NetConn().(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		netconn.BeginWrite(c)
		if heard != nil {
			far.SetLinger(0)
		}
		far.Close()
		for told := error(nil); told == nil && heard != nil; { // as a write hears of it
			raw.Control(func(fd uintptr) {
				if n, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); n != 0 {
					told = syscall.Errno(n)
				}
			})
		}
		end := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			end <- err
		}()
		for range 1000 {
			runtime.Gosched()
		}
		netconn.EndWrite(c, heard)
		err = <-end
		if heard == nil && err != io.EOF || heard != nil && !errors.Is(err, heard) {
			t.Errorf("the write has heard %v, and the read ended by %v", heard, err)
		}
		c.Close()
	}
}

// Who does not take what comes for the idle time is not told that it was all.
func TestRelayResetsWhoTakesNothing(t *testing.T) {
	near, client := pair(t)
	toServer, server := pair(t)
	begun := make(chan struct{})
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() {
		server.Write(make([]byte, 64<<10))
		close(begun)
		io.Copy(server, zeros{})
	})
	<-begun // or nothing might move for the idle time, on a busy machine
	_, end := join(near, toServer, client, server, time.Second)
	if err := <-end; !errors.Is(err, netconn.ErrTimeout) {
		t.Errorf("got %v, want %v", err, netconn.ErrTimeout)
	}
	isReset(t, "the client", client)
}

// Who looks at a connection, as when the time of a wait is over, keeps no reset from reads.
func TestAResetThatALookHasHeardOfIsToldByReads(t *testing.T) {
	for name, look := range map[string]func(c *netconn.Conn) bool{
		"silent": (*netconn.Conn).Silent,
		"peer":   func(c *netconn.Conn) bool { return c.Peer() == netconn.Present },
	} {
		c, far := pair(t)
		far.SetLinger(0)
		far.Close()
		testhouse.Eventually(t, "the reset comes", func() bool { return !look(c) })
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the read ended by %v", name, err)
		}
		c.Close()
	}
}

// Under TLS, too, a read takes no reset for an orderly end that a write or a look has heard of.
func TestAResetIsToldByReadsOfTLS(t *testing.T) {
	hear := map[string]func(t *testing.T, c *netconn.Conn){
		"a write": func(t *testing.T, c *netconn.Conn) {
			var err error
			for p := make([]byte, 64<<10); err == nil; {
				if _, err = c.Write(p); err == nil {
					err = c.Flush()
				}
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the write heard of %v", err)
			}
		},
		"a look": func(t *testing.T, c *netconn.Conn) {
			testhouse.Eventually(t, "the reset comes", func() bool { return c.Peer() == netconn.Gone })
		},
		"a look for bytes": func(t *testing.T, c *netconn.Conn) {
			testhouse.Eventually(t, "the reset comes", func() bool { return !c.Silent() })
		},
	}
	read := map[string]func(c *netconn.Conn) error{
		"memory": func(c *netconn.Conn) error {
			_, err := c.Read(make([]byte, 100))
			return err
		},
		"a wait": func(c *netconn.Conn) error {
			var b netconn.Buffer
			defer b.Drop()
			return c.Serve(&b, func() bool { b.Use(b.Len()); return true })
		},
	}
	for who, hear := range hear {
		for into, read := range read {
			near, far := testhouse.Pair(t)
			c, client := overTLS(t, near, far)
			client.Write([]byte("x"))
			if err := c.Fill(new(netconn.Buffer)); err != nil {
				t.Fatal(err)
			}
			far.SetLinger(0)
			far.Close()
			hear(t, c)
			if err := read(c); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s heard of a reset, and the read in %s ended by %v", who, into, err)
			}
			c.Close()
		}
	}
}
