package accept

import (
	"net/netip"

	"headgate/internal/metrics"
	"headgate/internal/netconn"
	"headgate/internal/ports/listen"
)

// Idle returns whose connection it is, and since when it has no request under way: one
// of which it is not known yet what is spoken on it has none since it was accepted.
func (f *fresh) Idle() (client netip.Addr, since int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.conn != nil {
		if y, can := f.mu.conn.(listen.Yielder); can {
			return y.Idle()
		}
		return client, 0, false // a TCP proxy's
	}
	if a, known := f.nc.RemoteAddr().(interface{ AddrPort() netip.AddrPort }); known {
		client = a.AddrPort().Addr()
	}
	return client, f.began, !f.mu.closed
}

// Yield closes the connection if it has been idle since the moment that Idle returned,
// and reports whether it does. One whose client has sent something that is not read yet
// stays.
func (f *fresh) Yield(since int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.conn != nil {
		y, can := f.mu.conn.(listen.Yielder)
		return can && y.Yield(since)
	}
	if f.mu.closed || since != f.began || netconn.HasUnread(f.nc) {
		return false
	}
	f.mu.closed = true
	f.nc.Close()
	return true
}

// refused counts why nothing was served on the connection, unless we ended it.
func (f *fresh) refused(why metrics.Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed {
		f.counter.Refused(why)
	}
}
