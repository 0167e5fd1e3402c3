package bans

import (
	"fmt"
	"slices"
	"time"

	"headgate/internal/exchange"
)

// Trial is what a rule would have done about recent requests. What is kept of these is not
// all that a rule looks at: a 401 counts only where the request had credentials, which are
// not kept, and all addresses are taken to be those of connections.
type Trial struct {
	// Rule is the name of the rule.
	Rule string `json:"rule"`
	// Changed is whether the rule is new, or is not in use as it is.
	Changed bool `json:"changed"`
	// Requests is how many requests it was tried on.
	Requests int `json:"requests"`
	// Since is when the oldest of them came.
	Since time.Time `json:"since,omitzero"`
	// Counted is how many met one of its conditions.
	Counted int `json:"counted"`
	// Unknown is how many got a 401 and would count if they had credentials.
	Unknown int `json:"unknown,omitempty"`
	// Refused is how many came from a client while it would have been banned.
	Refused int `json:"refused"`
	// Addresses is how many clients would have been banned.
	Addresses int `json:"addresses"`
	// SignedIn is how many of these have signed in.
	SignedIn int `json:"signed_in"`
	// Would are these clients, the latest first: at most 100.
	Would []Would `json:"would,omitempty"`
}

// Trials tries the rules of a configuration on requests of the past. It counts for itself
// and changes nothing; it is for one goroutine.
type Trials struct {
	rules    *Rules
	counters *counters
	signedIn map[hostKey]struct{}
	each     []*trial
}

// trial is one rule that is tried.
type trial struct {
	*rule
	state state
	out   Trial
}

// Try begins a trial of all rules; nil without any. Before are the rules in use, which may
// be nil. r may be nil.
func (r *Rules) Try(before *Rules) *Trials {
	if r == nil || len(r.rules) == 0 {
		return nil
	}
	t := &Trials{rules: r, counters: newCounters(), signedIn: map[hostKey]struct{}{}}
	for _, one := range r.rules {
		t.each = append(t.each, &trial{rule: one, out: Trial{Rule: one.name, Changed: !before.has(one)}})
	}
	return t
}

// has reports whether there is the same rule. Rules keep their state while they are the
// same, see compile.
func (r *Rules) has(one *rule) bool {
	return r != nil && slices.ContainsFunc(r.rules, func(o *rule) bool { return o.name == one.name && o.state == one.state })
}

// Add tries the rules on a request: its method, path, client, user, reason and status. They
// come in the order of their times.
func (t *Trials) Add(ex *exchange.Exchange, at time.Time) {
	k := keyOf(ex.ClientIP, Peer)
	ex.Locator = t.rules.locator
	if ex.User != "" {
		t.signedIn[k] = struct{}{}
	}
	concerned := t.rules.concerns(ex) && !innocent(ex)
	for _, one := range t.each {
		one.out.Requests++
		if one.out.Since.IsZero() {
			one.out.Since = at
		}
		one.add(t, k, ex, at, concerned)
	}
}

// add tries one rule on a request; concerned is whether it may count.
func (one *trial) add(t *Trials, k hostKey, ex *exchange.Exchange, at time.Time, concerned bool) {
	if w := one.state.mu.would[k]; w != nil && at.Before(w.Until) {
		one.out.Refused++
		return
	}
	if !concerned {
		return
	}
	counted, unknown := false, false
	for _, c := range one.conditions {
		switch {
		case !c.concerns(ex):
		case !c.credentialsMatch(ex):
			unknown = true
		default:
			counted = true
			if why := t.rules.counted(t.counters, one.rule, c, ex, k, at.UnixNano(), at); why != "" {
				one.state.note(k, ex.ClientIP, why, at, one.settings, false)
			}
		}
	}
	switch {
	case counted:
		one.out.Counted++
	case unknown:
		one.out.Unknown++
	}
}

// Results returns what the rules would have done, by name. t may be nil.
func (t *Trials) Results() []Trial {
	if t == nil {
		return nil
	}
	var out []Trial
	for _, one := range t.each {
		all, more := one.state.would(func(k hostKey) bool {
			_, signedIn := t.signedIn[k]
			return signedIn || t.rules.engine.seen.lately(k)
		})
		one.out.Addresses = len(all) + more
		for i := range all {
			if all[i].SignedIn {
				one.out.SignedIn++
			}
		}
		one.out.Would = all[:min(len(all), maxShown)]
		out = append(out, one.out)
	}
	return out
}

// String says it in words.
func (t *Trial) String() string {
	text := fmt.Sprintf("bans.%s: %d of %d recent requests count; %d addresses would have been banned, and %d of their requests refused; %d of them signed in",
		t.Rule, t.Counted, t.Requests, t.Addresses, t.Refused, t.SignedIn)
	if t.Unknown > 0 {
		text += fmt.Sprintf("; %d with status 401 count only where they had credentials, which are not kept", t.Unknown)
	}
	return text
}
