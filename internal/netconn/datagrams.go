package netconn

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
)

// Datagrams is a UDP socket as quic-go requires it: it reads datagrams in batches, and
// hides temporary errors. At an error of a write quic-go closes the connection without
// notice to its peer, at one of a read all connections. A datagram that the system rejects
// counts as lost instead: QUIC sends its content again.
//
// One goroutine may read at a time; any may write.
type Datagrams struct {
	*net.UDPConn
	calls  datagramCalls
	failed func(op string, err error)
}

// The operations of a socket of datagrams that can fail.
const (
	SendDatagram    = "send"
	ReceiveDatagram = "receive"
)

// NewDatagrams returns c for quic-go. Closing either closes both. failed is called with
// errors that quic-go does not report, and the failed operation; it must be safe for
// concurrent use.
func NewDatagrams(c *net.UDPConn, failed func(op string, err error)) (*Datagrams, error) {
	d := &Datagrams{UDPConn: c, failed: failed}
	if err := d.calls.init(c); err != nil {
		return nil, err
	}
	return d, nil
}

// How long a read rests after an error.
const (
	shortestRest = time.Millisecond
	longestRest  = 100 * time.Millisecond
)

// sendPatience is the maximum wait of a write for space in the socket.
const sendPatience = time.Second

// ReadBatch waits for datagrams and reads as many as are there, one into the first
// buffer of each message. flags are those of recvmmsg(2). It fails when the socket is
// closed or its deadline has passed.
func (d *Datagrams) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for rest := shortestRest; ; rest = min(2*rest, longestRest) {
		n, err := d.calls.read(ms, flags)
		if err == nil || !ofSystem(err) {
			return n, err
		}
		d.failed(ReceiveDatagram, err)
		time.Sleep(rest)
	}
}

// WriteMsgUDP sends b, with the control messages oob, to an address. If the socket is full
// it waits for some time. It fails if the socket is closed, the datagram is too large, or
// the device cannot send several at once; quic-go handles these errors.
func (d *Datagrams) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	err = d.calls.write(b, oob, to)
	if errors.Is(err, syscall.EPERM) { // that of a new socket may be none (golang/go#63322)
		err = d.calls.write(b, oob, to)
	}
	switch {
	case err == nil:
	case errors.Is(err, syscall.EMSGSIZE), errors.Is(err, syscall.EIO) && segmented(oob):
		return 0, 0, err
	case !ofSystem(err) && !errors.Is(err, os.ErrDeadlineExceeded):
		return 0, 0, err
	default:
		d.failed(SendDatagram, err)
	}
	return len(b), len(oob), nil
}

// ofSystem reports whether the system has returned an error, and not package net.
func ofSystem(err error) bool {
	_, ok := errors.AsType[syscall.Errno](err)
	return ok && !errors.Is(err, net.ErrClosed)
}
