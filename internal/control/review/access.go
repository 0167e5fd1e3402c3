package review

import (
	"maps"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/feature/basicauth"
	"headgate/internal/feature/forwardauth"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/feature/ratelimit"
	"headgate/internal/matchers"
)

// access is who may use a route.
type access struct {
	basic   *basicauth.Config
	forward *forwardauth.Config
	filter  *ipfilter.Config
	rate    *ratelimit.Config
	gate    *config.Gate
}

// accessOf returns who may use a route of a proxy: its own features, else the
// proxy's, which has those of policies and defaults already. nil is off.
func accessOf(p *config.Proxy, r *config.Route) access {
	a := access{r.BasicAuth, r.ForwardAuth, r.IPFilter, r.RateLimit, r.Gate}
	if a.gate == nil {
		a.gate = p.Gate
	}
	if a.gate != nil && (a.gate.Off() || r.SignIn != nil) {
		a.gate = nil
	}
	if a.basic == nil {
		a.basic = p.BasicAuth
	}
	if a.forward == nil {
		a.forward = p.ForwardAuth
	}
	if a.filter == nil {
		a.filter = p.IPFilter
	}
	if a.rate == nil {
		a.rate = p.RateLimit
	}
	if a.basic != nil && a.basic.Off() {
		a.basic = nil
	}
	if a.forward != nil && a.forward.Off() {
		a.forward = nil
	}
	if !a.filter.Enforces() {
		a.filter = nil
	}
	if a.rate != nil && a.rate.Off() {
		a.rate = nil
	}
	return a
}

// finding is what is otherwise about who may use a route.
type finding struct {
	severity   Severity
	code, text string
}

// compareAccess describes a change of who can use a route.
func compareAccess(before, after access) []finding {
	var out []finding
	add := func(s Severity, code, text string) { out = append(out, finding{s, code, text}) }
	switch signedIn, signsIn := before.basic != nil || before.forward != nil, after.basic != nil || after.forward != nil; {
	case before.basic != nil && !signsIn:
		add(Danger, "access_opened", "needs no password any more")
	case signedIn && !signsIn:
		add(Danger, "access_opened", "asks no auth server any more")
	case before.basic != nil && after.basic == nil:
		add(Info, "access_changed", "asks the auth server instead of for a password")
	case before.forward != nil && after.forward == nil:
		add(Warning, "access_changed", "asks for a password instead of the auth server")
	case before.basic == nil && after.basic != nil:
		add(Info, "password_needed", "needs a password from now on")
	case before.forward == nil && after.forward != nil:
		add(Info, "access_closed", "asks the auth server from now on")
	}
	if before.forward != nil && after.forward != nil && before.forward != after.forward {
		if skipped := missing(after.forward.SkipPaths, before.forward.SkipPaths); len(skipped) > 0 {
			add(Danger, "access_opened", "no longer asks the auth server below "+listed(shortened(skipped)))
		}
		if after.forward.TrustForwardHeader && !before.forward.TrustForwardHeader {
			add(Warning, "access_loosened", "lets clients say to the auth server where they come from")
		}
	}
	return compareLimits(compareGates(out, before.gate, after.gate), before, after)
}

// compareGates adds what is otherwise about people who have to sign in.
func compareGates(out []finding, before, after *config.Gate) []finding {
	add := func(s Severity, code, text string) { out = append(out, finding{s, code, text}) }
	switch {
	case before == after:
	case before == nil:
		add(Info, "access_closed", "lets in only "+listed(shortened(after.Allow))+" after they have signed in")
		if len(after.From) > 0 {
			add(Warning, "gate_bypassed", "lets clients of "+listed(shortened(after.From))+" in without a sign-in")
		}
		if len(after.Bypass) > 0 {
			add(Warning, "gate_bypassed", "needs no sign-in for "+listed(shortened(after.Bypasses())))
		}
	case after == nil:
		add(Danger, "access_opened", "lets people in who have not signed in")
	default:
		if more := missing(after.Allow, before.Allow); len(more) > 0 {
			add(Warning, "access_loosened", "lets in "+listed(shortened(more)))
		}
		if gone := missing(before.Allow, after.Allow); len(gone) > 0 {
			add(Info, "access_closed", "no longer lets in "+listed(shortened(gone)))
		}
		if more := missing(after.From, before.From); len(more) > 0 {
			add(Danger, "access_opened", "lets clients of "+listed(shortened(more))+" in without a sign-in")
		}
		if more := missing(after.Bypasses(), before.Bypasses()); len(more) > 0 {
			add(Danger, "access_opened", "needs no sign-in any more for "+listed(shortened(more)))
		}
		if after.SharedCache && !before.SharedCache {
			add(Danger, "access_opened", "lets caches share what only people who have signed in may read")
		}
		if after.Framed() && !before.Framed() {
			add(Warning, "access_loosened", "can be shown in frames of other sites, with the session of the person")
		}
	}
	return out
}

