package control

import (
	"errors"
	"maps"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/schema"
)

// blameRounds is how often single objects are left out before everything new is, and then
// everything that was discovered.
const blameRounds = 4

// leaveOut finds the discovered objects that a change failed by, and leaves them out. It
// reports false if the change fails without them, too. Work is bounded: each round leaves
// out all that it finds, and there are few.
func (ch *change) leaveOut(err error, round int) bool {
	if ch.merged == nil || ch.merged.Config == ch.declared || round > blameRounds+1 {
		return false
	}
	var r *Refused
	if !errors.As(err, &r) {
		return false
	}
	found := ch.blameFor(r, round)
	if len(found) == 0 {
		return false
	}
	all := maps.Clone(ch.blamed)
	if all == nil {
		all = map[*config.Discovered]discovery.Blame{}
	}
	maps.Copy(all, found)
	ch.blamed = all
	return true
}

// blameFor returns the objects that a change failed by.
func (ch *change) blameFor(r *Refused, round int) map[*config.Discovered]discovery.Blame {
	var open *ports.OpenError
	if errors.As(r, &open) {
		return ch.blameForAddress(open)
	}
	blamed, rest := ch.merged.Blame(r.Problems)
	if len(blamed) > 0 && round < blameRounds {
		return blamed
	}
	if len(r.Problems) == 0 || ch.failsAlone() {
		return nil // it is not by what was discovered
	}
	why := discovery.Blame{Code: discovery.Invalid, Message: "the configuration cannot be built with it"}
	if p := append(rest, r.Problems...)[0]; p.What != "" {
		why.Message += ": " + p.Field + ": " + p.What
		why.Hint = p.Remedy
	}
	before := ch.control.mu.merged
	if round > blameRounds {
		before = nil
	}
	suspects := ch.merged.Discovered(before)
	if len(suspects) == 0 {
		suspects = ch.merged.Discovered(nil)
	}
	for _, d := range suspects {
		blamed[d] = why
	}
	return blamed
}

// blameForAddress returns the TCP or UDP proxy that wants an address which cannot be had.
func (ch *change) blameForAddress(open *ports.OpenError) map[*config.Discovered]discovery.Blame {
	kind := map[config.Protocol]string{config.TCP: "tcp_proxies", config.UDP: "udp_proxies"}[open.Protocol]
	f := ch.merged.Config.Found(kind, open.Name)
	if f == nil {
		return nil
	}
	label := f.LabelOf(schema.JoinPath(kind, open.Name) + ".address")
	return map[*config.Discovered]discovery.Blame{f.Discovered: {Code: discovery.AddressInUse, Label: label, Message: open.Err.Error(), Hint: open.Remedy}}
}

// failsAlone reports whether the documents cannot be compiled without what was discovered
// either, so that it is they that are wrong.
func (ch *change) failsAlone() bool {
	alone, problems := plan.Compile(ch.declared.Withholding(ch.withheld), ch.next.Previous, ch.planEnvironment(), ch.declared.Report())
	if len(problems) > 0 {
		return true
	}
	alone.Retire(ch.next.Previous)
	return false
}
