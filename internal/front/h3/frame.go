package h3

import "github.com/quic-go/quic-go"

// code is an error code of HTTP/3 (RFC 9114, section 8.1; RFC 9204, section 8.3).
type code uint64

const (
	noError              code = 0x100
	generalProtocolError code = 0x101
	internalError        code = 0x102
	streamCreationError  code = 0x103
	closedCriticalStream code = 0x104
	frameUnexpected      code = 0x105
	frameError           code = 0x106
	excessiveLoad        code = 0x107
	idError              code = 0x108
	settingsError        code = 0x109
	missingSettings      code = 0x10a
	requestRejected      code = 0x10b
	requestCancelled     code = 0x10c
	requestIncomplete    code = 0x10d
	messageError         code = 0x10e
	decompressionFailed  code = 0x200
	encoderStreamError   code = 0x201
	decoderStreamError   code = 0x202
)

func (c code) wire() quic.ApplicationErrorCode { return quic.ApplicationErrorCode(c) }

func (c code) stream() quic.StreamErrorCode { return quic.StreamErrorCode(c) }

// connError is a rule that ends the connection.
type connError struct {
	code  code
	text  string
	flood string // the word of the flood that it is, or ""
}

func (e *connError) Error() string { return e.text }

func broken(c code, text string) error { return &connError{code: c, text: text} }

// Types of frames (RFC 9114, section 7.2; RFC 9218, section 7.2).
const (
	frameData            = 0x00
	frameHeaders         = 0x01
	frameCancelPush      = 0x03
	frameSettings        = 0x04
	framePushPromise     = 0x05
	frameGoAway          = 0x07
	frameMaxPushID       = 0x0d
	framePriorityRequest = 0xf0700
	framePriorityPush    = 0xf0701
	settingFieldSection  = 0x06
	settingConnect       = 0x08 // RFC 9220
	settingDatagram      = 0x33
	streamControl        = 0x00
	streamPush           = 0x01
	streamEncoder        = 0x02
	streamDecoder        = 0x03
	maxFrameHead         = 16 // bytes of a type and a length
	maxControlFrame      = 4 << 10
	maxUnknownBeforeHead = 64
)

// controlStreams is how many unidirectional streams a client may have open at once.
// Three are needed (RFC 9114, section 6.2).
const controlStreams = 8

// http2Only reports the types of frames of HTTP/2 that are an error here (RFC 9114,
// section 7.2.8).
func http2Only(kind uint64) bool {
	switch kind {
	case 0x02, 0x06, 0x08, 0x09:
		return true
	}
	return false
}

// misplaced reports whether a frame that is known may not come on a stream of a
// request (RFC 9114, section 7).
func misplaced(kind uint64) bool {
	switch kind {
	case frameCancelPush, frameSettings, framePushPromise, frameGoAway, frameMaxPushID, framePriorityRequest, framePriorityPush:
		return true
	}
	return http2Only(kind)
}

// varint reads an integer of QUIC (RFC 9000, section 16). n is 0 if it is not
// whole.
func varint(b []byte) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	n = 1 << (b[0] >> 6)
	if len(b) < n {
		return 0, 0
	}
	v = uint64(b[0] & 0x3f)
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	return v, n
}

// appendVarint appends an integer of QUIC.
func appendVarint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<6:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, 0x40|byte(v>>8), byte(v))
	case v < 1<<30:
		return append(b, 0x80|byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return append(b, 0xc0|byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// appendFrame appends the type and the length of a frame.
func appendFrame(b []byte, kind, length uint64) []byte {
	return appendVarint(appendVarint(b, kind), length)
}
