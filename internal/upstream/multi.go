package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/upstream/h2"
)

// maxConnsPerPool is how many HTTP/2 connections a pool opens. Each carries as many
// requests at once as the server allows.
const maxConnsPerPool = 64

// multi holds the HTTP/2 connections of a pool. Requests share them; a connection is opened
// when the existing ones are full, one at a time, and other requests wait for it.
type multi struct {
	// constant
	only  bool        // the server is known to speak HTTP/2
	tls   *tls.Config // offers h2 or http/1.1; nil means no TLS
	waits atomic.Int32

	mu struct {
		sync.Mutex
		conns   []*h2.Conn    // the most recently opened last
		dial    *dialing      // shared by waiting requests
		alone   int           // connections that are being opened for one request each
		news    chan struct{} // closed when there may be capacity; nil without waiters
		plain   bool          // the server chose HTTP/1.1 the last time
		retired bool
	}
}

// dialing is a connection that is being opened.
type dialing struct {
	done chan struct{}
	err  error // after done
}

// opened is what a request goes over: one of the two.
type opened struct {
	multi *h2.Conn // with a place for the request
	plain *conn
	fresh bool
}

// speaksMulti reports whether a request may go to the server over HTTP/2. An
// upgrade needs HTTP/1.1.
func (p *Pool) speaksMulti(ex *exchange.Exchange) bool {
	return p.multi != nil && ex.Request.Upgrade == ""
}

// open returns a connection for a request, an existing one or a new one. alone
// requires a new one on which the request is the first; at the limit of connections,
// the request shares one.
func (p *Pool) open(ex *exchange.Exchange, alone bool) (opened, error) {
	m := p.multi
	var end time.Time
	if timeout := ex.Limits.ConnectTimeout; timeout > 0 {
		end = time.Now().Add(timeout)
	}
	for {
		m.mu.Lock()
		if alone && !m.mu.plain && m.roomLocked() {
			m.mu.alone++
			m.mu.Unlock()
			return p.openAlone(ex, end)
		}
		if c := m.placeLocked(); c != nil {
			m.mu.Unlock()
			return opened{multi: c}, nil
		}
		if m.mu.plain {
			m.mu.Unlock()
			if c := p.get(ex.Times.Tried, mustBeQuiet(ex)); c != nil {
				return opened{plain: c}, nil
			}
			return p.dialEither(ex, end, false)
		}
		d := m.mu.dial
		if d == nil && len(m.mu.conns)+m.mu.alone < maxConnsPerPool {
			d = &dialing{done: make(chan struct{})}
			m.mu.dial = d
			m.mu.Unlock()
			return p.openShared(ex, end, d)
		}
		news := m.newsLocked()
		// A release before this request counted as waiting has notified no waiter.
		if c := m.placeLocked(); c != nil {
			m.mu.Unlock()
			m.waits.Add(-1)
			return opened{multi: c}, nil
		}
		if d == nil && m.roomLocked() {
			m.mu.Unlock()
			m.waits.Add(-1)
			continue
		}
		m.mu.Unlock()
		if err := p.awaitRoom(ex, d, news, end); err != nil {
			return opened{}, err
		}
	}
}

// openAlone opens a connection for one request, which it has counted as one that is
// being opened.
func (p *Pool) openAlone(ex *exchange.Exchange, end time.Time) (opened, error) {
	defer func() {
		p.multi.mu.Lock()
		p.multi.mu.alone--
		p.multi.mu.Unlock()
		p.multi.freed()
	}()
	return p.dialEither(ex, end, true)
}

// openShared opens a connection that others wait for too: d, which it ends.
func (p *Pool) openShared(ex *exchange.Exchange, end time.Time, d *dialing) (o opened, err error) {
	err = &dialError{p.address, errors.New("a broken invariant")} // the error for waiters if it panics
	defer func() {
		p.multi.mu.Lock()
		p.multi.mu.dial, d.err = nil, err
		p.multi.mu.Unlock()
		close(d.done)
	}()
	return p.dialEither(ex, end, false)
}

// roomLocked reports whether another connection may be opened, and removes those that
// accept no more requests.
func (m *multi) roomLocked() bool {
	m.mu.conns = slices.DeleteFunc(m.mu.conns, func(c *h2.Conn) bool { return !c.Usable() })
	return len(m.mu.conns)+m.mu.alone < maxConnsPerPool
}

// placeLocked reserves a place on a connection, and removes those that accept
// no more requests.
func (m *multi) placeLocked() *h2.Conn {
	for i := len(m.mu.conns) - 1; i >= 0; i-- {
		c := m.mu.conns[i]
		switch {
		case c.Reserve():
			return c
		case !c.Usable():
			m.mu.conns = slices.Delete(m.mu.conns, i, i+1)
		}
	}
	return nil
}

// newsLocked returns a channel that is closed when a connection may be
// available.
func (m *multi) newsLocked() chan struct{} {
	if m.mu.news == nil {
		m.mu.news = make(chan struct{})
	}
	m.waits.Add(1)
	return m.mu.news
}

