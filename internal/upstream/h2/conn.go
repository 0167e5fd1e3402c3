// Package h2 implements the client side of HTTP/2 to servers: many concurrent requests on
// one connection.
//
// Open sends the preface and starts the goroutine that reads the connection (conn.go,
// read.go, state.go, end.go). A Stream is one request and its response; Do sends it on a
// Conn, and may send it again on another one if the server has not processed it (stream.go,
// upload.go; head.go, response.go, body.go). The data of all streams is collected, and
// written by the goroutine that finds no other one writing (write.go).
//
// Everything that a server sends is limited: heads by Settings.HeadSize, bodies by the
// windows that are opened as they are read, frames without effect by a budget. The package
// knows neither pools nor routes: internal/upstream does.
package h2

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/http2"
)

// Settings hold for one connection. Zero times mean no limit.
type Settings struct {
	// Name is what errors call the server.
	Name string
	// HeadSize is the largest response head, in bytes; 0 is the default.
	HeadSize int
	// IdleTimeout is how long the connection is kept without a request; 0 ends it
	// with the last one.
	IdleTimeout time.Duration
	// BodyIdle is the longest pause in a response body, WriteIdle how long the
	// server may accept no byte of a request.
	BodyIdle, WriteIdle time.Duration
	// ContinueWait is how long a body that waits for 100 Continue waits for a
	// server that does not send it; 0 is a second.
	ContinueWait time.Duration
	// Log receives broken invariants; it may be nil.
	Log *slog.Logger
	// Freed is called when a request or the connection has ended, so that another request
	// may have capacity. It must not call back; it may be nil.
	Freed func()
}

// Bounds of a connection.
const (
	// connWindow is the window of the connection, in bytes. It is opened as bytes arrive,
	// so that a client that does not read does not block the others; the streams' windows
	// limit memory.
	connWindow = 1 << 24
	// maxStreams is how many requests a connection carries at once, whatever the
	// server allows.
	maxStreams = 1000
	// maxUseless is how many frames of no use a server may send between two
	// responses.
	maxUseless = 10_000
	// maxPieces is how many frames a field block may have.
	maxPieces = 64
	// lastStream is the number beyond which a connection opens no streams.
	lastStream = 1 << 30
)

// When a server gets a PING, and the timeout of its response. gRPC servers close
// connections with more frequent ones.
const (
	firstPing = 30 * time.Second // of silence, while requests are under way
	nextPings = 5 * time.Minute
	restPing  = 10 * time.Second // of rest, before another request
	pingWait  = 10 * time.Second
)

// Conn is one connection to a server. It is safe for use by many goroutines at
// once.
type Conn struct {
	// constant
	settings Settings
	nc       *netconn.Conn
	secure   bool
	greeted  chan struct{}
	done     chan struct{}

	heard atomic.Int64 // when the server said something last

	// owned by the reader
	buf   netconn.Buffer
	hpack *hpack.Decoder
	block block
	data  payload
	first bool // the server's SETTINGS came
	fault error

	mu struct {
		http2.Writer      // its Active are the places in use, by streams or reserved
		away         bool // no stream starts: GOAWAY arrived, the numbers are used up
		retired      bool // no place is given: the pool is retired
		fresh        bool // it was opened for a request that has not begun yet
		alone        bool // no other place is given until the first stream has begun
		last         uint32
		streams      http2.Streams[*Stream]
		served       int // responses that came
		places       int // that there are
		next         uint32
		useless      int

		begun   bool // the first field block was sent
		blocked int  // streams that wait to send
		window  int64
		initial int64
		granted int64 // of connWindow, what was not yet granted anew

		pinged int64         // when a PING without answer was sent, or 0
		pause  time.Duration // of silence until the next one
		rest   int64         // since when there is no stream
	}
}

// Open starts HTTP/2 on nc, which it owns from then on, and waits until the
// server has sent its preface, at most until end unless that is zero. secure
// means that nc is TLS.
func Open(nc net.Conn, secure bool, end time.Time, settings Settings) (*Conn, error) {
	settings.ContinueWait = cmp.Or(settings.ContinueWait, continueWait)
	if settings.HeadSize <= 0 {
		settings.HeadSize = http1.DefaultHeadSize
	}
	c := &Conn{settings: settings, nc: netconn.New(nc), secure: secure,
		greeted: make(chan struct{}), done: make(chan struct{})}
	c.mu.Init((*sink)(c), 0, outKeep)
	c.nc.SetWriteWait(settings.WriteIdle)
	c.hpack = hpack.NewDecoder(http2.InitialTableSize, c.emit)
	c.hpack.SetMaxStringLength(2 * settings.HeadSize)
	now := exchange.Now()
	c.heard.Store(now)
	c.mu.next, c.mu.last = 1, http2.MaxWindow
	c.mu.places, c.mu.fresh = 1, true
	c.mu.window, c.mu.initial = http2.InitialWindow, http2.InitialWindow
	c.mu.pause, c.mu.rest = firstPing, now
	b := append(c.mu.Space(), http2.Preface...)
	b = http2.AppendFrame(b, 2*http2.SettingSize, http2.FrameSettings, 0, 0)
	b = http2.AppendSetting(b, http2.SettingEnablePush, 0)
	b = http2.AppendSetting(b, http2.SettingMaxHeaderListSize, uint32(settings.HeadSize))
	c.mu.Out = http2.AppendWindowUpdate(b, 0, connWindow-http2.InitialWindow)
	go c.serve()
	c.mu.Flush()
	return c, c.await(end)
}

