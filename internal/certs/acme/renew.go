package acme

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"
)

// shortLife is the life below which a certificate is renewed at half of it.
const shortLife = 10 * 24 * time.Hour

// byLifetime returns when a certificate is renewed without a suggestion of the authority:
// when a third of its lifetime is left, half of a short one. The time varies with the name,
// so that certificates that were issued together are not renewed together.
func byLifetime(r *Record) time.Time {
	life := r.NotAfter.Sub(r.NotBefore)
	left := life / 3
	if life < shortLife {
		left = life / 2
	}
	h := fnv.New32a()
	h.Write([]byte(r.Name))
	jitter := time.Duration(float64(life/30) * float64(h.Sum32()) / (1 << 32))
	return r.NotAfter.Add(-left - jitter)
}

// renewAt returns when a certificate is to be renewed. What the authority suggests
// wins, but not over the end of the certificate.
func renewAt(e *Config, r *Record) time.Time {
	own := byLifetime(r)
	if e.Renew != ByARI || r.Renewal == nil || !r.Renewal.At.Before(r.NotAfter) {
		return own
	}
	return r.Renewal.At
}

// The limits of how often the authority is queried for the renewal time (RFC 9773, section
// 4.3.2).
const (
	soonestAsk = time.Minute
	latestAsk  = 24 * time.Hour
	usualAsk   = 6 * time.Hour
)

// askRenewal queries the authority for the renewal time, if that is due. After an error the
// last suggestion stays.
func (m *Manager) askRenewal(ctx context.Context, e *Config, r *Record) {
	now := m.now()
	if e.Renew != ByARI || r.NotAfter.IsZero() {
		return
	}
	// A moment further away than any that is chosen was chosen by a clock that was ahead.
	if w := r.Renewal; w != nil && now.Before(w.AskAgain) && w.AskAgain.Sub(now) <= latestAsk {
		return
	}
	next := usualAsk
	// A certificate that lives for minutes is queried more often, even if the authority's
	// Retry-After is longer than its lifetime.
	tenth := max(r.NotAfter.Sub(r.NotBefore)/10, shortestPause)
	bound := func(d time.Duration) time.Duration {
		return min(max(d, min(soonestAsk, tenth)), latestAsk, tenth)
	}
	info, err := m.renewalInfo(ctx, e, r)
	switch {
	case errors.Is(err, protocol.ErrUnsupported):
		next = latestAsk
	case err != nil:
		m.log.Debug("ask the authority when to renew", "certificate", r.Title(), "error", err)
	}
	if r.Renewal == nil {
		r.Renewal = &Renewal{At: byLifetime(r)}
	}
	if err == nil {
		w := info.SuggestedWindow
		if !w.Start.Equal(r.Renewal.Start) || !w.End.Equal(r.Renewal.End) {
			r.Renewal.Start, r.Renewal.End, r.Renewal.At = w.Start, w.End, info.SelectedTime
		}
		r.Renewal.Explanation = cut(info.ExplanationURL)
		if info.RetryAfter != nil {
			next = info.RetryAfter.Sub(now)
		}
	}
	r.Renewal.AskAgain = now.Add(bound(next))
}

// shortestPause is the shortest pause of one that lives for seconds.
const shortestPause = time.Second

// renewAgain returns the earliest time for another order after one was issued, independent
// of the authority and the clock: after a tenth of its lifetime, at most an hour.
func renewAgain(r *Record) time.Time {
	for i := len(r.Timeline) - 1; i >= 0; i-- {
		if a := r.Timeline[i]; a.Issued && !a.Staging {
			return a.Ended.Add(min(r.NotAfter.Sub(r.NotBefore)/10, time.Hour))
		}
	}
	return time.Time{}
}

func (m *Manager) renewalInfo(ctx context.Context, e *Config, r *Record) (protocol.RenewalInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	leaf, err := m.leaf(ctx, r.Name)
	if err != nil {
		return protocol.RenewalInfo{}, err
	}
	c, err := m.client(ctx, e, directoryOf(r.Directory).url)
	if err != nil {
		return protocol.RenewalInfo{}, err
	}
	defer c.HTTPClient.CloseIdleConnections()
	return c.GetRenewalInfo(ctx, leaf)
}

// pause returns how long to wait after failures in a row: a minute, then twice as
// long each time, up to an hour; less where the certificate ends before. One that
// lives for minutes is never waited for longer than a tenth of its life.
func (m *Manager) pause(r *Record, now time.Time) time.Duration {
	first, most := m.pace.first, m.pace.most
	if life := r.NotAfter.Sub(r.NotBefore); life > 0 {
		first, most = min(first, max(life/20, shortestPause)), min(most, max(life/10, shortestPause))
	}
	d := min(first<<min(max(r.Failures-1, 0), 10), most)
	if left := r.NotAfter.Sub(now); left > 0 {
		d = min(d, max(left/10, first))
	}
	h := fnv.New32a()
	h.Write([]byte(r.Name + now.String()))
	return d + time.Duration(float64(d/10)*float64(h.Sum32())/(1<<32))
}
