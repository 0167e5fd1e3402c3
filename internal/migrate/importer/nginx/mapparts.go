package nginx

import (
	"regexp"
	"strings"

	"headgate/internal/migrate/importer/rules"
)

// maxSplit bounds the texts whose parts are looked for where nothing separates them.
const maxSplit = 64

// partsOf returns the subjects that the source of a map is made of, such as those of
// "$request_method:$http_accept". A map in it is open while atoms are gathered, since it has
// another value in each region.
func (v *view) partsOf(source string) (parts []subject, why string) {
	literal := ""
	flush := func() {
		if literal != "" {
			parts = append(parts, subject{constant: true, literal: true, value: literal})
		}
		literal = ""
	}
	rest := source
	for rest != "" {
		at := variable.FindStringIndex(rest)
		if at == nil || at[0] > 0 {
			end := len(rest)
			if at != nil {
				end = at[0]
			}
			literal += rest[:end]
			rest = rest[end:]
			continue
		}
		name := strings.TrimLeft(rest[:at[1]], "${")
		braced := strings.HasPrefix(rest, "${")
		if rest = rest[at[1]:]; braced {
			rest = strings.TrimPrefix(rest, "}")
		}
		flush()
		s := subject{open: true}
		if v.t.maps[name] == nil || !v.gathering {
			s = v.subject(name)
		}
		if s.why != "" {
			return nil, s.why
		}
		parts = append(parts, s)
	}
	flush()
	return parts, ""
}

// compareParts matches a text, or an expression, of several parts: when each part has its
// piece of it.
func compareParts(parts []subject, op, value string) rules.Condition {
	switch op {
	case "fold":
		return textOfParts(parts, value)
	case "~", "~*":
		pieces, ok := piecesOf(parts, strings.TrimPrefix(value, "(?i)"))
		if !ok {
			return rules.Impossible("the expression has no piece for each variable of the map")
		}
		c := rules.Holds()
		for i, s := range parts {
			piece := pieces[i]
			if piece == "" || s.open || s.literal {
				continue // anything, or what was cut away
			}
			if strings.HasPrefix(value, "(?i)") {
				piece = "(?i)" + piece
			}
			one, _ := s.compare("~", piece)
			c = c.And(one)
		}
		return c
	}
	return rules.Impossible("a map of several variables has texts and expressions")
}

// textOfParts matches a text: for each way to cut it into pieces.
func textOfParts(parts []subject, text string) rules.Condition {
	if len(parts) == 0 {
		return holds(text == "")
	}
	s, rest := parts[0], parts[1:]
	if s.constant {
		if len(text) < len(s.value) || !strings.EqualFold(text[:len(s.value)], s.value) {
			return rules.Condition{}
		}
		return textOfParts(rest, text[len(s.value):]).Noted(s.note)
	}
	if len(rest) == 0 {
		return s.piece(text)
	}
	if len(text) > maxSplit {
		return rules.Impossible("nothing separates the variables of the map")
	}
	var out rules.Condition
	for end := 0; end <= len(text); end++ {
		if after := rest[0]; after.constant && !(len(text)-end >= len(after.value) && strings.EqualFold(text[end:end+len(after.value)], after.value)) {
			continue
		}
		if one := s.piece(text[:end]); len(one.Any) > 0 || one.Problem != "" {
			out = out.Or(one.And(textOfParts(rest, text[end:])))
		}
	}
	return out
}

func holds(yes bool) rules.Condition {
	if yes {
		return rules.Holds()
	}
	return rules.Condition{}
}

var methodToken = regexp.MustCompile(`^[A-Za-z]+$`)

// piece matches a part against a text. A text that a method or a path never has does
// not match.
func (s subject) piece(text string) rules.Condition {
	switch {
	case s.open:
		return rules.Holds()
	case s.kind == rules.Method && !s.constant:
		if !methodToken.MatchString(text) {
			return rules.Condition{}
		}
		text = strings.ToUpper(text)
	case s.kind == rules.Path && !s.constant && !strings.HasPrefix(text, "/"):
		return rules.Condition{}
	}
	c, _ := s.compare("fold", text)
	return c
}

// piecesOf cuts an expression at the texts that separate the variables of a map. The piece
// of a part that may be anything is empty.
func piecesOf(parts []subject, expr string) ([]string, bool) {
	begins, ends := strings.HasPrefix(expr, "^"), strings.HasSuffix(expr, "$") && !strings.HasSuffix(expr, `\$`)
	expr = strings.TrimPrefix(expr, "^")
	if ends {
		expr = strings.TrimSuffix(expr, "$")
	}
	pieces := make([]string, len(parts))
	last := -1 // the part whose piece is being cut
	for i, s := range parts {
		if !s.literal {
			if last >= 0 && !parts[i-1].literal {
				return nil, false // nothing is between them
			}
			last = i
			continue
		}
		separator := regexp.QuoteMeta(s.value)
		at := topLevel(expr, separator)
		if len(at) != 1 {
			return nil, false
		}
		if last >= 0 {
			pieces[last] = anchored(expr[:at[0]], begins || last > 0, true)
		} else if at[0] != 0 {
			return nil, false
		}
		expr, last = expr[at[0]+len(separator):], -1
	}
	if last >= 0 {
		pieces[last] = anchored(expr, begins || last > 0, ends)
	} else if expr != "" {
		return nil, false
	}
	return pieces, true
}

// anchored writes a piece with its ends, "" for one that matches anything.
func anchored(piece string, begins, ends bool) string {
	if piece == ".*" || piece == "" && !(begins && ends) {
		return ""
	}
	if begins {
		piece = "^" + piece
	}
	if ends {
		piece += "$"
	}
	return piece
}

// topLevel returns where a text is in an expression outside of brackets and groups. Without
// an escape an alternative there would belong to all pieces: then it is nowhere.
func topLevel(expr, text string) (at []int) {
	depth, class := 0, false
	for i := 0; i < len(expr); i++ {
		if depth == 0 && !class && strings.HasPrefix(expr[i:], text) {
			at = append(at, i)
			i += len(text) - 1
			continue
		}
		switch expr[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 && !class {
				return nil
			}
		}
	}
	return at
}
