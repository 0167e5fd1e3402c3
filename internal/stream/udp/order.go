package udp

import "time"

// order is the sessions of a table by who has to go first, after the segmented
// LRU of caches. New sessions are fresh; one whose client has spoken again after an
// answer is proven. Both are in the order in which their clients spoke last. Who
// comes anew takes the place of the fresh session that was quiet for longest, so
// that a flood of forged addresses pushes out itself. It is not safe for several
// goroutines.
type order struct {
	fresh, proven ring
}

// provenShare is how many of ten places proven sessions have at most: new clients
// need room to prove themselves in a flood.
const provenShare = 9

// quietShare is what part of the idle time a proven session must have been quiet
// to make room for a new one, when there are no others.
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

// remove takes a session out.
func (o *order) remove(s *session) {
	if s.proven {
		o.proven.remove(s)
	} else {
		o.fresh.remove(s)
	}
}

// victim returns the session that has to make room, nil if none has to.
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

// remove takes s out, if it is in the ring.
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