// compareLimits adds what is otherwise about addresses and rates.
func compareLimits(out []finding, before, after access) []finding {
	add := func(s Severity, code, text string) { out = append(out, finding{s, code, text}) }
	switch {
	case before.filter == after.filter || before.filter == nil:
	case after.filter == nil:
		add(Danger, "access_opened", "lets in clients of every address")
	case len(before.filter.Allow) > 0 && len(after.filter.Allow) == 0:
		add(Danger, "access_opened", "lets in clients of every address that it does not deny")
	default:
		if more := missing(after.filter.Allow, before.filter.Allow); len(before.filter.Allow) > 0 && len(more) > 0 {
			add(Warning, "access_loosened", "lets in clients of "+listed(more))
		}
		if gone := missing(before.filter.Deny, after.filter.Deny); len(gone) > 0 {
			add(Warning, "access_loosened", "no longer denies clients of "+listed(gone))
		}
	}
	switch {
	case before.rate == after.rate || before.rate == nil:
	case after.rate == nil:
		add(Warning, "limit_removed", "no longer limits how many requests a client makes")
	case before.rate.Mode != ratelimit.Observe && after.rate.Mode == ratelimit.Observe:
		add(Warning, "limit_removed", "only observes its rate limit, and rejects no requests")
	default:
		if int64(after.rate.Requests)*int64(before.rate.Period) > int64(before.rate.Requests)*int64(after.rate.Period) {
			add(Warning, "limit_loosened", "lets each client make more requests")
		}
		if more := missing(after.rate.Exempt, before.rate.Exempt); len(more) > 0 {
			add(Warning, "limit_loosened", "no longer limits clients of "+listed(more))
		}
	}
	return out
}

// judgeAccess compares who may use the routes of the proxies that act otherwise.
func (r *reviewer) judgeAccess() {
	r.needs, r.frees = map[string]bool{}, map[string]bool{}
	for _, name := range sortedKeys(r.touched) {
		before, after := r.Before.Proxies[name], r.After.Proxies[name]
		if before == nil || after == nil || !before.Active || !after.Active {
			if after != nil && after.Active {
				r.countNeeds(nil, after)
			}
			continue
		}
		r.countNeeds(before, after)
		r.tellAccess(name, before, after)
	}
	r.judgeStreams()
}

// tellAccess compares two forms of a proxy: each path with the route that took its
// requests before, and takes them now.
func (r *reviewer) tellAccess(name string, before, after *config.Proxy) {
	type affected struct {
		finding
		paths []string
	}
	var all []affected
	paths := map[string]*config.Route{}
	for _, p := range []*config.Proxy{before, after} {
		for _, route := range p.Routes {
			paths[labelOf(route)] = route
		}
	}
	compared := 0
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		asked := paths[path]
		was, is := longest(before, asked.Prefix(), asked.Matchers), longest(after, asked.Prefix(), asked.Matchers)
		if was == nil || is == nil {
			continue
		}
		compared++
		for _, f := range compareAccess(accessOf(before, was), accessOf(after, is)) {
			i := slices.IndexFunc(all, func(t affected) bool { return t.finding == f })
			if i < 0 {
				i = len(all)
				all = append(all, affected{finding: f})
			}
			all[i].paths = append(all[i].paths, path)
		}
	}
	for _, t := range all {
		text := " " + t.text
		if len(t.paths) < compared {
			text = ": route " + listed(shortened(t.paths)) + " " + t.text
			if len(t.paths) > 1 {
				text = ": routes " + listed(shortened(t.paths)) + ": each " + t.text
			}
		}
		r.addSentence(Address{"proxies", name}, Sentence{Severity: t.severity, Code: t.code, Text: text})
	}
}

// shown is a prefix as people write it.
func shown(prefix string) string {
	if prefix == "" {
		return "/"
	}
	return prefix
}

// labelOf distinguishes the route from others of its proxy.
func labelOf(r *config.Route) string { return matchers.Label(shown(r.Prefix()), r.Matchers) }

// longest returns the route of a proxy that takes the requests for a path which match some
// matchers and no others, nil if none does.
func longest(p *config.Proxy, path string, match *matchers.Config) (best *config.Route) {
	want := matchers.Label("", match)
	for _, route := range p.Routes {
		prefix := route.Prefix()
		if !below(path, prefix) || route.Matchers != nil && matchers.Label("", route.Matchers) != want {
			continue
		}
		if best == nil || len(prefix) > len(best.Prefix()) || len(prefix) == len(best.Prefix()) && route.Matchers.Count() > best.Matchers.Count() {
			best = route
		}
	}
	return best
}

// below reports whether a path begins with the segments of a prefix.
func below(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

// countNeeds counts the hosts that ask for a password now, or no longer.
func (r *reviewer) countNeeds(before, after *config.Proxy) {
	asks := func(p *config.Proxy) bool {
		return p != nil && slices.ContainsFunc(p.Routes, func(route *config.Route) bool { return accessOf(p, route).basic != nil })
	}
	was, is := asks(before), asks(after)
	for _, h := range after.VirtualHosts {
		switch {
		case is && !was:
			r.needs[h] = true
		case was && !is:
			r.frees[h] = true
		}
	}
}

// judgeStreams compares the IP filters of TCP and UDP proxies.
func (r *reviewer) judgeStreams() {
	tell := func(at Address, before, after *ipfilter.Config) {
		on := func(c *ipfilter.Config) *ipfilter.Config {
			if !c.Enforces() {
				return nil
			}
			return c
		}
		for _, f := range compareLimits(nil, access{filter: on(before)}, access{filter: on(after)}) {
			r.addSentence(at, Sentence{Severity: f.severity, Code: f.code, Path: "ip_filter", Text: " " + f.text})
		}
	}
	for _, o := range r.Difference.Of("tcp_proxies") {
		if o.Change == diff.Changed {
			tell(Address{o.Kind, o.Name}, r.Before.TCPProxies[o.Name].IPFilter, r.After.TCPProxies[o.Name].IPFilter)
		}
	}
	for _, o := range r.Difference.Of("udp_proxies") {
		if o.Change == diff.Changed {
			tell(Address{o.Kind, o.Name}, r.Before.UDPProxies[o.Name].IPFilter, r.After.UDPProxies[o.Name].IPFilter)
		}
	}
}
