package upstream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/schema"
)

// Retry configures when a request is sent again, to another server. If no connection to a
// server can be established, the server has not received the request, and the next one is
// always tried, independent of these settings. Otherwise a request is sent again only if
// that is safe: the method is idempotent (GET, HEAD, OPTIONS, TRACE, PUT, DELETE), its body
// is not longer than 64KiB, and no part of a response was sent to the client.
type Retry struct {
	// Attempts is the maximum number of attempts, including the first: 2 is one retry, 1 is
	// none. Failed connections do not count.
	Attempts int `json:"attempts" label:"true" default:"2" min:"1" max:"10"`
	// On are the failures that are retried: `connect`, no connection, which is always
	// included; `reset`, the server closed the connection before its response; `timeout`,
	// no response head within request_timeout; the statuses `502`, `503`, `504`, or a range
	// of them, `502-504`. Absent means connect.
	On []Condition `json:"on,omitempty" label:"true" max:"16" example:"502-504"`
	// Budget is the maximum number of retries for each hundred requests of the route in the
	// last ten seconds, besides two a second, so that retries cannot make an outage worse.
	// Failed connections do not count.
	Budget int `json:"budget" label:"true" default:"20" min:"0" max:"100"`
}

// Condition is a value of Retry.On.
type Condition string

// The conditions that are no status.
const (
	OnConnect Condition = "connect"
	OnReset   Condition = "reset"
	OnTimeout Condition = "timeout"
)

// firstStatus and lastStatus bound the statuses of responses that are retried.
const firstStatus, lastStatus = 502, 504

// UnmarshalText reads a condition and refuses words that are none.
func (c *Condition) UnmarshalText(text []byte) error {
	word := Condition(text)
	first, last, ok := word.statuses()
	switch {
	case slices.Contains([]Condition{OnConnect, OnReset, OnTimeout}, word):
	case !ok:
		return fmt.Errorf("unknown condition %q, expected connect, reset, timeout, 502, 503, 504 or 502-504", word)
	case first < firstStatus || last > lastStatus || first > last:
		return fmt.Errorf("%q is not a status between 502 and 504, or a range of them", word)
	}
	*c = word
	return nil
}

// MarshalText writes the condition's word.
func (c Condition) MarshalText() ([]byte, error) { return []byte(c), nil }

// JSONForm describes the format of a condition for editors; see schema.Formed.
func (Condition) JSONForm() (types []string, pattern string) {
	return []string{"string", "integer"}, `^(connect|reset|timeout|50[2-4](-50[2-4])?)$`
}

// statuses returns the statuses of a condition.
func (c Condition) statuses() (first, last int, ok bool) {
	low, high, ranged := strings.Cut(string(c), "-")
	if !ranged {
		high = low
	}
	first, ok = status(low)
	if ok {
		last, ok = status(high)
	}
	return first, last, ok
}

// status reads a status code.
func status(text string) (n int, ok bool) {
	if len(text) != 3 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + int(text[i]-'0')
	}
	return n, true
}

// Check reports problems of the settings, which are at at.
func (r *Retry) Check(at schema.Place) {
	for i, c := range r.On {
		if slices.Contains(r.On[:i], c) {
			at.Field("on").Index(i).Problemf("remove one of them", "duplicate entry %s", c)
		}
	}
	if r.Attempts == 1 && r.sends() {
		at.Field("attempts").Problem("with 1 attempt nothing is sent again", "write attempts: 2, or remove on")
	}
}

// sends reports whether there is something for which a request is sent again
// that a server may have seen.
func (r *Retry) sends() bool {
	return slices.ContainsFunc(r.On, func(c Condition) bool { return c != OnConnect })
}

// retry is the compiled form of Retry.
type retry struct {
	// constant
	attempts       int
	reset, timeout bool
	status         [lastStatus - firstStatus + 1]bool
	told           func(bool)
	words          string // the conditions, for people

	budget budget
}

