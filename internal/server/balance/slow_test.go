//go:build !race

// A simulation in a virtual time, one request after the other.

package balance

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// finished is the end of a request.
type finished struct {
	at, began int64
	server    int
}

// finishing are the requests that run, the first to end first.
type finishing []finished

func (f finishing) Len() int           { return len(f) }
func (f finishing) Less(i, j int) bool { return f[i].at < f[j].at }
func (f finishing) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }

// Push adds the last.
func (f *finishing) Push(x any) { *f = append(*f, x.(finished)) }

// Pop takes the last.
func (f *finishing) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// besideSlow returns how long requests take that come at random, so many a second, to
// four servers of which one takes ten times as long as the others: 100 ms in the
// mean. Each works on eight requests at once, and others wait in it. Time is made
// up, so that a minute takes a moment.
func besideSlow(method Method, perSecond int) []time.Duration {
	const requests, workers = 48_000, 8
	means := []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 10 * time.Millisecond}
	g := New(members(1, 1, 1, 1), Options{Method: method})
	random := rand.New(rand.NewPCG(1, 2))
	free := make([][workers]int64, len(means)) // when each worker has time
	var running finishing
	var took []time.Duration
	now := int64(time.Second)
	end := func(f finished) {
		gauge := g.members[f.server].Gauge
		gauge.Observe(time.Duration(f.at-f.began), f.at)
		gauge.Release()
		took = append(took, time.Duration(f.at-f.began))
	}
	for range requests {
		now += int64(random.ExpFloat64() * float64(time.Second) / float64(perSecond))
		for len(running) > 0 && running[0].at <= now {
			end(heap.Pop(&running).(finished))
		}
		ask := Ask{Now: now, Key: random.Uint64()}
		i, _ := g.Choose(&ask)
		worker := 0
		for w, at := range free[i] {
			if at < free[i][worker] {
				worker = w
			}
		}
		at := max(now, free[i][worker]) + int64(random.ExpFloat64()*float64(means[i]))
		free[i][worker] = at
		heap.Push(&running, finished{at, now, i})
	}
	for len(running) > 0 {
		end(heap.Pop(&running).(finished))
	}
	slices.Sort(took)
	return took
}

// A method that looks at the load keeps nearly all requests from waiting for a slow
// server. With 280 requests a second the others leave it just enough time; with 800
// they drown it. -v prints the table.
func TestASlowServer(t *testing.T) {
	order := []string{"round_robin", "random", "hash", "least_connections", "p2c_ewma"}
	for _, perSecond := range []int{280, 800} {
		p99 := map[string]time.Duration{}
		for _, word := range order {
			took := besideSlow(methods[word], perSecond)
			at := func(share float64) time.Duration {
				return took[int(share*float64(len(took)-1))].Round(100 * time.Microsecond)
			}
			p99[word] = at(0.99)
			t.Logf("%d a second: %-18s p50 %8v  p90 %8v  p99 %8v  p99.9 %8v", perSecond, word, at(0.5), at(0.9), at(0.99), at(0.999))
		}
		if got, most := p99["least_connections"], p99["round_robin"]/2; got > most {
			t.Errorf("%d a second: least_connections has a p99 of %v, want %v at most, half of that in turn", perSecond, got, most)
		}
		if got, most := p99["p2c_ewma"], p99["least_connections"]*11/10; got > most {
			t.Errorf("%d a second: p2c_ewma has a p99 of %v, want no more than least_connections", perSecond, got)
		}
	}
}
