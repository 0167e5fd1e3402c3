package proxyproto

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"headgate/internal/netconn"
)

// ReadHeader reads the header at the start of nc, with a timeout, and returns the
// connection with the addresses in the header, or nc itself if there are none. The
// bytes after the header stay on the socket. After an error, the caller closes nc.
func ReadHeader(nc netconn.Stream, within time.Duration) (net.Conn, error) {
	if err := nc.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	b, err := read(nc)
	if err != nil {
		return nil, err
	}
	h, err := Parse(b)
	if err != nil {
		return nil, err
	}
	if err := nc.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if !h.Source.IsValid() {
		return nc, nil
	}
	return netconn.Announce(nc, net.TCPAddrFromAddrPort(h.Source), net.TCPAddrFromAddrPort(h.Destination)), nil
}

// read reads a header and nothing behind it: each read requests only bytes that
// are certainly part of the header.
func read(r io.Reader) ([]byte, error) {
	b := make([]byte, 0, 128)
	for {
		n, err := need(b)
		if n == 0 || err != nil {
			return b, err
		}
		at := len(b)
		if cap(b) < at+n {
			b = append(make([]byte, 0, at+n), b...)
		}
		n, err = r.Read(b[at : at+n])
		b = b[:at+n]
		switch {
		case n > 0:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, ErrLate
		case err == io.EOF && at == 0:
			return nil, ErrMissing
		case err == io.EOF:
			return nil, ErrTruncated
		case err != nil:
			return nil, err
		}
	}
}
