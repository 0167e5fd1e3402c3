//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// latencyConnections is how many connections carry the constant rate.
const latencyConnections = 64

// finest is the least time between two looks at the clock.
const finest = 20 * time.Microsecond

// constantRate sends requests at a rate for a while and returns their latencies,
// each from the moment the request was due. The requests go to the connections in
// turn; one that is due on a connection that still waits is sent once the answer
// is there, and is charged for having waited.
//
// It is one loop over epoll, because on a machine of few cores the load shares
// its core with the upstream: goroutines and timers would cost more than what is
// measured.
func constantRate(address string, rate float64, d time.Duration) ([]time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := newPacer(address, rate, d)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.run(); err != nil {
		return nil, err
	}
	return p.latencies, nil
}

// pacer sends at a constant rate.
type pacer struct {
	epoll, timer int
	request      []byte
	step         time.Duration // from one request to the next
	total        int           // requests to send
	conns        []pacedConn

	began     time.Time
	due       int // requests that were due so far
	latencies []time.Duration
}

// pacedConn is one connection of a pacer. Its n-th request is due at the
// connection's place in the turn plus n whole turns.
type pacedConn struct {
	fd       int
	waiting  bool // for an answer
	answered int
	backlog  int // due and not sent
	buf      []byte
	have     int
}

func newPacer(address string, rate float64, d time.Duration) (*pacer, error) {
	p := &pacer{
		epoll: -1, timer: -1,
		request: get("/", "latency"),
		step:    time.Duration(float64(time.Second) / rate),
		total:   int(rate * d.Seconds()),
	}
	p.latencies = make([]time.Duration, 0, p.total)
	err := p.open(address)
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pacer) open(address string) (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("timer: %w", err)
	}
	if err := p.watch(p.timer, -1, unix.EPOLLIN); err != nil {
		return err
	}
	every := unix.NsecToTimespec(max(p.step, finest).Nanoseconds())
	if err := unix.TimerfdSettime(p.timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		return fmt.Errorf("timer: %w", err)
	}
	for i := range latencyConnections {
		fd, err := connect(address)
		if err != nil {
			return fmt.Errorf("connect %s: %w", address, err)
		}
		p.conns = append(p.conns, pacedConn{fd: fd, buf: make([]byte, 4<<10)})
		if err := p.watch(fd, i, unix.EPOLLIN); err != nil {
			return err
		}
	}
	return nil
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

// watch adds a descriptor to epoll; number is what its events carry.
func (p *pacer) watch(fd, number int, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(number)}
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// close closes every socket. Errors do not matter any more.
func (p *pacer) close() {
	for i := range p.conns {
		_ = unix.Close(p.conns[i].fd)
	}
	_ = unix.Close(p.timer)
	_ = unix.Close(p.epoll)
}

// run sends all requests and waits for all answers.
func (p *pacer) run() error {
	events := make([]unix.EpollEvent, latencyConnections+1)
	p.began = time.Now()
	last := p.began.Add(time.Duration(p.total)*p.step + patience)
	for len(p.latencies) < p.total {
		n, err := unix.EpollWait(p.epoll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, event := range events[:max(n, 0)] {
			if event.Fd < 0 {
				p.tick()
				continue
			}
			if err := p.receive(int(event.Fd)); err != nil {
				return err
			}
		}
		if err := p.sendDue(); err != nil {
			return err
		}
		if time.Now().After(last) {
			return fmt.Errorf("%d of %d requests answered after %v", len(p.latencies), p.total, patience)
		}
	}
	return nil
}

// tick lets the timer go on: one that nobody reads does not fire again. How often
// it fired does not matter, the clock does.
func (p *pacer) tick() {
	var count [8]byte
	_, _ = unix.Read(p.timer, count[:])
}

// sendDue sends what has come due on connections that are free.
func (p *pacer) sendDue() error {
	now := min(int(time.Since(p.began)/p.step)+1, p.total)
	for ; p.due < now; p.due++ {
		c := &p.conns[p.due%len(p.conns)]
		c.backlog++
		if err := p.sendNext(c); err != nil {
			return err
		}
	}
	return nil
}

func (p *pacer) sendNext(c *pacedConn) error {
	if c.waiting || c.backlog == 0 {
		return nil
	}
	c.backlog--
	c.waiting = true
	n, err := unix.Write(c.fd, p.request)
	if err == nil && n < len(p.request) {
		err = errors.New("the socket took only a part")
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// receive reads what has come on a connection, and sends its next request when
// that was the answer.
func (p *pacer) receive(number int) error {
	c := &p.conns[number]
	n, err := unix.Read(c.fd, c.buf[c.have:])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
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
	due := time.Duration(number+c.answered*len(p.conns)) * p.step
	p.latencies = append(p.latencies, time.Since(p.began)-due)
	c.answered++
	c.have, c.waiting = 0, false
	return p.sendNext(c)
}
