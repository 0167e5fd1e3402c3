// Package ratelimit limits how many requests a client makes. The arithmetic and
// the memory are in package bucket, key.go distinguishes clients; this file is
// the filter and sends the rate limit headers.
//
// A limit's buckets are kept over changes that leave its numbers alone. They are
// of this process and not shared with others.
package ratelimit

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// Compile returns the filter of a limit. Buckets belong to env.Scope. Valid settings cause no
// error.
func Compile(c *Config, env exchange.Env) (exchange.Filter, error) {
	l := &limit{policy: policy(c), observe: c.Mode == Observe, key: newKey(c.Key)}
	if len(c.Exempt) > 0 {
		set, err := ipset.Compile(c.Exempt, env.Addresses)
		if err != nil {
			return exchange.Filter{}, err
		}
		l.exempt = set
	}
	// Buckets mean something as long as these are the same.
	numbers := struct {
		requests int
		period   time.Duration
		burst    int
		key      string
	}{c.Requests, c.Period.D(), l.policy.Burst(), c.Key}
	l.buckets = exchange.Keep(env, "rate_limit of "+env.Scope, numbers, func() *buckets { return newBuckets(env.Scope, l.policy, env.Log) })
	l.announced = announce(c, &l.policy)
	l.refused = exchange.Fail(exchange.RateLimited, "over the rate_limit of "+env.Scope)
	f := exchange.Filter{Name: "rate_limit", Request: l.request, Response: l.response}
	if l.observe {
		f.Response = nil
	}
	return f, nil
}

// limit is a compiled limit. It is immutable but for its buckets.
type limit struct {
	policy    bucket.Policy
	key       key
	observe   bool
	exempt    *ipset.Matcher
	buckets   *buckets
	announced string // the value of RateLimit-Policy
	refused   *exchange.Answer
}

// quota is what a limit has left for a client.
type quota struct {
	// left is how many requests the client may make at once.
	left int
	// full is the time until the client's bucket is full again, and wait how long a
	// client that is over the limit has to wait, 0 if it is not; in nanoseconds.
	full, wait int64
}

// quotas is where a limit notes for the response what it has left. Exchanges that it
// does not count have none.
var quotas = exchange.NewSlot[quota](false)

// buckets is what outlives a plan.
type buckets struct {
	table  bucket.Table
	seeds  seeds
	policy bucket.Policy
	scope  string
	log    *slog.Logger
	// over counts what observe mode would have rejected since the last log
	// line.
	over   atomic.Int64
	logged clock.Spacing
}

func newBuckets(scope string, p bucket.Policy, log *slog.Logger) *buckets {
	return &buckets{seeds: newSeeds(), policy: p, scope: scope, log: log}
}

// Retire does nothing: buckets hold nothing but memory.
func (b *buckets) Retire() {}

// Export returns the buckets for a process that replaces this one.
func (b *buckets) Export() []byte { return bucket.Export(b.seeds.address, &b.table) }

// Import accepts what Export returned.
func (b *buckets) Import(data []byte) {
	if seed, ok := bucket.Import(data, &b.table, &b.policy); ok {
		b.seeds = seedsOf(seed)
	}
}

// request counts a request, and refuses it when the client's bucket is empty.
func (l *limit) request(ex *exchange.Exchange) *exchange.Answer {
	if l.exempt != nil && l.exempt.Has(ex) {
		return nil
	}
	now := ex.Times.Start
	hash := l.key.of(ex, &l.buckets.seeds)
	mark, wait := l.buckets.table.Admit(hash, now, &l.policy, ex.Rehearsal)
	if l.observe {
		ex.Observed = wait > 0
		switch {
		case wait > 0 && ex.Rehearsal:
			ex.Note("observe mode: rate_limit would reject this request")
		case wait > 0:
			l.buckets.observed(ex)
		}
		return nil
	}
	q := quotas.Reuse(ex)
	*q = quota{left: l.policy.Left(mark, now), full: max(mark-now, 0), wait: wait}
	if wait > 0 {
		q.left = 0
		return l.refused
	}
	return nil
}

// response sends the client its state, in the fields of
// draft-ietf-httpapi-ratelimit-headers (10): how many requests it may make at
// once, and in how many seconds its bucket is full again or, when it was
// rejected, the next request is allowed. That is in Retry-After too.
func (l *limit) response(ex *exchange.Exchange) {
	q := quotas.Get(ex)
	if q == nil {
		return
	}
	list := &ex.Response.Header
	after := q.full
	if q.wait > 0 {
		after = q.wait
		list.Add(header.RetryAfter, ex.Text.End(strconv.AppendInt(ex.Text.Buffer(), seconds(after), 10)))
	}
	b := append(ex.Text.Buffer(), policyName+";r="...)
	b = strconv.AppendInt(b, int64(q.left), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, seconds(after), 10)
	list.Add(header.RateLimit, ex.Text.End(b))
	list.Add(header.RateLimitPolicy, l.announced)
}

// policyName distinguishes our limit from limits of a server.
const policyName = `"headgate"`

// announce returns the value of RateLimit-Policy: the quota and its window in
// seconds. A burst above the requests of a period is announced with the time in
// which it comes back, so that what is left is never above the quota.
func announce(c *Config, p *bucket.Policy) string {
	quota, window := c.Requests, int64(c.Period.D())
	if p.Burst() > quota {
		quota, window = p.Burst(), int64(p.Refill())
	}
	return fmt.Sprintf("%s;q=%d;w=%d", policyName, quota, seconds(window))
}

// policy returns the arithmetic of a limit.
func policy(c *Config) bucket.Policy { return bucket.New(c.Requests, c.Period.D(), c.Burst) }

// seconds returns a time in whole seconds, rounded up.
func seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }

// logPause is the time between two lines of observe mode in the application's log.
const logPause = 10 * time.Second

// observed counts a request that would have been refused, and logs how many
// there were, now and then.
func (b *buckets) observed(ex *exchange.Exchange) {
	b.over.Add(1)
	if b.log == nil || !b.logged.Due(ex.Times.Start, logPause) {
		return
	}
	b.log.Warn("observe mode: rate_limit would reject requests", "limit", b.scope, "requests", b.over.Swap(0),
		"client_ip", ex.ClientIP.String(), "mode", string(Observe))
}
