//go:build linux

package main

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

// How many connections of HTTP/2 carry the constant rate, and how many streams each has
// open at most.
const (
	latencyH2Connections = 8
	latencyH2Streams     = 64
)

// pacedH2 is a connection of HTTP/2 over TLS.
type pacedH2 struct {
	pacer   *pacer
	number  int
	socket  *quickSocket
	tls     *tls.Conn
	paths   []string // of the requests, in turn; nil means /
	later   [][]byte // the fields of every request but the first, by path
	asked   int      // requests sent
	open    int
	backlog int // due and not sent
	out     []byte
	buf     []byte
	have    int
	bytes   [2 * latencyH2Streams]int // of bodies, by stream
}

// overH2 opens connections to a target. Their requests are for the paths in turn, or for /.
func overH2(t target, host string, paths ...string) func(*pacer, int) (pacedConn, error) {
	return func(p *pacer, number int) (pacedConn, error) {
		fd, err := p.loop.connect(t.address)
		if err != nil {
			return nil, err
		}
		c := &pacedH2{pacer: p, number: number, socket: &quickSocket{loop: p.loop, fd: fd, waits: true}, paths: paths, buf: make([]byte, 2*maxFrame)}
		c.tls = tls.Client(c.socket, t.tls)
		if err := c.greet(host); err != nil {
			_ = unix.Close(fd)
			return nil, fmt.Errorf("h2: %w", err)
		}
		return c, nil
	}
}

func (c *pacedH2) descriptor() int { return c.socket.fd }

// greet shakes hands and begins the connection: with the largest window that there is,
// and a first request, whose fields the others name by their numbers.
func (c *pacedH2) greet(host string) error {
	if err := c.tls.Handshake(); err != nil {
		return err
	}
	first := h2Request(host)
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	writeRequest(e, host, "/")
	for _, path := range append([]string{"/"}, c.paths...) {
		block.Reset()
		writeRequest(e, host, path)
		c.later = append(c.later, bytes.Clone(block.Bytes()))
	}
	if len(c.paths) > 0 {
		c.later = c.later[1:]
	}
	window := frame{kind: frameWindow, payload: binary.BigEndian.AppendUint32(nil, 1<<30)}
	if _, err := c.tls.Write(window.append(first)); err != nil {
		return err
	}
	c.asked = 1
	for c.open = 1; c.open > 0; {
		if err := c.read(func(int) {}); err != nil {
			return err
		}
	}
	c.socket.waits = false
	return nil
}

func (c *pacedH2) send() error {
	c.backlog++
	return c.next()
}

// next sends what is due as far as streams are free.
func (c *pacedH2) next() error {
	c.out = c.out[:0]
	for c.backlog > 0 && c.open < latencyH2Streams {
		c.out = frame{kind: frameHeaders, flags: flagEndStream | flagEndHeaders, stream: uint32(2*c.asked + 1), payload: c.later[(c.number+c.asked)%len(c.later)]}.append(c.out)
		c.backlog--
		c.asked++
		c.open++
	}
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.tls.Write(c.out)
	return err
}

// receive reads answers, and sends what waited for them.
func (c *pacedH2) receive() error {
	err := c.read(func(n int) { c.pacer.answered(c.number, n-1) })
	if err != nil && !errors.Is(err, errNotYet) {
		return fmt.Errorf("h2: %w", err)
	}
	return c.next()
}

// read reads until there is nothing more, and calls done for each request that was
// answered.
func (c *pacedH2) read(done func(n int)) error {
	for {
		n, err := c.tls.Read(c.buf[c.have:])
		c.have += n
		if err != nil {
			return err
		}
		used := 0
		for c.have-used >= 9 {
			h := c.buf[used:c.have]
			size := 9 + (int(h[0])<<16 | int(h[1])<<8 | int(h[2]))
			if size > 9+maxFrame {
				return fmt.Errorf("a frame of %d bytes", size)
			}
			if len(h) < size {
				break
			}
			f := frame{kind: h[3], flags: h[4], stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31), payload: h[9:size]}
			if err := c.handleFrame(f, done); err != nil {
				return err
			}
			used += size
		}
		c.have = copy(c.buf, c.buf[used:c.have])
		if c.socket.waits {
			return nil
		}
	}
}

// handleFrame processes a frame.
func (c *pacedH2) handleFrame(f frame, done func(n int)) error {
	switch f.kind {
	case frameSettings, framePing:
		if f.flags&flagAck == 0 {
			answer := frame{kind: f.kind, flags: flagAck}
			if f.kind == framePing {
				answer.payload = f.payload
			}
			_, err := c.tls.Write(answer.append(nil))
			return err
		}
		return nil
	case frameReset, frameGoAway:
		return fmt.Errorf("refused with a frame of type %d: %x", f.kind, f.payload)
	case frameData, frameHeaders:
	default:
		return nil
	}
	request := int(f.stream-1) / 2
	got := &c.bytes[request%len(c.bytes)]
	if f.kind == frameData {
		p, err := f.content()
		if err != nil {
			return err
		}
		*got += len(p)
	}
	if f.flags&flagEndStream == 0 {
		return nil
	}
	if c.paths == nil && *got != len(hundredBytes) || *got == 0 {
		return fmt.Errorf("%d bytes came of %d", *got, len(hundredBytes))
	}
	*got = 0
	c.open--
	done(request)
	return nil
}

// quickSocket is a socket that does not block, as crypto/tls wants it.
type quickSocket struct {
	loop  *loop
	fd    int
	waits bool // reads wait, and turn the loop meanwhile
}

// notYet says that nothing is there to read. It leaves a connection of crypto/tls whole.
type notYet struct{}

func (notYet) Error() string   { return "nothing is there yet" }
func (notYet) Timeout() bool   { return true }
func (notYet) Temporary() bool { return true }

var errNotYet net.Error = notYet{}

// Read reads.
func (s *quickSocket) Read(p []byte) (int, error) {
	for end := time.Now().Add(patience); ; {
		n, err := rawRead(s.fd, p)
		switch {
		case err == nil && n == 0:
			return 0, net.ErrClosed
		case err == nil:
			return n, nil
		case err == unix.EINTR:
		case err != unix.EAGAIN:
			return 0, err
		case !s.waits:
			return 0, errNotYet
		case time.Now().After(end):
			return 0, errLate(0, 1)
		default:
			_ = s.loop.turn(time.Millisecond, func(int) error { return nil }) // it serves only
		}
	}
}

// Write writes all of p.
func (s *quickSocket) Write(p []byte) (int, error) { return rawWrite(s.fd, p) }

// The other methods of net.Conn, which are not used.
func (s *quickSocket) Close() error                     { return nil }
func (s *quickSocket) LocalAddr() net.Addr              { return nil }
func (s *quickSocket) RemoteAddr() net.Addr             { return nil }
func (s *quickSocket) SetDeadline(time.Time) error      { return nil }
func (s *quickSocket) SetReadDeadline(time.Time) error  { return nil }
func (s *quickSocket) SetWriteDeadline(time.Time) error { return nil }
