package acme

import (
	"fmt"
	"slices"
	"time"
)

// State is the state of an ACME certificate.
type State string

// The states. Idle is before the first check, and for a certificate that is no longer
// configured; the others are those of an order, or of the checks before it.
const (
	Idle       State = "idle"
	Preflight  State = "preflight"
	Blocked    State = "blocked"
	Pending    State = "pending"
	Ready      State = "ready"
	Processing State = "processing"
	Valid      State = "valid"
	Failed     State = "failed"
)

// Record is the stored state of an ACME certificate. It persists across restarts, and
// another machine can continue from it.
type Record struct {
	// Name is the name of the certificate in the store.
	Name string `json:"name"`
	// Names are the requested hosts, the wildcard first.
	Names []string `json:"names"`
	// Has are the hosts of the certificate in use.
	Has []string `json:"has,omitempty"`
	// Entry is the entry that it is ordered under.
	Entry string `json:"entry"`
	// State is the current state.
	State State `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since"`
	// Trouble is the reason for the states blocked and failed.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Warnings are the potential problems that the last preflight check found.
	Warnings []string `json:"warnings,omitempty"`
	// NextTry is when the next order or renewal is attempted.
	NextTry time.Time `json:"next_try,omitzero"`
	// Failures counts consecutive failures.
	Failures int `json:"failures,omitempty"`
	// NotBefore is the start of the validity of the certificate in use; zero without one.
	NotBefore time.Time `json:"not_before,omitzero"`
	// NotAfter is the end of its validity.
	NotAfter time.Time `json:"not_after,omitzero"`
	// Directory is the directory that issued it.
	Directory string `json:"directory,omitempty"`
	// Profile is its profile.
	Profile string `json:"profile,omitempty"`
	// Renewal is when the authority suggests to renew.
	Renewal *Renewal `json:"renewal,omitempty"`
	// Demand is for a certificate that was ordered when a client connected, nil for others.
	Demand *Demanded `json:"on_demand,omitempty"`
	// Timeline are the last orders, the newest last, at most maxOrders.
	Timeline []*Attempt `json:"timeline,omitempty"`

	// Open is the order in progress.
	Open *openOrder `json:"open,omitempty"`
	// Server is the index of the entry's directory that is in use, 0 for the first.
	Server int `json:"server,omitempty"`
	// ServerFailures is the number of consecutive failures of that directory.
	ServerFailures int `json:"server_failures,omitempty"`
	// Rehearse means that a staging directory is used first, because the last validation of
	// a host failed.
	Rehearse bool `json:"rehearse,omitempty"`
	// Tried is the hash of the settings that the last order failed with: after a change of
	// settings, the next order does not wait.
	Tried string `json:"tried,omitempty"`
	// NoReplaces means that the next order does not name the certificate that it replaces,
	// since the authority has rejected that, or failed.
	NoReplaces bool `json:"no_replaces,omitempty"`
}

// Renewal is when an authority suggests to renew (RFC 9773).
type Renewal struct {
	// Start is the start of the suggested window.
	Start time.Time `json:"start"`
	// End is the end of the suggested window.
	End time.Time `json:"end"`
	// At is the chosen moment in the window.
	At time.Time `json:"at"`
	// Explanation is the URL of a page of the authority, or "".
	Explanation string `json:"explanation,omitempty"`
	// AskAgain is when the authority wants to be queried again.
	AskAgain time.Time `json:"ask_again"`
}

// openOrder is an order that has not ended. Its key is kept from before the first
// request, so that the order can be finished after a crash.
type openOrder struct {
	URL       string               `json:"url,omitempty"`
	Directory string               `json:"directory"`
	Account   string               `json:"account"`
	Key       []byte               `json:"key"` // PKCS 8, DER; the store seals it
	Chosen    map[string]Challenge `json:"chosen"`
	Staging   bool                 `json:"staging,omitempty"`
	Began     time.Time            `json:"began"`
}

