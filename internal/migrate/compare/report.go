package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"headgate/internal/setting/shown"
)

// Result is the result of one request.
type Result struct {
	// Request is the request to both sides.
	Request Request `json:"request"`
	// Old is what the old side answered, the first time.
	Old Summary `json:"old"`
	// New is what the new side answered.
	New Summary `json:"new"`
	// Differences are what is not alike.
	Differences []Difference `json:"differences"`

	silent silence
}

// silence is the sides that did not answer in time.
type silence struct{ old, new bool }

// ready reports whether the new side may answer this request in the old one's place.
func (r Result) ready() bool {
	return !slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Weight != Note })
}

// Reason is a difference that several requests share.
type Reason struct {
	// Kind is what it is about.
	Kind Kind `json:"kind"`
	// Weight is how much it matters.
	Weight Weight `json:"weight"`
	// Name is the name of the header or cookie, if it is about one.
	Name string `json:"name,omitempty"`
	// Text is that of the first request that has it.
	Text string `json:"text"`
	// Example is the method and the URL of that request.
	Example string `json:"example"`
	// Requests is how many requests have it.
	Requests int `json:"requests"`
}

// Readiness is how ready a proxy is for the cutover.
type Readiness struct {
	// Proxy is the proxy's name; empty for requests that belong to none.
	Proxy string `json:"proxy"`
	// Requests is how many were compared.
	Requests int `json:"requests"`
	// Ready is how many of them are answered alike.
	Ready int `json:"ready"`
	// Percent is their share, rounded down, so that 100 means all.
	Percent int `json:"percent"`
	// Reasons are the differences, the most important and most frequent
	// first.
	Reasons []Reason `json:"reasons"`
}

// Report is what a comparison found.
type Report struct {
	// Old is the address of the old side.
	Old Side `json:"old"`
	// New is the address of the new side.
	New Side `json:"new"`
	// Began is the time of the first request.
	Began time.Time `json:"began"`
	// Took is the total duration, in seconds.
	Took float64 `json:"took_s"`
	// Requests is how many were compared.
	Requests int `json:"requests"`
	// Ready is how many of them are answered alike.
	Ready int `json:"ready"`
	// Percent is their share, rounded down, so that 100 means all.
	Percent int `json:"percent"`
	// Proxies are the proxies, the least ready first.
	Proxies []Readiness `json:"proxies"`
	// Results are the requests with differences, in the order in which they were sent.
	Results []Result `json:"results"`
	// Notes say what was not compared, and what else to check.
	Notes []string `json:"notes"`
}

// maxReasons limits the reasons that are reported for one proxy.
const maxReasons = 50

func (r *Report) finish(results []Result) {
	r.Took = time.Since(r.Began).Seconds()
	r.Requests = len(results)
	byProxy := map[string]*Readiness{}
	for _, one := range results {
		p := byProxy[one.Request.Proxy]
		if p == nil {
			p = &Readiness{Proxy: one.Request.Proxy, Reasons: []Reason{}}
			byProxy[one.Request.Proxy] = p
		}
		p.Requests++
		if one.ready() {
			p.Ready++
			r.Ready++
		}
		p.add(one)
	}
	r.Percent = percent(r.Ready, r.Requests)
	r.Proxies = []Readiness{}
	for _, p := range byProxy {
		p.Percent = percent(p.Ready, p.Requests)
		slices.SortStableFunc(p.Reasons, func(a, b Reason) int {
			return cmp.Or(cmp.Compare(heavy(b.Weight), heavy(a.Weight)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Text, b.Text))
		})
		if more := len(p.Reasons) - maxReasons; more > 0 {
			p.Reasons = p.Reasons[:maxReasons]
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %d more reasons are left out; each request has its own in the report as JSON or HTML", cmp.Or(p.Proxy, "no proxy of ours"), more))
		}
		r.Proxies = append(r.Proxies, *p)
	}
	slices.SortFunc(r.Proxies, func(a, b Readiness) int {
		return cmp.Or(cmp.Compare(a.Percent, b.Percent), cmp.Compare(a.Proxy, b.Proxy))
	})
	r.Results = slices.DeleteFunc(results, func(one Result) bool { return len(one.Differences) == 0 })
	if r.Notes == nil {
		r.Notes = []string{}
	}
}

// Note puts notes before those that the report has.
func (r *Report) Note(notes ...string) {
	// Concat returns nil for nothing, and a list in JSON is never null.
	r.Notes = append([]string{}, slices.Concat(notes, r.Notes)...)
}

func heavy(w Weight) int {
	switch w {
	case Breaks:
		return 2
	case Differs:
		return 1
	}
	return 0
}

func percent(part, all int) int {
	if all == 0 {
		return 0
	}
	return 100 * part / all
}

// add adds the differences of a request to the reasons.
func (p *Readiness) add(one Result) {
	for _, d := range one.Differences {
		i := slices.IndexFunc(p.Reasons, func(r Reason) bool {
			return r.Kind == d.Kind && r.Name == d.Name && r.Weight == d.Weight && (r.Text == d.Text || d.Kind != KindStatus && d.Kind != KindError)
		})
		if i < 0 {
			if len(p.Reasons) >= 20*maxReasons {
				continue
			}
			p.Reasons = append(p.Reasons, Reason{Kind: d.Kind, Weight: d.Weight, Name: d.Name, Text: d.Text,
				Example: one.Request.Method + " " + one.Request.URL()})
			i = len(p.Reasons) - 1
		}
		p.Reasons[i].Requests++
	}
}

// WriteText writes the report for a terminal. Texts of the other side are quoted, so
// that they cannot steer it.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d requests are answered alike: %d %%\n", r.Ready, r.Requests, r.Percent)
	for _, p := range r.Proxies {
		fmt.Fprintf(&b, "\n%3d %%  %s (%d of %d requests)\n", p.Percent, cmp.Or(p.Proxy, "no proxy of ours"), p.Ready, p.Requests)
		for _, reason := range p.Reasons {
			fmt.Fprintf(&b, "       %-7s  %-8s  %s\n                          %d requests, such as %s\n", reason.Weight, reason.Kind, visible(reason.Text), reason.Requests, visible(reason.Example))
		}
	}
	for i, note := range r.Notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "note   %s\n", visible(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// visible removes characters from a text that a terminal interprets or that change
// its order.
func visible(s string) string { return shown.Text(s, '\uFFFD') }
