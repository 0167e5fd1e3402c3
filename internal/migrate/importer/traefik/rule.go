package traefik

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate/internal/matchers"
	"headgate/internal/migrate/importer/rules"
)

// match is one call of a rule, such as Host(`a.example`).
type match struct {
	name string // in lower case
	args []string
	not  bool
}

// maxAlternatives bounds what "or" multiplies.
const maxAlternatives = 200

// parseRule reads a rule of a router and returns its alternatives: the rule matches
// when all matches of one of them do. Names are those of version 3; version 2 lets one
// call have several arguments, which are alternatives.
func parseRule(text string) ([][]match, error) {
	p := &ruleParser{text: text}
	out, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.skip(); p.at < len(p.text) {
		return nil, fmt.Errorf("unexpected %q", p.text[p.at:])
	}
	return out, nil
}

type ruleParser struct {
	text string
	at   int
}

func (p *ruleParser) skip() {
	for p.at < len(p.text) && strings.ContainsRune(" \t\r\n", rune(p.text[p.at])) {
		p.at++
	}
}

func (p *ruleParser) accept(sign string) bool {
	if p.skip(); strings.HasPrefix(p.text[p.at:], sign) {
		p.at += len(sign)
		return true
	}
	return false
}

var errDeep = errors.New("the rule is nested too deep, or has too many alternatives")

func (p *ruleParser) or(depth int) ([][]match, error) {
	out, err := p.and(depth)
	for err == nil && p.accept("||") {
		var more [][]match
		more, err = p.and(depth)
		out = append(out, more...)
	}
	if len(out) > maxAlternatives {
		return nil, errDeep
	}
	return out, err
}

func (p *ruleParser) and(depth int) ([][]match, error) {
	out, err := p.not(depth)
	for err == nil && p.accept("&&") {
		var more [][]match
		if more, err = p.not(depth); err != nil {
			return nil, err
		}
		var both [][]match
		for _, a := range out {
			for _, b := range more {
				both = append(both, slices.Concat(a, b))
			}
		}
		if out = both; len(out) > maxAlternatives {
			return nil, errDeep
		}
	}
	return out, err
}

func (p *ruleParser) not(depth int) ([][]match, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	if p.accept("!") {
		inner, err := p.not(depth + 1)
		if err != nil {
			return nil, err
		}
		return negate(inner)
	}
	if p.accept("(") {
		inner, err := p.or(depth + 1)
		if err == nil && !p.accept(")") {
			err = errors.New("a bracket is not closed")
		}
		return inner, err
	}
	return p.call()
}

// negate turns alternatives round (De Morgan).
func negate(alternatives [][]match) ([][]match, error) {
	out := [][]match{nil}
	for _, all := range alternatives {
		var next [][]match
		for _, before := range out {
			for _, m := range all {
				m.not = !m.not
				next = append(next, append(slices.Clone(before), m))
			}
		}
		if out = next; len(out) > maxAlternatives {
			return nil, errDeep
		}
	}
	return out, nil
}

// call reads Name(`argument`, …).
func (p *ruleParser) call() ([][]match, error) {
	p.skip()
	begin := p.at
	for p.at < len(p.text) && (p.text[p.at]|0x20 >= 'a' && p.text[p.at]|0x20 <= 'z') {
		p.at++
	}
	name := p.text[begin:p.at]
	if name == "" || !p.accept("(") {
		return nil, fmt.Errorf("a matcher such as Host(`…`) is expected at %q", p.text[begin:])
	}
	var args []string
	for !p.accept(")") {
		if len(args) > 0 && !p.accept(",") {
			return nil, fmt.Errorf("%s: a comma or a closing bracket is expected", name)
		}
		p.skip()
		if p.at >= len(p.text) || !strings.ContainsRune("`\"'", rune(p.text[p.at])) {
			return nil, fmt.Errorf("%s: a text in backticks is expected", name)
		}
		end := strings.IndexByte(p.text[p.at+1:], p.text[p.at])
		if end < 0 {
			return nil, fmt.Errorf("%s: a text is not closed", name)
		}
		args = append(args, p.text[p.at+1:p.at+1+end])
		p.at += end + 2
	}
	return [][]match{{{name: strings.ToLower(name), args: args}}}, nil
}

// condition is what an alternative asks for, as far as a route can.
type condition struct {
	hosts []string // virtual hosts; none is any
	path  string   // a prefix of whole segments
	exact bool     // the path was to match exactly
	loose bool     // the prefix does not end at a segment
	allow []string // networks of clients
	other []match  // what a route cannot ask for

	matchers matchers.Config
	slashed  bool              // the prefix ends with a slash
	nots     []rules.Condition // what must not be
	rules    rules.Condition   // of all of these but the host
}

// conditionOf sorts the matches of an alternative.
func conditionOf(all []match) (c condition, problem string) {
	c.path = "/"
	for _, m := range all {
		if m.not {
			if !c.without(m) {
				c.other = append(c.other, m)
			}
			continue
		}
		switch m.name {
		case "host", "hostheader", "hostsni":
			if len(c.hosts) > 0 {
				return c, "two hosts at once never match"
			}
			c.hosts = m.args
			if slices.Contains(c.hosts, "*") {
				c.hosts = nil
			}
		case "hostregexp", "hostsniregexp":
			for _, text := range m.args {
				h, ok := hostExpression(text)
				if !ok {
					return c, "the expression of the host cannot be translated: " + text
				}
				c.hosts = append(c.hosts, h)
			}
		case "pathprefix", "path":
			if len(m.args) != 1 || c.path != "/" || !strings.HasPrefix(m.args[0], "/") || strings.ContainsAny(m.args[0], "{}") {
				return c, "the paths of this rule cannot be translated: one path without variables is possible"
			}
			c.path, c.exact = m.args[0], m.name == "path" && m.args[0] != "/"
			if len(c.path) > 1 {
				c.loose = !strings.HasSuffix(c.path, "/") && !c.exact
				c.slashed = strings.HasSuffix(c.path, "/") && !c.exact
				c.path = strings.TrimSuffix(c.path, "/")
			}
		case "clientip":
			c.allow = append(c.allow, m.args...)
		default:
			if !c.narrow(m) {
				c.other = append(c.other, m)
			}
		}
	}
	c.atoms()
	return c, c.rules.Problem
}

// hostExpression makes a virtual host of an expression: of version 3, which is RE2, or
// of version 2 with {name:expression} in it.
func hostExpression(text string) (string, bool) {
	if !strings.Contains(text, "{") || strings.Contains(text, "\\") || strings.HasPrefix(text, "^") {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "^"), "$")
		if rest, ok := strings.CutPrefix(text, `[a-z0-9-]+\.`); ok {
			return "*." + strings.ReplaceAll(rest, `\.`, "."), true
		}
		return "~^" + text + "$", true
	}
	var b strings.Builder
	for text != "" {
		before, rest, ok := strings.Cut(text, "{")
		b.WriteString(strings.ReplaceAll(before, ".", `\.`))
		if !ok {
			break
		}
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return "", false
		}
		_, expression, named := strings.Cut(rest[:end], ":")
		if !named {
			expression = "[^.]+"
		}
		b.WriteString("(?:" + expression + ")")
		text = rest[end+1:]
	}
	return "~^" + b.String() + "$", true
}

// protocols returns the application protocols of ALPN in a rule, which are no longer among
// other then.
func (c *condition) protocols() (all []string) {
	c.other = slices.DeleteFunc(c.other, func(m match) bool {
		if m.name != "alpn" || m.not || len(all) > 0 {
			return false
		}
		all = m.args
		return true
	})
	return all
}
