package importer

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/matchers"
)

// Matchers returns the matchers of a route as its field of the document, the zero Object
// if there are none.
func Matchers(m *matchers.Config) Object {
	if m.Count() == 0 {
		return Object{}
	}
	o := NewObject()
	if len(m.Methods) > 0 {
		o.Set("methods", m.Methods)
	}
	for _, list := range []struct {
		name string
		all  []matchers.Condition
	}{{"headers", m.Headers}, {"query", m.Query}} {
		for _, c := range list.all {
			one := NewObject().Set("name", c.Name)
			if c.Value != "" {
				one.Set("value", c.Value)
			} else if c.Regex != "" {
				one.Set("regex", c.Regex)
			}
			o.Append(list.name, one.Flow())
		}
	}
	return o
}

// AddMatcher adds a condition to the headers or the query parameters of a route. It
// reports whether the route can have it: its expression is one of RE2, and no other
// condition has its name.
func AddMatcher(list *[]matchers.Condition, c matchers.Condition) bool {
	if _, err := regexp.Compile(c.Regex); err != nil || c.Name == "" {
		return false
	}
	if slices.ContainsFunc(*list, func(o matchers.Condition) bool { return strings.EqualFold(o.Name, c.Name) }) {
		return false
	}
	*list = append(*list, c)
	return true
}
