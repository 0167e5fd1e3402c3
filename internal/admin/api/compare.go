package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/config"
	"headgate/internal/migrate/compare"
	"headgate/internal/operator"
	"headgate/internal/server/safedial"
)

// compareRows are the rows of the comparison of two proxies. There is one at a time.
func (a *API) compareRows() []row {
	const path = "/compare"
	return []row{
		{method: http.MethodPost, path: path, access: admin, area: areaCutover, in: of[compareInput](), out: of[comparisonBody](), status: http.StatusAccepted, may: []int{409}, maxBody: maxList + maxBody, dry: true, handle: withBody(a.startComparison),
			about: "Starts a comparison, which sends the same requests to two proxies. Link-local addresses and those of cloud metadata are rejected."},
		{method: http.MethodGet, path: path, access: admin, area: areaCutover, out: of[comparisonBody](), may: []int{404}, handle: a.comparison,
			about: "Returns the progress of the comparison, and its report once it has ended."},
		{method: http.MethodDelete, path: path, access: admin, area: areaCutover, may: []int{404}, dry: true, handle: a.stopComparison,
			about: "Stops the comparison and keeps the results so far."},
	}
}

// The limits of a comparison that is started through the API.
const (
	maxList       = 8 << 20
	maxCompared   = 10_000
	comparedRate  = 20
	comparedLimit = 1000
)

// compareInput has the options of headgate compare.
type compareInput struct {
	// Old are the addresses of the proxy that runs today: HOST:PORT for http,
	// https://HOST:PORT for https. One without a port means 80 and 443.
	Old []string `json:"old" required:"true" min:"1" max:"2"`
	// New are the addresses of headgate. The default is the ports of the active
	// configuration, on this machine.
	New []string `json:"new,omitempty" max:"2"`
	// List has the requests: URLs, one a line, with a method before it or without, or an
	// access log. Without one they are made from the routes of the configuration.
	List string `json:"list,omitempty" max:"8388608"`
	// Host is the host of requests from a log that names none.
	Host string `json:"host,omitempty" max:"253"`
	// Domains have the hosts of requests from routes whose virtual hosts are expressions,
	// or that serve every host: example.com gives app.example.com for app.*.
	Domains []string `json:"domains,omitempty" max:"20"`
	// Limit is how many requests are compared at most; 0 is 1000.
	Limit int `json:"limit,omitempty" min:"0" max:"10000"`
	// Rate is how many requests a second each side gets at most; 0 is 20.
	Rate int `json:"rate,omitempty" min:"0" max:"1000"`
	// Timeout is how many seconds one answer may take; 0 is 10.
	Timeout int `json:"timeout_s,omitempty" min:"0" max:"60"`
	// Unsafe also sends POST, PUT, DELETE and the like; servers then execute them three
	// times.
	Unsafe bool `json:"unsafe,omitempty"`
	// NoDNS skips looking up the hosts in DNS, which finds CDNs that are missing in
	// client_ip.
	NoDNS bool `json:"no_dns,omitempty"`
}

// comparisonBody is a comparison that runs or has ended.
type comparisonBody struct {
	// State is running, done or stopped; planned in a dry run.
	State string `json:"state"`
	// Who has begun it.
	Who string `json:"who"`
	// Began is when it was begun.
	Began time.Time `json:"began,omitzero"`
	// Done is how many requests were compared so far.
	Done int `json:"done"`
	// Requests is how many there are.
	Requests int `json:"requests"`
	// Report is what was found, once it is over: what headgate compare -o json gives.
	Report *compare.Report `json:"report,omitempty"`
}

// comparisons holds the comparison that runs, or the last one.
type comparisons struct {
	mu     sync.Mutex
	last   *comparison
	closed bool
}

// comparison is one job.
type comparison struct {
	who      string
	began    time.Time
	done     atomic.Int64
	requests int
	stop     context.CancelFunc
	over     chan struct{} // closed when report is there
	report   *compare.Report
	stopped  bool
}

func (c *comparison) running() bool {
	select {
	case <-c.over:
		return false
	default:
		return true
	}
}

func (c *comparison) body() comparisonBody {
	b := comparisonBody{State: "running", Who: c.who, Began: c.began, Requests: c.requests, Done: int(c.done.Load())}
	if c.running() {
		return b
	}
	if b.Report, b.State = c.report, "done"; c.stopped {
		b.State = "stopped"
	}
	return b
}

// Close ends the comparison and the watch that run. No other comparison starts.
func (a *API) Close() {
	a.cutovers.replace(nil)
	a.comparisons.mu.Lock()
	last := a.comparisons.last
	a.comparisons.closed = true
	a.comparisons.mu.Unlock()
	if last != nil {
		last.stop()
		<-last.over
	}
}