// Attempt is one order from its beginning to its end.
type Attempt struct {
	// Directory is the directory URL.
	Directory string `json:"directory"`
	// Staging is whether the order was a trial.
	Staging bool `json:"staging,omitempty"`
	// Began is when the order began.
	Began time.Time `json:"began"`
	// Ended is when it ended; zero while it is in progress.
	Ended time.Time `json:"ended,omitzero"`
	// Issued is whether the order succeeded.
	Issued bool `json:"issued,omitempty"`
	// Trouble is why it failed.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Steps are what happened, in order, at most maxSteps. Orders that succeeded keep them
	// only for a while.
	Steps []Step `json:"steps,omitempty"`
}

// Step is one event of an order.
type Step struct {
	At    time.Time `json:"at"`
	State State     `json:"state"`
	Text  string    `json:"text"`
}

// The bounds of a timeline.
const (
	maxOrders   = 20
	maxSteps    = 100
	maxDetailed = 4 // older orders that ended well are kept without their steps
)

// startAttempt adds an order to the timeline.
func (r *Record) startAttempt(directory string, staging bool, at time.Time) *Attempt {
	a := &Attempt{Directory: directory, Staging: staging, Began: at}
	r.Timeline = append(r.Timeline, a)
	if n := len(r.Timeline) - maxOrders; n > 0 {
		r.Timeline = slices.Clone(r.Timeline[n:])
	}
	for i, old := range r.Timeline[:max(len(r.Timeline)-maxDetailed, 0)] {
		if old.Issued && old.Steps != nil { // replaced, because readers may be using it
			short := *old
			short.Steps = nil
			r.Timeline[i] = &short
		}
	}
	return a
}

// last returns the newest order, nil if there was none.
func (r *Record) last() *Attempt {
	if n := len(r.Timeline); n > 0 {
		return r.Timeline[n-1]
	}
	return nil
}

// giveUp ends the order that is under way, if one is.
func (r *Record) giveUp(at time.Time, t *Trouble) {
	if a := r.last(); a != nil && a.Ended.IsZero() {
		a.Ended, a.Trouble = at, t
	}
	r.Open = nil
}

// Title is what people call the certificate: the first of its names. Name is as good for
// all but wildcards and addresses.
func (r *Record) Title() string {
	if len(r.Names) == 0 {
		return r.Name
	}
	return r.Names[0]
}

// step notes what happens to the order that is under way.
func (r *Record) step(at time.Time, state State, format string, args ...any) {
	if r.State != state {
		r.State, r.Since = state, at
	}
	if a := r.last(); a != nil && a.Ended.IsZero() && len(a.Steps) < maxSteps {
		a.Steps = append(a.Steps, Step{At: at, State: state, Text: cut(fmt.Sprintf(format, args...))})
	}
}

// count returns how many orders at a directory failed within the last hour, and how
// many certificates it issued within the last week.
func (r *Record) count(directory string, now time.Time) (failed, issued int) {
	for _, a := range r.Timeline {
		switch {
		case a.Directory != directory || a.Staging || a.Ended.IsZero():
		case a.Ended.Sub(now) > clockSlack: // the clock was ahead then
		case a.Issued && now.Sub(a.Ended) < 7*24*time.Hour:
			issued++
		case !a.Issued && a.Trouble != nil && a.Trouble.Problem != nil && now.Sub(a.Ended) < time.Hour:
			failed++
		}
	}
	return failed, issued
}

// clockSlack is by how much a clock that is right may have been set back.
const clockSlack = time.Hour

// public returns a copy for readers, without the order in progress, which contains its key.
// Immutable parts are shared, so that the copy is cheap.
func (r *Record) public() *Record {
	out := *r
	out.Open, out.Tried = nil, ""
	out.Timeline = slices.Clone(r.Timeline)
	if n := len(out.Timeline); n > 0 {
		last := *out.Timeline[n-1]
		last.Steps = slices.Clip(last.Steps) // what follows is the record's
		out.Timeline[n-1] = &last
	}
	if r.Renewal != nil {
		renewal := *r.Renewal
		out.Renewal = &renewal
	}
	return &out
}

// Refused reports whether the certificate is on demand and its host is no longer allowed: it
// is served until it expires.
func (r *Record) Refused() bool { return r.Demand != nil && !r.Demand.Refused.IsZero() }

// Brief returns the record without the timeline of its orders.
func (r *Record) Brief() *Record {
	out := *r
	out.Timeline = nil
	return &out
}
