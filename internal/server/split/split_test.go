package split

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

func settings() *Config {
	return &Config{Candidate: 5, Sticky: true, Rollback: Rollback{Enabled: true, ErrorsAbove: "2x", SlowerThan: "1.5x", Within: 600e9, MinRequests: 200}}
}

func TestProblemsOfTheSettings(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) {}, ""},
		{func(c *Config) { c.Stable = 95 }, ""},
		{func(c *Config) { c.Stable = 90 }, "split.stable: stable and candidate are 95 percent"},
		{func(c *Config) { c.Candidate, c.Stable = 0, 95 }, "split.stable: stable and candidate are 95 percent"},
		{func(c *Config) { c.Schedule = "5, 25, 50, 100 every 10m" }, ""},
		{func(c *Config) { c.Schedule = "5%,25%" }, ""},
		{func(c *Config) { c.Schedule = "10, 25" }, "split.candidate: the schedule starts with 10"},
		{func(c *Config) { c.Schedule = "5, 5" }, "split.schedule: the steps do not grow"},
		{func(c *Config) { c.Schedule = "5, 3" }, "split.schedule: the steps do not grow"},
		{func(c *Config) { c.Schedule = "5, 25 every 1s" }, "split.schedule: the time"},
		{func(c *Config) { c.Schedule = "5, 25 every" }, "split.schedule: the time"},
		{func(c *Config) { c.Schedule = "5, 101" }, `split.schedule: "101" is not`},
		{func(c *Config) { c.Schedule = "every 10m" }, `split.schedule: "" is not`},
		{func(c *Config) { c.Key = "client_ip" }, ""},
		{func(c *Config) { c.Key = "header:X-Tenant" }, ""},
		{func(c *Config) { c.Key = "cookie:sid" }, ""},
		{func(c *Config) { c.Key = "path" }, "split.key: unknown value"},
		{func(c *Config) { c.Key = "header:X-Forwarded-For" }, "split.key: what clients say"},
		{func(c *Config) { c.Key, c.Sticky = "client_ip", false }, "split.key: key has no effect"},
		{func(c *Config) { c.Rollback.ErrorsAbove = "2" }, `split.rollback.errors_above: "2" is not a ratio`},
		{func(c *Config) { c.Rollback.ErrorsAbove = "NaNx" }, `split.rollback.errors_above: "NaNx" is not a ratio`},
		{func(c *Config) { c.Rollback.SlowerThan = "0.5x" }, `split.rollback.slower_than: "0.5x" is not a ratio`},
		{func(c *Config) { c.Rollback.SlowerThan = "off" }, ""},
	} {
		s := settings()
		c.change(s)
		r := schema.NewReport("", nil)
		s.Check(r.Root().Field("split"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v:\ngot  %q\nwant %q", *s, got, c.want)
		}
	}
}

func TestAHigherShareKeepsTheCandidatesClients(t *testing.T) {
	l := NewLive()
	before := map[uint32]bool{}
	for _, share := range []int{0, 1, 5, 25, 50, 99, 100} {
		l.SetShare(share)
		n := 0
		for point := range uint32(Points) {
			in := l.Of(point) == Candidate
			if before[point] && !in {
				t.Errorf("at %d%% the client with point %d has left the candidate", share, point)
			}
			if before[point] = in; in {
				n++
			}
		}
		if n != share {
			t.Errorf("%d of %d points belong to the candidate at %d%%", n, Points, share)
		}
	}
	l.SetShare(0)
	if l.Of(0) != Stable {
		t.Error("a returned candidate has a client")
	}
}

// group is what a group of servers does in a test.
type group struct {
	requests, errors int
	fast, slow       time.Duration // nine of ten, and the others
}

func (g group) observe(l *Live, of Group) {
	for i := range g.requests {
		took := g.fast
		if i%10 == 9 {
			took = g.slow
		}
		l.Observe(of, i < g.errors, took)
	}
}

