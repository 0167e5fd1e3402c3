package upstream

import (
	"sync"
	"sync/atomic"
)

// tried remembers which servers of a route an exchange has tried.
type tried [4]uint64

func (t *tried) add(i int)     { t[i>>6&3] |= 1 << (i & 63) }
func (t tried) has(i int) bool { return t[i>>6&3]&(1<<(i&63)) != 0 }

// balance chooses a server.
type balance interface {
	// pick returns a server that was not tried, and its place in the route's
	// list; nil if there is none.
	pick(tried) (*Server, int)
}

// newBalance returns the smooth weighted round robin over the servers that take
// requests. With equal weights it needs no lock.
func newBalance(list []*Server) balance {
	equal := true
	first := 0
	for _, s := range list {
		if s.Weight == 0 {
			continue
		}
		if first == 0 {
			first = s.Weight
		}
		equal = equal && s.Weight == first
	}
	switch {
	case len(list) == 1 && first > 0:
		return single{list[0]}
	case equal:
		r := &rotation{}
		for i, s := range list {
			if s.Weight > 0 {
				r.list = append(r.list, member{i, s})
			}
		}
		return r
	}
	w := &weighted{}
	for i, s := range list {
		if s.Weight > 0 {
			w.list = append(w.list, member{i, s})
			w.total += s.Weight
		}
	}
	w.mu.current = make([]int, len(w.list))
	return w
}

// member is a server with its place in the route's list.
type member struct {
	index  int
	server *Server
}

// single is a route's only server.
type single struct{ server *Server }

func (b single) pick(t tried) (*Server, int) {
	if t.has(0) {
		return nil, 0
	}
	return b.server, 0
}

// rotation takes servers of equal weight in turn.
type rotation struct {
	list []member
	next atomic.Uint32
}

func (b *rotation) pick(t tried) (*Server, int) {
	n := uint32(len(b.list))
	if n == 0 {
		return nil, 0
	}
	at := b.next.Add(1) - 1
	for i := range n {
		if m := b.list[(at+i)%n]; !t.has(m.index) {
			return m.server, m.index
		}
	}
	return nil, 0
}

// weighted is smooth weighted round robin: each turn raises every server by its
// weight, takes the highest, and lowers it by the sum of all. Turns of a heavy
// server are spread evenly between those of the others.
type weighted struct {
	list  []member
	total int
	mu    struct {
		sync.Mutex
		current []int
	}
}

func (b *weighted) pick(t tried) (*Server, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	best, total := -1, 0
	for i, m := range b.list {
		if t.has(m.index) {
			continue
		}
		b.mu.current[i] += m.server.Weight
		total += m.server.Weight
		if best < 0 || b.mu.current[i] > b.mu.current[best] {
			best = i
		}
	}
	if best < 0 {
		return nil, 0
	}
	b.mu.current[best] -= total
	return b.list[best].server, b.list[best].index
}
