package h2

import (
	"encoding/binary"
	"fmt"
)

// frameType is the type of a frame (RFC 9113, section 6).
type frameType uint8

const (
	frameData           frameType = 0x0
	frameHeaders        frameType = 0x1
	framePriority       frameType = 0x2
	frameReset          frameType = 0x3
	frameSettings       frameType = 0x4
	framePush           frameType = 0x5
	framePing           frameType = 0x6
	frameGoAway         frameType = 0x7
	frameWindow         frameType = 0x8
	frameContinuation   frameType = 0x9
	framePriorityUpdate frameType = 0x10 // RFC 9218, section 7.1
)

// Flags of frames.
const (
	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// Sizes in bytes.
const (
	headSize     = 9
	mostFrame    = 1 << 14 // the largest frame that we take, and send: the initial SETTINGS_MAX_FRAME_SIZE
	mostWindow   = 1<<31 - 1
	firstWindow  = 1<<16 - 1 // the initial window of RFC 9113, section 6.9.2
	settingSize  = 6
	pingSize     = 8
	resetSize    = 4
	windowSize   = 4
	prioritySize = 5
)

// setting is the identifier of a setting (RFC 9113, section 6.5.2).
type setting uint16

const (
	settingTableSize     setting = 0x1
	settingPush          setting = 0x2
	settingStreams       setting = 0x3
	settingWindow        setting = 0x4
	settingFrameSize     setting = 0x5
	settingListSize      setting = 0x6
	settingConnect       setting = 0x8 // RFC 8441, section 3
	settingNoPriorities  setting = 0x9 // RFC 9218, section 2.1
	firstTableSize               = 4096
	mostSettingFrameSize         = 1<<24 - 1
)

// preface is what a client's connection begins with (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// code is an error code (RFC 9113, section 7).
type code uint32

const (
	noError            code = 0x0
	protocolError      code = 0x1
	internalError      code = 0x2
	flowControlError   code = 0x3
	settingsTimeout    code = 0x4
	streamClosed       code = 0x5
	frameSizeError     code = 0x6
	refusedStream      code = 0x7
	cancelled          code = 0x8
	compressionError   code = 0x9
	enhanceYourCalm    code = 0xb
	inadequateSecurity code = 0xc
)

// connError ends a connection: GOAWAY with its code is sent. The text goes to
// the log and along with the GOAWAY.
type connError struct {
	code  code
	flood Flood // None if it was no flood
	text  string
}

// Error returns the text with the code.
func (e *connError) Error() string { return fmt.Sprintf("%s (error code %d)", e.text, e.code) }

func broken(c code, text string) error { return &connError{code: c, text: text} }

// frameHead is the head of a frame.
type frameHead struct {
	length int
	kind   frameType
	flags  uint8
	id     uint32
}

// parseHead reads the head of a frame. The reserved bit is ignored (RFC 9113,
// section 4.1).
func parseHead(b []byte) frameHead {
	_ = b[headSize-1]
	return frameHead{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   frameType(b[3]),
		flags:  b[4],
		id:     binary.BigEndian.Uint32(b[5:]) & mostWindow,
	}
}

// appendHead appends the head of a frame.
func appendHead(b []byte, length int, kind frameType, flags uint8, id uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), flags,
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

func appendReset(b []byte, id uint32, c code) []byte {
	b = appendHead(b, resetSize, frameReset, 0, id)
	return binary.BigEndian.AppendUint32(b, uint32(c))
}

func appendWindow(b []byte, id uint32, n int64) []byte {
	b = appendHead(b, windowSize, frameWindow, 0, id)
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendPing(b []byte, flags uint8, data []byte) []byte {
	return append(appendHead(b, pingSize, framePing, flags, 0), data...)
}

func appendGoAway(b []byte, last uint32, c code, text string) []byte {
	b = appendHead(b, 8+len(text), frameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(c))
	return append(b, text...)
}

func appendSetting(b []byte, id setting, value uint32) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	return binary.BigEndian.AppendUint32(b, value)
}

// appendHeaders appends a field block in as many frames as it takes (RFC 9113,
// sections 6.2 and 6.10). prefix, if not 0, is one byte that goes before the
// block.
func appendHeaders(b []byte, id uint32, prefix byte, block []byte, end bool) []byte {
	kind, flags := frameHeaders, uint8(0)
	if end {
		flags = flagEndStream
	}
	for {
		n := min(len(block), mostFrame-1)
		if n == len(block) {
			flags |= flagEndHeaders
		}
		if prefix != 0 {
			b = append(appendHead(b, n+1, kind, flags, id), prefix)
			prefix = 0
		} else {
			b = appendHead(b, n, kind, flags, id)
		}
		b = append(b, block[:n]...)
		block = block[n:]
		if flags&flagEndHeaders != 0 {
			return b
		}
		kind, flags = frameContinuation, 0
	}
}
