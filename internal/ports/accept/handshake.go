package accept

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"headgate/internal/metrics"
	"headgate/internal/netconn"
)

// handshakeTime bounds the time until a client has said something, and then the
// TLS handshake.
const handshakeTime = 10 * time.Second

// handshakesAtOnce limits concurrent handshakes on one socket; others wait within their
// time limit. A handshake is the most expensive computation that an unauthenticated client
// can cause, during which existing clients wait. A handshake that waits for its client does
// not count, so that slow clients do not block others.
const handshakesAtOnce = 32

// shake makes the handshake, in its turn and in time. It returns nil if there is
// nothing to be served on the connection.
func (f *fresh) shake(cfg *tls.Config) *tls.Conn {
	if len(f.early) == 0 && !netconn.Readable(f.nc, handshakeTime) {
		return nil
	}
	lazy := netconn.NewLazy(f.nc)
	lazy.Unread(f.early)
	f.early = nil
	secure := tls.Server(lazy, cfg)
	t := turn{room: f.turn, until: time.Now().Add(handshakeTime)}
	f.nc.SetDeadline(t.until)
	lazy.Yield(t.leave, t.enter)
	err := secure.Handshake()
	t.leave()
	lazy.Yield(nil, nil)
	if err != nil {
		f.refused(metrics.RefusedHandshake)
		f.refuse(err)
		return nil
	}
	f.nc.SetDeadline(time.Time{})
	return secure
}

// turn is the turn of one handshake. It is given back whenever the handshake
// waits.
type turn struct {
	room  chan struct{}
	until time.Time
	held  bool
}

func (t *turn) leave() {
	if t.held {
		<-t.room
		t.held = false
	}
}

// enter waits for the turn.
func (t *turn) enter() error {
	select {
	case t.room <- struct{}{}:
		t.held = true
		return nil
	default:
	}
	late := time.NewTimer(time.Until(t.until))
	defer late.Stop()
	select {
	case t.room <- struct{}{}:
		t.held = true
		return nil
	case <-late.C:
		return os.ErrDeadlineExceeded
	}
}

// refuse ends a connection whose handshake has failed, so that the client gets to
// know why: by the alert that was sent, or by an answer that it can read if it
// speaks HTTP without TLS.
func (f *fresh) refuse(err error) {
	var wait net.Error
	if errors.Is(err, io.EOF) || errors.As(err, &wait) && wait.Timeout() {
		return
	}
	if log := f.to.h2.Log; log != nil {
		log.Debug("TLS handshake failed", "peer", f.nc.RemoteAddr().String(), "error", err)
	}
	f.nc.SetDeadline(time.Now().Add(farewellTime))
	var record tls.RecordHeaderError
	if !f.on.IsStream() && errors.As(err, &record) && record.Conn != nil && looksLikeHTTP(record.RecordHeader) {
		if _, err := f.nc.Write(plainAnswer()); err != nil {
			return
		}
	}
	f.farewell()
}

// How long, and for how many bytes, a client that was refused is listened to.
const (
	farewellTime  = time.Second
	farewellBytes = 64 << 10
)

// farewell ends our side and waits for the client's: unread bytes would make the
// close a reset, which discards what was sent to the client.
func (f *fresh) farewell() {
	if tcp, ok := f.nc.(interface{ CloseWrite() error }); ok && tcp.CloseWrite() == nil {
		io.CopyN(io.Discard, f.nc, farewellBytes)
	}
}

// looksLikeHTTP reports whether the first bytes on a TLS port may be those of a
// request without TLS: a method in capitals. No TLS record starts with a
// letter.
func looksLikeHTTP(b [5]byte) bool {
	for i, c := range b {
		switch {
		case 'A' <= c && c <= 'Z':
		case i >= 3 && c == ' ':
			return true
		default:
			return false
		}
	}
	return true
}

// plainText is what a client reads that speaks HTTP without TLS on a TLS port.
const plainText = "400 Bad request\n\nThis port speaks HTTPS: write https:// in front of the address.\n\nReason: bad_request\n"

// plainAnswer returns the answer that it gets.
func plainAnswer() []byte {
	return []byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close\r\n" +
		"Proxy-Status: headgate; error=http_request_error; details=\"bad_request\"\r\n" +
		"Content-Length: " + strconv.Itoa(len(plainText)) + "\r\n\r\n" + plainText)
}
