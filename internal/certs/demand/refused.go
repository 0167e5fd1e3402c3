package demand

import "time"

// For how long a host is refused without a request: after a refusal, and after a failure.
const (
	pauseRefused = time.Minute
	pauseFailed  = 5 * time.Second
)

// maxRefused is how many refused hosts are remembered.
const maxRefused = 10_000

// refusals are the hosts that were refused. The oldest ones make room for new ones.
type refusals struct {
	until map[string]time.Time
	order []string // a ring
	next  int
}

func newRefusals() refusals { return refusals{until: map[string]time.Time{}} }

// has reports whether a host was refused a short while ago.
func (r *refusals) has(host string, now time.Time) bool {
	until, ok := r.until[host]
	return ok && now.Before(until)
}

// add remembers a host.
func (r *refusals) add(host string, now time.Time, pause time.Duration) {
	_, known := r.until[host]
	r.until[host] = now.Add(pause)
	switch {
	case known:
	case len(r.order) < maxRefused:
		r.order = append(r.order, host)
	default:
		delete(r.until, r.order[r.next])
		r.order[r.next] = host
		r.next = (r.next + 1) % maxRefused
	}
}
