package h2

import (
	"encoding/binary"
	"errors"
)

// onSettings takes what the client says of itself (RFC 9113, section 6.5).
func (c *Conn) onSettings(h frameHead, p []byte) error {
	switch {
	case h.id != 0:
		return broken(protocolError, "SETTINGS on a stream (RFC 9113, section 6.5)")
	case h.flags&flagAck != 0 && len(p) > 0:
		return broken(frameSizeError, "an acknowledgement of SETTINGS with content (RFC 9113, section 6.5)")
	case h.flags&flagAck != 0:
		c.settled = true
		return nil
	case len(p)%settingSize != 0:
		return broken(frameSizeError, "SETTINGS of a size that is no multiple of 6 (RFC 9113, section 6.5)")
	}
	c.greeted = true
	c.mu.Lock()
	defer c.mu.Unlock()
	window := c.mu.initial
	for ; len(p) > 0; p = p[settingSize:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch setting(binary.BigEndian.Uint16(p)) {
		case settingTableSize:
			c.mu.resize = c.mu.resize || value < firstTableSize
		case settingPush, settingConnect, settingNoPriorities:
			if value > 1 {
				return broken(protocolError, "a setting that is neither 0 nor 1 (RFC 9113, section 6.5.2)")
			}
		case settingWindow:
			if value > mostWindow {
				return broken(flowControlError, "SETTINGS_INITIAL_WINDOW_SIZE is too large (RFC 9113, section 6.5.2)")
			}
			window = int64(value)
		case settingFrameSize:
			if value < mostFrame || value > mostSettingFrameSize {
				return broken(protocolError, "SETTINGS_MAX_FRAME_SIZE is out of range (RFC 9113, section 6.5.2)")
			}
		}
	}
	if err := c.rewindow(window); err != nil {
		return err
	}
	c.mu.out = appendHead(c.space(), 0, frameSettings, flagAck, 0)
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
	for _, s := range c.mu.streams {
		if s.window += by; s.window > mostWindow {
			return broken(flowControlError, "a change of SETTINGS_INITIAL_WINDOW_SIZE makes a window too large (RFC 9113, section 6.9.2)")
		}
		if s.piece.queued {
			s.lookUpSender()
		}
	}
	return nil
}

// onWindow opens the client's window (RFC 9113, section 6.9).
func (c *Conn) onWindow(h frameHead, p []byte) error {
	if len(p) != windowSize {
		return broken(frameSizeError, "WINDOW_UPDATE of a size other than 4 (RFC 9113, section 6.9)")
	}
	by := int64(binary.BigEndian.Uint32(p) & mostWindow)
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.id == 0 {
		return c.openLocked(by)
	}
	if c.idleLocked(h.id) {
		return broken(protocolError, "WINDOW_UPDATE on an idle stream (RFC 9113, section 5.1)")
	}
	s := c.stream(h.id)
	switch {
	case s == nil:
		return c.chargeLocked(floodPriority)
	case by == 0:
		c.resetLocked(s, protocolError, errors.New("the client opened a window by nothing"))
		return c.chargeLocked(floodReset)
	case s.window+by > mostWindow:
		c.resetLocked(s, flowControlError, errors.New("the client opened a window too far"))
		return c.chargeLocked(floodReset)
	}
	s.window += by
	if s.piece.queued {
		s.lookUpSender()
	}
	return c.chargeLocked(floodWindow)
}

// openLocked opens the window of the connection.
func (c *Conn) openLocked(by int64) error {
	switch {
	case by == 0:
		return broken(protocolError, "WINDOW_UPDATE by nothing (RFC 9113, section 6.9)")
	case c.mu.window+by > mostWindow:
		return broken(flowControlError, "WINDOW_UPDATE makes the connection's window too large (RFC 9113, section 6.9.1)")
	}
	c.mu.window += by
	// One is enough: whoever looks up moves what all have to send.
	if s := c.mu.queue.first(); s != nil {
		s.lookUpSender()
	}
	return c.chargeLocked(floodWindow)
}

// idleLocked reports whether a client speaks of a stream that was never opened.
func (c *Conn) idleLocked(id uint32) bool { return id > c.mu.lastID || id&1 == 0 }

// onReset ends a stream that the client does not want any more (RFC 9113, section
// 6.4).
func (c *Conn) onReset(h frameHead, p []byte) error {
	switch {
	case len(p) != resetSize:
		return broken(frameSizeError, "RST_STREAM of a size other than 4 (RFC 9113, section 6.4)")
	case h.id == 0:
		return broken(protocolError, "RST_STREAM on stream 0 (RFC 9113, section 6.4)")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idleLocked(h.id) {
		return broken(protocolError, "RST_STREAM on an idle stream (RFC 9113, section 6.4)")
	}
	s := c.stream(h.id)
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
	return c.chargeLocked(floodReset)
}

var errReset = errors.New("the client reset the stream")

// onPing answers (RFC 9113, section 6.7).
func (c *Conn) onPing(h frameHead, p []byte) error {
	switch {
	case len(p) != pingSize:
		return broken(frameSizeError, "PING of a size other than 8 (RFC 9113, section 6.7)")
	case h.id != 0:
		return broken(protocolError, "PING on a stream (RFC 9113, section 6.7)")
	case h.flags&flagAck == 0:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.out = appendPing(c.space(), flagAck, p)
		return c.chargeLocked(floodPing)
	case c.drain == warned && string(p) == drainPing:
		return c.goOnDraining()
	}
	return c.charge(floodPriority)
}

// onGoAway hears that the client will open no more streams. What is under way is
// served (RFC 9113, section 6.8).
func (c *Conn) onGoAway(h frameHead, p []byte) error {
	switch {
	case h.id != 0:
		return broken(protocolError, "GOAWAY on a stream (RFC 9113, section 6.8)")
	case len(p) < 8:
		return broken(frameSizeError, "GOAWAY of less than 8 bytes (RFC 9113, section 6.8)")
	}
	return c.charge(floodSettings)
}