func TestOnlyAWorseCandidateIsReturned(t *testing.T) {
	ms := time.Millisecond
	well := func(n int) group { return group{n, 0, 10 * ms, 20 * ms} }
	for _, c := range []struct {
		name              string
		stable, candidate group
		want              string
	}{
		{"both are well", well(4000), well(300), ""},
		{"one error against none", well(4000), group{300, 1, 10 * ms, 20 * ms}, ""},
		{"four errors against none", well(4000), group{200, 4, 10 * ms, 20 * ms}, ""},
		{"ten errors against none", well(4000), group{300, 10, 10 * ms, 20 * ms}, "errors: candidate 3.3% (10 of 300), stable 0.0% (0 of 4000), limit 2x"},
		{"all fail", well(4000), group{200, 200, 0, 0}, "errors: candidate 100.0% (200 of 200)"},
		{"too few requests of the candidate", well(4000), group{199, 199, 0, 0}, ""},
		{"too few requests of stable", well(199), group{4000, 4000, 0, 0}, ""},
		{"as many errors", group{4000, 400, 10 * ms, 20 * ms}, group{300, 30, 10 * ms, 20 * ms}, ""},
		{"twice as many errors is the limit", group{4000, 400, 10 * ms, 20 * ms}, group{300, 60, 10 * ms, 20 * ms}, ""},
		{"five times as many errors", group{4000, 400, 10 * ms, 20 * ms}, group{300, 150, 10 * ms, 20 * ms}, "errors: candidate 50.0%"},
		{"both fail", group{4000, 4000, 0, 0}, group{300, 300, 0, 0}, ""},
		{"a candidate with fewer errors", group{4000, 2000, 10 * ms, 20 * ms}, group{300, 10, 10 * ms, 20 * ms}, ""},
		{"three times as slow", well(4000), group{300, 0, 10 * ms, 60 * ms}, "response time (p95): candidate"},
		{"a little slower", well(4000), group{300, 0, 10 * ms, 24 * ms}, ""},
		{"ten times as slow, and quick", group{4000, 0, ms / 10, ms / 10}, group{300, 0, ms, ms}, ""},
		{"faster", well(4000), group{300, 0, ms, 2 * ms}, ""},
	} {
		l := NewLive()
		c.stable.observe(l, Stable)
		c.candidate.observe(l, Candidate)
		p := settings().Program()
		v := l.Compare(p.Rules)
		if (v.Worse == "") != (c.want == "") || !strings.HasPrefix(v.Worse, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, v.Worse, c.want)
		}
		if v.Stable.Requests != c.stable.requests || v.Candidate.Errors != c.candidate.errors {
			t.Errorf("%s: counted %+v and %+v", c.name, v.Stable, v.Candidate)
		}
	}
}

func TestAnEqualCandidateIsNotReturnedByChance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := settings().Program()
	p.Rules.ErrorsAbove, p.Rules.SlowerThan = 1, 1 // so that equal is just at the limit
	returned := 0
	const runs = 2000
	for range runs {
		l := NewLive()
		for _, g := range []struct {
			of Group
			n  int
		}{{Stable, 2000}, {Candidate, 200}} {
			for range g.n {
				took := time.Duration(math.Exp(random.NormFloat64()) * float64(20*time.Millisecond))
				l.Observe(g.of, random.IntN(50) == 0, took)
			}
		}
		if l.Compare(p.Rules).Worse != "" {
			returned++
		}
	}
	if returned > 4 {
		t.Errorf("%d of %d equal candidates were returned", returned, runs)
	}
}

func TestTheTailOfABinomialDistribution(t *testing.T) {
	for _, c := range []struct {
		n, k uint64
		p    float64
		want float64
	}{
		{3, 3, 0.1, 0.001}, {10, 6, 0.5, 0.376953}, {10, 10, 0.5, 0.000976562}, {20, 5, 0.05, 0.00257394}, {5, 0, 0.5, 1},
	} {
		if got := upperTail(c.n, c.k, c.p); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("P(X >= %d) of %d at %g: got %g, want %g", c.k, c.n, c.p, got, c.want)
		}
	}
	if got := upperTail(1e9, 6e8, 0.5); got != 0 {
		t.Errorf("an impossible count has probability %g", got)
	}
}

func TestTheWindowForgets(t *testing.T) {
	const within = 20 * time.Second
	l := NewLive()
	l.Advance(0, within)
	group{500, 500, 0, 0}.observe(l, Candidate)
	group{500, 0, 0, 0}.observe(l, Stable)
	p := settings().Program()
	for at := range 25 {
		l.Advance(int64(time.Duration(at)*time.Second), within)
		v := l.Compare(p.Rules)
		if got, want := v.Candidate.Requests == 500 && v.Stable.Requests == 500, at < slots; got != want {
			t.Errorf("after %ds: %+v", at, v)
		}
	}
	requests, errors := l.Totals(Candidate)
	if requests != 500 || errors != 500 {
		t.Errorf("totals: %d requests, %d errors", requests, errors)
	}
	group{500, 0, 0, 0}.observe(l, Stable)
	l.Advance(int64(24*time.Hour), within) // the machine was asleep
	if v := l.Compare(p.Rules); v.Stable.Requests != 0 {
		t.Errorf("after a day: %+v", v)
	}
}

