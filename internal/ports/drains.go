package ports

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"headgate/internal/plan"
)

// drains are the listeners that are being closed. Those of TCP release their address
// at once and keep their connections; those of QUIC hold it until the last connection
// has ended, so one that is needed again is reopened.
type drains struct {
	mu struct {
		sync.Mutex
		listeners map[*listener]time.Time // since when they drain
	}
	running sync.WaitGroup
}

// start drains a listener in the background, and closes it. since is the start of that.
// done is called at the end, with how many connections were cut.
func (d *drains) start(l *listener, since time.Time, done func(cut int)) {
	d.mu.Lock()
	if d.mu.listeners == nil {
		d.mu.listeners = map[*listener]time.Time{}
	}
	d.mu.listeners[l] = since
	d.mu.Unlock()
	wait := l.drain(l.view.Load().on.Drain() - time.Since(since))
	d.running.Go(func() {
		cut, resumed := wait()
		if resumed {
			return
		}
		d.mu.Lock()
		delete(d.mu.listeners, l)
		d.mu.Unlock()
		done(cut)
	})
}

// wait returns when everything has drained.
func (d *drains) wait() { d.running.Wait() }

// all returns the listeners and since when they drain.
func (d *drains) all() map[*listener]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.mu.listeners)
}

// resume reopens a draining listener, if there is one that can be reopened, and returns
// the time at which it started to drain. It returns nil when there is none.
func (d *drains) resume(k key) (*listener, time.Time) {
	for l, since := range d.all() {
		if l.key != k || k.kind == tcpKind {
			continue
		}
		if l.resume() {
			d.mu.Lock()
			delete(d.mu.listeners, l)
			d.mu.Unlock()
			return l, since
		}
		<-l.Released()
	}
	return nil, time.Time{}
}

// awaitRelease waits until no socket of TCP that drains has an address with this port
// number: one that an earlier change has closed may be about to let go of it. That is
// a matter of milliseconds, or of a second or two while clients shake hands.
func (d *drains) awaitRelease(number uint16) {
	for l := range d.all() {
		if l.key.kind == tcpKind && l.key.address.Port() == number {
			<-l.Released()
		}
	}
}

// at returns the draining UDP listeners with this port number.
func (d *drains) at(number uint16) []*listener {
	return slices.DeleteFunc(slices.Collect(maps.Keys(d.all())), func(l *listener) bool {
		return l.key.kind == tcpKind || l.key.address.Port() != number
	})
}

// cut ends the connections of listeners that drain where a UDP proxy has come: what
// is sent to one address cannot be shared out among two. It returns when the
// address is the proxy's alone.
func (d *drains) cut(address netip.AddrPort) {
	for _, l := range d.at(address.Port()) {
		at := l.key.address.Addr()
		if l.key.kind == quicKind && (at == address.Addr() || at.IsUnspecified() || address.Addr().IsUnspecified()) {
			d.running.Go(l.Close)
			<-l.Released()
		}
	}
}

// follow brings the listeners to a new plan, so that none holds on to an old one.
func (d *drains) follow(p *plan.Plan) {
	for l := range d.all() {
		l.view.Store(l.viewIn(p))
	}
}
