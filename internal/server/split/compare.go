package split

import (
	"fmt"
	"math"
	"time"
)

// Rules are the compiled Rollback.
type Rules struct {
	// Enabled is whether anything is decided.
	Enabled bool
	// ErrorsAbove and SlowerThan are ratios, 0 for off.
	ErrorsAbove, SlowerThan float64
	// Within is the window, MinRequests how many requests both groups need.
	Within      time.Duration
	MinRequests int
}

// Verdict is what a window says about the candidate.
type Verdict struct {
	// Stable and Candidate are the counts that it is about.
	Stable, Candidate Stats
	// Enough is whether both groups have MinRequests.
	Enough bool
	// Worse is why the candidate must not go on, "" if nothing says so.
	Worse string
}

// The margins of a decision. The comparison is repeated every second, so they are strict.
const (
	// chance is the probability of the errors, if the candidate were just not worse.
	chance = 0.0001
	// leastErrors of the candidate are needed to decide by errors.
	leastErrors = 5
	// margin is the quantile of the normal distribution for one-sided 99%.
	margin = 2.326
	// leastSlower is how much slower the candidate must be to decide by times.
	leastSlower = 5 * time.Millisecond
)

// compare decides.
func (r *Rules) compare(stable, candidate *sums) Verdict {
	v := Verdict{Stable: stable.stats(), Candidate: candidate.stats()}
	least := uint64(r.MinRequests)
	v.Enough = stable.requests >= least && candidate.requests >= least
	switch {
	case !r.Enabled || !v.Enough:
	case r.ErrorsAbove > 0 && moreErrors(stable, candidate, r.ErrorsAbove):
		v.Worse = fmt.Sprintf("errors: candidate %s, stable %s, limit %gx", v.Candidate.errorText(), v.Stable.errorText(), r.ErrorsAbove)
	case r.SlowerThan > 0 && slower(stable, candidate, r.SlowerThan):
		v.Worse = fmt.Sprintf("response time (p95): candidate %.0f ms, stable %.0f ms, limit %gx", v.Candidate.P95, v.Stable.P95, r.SlowerThan)
	}
	return v
}

func (s Stats) errorText() string {
	return fmt.Sprintf("%.1f%% (%d of %d)", 100*float64(s.Errors)/float64(max(s.Requests, 1)), s.Errors, s.Requests)
}

func (s *sums) stats() Stats {
	p95 := s.times.Quantile(0.95)
	return Stats{Requests: int(s.requests), Errors: int(s.errors), P95: math.Round(float64(p95)/1e4) / 100}
}

// moreErrors reports whether the candidate's error ratio is above the stable one's by more
// than a factor. It is the exact conditional test of two rates: if the candidate's were just
// the factor, of all errors together the candidate would have a binomial share, whatever the
// rate is. It holds for no errors at all, and is on the safe side for high ratios.
func moreErrors(stable, candidate *sums, factor float64) bool {
	if candidate.errors < leastErrors {
		return false
	}
	weight := factor * float64(candidate.requests)
	return upperTail(candidate.errors+stable.errors, candidate.errors, weight/(weight+float64(stable.requests))) < chance
}

// upperTail returns the probability of at least k successes in n tries with probability p.
func upperTail(n, k uint64, p float64) float64 {
	if k == 0 || float64(k) <= float64(n)*p {
		return 1 // at or below the mean: far from rare
	}
	N, K := float64(n), float64(k)
	lgN, _ := math.Lgamma(N + 1)
	lgK, _ := math.Lgamma(K + 1)
	lgR, _ := math.Lgamma(N - K + 1)
	term := math.Exp(lgN - lgK - lgR + K*math.Log(p) + (N-K)*math.Log1p(-p))
	sum := 0.0
	for i := K; i <= N && term > sum*1e-12; i++ { // above the mean terms fall
		sum += term
		term *= (N - i) / (i + 1) * p / (1 - p)
	}
	return sum
}

// slower reports whether the candidate's 95th percentile is above the stable one's by more
// than a factor: its lower confidence bound above the upper one of the other. The bounds are
// order statistics, so that the distribution of times does not matter.
func slower(stable, candidate *sums, factor float64) bool {
	if stable.answered == 0 || candidate.answered == 0 {
		return false
	}
	low := candidate.times.AtRank(candidate.rank(-margin))
	high := stable.times.AtRank(stable.rank(margin))
	return float64(low) > factor*float64(high) && low-high >= leastSlower
}

// rank returns the rank of the 95th percentile, a number of standard errors away from it.
func (s *sums) rank(deviations float64) float64 {
	n := float64(s.answered)
	return min(max(0.95*(n-1)+deviations*math.Sqrt(n*0.95*0.05), 0), n-1)
}