// startComparison begins a comparison.
func (a *API) startComparison(c *call, in *compareInput) (any, error) {
	cfg, err := a.running()
	if err != nil && (len(in.New) == 0 || in.List == "") {
		return nil, err
	}
	o, notes, err := in.options(cfg)
	if err != nil {
		return nil, err
	}
	all := &a.comparisons
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.closed:
		return nil, refuse("unavailable", "", "headgate is stopping", "")
	case all.last != nil && all.last.running():
		return nil, refuse("compare_running", "", "a comparison runs already", "wait for its end, or DELETE it")
	case c.dryRun:
		return comparisonBody{State: "planned", Who: c.who.Name, Requests: len(o.Requests)}, nil
	}
	if err := a.Operators.Note(c.rq.Context(), c.who, "compare.start", strings.Join(in.Old, " "), fmt.Sprintf("%d requests", len(o.Requests))); err != nil {
		return nil, err
	}
	// One request takes three answers; at worst each lasts until its timeout.
	ctx, stop := context.WithTimeout(context.Background(), maxComparison)
	job := &comparison{who: c.who.Name, began: time.Now().UTC(), requests: len(o.Requests), stop: stop, over: make(chan struct{})}
	o.Progress = func(done, _ int) { job.done.Store(int64(done)) }
	all.last = job
	go func() {
		defer stop()
		defer close(job.over)
		if cfg != nil && !in.NoDNS {
			notes = append(notes, compare.CheckCDN(ctx, cfg, net.DefaultResolver, compare.Proxies(o.Requests))...)
		}
		report, err := compare.Run(ctx, o)
		if err != nil && report == nil {
			a.Log.Error("a comparison could not be made", "error", err)
			report = &compare.Report{Old: o.Old, New: o.New, Began: job.began, Notes: []string{err.Error()}}
		} else if err != nil {
			job.stopped = true
			report.Notes = append(report.Notes, "the comparison was stopped before its end")
		}
		report.Note(notes...)
		job.report = report
	}()
	return job.body(), nil
}

// maxComparison is how long a comparison takes at most.
const maxComparison = time.Hour

// options reads what is compared. cfg may be nil where addresses and list are given.
func (in *compareInput) options(cfg *config.Config) (compare.Options, []string, error) {
	o := compare.Options{Unsafe: in.Unsafe, Rate: comparedRate, Timeout: time.Duration(in.Timeout) * time.Second, Dial: safedial.Control}
	if in.Rate > 0 {
		o.Rate = float64(in.Rate)
	}
	var err error
	if o.Old, err = sideOf(in.Old, "/old"); err != nil {
		return o, nil, err
	}
	if len(in.New) > 0 {
		o.New, err = sideOf(in.New, "/new")
	} else if o.New = compare.SideOfPorts(cfg); o.New == (compare.Side{}) {
		err = refuse("invalid", "/new", "the configuration has no http or https port", "name the addresses of headgate")
	}
	if err != nil {
		return o, nil, err
	}
	for _, domain := range in.Domains {
		if err := compare.CheckDomain(domain); err != nil {
			return o, nil, refuse("invalid", "/domains", err.Error(), "write one like example.com")
		}
	}
	choice := compare.Choice{Config: cfg, Host: in.Host, Domains: in.Domains, Limit: comparedLimit}
	if in.Limit > 0 {
		choice.Limit = in.Limit
	}
	if in.List != "" {
		choice.List = strings.NewReader(in.List)
	}
	requests, notes, err := choice.Requests()
	if err != nil {
		return o, nil, refuse("invalid", "/list", err.Error(), "give a list of URLs, or routes with hosts")
	}
	o.Requests = requests
	return o, notes, nil
}

// sideOf reads the addresses of a side. Names are checked when they are dialled.
func sideOf(addresses []string, at string) (compare.Side, error) {
	side, err := compare.ParseSide(addresses)
	if err != nil {
		return side, refuse("invalid", at, err.Error(), "")
	}
	if side == (compare.Side{}) {
		return side, refuse("invalid", at, "there is no address", "write one like 127.0.0.1:80")
	}
	for _, address := range []string{side.HTTP, side.HTTPS} {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			if err := safedial.Check(ip); errors.Is(err, safedial.ErrRefused) {
				return side, refuse("invalid", at, err.Error(), "name the address at which the proxy serves")
			}
		}
	}
	return side, nil
}

// comparison serves the state of the last comparison.
func (a *API) comparison(*call) (any, error) {
	a.comparisons.mu.Lock()
	defer a.comparisons.mu.Unlock()
	if a.comparisons.last == nil {
		return nil, noComparison()
	}
	return a.comparisons.last.body(), nil
}

func noComparison() error {
	return refuse(operator.CodeNotFound, "", "nothing was compared since headgate has started", "POST begins a comparison")
}

// stopComparison stops the comparison that runs.
func (a *API) stopComparison(c *call) (any, error) {
	a.comparisons.mu.Lock()
	last := a.comparisons.last
	a.comparisons.mu.Unlock()
	if last == nil {
		return nil, noComparison()
	}
	if c.dryRun {
		return nil, nil
	}
	last.stop()
	select {
	case <-last.over:
		c.note("compare.stop", "", "")
		return nil, nil
	case <-c.rq.Context().Done():
		return nil, c.rq.Context().Err()
	}
}
