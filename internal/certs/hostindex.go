package certs

import (
	"hash/maphash"
	"maps"
	"sync/atomic"
)

// hostIndex finds certificates by the names of hosts. Looking one up takes no lock; one
// goroutine at a time may change it. A change copies one of its parts, so that 10 000
// certificates which come one after the other cost 10 000 small copies.
type hostIndex struct {
	parts [indexParts]atomic.Pointer[map[string]*Stored]
}

// indexParts is how many parts an index has: with 10 000 names about ten in each.
const indexParts = 1024

var indexSeed = maphash.MakeSeed()

func (x *hostIndex) part(host string) *atomic.Pointer[map[string]*Stored] {
	return &x.parts[maphash.String(indexSeed, host)%indexParts]
}

// get returns what has a host, nil if nothing has.
func (x *hostIndex) get(host string) *Stored {
	if m := x.part(host).Load(); m != nil {
		return (*m)[host]
	}
	return nil
}

// set makes s found for a host, or nothing if s is nil.
func (x *hostIndex) set(host string, s *Stored) {
	part := x.part(host)
	next := map[string]*Stored{}
	if old := part.Load(); old != nil {
		next = maps.Clone(*old)
	}
	if next[host] = s; s == nil {
		delete(next, host)
	}
	part.Store(&next)
}
