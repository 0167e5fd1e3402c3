//go:build !race

// Millions of choices, one after the other: the race detector would find nothing here.

package balance

import (
	"math"
	"testing"
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
				i, _ := g.Take(&Ask{Now: 1, Key: mix(uint64(k))})
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
			i, _ := g.Take(&Ask{Now: 1})
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
