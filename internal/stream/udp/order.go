package udp

import "time"

// order orders the sessions of a table by which to close first, like the segmented
// LRU of caches. New sessions are fresh; one whose client has sent again after an
// answer is proven. Both are in the order in which their clients last sent. A new
// session replaces the fresh one that was idle for longest, so that a flood of
// forged addresses displaces only itself. Concurrent calls are not allowed.
type order struct {
	fresh, proven ring
}

// provenShare is the maximum share of proven sessions, in tenths: new clients
// need space to become proven in a flood.
const provenShare = 9

// quietShare is the part of the idle time after which a proven session can be
// closed for a new one, when there are no others.
const quietShare = 4

// spoke notes that the client of a session has spoken. most is how many sessions
// there may be.
func (o *order) spoke(s *session, most int) {
	if !s.proven && s.answered.Load() {
		o.fresh.remove(s)
		s.proven = true
	}
	if !s.proven {
		o.fresh.toFront(s)
		return
	}
	o.proven.toFront(s)
	if o.proven.len > max(most*provenShare/10, 1) {
		last := o.proven.last()
		o.proven.remove(last)
		last.proven = false
		o.fresh.toFront(last)
	}
}

// remove removes a session.
func (o *order) remove(s *session) {
	if s.proven {
		o.proven.remove(s)
	} else {
		o.fresh.remove(s)
	}
}

// victim returns the session to close for a new one, nil if none has to be
// closed.
func (o *order) victim(now int64, idle time.Duration) *session {
	if s := o.fresh.last(); s != nil {
		return s
	}
	if s := o.proven.last(); s != nil && now-s.last.Load() >= int64(idle)/quietShare {
		return s
	}
	return nil
}

// ring is a list of sessions that is linked through them, the first of which spoke
// last.
type ring struct {
	head, tail *session
	len        int
}

func (r *ring) last() *session { return r.tail }

func (r *ring) toFront(s *session) {
	if r.head == s {
		return
	}
	r.remove(s)
	s.after = r.head
	if r.head != nil {
		r.head.before = s
	} else {
		r.tail = s
	}
	r.head = s
	r.len++
}

// remove removes s, if it is in the ring.
func (r *ring) remove(s *session) {
	if s.before == nil && s.after == nil && r.head != s {
		return
	}
	if s.before != nil {
		s.before.after = s.after
	} else {
		r.head = s.after
	}
	if s.after != nil {
		s.after.before = s.before
	} else {
		r.tail = s.before
	}
	s.before, s.after = nil, nil
	r.len--
}
