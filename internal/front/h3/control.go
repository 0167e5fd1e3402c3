package h3

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"
)

// greet opens our control stream and sends SETTINGS, which come first (RFC 9114,
// section 6.2.1). There are no streams of QPACK, as both tables have no size (RFC
// 9204, section 4.2).
func (c *Conn) greet() error {
	qs, err := c.quic.OpenUniStream()
	if err != nil {
		return err
	}
	settings := appendVarint(nil, settingFieldSection)
	settings = appendVarint(settings, uint64(c.front.Port().HeadSize))
	settings = appendVarint(settings, settingConnect)
	settings = appendVarint(settings, 1)
	b := appendVarint(nil, streamControl)
	b = append(appendFrame(b, frameSettings, uint64(len(settings))), settings...)
	_, err = qs.Write(b)
	c.mu.Lock()
	c.mu.control = qs
	c.mu.Unlock()
	context.AfterFunc(qs.Context(), func() {
		if stopped := (*quic.StreamError)(nil); errors.As(context.Cause(qs.Context()), &stopped) && stopped.Remote {
			c.fail(broken(closedCriticalStream, "the client stops our control stream (RFC 9114, section 6.2.1)"))
		}
	})
	return err
}

// goAwayLocked sends GOAWAY for requests from this stream on (RFC 9114, section 5.2). c.mu
// is held. The frame is short and buffered.
func (c *Conn) goAwayLocked(id quic.StreamID) {
	payload := appendVarint(nil, uint64(id))
	c.mu.control.Write(append(appendFrame(nil, frameGoAway, uint64(len(payload))), payload...))
}

// acceptControls accepts the client's unidirectional streams.
func (c *Conn) acceptControls() {
	for {
		qs, err := c.quic.AcceptUniStream(context.Background())
		if err != nil {
			return
		}
		if c.isHeld() {
			return
		}
		c.workers.Go(func() {
			defer c.guard()
			err := c.unidirectional(qs)
			qs.ReleaseStreamCredit()
			if err != nil {
				c.fail(err)
			}
		})
	}
}

// unidirectional reads a stream whose type is at its start (RFC 9114, section
// 6.2).
func (c *Conn) unidirectional(qs *quic.ReceiveStream) error {
	var in input
	in.buf = make([]byte, roomLeast)
	in.from = qs
	var kind uint64
	for n := 0; n == 0; kind, n = varint(in.bytes()) {
		if err := in.fill(); err != nil {
			// It ended before it had a type, which is no error but for nothing
			// (RFC 9114, section 6.2), or the connection did.
			return c.budget.charge(frameFlood)
		}
	}
	_, n := varint(in.bytes())
	in.r += n
	switch kind {
	case streamControl, streamEncoder, streamDecoder:
		if err := c.once(kind); err != nil {
			return err
		}
	case streamPush:
		return broken(streamCreationError, "a push stream from a client (RFC 9114, section 6.2.2)")
	default:
		qs.CancelRead(streamCreationError.stream()) // RFC 9114, section 6.2
		return c.budget.charge(frameFlood)
	}
	err := c.critical(kind, &in)
	if c.quic.Context().Err() != nil {
		return nil
	}
	var rule *connError
	if !errors.As(err, &rule) || err == errTruncated {
		err = broken(closedCriticalStream, "a control stream was closed (RFC 9114, section 6.2.1)")
	}
	return err
}

// once notes the type of a stream of which there may be one.
func (c *Conn) once(kind uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	bit := uint8(1) << kind
	if c.mu.kinds&bit != 0 {
		return broken(streamCreationError, "a second control or QPACK stream (RFC 9114, section 6.2.1)")
	}
	c.mu.kinds |= bit
	return nil
}

// critical reads a stream that lasts as long as the connection. It returns when
// that has ended or breaks a rule.
func (c *Conn) critical(kind uint64, in *input) error {
	switch kind {
	case streamEncoder:
		return c.encoder(in)
	case streamDecoder:
		return c.decoder(in)
	}
	k := control{conn: c, push: -1, goAway: -1}
	for {
		if err := k.frame(in); err != nil {
			return err
		}
	}
}

// encoder reads the instructions for our dynamic table. As it has no size, only
// the one that sets the size to that is good (RFC 9204, section 4.3.1).
func (c *Conn) encoder(in *input) error {
	for {
		if err := in.await(1); err != nil {
			return err
		}
		for _, b := range in.bytes() {
			if b != 0x20 {
				return broken(encoderStreamError, "an instruction for a dynamic table that has no size (RFC 9204, section 4.3)")
			}
		}
		in.r = in.w
		if err := c.budget.charge(frameFlood); err != nil {
			return err
		}
	}
}

