package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"headgate/internal/store"
)

// gate lets changes to the engine through, or has them wait while another process takes over.
type gate struct {
	mu      sync.Mutex
	changes int           // that are being made
	idle    chan struct{} // closed when the last of them ends; nil if none waits for that
	shut    chan struct{} // closed when the gate opens; nil if it is open
	shuts   chan struct{} // closed when the gate closes; nil if no one waits for that
	ended   bool          // nothing passes any more
}

// pass waits until changes may be made. leave has to be called when the change was made.
func (g *gate) pass(ctx context.Context) (leave func(), err error) {
	for {
		g.mu.Lock()
		shut := g.shut
		switch {
		case g.ended:
			g.mu.Unlock()
			return nil, store.ErrClosed
		case shut == nil:
			g.changes++
			g.mu.Unlock()
			return g.leave, nil
		}
		g.mu.Unlock()
		select {
		case <-shut:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changes--; g.changes == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// close has changes wait, and returns a channel that is closed when those that are being made
// have ended.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	idle := make(chan struct{})
	g.shut = make(chan struct{})
	g.endOpenLocked()
	if g.changes == 0 {
		close(idle)
	} else {
		g.idle = idle
	}
	return idle
}

// open lets changes through again, or none any more if the store has ended.
func (g *gate) open(ended bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.openLocked(ended)
}

func (g *gate) openLocked(ended bool) {
	if g.ended = g.ended || ended; g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
	if g.ended {
		g.endOpenLocked()
	}
}

// await waits until changes may be made. The returned channel is closed when they may no longer be
// made.
func (g *gate) await(ctx context.Context) (shuts <-chan struct{}, err error) {
	leave, err := g.pass(ctx)
	if err != nil {
		return nil, err
	}
	leave()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shuts == nil {
		g.shuts = make(chan struct{})
	}
	if shuts = g.shuts; g.shut != nil || g.ended {
		g.endOpenLocked() // it was closed meanwhile
	}
	return shuts, nil
}

// endOpenLocked wakes those that wait for the gate to close.
func (g *gate) endOpenLocked() {
	if g.shuts != nil {
		close(g.shuts)
		g.shuts = nil
	}
}

// suspendTime bounds the wait for changes that are being made, and the release of leases.
const suspendTime = 4 * time.Second

// StopFollowing keeps the copy as it is, and waits for that: the first step of handing the store
// over to another process. Changes can be made still. Suspend or Resume follows.
func (s *Store) StopFollowing() {
	s.stop()
	<-s.done
	s.setStill(true)
	s.wake()
}

// setStill notes whether the copy goes on. No change waits for one that does not.
func (s *Store) setStill(still bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.still = still
}

func (s *Store) isStill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.still
}

// Suspend has changes wait, and gives back leases, which others may acquire: another process can
// use the store. It comes after StopFollowing; the copy is suspended by its own method, after
// this. The error says that a change has not ended. Resume or End follows.
func (s *Store) Suspend() error {
	timer := time.NewTimer(suspendTime)
	defer timer.Stop()
	select {
	case <-s.gate.close():
	case <-timer.C:
		return fmt.Errorf("%w: a change has not ended within %v", store.ErrUnavailable, suspendTime)
	}
	ctx, stop := context.WithTimeout(context.Background(), suspendTime)
	defer stop()
	for _, l := range s.takeLeases() {
		_ = l.Release(ctx) // one that is not released runs out
	}
	return nil
}

// Resume allows changes and begins to follow the engine: it reverts StopFollowing and Suspend, and
// begins the work of a store that was opened with Hold, whose copy can be written to by then.
func (s *Store) Resume() {
	s.gate.open(false)
	s.startFollowing(func() {})
}

// End closes a suspended store, except the copy: calls that wait return store.ErrClosed.
func (s *Store) End() error {
	s.gate.open(true)
	return s.o.Engine.Close()
}

// RefuseWrites ends the wait of a store that was opened with Hold and that Resume was not called
// for: changes get store.ErrClosed. Leave or Close follows. Of other stores it changes nothing.
func (s *Store) RefuseWrites() {
	if s.o.Hold {
		s.gate.refuse()
	}
}

// refuse ends the gate if changes wait at it.
func (g *gate) refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		g.openLocked(true)
	}
}

// noteLease remembers a lease until it is over, for Suspend.
func (s *Store) noteLease(l *store.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.leases = append(slices.DeleteFunc(s.mu.leases, isOver), l)
}

func (s *Store) takeLeases() []*store.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(s.mu.leases, isOver)
	s.mu.leases = nil
	return all
}

func isOver(l *store.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}
