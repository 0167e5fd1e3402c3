package netconn

import (
	"net"
	"os"
	"time"
)

// Lazy is the connection below TLS. It makes write-then-wait hold under TLS:
// while hold is set, what is written is kept, and the next Read sends it before
// it waits. At all other times it writes at once.
//
// One goroutine may read while another writes, unless something is held.
type Lazy struct {
	// constant
	nc     net.Conn
	conn   *Conn   // over nc: what is written goes through it
	direct *direct // nil if plain reads and writes are used

	// owned by the reader
	leave func()
	enter func() error

	within within // the wait that Read is called from

	early   []byte // is read before what is on the socket
	shut    bool   // nothing is read off the socket
	full    bool   // the last read filled its buffer
	one     [1]byte
	holding bool
	quiet   bool // nothing can be there yet: send what is held, and wait
	held    []byte
}

// NewLazy returns the connection below TLS over nc, which it owns from then on.
func NewLazy(nc net.Conn) *Lazy {
	conn := New(nc)
	return &Lazy{nc: nc, conn: conn, direct: newDirect(conn)}
}

// Unread returns bytes to the connection that were read from it: the next
// reads return them. It must be called before the first Read.
func (l *Lazy) Unread(b []byte) { l.early = b }

// Read sends what is held and reads at least one byte.
func (l *Lazy) Read(p []byte) (int, error) {
	if len(l.early) > 0 {
		n := copy(p, l.early)
		if l.early = l.early[n:]; len(l.early) == 0 {
			l.early = nil
		}
		return n, nil
	}
	if l.shut {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := l.receive(p)
	l.full = n == len(p)
	return n, err
}

// receive sends what is held and reads off the socket.
func (l *Lazy) receive(p []byte) (int, error) {
	if l.within.on {
		return l.readWithin(p)
	}
	if quiet := l.quiet; quiet {
		l.quiet = false
		if len(l.held) > 0 && l.direct != nil && l.leave == nil {
			return l.roundTrip(p)
		}
	}
	if len(l.held) > 0 {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	if l.leave == nil {
		return l.read(p)
	}
	l.leave()
	n, err := l.read(p)
	if eerr := l.enter(); err == nil {
		err = eerr
	}
	return n, err
}

// roundTrip sends what is held and waits for the answer, without trying to read first.
func (l *Lazy) roundTrip(p []byte) (int, error) {
	n, sent, err := l.direct.roundTrip(l, p)
	if !sent { // a deadline had passed before anything was done
		l.quiet = true
		return n, err
	}
	giveOut(l.held)
	l.held = nil
	return n, err
}

func (l *Lazy) read(p []byte) (int, error) {
	if l.direct == nil {
		return l.nc.Read(p)
	}
	return l.direct.read(p)
}

// readable waits until the connection may be readable, without reading. It
// returns os.ErrDeadlineExceeded after the deadline.
func (l *Lazy) readable() error {
	if l.direct == nil || len(l.early) > 0 {
		return nil
	}
	return l.direct.await()
}

// Yield makes each Read call leave before it waits and enter after it, so that
// who waits for a peer holds nothing that others need. An error of enter is one
// of the Read. Yield(nil, nil) ends that. The reader calls it.
func (l *Lazy) Yield(leave func(), enter func() error) { l.leave, l.enter = leave, enter }

// Outside calls wait between leave and enter, as Read does. It is for a wait of the reader
// for something other than its peer. The error is one of enter.
func (l *Lazy) Outside(wait func()) error {
	if l.leave == nil {
		wait()
		return nil
	}
	l.leave()
	wait()
	return l.enter()
}

// Write sends p, or holds it.
func (l *Lazy) Write(p []byte) (int, error) {
	if !l.holding || len(l.held)+len(p) > 2*MaxPending {
		if len(l.held) > 0 {
			if err := l.flush(); err != nil {
				return 0, err
			}
		}
		return l.conn.writeNow(p)
	}
	if l.held == nil {
		l.held = takeOut()
	}
	l.held = append(l.held, p...)
	return len(p), nil
}

// flush sends what is held.
func (l *Lazy) flush() error {
	_, err := l.conn.writeNow(l.held)
	giveOut(l.held)
	l.held = nil
	return err
}

// Close closes the connection. What is held is lost.
func (l *Lazy) Close() error { return l.nc.Close() }

// sendLast sends what is held as the last of our side, which the end goes along with if
// they fit in one packet: it has to come at once. TLS has ended its own side already, and
// let no more be written. Nothing may read meanwhile.
func (l *Lazy) sendLast() error {
	if len(l.held) == 0 {
		return nil
	}
	l.nc.SetWriteDeadline(time.Time{})
	err := l.conn.writeLast(l.held)
	giveOut(l.held)
	l.held = nil
	return err
}

// LocalAddr returns our address.
func (l *Lazy) LocalAddr() net.Addr { return l.nc.LocalAddr() }

// RemoteAddr returns the peer's address.
func (l *Lazy) RemoteAddr() net.Addr { return l.nc.RemoteAddr() }

// SetDeadline bounds reads and writes.
func (l *Lazy) SetDeadline(t time.Time) error { return l.nc.SetDeadline(t) }

// SetReadDeadline bounds reads.
func (l *Lazy) SetReadDeadline(t time.Time) error { return l.nc.SetReadDeadline(t) }

// SetWriteDeadline bounds writes.
func (l *Lazy) SetWriteDeadline(t time.Time) error { return l.nc.SetWriteDeadline(t) }

// NetConn returns the connection below.
func (l *Lazy) NetConn() net.Conn { return l.nc }

// below returns the Lazy under a TLS connection, or nil.
func below(nc net.Conn) *Lazy {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		l, _ := t.NetConn().(*Lazy)
		return l
	}
	return nil
}