// decoder reads the client's acknowledgements for the dynamic table, which is not used. It
// may cancel a stream (RFC 9204, section 4.4.2).
func (c *Conn) decoder(in *input) error {
	for more := false; ; {
		if err := in.await(1); err != nil {
			return err
		}
		for _, b := range in.bytes() {
			switch {
			case more:
				more = b&0x80 != 0
			case b&0xc0 != 0x40:
				return broken(decoderStreamError, "an acknowledgement of a section that used no dynamic table (RFC 9204, section 4.4)")
			default:
				more = b&0x3f == 0x3f
			}
		}
		in.r = in.w
		if err := c.budget.charge(frameFlood); err != nil {
			return err
		}
	}
}

// control is what is known of the client's control stream.
type control struct {
	conn    *Conn
	greeted bool  // SETTINGS came
	push    int64 // MAX_PUSH_ID, or -1
	goAway  int64 // the number in the last GOAWAY, or -1
}

// frame reads one frame of the control stream (RFC 9114, section 7.2).
func (k *control) frame(in *input) error {
	kind, length, err := in.frame()
	if err != nil {
		return err
	}
	if !k.greeted && kind != frameSettings {
		return broken(missingSettings, "the control stream does not start with SETTINGS (RFC 9114, section 6.2.1)")
	}
	switch kind {
	case frameSettings, frameGoAway, frameMaxPushID, frameCancelPush, framePriorityRequest, framePriorityPush:
	case frameData, frameHeaders, framePushPromise:
		return broken(frameUnexpected, "a frame of a request on the control stream (RFC 9114, section 7)")
	default:
		if http2Only(kind) {
			return broken(frameUnexpected, "a frame of HTTP/2 (RFC 9114, section 7.2.8)")
		}
		return in.skip(length, &k.conn.budget)
	}
	if length > maxControlFrame {
		return broken(excessiveLoad, "a control frame is too long (RFC 9114, section 10.5)")
	}
	if err := in.await(int(length)); err != nil {
		return err
	}
	p := in.bytes()[:length]
	in.r += int(length)
	if err := k.handleFrame(kind, p); err != nil {
		return err
	}
	return k.conn.budget.charge(frameFlood)
}

// handleFrame handles a frame.
func (k *control) handleFrame(kind uint64, p []byte) error {
	if kind == frameSettings {
		if k.greeted {
			return broken(frameUnexpected, "SETTINGS twice (RFC 9114, section 7.2.4)")
		}
		k.greeted = true
		return settings(p)
	}
	id, n := varint(p)
	updates := kind == framePriorityRequest || kind == framePriorityPush
	if n == 0 || n != len(p) && !updates {
		return broken(frameError, "a frame that is no number (RFC 9114, section 7.2)")
	}
	switch {
	case kind == framePriorityPush:
		return broken(idError, "PRIORITY_UPDATE of what was never promised (RFC 9218, section 7.2)")
	case kind == framePriorityRequest:
		return k.conn.updatable(id)
	case kind == frameCancelPush:
		return broken(idError, "CANCEL_PUSH of what was never promised (RFC 9114, section 7.2.3)")
	case kind == frameMaxPushID && int64(id) < k.push:
		return broken(idError, "MAX_PUSH_ID below that of before (RFC 9114, section 7.2.7)")
	case kind == frameMaxPushID:
		k.push = int64(id)
	case k.goAway >= 0 && int64(id) > k.goAway:
		return broken(idError, "GOAWAY with a number above that of before (RFC 9114, section 5.2)")
	default:
		k.goAway = int64(id)
	}
	return nil
}

// updatable judges the stream that PRIORITY_UPDATE is about. The update itself is a
// hint that we leave out.
func (c *Conn) updatable(id uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := uint64(c.mu.next) + 4*uint64(c.front.Port().Streams)
	if id%4 != 0 || id >= most {
		return broken(idError, "PRIORITY_UPDATE of a stream that no request can have (RFC 9218, section 7.2)")
	}
	return nil
}

// settings judges SETTINGS (RFC 9114, section 7.2.4.1). None of them changes what
// we do.
func settings(p []byte) error {
	seen := map[uint64]bool{}
	for len(p) > 0 {
		id, n := varint(p)
		if n == 0 {
			return broken(frameError, "SETTINGS that are not whole (RFC 9114, section 7.2.4)")
		}
		value, m := varint(p[n:])
		if m == 0 {
			return broken(frameError, "SETTINGS that are not whole (RFC 9114, section 7.2.4)")
		}
		p = p[n+m:]
		switch {
		case seen[id]:
			return broken(settingsError, "a setting twice (RFC 9114, section 7.2.4)")
		case id >= 0x02 && id <= 0x05:
			return broken(settingsError, "a setting of HTTP/2 (RFC 9114, section 7.2.4.1)")
		case (id == settingConnect || id == settingDatagram) && value > 1:
			return broken(settingsError, "a setting that is neither 0 nor 1 (RFC 9220, section 5; RFC 9297, section 2.1.1)")
		}
		seen[id] = true
	}
	return nil
}
