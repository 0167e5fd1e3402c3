package redirects

import (
	"regexp/syntax"
	"strings"
)

// Examples returns a path for each rule that it is likely to match: wherever an
// expression may repeat, it does so once. Who looks for redirects that never end
// follows them.
func Examples(c Config) []string {
	all := make([]string, len(c))
	for i := range c {
		tree, err := syntax.Parse(c[i].Regex, syntax.Perl)
		if err != nil {
			continue
		}
		var b strings.Builder
		example(&b, tree.Simplify())
		path := b.String()
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		all[i] = path
	}
	return all
}

// example writes a text that an expression matches: where it may repeat, once.
func example(b *strings.Builder, e *syntax.Regexp) {
	switch e.Op {
	case syntax.OpLiteral:
		b.WriteString(string(e.Rune))
	case syntax.OpCharClass:
		b.WriteRune(member(e.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpAlternate:
		example(b, e.Sub[0])
	default: // what holds others holds them in order; the rest matches nothing
		for _, sub := range e.Sub {
			example(b, sub)
		}
	}
}

// member returns a character of a class, one that paths have if there is one.
func member(ranges []rune) rune {
	for _, want := range "x0-/" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}
