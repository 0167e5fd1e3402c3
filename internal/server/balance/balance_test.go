package balance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// members returns servers with these weights, named a, b, c …
func members(weights ...int) []Member {
	var list []Member
	for i, w := range weights {
		list = append(list, Member{ID: name(i), Weight: w, Gauge: newGauge(0, nil)})
	}
	return list
}

func name(i int) string {
	if i < 0 {
		return "."
	}
	return string(rune('a' + i))
}

// turns takes n servers one after the other, each released at once.
func turns(g *Group, n int) string {
	var b strings.Builder
	for range n {
		i, outcome := g.Choose(&Ask{Now: 1})
		if outcome == Chosen {
			g.members[i].Gauge.Release()
		}
		b.WriteString(name(i))
	}
	return b.String()
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

func TestRoundRobinFollowsTheWeightsSmoothly(t *testing.T) {
	for want, weights := range map[string][]int{
		"abcabcabc": {1, 1, 1},
		"aabacaaaa": {5, 1, 1}, // a full turn is aabacaa
		"aaaa":      {1},
		"bbbb":      {0, 3},
		"acac":      {1, 0, 1},
		"....":      {0, 0},
		"ababa":     {30000, 20000},
	} {
		equal(t, fmt.Sprint(weights), turns(New(members(weights...), Options{}), len(want)), want)
	}
	// Weights whose turn is too long to be laid out go the same way.
	g := New(members(65535, 65534), Options{})
	if g.order != nil {
		t.Fatal("the turn is laid out")
	}
	equal(t, "long turn", turns(g, 6), "ababab")
}

func TestEachServerIsTriedOnce(t *testing.T) {
	for _, method := range []Method{RoundRobin, LeastConnections, P2CEWMA, Random, First, Hash} {
		for _, weights := range [][]int{{1, 1, 1}, {3, 2, 1}, {1}} {
			var all []int
			for len(all)+len(weights) <= MaxServers && (len(weights) > 1 || len(all) == 0) {
				all = append(all, weights...)
			}
			g := New(members(all...), Options{Method: method})
			ask := Ask{Now: 1}
			n := 0
			for {
				i, outcome := g.Choose(&ask)
				if outcome != Chosen {
					equal(t, "outcome", outcome, None)
					break
				}
				if ask.Tried.Has(i) {
					t.Fatalf("method %d: server %d again", method, i)
				}
				ask.Tried.Add(i)
				n++
			}
			equal(t, "servers", n, len(all))
		}
	}
}

// What is taken is what may be taken, whatever the state: a server that is out or
// full never is while another is not, backup servers only when no primary is
// usable, and nobody but when all are out.
func TestOnlyServersThatMayTakeAreTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "servers")
		list := make([]Member, n)
		for i := range list {
			g := newGauge(rapid.IntRange(0, 2).Draw(t, "most"), nil)
			g.Set(Out(rapid.IntRange(0, 7).Draw(t, "out")) & Out(rapid.IntRange(0, 7).Draw(t, "and")))
			g.active.Store(int64(rapid.IntRange(0, 2).Draw(t, "active")))
			list[i] = Member{ID: name(i), Weight: rapid.IntRange(0, 3).Draw(t, "weight"), Backup: rapid.Bool().Draw(t, "backup"), Gauge: g}
		}
		ask := Ask{Now: 1, Key: rapid.Uint64().Draw(t, "key")}
		for i := range list {
			if rapid.IntRange(0, 3).Draw(t, "tried") == 0 {
				ask.Tried.Add(i)
			}
		}
		g := New(list, Options{Method: Method(rapid.IntRange(0, int(Hash)).Draw(t, "method"))})
		var tier [3][]int
		usable := false
		for i, m := range list {
			out := m.Gauge.Out()
			usable = usable || m.Weight > 0 && out == 0
			if m.Weight == 0 || ask.Tried.Has(i) || out&Open != 0 {
				continue
			}
			switch {
			case out != 0:
				tier[2] = append(tier[2], i)
			case m.Backup:
				tier[1] = append(tier[1], i)
			default:
				tier[0] = append(tier[0], i)
			}
		}
		if usable {
			tier[2] = nil
		}
		var want Tried
		for _, places := range tier {
			if len(places) == 0 {
				continue
			}
			for _, i := range places {
				if !list[i].Gauge.Full() {
					want.Add(i)
				}
			}
			break
		}
		likely, _ := g.Likely(&ask)
		got, outcome := g.Choose(&ask)
		if outcome == Chosen != (want != Tried{}) || outcome == Chosen && !want.Has(got) {
			t.Fatalf("took %d, outcome %d; may take %v", got, outcome, want)
		}
		if likely >= 0 && likely != got {
			t.Fatalf("took %d, likely was %d", got, likely)
		}
	})
}

func TestLeastConnectionsGoesByLoadAndWeight(t *testing.T) {
	g := New(members(2, 1), Options{Method: LeastConnections})
	var got strings.Builder
	for range 9 {
		i, _ := g.Choose(&Ask{Now: 1})
		got.WriteString(name(i))
	}
	equal(t, "active of a", g.members[0].Gauge.Active(), 6)
	equal(t, "active of b", g.members[1].Gauge.Active(), 3)
	for range 3 {
		g.members[1].Gauge.Release()
	}
	for range 3 {
		if i, _ := g.Choose(&Ask{Now: 1}); i != 1 {
			t.Error("took the one with more to do")
		}
	}
}