// freed notifies waiting requests that there may be capacity.
func (m *multi) freed() {
	if m.waits.Load() == 0 {
		return
	}
	m.mu.Lock()
	if m.mu.news != nil {
		close(m.mu.news)
		m.mu.news = nil
	}
	m.mu.Unlock()
}

// awaitRoom waits for the connection that is being opened, or for a place on
// the others, until end.
func (p *Pool) awaitRoom(ex *exchange.Exchange, d *dialing, news chan struct{}, end time.Time) error {
	defer p.multi.waits.Add(-1)
	var late <-chan time.Time
	if !end.IsZero() {
		timer := time.NewTimer(time.Until(end))
		defer timer.Stop()
		late = timer.C
	}
	look := time.NewTicker(leftInterval)
	defer look.Stop()
	var done chan struct{}
	if d != nil {
		done = d.done
	}
	for {
		select {
		case <-done:
			return d.err
		case <-news:
			return nil
		case <-late:
			return &dialError{p.address, fmt.Errorf("all streams of its %d connections are busy: %w", maxConnsPerPool, context.DeadlineExceeded)}
		case <-look.C:
			if ex.Left() {
				return &exchange.Error{Reason: exchange.ClientClosed, Err: errors.New("the client left before there was a connection")}
			}
		}
	}
}

// leftInterval is how often those who wait for a connection look whether their
// client is still there.
const leftInterval = time.Second

// dialEither opens a connection and speaks over it what the server prefers. Of one that
// is opened alone, other requests get no place until this one has begun.
func (p *Pool) dialEither(ex *exchange.Exchange, end time.Time, alone bool) (opened, error) {
	ex.Times.Dialed = exchange.Now()
	defer func() { ex.Times.Connected = exchange.Now() }()
	m := p.multi
	nc, err := p.connect(ex.Limits.ConnectTimeout)
	if err != nil {
		return opened{}, err
	}
	if m.tls != nil {
		secure, err := p.shake(nc, m.tls, end)
		if err != nil {
			return opened{}, err
		}
		if secure.ConnectionState().NegotiatedProtocol != "h2" {
			m.mu.Lock()
			m.mu.plain = true
			m.mu.Unlock()
			m.freed()
			return opened{plain: newConn(netconn.New(secure), p), fresh: true}, nil
		}
		nc = secure
	}
	c, err := h2.Open(nc, m.tls != nil, end, p.multiSettings())
	if err != nil {
		return opened{}, p.greetFault(err)
	}
	reserve := c.Reserve
	if alone {
		reserve = c.ReserveAlone
	}
	if !reserve() {
		c.Retire()
		return opened{}, &unseen{exchange.UpstreamReset, fmt.Errorf("%w: server %s accepts no request on a new connection", h2.ErrUnprocessed, p.address)}
	}
	m.mu.Lock()
	m.mu.plain = false
	m.mu.conns = append(m.mu.conns, c)
	retired := m.mu.retired
	m.mu.Unlock()
	if retired {
		c.Retire()
	}
	return opened{multi: c, fresh: true}, nil
}

func (p *Pool) multiSettings() h2.Settings {
	s := h2.Settings{Name: p.address, HeadSize: p.settings.HeadSize, IdleTimeout: p.settings.IdleTimeout,
		BodyIdle: p.settings.BodyIdle, WriteIdle: writeIdle, ContinueWait: p.settings.ContinueWait, Freed: p.multi.freed, Log: p.log}
	if p.settings.IdleConnections == 0 {
		s.IdleTimeout = 0
	}
	return s
}

// greetFault makes a greeting that did not come a connection that did not come
// about.
func (p *Pool) greetFault(err error) error {
	known := classify(err)
	text := known.Err
	if known.Reason == exchange.UpstreamInvalid && p.multi.only {
		text = fmt.Errorf("%w; does it speak HTTP/2 without TLS? Its scheme is h2c", text)
	}
	if p.tls != nil && p.asked.Load() {
		if fault := p.lateFault(text); isEnd(text) || refusedByAlert(text) {
			return fault
		}
	}
	return &unseen{known.Reason, text}
}

// unseen is a request that a server has not processed: it counts as a failed connection.
type unseen struct {
	reason exchange.Reason
	err    error
}

// Error returns the text of the error below.
func (e *unseen) Error() string { return e.err.Error() }

// Unwrap returns the error below.
func (e *unseen) Unwrap() error { return e.err }

// Is reports whether target is errDial.
func (e *unseen) Is(target error) bool { return target == errDial }

// retire starts no more requests on the connections.
func (m *multi) retire() {
	m.mu.Lock()
	conns := m.mu.conns
	m.mu.conns, m.mu.retired = nil, true
	m.mu.Unlock()
	for _, c := range conns {
		c.Retire()
	}
}

// idle returns how many connections are open and have no requests.
func (m *multi) idle() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.mu.conns {
		if c.Idle() {
			n++
		}
	}
	return n
}
