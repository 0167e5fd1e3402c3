// Package h2 speaks HTTP/2 (RFC 9113) to clients.
//
// One goroutine reads a connection: conn.go is its life and dispatches frames to
// headers.go, data.go and control.go. Each request is served by a goroutine of a small pool
// (worker.go) and sends its response with send.go. The data of all streams is collected in
// one buffer, the most urgent first (schedule.go), and written by the goroutine that finds
// no other one writing (write.go).
//
// Everything that a client sends is limited: budget.go limits the work that it causes,
// body.go the memory of bodies. yield.go ends a connection without streams when another one
// needs its place.
package h2

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/front/crew"
	"headgate/internal/netconn"
	"headgate/internal/proto/http2"
)

// Front serves the HTTP/2 connections of one socket.
type Front struct {
	// Port returns the port that the socket currently belongs to. It is
	// called for each request and never returns nil.
	Port func() *exchange.Port
	// Scheme is what clients of the socket use, "http" or "https".
	Scheme string
	// Clients bounds what the clients of the socket hold in memory, and knows those
	// that break rules on one connection after the other. nil bounds nothing.
	Clients *clients.Clients
	// Log receives connections that were ended because of a protocol error or a flood. It
	// may be nil.
	Log *slog.Logger
	// Flooded counts the connections that were ended for a flood. It may be
	// called by several goroutines at once; nil counts nothing.
	Flooded func(Flood)

	crew crew.Crew
}

// usualStreams is how many requests a client may have under way where the port
// does not say.
const usualStreams = 256

// Conn is one connection of a client.
type Conn struct {
	// constant
	front  *Front
	nc     *netconn.Conn
	socket net.Conn // below TLS
	secure bool
	weak   bool // what TLS agreed on is not good enough
	facts  exchange.Conn

	// owned by the goroutine that runs Serve
	buf      netconn.Buffer
	first    [http2.FrameHeaderSize]byte
	port     *exchange.Port
	member   *clients.Member
	places   int   // requests that memory was reserved for
	buffered int64 // bytes of bodies that memory was reserved for
	streams  int   // that the client may have under way
	hpack    *hpack.Decoder
	block    block
	opened   []*stream // that no worker has yet
	began    int64     // start of the connection
	partial  int64     // when the frame under way was first waited for, or 0
	patient  bool      // the current frame is part of a body: it has no short timeout
	greeted  bool      // the client's SETTINGS came
	still    bool      // no stream was under way a moment ago
	settled  bool      // the client has acknowledged ours
	offends  bool      // the client broke too many rules on other connections
	drain    drainStep
	until    int64 // when the current step of draining ends
	trimmed  int64 // when memory was last released

	draining atomic.Bool
	workers  sync.WaitGroup

	mu struct {
		http2.Writer               // its Active are the streams whose exchange has not ended
		lastID       uint32        // of the newest stream
		refused      bool          // new streams are ignored: they are too late
		yielded      bool          // the connection is being closed for another
		held         chan struct{} // closed to end the wait of hold; nil if it does not wait
		streams      http2.Streams[*stream]
		gone         [64]uint32 // the last streams that ended; see ended
		turn         int

		resize  bool // the next field block starts with a table size update
		queue   queue
		ticks   uint32
		window  int64 // send window of the connection
		initial int64 // and at first on a stream

		receive  int64 // receive window of the connection
		consumed int64 // of it, what was not yet granted anew

		budget  budget
		quiet   int64 // when the last stream ended
		updates []update
	}
}

// NewConn returns the connection of a client over nc, a *tls.Conn after its
// handshake or a plain connection whose client knows that we speak HTTP/2.
// serial must be unique.
func (f *Front) NewConn(nc net.Conn, serial uint64) *Conn {
	c := &Conn{front: f, nc: netconn.New(nc), socket: nc, facts: exchange.NewConn(nc, f.Scheme, serial)}
	if secure, ok := nc.(*tls.Conn); ok {
		state := secure.ConnectionState()
		c.secure, c.socket = true, secure.NetConn()
		c.weak = weak(&state)
	}
	c.mu.Init((*sink)(c), rounds, outKeep)
	c.mu.window, c.mu.initial = http2.InitialWindow, http2.InitialWindow
	c.mu.receive = http2.InitialWindow
	c.mu.resize = true
	return c
}

// weak reports whether HTTP/2 must not, or had better not, be spoken over what TLS
// agreed on (RFC 9113, sections 9.2 and 9.2.2).
func weak(state *tls.ConnectionState) bool {
	if state.Version > tls.VersionTLS12 {
		return false
	}
	switch state.CipherSuite {
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:
		return state.Version < tls.VersionTLS12
	}
	return true
}

