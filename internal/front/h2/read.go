package h2

import (
	"errors"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/http2"
)

// lookInterval is how often the reader looks at open streams, and at memory that is not
// needed any more.
const lookInterval = time.Second

// await waits until n bytes are in the buffer.
func (c *Conn) await(n int) error {
	for c.buf.Len() < n {
		if _, err := c.more(nil); err != nil {
			return err
		}
	}
	return nil
}

// more waits for bytes: into p, or into the buffer if p is nil. Before it waits,
// everything that was read is under way.
func (c *Conn) more(p []byte) (int, error) {
	if p == nil && !c.buf.Grow(http2.FrameHeaderSize+http2.MaxFrameSize) {
		return 0, broken(http2.InternalError, "a frame outgrew its buffer")
	}
	for {
		if c.greeted && c.drain == notDraining && c.draining.Load() {
			if err := c.lookUp(); err != nil {
				return 0, err
			}
		}
		c.handOver()
		c.setDeadline()
		n, err := c.read(p)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, netconn.ErrKicked):
			err = c.lookUp()
		case errors.Is(err, netconn.ErrTimeout):
			err = c.onTime()
		}
		if err != nil {
			return 0, err
		}
	}
}

// read makes one read. With TLS an empty buffer waits for the head of a frame in a few
// bytes of the connection, so that an idle connection holds no memory; a plain connection
// waits without any. While the client has no active requests, the read may end with
// netconn.ErrQuiet.
func (c *Conn) read(p []byte) (int, error) {
	switch {
	case p != nil:
		return c.nc.Read(p)
	case c.secure && c.buf.Len() == 0:
		read := c.nc.Read
		if c.rests() {
			read = c.nc.ReadOrQuiet
		}
		n, err := read(c.first[:])
		if n > 0 {
			c.buf.Append(c.first[:n])
		}
		return n, err
	case c.rests():
		return 0, c.nc.FillOrQuiet(&c.buf)
	}
	return 0, c.nc.Fill(&c.buf)
}

// rests reports whether the client has no request under way and no frame. It is for
// just after setDeadline.
func (c *Conn) rests() bool {
	return c.still && c.greeted && c.buf.Len() == 0 && c.drain == notDraining
}

// handOver passes opened streams to workers, and causes the reader's frames to be written.
// The reader never writes: a client that does not read must not block it.
func (c *Conn) handOver() {
	c.mu.Lock()
	taken := c.opened[:0]
	for _, s := range c.opened {
		if s.gone != nil {
			taken = append(taken, s) // reset before a worker had it
			continue
		}
		c.schedule(s, len(c.opened) == 1 && c.mu.Active == 1)
	}
	if len(taken) > 0 {
		c.mu.Unlock()
		c.withdraw(taken)
		c.mu.Lock()
	}
	clear(c.opened)
	c.opened = c.opened[:0]
	c.mu.FlushAsideLocked()
	c.mu.Unlock()
	if c.buf.Len() == 0 {
		c.buf.Release()
	}
}

// withdraw ends streams that were reset before a worker had them. They are only logged.
func (c *Conn) withdraw(streams []*stream) {
	for _, s := range streams {
		answer := exchange.Fail(exchange.ClientClosed, s.gone.Error())
		if s.body.broken != nil {
			answer = exchange.Fail(exchange.BadRequest, s.body.broken.Error())
		}
		s.malformed = true
		s.port.Refuse(&s.ex, answer)
		c.mu.Lock()
		c.mu.Active--
		c.closeLocked(s, false)
		c.grantLocked(s.body.UnreadLocked())
		c.mu.Unlock()
		s.recycle()
	}
}

// setDeadline sets the deadline of the next bytes. While streams are open, the reader
// checks at times whether they still are.
func (c *Conn) setDeadline() {
	now := exchange.Now()
	if now >= c.trimmed+int64(lookInterval) {
		c.trimmed = now
		c.yield()
	}
	switch {
	case c.patient:
		c.partial = now
	case c.buf.Len() == 0 && c.block.id == 0:
		c.partial = 0
	case c.partial == 0:
		c.partial = now
	}
	until, busy := c.deadline(now)
	if busy {
		look := int64(lookInterval)
		if keep := int64(c.port.KeepAlive); keep > 0 {
			look = min(look, keep)
		}
		until = sooner(until, now+look)
	}
	c.nc.SetReadWait(0)
	if until != 0 {
		c.nc.SetReadUntil(until)
	}
}

