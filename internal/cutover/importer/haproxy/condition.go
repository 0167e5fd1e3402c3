package haproxy

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/cutover/importer"
)

// kind is what an atom asks about.
type kind uint8

const (
	always   kind = iota // nothing: it is true
	byHost               // the host
	byPath               // the path is at or below a prefix
	byMethod             // the method
	byHeader             // a header
	byQuery              // a parameter of the query
	byTLS                // the client came over TLS
	byPort               // the number of the port
	byClient             // the client's address
	byRate               // how many requests the client has made
	byLogin              // the client has signed in
	bySNI                // the name in TLS, in mode tcp
)

// atom is one question about a request.
type atom struct {
	kind    kind
	name    string // of a header, parameter or userlist
	value   string // a host, path, method, value, port, address or number
	regex   string // of a header or parameter
	pattern *regexp.Regexp
}

// key tells atoms apart.
func (a *atom) key() string {
	return strings.Join([]string{string('a' + rune(a.kind)), strings.ToLower(a.name), a.value, a.regex}, "\x00")
}

// routes reports whether a route can be chosen by the atom.
func (a *atom) routes() bool { return a.kind >= byPath && a.kind <= byQuery }

// literal is an atom or its opposite.
type literal struct {
	*atom
	not bool
}

// condition is when a rule acts: when all literals of any list hold. One without a
// list never holds.
type condition struct {
	any     [][]literal
	notes   []string // where headgate's answer differs
	problem string   // why it cannot be asked
}

// maxAlternatives bounds the lists of a condition.
const maxAlternatives = 256

var holdsAlways = condition{any: [][]literal{{}}}

func one(a *atom) condition { return condition{any: [][]literal{{literal{atom: a}}}} }

func impossible(why string) condition { return condition{problem: why} }

// noted adds where it differs.
func (c condition) noted(note string) condition {
	if note != "" && !slices.Contains(c.notes, note) {
		c.notes = append(slices.Clone(c.notes), note)
	}
	return c
}

func (c condition) joined(d condition, any [][]literal) condition {
	out := condition{any: any, notes: c.notes, problem: c.problem}
	for _, n := range d.notes {
		out = out.noted(n)
	}
	if out.problem == "" {
		out.problem = d.problem
	}
	if len(any) > maxAlternatives && out.problem == "" {
		out.problem = "the condition has too many alternatives"
	}
	if out.problem != "" {
		out.any = nil
	}
	return out
}

func (c condition) or(d condition) condition { return c.joined(d, slices.Concat(c.any, d.any)) }

func (c condition) and(d condition) condition {
	var any [][]literal
	if c.problem == "" && d.problem == "" && len(c.any)*len(d.any) <= 4*maxAlternatives {
		for _, a := range c.any {
			for _, b := range d.any {
				if both, ok := meet(a, b); ok {
					any = append(any, both)
				}
			}
		}
	} else {
		return c.joined(d, make([][]literal, maxAlternatives+1))
	}
	return c.joined(d, any)
}

// meet joins two lists, unless they contradict each other.
func meet(a, b []literal) ([]literal, bool) {
	out := slices.Clone(a)
	for _, l := range b {
		i := slices.IndexFunc(out, func(o literal) bool { return o.key() == l.key() })
		switch {
		case i < 0:
			out = append(out, l)
		case out[i].not != l.not:
			return nil, false
		}
	}
	return out, true
}

// not is the opposite.
func (c condition) not() condition {
	out := condition{any: [][]literal{{}}, notes: c.notes, problem: c.problem}
	for _, list := range c.any {
		var none condition
		for _, l := range list {
			l.not = !l.not
			none.any = append(none.any, []literal{l})
		}
		out = out.and(none)
	}
	return out
}

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
			t.Say(d, importer.Impossible, "an acl has a name and what is asked")
			continue
		}
		c := t.asked(s, d, d.words[2:])
		t.sayCondition(d, c)
		if before, ok := all[d.arg(0)]; ok {
			c = before.or(c)
		}
		all[d.arg(0)] = c
	}
	return all
}

// sayCondition gives a line the verdict of a condition.
func (t *translator) sayCondition(d *directive, c condition) {
	switch {
	case c.problem != "":
		t.Say(d, importer.Impossible, "%s", c.problem)
	case len(c.notes) > 0:
		t.Say(d, importer.Close, "%s", strings.Join(c.notes, "; "))
	default:
		t.Say(d, importer.Same, "")
	}
}

// splitIf returns the words of a line before if or unless, and its condition.
func (t *translator) splitIf(s *section, d *directive, acls map[string]condition) (words []string, c condition) {
	for i := 1; i < len(d.words); i++ {
		if d.words[i] != "if" && d.words[i] != "unless" {
			continue
		}
		c = t.when(s, d, d.words[i+1:], acls)
		if d.words[i] == "unless" {
			c = c.not()
		}
		return d.words[:i], c
	}
	return d.words, holdsAlways
}

// when reads a condition: ACLs by name or in braces, ! before them, or between them.
func (t *translator) when(s *section, d *directive, words []string, acls map[string]condition) condition {
	out, all, not := condition{}, holdsAlways, false
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "or" || w == "||" {
			out, all = out.or(all), holdsAlways
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
				return impossible("a { without what is asked, or without its }")
			}
			c = t.asked(s, d, words[i+1:i+end])
			i += end
		} else if named, ok := acls[w]; ok {
			c = named
		} else if known, ok := predefined[w]; ok {
			c = t.asked(s, d, known)
		} else {
			return impossible("there is no acl " + w)
		}
		if not {
			c = c.not()
		}
		all, not = all.and(c), false
	}
	return out.or(all)
}