func TestTheSlowServerGetsLess(t *testing.T) {
	g := New(members(1, 1, 1), Options{Method: P2CEWMA})
	now := int64(time.Hour)
	took := []time.Duration{2 * time.Millisecond, 2 * time.Millisecond, 50 * time.Millisecond}
	var n [3]int
	for range 30_000 {
		now += int64(100 * time.Microsecond)
		i, _ := g.Choose(&Ask{Now: now})
		g.members[i].Gauge.Release()
		g.members[i].Gauge.Observe(took[i], now)
		n[i]++
	}
	if n[2] > 500 {
		t.Errorf("the slow server got %d of 30000", n[2])
	}
	if n[2] == 0 {
		t.Error("the slow server got nothing at all")
	}
	// It is asked again when its time has faded.
	g.members[2].Gauge.Observe(2*time.Millisecond, now)
	now += int64(5 * decay)
	if mean := g.members[2].Gauge.Took(now); mean > time.Millisecond {
		t.Errorf("after a while the mean is %v", mean)
	}
}

// A circuit that is half open lets as many through as it was told, and no panic
// opens it.
func TestHalfOpenLetsProbesThrough(t *testing.T) {
	g := New(members(1), Options{})
	gauge := g.members[0].Gauge
	gauge.Set(Open)
	equal(t, "open", turns(g, 1), ".")
	_, outcome := g.Choose(&Ask{Now: 1})
	equal(t, "outcome", outcome, Broken)
	gauge.Set(HalfOpen)
	gauge.Clear(Open)
	gauge.AllowProbes(2)
	equal(t, "half open", turns(g, 4), "aa..")
	gauge.Clear(HalfOpen)
	equal(t, "closed", turns(g, 2), "aa")
}

func TestClaimTakesDrainedServersToo(t *testing.T) {
	g := New(members(0, 1), Options{})
	ask := Ask{Now: 1}
	equal(t, "drained", g.Claim(0, &ask), true)
	ask.Tried.Add(0)
	equal(t, "tried", g.Claim(0, &ask), false)
	g.members[1].Gauge.Set(Ejected)
	equal(t, "ejected", g.Claim(1, &ask), false)
}

func TestWordsOfLoadBalancing(t *testing.T) {
	for text, want := range map[string]Choice{
		"":                  {},
		"round_robin":       {Method: RoundRobin},
		"client_ip_hash":    {Method: Hash, By: ByClient},
		"hash:path":         {Method: Hash, By: ByPath},
		"hash:header:X-A":   {Method: Hash, By: ByHeader, Name: "X-A"},
		"hash:cookie:sid":   {Method: Hash, By: ByCookie, Name: "sid"},
		"least_connections": {Method: LeastConnections},
		"p2c_ewma":          {Method: P2CEWMA},
		"random":            {Method: Random},
		"first":             {Method: First},
	} {
		c, what, _ := Parse(text)
		equal(t, text, c, want)
		equal(t, text, what, "")
	}
	for text, want := range map[string]string{
		"roundrobin":                    `unknown value "roundrobin"; did you mean "round_robin"?`,
		"least_conn":                    `unknown value "least_conn"; write round_robin, least_connections, p2c_ewma, random, first, client_ip_hash, hash:header:NAME, hash:cookie:NAME or hash:path`,
		"hash:url":                      `unknown value "hash:url"; write hash:header:NAME, hash:cookie:NAME or hash:path`,
		"hash:query:q":                  `unknown value "hash:query:q"; write hash:header:NAME, hash:cookie:NAME or hash:path`,
		"hash:cookie:a b":               `"a b" is not the name of a cookie; write a name like hash:cookie:session`,
		"hash:header:":                  `"" is not a header name; write a name like hash:header:X-Tenant`,
		"hash:header:X-Forwarded-For":   `what clients say in X-Forwarded-For is not trusted; write client_ip_hash, and whom to trust under client_ip.trusted`,
		"hash:header:Transfer-Encoding": `Transfer-Encoding cannot be used as a hash key; write hash:header:NAME, hash:cookie:NAME or hash:path`,
	} {
		_, what, remedy := Parse(text)
		equal(t, text, what+"; "+remedy, want)
	}
}

// With FailClosed a server that is out is not asked, although there is no other.
func TestAGroupThatFailsClosedAsksNobody(t *testing.T) {
	for _, why := range []Out{Unhealthy, Ejected} {
		list := members(1, 1)
		for _, closed := range []bool{false, true} {
			g := New(list, Options{FailClosed: closed})
			list[0].Gauge.Set(why)
			equal(t, "one is left", turns(g, 4), "bbbb")
			list[1].Gauge.Set(why)
			want := "...."
			if !closed {
				want = "abab"
			}
			if got := turns(g, 4); got != want && (closed || strings.Contains(got, ".")) {
				t.Errorf("all out, closed %v: got %s, want %s", closed, got, want)
			}
			list[0].Gauge.Clear(why)
			equal(t, "one is back", turns(g, 4), "aaaa")
			list[1].Gauge.Clear(why)
		}
	}
}

// newGauge returns the gauge of a server that may run limit requests at once.
func newGauge(limit int, queue *Queue) *Gauge {
	g := new(Gauge)
	g.Init(limit, queue)
	return g
}
