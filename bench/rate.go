//go:build linux

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// latencyConnections is how many connections of HTTP/1.1 carry the constant rate.
const latencyConnections = 64

// pacer sends requests at a rate for a while and notes their latencies, each from the
// moment the request was due. The requests go to the connections in turn; one that is
// due on a connection that cannot take it yet is sent once it can, and is charged for
// having waited.
type pacer struct {
	loop  *loop
	pace  pace
	step  time.Duration // from one request to the next
	total int           // requests to send, those of the run-in with them
	conns []pacedConn
	byFD  map[int]pacedConn

	began     time.Time
	due       int // requests that were due so far
	done      int // requests that were answered
	latencies []time.Duration
}

// pacedConn is one connection of a pacer. Its n-th request is due at the connection's
// place in the turn plus n whole turns.
type pacedConn interface {
	descriptor() int
	// send sends the next request, or notes that it is due.
	send() error
	// receive reads what has come.
	receive() error
}

// pace is how a constant rate is sent.
type pace struct {
	rate            float64 // requests a second
	runIn, duration time.Duration
	conns           int
	measured        func() error // called when the run-in is over; nil means not
	sleeps          bool         // the loop waits between requests, as it has no core of its own
}

// constantRate measures over the connections that open opens, for the pace's duration after
// its run-in.
func (l *loop) constantRate(pace pace, open func(p *pacer, number int) (pacedConn, error)) ([]time.Duration, error) {
	p := &pacer{
		loop: l, pace: pace, step: time.Duration(float64(time.Second) / pace.rate),
		total: int(pace.rate * (pace.runIn + pace.duration).Seconds()),
		byFD:  map[int]pacedConn{},
	}
	p.latencies = make([]time.Duration, 0, p.total)
	defer p.close()
	err := l.alone(func() error {
		for i := range pace.conns {
			c, err := open(p, i)
			if err != nil {
				return err
			}
			p.conns = append(p.conns, c)
			p.byFD[c.descriptor()] = c
		}
		return p.run()
	})
	return p.latencies, err
}

// close closes every socket. Errors do not matter any more.
func (p *pacer) close() {
	for _, c := range p.conns {
		_ = unix.Close(c.descriptor())
	}
}

// run sends all requests and waits for all answers.
func (p *pacer) run() error {
	p.began = time.Now()
	end := p.began.Add(time.Duration(p.total)*p.step + patience)
	late, err := p.loop.spin(end, p.sendDue, p.untilNext, func(fd int) error {
		if c := p.byFD[fd]; c != nil {
			return c.receive()
		}
		return nil
	})
	if late {
		return errLate(p.done, p.total)
	}
	return err
}

// untilNext returns how long the loop may wait for an event: until the next request is due.
func (p *pacer) untilNext() time.Duration {
	if !p.pace.sleeps {
		return 0
	}
	return max(0, time.Duration(p.due)*p.step-time.Since(p.began))
}

// sendDue sends what has come due, and reports whether all was answered.
func (p *pacer) sendDue() (over bool, err error) {
	now := min(int(time.Since(p.began)/p.step)+1, p.total)
	for ; p.due < now; p.due++ {
		if p.pace.measured != nil && time.Duration(p.due)*p.step >= p.pace.runIn {
			if err := p.pace.measured(); err != nil {
				return false, err
			}
			p.pace.measured = nil
		}
		if err := p.conns[p.due%len(p.conns)].send(); err != nil {
			return false, err
		}
	}
	return p.done == p.total, nil
}

// answered notes that the n-th request of a connection was answered.
func (p *pacer) answered(number, n int) {
	p.done++
	if due := time.Duration(number+n*len(p.conns)) * p.step; due >= p.pace.runIn {
		p.latencies = append(p.latencies, time.Since(p.began)-due)
	}
}

// pacedH1 is a connection of HTTP/1.1.
type pacedH1 struct {
	pacer   *pacer
	number  int
	fd      int
	tls     *tls.Conn // nil without TLS
	request []byte
	waiting bool // for an answer
	done    int  // requests answered
	backlog int  // due and not sent
	buf     []byte
	have    int
}

// overH1 opens connections to an address.
func overH1(address string) func(*pacer, int) (pacedConn, error) {
	return func(p *pacer, number int) (pacedConn, error) {
		fd, err := p.loop.connect(address)
		if err != nil {
			return nil, err
		}
		return &pacedH1{pacer: p, number: number, fd: fd, request: get("/", "latency"), buf: make([]byte, 4<<10)}, nil
	}
}

// overTLS1 opens connections with TLS to a target.
func overTLS1(t target) func(*pacer, int) (pacedConn, error) {
	return func(p *pacer, number int) (pacedConn, error) {
		fd, err := p.loop.connect(t.address)
		if err != nil {
			return nil, err
		}
		socket := &quickSocket{loop: p.loop, fd: fd, waits: true}
		c := &pacedH1{pacer: p, number: number, fd: fd, tls: tls.Client(socket, t.tls), request: get("/", "latency"), buf: make([]byte, 4<<10)}
		if err := c.tls.Handshake(); err != nil {
			_ = unix.Close(fd)
			return nil, fmt.Errorf("TLS: %w", err)
		}
		socket.waits = false
		return c, nil
	}
}

func (c *pacedH1) descriptor() int { return c.fd }

func (c *pacedH1) send() error {
	c.backlog++
	return c.next()
}

// next sends what is due if nothing is under way.
func (c *pacedH1) next() error {
	if c.waiting || c.backlog == 0 {
		return nil
	}
	c.backlog--
	c.waiting = true
	if err := c.write(c.request); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (c *pacedH1) write(p []byte) (err error) {
	if c.tls != nil {
		_, err = c.tls.Write(p)
		return err
	}
	_, err = rawWrite(c.fd, p)
	return err
}

func (c *pacedH1) read(p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Read(p)
	}
	return rawRead(c.fd, p)
}

// receive reads what has come, and sends the next request when that was the answer.
func (c *pacedH1) receive() error {
	n, err := c.read(c.buf[c.have:])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, errNotYet):
		return nil
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case n == 0:
		return fmt.Errorf("closed after %d bytes of an answer", c.have)
	}
	c.have += n
	h, ok := parseHead(c.buf[:c.have])
	switch {
	case !ok && c.have < len(c.buf) || ok && c.have < h.size+h.length:
		return nil
	case !ok || !c.waiting || c.have > h.size+h.length:
		return fmt.Errorf("no answer that was asked for: %q", c.buf[:min(c.have, 200)])
	case h.status != "200" || h.close:
		return fmt.Errorf("status %s, close %v", h.status, h.close)
	}
	c.pacer.answered(c.number, c.done)
	c.done++
	c.have, c.waiting = 0, false
	return c.next()
}

// connect returns a connected socket that does not block.
func connect(address string) (int, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}),
		unix.SetNonblock(fd, true))
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
