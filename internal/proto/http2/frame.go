// Package http2 is the syntax of HTTP/2 (RFC 9113): frames and their numbers
// (frame.go), field blocks written with the static table of HPACK alone (field.go),
// the memory that bodies and frames lie in on their way (memory.go), and what the
// connections of both sides do alike: their table of streams (streams.go), the writer
// of frames (writer.go), and bodies that are read as they come (body.go).
//
// It reads no frames: front/h2 speaks with clients, upstream/h2 with servers.
package http2

import (
	"encoding/binary"
	"strconv"
)

// FrameType is the type of a frame (RFC 9113, section 6).
type FrameType uint8

// The types of frames.
const (
	FrameData         FrameType = 0x0
	FrameHeaders      FrameType = 0x1
	FramePriority     FrameType = 0x2
	FrameRSTStream    FrameType = 0x3
	FrameSettings     FrameType = 0x4
	FramePushPromise  FrameType = 0x5
	FramePing         FrameType = 0x6
	FrameGoAway       FrameType = 0x7
	FrameWindowUpdate FrameType = 0x8
	FrameContinuation FrameType = 0x9
	// FramePriorityUpdate is of RFC 9218, section 7.1.
	FramePriorityUpdate FrameType = 0x10
)

// Flags of frames.
const (
	FlagEndStream  = 0x1
	FlagAck        = 0x1
	FlagEndHeaders = 0x4
	FlagPadded     = 0x8
	FlagPriority   = 0x20
)

// Sizes in bytes.
const (
	FrameHeaderSize  = 9       // of the head of a frame
	MaxFrameSize     = 1 << 14 // the largest frame that headgate accepts and sends: the initial SETTINGS_MAX_FRAME_SIZE
	MaxWindow        = 1<<31 - 1
	InitialWindow    = 1<<16 - 1 // the initial window (RFC 9113, section 6.9.2)
	SettingSize      = 6
	PingSize         = 8
	RSTStreamSize    = 4
	WindowUpdateSize = 4
	PrioritySize     = 5
)

// Setting is the identifier of a setting (RFC 9113, section 6.5.2).
type Setting uint16

// The settings.
const (
	SettingHeaderTableSize      Setting = 0x1
	SettingEnablePush           Setting = 0x2
	SettingMaxConcurrentStreams Setting = 0x3
	SettingInitialWindowSize    Setting = 0x4
	SettingMaxFrameSize         Setting = 0x5
	SettingMaxHeaderListSize    Setting = 0x6
	// SettingEnableConnectProtocol is of RFC 8441, section 3, SettingNoRFC7540Priorities of RFC 9218,
	// section 2.1.
	SettingEnableConnectProtocol Setting = 0x8
	SettingNoRFC7540Priorities   Setting = 0x9
)

// Bounds of SETTINGS_MAX_FRAME_SIZE, and the size of HPACK's table at first.
const (
	MaxFrameSizeSetting = 1<<24 - 1
	InitialTableSize    = 4096
)

// Preface is the start of a client's connection (RFC 9113, section 3.4).
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Code is an error code (RFC 9113, section 7).
type Code uint32

// The error codes.
const (
	NoError            Code = 0x0
	ProtocolError      Code = 0x1
	InternalError      Code = 0x2
	FlowControlError   Code = 0x3
	SettingsTimeout    Code = 0x4
	StreamClosed       Code = 0x5
	FrameSizeError     Code = 0x6
	RefusedStream      Code = 0x7
	Cancel             Code = 0x8
	CompressionError   Code = 0x9
	ConnectError       Code = 0xa
	EnhanceYourCalm    Code = 0xb
	InadequateSecurity Code = 0xc
	HTTP11Required     Code = 0xd
)

// codes are the words of the codes.
var codes = [...]string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
	"STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR",
	"ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"}

// String returns the word that RFC 9113 has for the code.
func (c Code) String() string {
	if int(c) < len(codes) {
		return codes[c]
	}
	return "error code " + strconv.FormatUint(uint64(c), 10)
}

// Frame is the head of a frame.
type Frame struct {
	// Length is the number of bytes behind the head.
	Length int
	Type   FrameType
	Flags  uint8
	// Stream is 0 for frames of the connection.
	Stream uint32
}

// Has reports whether a flag is set.
func (f Frame) Has(flag uint8) bool { return f.Flags&flag != 0 }

// ParseFrame reads the head of a frame from FrameHeaderSize bytes. The reserved bit is
// ignored (RFC 9113, section 4.1).
func ParseFrame(b []byte) Frame {
	_ = b[FrameHeaderSize-1]
	return Frame{
		Length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		Type:   FrameType(b[3]),
		Flags:  b[4],
		Stream: binary.BigEndian.Uint32(b[5:]) & MaxWindow,
	}
}

// AppendFrame appends the head of a frame.
func AppendFrame(b []byte, length int, kind FrameType, flags uint8, stream uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), flags,
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

// AppendRSTStream appends RST_STREAM.
func AppendRSTStream(b []byte, stream uint32, c Code) []byte {
	b = AppendFrame(b, RSTStreamSize, FrameRSTStream, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(c))
}

// AppendWindowUpdate appends WINDOW_UPDATE by n.
func AppendWindowUpdate(b []byte, stream uint32, n int64) []byte {
	b = AppendFrame(b, WindowUpdateSize, FrameWindowUpdate, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

// AppendPing appends PING with eight bytes of data.
func AppendPing(b []byte, flags uint8, data []byte) []byte {
	return append(AppendFrame(b, PingSize, FramePing, flags, 0), data...)
}

// AppendGoAway appends GOAWAY.
func AppendGoAway(b []byte, last uint32, c Code, text string) []byte {
	b = AppendFrame(b, 8+len(text), FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(c))
	return append(b, text...)
}

// AppendSetting appends one setting of a SETTINGS frame.
func AppendSetting(b []byte, id Setting, value uint32) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	return binary.BigEndian.AppendUint32(b, value)
}

// AppendBlock appends a field block in as many frames as needed (RFC 9113,
// sections 6.2 and 6.10). prefix, if not 0, is one byte before the block; end
// ends the stream.
func AppendBlock(b []byte, stream uint32, prefix byte, block []byte, end bool) []byte {
	kind, flags := FrameHeaders, uint8(0)
	if end {
		flags = FlagEndStream
	}
	for {
		n := min(len(block), MaxFrameSize-1)
		if n == len(block) {
			flags |= FlagEndHeaders
		}
		if prefix != 0 {
			b = append(AppendFrame(b, n+1, kind, flags, stream), prefix)
			prefix = 0
		} else {
			b = AppendFrame(b, n, kind, flags, stream)
		}
		b = append(b, block[:n]...)
		block = block[n:]
		if flags&FlagEndHeaders != 0 {
			return b
		}
		kind, flags = FrameContinuation, 0
	}
}
