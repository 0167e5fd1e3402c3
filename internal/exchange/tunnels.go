package exchange

import (
	"sync"
	"time"
)

// Tunnels are the tunnels that are open, so that those end whose route is no more.
// Its methods may be called by several goroutines at once; a nil *Tunnels keeps
// none.
type Tunnels struct {
	mu   sync.Mutex
	open map[*tunnel]struct{}
}

// tunnel is an upgraded connection.
type tunnel struct {
	place  *Place
	server Stream
	// session is Exchange.SignedIn.
	session SignIn
	end     *time.Timer // ends it, or nil; guarded by Tunnels.mu
}

// NewTunnels returns an empty set.
func NewTunnels() *Tunnels { return &Tunnels{open: map[*tunnel]struct{}{}} }

// add notes a tunnel that begins. remove must follow, unless it returns nil.
func (t *Tunnels) add(place *Place, server Stream, session SignIn) *tunnel {
	if t == nil {
		return nil
	}
	one := &tunnel{place: place, server: server, session: session}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[one] = struct{}{}
	if session != nil && session.Ended() {
		go server.Abort() // EndSession has not seen it
	}
	return one
}

// remove notes the end of a tunnel.
func (t *Tunnels) remove(one *tunnel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, one)
	if one.end != nil {
		one.end.Stop()
	}
}

// Len returns how many tunnels are open.
func (t *Tunnels) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// EndSession aborts the tunnels of a session, as Exchange.SignedIn has it.
func (t *Tunnels) EndSession(session SignIn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.open {
		if one.session == session {
			go one.server.Abort() // it may wait for its peer
		}
	}
}

// Follow is called after a change: a tunnel whose place is no more, as left says,
// ends after the time that left returns. One whose place is there again lives on.
func (t *Tunnels) Follow(left func(*Place) (gone bool, within time.Duration)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.open {
		gone, within := left(one.place)
		switch {
		case !gone && one.end != nil:
			one.end.Stop()
			one.end = nil
		case gone && one.end == nil:
			one.end = time.AfterFunc(within, func() { one.server.Abort() })
		}
	}
}
