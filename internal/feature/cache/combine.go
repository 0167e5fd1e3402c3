package cache

import (
	"bytes"
	"strings"
)

// combine puts a part that has come together with others that are stored of the same
// body, where they touch: a client that reads a file piece by piece, or several that
// look at different ends of it, come to all of it (RFC 9111, section 3.4). What has
// become all is stored as the whole.
func (s *store) combine(e *entry) {
	if e.part.total == 0 {
		return
	}
	parts := s.partsLike(e)
	defer func() {
		for _, x := range parts {
			x.release()
		}
	}()
	first, last := e.part.first, e.part.last
	used := parts[:0:0]
	for grows := true; grows; {
		grows = false
		for _, x := range parts {
			if x.part.first < first && x.part.last >= first-1 || x.part.last > last && x.part.first <= last+1 {
				first, last = min(first, x.part.first), max(last, x.part.last)
				used, grows = append(used, x), true
			}
		}
	}
	all := first == 0 && last == e.part.total-1
	if len(used) == 0 && !all || last+1-first > e.body.limit {
		return
	}
	if whole := s.joined(e, used, part{first, last, e.part.total}, all); whole != nil {
		s.supplant(e, used, whole)
		whole.release()
	}
}

// partsLike returns other parts of the body that e has a part of, identified by a
// strong entity tag. They are held for the caller.
func (s *store) partsLike(e *entry) (parts []*entry) {
	if !strings.HasPrefix(e.etag, `"`) {
		return nil
	}
	sh := s.shard(e.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for x := sh.mu.entries[e.hash]; x != nil; x = x.next {
		if x != e && x.part.total == e.part.total && x.etag == e.etag && x.variant == e.variant && x.body.whole.Load() &&
			bytes.Equal(x.key(), e.key()) && x.varyNames() == e.varyNames() {
			x.hold()
			parts = append(parts, x)
		}
	}
	return parts
}

// joined makes one entry of several, with the head of e, which came last. It is held
// once, for the caller; nil if there is no memory.
func (s *store) joined(e *entry, others []*entry, p part, all bool) *entry {
	n := &entry{
		store: s, hash: e.hash, keyLen: e.keyLen, variant: e.variant, status: e.status, server: e.server, part: p, rules: e.rules,
		stored: e.stored, age: e.age, life: e.life, while: e.while, onError: e.onError,
		received: e.received, date: e.date, modified: e.modified, tagged: e.tagged, guessed: e.guessed,
	}
	if all {
		n.status, n.part = statusOK, part{}
	}
	body := s.wholeBody(e.hash, e.body.limit, p.last+1-p.first, func(mem []byte, at int64) {
		fill(mem, p.first+at, append([]*entry{e}, others...))
	})
	if body == nil {
		return nil
	}
	x, ok := s.alloc(len(e.head.mem), e.hash)
	if !ok {
		body.release()
		return nil
	}
	x.mem = append(x.mem[:0], e.head.mem...)
	n.head, n.body = x, body
	n.findValidators()
	n.refs.Store(1)
	s.entries.Add(1)
	return n
}

// fill copies what lies at a position of the resource from the parts that have it.
func fill(mem []byte, at int64, parts []*entry) {
	for len(mem) > 0 {
		for _, x := range parts {
			if x.part.first <= at && at <= x.part.last {
				x.body.mu.Lock()
				k := x.body.copyLocked(mem, at-x.part.first)
				x.body.mu.Unlock()
				mem, at = mem[k:], at+int64(k)
				break
			}
		}
	}
}

// wholeBody returns a body of so many bytes that is here, made by fill piece by piece;
// nil if there is no memory.
func (s *store) wholeBody(hash uint64, limit, size int64, fill func(mem []byte, at int64)) *body {
	b := newBody(s, hash, size, limit)
	for b.mu.size < size {
		n := min(size-b.mu.size, int64(s.arena.largest))
		x, ok := s.alloc(int(n), hash)
		if !ok {
			b.release()
			return nil
		}
		x.mem = x.mem[:n]
		fill(x.mem, b.mu.size)
		b.mu.pieces = append(b.mu.pieces, x)
		b.mu.size += n
	}
	b.whole.Store(true)
	return b
}

// supplant puts an entry into the index in place of those that it was made of,
// unless one of them was removed meanwhile.
func (s *store) supplant(e *entry, others []*entry, whole *entry) {
	old := append([]*entry{e}, others...)
	sh := s.shard(e.hash)
	sh.mu.Lock()
	for _, x := range old {
		if !x.linked || x.purged.Load() {
			sh.mu.Unlock()
			return
		}
	}
	for _, x := range old {
		sh.unlinkLocked(x)
	}
	sh.linkLocked(whole)
	sh.mu.Unlock()
	for _, x := range old {
		s.unqueue(x)
	}
	s.enqueue(whole)
}
