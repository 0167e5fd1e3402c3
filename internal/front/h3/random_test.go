package h3_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// TestRandomLives lets clients send anything at any moment over a network that loses
// datagrams, while requests and responses begin, go on and break off in every way. A client
// gets what its requests stand for, in full or with a reset, and nothing is left when all
// have gone.
func TestRandomLives(t *testing.T) {
	t.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true") // the sockets are not those of package net
	testhouse.Lives(t, 1, 25, lead)
}

// lead leads one life.
func lead(t *testing.T, seed uint64) {
	w := &testhouse.World{}
	f := newFront(t, w.Respond, func(port *exchange.Port) {
		pipe := &exchange.Pipeline{Source: w, Log: w.Log()}
		port.Serve, port.Refuse, port.Streams = pipe.Serve, pipe.Refuse, 30
	})
	f.speak.Log = w.Log()
	c := &liver{World: w, front: f, random: rand.New(rand.NewPCG(seed, 1))}
	c.live(t)
	testhouse.Eventually(t, "memory is given back", func() bool { return f.speak.Clients.Used() == 0 })
	w.Report(t, c.told)
}

// liver is a client of a random life.
type liver struct {
	*testhouse.World
	*raw
	front  *front
	random *rand.Rand
	told   []string // what it did

	streams sync.WaitGroup
	wild    atomic.Bool // a rule of the connection was broken
	drained atomic.Bool
	control *quic.SendStream
}

func (c *liver) note(format string, args ...any) {
	c.told = append(c.told, fmt.Sprintf(format, args...))
}

// lossy is a socket that loses datagrams.
type lossy struct {
	net.PacketConn
	every uint64 // of so many, one is lost; 0 loses none
	sent  atomic.Uint64
	came  atomic.Uint64
}

func (l *lossy) WriteTo(p []byte, a net.Addr) (int, error) {
	if l.every > 0 && (l.sent.Add(1)*0x9e3779b97f4a7c15)>>32%l.every == 0 {
		return len(p), nil
	}
	return l.PacketConn.WriteTo(p, a)
}

func (l *lossy) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, a, err := l.PacketConn.ReadFrom(p)
		if err != nil || l.every == 0 || (l.came.Add(1)*0x9e3779b97f4a7c15)>>32%l.every != 0 {
			return n, a, err
		}
	}
}

// socket opens one.
func (c *liver) socket(t *testing.T, every uint64) *quic.Transport {
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &quic.Transport{Conn: &lossy{PacketConn: pc, every: every}}
	t.Cleanup(func() { tr.Close(); pc.Close() })
	return tr
}

