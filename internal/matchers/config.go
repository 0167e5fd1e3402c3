// Package matchers matches requests by method, headers and query parameters, for routes
// whose host and path match. Config is the configuration, Compile makes Matchers of it, and
// Match evaluates a request. Overlap reports whether a request can exist that two routes
// match.
//
// The package does not know routes or their paths: internal/plan uses it after those.
package matchers

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// Config restricts the requests of a route, in addition to its path: all matchers must
// match. If several routes have the same path, the matching one with the most matchers is
// used, counting methods as one and each header and parameter as one. If none matches, the
// next shorter path is tried. Two routes with the same path and the same number of matchers
// are rejected, unless no request can match both, or a route with more matchers takes
// precedence for those that do.
type Config struct {
	// Methods are the methods of the route, in capitals. GET does not include HEAD.
	Methods []string `json:"methods,omitempty" label:"true" max:"32" example:"GET"`
	// Headers are conditions on the request's headers, as the client sent them. The values
	// of a header that was sent more than once are joined by `, `.
	Headers []Condition `json:"headers,omitempty" label:"true" max:"32" object:"header matcher,name"`
	// Query are conditions on the decoded parameters of the query. The first value of a
	// parameter counts.
	Query []Condition `json:"query,omitempty" label:"true" max:"32" object:"query matcher,name"`
}

// Condition is a condition on a header or a query parameter. Without value and regex it
// must be present, with any value.
type Condition struct {
	// Name is the name of a header, which is not case-sensitive, or of a query parameter,
	// which is.
	Name string `json:"name" label:"true" required:"true" max:"256" example:"X-Version"`
	// Value is the exact value.
	Value string `json:"value,omitempty" label:"true" max:"1024" example:"2"`
	// Regex is an RE2 expression that is matched anywhere in the value. Use ^ and $ to
	// match the ends.
	Regex string `json:"regex,omitempty" label:"true" max:"1024" expand:"no" example:"^2[.]"`
}

// Check reports what is wrong with the matchers that are at at.
func (c *Config) Check(at schema.Place) {
	if len(c.Methods)+len(c.Headers)+len(c.Query) == 0 && !at.Reported() {
		at.Problem("matchers is empty", "add methods, headers or query, or remove matchers")
	}
	for i, m := range c.Methods {
		place := at.Field("methods").Index(i)
		switch {
		case !http1.ValidName(m):
			place.Problemf("write one like GET", "%q is not a method", m)
		case strings.ToUpper(m) != m:
			place.Problemf("write "+strings.ToUpper(m), "methods are in capitals, and %q never matches", m)
		case slices.Contains(c.Methods[:i], m):
			place.Problemf("remove one of them", "duplicate entry %s", m)
		}
	}
	check(c.Headers, at.Field("headers"), true)
	check(c.Query, at.Field("query"), false)
}

func check(all []Condition, at schema.Place, headers bool) {
	for i, c := range all {
		place := at.Index(i)
		if place.Field("name").Reported() {
			continue
		}
		if what, remedy := c.checkName(headers); what != "" {
			place.Field("name").Problem(what, remedy)
			continue
		}
		if slices.ContainsFunc(all[:i], func(other Condition) bool { return sameName(other.Name, c.Name, headers) }) {
			place.Field("name").Problemf("write one condition, with a regex if it needs one", "duplicate name %s", c.Name)
		}
		if c.Value != "" && c.Regex != "" {
			place.Field("regex").Problem("regex cannot be combined with value", "keep one of them")
		}
		if _, err := regexp.Compile(c.Regex); err != nil {
			place.Field("regex").Problem("invalid regular expression: "+schema.RegexError(err), "write it in RE2 syntax, without look-around and backreferences")
		}
		if what, remedy := schema.CheckFieldValue(c.Value); what != "" {
			place.Field("value").Problem(what, remedy)
		}
	}
}