// Drain ends the connection after the active requests. The client gets GOAWAY. It is safe
// for concurrent use.
func (c *Conn) Drain() {
	c.draining.Store(true)
	c.nc.Kick()
	c.mu.Lock()
	c.releaseLocked()
	c.mu.Unlock()
}

// Close ends the connection at once. Exchanges under way notice soon; Close does
// not wait for them. Any goroutine may call it.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	return nil
}

// Serve serves the requests of the connection until it ends, closes it, and returns
// nil when the last exchange has ended; or until it has been idle for a while, and
// returns what waits on.
func (c *Conn) Serve() (park func(resume func()) bool) {
	c.front.crew.Join()
	defer c.front.crew.Leave()
	var err error
	if c.began == 0 {
		c.sendPreface()
		err = c.greet()
		if c.weak {
			err = broken(http2.InadequateSecurity, "TLS below 1.2, or a cipher without forward secrecy and authenticated encryption (RFC 9113, section 9.2)")
		}
	}
	for err == nil {
		err = c.frame()
	}
	if err == netconn.ErrQuiet {
		return c.nc.ParkWait
	}
	c.conclude(err)
	c.workers.Wait()
	c.member.Leave()
	return nil
}

// sendPreface readies the connection and sends our side of the preface, which is the
// first thing that a client may read (RFC 9113, section 3.4).
func (c *Conn) sendPreface() {
	c.began = exchange.Now()
	c.port = c.front.Port()
	c.streams = cmp.Or(c.port.Streams, usualStreams)
	c.nc.SetWriteWait(c.port.WriteIdle)
	c.hpack = hpack.NewDecoder(http2.InitialTableSize, c.emit)
	c.hpack.SetMaxStringLength(c.stringSize())
	c.mu.Lock()
	c.mu.quiet = c.began
	c.mu.budget.since = c.began
	c.member = c.front.Clients.Join(c.facts.Remote.Addr())
	if c.offends = c.member.Offender(); c.offends {
		c.mu.budget.spent[ResetFlood] = floodTable[ResetFlood].most - offenderResets
	}
	b := http2.AppendFrame(c.mu.Space(), 4*http2.SettingSize, http2.FrameSettings, 0, 0)
	b = http2.AppendSetting(b, http2.SettingMaxConcurrentStreams, uint32(c.streams))
	b = http2.AppendSetting(b, http2.SettingMaxHeaderListSize, uint32(c.port.HeadSize))
	b = http2.AppendSetting(b, http2.SettingEnableConnectProtocol, 1)
	b = http2.AppendSetting(b, http2.SettingNoRFC7540Priorities, 1)
	c.mu.Out = http2.AppendWindowUpdate(b, 0, connWindow-http2.InitialWindow)
	c.mu.receive = connWindow
	c.mu.Unlock()
	c.mu.Flush()
}

// greet reads the preface of the client. What is not HTTP/2 is known by its
// first bytes.
func (c *Conn) greet() error {
	for seen := 0; seen < len(http2.Preface); {
		if err := c.await(seen + 1); err != nil {
			return err
		}
		b := c.buf.Bytes()
		n := min(len(b), len(http2.Preface))
		if string(b[seen:n]) != http2.Preface[seen:n] {
			return broken(http2.ProtocolError, "the connection does not start with the preface of HTTP/2 (RFC 9113, section 3.4)")
		}
		seen = n
	}
	c.buf.Use(len(http2.Preface))
	return nil
}

// frame reads and handles one frame.
func (c *Conn) frame() error {
	if err := c.await(http2.FrameHeaderSize); err != nil {
		return err
	}
	h := http2.ParseFrame(c.buf.Bytes())
	if err := c.admit(h); err != nil {
		return err
	}
	if h.Type == http2.FrameData {
		return c.onData(h)
	}
	if err := c.await(http2.FrameHeaderSize + h.Length); err != nil {
		return err
	}
	err := c.dispatch(h, c.buf.Bytes()[http2.FrameHeaderSize:http2.FrameHeaderSize+h.Length])
	c.buf.Use(http2.FrameHeaderSize + h.Length)
	return err
}

