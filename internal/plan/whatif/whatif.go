// Package whatif evaluates recent requests with a configuration that is not active yet, and
// reports which of them would be handled differently.
//
// Recent requests are kept with shortened headers and without secrets: requests that need a
// password, a cookie or a client certificate are evaluated as if they had none. Both
// configurations are evaluated in the same way, so that a difference is one of the
// configurations.
//
// It sends nothing and changes nothing. Time, requests and examples are limited.
package whatif

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/bans"
	"headgate/internal/config"
	"headgate/internal/plan"
)

// The bounds of one run.
const (
	// MaxRequests is how many requests are decided, the newest.
	MaxRequests = 2000
	// MaxTime is how long it may take.
	MaxTime = time.Second
	// MaxExamples is the maximum number of examples.
	MaxExamples = 10
	// maxGroups bounds the memory for kinds of change.
	maxGroups = 1000
	// maxText is how much of a path or a Location is shown.
	maxText = 200
)

// Result is the effect on recent requests. A request that would be handled differently is
// counted once, for the first that applies of Refused, Password, Allowed, Proxy, Route,
// Servers and Answer.
type Result struct {
	// Requests is how many requests were decided by both configurations.
	Requests int `json:"requests"`
	// Since is when the oldest of them came.
	Since time.Time `json:"since,omitzero"`
	// Changed is how many would be handled otherwise in any way.
	Changed int `json:"changed"`
	// Refused is how many would be refused that are not refused now.
	Refused int `json:"refused"`
	// Password is how many would be asked for a password or a token (401) that are not
	// asked now. They may have one: credentials are not kept, so they do not count as
	// refused.
	Password int `json:"password"`
	// Allowed is how many would not be refused that are refused now.
	Allowed int `json:"allowed"`
	// Proxy is how many would be taken by another proxy.
	Proxy int `json:"proxy"`
	// Route is how many would be taken by another route.
	Route int `json:"route"`
	// Servers is how many would be sent to other servers.
	Servers int `json:"servers"`
	// Answer is how many would get another answer without a server, or one in place of a
	// server's.
	Answer int `json:"answer"`
	// Left is how many were not decided because the time was over or a part of them is
	// not kept.
	Left int `json:"left,omitempty"`
	// Examples are the changes that are most frequent, those that refuse first.
	Examples []Example `json:"examples,omitempty"`
	// Bans is what each ban rule would have done.
	Bans []bans.Trial `json:"bans,omitempty"`
}

// Example is a change with the newest request that it is about.
type Example struct {
	// Count is how many requests change in the same way.
	Count int `json:"count"`
	// Method is that of the newest of them.
	Method string `json:"method"`
	// URL is that of the newest of them, without its query.
	URL string `json:"url"`
	// Before is how it is handled now.
	Before plan.Decision `json:"before"`
	// After is how it would be handled.
	After plan.Decision `json:"after"`
	// Refused is whether it would be refused, and is not now.
	Refused bool `json:"refused,omitempty"`
}

// Run evaluates the recent requests of a ring with the active plan and with another one.
// Any of them may be nil: then there is no result.
func Run(ring *recent.Ring, before, after *plan.Plan) *Result {
	if ring == nil || before == nil || after == nil {
		return nil
	}
	r := &run{after: after, ports: pair(before, after), groups: map[string]*Example{}, end: time.Now().Add(MaxTime)}
	cursor := recent.Cursor{}
	for r.seen < MaxRequests {
		page := ring.Find(recent.Query{StatusFrom: 1}, cursor, min(recent.MaxPage, MaxRequests-r.seen))
		for i := range page.Requests {
			r.decide(&page.Requests[i])
		}
		if page.Next == (recent.Cursor{}) || len(page.Requests) == 0 {
			break
		}
		cursor = page.Next
	}
	r.result.Examples = r.examples(maskers(before.Config(), after.Config()))
	r.result.Bans = tryBans(ring, before, after)
	return &r.result
}

// run belongs to one Run.
type run struct {
	after  *plan.Plan
	ports  map[string][2]*plan.Port
	groups map[string]*Example
	end    time.Time
	seen   int
	result Result
}

// pair finds for each port that there is now the one that its requests would come to:
// that of its name, else that of its address.
func pair(before, after *plan.Plan) map[string][2]*plan.Port {
	pairs := map[string][2]*plan.Port{}
	for _, p := range before.Ports() {
		next := after.Port(p.Name())
		for _, other := range after.Ports() {
			if next == nil && other.Address() == p.Address() && (other.Protocol() == config.HTTP3) == (p.Protocol() == config.HTTP3) {
				next = other
			}
		}
		pairs[p.Name()] = [2]*plan.Port{p, next}
	}
	return pairs
}

