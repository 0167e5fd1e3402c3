package cache

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"
)

// Stored describes a stored response.
type Stored struct {
	// Proxy is the proxy whose cache has it.
	Proxy string `json:"proxy" required:"true"`
	// Route is the route if the cache is its own.
	Route string `json:"route,omitempty"`
	// URL is its address. Only admins see the values of query parameters.
	URL string `json:"url" required:"true"`
	// Vary are the request headers that distinguish it from other variants.
	Vary []string `json:"vary,omitempty"`
	// Status is the status of the response.
	Status int `json:"status" required:"true"`
	// Part is whether it is a part of a response, fetched for a Range request.
	Part bool `json:"part,omitempty"`
	// Size is the memory that it uses, in bytes: body, headers and index.
	Size int64 `json:"bytes" required:"true"`
	// Age is its age in seconds.
	Age int64 `json:"age" required:"true"`
	// TTL is its remaining lifetime in seconds; a negative one means stale.
	TTL int64 `json:"ttl" required:"true"`
	// Since is when it was stored or last revalidated.
	Since time.Time `json:"since" required:"true"`
	// Purged is whether a soft purge marked it as stale.
	Purged bool `json:"purged,omitempty"`
	// Hits is how many requests were answered with it without a request to a server.
	Hits int64 `json:"hits" required:"true"`
	// Tags are the first of its tags.
	Tags []string `json:"tags,omitempty"`
}

// Order is what stored responses are sorted by.
type Order string

// The orders: the largest, the most requested, or the oldest first.
const (
	BySize Order = "size"
	ByHits Order = "hits"
	ByAge  Order = "age"
)

// Compare compares two responses by the order: negative if a comes first.
func (o Order) Compare(a, b *Stored) int {
	switch o {
	case ByHits:
		return cmp.Compare(b.Hits, a.Hits)
	case ByAge:
		return cmp.Compare(b.Age, a.Age)
	}
	return cmp.Compare(b.Size, a.Size)
}

// maxShownTags and maxShownTag are how many tags of a response are shown, and how many bytes of one.
const (
	maxShownTags = 20
	maxShownTag  = 128
)

// seen is an entry that Entries holds.
type seen struct {
	e    *entry
	hits uint64
	rank int64
}

// Entries returns the first limit complete responses in an order. It locks one shard at a
// time, a sixty-fourth of the index, and only for comparing; a large cache is not stopped.
func (s Store) Entries(by Order, limit int) []Stored {
	now := s.now()
	found := make([]seen, 0, limit)
	for i := range s.shards {
		found = s.shards[i].first(found, by, limit, now)
	}
	out := make([]Stored, len(found))
	for i := range found {
		out[i] = found[i].describe(s, now)
		found[i].e.release()
	}
	return out
}

// first merges the entries of a shard into found, which is sorted and has at most limit. It
// holds those that are in found.
func (sh *shard) first(found []seen, by Order, limit int, now int64) []seen {
	var lost []*entry
	sh.mu.Lock()
	for _, e := range sh.mu.entries {
		for ; e != nil; e = e.next {
			if !e.body.whole.Load() {
				continue // it is still arriving
			}
			x := seen{e, e.hits, e.rank(by, now)}
			if len(found) == limit {
				if last := found[limit-1]; last.rank >= x.rank {
					continue
				}
				lost, found = append(lost, found[limit-1].e), found[:limit-1]
			}
			e.hold()
			at, _ := slices.BinarySearchFunc(found, x, func(a, b seen) int { return cmp.Compare(b.rank, a.rank) })
			found = slices.Insert(found, at, x)
		}
	}
	sh.mu.Unlock()
	for _, e := range lost {
		e.release()
	}
	return found
}

// rank returns what an entry with a whole body is sorted by, the highest first.
func (e *entry) rank(by Order, now int64) int64 {
	switch by {
	case ByHits:
		return int64(e.hits)
	case ByAge:
		return e.ageAt(now)
	}
	return e.memory()
}

// memory returns the memory of an entry with a whole body, in bytes.
func (e *entry) memory() int64 { return entryCost + int64(cap(e.head.mem)) + e.body.size() }

// describe copies what is shown of an entry.
func (x seen) describe(s Store, now int64) Stored {
	e := x.e
	age := e.ageAt(now)
	out := Stored{
		URL: e.url(), Status: e.status, Part: e.part.total > 0, Size: e.memory(), Age: age / second, TTL: (e.life - age) / second,
		Since: s.begun.Add(time.Duration(e.stored)).UTC(), Purged: e.purged.Load(), Hits: int64(x.hits),
	}
	if out.Purged {
		out.TTL = min(out.TTL, -1)
	}
	for name := range strings.SplitSeq(e.varyNames(), ",") {
		if name != "" {
			out.Vary = append(out.Vary, strings.Clone(name))
		}
	}
	for tag := range e.tags {
		if len(out.Tags) == maxShownTags {
			break
		}
		out.Tags = append(out.Tags, strings.Clone(tag[:min(len(tag), maxShownTag)]))
	}
	return out
}

// url returns the address of an entry, from its key.
func (e *entry) url() string {
	parts := bytes.SplitN(e.key(), []byte{0}, 4)
	return string(parts[0]) + "://" + string(parts[1]) + string(parts[2])
}
