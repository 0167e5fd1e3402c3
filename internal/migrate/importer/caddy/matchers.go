package caddy

import (
	"regexp"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/plan/matchers"
)

// chosen is what a named matcher asks for: one of the paths, and all of the rest.
type chosen struct {
	paths []string
	rest  matchers.Config
}

// chosenBy returns what a named matcher asks for, or why it cannot be taken over.
func chosenBy(m *directive) (c chosen, problem string) {
	if m == nil {
		return c, "there is no such matcher"
	}
	list := m.block
	if !m.open {
		list = []*directive{{Origin: m.Origin, words: m.args()}}
	}
	for _, d := range list {
		if len(d.words) == 0 || !c.take(d) {
			return c, "a route cannot be chosen by " + d.Text()
		}
	}
	return c, ""
}

// take adds one condition, and reports whether a route can have it.
func (c *chosen) take(d *directive) bool {
	switch d.name() {
	case "path":
		if len(c.paths) > 0 {
			return false
		}
		c.paths = d.args()
		return len(c.paths) > 0
	case "method":
		if len(c.rest.Methods) > 0 || len(d.args()) == 0 {
			return false
		}
		for _, name := range d.args() {
			c.rest.Methods = append(c.rest.Methods, strings.ToUpper(name))
		}
		return true
	case "header":
		return c.header(d)
	case "header_regexp":
		words := d.args()
		if len(words) == 3 { // with a name for its groups
			words = words[1:]
		}
		if len(words) != 2 {
			return false
		}
		return importer.AddMatcher(&c.rest.Headers, matchers.Condition{Name: words[0], Regex: words[1]})
	case "query":
		for _, pair := range d.args() {
			name, value, ok := strings.Cut(pair, "=")
			if value == "*" {
				value = ""
			} else if value == "" {
				return false
			}
			if !ok || strings.Contains(value, "{") || !importer.AddMatcher(&c.rest.Query, matchers.Condition{Name: name, Value: value}) {
				return false
			}
		}
		return len(d.args()) > 0
	}
	return false
}

// header takes header NAME [VALUE], whose value may begin or end with a star.
func (c *chosen) header(d *directive) bool {
	name, value := d.arg(0), d.arg(1)
	text, expression, ok := wildcards(value)
	if len(d.args()) > 2 || strings.HasPrefix(name, "!") || !ok {
		return false
	}
	one := matchers.Condition{Name: name, Value: text, Regex: expression}
	return importer.AddMatcher(&c.rest.Headers, one)
}

// routed is matched for what becomes a route of its own: methods, headers and parameters
// of the matcher are told to each, which gives them to add.
func (t *translator) routed(s *site, d *directive, base string, each func(path string, words []string, m *matchers.Config)) {
	none := &matchers.Config{}
	if first := d.arg(0); strings.HasPrefix(first, "@") {
		if c, problem := chosenBy(s.matchers[first]); problem == "" && c.rest.Count() > 0 {
			paths := c.paths
			if len(paths) == 0 {
				paths = []string{base}
			}
			t.patterns(d, base, paths, d.args()[1:], func(path string, _ bool, words []string) { each(path, words, &c.rest) })
			return
		}
	}
	t.matched(s, d, base, func(path string, _ bool, words []string) { each(path, words, none) })
}

// wildcards returns what Caddy compares a header with, which may have a * at its ends, as
// a value or an expression; neither is any value. It is not ok if headgate cannot say it.
func wildcards(text string) (value, expression string, ok bool) {
	head, tail := strings.HasPrefix(text, "*"), strings.HasSuffix(text, "*")
	plain := strings.Trim(text, "*")
	inner := regexp.QuoteMeta(plain)
	switch {
	case strings.Contains(plain, "*") || strings.Contains(text, "{"):
		return "", "", false
	case text == "" || text == "*":
		return "", "", true
	case head && tail:
		return "", inner, true
	case head:
		return "", inner + "$", true
	case tail:
		return "", "^" + inner, true
	}
	return text, "", true
}
