package balance

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
)

// Method is how a group chooses.
type Method uint8

// The methods.
const (
	// RoundRobin uses servers in turn, spread evenly by their weights.
	RoundRobin Method = iota
	// LeastConnections uses the server with the fewest active requests for its
	// weight; of several, the next in turn.
	LeastConnections
	// P2CEWMA draws two servers by their weights and uses the one that will
	// probably respond sooner: by its average response time and its active
	// requests.
	P2CEWMA
	// Random draws a server by the weights.
	Random
	// First uses the first server of the list that can accept the request.
	First
	// Hash uses the server that the key maps to. When a server leaves, only its
	// own keys move (rendezvous hashing).
	Hash
)

// randN returns a random number below n.
func randN(n uint32) uint32 { return rand.Uint32N(n) }

// pick chooses one of a set that is not empty.
func (g *Group) pick(set *Tried, a *Ask) int {
	if i := set.only(); i >= 0 {
		return i
	}
	switch g.method {
	case LeastConnections:
		return g.leastLoaded(set, a.Now, g.turn(set, a.Now))
	case P2CEWMA:
		return g.two(set, a.Now)
	case Random:
		return g.draw(set, a.Now)
	case First:
		return set.next(0)
	case Hash:
		return g.rendezvous(set, a)
	}
	return g.rotation.smooth.next(g, set, a.Now)
}

// next returns the lowest place of a set that is not below i, or -1.
func (t *Tried) next(i int) int {
	for w := i >> 6; w < len(t); w++ {
		word := t[w]
		if w == i>>6 {
			word &= ^uint64(0) << (i & 63)
		}
		if word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// smooth is smooth weighted round robin: each turn raises every server by its
// share, selects the highest, and lowers it by the sum of all. Turns of a
// server with a high weight are spread evenly among those of the others.
type smooth struct {
	mu struct {
		sync.Mutex
		current []int64
	}
}

func (s *smooth) next(g *Group, set *Tried, now int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	best, total := -1, int64(0)
	for i := set.next(0); i >= 0; i = set.next(i + 1) {
		share := g.share(i, now)
		s.mu.current[i] += share
		total += share
		if best < 0 || s.mu.current[i] > s.mu.current[best] {
			best = i
		}
	}
	s.mu.current[best] -= total
	return best
}

// peek returns the server that take would choose.
func (s *smooth) peek(g *Group, set *Tried, now int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	best, high := -1, int64(0)
	for i := set.next(0); i >= 0; i = set.next(i + 1) {
		if n := s.mu.current[i] + g.share(i, now); best < 0 || n > high {
			best, high = i, n
		}
	}
	return best
}

// turn returns whose turn it is, and goes on to the next.
func (g *Group) turn(set *Tried, now int64) int {
	if n := uint32(len(g.order)); n > 0 && !g.warming() {
		if i := int(g.order[(g.rotation.next.Add(1)-1)%n]); set.Has(i) {
			return i
		}
	}
	return g.rotation.smooth.next(g, set, now)
}

// leastLoaded returns the server with the fewest requests for its weight, first before
// others that have as few. It compares without a division: a/x < b/y where
// a*y < b*x.
func (g *Group) leastLoaded(set *Tried, now int64, first int) int {
	best, active, share := first, g.members[first].Gauge.active.Load(), g.share(first, now)
	// Start behind it, so that no server wins ties because of its place in
	// the list.
	for i, wrapped := set.next(first+1), false; ; i = set.next(i + 1) {
		if i < 0 && !wrapped {
			i, wrapped = set.next(0), true
		}
		if i < 0 || wrapped && i >= first {
			return best
		}
		n, s := g.members[i].Gauge.active.Load(), g.share(i, now)
		if n*share < active*s {
			best, active, share = i, n, s
		}
	}
}

// quickTwo is two for servers in their ordinary state, from a full turn of them.
// It returns -1 when that does not do.
func (g *Group) quickTwo(a *Ask, n uint32) int {
	x := int(g.order[randN(n)])
	y := int(g.order[randN(n)])
	for tries := 0; x == y && n > 1; tries++ {
		if tries == 3 {
			return -1
		}
		y = int(g.order[randN(n)])
	}
	if g.members[x].Gauge.out.Load()|g.members[y].Gauge.out.Load() != 0 || a.Tried.Has(x) || a.Tried.Has(y) {
		return -1
	}
	return g.sooner(x, y, a.Now)
}

// two draws two servers and returns the better one.
func (g *Group) two(set *Tried, now int64) int {
	x := g.draw(set, now)
	rest := *set
	rest[x>>6] &^= 1 << (x & 63)
	return g.sooner(x, g.draw(&rest, now), now)
}

// sooner returns which of two servers will likely answer sooner.
func (g *Group) sooner(x, y int, now int64) int {
	a, b := g.members[x].Gauge, g.members[y].Gauge
	// Nanoseconds as floats: a product of them may be large.
	costX := float64(max(a.Took(now), 1)) * float64(a.active.Load()+1)
	costY := float64(max(b.Took(now), 1)) * float64(b.active.Load()+1)
	if costY < costX {
		return y
	}
	return x
}

// draw selects a server at random.
func (g *Group) draw(set *Tried, now int64) int {
	total := int64(0)
	for i := set.next(0); i >= 0; i = set.next(i + 1) {
		total += g.share(i, now)
	}
	left := rand.Int64N(total)
	last := -1
	for i := set.next(0); i >= 0; i = set.next(i + 1) {
		last = i
		if left -= g.share(i, now); left < 0 {
			break
		}
	}
	return last // a slow start that went on meanwhile does no harm
}

// rendezvous assigns each server a number derived from its name and the key,
// and selects the best: the highest, or with weights the one that is first when
// each server waits for a random time that is the shorter the larger its
// weight.
func (g *Group) rendezvous(set *Tried, a *Ask) int {
	best := -1
	if g.equal && g.slowStart == 0 {
		high := uint64(0)
		for i := set.next(0); i >= 0; i = set.next(i + 1) {
			if h := mix(g.rotation.ids[i] ^ a.Key); best < 0 || h > high {
				best, high = i, h
			}
		}
		return best
	}
	low := 0.0
	for i := set.next(0); i >= 0; i = set.next(i + 1) {
		u := (float64(mix(g.rotation.ids[i]^a.Key)>>11) + 0.5) / (1 << 53)
		if t := -math.Log(u) / float64(g.share(i, a.Now)); best < 0 || t < low {
			best, low = i, t
		}
	}
	return best
}

// alone is a full turn of one server.
var alone = []uint8{0}

// longestTurn bounds the work and the memory for a turn.
const longestTurn = 1 << 15

// fullTurn returns one round of the primary servers that accept clients, by smooth
// weighted round robin; nil if there are none or the round is too long.
func fullTurn(members []Member) []uint8 {
	if len(members) == 1 && members[0].Weight > 0 && !members[0].Backup {
		return alone
	}
	var list []int
	common, total := 0, 0
	for i := range members {
		if m := &members[i]; m.Weight > 0 && !m.Backup {
			list = append(list, i)
			common = divisor(common, m.Weight)
			total += m.Weight
		}
	}
	if len(list) == 0 || total/common*len(list) > longestTurn {
		return nil
	}
	total /= common
	order := make([]uint8, 0, total)
	current := make([]int, len(list))
	for range total {
		best := 0
		for at, i := range list {
			current[at] += members[i].Weight / common
			if current[at] > current[best] {
				best = at
			}
		}
		current[best] -= total
		order = append(order, uint8(list[best]))
	}
	return order
}

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
