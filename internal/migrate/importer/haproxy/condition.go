package haproxy

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// The words of rules, which this folder writes often.
type (
	atom      = rules.Atom
	literal   = rules.Literal
	condition = rules.Condition
	region    = rules.Region
)

// predefined are the ACLs that HAProxy has by itself.
var predefined = map[string][]string{
	"TRUE": {"always_true"}, "FALSE": {"always_false"}, "LOCALHOST": {"src", "127.0.0.0/8"}, "METH_CONNECT": {"method", "CONNECT"}, "METH_DELETE": {"method", "DELETE"},
	"METH_GET": {"method", "GET", "HEAD"}, "METH_HEAD": {"method", "HEAD"}, "METH_OPTIONS": {"method", "OPTIONS"}, "METH_POST": {"method", "POST"},
	"METH_PUT": {"method", "PUT"}, "METH_TRACE": {"method", "TRACE"}, "REQ_CONTENT": {"always_true"}, "WAIT_END": {"always_true"}, "HTTP": {"always_true"},
	"HTTP_URL_SLASH": {"path_beg", "/"},
}

// acls reads the ACLs of a section. Several lines with one name are alternatives.
func (t *translator) acls(s *section) map[string]condition {
	all := map[string]condition{}
	for _, d := range s.own("acl") {
		if len(d.words) < 3 {
			t.AddVerdict(d, importer.Impossible, "an acl has a name and a condition")
			continue
		}
		c := t.parseCondition(s, d, d.words[2:])
		if c.Problem != "" {
			t.AddVerdict(d, importer.Impossible, "%s", c.Problem)
		} else {
			t.acl[d] = c.Notes
		}
		if before, ok := all[d.arg(0)]; ok {
			c = before.Or(c)
		}
		all[d.arg(0)] = c
	}
	return all
}

// sayCondition gives the line of a rule the verdict of its condition.
func (t *translator) sayCondition(d *directive, c condition) {
	if c.Problem != "" {
		t.AddVerdict(d, importer.Impossible, "%s", c.Problem)
		return
	}
	t.ruled(d, c.Notes...)
}

// splitIf returns the words of a line before if or unless, and its condition.
func (t *translator) splitIf(s *section, d *directive, acls map[string]condition) (words []string, c condition) {
	for i := 1; i < len(d.words); i++ {
		if d.words[i] != "if" && d.words[i] != "unless" {
			continue
		}
		c = t.when(s, d, d.words[i+1:], acls)
		if d.words[i] == "unless" {
			c = c.Not()
		}
		return d.words[:i], c
	}
	return d.words, rules.Holds()
}

// when reads a condition: ACLs by name or in braces, ! before them, or between them.
func (t *translator) when(s *section, d *directive, words []string, acls map[string]condition) condition {
	out, all, not := condition{}, rules.Holds(), false
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "or" || w == "||" {
			out, all = out.Or(all), rules.Holds()
			continue
		}
		for strings.HasPrefix(w, "!") {
			not, w = !not, w[1:]
		}
		if w == "" {
			continue
		}
		var c condition
		if w == "{" {
			end := slices.Index(words[i:], "}")
			if end < 2 {
				return rules.Impossible("a { without a condition, or without its }")
			}
			c = t.parseCondition(s, d, words[i+1:i+end])
			i += end
		} else if named, ok := acls[w]; ok {
			c = named
			for _, a := range s.own("acl") {
				if a.arg(0) == w {
					t.uses(a, d)
				}
			}
		} else if known, ok := predefined[w]; ok {
			c = t.parseCondition(s, d, known)
		} else {
			return rules.Impossible("there is no acl " + w)
		}
		if not {
			c = c.Not()
		}
		all, not = all.And(c), false
	}
	return out.Or(all)
}
