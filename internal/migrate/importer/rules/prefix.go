package rules

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// Prefix is one prefix of paths that an expression matches.
type Prefix struct {
	// Path has no slash at its end; "" is every path.
	Path string
	// Note says if a prefix of whole segments matches other paths than the expression;
	// otherwise it is empty.
	Note string
	// Lost says that the expression matches other paths besides, for which there is no
	// prefix; the note names them.
	Lost bool
}

// maxLiterals limits the texts that an expression matches.
const maxLiterals = 64

// literal is the literal start of an expression. end means that nothing follows, open
// that anything may.
type literal struct {
	text string
	end  bool
	open bool
}

// Prefixes returns the prefixes of whole segments that an expression on the path
// matches: ^/api(/|$) is /api. It reports false for an expression that is none of
// these.
func Prefixes(expr string) ([]Prefix, bool) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, false
	}
	items := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		items = re.Sub
	}
	if len(items) == 0 || items[0].Op != syntax.OpBeginText {
		return nil, false
	}
	all, ok := sequence(items[1:], 0)
	if !ok {
		return nil, false
	}
	for i := range all {
		all[i].open = false // what is not at its end is open
	}
	return prefixesOf(all)
}

// prefixesOf makes prefixes of the literal starts of paths.
func prefixesOf(all []literal) (out []Prefix, ok bool) {
	lost := ""
	all = slices.DeleteFunc(slices.Clone(all), func(l literal) bool {
		hidden := strings.HasSuffix(l.text, "/.") || strings.HasSuffix(l.text, "/..")
		if hidden {
			lost = "paths that start with " + l.text + " are not matched: a path matches whole segments"
		}
		return hidden
	})
	has := func(text string, end bool) bool { return slices.Contains(all, literal{text: text, end: end}) }
	for _, l := range all {
		path := strings.TrimSuffix(l.text, "/")
		p := Prefix{Path: path}
		switch {
		case !strings.HasPrefix(l.text, "/") || strings.Contains(l.text, "//"):
			return nil, false
		case l.text == "/" && l.end:
			return nil, false // the root alone
		case path == "":
		case l.end && has(path+"/", false): // the other one says it
			continue
		case l.end:
			p.Note = "the path also matches paths below it: there are no exact paths"
		case strings.HasSuffix(l.text, "/"):
			if !has(path, true) {
				p.Note = path + " without the slash matches too"
			}
		default:
			p.Note = "a path matches whole segments: " + path + "x is not below " + path
		}
		if !slices.ContainsFunc(out, func(o Prefix) bool { return o.Path == p.Path }) {
			out = append(out, p)
		}
	}
	if lost != "" && len(out) > 0 {
		out[0].Note, out[0].Lost = strings.TrimPrefix(out[0].Note+"; "+lost, "; "), true
	}
	return out, len(out) > 0
}

// Literals returns the texts that an expression matches as a whole, if they are few:
// ^(GET|HEAD)$ has two.
func Literals(expr string) ([]string, bool) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return nil, false
	}
	all, ok := sequence(re.Sub[1:], 0)
	if !ok {
		return nil, false
	}
	var out []string
	for _, l := range all {
		if !l.end {
			return nil, false
		}
		out = append(out, l.text)
	}
	return out, true
}

// sequence are the texts of expressions that follow each other.
func sequence(items []*syntax.Regexp, depth int) ([]literal, bool) {
	all := []literal{{}}
	for _, item := range items {
		more, ok := literals(item, depth)
		if !ok {
			return nil, false
		}
		var next []literal
		for _, a := range all {
			for _, b := range more {
				switch {
				case a.open && (b.open || b.end) && b.text == "", a.end && b.end && b.text == "":
					next = append(next, a)
				case a.open || a.end: // something has to follow it
					return nil, false
				default:
					next = append(next, literal{text: a.text + b.text, end: b.end, open: b.open})
				}
			}
		}
		if all = next; len(all) > maxLiterals {
			return nil, false
		}
	}
	return all, true
}

// maxParsed bounds how deep an expression is nested that is looked at.
const maxParsed = 20

// literals are the texts of an expression, if they are few.
func literals(re *syntax.Regexp, depth int) (out []literal, ok bool) {
	if depth > maxParsed {
		return nil, false
	}
	switch re.Op {
	case syntax.OpLiteral:
		return []literal{{text: string(re.Rune)}}, re.Flags&syntax.FoldCase == 0
	case syntax.OpEmptyMatch:
		return []literal{{}}, true
	case syntax.OpEndText:
		return []literal{{end: true}}, true
	case syntax.OpCapture:
		return literals(re.Sub[0], depth+1)
	case syntax.OpQuest:
		out, ok = literals(re.Sub[0], depth+1)
		return append(out, literal{}), ok
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar: // mostly a dot that is meant as one: ^/.well-known
		return []literal{{text: "."}}, true
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if out = append(out, literal{text: string(r)}); len(out) > maxLiterals {
					return nil, false
				}
			}
		}
		return out, true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, ok := literals(sub, depth+1)
			if out = append(out, more...); !ok || len(out) > maxLiterals {
				return nil, false
			}
		}
		return out, true
	case syntax.OpConcat:
		return sequence(re.Sub, depth+1)
	case syntax.OpStar:
		any := re.Sub[0].Op == syntax.OpAnyChar || re.Sub[0].Op == syntax.OpAnyCharNotNL
		return []literal{{open: true}}, any
	}
	return nil, false
}