// decide decides one request twice.
func (r *run) decide(rq *recent.Request) {
	r.seen++
	ports, ok := r.ports[rq.Port]
	if !ok || rq.Method == "" || rq.Method == "CONNECT" || recent.Cut(rq) || !time.Now().Before(r.end) {
		r.result.Left++
		return
	}
	q := question(rq)
	was := ports[0].Decide(q)
	is := plan.Decision{By: "listen", Reason: "no_port"}
	if ports[1] != nil {
		is = ports[1].Decide(q)
	}
	r.result.Requests++
	r.result.Since = rq.Time
	r.compare(rq, was, is)
}

// question makes the question that a recent request was.
func question(rq *recent.Request) plan.Question {
	q := plan.Question{Method: rq.Method, Scheme: rq.Scheme, Authority: rq.Host, Target: rq.Path}
	if rq.Query != "" {
		q.Target += "?" + rq.Query
	}
	if rq.UserAgent != "" {
		q.Fields = append(q.Fields, [2]string{"User-Agent", rq.UserAgent})
	}
	if rq.Referer != "" {
		q.Fields = append(q.Fields, [2]string{"Referer", rq.Referer})
	}
	q.From, _ = netip.ParseAddr(rq.Client) // without one it is this machine
	return q
}

// refused reports whether a request gets nothing that it asks for.
func refused(d *plan.Decision) bool {
	return len(d.Servers) == 0 && (d.Status == 0 || d.Status >= 400)
}

// compare counts what differs between two decisions.
func (r *run) compare(rq *recent.Request, was, is plan.Decision) {
	if was.Equal(&is) {
		return
	}
	out := &r.result
	out.Changed++
	now, then := refused(&was), refused(&is)
	asked := then && !now && is.Status == http.StatusUnauthorized
	kinds := []byte(".......")
	counted := false
	count := func(i int, differs bool, n *int) {
		if differs {
			kinds[i] = '+'
			if !counted {
				*n++
			}
			counted = true
		}
	}
	count(0, then && !now && !asked, &out.Refused)
	count(1, asked, &out.Password)
	count(2, now && !then, &out.Allowed)
	count(3, is.Proxy != "" && was.Proxy != is.Proxy, &out.Proxy)
	count(4, is.Route != "" && was.Route != is.Route, &out.Route)
	count(5, len(was.Servers) > 0 && len(is.Servers) > 0 && !slices.Equal(was.Servers, is.Servers), &out.Servers)
	count(6, !was.SameAnswer(&is), &out.Answer)
	key := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%d|%s|%d", kinds, was.Proxy, was.Route, is.Proxy, is.Route, was.By, was.Status, is.By, is.Status)
	if g := r.groups[key]; g != nil {
		g.Count++
		return
	}
	if len(r.groups) < maxGroups {
		r.groups[key] = &Example{Count: 1, Method: rq.Method, URL: rq.Scheme + "://" + rq.Host + cut(rq.Path), Before: was, After: is, Refused: then && !now && !asked}
	}
}

// examples returns the changes that are most worth to be seen.
func (r *run) examples(masked func(string) string) []Example {
	all := make([]Example, 0, len(r.groups))
	for _, e := range r.groups {
		all = append(all, *e)
	}
	slices.SortFunc(all, func(a, b Example) int {
		if a.Refused != b.Refused {
			if a.Refused {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.URL, b.URL))
	})
	all = all[:min(len(all), MaxExamples)]
	for i := range all {
		for _, d := range []*plan.Decision{&all[i].Before, &all[i].After} {
			d.Location, _, _ = strings.Cut(d.Location, "?")
			d.Location = masked(cut(d.Location))
			for j, s := range d.Servers[:min(len(d.Servers), MaxExamples)] {
				d.Servers[j] = masked(s)
			}
			d.Servers = d.Servers[:min(len(d.Servers), MaxExamples)]
		}
	}
	return all
}

// maskers takes out of a text what either configuration has from files.
func maskers(all ...*config.Config) func(string) string {
	var list []*strings.Replacer
	for _, c := range all {
		if m := c.Masker(); m != nil {
			list = append(list, m)
		}
	}
	return func(s string) string {
		for _, m := range list {
			s = m.Replace(s)
		}
		return s
	}
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
