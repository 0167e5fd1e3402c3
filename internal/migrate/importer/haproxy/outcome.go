package haproxy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// outcome is what becomes of the requests of a region: what is done to them, and what
// answers.
type outcome struct {
	features importer.Object
	requests []importer.Object // header rules
	answers  []importer.Object // header rules for responses of servers
	always   []importer.Object // header rules for every response

	allow, deny []string // networks; without limited, allow is empty and lets all in
	limited     bool
	fixed       importer.Object
	backend     *backend
	by          *directive // the line that answers
	host        string     // host_header, "" if not set
	acted       []*rule
	conflicts   []conflict
	passed      bool  // http-request allow: no further rule of this section is evaluated
	over        bool  // it is answered
	now         *rule // that acts
}

// rule is one line with when it acts and what it does.
type rule struct {
	d    *directive
	when condition
	act  func(o *outcome)
	// refuse is for lines that deny clients: it may depend on the client.
	refuse func(o *outcome, who []literal)
	late   bool                                       // it acts behind http-request allow, too
	became func(route importer.Object) importer.Field // what the line is in a route on which it acts; nil is its servers
}

// settled is a rule whose conditions on the place are evaluated: the remaining ones
// are about the path and the matchers, or about the client.
type settled struct {
	*rule
	any [][]literal
}

// place is where requests come in: a port and a host.
type place struct {
	port *port
	host string // one name, an expression with ~, or "" for those that have no other
	expr *atom  // of an expression
}

// at evaluates the conditions on the place.
func (r *rule) at(p place) (settled, bool) {
	out := settled{rule: r}
	for _, list := range r.when.Any {
		var left []literal
		possible := true
		for _, l := range list {
			switch l.Kind {
			case rules.Host:
				possible = possible && p.has(l.Atom) != l.Not
			case rules.TLS:
				possible = possible && p.port.secure != l.Not
			case rules.Port:
				possible = possible && (p.port.number == l.Value) != l.Not
			default:
				left = append(left, l)
			}
		}
		if possible {
			out.any = append(out.any, left)
		}
	}
	return out, len(out.any) > 0
}

// has reports whether the requests of the place have the host of an atom.
func (p place) has(a *atom) bool {
	switch {
	case p.host == "":
		return false
	case p.expr != nil && a.Pattern != nil:
		return a == p.expr || a.Value == p.expr.Value || covers(a.Value, p.expr.Value)
	case p.expr != nil:
		return false
	case a.Pattern != nil:
		return a.Pattern.MatchString(p.host)
	}
	return a.Value == p.host
}

// covers reports whether an expression ^.*SUFFIX$ has all hosts of another.
func covers(wide, narrow string) bool {
	w, okW := strings.CutPrefix(wide, "~^.*")
	n, okN := strings.CutPrefix(narrow, "~^.*")
	return okW && okN && !strings.ContainsAny(strings.ReplaceAll(w, `\.`, ""), `*+?()[]|\`) && strings.HasSuffix(n, w)
}

// apply lets a rule act on a region, when its condition holds there.
func (r settled) apply(o *outcome, at region) {
	for _, list := range r.any {
		var who []literal
		holds := true
		for _, l := range list {
			if l.Kind == rules.Client || l.Kind == rules.Rate || l.Kind == rules.Login {
				who = append(who, l)
				continue
			}
			holds = holds && at.Within(l.Atom) != l.Not
		}
		switch {
		case !holds:
		case r.refuse != nil:
			o.act(r.rule, func(o *outcome) { r.refuse(o, who) })
		case len(who) == 0:
			o.act(r.rule, r.act)
		}
		if o.over || o.backend != nil {
			o.by = cmp.Or(o.by, r.d)
		}
		if o.over || holds && r.refuse == nil {
			return
		}
	}
}

// act lets a rule do what it does.
func (o *outcome) act(r *rule, do func(o *outcome)) {
	o.now = r
	do(o)
	o.acted = append(o.acted, r)
}

// conflict is a line whose feature another line has given a route before.
type conflict struct {
	d     *directive
	field string
}

// feature sets a feature of the route. A route has one of each: of two lines with
// different ones the first stays.
func (o *outcome) feature(name string, value importer.Object) {
	if before := o.features.Object(name); before.Len() > 0 && before.Key() != value.Key() {
		o.conflicts = append(o.conflicts, conflict{o.now.d, name})
		return
	}
	o.features.Set(name, value)
}

// run evaluates rules in order.
func run(rules []settled, o *outcome, at region) {
	o.passed = false
	for _, r := range rules {
		if o.over {
			return
		}
		if !o.passed || r.late {
			r.apply(o, at)
		}
	}
}

// set writes the outcome into a route.
func (o *outcome) set(route importer.Object) {
	switch {
	case o.limited && len(o.allow) == 0:
		route.Set("ip_filter", noClient())
	case len(o.allow)+len(o.deny) > 0:
		route.Set("ip_filter", ipFilter(o.allow, o.deny))
	}
	route.Merge(o.features)
	rules := slices.Concat(o.requests, o.always)
	if o.fixed.Len() > 0 {
		rules = o.always
		route.Set("fixed_response", o.fixed.Flow())
	} else if o.backend != nil {
		if route.Merge(o.backend.o); !route.Has("servers") {
			rules = o.always
		} else {
			rules = slices.Concat(o.requests, o.answers, o.always)
		}
		if route.Has("path") && route.Has("servers") {
			route.Set("strip_prefix", false)
		}
	}
	if len(rules) > 0 {
		route.Set("headers", rules)
	}
}

// ipFilter is the filter of two lists of networks, of which deny wins: with a list of
// those that are let in, all others are refused.
func ipFilter(allow, deny []string) importer.Object {
	f := importer.NewObject().Flow()
	if len(allow) == 0 {
		return f.Set("deny", deny)
	}
	left := importer.Without(importer.Prefixes(allow), importer.Prefixes(deny))
	if len(left) == 0 {
		return noClient()
	}
	if len(deny) == 0 {
		return f.Set("allow", allow)
	}
	return f.Set("allow", importer.Networks(left))
}

// noClient is the filter that rejects every client.
func noClient() importer.Object {
	return importer.NewObject().Set("deny", importer.Networks(importer.AllAddresses())).Flow()
}

// refuse keeps out the clients of networks.
func (o *outcome) refuse(networks []netip.Prefix) {
	before := make(map[string]bool, len(o.deny))
	for _, n := range o.deny {
		before[n] = true
	}
	for _, n := range importer.Networks(networks) {
		if !before[n] {
			o.deny = append(o.deny, n)
		}
	}
}

// allowOnly keeps out all clients but those of some networks. A client has to pass every
// such line: what several lines let in is what their networks have in common.
func (o *outcome) allowOnly(who []literal) {
	var networks []string
	for _, l := range who {
		networks = append(networks, importer.Networks(networksOf(l))...)
	}
	slices.Sort(networks)
	networks = slices.Compact(networks)
	if o.limited {
		networks = importer.Common(o.allow, networks)
	}
	o.allow, o.limited = networks, true
}

// hoisted are the features that are set on the proxy when all of its routes have the
// same.
var hoisted = []string{"ip_filter", "rate_limit", "redirects", "basic_auth", "headers", "compression", "error_pages", "request_timeout"}
