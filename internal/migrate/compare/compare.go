// Package compare sends the same requests to two proxies and reports how their
// responses differ, so that one can replace the other without a surprise.
//
// Run sends each request to the old proxy, to the new one, and to the old one again:
// what differs between the two responses of the old one is noise and is ignored.
// Only safe methods are sent unless Options.Unsafe is set, and redirects are not
// followed. Host and the name in TLS are those of the request, whatever the address.
//
// FromRoutes and FromList make the requests: from a configuration, or from a list of
// URLs or an access log. The Report contains every difference with its kind, and how
// ready each proxy is.
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Side is one of the two proxies: its addresses for http and https.
type Side struct {
	// HTTP is the address for http, host:port. Without one, requests of http are left out.
	HTTP string `json:"http,omitempty"`
	// HTTPS is the address for https, host:port, or empty as well.
	HTTPS string `json:"https,omitempty"`
}

// address returns the address for a scheme.
func (s Side) address(scheme string) string {
	if scheme == "https" {
		return s.HTTPS
	}
	return s.HTTP
}

// Request is one request that both sides get.
type Request struct {
	// Method is the method.
	Method string `json:"method"`
	// Scheme is http or https.
	Scheme string `json:"scheme"`
	// Host is the host, with its port if the client sent one.
	Host string `json:"host"`
	// Target is path and query.
	Target string `json:"target"`
	// Header is sent besides Host, User-Agent and Accept-Encoding.
	Header http.Header `json:"-"`
	// Proxy is the proxy of our configuration that the request belongs to; empty if
	// that is not known.
	Proxy string `json:"proxy,omitempty"`
}

// URL is the request's URL as a person writes it.
func (r Request) URL() string { return r.Scheme + "://" + r.Host + r.Target }

// Options are the options of a comparison.
type Options struct {
	Old, New Side
	Requests []Request
	// Unsafe sends methods other than GET, HEAD and OPTIONS too. They then act twice
	// on each side's servers, so it is for tests.
	Unsafe bool
	// Rate is how many requests a second each side gets at most; 0 is 20.
	Rate float64
	// Timeout bounds one answer with its body; 0 is 10s.
	Timeout time.Duration
	// MaxBody is how many bytes of a body are compared, before decoding; 0 is 4 MiB.
	MaxBody int64
	// Slower is the factor by which the new side may be slower before it is
	// reported; 0 is 3. Differences below 100ms are never reported.
	Slower float64
	// Dial sees each address as it is about to be connected to, and may refuse it (see
	// net.Dialer.ControlContext); nil lets all pass.
	Dial func(ctx context.Context, network, address string, c syscall.RawConn) error
	// Progress is called after each request with how many are done; nil is fine.
	Progress func(done, all int)
}

const (
	defaultRate    = 20
	defaultTimeout = 10 * time.Second
	defaultBody    = 4 << 20
	defaultSlower  = 3
	atOnce         = 4
	// maxRequests bounds one comparison.
	maxRequests = 100_000
)

func (o *Options) setDefaults() {
	o.Rate = cmp.Or(o.Rate, defaultRate)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxBody = cmp.Or(o.MaxBody, defaultBody)
	o.Slower = cmp.Or(o.Slower, defaultSlower)
}

// Run compares. It returns what was found so far when ctx ends, with its error.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.setDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &runner{options: o, old: newClient(o.Old, o), new: newClient(o.New, o), budget: maxKept}
	defer r.old.close()
	defer r.new.close()
	report := &Report{Old: o.Old, New: o.New, Began: time.Now().UTC()}
	requests := r.choose(report)
	results := r.sendAll(ctx, requests)
	if r.over() {
		side := "old"
		if r.silentNew >= maxSilent {
			side = "new"
		}
		report.Notes = append(report.Notes, fmt.Sprintf("the %s proxy did not answer %d consecutive requests, or did not accept their connections: %d requests were not sent", side, maxSilent, len(requests)-len(results)))
	}
	if r.cut > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("there are so many differences that for %d requests only the most important one is reported", r.cut))
	}
	report.finish(results)
	return report, ctx.Err()
}

func (o *Options) check() error {
	switch {
	case o.Old == Side{} || o.New == Side{}:
		return errors.New("compare: both sides need an address")
	case len(o.Requests) == 0:
		return errors.New("compare: there is no request to send")
	case len(o.Requests) > maxRequests:
		return fmt.Errorf("compare: %d requests, at most %d are compared in one run", len(o.Requests), maxRequests)
	case o.Rate < 0 || o.Timeout < 0 || o.MaxBody < 0 || o.Slower < 0:
		return errors.New("compare: a rate, time or size is negative")
	}
	return nil
}