// sooner returns the earlier of two moments, of which 0 is never.
func sooner(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// deadline returns when the connection has waited too long, or 0, and whether
// streams are open.
func (c *Conn) deadline(now int64) (until int64, busy bool) {
	until = c.until
	head := int64(c.port.HeadTimeout)
	if head > 0 {
		switch {
		case !c.greeted || !c.settled:
			until = sooner(until, c.began+head)
		case c.partial != 0:
			if c.patient {
				head = max(head, int64(c.port.Limits.BodyIdle))
			}
			until = sooner(until, c.partial+head)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.streams.Len() == 0 && c.partial == 0 {
		until = sooner(until, c.mu.quiet+c.keepAlive())
	}
	busy = c.mu.streams.Len() > 0
	c.still = !busy && c.mu.Active == 0
	return until, busy
}

// firstRequest is the timeout of the first request if there is neither a time
// for heads nor one between requests.
const firstRequest = time.Minute

// keepAlive returns how long the connection may be without streams. Its first
// request has the time of a head. c.mu is held.
func (c *Conn) keepAlive() int64 {
	keep := c.port.KeepAlive
	if c.mu.lastID == 0 {
		if keep = max(keep, c.port.HeadTimeout); keep == 0 {
			keep = firstRequest
		}
	}
	return max(int64(keep), 1)
}

// onTime does what is due when a wait has timed out.
func (c *Conn) onTime() error {
	now := exchange.Now()
	if c.until != 0 && now >= c.until {
		return c.goOnDraining()
	}
	if d, _ := c.deadline(now); d == 0 || now < d {
		return nil
	}
	switch {
	case !c.greeted:
		return broken(http2.SettingsTimeout, "the client's SETTINGS did not come in time")
	case !c.settled:
		return broken(http2.SettingsTimeout, "the client did not acknowledge SETTINGS in time (RFC 9113, section 6.5.3)")
	case c.partial != 0:
		return broken(http2.EnhanceYourCalm, "a frame did not arrive in time")
	}
	return broken(http2.NoError, "")
}

// drainStep is how far a connection is with its end.
type drainStep uint8

const (
	notDraining drainStep = iota
	warned                // the first GOAWAY was sent
	last                  // the GOAWAY with the last stream was sent
)

// drainGrace is how long a client may take to send its first request before the first GOAWAY, and
// how long to answer that.
const drainGrace = time.Second

// drainPing is what our PING behind the warning carries.
const drainPing = "headgate"

// lookUp continues a drain. The client first gets a GOAWAY without a last stream, and the
// one with its number only when it must have received the first, so that no request in
// transit is lost (RFC 9113, section 6.8).
func (c *Conn) lookUp() error {
	if err := c.lastWrite(); err != nil {
		return err
	}
	if c.hasYielded() {
		return errYielded
	}
	switch {
	case !c.draining.Load():
		return nil
	case !c.greeted:
		c.until = sooner(c.until, exchange.Now()+int64(drainGrace))
		return nil
	case c.drain == notDraining:
		c.warn()
	case c.drain == last:
		return c.drained()
	}
	return nil
}

// warn sends the first GOAWAY. A client that has only just connected may still send its first
// request: some use no connection that has a GOAWAY before that, and cannot repeat a request with
// a body on another one.
func (c *Conn) warn() {
	now := exchange.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.lastID == 0 {
		if c.until == 0 {
			c.until = now + int64(drainGrace)
		}
		if now < c.until {
			return
		}
	}
	c.drain = warned
	c.until = now + int64(drainGrace)
	c.mu.Out = http2.AppendGoAway(c.mu.Space(), http2.MaxWindow, http2.NoError, "")
	c.mu.Out = http2.AppendPing(c.mu.Out, 0, []byte(drainPing))
}

// goOnDraining takes the next step of a drain when its time has come.
func (c *Conn) goOnDraining() error {
	if c.greeted && c.drain == notDraining {
		c.warn()
		return nil
	}
	c.until = 0
	if c.drain == warned || !c.greeted {
		c.drain = last
		c.mu.Lock()
		c.mu.refused = true
		c.mu.Out = http2.AppendGoAway(c.mu.Space(), c.mu.lastID, http2.NoError, "")
		c.mu.Unlock()
	}
	return c.drained()
}

// drained returns errDrained if no stream is left.
func (c *Conn) drained() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.streams.Len() == 0 {
		return errDrained
	}
	return nil
}
