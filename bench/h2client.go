//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Frame types and flags of RFC 9113, section 6, that the harness meets.
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7
	frameWindow   = 8

	flagAck        = 1 // of SETTINGS
	flagEndStream  = 1
	flagEndHeaders = 4
	flagPadded     = 8
	flagPriority   = 32
)

// maxFrame is the longest payload that a peer may send: the default.
const maxFrame = 16 << 10

// frame is one frame of HTTP/2.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// append writes the frame at the end of b.
func (f frame) append(b []byte) []byte {
	n := len(f.payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), f.kind, f.flags)
	b = binary.BigEndian.AppendUint32(b, f.stream)
	return append(b, f.payload...)
}

// readFrame reads one frame.
func readFrame(r io.Reader) (frame, error) {
	var h [9]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	n := int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	if n > maxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes", n)
	}
	f := frame{kind: h[3], flags: h[4], stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31), payload: make([]byte, n)}
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

// content returns the payload of DATA or HEADERS without padding and priority.
func (f frame) content() ([]byte, error) {
	p := f.payload
	if f.flags&flagPadded != 0 {
		if len(p) == 0 || int(p[0]) > len(p)-1 {
			return nil, errors.New("padding longer than the frame")
		}
		p = p[1 : len(p)-int(p[0])]
	}
	if f.kind == frameHeaders && f.flags&flagPriority != 0 {
		if len(p) < 5 {
			return nil, errors.New("priority cut short")
		}
		p = p[5:]
	}
	return p, nil
}

// h2Request returns the bytes with which a connection begins and asks for / of a
// host, on stream 1.
func h2Request(host string) []byte {
	var block bytes.Buffer
	writeRequest(hpack.NewEncoder(&block), host, "/")
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	b = frame{kind: frameSettings}.append(b)
	return frame{kind: frameHeaders, flags: flagEndStream | flagEndHeaders, stream: 1, payload: block.Bytes()}.append(b)
}

// writeRequest encodes the fields of a request for a path of a host into a buffer. A path
// other than / does not enter the table, and the request accepts gzip.
func writeRequest(e *hpack.Encoder, host, path string) {
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: host},
		{Name: ":path", Value: path, Sensitive: path != "/"},
	}
	if path != "/" {
		fields = append(fields, hpack.HeaderField{Name: "accept-encoding", Value: "gzip, deflate"})
	}
	for _, f := range fields {
		_ = e.WriteField(f) // a bytes.Buffer takes everything
	}
}

// askH2 asks once on a new HTTP/2 connection, which it leaves open and idle. It
// wants the plain answer.
func askH2(conn net.Conn, host string) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write(h2Request(host)); err != nil {
		return err
	}
	status, body, err := readH2(conn)
	switch {
	case err != nil:
		return fmt.Errorf("h2: %w", err)
	case status != "200" || string(body) != hundredBytes:
		return fmt.Errorf("h2: status %q, %q", status, body)
	}
	return conn.SetDeadline(time.Time{})
}

// readH2 reads the answer of stream 1 and acknowledges the peer's settings.
func readH2(conn io.ReadWriter) (status string, body []byte, err error) {
	decoder := hpack.NewDecoder(4096, nil)
	for {
		f, err := readFrame(conn)
		if err != nil {
			return "", nil, err
		}
		switch f.kind {
		case frameSettings:
			if f.flags&flagAck == 0 {
				_, err = conn.Write(frame{kind: frameSettings, flags: flagAck}.append(nil))
			}
		case frameHeaders:
			var s string
			if s, err = statusOf(f, decoder); s != "" {
				status = s
			}
		case frameData:
			var part []byte
			part, err = f.content()
			body = append(body, part...)
		case frameReset, frameGoAway:
			err = fmt.Errorf("refused with a frame of type %d: %x", f.kind, f.payload)
		}
		if err != nil {
			return "", nil, err
		}
		if (f.kind == frameData || f.kind == frameHeaders) && f.flags&flagEndStream != 0 {
			return status, body, nil
		}
	}
}

// statusOf reads a head and returns its status; trailers have none.
func statusOf(f frame, decoder *hpack.Decoder) (string, error) {
	if f.flags&flagEndHeaders == 0 {
		return "", errors.New("a head in several frames")
	}
	block, err := f.content()
	if err != nil {
		return "", err
	}
	fields, err := decoder.DecodeFull(block)
	if err != nil {
		return "", err
	}
	for _, field := range fields {
		if field.Name == ":status" {
			return field.Value, nil
		}
	}
	return "", nil
}