type runner struct {
	options  Options
	old, new *client
	// silentOld and silentNew count how many requests one after the other a side let
	// wait until their time was over, or did not let in.
	silentOld, silentNew int
	// budget is how many bytes of differences may still be kept.
	budget int
	cut    int // results of which only the weightiest difference was kept
}

const (
	// maxSilent is how many such requests end the comparison: a proxy that does not run
	// would take hours.
	maxSilent = 20
	// maxKept bounds the differences that are kept, in bytes.
	maxKept = 64 << 20
)

// choose leaves out what cannot or must not be sent, and says so.
func (r *runner) choose(report *Report) []Request {
	var chosen []Request
	unsafe, without := 0, 0
	for _, rq := range r.options.Requests {
		switch {
		case !r.options.Unsafe && !safe(rq.Method):
			unsafe++
		case r.options.Old.address(rq.Scheme) == "" || r.options.New.address(rq.Scheme) == "":
			without++
		default:
			chosen = append(chosen, rq)
		}
	}
	if unsafe > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d requests with methods that change something were not sent", unsafe))
	}
	if without > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d requests were not sent: one of the sides has no address for their scheme", without))
	}
	return chosen
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// sendAll sends the requests, a few at a time and no faster than the rate.
func (r *runner) sendAll(ctx context.Context, requests []Request) []Result {
	results := make([]Result, len(requests))
	pace := newPace(r.options.Rate)
	next := make(chan int)
	var all sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(atOnce, len(requests)) {
		all.Go(func() {
			for i := range next {
				result := r.one(ctx, requests[i])
				mu.Lock()
				results[i] = r.keep(result)
				done++
				if r.options.Progress != nil {
					r.options.Progress(done, len(requests))
				}
				mu.Unlock()
			}
		})
	}
	sent := 0
	for i := range requests {
		mu.Lock()
		over := r.over()
		mu.Unlock()
		if over || !pace.wait(ctx) {
			break
		}
		next <- i
		sent++
	}
	close(next)
	all.Wait()
	return slices.DeleteFunc(results[:sent], func(r Result) bool { return r.Request.Method == "" })
}

// one compares the answers to one request.
func (r *runner) one(ctx context.Context, rq Request) Result {
	first := r.old.send(ctx, rq)
	ours := r.new.send(ctx, rq)
	again := first // where there is no answer, there is no noise
	if first.err == nil {
		again = r.old.send(ctx, rq)
	}
	if ctx.Err() != nil {
		return Result{}
	}
	return Result{Request: rq, Old: first.summary(), New: ours.summary(),
		Differences: differences(rq, first, again, ours, r.options.Slower), silent: silence{first.silent(), ours.silent()}}
}

// keep adds a result to the totals, and returns the part of it that is kept.
func (r *runner) keep(one Result) Result {
	if one.Request.Method == "" {
		return one
	}
	if !r.over() {
		r.silentOld, r.silentNew = r.silentOld+1, r.silentNew+1
		if !one.silent.old {
			r.silentOld = 0
		}
		if !one.silent.new {
			r.silentNew = 0
		}
	}
	for _, d := range one.Differences {
		r.budget -= len(d.Text) + len(d.Old) + len(d.New) + len(d.Name) + 100
	}
	if r.budget < 0 && len(one.Differences) > 0 {
		r.cut++
		d := slices.MaxFunc(one.Differences, func(a, b Difference) int { return heavy(a.Weight) - heavy(b.Weight) })
		d.Text, d.Old, d.New = shortenTo(d.Text, maxName), "", ""
		one.Differences = []Difference{d}
	}
	return one
}

// over reports whether a side is silent for too long to go on.
func (r *runner) over() bool { return r.silentOld >= maxSilent || r.silentNew >= maxSilent }

// pace limits how many start in a second.
type pace struct {
	gap  time.Duration
	next time.Time
}

// The old side gets two requests for each one, so it is the one that is paced.
func newPace(rate float64) *pace {
	return &pace{gap: time.Duration(2 * float64(time.Second) / rate)}
}

func (p *pace) wait(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	timer := time.NewTimer(p.next.Sub(now))
	defer timer.Stop()
	p.next = p.next.Add(p.gap)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