// checkName returns a problem of a name. Hop-by-hop headers are removed before a route is
// selected.
func (c *Condition) checkName(headers bool) (what, remedy string) {
	id := header.Lookup(c.Name)
	switch {
	case c.Name == "":
		return "the name is empty", "write the name of a header field or parameter"
	case !headers:
		return schema.CheckFieldValue(c.Name)
	case !http1.ValidName(c.Name):
		return "invalid header name " + c.Name, "write one like X-Version"
	case id == header.Host:
		return "the Host is matched by virtual_hosts", "name the host there"
	case id == header.Upgrade:
		return "", ""
	case id == header.ContentLength, id == header.Expect, id.HopByHop():
		return c.Name + " belongs to one connection and is not matched", "remove it"
	}
	return "", ""
}

func sameName(a, b string, headers bool) bool {
	return a == b || headers && header.EqualFold(a, b)
}

// Count returns how many matchers there are: methods are one. Nil has none.
func (c *Config) Count() int {
	if c == nil {
		return 0
	}
	return min(len(c.Methods), 1) + len(c.Headers) + len(c.Query)
}

// Overlap reports whether a request can match both, as far as their settings determine it.
// Nil matches every request. Two expressions are assumed to overlap.
func Overlap(a, b *Config) bool {
	if a == nil || b == nil {
		return true
	}
	if len(a.Methods) > 0 && len(b.Methods) > 0 && !slices.ContainsFunc(a.Methods, func(m string) bool { return slices.Contains(b.Methods, m) }) {
		return false
	}
	return !apart(a.Headers, b.Headers, true) && !apart(a.Query, b.Query, false)
}

// Covers reports whether c comes before both a and b, which have as many matchers as each
// other, and takes every request that both would take. Then it is clear which of the three
// takes a request.
func Covers(c, a, b *Config) bool {
	if c.Count() <= max(a.Count(), b.Count()) || a == nil || b == nil {
		return false
	}
	for _, m := range common(a.Methods, b.Methods) {
		if len(c.Methods) > 0 && !slices.Contains(c.Methods, m) {
			return false
		}
	}
	if len(c.Methods) > 0 && len(a.Methods)+len(b.Methods) == 0 {
		return false
	}
	return wantedBy(c.Headers, slices.Concat(a.Headers, b.Headers), true) && wantedBy(c.Query, slices.Concat(a.Query, b.Query), false)
}

// common returns the methods that are in both lists, of which an empty one has all.
func common(a, b []string) []string {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(m string) bool { return !slices.Contains(b, m) })
}

// wantedBy reports whether a request that meets all of other meets each of list.
func wantedBy(list, other []Condition, headers bool) bool {
	return !slices.ContainsFunc(list, func(c Condition) bool {
		return !slices.ContainsFunc(other, func(o Condition) bool { return sameName(o.Name, c.Name, headers) && o.implies(&c) })
	})
}

// implies reports whether every value that meets c meets other, as far as that can be
// determined.
func (c *Condition) implies(other *Condition) bool {
	switch {
	case other.Value == "" && other.Regex == "":
		return true
	case c.Value != "" && other.Regex != "":
		expr, err := regexp.Compile(other.Regex)
		return err == nil && expr.MatchString(c.Value)
	}
	return c.Value == other.Value && c.Regex == other.Regex
}

// apart reports whether there is a name that two lists want different values of.
func apart(a, b []Condition, headers bool) bool {
	for _, x := range a {
		for _, y := range b {
			if sameName(x.Name, y.Name, headers) && x.excludes(&y) {
				return true
			}
		}
	}
	return false
}

func (c *Condition) excludes(other *Condition) bool {
	switch {
	case c.Value != "" && other.Value != "":
		return c.Value != other.Value && !(header.Lookup(c.Name) == header.Upgrade && header.EqualFold(c.Value, other.Value))
	case c.Value != "" && other.Regex != "":
		expr, err := regexp.Compile(other.Regex)
		return err == nil && !expr.MatchString(c.Value)
	case c.Regex != "" && other.Value != "":
		return other.excludes(c)
	}
	return false
}
