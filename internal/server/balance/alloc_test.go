package balance

import (
	"fmt"
	"testing"
)

var methods = map[string]Method{
	"round_robin": RoundRobin, "least_connections": LeastConnections, "p2c_ewma": P2CEWMA,
	"random": Random, "first": First, "hash": Hash,
}

func TestChoiceAllocatesNothing(t *testing.T) {
	for word, method := range methods {
		for _, weights := range [][]int{{1}, {1, 1, 1}, {3, 1, 7}, {65535, 65534}} {
			g := New(members(weights...), Options{Method: method})
			for _, out := range []Out{0, Ejected} {
				g.members[0].Gauge.Set(out)
				n := testing.AllocsPerRun(100, func() {
					ask := Ask{Now: 1, Key: 7}
					i, _ := g.Choose(&ask)
					g.members[i].Gauge.Observe(1, 1)
					g.members[i].Gauge.Release()
				})
				equal(t, word, n, 0)
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	for word, method := range methods {
		for _, n := range []int{1, 3, 64} {
			b.Run(fmt.Sprintf("%s/%d", word, n), func(b *testing.B) {
				g := New(members(make([]int, n)...), Options{Method: method})
				for i := range g.members {
					g.members[i].Weight = 1
				}
				g = New(g.members, Options{Method: method})
				for b.Loop() {
					ask := Ask{Now: 1, Key: 7}
					i, _ := g.Choose(&ask)
					g.members[i].Gauge.Release()
				}
			})
		}
	}
}
