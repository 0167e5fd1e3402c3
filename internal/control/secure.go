package control

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"headgate/internal/front/h1"
	"headgate/internal/front/h2"
	"headgate/internal/listen"
	"headgate/internal/netconn"
)

// handshakeTime bounds a TLS handshake from the connection's begin.
const handshakeTime = 10 * time.Second

// handshakesAtOnce is how many handshakes run at once on one socket; more wait
// for their turn within their time. A handshake is the most that a stranger can
// make us compute.
const handshakesAtOnce = 256

// speaker is what speaks HTTP on a connection once it is known how.
type speaker struct {
	h1 *h1.Front
	h2 *h2.Front
}

// fresh is a connection of which it is not yet known what is spoken on it: TLS
// has to shake hands first, or a client of HTTP/2 without TLS to say so.
type fresh struct {
	// constant
	nc     net.Conn
	tls    *tls.Config // nil on a port without TLS
	to     *speaker
	serial uint64
	turn   chan struct{} // room for running handshakes

	mu struct {
		sync.Mutex
		conn     listen.Conn // once it is known what is spoken
		draining bool
		closed   bool
	}
}

// Serve finds out what is spoken, and serves it.
func (f *fresh) Serve() {
	c := f.begin()
	if c == nil {
		f.nc.Close()
		return
	}
	f.mu.Lock()
	f.mu.conn = c
	draining, closed := f.mu.draining, f.mu.closed
	f.mu.Unlock()
	switch {
	case closed:
		f.nc.Close()
		return
	case draining:
		c.Drain()
	}
	c.Serve()
}

// begin returns what speaks on the connection, nil if nothing can.
func (f *fresh) begin() listen.Conn {
	if f.tls == nil {
		if netconn.BeginsWith(f.nc, h2.Preface, handshakeTime) {
			return f.to.h2.NewConn(f.nc, f.serial)
		}
		return f.to.h1.NewConn(f.nc, f.serial)
	}
	secure := tls.Server(netconn.NewLazy(f.nc), f.tls)
	if !f.shake(secure) {
		return nil
	}
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		return f.to.h2.NewConn(secure, f.serial)
	}
	return f.to.h1.NewConn(secure, f.serial)
}

// shake makes the handshake, in its turn and in time.
func (f *fresh) shake(secure *tls.Conn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	// The turn is not taken before the client has said anything: a silent one
	// costs nobody else's.
	if !netconn.Readable(f.nc, handshakeTime) {
		return false
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return false
	}
	err := secure.HandshakeContext(ctx)
	var record tls.RecordHeaderError
	if errors.As(err, &record) && record.Conn != nil && looksLikeHTTP(record.RecordHeader) {
		f.explain()
	}
	return err == nil
}

// looksLikeHTTP reports whether the first bytes on a TLS port are those of a
// request without TLS.
func looksLikeHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH", "PRI *", "TRACE", "CONNE":
		return true
	}
	return false
}

// plainText is what a client reads that speaks HTTP without TLS on a TLS port.
const plainText = "400 Bad request\n\nThis port speaks HTTPS: write https:// in front of the address.\n\nReason: bad_request\n"

// plainAnswer is the answer that it gets.
var plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close\r\n" +
	"Proxy-Status: headgate; error=http_request_error; details=\"bad_request\"\r\n" +
	"Content-Length: " + strconv.Itoa(len(plainText)) + "\r\n\r\n" + plainText

// explain answers a request without TLS.
func (f *fresh) explain() {
	f.nc.SetDeadline(time.Now().Add(time.Second))
	if _, err := f.nc.Write([]byte(plainAnswer)); err != nil {
		return
	}
	if tcp, ok := f.nc.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		// Unread bytes would make the close a reset, which takes the answer away.
		var sink [4096]byte
		for {
			if _, err := f.nc.Read(sink[:]); err != nil {
				return
			}
		}
	}
}

// beginGrace is how long a connection that drains may take to say what is spoken
// on it.
const beginGrace = time.Second

// Drain makes the connection end soon.
func (f *fresh) Drain() {
	f.mu.Lock()
	f.mu.draining = true
	c := f.mu.conn
	f.mu.Unlock()
	if c != nil {
		c.Drain()
		return
	}
	time.AfterFunc(beginGrace, f.giveUp)
}

// giveUp ends a connection of which it is still not known what is spoken on it.
func (f *fresh) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.conn == nil {
		f.nc.Close()
	}
}

// Close ends the connection at once.
func (f *fresh) Close() error {
	f.mu.Lock()
	f.mu.closed = true
	c := f.mu.conn
	f.mu.Unlock()
	if c != nil {
		return c.Close()
	}
	return f.nc.Close()
}
