package h2

import (
	"encoding/binary"
	"errors"

	"headgate/internal/proto/http2"
)

// onSettings applies the client's settings (RFC 9113, section 6.5).
func (c *Conn) onSettings(h http2.Frame, p []byte) error {
	switch {
	case h.Stream != 0:
		return broken(http2.ProtocolError, "SETTINGS on a stream (RFC 9113, section 6.5)")
	case h.Flags&http2.FlagAck != 0 && len(p) > 0:
		return broken(http2.FrameSizeError, "an acknowledgement of SETTINGS with content (RFC 9113, section 6.5)")
	case h.Flags&http2.FlagAck != 0:
		c.settled = true
		return nil
	case len(p)%http2.SettingSize != 0:
		return broken(http2.FrameSizeError, "SETTINGS of a size that is no multiple of 6 (RFC 9113, section 6.5)")
	}
	c.greeted = true
	c.mu.Lock()
	defer c.mu.Unlock()
	window := c.mu.initial
	for ; len(p) > 0; p = p[http2.SettingSize:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch http2.Setting(binary.BigEndian.Uint16(p)) {
		case http2.SettingHeaderTableSize:
			c.mu.resize = c.mu.resize || value < http2.InitialTableSize
		case http2.SettingEnablePush, http2.SettingEnableConnectProtocol, http2.SettingNoRFC7540Priorities:
			if value > 1 {
				return broken(http2.ProtocolError, "a setting that is neither 0 nor 1 (RFC 9113, section 6.5.2)")
			}
		case http2.SettingInitialWindowSize:
			if value > http2.MaxWindow {
				return broken(http2.FlowControlError, "SETTINGS_INITIAL_WINDOW_SIZE is too large (RFC 9113, section 6.5.2)")
			}
			window = int64(value)
		case http2.SettingMaxFrameSize:
			if value < http2.MaxFrameSize || value > http2.MaxFrameSizeSetting {
				return broken(http2.ProtocolError, "SETTINGS_MAX_FRAME_SIZE is out of range (RFC 9113, section 6.5.2)")
			}
		}
	}
	if err := c.rewindow(window); err != nil {
		return err
	}
	c.mu.Out = http2.AppendFrame(c.mu.Space(), 0, http2.FrameSettings, http2.FlagAck, 0)
	return c.chargeLocked(floodSettings)
}

// rewindow changes the window of all streams by as much as the initial window
// has changed (RFC 9113, section 6.9.2). c.mu is held.
func (c *Conn) rewindow(initial int64) error {
	by := initial - c.mu.initial
	c.mu.initial = initial
	if by == 0 {
		return nil
	}
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		if s.window += by; s.window > http2.MaxWindow {
			return broken(http2.FlowControlError, "a change of SETTINGS_INITIAL_WINDOW_SIZE makes a window too large (RFC 9113, section 6.9.2)")
		}
		if s.piece.queued {
			s.wake.Raise()
		}
	}
	return nil
}

// onWindow opens the client's window (RFC 9113, section 6.9).
func (c *Conn) onWindow(h http2.Frame, p []byte) error {
	if len(p) != http2.WindowUpdateSize {
		return broken(http2.FrameSizeError, "WINDOW_UPDATE of a size other than 4 (RFC 9113, section 6.9)")
	}
	by := int64(binary.BigEndian.Uint32(p) & http2.MaxWindow)
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.Stream == 0 {
		return c.openLocked(by)
	}
	if c.idleLocked(h.Stream) {
		return broken(http2.ProtocolError, "WINDOW_UPDATE on an idle stream (RFC 9113, section 5.1)")
	}
	s := c.stream(h.Stream)
	switch {
	case s == nil:
		return c.chargeLocked(floodPriority)
	case by == 0:
		c.resetLocked(s, http2.ProtocolError, errors.New("the client opened a window by nothing"))
		return c.offend()
	case s.window+by > http2.MaxWindow:
		c.resetLocked(s, http2.FlowControlError, errors.New("the client opened a window too far"))
		return c.offend()
	}
	s.window += by
	if s.piece.queued {
		s.wake.Raise()
	}
	return c.chargeLocked(floodWindow)
}

// openLocked opens the window of the connection.
func (c *Conn) openLocked(by int64) error {
	switch {
	case by == 0:
		return broken(http2.ProtocolError, "WINDOW_UPDATE by nothing (RFC 9113, section 6.9)")
	case c.mu.window+by > http2.MaxWindow:
		return broken(http2.FlowControlError, "WINDOW_UPDATE makes the connection's window too large (RFC 9113, section 6.9.1)")
	}
	c.mu.window += by
	// One is enough: its goroutine writes the data of all streams.
	if s := c.mu.queue.first(); s != nil {
		s.wake.Raise()
	}
	return c.chargeLocked(floodWindow)
}

// idleLocked reports whether a client speaks of a stream that was never opened.
func (c *Conn) idleLocked(id uint32) bool { return id > c.mu.lastID || id&1 == 0 }

// onReset ends a stream that the client does not want any more (RFC 9113, section
// 6.4).
func (c *Conn) onReset(h http2.Frame, p []byte) error {
	switch {
	case len(p) != http2.RSTStreamSize:
		return broken(http2.FrameSizeError, "RST_STREAM of a size other than 4 (RFC 9113, section 6.4)")
	case h.Stream == 0:
		return broken(http2.ProtocolError, "RST_STREAM on stream 0 (RFC 9113, section 6.4)")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idleLocked(h.Stream) {
		return broken(http2.ProtocolError, "RST_STREAM on an idle stream (RFC 9113, section 6.4)")
	}
	s := c.stream(h.Stream)
	if s == nil {
		return c.chargeLocked(floodPriority)
	}
	if s.gone == nil {
		s.gone = errReset
	}
	s.local, s.remote = true, true
	c.mu.queue.remove(s)
	c.closeLocked(s, false)
	s.lookUp()
	return c.takenBack()
}

var errReset = errors.New("the client reset the stream")

// onPing answers (RFC 9113, section 6.7).
func (c *Conn) onPing(h http2.Frame, p []byte) error {
	switch {
	case len(p) != http2.PingSize:
		return broken(http2.FrameSizeError, "PING of a size other than 8 (RFC 9113, section 6.7)")
	case h.Stream != 0:
		return broken(http2.ProtocolError, "PING on a stream (RFC 9113, section 6.7)")
	case h.Flags&http2.FlagAck == 0:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.Out = http2.AppendPing(c.mu.Space(), http2.FlagAck, p)
		return c.chargeLocked(floodPing)
	case c.drain == warned && string(p) == drainPing:
		return c.goOnDraining()
	}
	return c.charge(floodPriority)
}

// onGoAway records that the client will open no more streams. Active ones are served (RFC
// 9113, section 6.8).
func (c *Conn) onGoAway(h http2.Frame, p []byte) error {
	switch {
	case h.Stream != 0:
		return broken(http2.ProtocolError, "GOAWAY on a stream (RFC 9113, section 6.8)")
	case len(p) < 8:
		return broken(http2.FrameSizeError, "GOAWAY of less than 8 bytes (RFC 9113, section 6.8)")
	}
	return c.charge(floodSettings)
}
