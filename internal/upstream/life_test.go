package upstream

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"headgate/internal/server/balance"
	"headgate/internal/server/health"
	"headgate/internal/testhouse"
)

// TestRandomLives lets clients, servers and an operator do anything at random. Each request
// has one outcome, no client takes a part for the whole or gets bytes of another exchange,
// no server takes a part of a body for the whole, nothing that is not idempotent is sent
// twice, and when all have gone nothing is counted, held or open. The seed decides what is
// asked and what is answered; how that falls together is up to the machine.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 4, func(t *testing.T, seed uint64) { newWorld(t, seed).live(seed) })
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t}
	w.mu.asked, w.mu.seen, w.mu.sizes, w.mu.trail = map[int][]meeting{}, map[int]int{}, map[int]int{}, map[int][]string{}
	w.house = newHouse(slog.New(w))
	for i := range 3 {
		a := &actor{w: w, two: (seed+uint64(i))%3 == 0}
		a.address = testhouse.Server(t, func(c net.Conn) { a.serve(c) })
		w.servers = append(w.servers, a)
	}
	return w
}

// The size of a life.
const (
	requests = 150
	clients  = 12
)

// live lets the clients come, and looks at what is left when they have gone.
func (w *world) live(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	w.plan(r)
	var all sync.WaitGroup
	turns := make(chan struct{}, clients)
	for id := range requests {
		turns <- struct{}{}
		v := w.visit(id, rand.New(rand.NewPCG(seed, uint64(id)+1)))
		all.Go(func() {
			defer func() { <-turns }()
			v.serve()
		})
		switch r.IntN(12) {
		case 0:
			w.plan(r)
		case 1:
			w.hold(r)
		}
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	ctx, cancel := testhouse.Patient(w.t.Context())
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		w.t.Fatalf("requests do not end; %q", w.mu.wrong)
	}
	w.remains()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.mu.wrong {
		w.t.Error(text)
	}
	if w.mu.broken != w.mu.panics {
		w.t.Errorf("%d broken invariants are told of, of %d", w.mu.broken, w.mu.panics)
	}
}

// remains looks at what is left when all have gone.
func (w *world) remains() {
	for _, k := range w.house.all {
		switch k := k.(type) {
		case *health.Server:
			if n := k.Active(); n != 0 {
				w.fault("%d requests run on a server", n)
			}
		case *balance.Queue:
			if n := k.Waiting(); n != 0 {
				w.fault("%d requests wait for a server", n)
			}
		case *Pool:
			w.lookAt(k)
		}
	}
	// One that its server has closed is kept until somebody looks at it.
	testhouse.Eventually(w.t, "no connection is open that is not kept", func() bool { return w.open() <= w.kept() })
	w.house.close()
	testhouse.Eventually(w.t, "no connection is open", func() bool { return w.open() == 0 })
}

// lookAt looks at a pool that nobody uses.
func (w *world) lookAt(p *Pool) {
	m := p.multi
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.dial != nil || m.mu.alone != 0 || m.waits.Load() != 0 {
		w.fault("a dial is under way: %v, %d, for %d", m.mu.dial, m.mu.alone, m.waits.Load())
	}
	for _, c := range m.mu.conns {
		if c.Usable() && !c.Idle() {
			w.fault("a connection of HTTP/2 has requests")
		}
	}
}

// open returns how many connections the servers have.
func (w *world) open() (n int) {
	for _, a := range w.servers {
		n += int(a.open.Load())
	}
	return n
}

// kept returns how many connections the pools have.
func (w *world) kept() (n int) {
	for _, k := range w.house.all {
		if p, ok := k.(*Pool); ok {
			n += p.Idle()
		}
	}
	return n
}
