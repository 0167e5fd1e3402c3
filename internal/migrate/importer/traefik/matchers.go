package traefik

import (
	"slices"
	"strings"

	"headgate/internal/matchers"
	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// narrow adds a match to the matchers of a condition. It reports whether that is
// possible.
func (c *condition) narrow(m match) bool {
	value := func(i int) string {
		if i < len(m.args) {
			return m.args[i]
		}
		return ""
	}
	switch m.name {
	case "method":
		var methods []string
		for _, a := range m.args {
			methods = append(methods, strings.ToUpper(a))
		}
		if len(c.matchers.Methods) > 0 { // both have to hold
			methods = slices.DeleteFunc(methods, func(a string) bool { return !slices.Contains(c.matchers.Methods, a) })
			if len(methods) == 0 {
				return false
			}
		}
		c.matchers.Methods = methods
		return len(methods) > 0
	case "header", "headers", "headerregexp", "headersregexp":
		one := matchers.Condition{Name: value(0), Value: value(1)}
		if strings.HasSuffix(m.name, "regexp") {
			one.Value, one.Regex = "", value(1)
		}
		return len(m.args) == 2 && importer.AddMatcher(&c.matchers.Headers, one)
	case "queryregexp":
		return len(m.args) == 2 && importer.AddMatcher(&c.matchers.Query, matchers.Condition{Name: value(0), Regex: value(1)})
	case "query":
		if name, v, old := strings.Cut(value(0), "="); old { // version 2: Query(`name=value`)
			return len(m.args) == 1 && importer.AddMatcher(&c.matchers.Query, matchers.Condition{Name: name, Value: v})
		}
		return (len(m.args) == 1 || len(m.args) == 2) && importer.AddMatcher(&c.matchers.Query, matchers.Condition{Name: value(0), Value: value(1)})
	}
	return false
}

// atoms makes the condition of the path and the matchers, and of what must not be.
func (c *condition) atoms() {
	out := rules.Holds()
	if path := strings.TrimSuffix(c.path, "/"); path != "" {
		out = rules.One(&rules.Atom{Kind: rules.Path, Value: path})
	}
	c.rules = out.And(conditionOfMatchers(&c.matchers))
	for _, not := range c.nots {
		c.rules = c.rules.And(not.Not())
	}
}

func conditionOfMatchers(m *matchers.Config) rules.Condition {
	out := rules.Holds()
	if len(m.Methods) > 0 {
		var any rules.Condition
		for _, name := range m.Methods {
			any = any.Or(rules.One(&rules.Atom{Kind: rules.Method, Value: name}))
		}
		out = out.And(any)
	}
	for _, h := range m.Headers {
		out = out.And(rules.One(&rules.Atom{Kind: rules.Header, Name: h.Name, Value: h.Value, Regex: h.Regex}))
	}
	for _, q := range m.Query {
		out = out.And(rules.One(&rules.Atom{Kind: rules.Query, Name: q.Name, Value: q.Value, Regex: q.Regex}))
	}
	return out
}

// without records what a request must not have, and reports whether that is
// possible.
func (c *condition) without(m match) bool {
	var one condition
	if m.name == "pathprefix" || m.name == "path" {
		inner, problem := conditionOf([]match{{name: m.name, args: m.args}})
		if problem != "" || inner.path == "/" {
			return false
		}
		c.nots = append(c.nots, inner.rules)
		c.loose, c.exact = c.loose || inner.loose, c.exact || inner.exact
		return true
	}
	if !one.narrow(m) {
		return false
	}
	c.nots = append(c.nots, conditionOfMatchers(&one.matchers))
	return true
}
