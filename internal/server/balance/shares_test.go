//go:build !race

// Millions of choices, one after the other: the race detector would find nothing here.

package balance

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// Everyone's share of many requests is that of the weights.
func TestSharesFollowTheWeights(t *testing.T) {
	const requests = 100_000
	for _, method := range []Method{RoundRobin, LeastConnections, P2CEWMA, Random, Hash} {
		for _, weights := range [][]int{{1, 1, 1}, {3, 1}, {5, 3, 2, 0}, {65535, 30000, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
			g := New(members(weights...), Options{Method: method})
			n, total := make([]int, len(weights)), 0
			for _, w := range weights {
				total += w
			}
			many := requests
			if method == Random || method == Hash || method == P2CEWMA {
				many *= 10 // chance alone is off by 0.3 % at a hundred thousand
			}
			for k := range many {
				i, _ := g.Choose(&Ask{Now: 1, Key: mix(uint64(k))})
				g.members[i].Gauge.Release()
				n[i]++
			}
			for i, w := range weights {
				got, want := float64(n[i])/float64(many), float64(w)/float64(total)
				if method == P2CEWMA && want != 1/float64(len(weights)) {
					continue // two different ones are drawn, so a heavy one gets less than its weight
				}
				if math.Abs(got-want) > 0.005 {
					t.Errorf("method %d, weights %v: server %d got %.4f of the requests, want %.4f", method, weights, i, got, want)
				}
			}
		}
	}
}

// The share of a server that is out goes to the others by their weights.
func TestSharesOfTheRestFollowTheWeights(t *testing.T) {
	for _, method := range []Method{RoundRobin, LeastConnections, Random} {
		g := New(members(4, 3, 2, 1), Options{Method: method})
		g.members[0].Gauge.Set(Ejected)
		var n [4]int
		const many = 300_000
		for range many {
			i, _ := g.Choose(&Ask{Now: 1})
			g.members[i].Gauge.Release()
			n[i]++
		}
		for i, want := range []float64{0, 3 / 6., 2 / 6., 1 / 6.} {
			if got := float64(n[i]) / many; math.Abs(got-want) > 0.005 {
				t.Errorf("method %d: server %d got %.4f, want %.4f", method, i, got, want)
			}
		}
	}
}

// When a server leaves, only its own keys move, and when it comes back they return.
func TestOnlyTheKeysOfARemovedServerMove(t *testing.T) {
	for _, weights := range [][]int{{1, 1, 1, 1, 1}, {5, 1, 3, 2, 2}} {
		all := members(weights...)
		before := New(all, Options{Method: Hash})
		after := New(append(append([]Member{}, all[:2]...), all[3:]...), Options{Method: Hash})
		const keys = 100_000
		moved := 0
		for k := range keys {
			ask := Ask{Now: 1, Key: HashText(fmt.Sprint(k))}
			i, _ := before.Choose(&ask)
			j, _ := after.Choose(&ask)
			was, is := before.members[i].ID, after.members[j].ID
			if was != is {
				moved++
				if was != "c" {
					t.Fatalf("weights %v: key %d moved from %s to %s", weights, k, was, is)
				}
			}
			all[2].Gauge.Set(Unhealthy)
			if n, _ := before.Choose(&ask); before.members[n].ID != is {
				t.Fatalf("weights %v: key %d goes to %d while c is unhealthy, to %s without it", weights, k, n, is)
			}
			all[2].Gauge.Clear(Unhealthy)
		}
		total := 0
		for _, w := range weights {
			total += w
		}
		if got, want := float64(moved)/keys, float64(weights[2])/float64(total); math.Abs(got-want) > 0.005 {
			t.Errorf("weights %v: %.4f of the keys moved, want %.4f", weights, got, want)
		}
	}
}

func TestSlowStartGrowsToTheFullShare(t *testing.T) {
	for _, method := range []Method{RoundRobin, Random, Hash} {
		g := New(members(1, 1), Options{Method: method, SlowStart: 100 * time.Second})
		began := int64(time.Hour)
		g.members[1].Gauge.Warm(began)
		last := 0.0
		for _, c := range []struct {
			after time.Duration
			want  float64
		}{{0, 0.1 / 1.1}, {25 * time.Second, 0.25 / 1.25}, {50 * time.Second, 0.5 / 1.5}, {99 * time.Second, 0.99 / 1.99}, {100 * time.Second, 0.5}} {
			n := 0
			const many = 100_000
			for k := range many {
				i, _ := g.Choose(&Ask{Now: began + int64(c.after), Key: mix(uint64(k))})
				n += i
			}
			got := float64(n) / many
			if math.Abs(got-c.want) > 0.01 || got < last-0.01 {
				t.Errorf("method %d after %v: share %.4f, want %.4f", method, c.after, got, c.want)
			}
			last = got
		}
	}
}