// newRetry returns nil when nothing is ever sent again: then the plain loop over
// servers that cannot be connected to is all there is.
func newRetry(c *Retry, told func(bool)) *retry {
	if c == nil || c.Attempts < 2 || !c.sends() {
		return nil
	}
	r := &retry{attempts: c.Attempts, told: told, budget: budget{share: uint64(c.Budget)}}
	var words []string
	for _, on := range c.On {
		r.reset = r.reset || on == OnReset
		r.timeout = r.timeout || on == OnTimeout
		if first, last, ok := on.statuses(); ok {
			for code := first; code <= last; code++ {
				r.status[code-firstStatus] = true
			}
		}
		if on != OnConnect {
			words = append(words, string(on))
		}
	}
	r.words = strings.Join(words, ", ")
	return r
}

// countRequest counts a request as the route's traffic, and sees to it that its body
// can be sent again.
func (r *retry) countRequest(ex *exchange.Exchange) {
	r.budget.request(ex.Times.Start)
	if ex.Request.Body != nil && idempotent(ex) && ex.Request.Length <= maxReplay {
		ex.Request.Body = newReplay(ex.Request.Body, ex.Request.Length, maxReplay)
	}
}

// answers reports whether a response with this status is one to try again for.
// r may be nil.
func (r *retry) answers(code int) bool {
	return r != nil && code >= firstStatus && code <= lastStatus && r.status[code-firstStatus]
}

// covers reports whether an attempt that ended so is one to try again for.
func (r *retry) covers(failure *exchange.Error) bool {
	if failure == nil {
		return true // its status was checked
	}
	return failure.Reason == exchange.UpstreamReset && r.reset ||
		failure.Reason == exchange.UpstreamTimeout && r.timeout
}

// again reports whether ex may be sent once more after an attempt that a server has
// seen, waits a little then, and makes ex ready for it. What the last attempt brought
// is still there.
func (r *retry) again(ex *exchange.Exchange, failure *exchange.Error, sent int) bool {
	if sent >= r.attempts || !r.covers(failure) || !repeatable(ex, failure) {
		return false
	}
	if !r.budget.spend(exchange.Now()) {
		r.report(false)
		return false
	}
	pause(sent)
	if ex.Left() {
		r.budget.giveBack(exchange.Now())
		return false
	}
	return true
}

func (r *retry) report(sent bool) {
	if r.told != nil {
		r.told(sent)
	}
}

// The pause before a request is sent again that a server has seen. It grows with
// each attempt, and no two clients wait equally long, so that what failed together
// does not come back together.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

func pause(sent int) {
	mean := min(firstPause<<(sent-1), longestPause)
	time.Sleep(mean/2 + rand.N(mean))
}

// repeatable reports whether a request that a server has received may be sent again, and
// whether all of its body can be. A server that has responded may still be receiving the
// body: then all of it must be kept, and it is prepared when that response is abandoned.
func repeatable(ex *exchange.Exchange, failure *exchange.Error) bool {
	if !idempotent(ex) {
		return false
	}
	if ex.Request.Body == nil {
		return true
	}
	body, ok := ex.Request.Body.(*replay)
	if failure == nil && uploading(ex) {
		return ok && body.complete()
	}
	return ok && body.rewindable(ex)
}

// uploading reports whether the server that has answered may still be sent the body.
func uploading(ex *exchange.Exchange) bool {
	c, ok := ex.Response.Body.(*conn)
	return !ok || c.upload != nil
}

// maxDrain limits how much of an unused response is read, so that its connection can be
// reused, in bytes. It does not wait for data.
const maxDrain = 64 << 10

// discard closes a response and its connection.
func discard(ex *exchange.Exchange) {
	if body := ex.Response.Body; body != nil {
		p := copyBuffers.Get().(*[copySize]byte)
		for n := 0; n < maxDrain && body.Ready(); {
			k, err := body.Read(p[:])
			if n += k; err != nil {
				break
			}
		}
		copyBuffers.Put(p)
		body.Close()
	}
	ex.Response.Reset()
}

// Retries describes what happens with ex when a server fails, for Explain; "" if the route
// has only one server.
func (s *Servers) Retries(ex *exchange.Exchange) string {
	const connect = "if the connection to a server fails, another one is tried"
	switch {
	case len(s.list) < 2:
		return ""
	case s.retry == nil:
		return connect
	case !idempotent(ex):
		return connect + "; what a server may have seen is not sent again"
	}
	return fmt.Sprintf("%s; on %s the request is sent again, %d times in all", connect, s.retry.words, s.retry.attempts)
}