func TestRequestsAndTheClockTogether(t *testing.T) {
	l := NewLive()
	p := settings().Program()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 5000 {
				l.Observe(l.Of(uint32(n%Points)), n%7 == 0, time.Duration(n)*time.Microsecond)
				l.SetShare((n + i) % 101)
			}
		})
	}
	all.Go(func() {
		for n := range 200 {
			l.Advance(int64(n)*int64(time.Second), 20*time.Second)
			l.Compare(p.Rules)
		}
		l.Forget()
	})
	all.Wait()
	stable, _ := l.Totals(Stable)
	candidate, _ := l.Totals(Candidate)
	if stable+candidate != 20_000 {
		t.Errorf("%d requests were counted of 20000", stable+candidate)
	}
}

func TestTheReasonOfAStepNamesItsTime(t *testing.T) {
	for _, every := range []string{"10s", "1m", "10m", "1h", "10h", "1h30m", "100s"} {
		c := Config{Schedule: "5, 25 every " + every}
		p := c.Program()
		began := time.Date(2026, 11, 28, 6, 0, 0, 0, time.UTC)
		want, _ := unit.ParseDuration(every)
		s, stepped := p.Tick(p.Initial(began), Verdict{}, began.Add(p.Every))
		if !stepped || s.Why != "5% for "+want.String() {
			t.Errorf("every %s: got %q, want that 5%% were given for %s", every, s.Why, want)
		}
	}
}

// TestRandomLives leads the states through random commands and verdicts, and holds them
// against what an operator may rely on.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		c := settings()
		if random.IntN(3) > 0 {
			c.Candidate, c.Schedule = 0, []string{"5, 25, 50, 100", "1, 2 every 1m", "5, 25, 50, 100 every 10m"}[random.IntN(3)]
		}
		p := c.Program()
		now := time.Unix(1e9, 0)
		s := p.Initial(now)
		var log []string
		for range 60 {
			before, what := s, ""
			now = now.Add(time.Duration(random.IntN(400)) * time.Second)
			v := Verdict{Candidate: Stats{Requests: random.IntN(400)}}
			var err error
			var changed bool
			switch random.IntN(8) {
			case 0:
				what = "promote"
				s, err = p.Promote(s, 0, now, "olga", "")
			case 1:
				to := random.IntN(103) - 1
				what = fmt.Sprint("promote to ", to)
				s, err = p.Promote(s, to, now, "olga", "")
			case 2:
				what = "hold"
				s, err = p.Hold(s, now, "olga", "")
			case 3:
				what = "return"
				s, err = p.Return(s, now, "olga", "")
			case 4:
				what, v.Worse = "worse", "it is"
				s, changed = p.Tick(s, v, now)
			default:
				what = "tick"
				s, changed = p.Tick(s, v, now)
			}
			log = append(log, fmt.Sprintf("%s: %+v (%v)", what, s, err))
			fail := func(rule string) { t.Fatalf("seed %d: %s\n%s", seed, rule, strings.Join(log, "\n")) }
			switch {
			case err != nil && s != before:
				fail("a refused command has changed the state")
			case (s.Phase == Returned) && s.Share != 0:
				fail("a returned candidate has a share")
			case (s.Phase == Complete) != (s.Share == 100):
				fail("complete is 100 percent")
			case s.Phase != Returned && s.Share == 0:
				fail("a candidate without a share is not returned")
			case before.Phase == Returned && s.Phase != Returned && !strings.HasPrefix(what, "promote"):
				fail("something other than an operator ended a return")
			case what == "worse" && s.Phase != Returned:
				fail("a worse candidate goes on")
			case what == "tick" && changed != (s != before):
				fail("a tick does not say what it did")
			case what == "tick" && changed && (p.Every == 0 || before.Phase != Running || now.Sub(before.Since) < p.Every || v.Candidate.Requests < p.Rules.MinRequests):
				fail("a step was too early")
			case what == "tick" && changed && !slices.Contains(p.Steps, s.Share):
				fail("a step leads to a share that the schedule has not")
			case what == "tick" && s.Share < before.Share:
				fail("a step lowers the share")
			}
		}
	}
}