// await waits for the greeting of the server.
func (c *Conn) await(end time.Time) error {
	var late <-chan time.Time
	if !end.IsZero() {
		timer := time.NewTimer(time.Until(end))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-c.greeted:
		return nil
	case <-c.done:
	case <-late:
		c.fail(&exchange.Error{Reason: exchange.UpstreamTimeout, Err: fmt.Errorf("server %s did not greet in HTTP/2 in time", c.settings.Name)})
		<-c.done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.Err == nil {
		return errBroken // it ended, and its end is on its way
	}
	return c.mu.Err
}

// Reserve reserves a place for a request, and reports whether there was one. A
// request that is not sent releases it with Release; one that is sent keeps it
// until its Stream ends.
func (c *Conn) Reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.Err != nil || c.mu.away || c.mu.retired || c.mu.alone || c.mu.Active >= c.mu.places {
		return false
	}
	if c.mu.Active == 0 {
		c.mu.pause = firstPing
	}
	c.mu.Active++
	return true
}

// ReserveAlone is Reserve on a connection that no other goroutine has yet: there are no
// further reservations until the request has begun, so that it is the first one that the
// server receives.
func (c *Conn) ReserveAlone() bool {
	if !c.Reserve() {
		return false
	}
	c.mu.Lock()
	c.mu.alone = true
	c.mu.Unlock()
	return true
}

// Release releases a place.
func (c *Conn) Release() {
	c.mu.Lock()
	c.releaseLocked()
	c.mu.Unlock()
	c.freed()
}

// releaseLocked releases a place and closes a connection that has nothing left
// to do.
func (c *Conn) releaseLocked() {
	c.mu.Active--
	c.mu.fresh, c.mu.alone = false, false
	if c.mu.Active > 0 {
		return
	}
	c.mu.rest = exchange.Now()
	if c.mu.away || c.mu.retired || c.settings.IdleTimeout <= 0 {
		c.failLocked(errRetired)
	}
}

func (c *Conn) freed() {
	if c.settings.Freed != nil {
		c.settings.Freed()
	}
}

// Usable reports whether the connection accepts requests, now or when others
// have ended.
func (c *Conn) Usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.Err == nil && !c.mu.away && !c.mu.retired
}

// Idle reports whether the connection is open and has no requests.
func (c *Conn) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.Err == nil && c.mu.Active == 0
}

// Retire stops reserving places. The connection ends with the last request that
// has one, which may still start.
func (c *Conn) Retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.retired = true
	if c.mu.Active == 0 {
		c.failLocked(errRetired)
	}
}

// Close ends the connection and waits until it has.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	<-c.done
	return nil
}

var (
	errRetired = errors.New("the connection was retired")
	errSilent  = errors.New("the connection is silent")
)

// serve reads the connection until it ends.
func (c *Conn) serve() {
	defer close(c.done)
	defer c.mu.Guard()
	for {
		c.nc.SetReadUntil(c.until())
		err := c.read()
		switch {
		case err == nil && c.fault == nil:
			err = c.direct()
		case err == nil:
			err = c.fault
		default:
			err = c.lookUp(err)
		}
		if err != nil {
			c.fail(err)
			break
		}
	}
	c.conclude()
	c.buf.Drop()
	c.freed()
}

// read calls step after each read, until step ends that or reading fails. Under TLS
// the reader must leave alone what others write.
func (c *Conn) read() error {
	if !c.secure {
		return c.nc.Serve(&c.buf, c.step)
	}
	for {
		if err := c.nc.Fill(&c.buf); err != nil || !c.step() {
			return err
		}
		c.buf.Release()
	}
}

// lookUp does what is due when a wait has ended with an error. It returns nil if
// the wait goes on.
func (c *Conn) lookUp(err error) error {
	switch {
	case errors.Is(err, netconn.ErrTimeout):
		return c.onTime()
	case errors.Is(err, netconn.ErrKicked):
		return c.closing()
	}
	return err
}

// closing returns why the connection was ended, nil if it was not.
func (c *Conn) closing() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.Err
}

// until returns when the reader has to look up: when a PING is due or its answer
// late, or the connection has rested for too long.
func (c *Conn) until() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.pinged != 0:
		return c.mu.pinged + int64(pingWait)
	case c.mu.Active > 0:
		return c.heard.Load() + int64(c.mu.pause)
	}
	soon := exchange.Now() + int64(firstPing) // there may be a request by then
	if c.settings.IdleTimeout > 0 {
		soon = min(soon, c.mu.rest+int64(c.settings.IdleTimeout))
	}
	return soon
}

// onTime does what is due. The error ends the connection.
func (c *Conn) onTime() error {
	now := exchange.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	heard := c.heard.Load()
	switch {
	case c.mu.Err != nil:
		return c.mu.Err
	case c.mu.pinged != 0 && now >= c.mu.pinged+int64(pingWait):
		return errSilent
	case c.mu.Active == 0 && c.settings.IdleTimeout > 0 && now >= c.mu.rest+int64(c.settings.IdleTimeout):
		return errRetired
	case c.mu.Active > 0 && c.mu.pinged == 0 && now >= heard+int64(c.mu.pause):
		c.mu.pause = nextPings
		c.pingLocked(now)
	}
	return nil
}

// pingLocked sends the server a PING. The reader does not write: a server that
// does not read must not prevent it from receiving.
func (c *Conn) pingLocked(now int64) {
	c.mu.pinged = now
	c.mu.Out = http2.AppendPing(c.mu.Space(), 0, []byte("headgate"))
	c.mu.FlushAsideLocked()
}
