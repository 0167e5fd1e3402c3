package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"headgate/internal/discovery"
)

// How often things are done.
const (
	// settle is the pause after an event, so that many events cause one listing.
	settle = 50 * time.Millisecond
	// listInterval is how often everything is listed, whatever happens.
	listInterval = 60 * time.Second
	// pollInterval is the same where no events can be had.
	pollInterval = 10 * time.Second
	// openTimeout is how long the first listing waits for the stream of events to start.
	openTimeout = 500 * time.Millisecond
	// Between two attempts to connect are minWait to maxWait.
	minWait = 100 * time.Millisecond
	maxWait = 30 * time.Second
	// steady is how long a connection has to last for the next one to be made at once.
	steady = 10 * time.Second
)

// follow queries the engine until the source is stopped.
func (s *Source) follow() {
	wait := minWait
	for s.ctx.Err() == nil {
		began := time.Now()
		err := s.connected()
		if s.ctx.Err() != nil {
			return
		}
		longest := maxWait * 2 / 3 // with what chance adds, at most maxWait
		if err != nil {
			s.failed(err)
		} else {
			longest = time.Second // the engine responds
		}
		if time.Since(began) >= steady {
			wait = minWait
		}
		wait = min(wait, longest)
		if !s.pause(wait + rand.N(wait/2)) {
			return
		}
		wait *= 2
	}
}

// pause waits. It returns false when the source is stopped meanwhile.
func (s *Source) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// recheck is when the containers are listed again after an event: an engine sends events
// before its list has the change, and with a busy disk the list is updated after the
// listing.
var recheck = [...]time.Duration{time.Second, 5 * time.Second}

// connected follows the engine over one stream of events. It returns nil when the stream
// has ended, which is normal: socket proxies cut those that are idle.
func (s *Source) connected() error {
	since, err := s.engine.ping(s.ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	st := &stream{opened: make(chan struct{}), heard: make(chan *event, 256), ended: make(chan error, 1)}
	// Events of the second before may be repeated, which only costs a listing.
	s.done.Go(func() { s.listen(ctx, since.Add(-time.Second), st) })
	defer func() {
		cancel()
		for range st.heard { // until it is closed, so that the listener can end
		}
	}()
	return s.watch(st)
}

// stream is a stream of events.
type stream struct {
	// opened is closed when the engine starts to send events.
	opened chan struct{}
	heard  chan *event
	// ended has an error if the engine sends no events, nil when it has ended.
	ended chan error
}

// alarm rings once at a moment that can be made earlier.
type alarm struct {
	*time.Timer
	at time.Time
}

// set sets the alarm, whenever it was to ring before.
func (a *alarm) set(d time.Duration) {
	a.at = time.Now().Add(d)
	a.Reset(d)
}

// within makes the alarm ring no later than in d.
func (a *alarm) within(d time.Duration) {
	if time.Until(a.at) > d {
		a.set(d)
	}
}

// watch lists the containers at first, after events, and from time to time.
func (s *Source) watch(st *stream) error {
	var deaf error
	heard, ended := st.heard, st.ended
	select {
	case <-st.opened:
	case deaf = <-ended:
		if deaf == nil {
			return nil
		}
		ended = nil
	case <-time.After(openTimeout):
	case <-s.ctx.Done():
		return nil
	}
	began := time.Now()
	next := &alarm{Timer: time.NewTimer(0), at: began}
	defer next.Stop()
	var cost time.Duration
	checks := recheck[len(recheck):] // that are still to come for the last event
	for {
		select {
		case <-s.ctx.Done():
			return nil
		case deaf = <-ended:
			if deaf == nil {
				return nil
			}
			ended = nil
			next.within(0)
		case e, ok := <-heard:
			switch {
			case !ok:
				heard = nil
			case e.concerns():
				s.world.noteEvent(e, time.Now())
				// An engine with many containers is not queried all the time.
				next.within(max(settle, 2*cost))
				checks = recheck[:]
			}
		case <-next.C:
			asked := time.Now()
			again, err := s.list(deaf)
			if err != nil {
				return err
			}
			cost = min(time.Since(asked), time.Second)
			next.set(listInterval)
			if len(checks) > 0 {
				next.within(max(checks[0], 2*cost))
				checks = checks[1:]
			}
			if deaf != nil {
				if time.Since(began) > listInterval {
					return nil // perhaps there are events by now
				}
				next.within(pollInterval)
			}
			if !again.IsZero() {
				next.within(max(time.Until(again), settle))
			}
		}
	}
}

// list queries the containers and publishes the result. It returns when that changes by
// itself. Deaf is why there are no events, nil if there are.
func (s *Source) list(deaf error) (again time.Time, err error) {
	l, err := s.engine.list(s.ctx, s.filters())
	if err != nil {
		return time.Time{}, err
	}
	if err := s.findSelf(l); err != nil {
		return time.Time{}, err
	}
	out := s.world.update(l, s.reached(), time.Now())
	next := discovery.Snapshot{State: discovery.Running, Known: true, Objects: out.objects, Issues: out.issues}
	if deaf != nil {
		next.State = discovery.Failed
		next.Reason, next.Hint = s.engine.explain(deaf)
		next.Reason += "; containers are listed every " + pollInterval.String() + " instead"
	}
	s.Publish(next)
	return out.again, nil
}

// reached returns the address of the engine's machine; invalid for a socket.
func (s *Source) reached() netip.Addr {
	if s.peer.IsValid() {
		return s.peer
	}
	return s.engine.reached()
}

// findSelf queries headgate's own container, if the filters hide it. It is not used as a
// server, but shows how others are reached.
func (s *Source) findSelf(l *listing) error {
	ids := s.world.here.ids
	if len(s.world.settings.Filters) == 0 || len(ids) == 0 || s.world.here.self(l.containers) != nil {
		return nil
	}
	own, err := s.engine.list(s.ctx, map[string][]string{"id": ids})
	if err != nil {
		return err
	}
	l.containers = append(l.containers, own.containers...)
	return nil
}

// failed records that the engine cannot be queried. The last result stays.
func (s *Source) failed(err error) {
	next := *s.Snapshot()
	next.State = discovery.Failed
	next.Reason, next.Hint = s.engine.explain(err)
	s.Publish(next)
}

// filters returns the settings' filters in the format of the engine.
func (s *Source) filters() map[string][]string {
	out := map[string][]string{}
	for _, f := range s.world.settings.Filters {
		key, value, _ := strings.Cut(f, "=")
		out[key] = append(out[key], value)
	}
	return out
}

// listen reads events until the stream ends.
func (s *Source) listen(ctx context.Context, since time.Time, st *stream) {
	heard := st.heard
	defer close(heard)
	body, err := s.engine.events(ctx, since)
	if err != nil {
		st.ended <- err
		return
	}
	defer body.Close()
	close(st.opened)
	v := &values{r: bufio.NewReader(body), max: maxEvent}
	for {
		data, whole, err := v.next()
		if errors.Is(err, errNoJSON) {
			st.ended <- &answerError{call: "/events", what: err.Error(), err: err}
			return
		} else if err != nil {
			st.ended <- nil // cut, which the next attempt finds the reason of
			return
		}
		e := &event{}
		if !whole || json.Unmarshal(data, e) != nil {
			e = &event{Type: "container", Action: "update"} // something happened
		}
		heard <- e
	}
}