// admit judges whether a frame may come now.
func (c *Conn) admit(h http2.Frame) error {
	switch {
	case h.Length > http2.MaxFrameSize:
		return broken(http2.FrameSizeError, "a frame is larger than SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 4.2)")
	case !c.greeted && (h.Type != http2.FrameSettings || h.Flags&http2.FlagAck != 0):
		return broken(http2.ProtocolError, "the first frame is not SETTINGS (RFC 9113, section 3.4)")
	case c.block.id != 0 && (h.Type != http2.FrameContinuation || h.Stream != c.block.id):
		return broken(http2.ProtocolError, "another frame within a field block (RFC 9113, section 6.10)")
	case c.block.id == 0 && h.Type == http2.FrameContinuation:
		return broken(http2.ProtocolError, "CONTINUATION without a field block to continue (RFC 9113, section 6.10)")
	}
	return nil
}

// dispatch handles a frame other than DATA.
func (c *Conn) dispatch(h http2.Frame, p []byte) error {
	switch h.Type {
	case http2.FrameHeaders:
		return c.onHeaders(h, p)
	case http2.FrameContinuation:
		return c.onContinuation(h, p)
	case http2.FrameSettings:
		return c.onSettings(h, p)
	case http2.FrameWindowUpdate:
		return c.onWindow(h, p)
	case http2.FrameRSTStream:
		return c.onReset(h, p)
	case http2.FramePing:
		return c.onPing(h, p)
	case http2.FrameGoAway:
		return c.onGoAway(h, p)
	case http2.FramePriority:
		return c.onPriority(h, p)
	case http2.FramePriorityUpdate:
		return c.onPriorityUpdate(h, p)
	case http2.FramePushPromise:
		return broken(http2.ProtocolError, "PUSH_PROMISE from a client (RFC 9113, section 8.4)")
	}
	return c.charge(floodPriority) // unknown types are ignored (RFC 9113, section 4.1)
}

// How much is read from a client that is still sending when the connection ends, and for
// how long. Closing a socket with unread bytes makes the kernel reset the connection, and
// the client may lose the last frames.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 256 << 10
)

// conclude ends the connection for the reason err: it sends GOAWAY, writes what is
// buffered, and closes the connection.
func (c *Conn) conclude(err error) {
	var rule *connError
	told := errors.As(err, &rule)
	if told {
		c.report(rule)
		c.mu.Lock()
		c.mu.Out = http2.AppendGoAway(c.mu.Space(), c.mu.lastID, rule.code, rule.text)
		c.mu.Unlock()
	}
	c.seal(err)
	c.withdraw(c.opened)
	c.opened = nil
	if told || err == errDrained || err == errYielded {
		c.part(rule)
	}
	c.fail(err)
	c.buf.Drop()
}

// report logs and counts why a connection is ended.
func (c *Conn) report(e *connError) {
	level := slog.LevelDebug
	word := "protocol_error"
	if e.flood != NoFlood {
		c.member.Flooded()
		word = e.flood.String()
		if !c.offends { // else the client was logged already
			level = slog.LevelWarn
		}
		if c.front.Flooded != nil {
			c.front.Flooded(e.flood)
		}
	}
	if c.front.Log != nil && e.code != http2.NoError {
		c.front.Log.Log(context.Background(), level, "HTTP/2 connection ended", "reason", word, "cause", e.text,
			"peer", c.facts.Peer, "port", c.port.Place.Port)
	}
}

// part says goodbye for the reason rule, which may be nil. A client that floods us on
// connection after connection is held up instead.
func (c *Conn) part(rule *connError) {
	switch {
	case c.lastWrite() != nil:
	case rule != nil && rule.flood != NoFlood && (c.offends || c.member.Offender()):
		c.hold()
	case c.nc.Finish() == nil && !c.hasYielded():
		c.linger()
	}
}

// linger reads and drops what the client still sends.
func (c *Conn) linger() {
	c.buf.Drop()
	c.nc.SetReadUntil(exchange.Now() + int64(lingerTime))
	for read := 0; read < lingerBytes; {
		err := c.nc.Fill(&c.buf)
		if err != nil && !errors.Is(err, netconn.ErrKicked) {
			return
		}
		read += c.buf.Len()
		c.buf.Drop()
	}
}

// errDrained ends a connection that has nothing left to do.
var errDrained = errors.New("drained")

// errLeft is the error of streams when the client has closed the connection.
func errLeft(err error) error {
	if err == io.EOF {
		return errors.New("the client closed the connection")
	}
	return err
}

// Remote returns the address of the client, as the PROXY protocol has it where that is
// spoken.
func (c *Conn) Remote() netip.Addr { return c.facts.Remote.Addr() }