// connect connects with windows of any size.
func (c *liver) connect(t *testing.T) {
	every := []uint64{0, 0, 0, 40}[c.random.IntN(4)]
	c.note("one datagram of %d is lost", every)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	address, _ := net.ResolveUDPAddr("udp4", c.front.addr)
	window := []uint64{2000, 20_000, 500_000}[c.random.IntN(3)]
	qc, err := c.socket(t, every).Dial(ctx, address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window, InitialConnectionReceiveWindow: 2 * window, MaxConnectionReceiveWindow: 2 * window,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.raw = &raw{t, qc}
	testhouse.Eventually(t, "the connection is served", func() bool { return c.front.last.Load() != nil })
	c.control = c.uni(append([]byte{0}, frame(4, nil)...))
}

// live leads the life.
func (c *liver) live(t *testing.T) {
	c.connect(t)
	rude := c.random.IntN(4) == 0
	for range 6 + c.random.IntN(8) {
		for range c.random.IntN(4) {
			c.move(t, rude)
		}
		c.Next()
		testhouse.Pause()
	}
	c.End()
	ended := make(chan struct{})
	go func() { c.streams.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		c.Fault("a stream does not end")
	}
	c.conn.CloseWithError(0x100, "")
	c.streams.Wait()
}

// move does one thing.
func (c *liver) move(t *testing.T, rude bool) {
	switch c.random.IntN(12) {
	case 0, 1, 2, 3, 4, 5:
		c.request()
	case 6:
		id := 4 * uint64(c.random.IntN(20))
		c.control.Write(frame(0xf0700, fmt.Appendf(quicvarint.Append(nil, id), "u=%d", c.random.IntN(8))))
	case 7:
		c.control.Write(frame(0x21+0x1f*uint64(c.random.IntN(9)), make([]byte, c.random.IntN(100))))
	case 8:
		c.open(quicvarint.Append(nil, 0x21)) // of an unknown type
	case 9:
		if c.random.IntN(6) == 0 {
			c.note("drain")
			c.drained.Store(true)
			c.front.last.Load().Drain()
		}
	case 10:
		if c.random.IntN(4) == 0 {
			c.migrate(t)
		}
	case 11:
		if rude {
			c.offend()
		}
	}
}

// open opens a unidirectional stream and writes bytes, if the connection has not ended.
func (c *liver) open(b []byte) {
	if s, err := c.conn.OpenUniStream(); err == nil {
		s.Write(b)
		s.Close()
	}
}

// migrate goes on from another address.
func (c *liver) migrate(t *testing.T) {
	c.note("migrate")
	path, err := c.conn.AddPath(c.socket(t, 0))
	if err != nil {
		return // the connection has ended
	}
	ctx, stop := context.WithTimeout(c.conn.Context(), patience)
	defer stop()
	if path.Probe(ctx) == nil {
		path.Switch()
	}
}

// offend breaks a rule of the connection.
func (c *liver) offend() {
	how := c.random.IntN(8)
	c.note("offend %d", how)
	c.wild.Store(true)
	switch how {
	case 0:
		c.control.Close()
	case 1:
		c.control.CancelWrite(0x100)
	case 2:
		c.control.Write(frame(4, nil))
	case 3:
		c.control.Write(frame(0, []byte("data")))
	case 4:
		c.open([]byte{0})
	case 5:
		if s, err := c.conn.OpenStream(); err == nil {
			s.Write(frame(0, []byte("data")))
		}
	case 6:
		if s, err := c.conn.OpenStream(); err == nil {
			s.Write(frame(1, []byte{0, 0, 0xff}))
			s.Close()
		}
	case 7:
		c.conn.CloseWithError(0x100, "")
	}
}

// request sends a request and reads its answer.
func (c *liver) request() {
	s, err := c.conn.OpenStream()
	if err != nil {
		return // as many as there may be
	}
	s.SetDeadline(time.Now().Add(patience))
	r := rand.New(rand.NewPCG(c.random.Uint64(), 2))
	a := &ask{life: c, late: c.drained.Load(), stream: s, script: testhouse.ScriptOf(r.Uint64N(testhouse.Scripts))}
	a.method = []string{"GET", "GET", "HEAD", "POST", "POST", "PUT"}[r.IntN(6)]
	a.leaves = r.IntN(8) == 0
	if a.sends = a.method == "POST" || a.method == "PUT"; a.sends {
		a.upload = testhouse.UploadSize(a.script.Seed, []int{0, 1, 30, 400, 1500}[r.IntN(5)])
	}
	c.note("stream %d %s, upload %d, leaves %v, %+v", s.StreamID(), a.method, a.upload, a.leaves, a.script)
	readSeed := r.Uint64()
	c.streams.Go(func() { a.send(r) })
	c.streams.Go(func() { a.read(rand.New(rand.NewPCG(readSeed, 3))) })
}

// ask is a request.
type ask struct {
	life   *liver
	stream *quic.Stream
	script testhouse.Script
	method string
	sends  bool
	upload int
	leaves bool // at some moment
	late   bool // the connection is to end
}

// send sends the request in pieces.
func (a *ask) send(r *rand.Rand) {
	fields := []string{":method", a.method, ":scheme", "https", ":authority", "h", ":path", "/" + strconv.FormatUint(a.script.Seed, 10)}
	if a.sends && r.IntN(2) == 0 {
		fields = append(fields, "content-length", strconv.Itoa(a.upload))
	}
	if a.sends && r.IntN(5) == 0 {
		fields = append(fields, "expect", "100-continue")
	}
	if r.IntN(4) == 0 {
		fields = append(fields, "priority", fmt.Sprintf("u=%d, i", r.IntN(8)))
	}
	var b []byte
	unknown := func() {
		if r.IntN(4) == 0 {
			b = append(b, frame(0x21+0x1f*uint64(r.IntN(9)), make([]byte, r.IntN(2000)))...)
		}
	}
	unknown()
	b = append(b, frame(1, section(fields...))...)
	for at := 0; at < a.upload; {
		unknown()
		p := make([]byte, min(a.upload-at, 1+r.IntN(20_000)))
		testhouse.Octets(p, a.script.Seed+1, at)
		b = append(b, frame(0, p)...)
		at += len(p)
	}
	if a.sends && r.IntN(3) == 0 {
		b = append(b, frame(1, section("sum", "1"))...)
		unknown()
	}
	stop := len(b) + 1
	if a.leaves && r.IntN(2) == 0 {
		stop = r.IntN(len(b))
	}
	for len(b) > 0 {
		n := min(len(b), 1+r.IntN(30_000), stop)
		if stop -= n; n == 0 {
			a.stream.CancelWrite(quic.StreamErrorCode([]int{0x10c, 0x100, 7}[r.IntN(3)]))
			return
		}
		if _, err := a.stream.Write(b[:n]); err != nil {
			return // the rest is not wanted
		}
		if b = b[n:]; r.IntN(3) == 0 {
			testhouse.Pause()
		}
	}
	a.stream.Close()
}

// read reads the answer, and looks at it.
func (a *ask) read(r *rand.Rand) {
	from := &slowly{Stream: a.stream, random: r, left: 1 << 30}
	if a.leaves {
		from.left = r.IntN(100_000)
	}
	got, err := answer(from)
	if from.left <= 0 {
		a.stream.CancelRead(0x10c)
		err = nil
	}
	if e := a.script.Check(&got.Got, a.method == "HEAD"); e != nil {
		a.life.Fault("stream %d: %v, script %+v", a.stream.StreamID(), e, a.script)
	}
	if got.Status != "" && got.Status[0] == '2' && got.seed != strconv.FormatUint(a.script.Seed, 10) {
		a.life.Fault("stream %d: got the response to %q", a.stream.StreamID(), got.seed)
	}
	if e := (*quic.StreamError)(nil); a.life.drained.Load() && errors.As(err, &e) && e.ErrorCode == 0x10b {
		err = nil // it came too late
	}
	if err != nil && !a.leaves && !a.late && a.script.Clean(a.method == "HEAD") && !a.life.wild.Load() {
		a.life.Fault("stream %d: %v, script %+v", a.stream.StreamID(), err, a.script)
	}
}

// slowly reads at any pace, and so much.
type slowly struct {
	*quic.Stream
	random *rand.Rand
	left   int
}

var errLeaves = errors.New("it leaves")

func (s *slowly) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errLeaves
	}
	if s.random.IntN(20) == 0 {
		testhouse.Pause()
	}
	n, err := s.Stream.Read(p[:min(len(p), 1+s.random.IntN(5000))])
	s.left -= n
	return n, err
}

// got is an answer as it came.
type got struct {
	testhouse.Got
	seed string
}

// answer reads one.
func answer(from io.Reader) (g got, err error) {
	r := quicvarint.NewReader(from)
	for {
		kind, err := quicvarint.Read(r)
		if err == io.EOF {
			g.Ended = true
			return g, nil
		}
		var length uint64
		if err == nil {
			length, err = quicvarint.Read(r)
		}
		if err != nil {
			return g, err
		}
		p := make([]byte, length)
		n, err := io.ReadFull(r, p)
		if kind == 0 {
			g.Body = append(g.Body, p[:n]...)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return g, fmt.Errorf("a frame of type %d ends after %d bytes of %d", kind, n, length)
		}
		if err != nil {
			return g, err
		}
		if kind == 1 {
			if err := g.fields(p); err != nil {
				return g, err
			}
		}
	}
}

// fields takes a field section.
func (g *got) fields(p []byte) error {
	next := qpack.NewDecoder().Decode(p)
	for {
		f, err := next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case f.Name == ":status" && f.Value[0] != '1':
			g.Status = f.Value
		case f.Name == "seed":
			g.seed = f.Value
		case f.Name == "sum":
			g.Sum = f.Value
		}
	}
}
