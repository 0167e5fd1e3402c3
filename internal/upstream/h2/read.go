package h2

import (
	"encoding/binary"
	"fmt"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// payload is a DATA frame whose payload is on its way.
type payload struct {
	id   uint32
	left int // bytes of content
	pad  int // bytes of padding behind them
	end  bool
	open bool // there is such a frame
}

// step handles what was read. It returns false to end the wait: for a fault, or
// to read much of a body past the buffer. It runs inside the wait and neither
// reads nor writes.
func (c *Conn) step() bool {
	c.heard.Store(exchange.Now())
	places := c.mu.places // only the reader changes it
	direct := c.handleFrames()
	if c.mu.places > places && c.first {
		c.freed() // without the lock: the pool acquires its own first, and then this one
	}
	if c.fault != nil || direct {
		return false
	}
	if !c.buf.Grow(http2.FrameHeaderSize + http2.MaxFrameSize) {
		c.fault = broken(http2.InternalError, "a frame outgrew its buffer")
		return false
	}
	return true
}

// handleFrames processes the frames that were read whole, and reports whether what follows is read
// past the buffer. It leaves the lock free whatever panics: streams and the pool need it.
func (c *Conn) handleFrames() (direct bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.pinged = 0
	for c.fault == nil {
		if c.data.open {
			if !c.takeData() {
				break
			}
			continue
		}
		b := c.buf.Bytes()
		if len(b) < http2.FrameHeaderSize {
			break
		}
		f := http2.ParseFrame(b)
		if c.fault = c.admit(f); c.fault != nil {
			break
		}
		if f.Type == http2.FrameData {
			if f.Has(http2.FlagPadded) && len(b) == http2.FrameHeaderSize && f.Length > 0 {
				break
			}
			c.fault = c.onData(f, b)
			continue
		}
		if len(b) < http2.FrameHeaderSize+f.Length {
			break
		}
		c.fault = c.dispatch(f, b[http2.FrameHeaderSize:http2.FrameHeaderSize+f.Length])
		c.buf.Use(http2.FrameHeaderSize + f.Length)
	}
	c.mu.FlushAsideLocked()
	return c.data.open && c.data.left >= http2.MinDirect
}

// admit judges whether a frame may come now. The reader's wait ends for a
// connection that has ended.
func (c *Conn) admit(f http2.Frame) error {
	switch {
	case c.mu.Err != nil:
		return c.mu.Err
	case !c.first && (f.Type != http2.FrameSettings || f.Has(http2.FlagAck)):
		return broken(http2.ProtocolError, "the server's first bytes are not HTTP/2 (RFC 9113, section 3.4)")
	case f.Length > http2.MaxFrameSize:
		return broken(http2.FrameSizeError, "a frame is larger than SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 4.2)")
	case c.block.id != 0 && (f.Type != http2.FrameContinuation || f.Stream != c.block.id):
		return broken(http2.ProtocolError, "another frame within a field block (RFC 9113, section 6.10)")
	case c.block.id == 0 && f.Type == http2.FrameContinuation:
		return broken(http2.ProtocolError, "CONTINUATION without a field block to continue (RFC 9113, section 6.10)")
	}
	return nil
}

// dispatch handles a frame other than DATA. c.mu is held.
func (c *Conn) dispatch(f http2.Frame, p []byte) error {
	switch f.Type {
	case http2.FrameHeaders:
		return c.onHeaders(f, p)
	case http2.FrameContinuation:
		return c.onContinuation(f, p)
	case http2.FrameSettings:
		return c.onSettings(f, p)
	case http2.FrameWindowUpdate:
		return c.onWindow(f, p)
	case http2.FrameRSTStream:
		return c.onReset(f, p)
	case http2.FramePing:
		return c.onPing(f, p)
	case http2.FrameGoAway:
		return c.onGoAway(f, p)
	case http2.FramePushPromise:
		return broken(http2.ProtocolError, "PUSH_PROMISE, which was switched off (RFC 9113, section 8.4)")
	}
	return c.useless() // unknown types are ignored (RFC 9113, section 4.1)
}

// useless counts a frame that is of no use.
func (c *Conn) useless() error {
	if c.mu.useless++; c.mu.useless > maxUseless || len(c.mu.Out) > maxQueue {
		return broken(http2.EnhanceYourCalm, "too many frames that are of no use")
	}
	return nil
}

// onData starts a DATA frame (RFC 9113, section 6.1). c.mu is held.
func (c *Conn) onData(f http2.Frame, b []byte) error {
	if f.Stream == 0 {
		return broken(http2.ProtocolError, "DATA on stream 0 (RFC 9113, section 6.1)")
	}
	pad, used := 0, http2.FrameHeaderSize
	if f.Has(http2.FlagPadded) {
		if f.Length == 0 {
			return broken(http2.FrameSizeError, "padded DATA without a pad length (RFC 9113, section 6.1)")
		}
		pad, used = int(b[http2.FrameHeaderSize]), http2.FrameHeaderSize+1
	}
	n := f.Length - (used - http2.FrameHeaderSize) - pad
	if n < 0 {
		return broken(http2.ProtocolError, "padding larger than the frame (RFC 9113, section 6.1)")
	}
	c.buf.Use(used)
	c.data = payload{id: f.Stream, left: n, pad: pad, end: f.Has(http2.FlagEndStream), open: true}
	c.grantLocked(int64(f.Length))
	s := c.mu.streams.Get(f.Stream)
	if s == nil {
		if c.neverOpened(f.Stream) {
			return broken(http2.ProtocolError, "DATA on a stream that was not opened (RFC 9113, section 5.1)")
		}
		return c.useless() // we reset it, and this was under way
	}
	return s.receiveLocked(f.Length, n, c.data.end)
}

// neverOpened reports whether a server speaks of a stream that we did not open.
func (c *Conn) neverOpened(id uint32) bool { return id >= c.mu.next || id&1 == 0 }

// takeData reads what the buffer has of a DATA frame, and reports whether that
// was all of it. c.mu is held.
func (c *Conn) takeData() bool {
	d := &c.data
	if n := min(d.left, c.buf.Len()); n > 0 {
		if s := c.mu.streams.Get(d.id); s != nil {
			s.body.PutLocked(c.buf.Bytes()[:n])
		}
		c.buf.Use(n)
		d.left -= n
	}
	if n := min(d.pad, c.buf.Len()); d.left == 0 && n > 0 {
		c.buf.Use(n)
		d.pad -= n
	}
	if d.left > 0 || d.pad > 0 {
		return false
	}
	c.endData()
	return true
}

// endData ends a DATA frame. c.mu is held.
func (c *Conn) endData() {
	if s := c.mu.streams.Get(c.data.id); s != nil && c.data.end {
		s.endRemoteLocked()
	}
	c.data = payload{}
}

// direct reads the rest of a large DATA frame into memory that the body then
// owns.
func (c *Conn) direct() error {
	d := &c.data
	k := http2.TakeChunk(d.left)
	for n := d.left; k.W < n; {
		m, err := c.nc.Read(k.Mem[k.W:n])
		if k.W += m; err == nil {
			continue
		}
		if err = c.lookUp(err); err != nil {
			k.Release()
			return err
		}
		c.nc.SetReadUntil(c.until())
	}
	c.heard.Store(exchange.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	d.left = 0
	if s := c.mu.streams.Get(d.id); s != nil {
		s.body.AddLocked(k)
	} else {
		k.Release()
	}
	if d.pad == 0 {
		c.endData()
	}
	return nil
}

// grantLocked opens the window of the connection by n bytes.
func (c *Conn) grantLocked(n int64) {
	c.mu.granted += n
	if c.mu.granted >= connWindow/4 {
		c.mu.Out = http2.AppendWindowUpdate(c.mu.Space(), 0, c.mu.granted)
		c.mu.granted = 0
	}
}

// onSettings applies the server's settings (RFC 9113, section 6.5).
func (c *Conn) onSettings(f http2.Frame, p []byte) error {
	switch {
	case f.Stream != 0:
		return broken(http2.ProtocolError, "SETTINGS on a stream (RFC 9113, section 6.5)")
	case f.Has(http2.FlagAck) && len(p) > 0:
		return broken(http2.FrameSizeError, "an acknowledgement of SETTINGS with content (RFC 9113, section 6.5)")
	case f.Has(http2.FlagAck):
		return c.useless()
	case len(p)%http2.SettingSize != 0:
		return broken(http2.FrameSizeError, "SETTINGS of a size that is no multiple of 6 (RFC 9113, section 6.5)")
	}
	if !c.first {
		c.mu.places = maxStreams
	}
	for ; len(p) > 0; p = p[http2.SettingSize:] {
		if err := c.set(http2.Setting(binary.BigEndian.Uint16(p)), binary.BigEndian.Uint32(p[2:])); err != nil {
			return err
		}
	}
	c.mu.Out = http2.AppendFrame(c.mu.Space(), 0, http2.FrameSettings, http2.FlagAck, 0)
	if !c.first {
		c.first = true
		close(c.greeted)
	}
	return c.useless()
}

// set applies one setting.
func (c *Conn) set(id http2.Setting, value uint32) error {
	switch id {
	case http2.SettingMaxConcurrentStreams:
		c.mu.places = int(min(value, maxStreams))
	case http2.SettingEnablePush:
		if value != 0 {
			return broken(http2.ProtocolError, "a server that announces that it accepts pushes (RFC 9113, section 6.5.2)")
		}
	case http2.SettingInitialWindowSize:
		if value > http2.MaxWindow {
			return broken(http2.FlowControlError, "SETTINGS_INITIAL_WINDOW_SIZE is too large (RFC 9113, section 6.5.2)")
		}
		by := int64(value) - c.mu.initial
		c.mu.initial = int64(value)
		for _, o := range c.mu.streams.All() {
			s := o.Stream
			if s.window += by; s.window > http2.MaxWindow {
				return broken(http2.FlowControlError, "a change of SETTINGS_INITIAL_WINDOW_SIZE makes a window too large (RFC 9113, section 6.9.2)")
			}
		}
		c.wakeSenders()
	case http2.SettingMaxFrameSize:
		if value < http2.MaxFrameSize || value > http2.MaxFrameSizeSetting {
			return broken(http2.ProtocolError, "SETTINGS_MAX_FRAME_SIZE is out of range (RFC 9113, section 6.5.2)")
		}
	}
	return nil
}

// onWindow opens the server's window (RFC 9113, section 6.9).
func (c *Conn) onWindow(f http2.Frame, p []byte) error {
	if len(p) != http2.WindowUpdateSize {
		return broken(http2.FrameSizeError, "WINDOW_UPDATE of a size other than 4 (RFC 9113, section 6.9)")
	}
	by := int64(binary.BigEndian.Uint32(p) & http2.MaxWindow)
	if f.Stream == 0 {
		if c.mu.window += by; by == 0 || c.mu.window > http2.MaxWindow {
			return broken(http2.FlowControlError, "WINDOW_UPDATE by nothing, or too much (RFC 9113, section 6.9.1)")
		}
		c.wakeSenders()
		return c.useless()
	}
	s := c.mu.streams.Get(f.Stream)
	if s == nil {
		if c.neverOpened(f.Stream) {
			return broken(http2.ProtocolError, "WINDOW_UPDATE on a stream that was not opened (RFC 9113, section 5.1)")
		}
		return c.useless()
	}
	if s.window += by; by == 0 || s.window > http2.MaxWindow {
		s.breakLocked(http2.FlowControlError, "WINDOW_UPDATE by nothing, or too much (RFC 9113, section 6.9.1)")
		return c.useless()
	}
	s.wakeUp.Raise()
	return c.useless()
}

// onReset ends a stream that the server does not want (RFC 9113, section 6.4).
func (c *Conn) onReset(f http2.Frame, p []byte) error {
	switch {
	case len(p) != http2.RSTStreamSize:
		return broken(http2.FrameSizeError, "RST_STREAM of a size other than 4 (RFC 9113, section 6.4)")
	case c.neverOpened(f.Stream):
		return broken(http2.ProtocolError, "RST_STREAM on a stream that was not opened (RFC 9113, section 6.4)")
	}
	if s := c.mu.streams.Get(f.Stream); s != nil {
		s.onResetLocked(http2.Code(binary.BigEndian.Uint32(p)))
		return nil
	}
	return c.useless()
}

// onPing answers (RFC 9113, section 6.7).
func (c *Conn) onPing(f http2.Frame, p []byte) error {
	switch {
	case len(p) != http2.PingSize:
		return broken(http2.FrameSizeError, "PING of a size other than 8 (RFC 9113, section 6.7)")
	case f.Stream != 0:
		return broken(http2.ProtocolError, "PING on a stream (RFC 9113, section 6.7)")
	case !f.Has(http2.FlagAck):
		c.mu.Out = http2.AppendPing(c.mu.Space(), http2.FlagAck, p)
	}
	return c.useless()
}

// onGoAway opens no more streams. Those that the server has not processed can be sent
// again; the others continue (RFC 9113, section 6.8).
func (c *Conn) onGoAway(f http2.Frame, p []byte) error {
	switch {
	case f.Stream != 0:
		return broken(http2.ProtocolError, "GOAWAY on a stream (RFC 9113, section 6.8)")
	case len(p) < 8:
		return broken(http2.FrameSizeError, "GOAWAY of less than 8 bytes (RFC 9113, section 6.8)")
	}
	last, code := binary.BigEndian.Uint32(p)&http2.MaxWindow, http2.Code(binary.BigEndian.Uint32(p[4:]))
	if last > c.mu.last {
		return broken(http2.ProtocolError, "a second GOAWAY contradicts the first (RFC 9113, section 6.8)")
	}
	c.mu.away, c.mu.last = true, last
	err := &exchange.Error{Reason: exchange.UpstreamReset,
		Err: fmt.Errorf("%w: server %s ends the connection (GOAWAY, %s)", ErrUnprocessed, c.settings.Name, code)}
	// The list changes while streams are removed: start with the last.
	for i := c.mu.streams.Len() - 1; i >= 0 && c.mu.streams.All()[i].ID > last; i-- {
		s := c.mu.streams.All()[i].Stream
		s.loseLocked(err)
		c.closeLocked(s)
	}
	if c.mu.Active == 0 {
		return errRetired
	}
	return nil
}
