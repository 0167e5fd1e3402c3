package caddy

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer/rules"
)

// matched is when any of the sets of matchers does. view is how the path was changed before,
// within the condition of the requests that come here.
func (w *walker) matched(list *value, view []change, within rules.Condition) rules.Condition {
	if len(list.list) == 0 {
		return rules.Holds()
	}
	var out rules.Condition
	for _, set := range list.list {
		all := rules.Holds()
		for _, name := range set.keys {
			c := w.matcher(name, set.fields[name], view, within)
			if c.Problem == "" {
				w.t.structure(set.fields[name], "a matcher; what it chooses has the verdict")
			}
			all = all.And(c)
		}
		out = out.Or(all)
	}
	return out
}

func holdsIf(yes bool) rules.Condition {
	if yes {
		return rules.Holds()
	}
	return rules.Condition{}
}

// matcher is when one matcher does.
func (w *walker) matcher(name string, v *value, view []change, within rules.Condition) rules.Condition {
	switch name {
	case "host":
		return anyOf(v.texts(), func(h string) rules.Condition {
			if !isHost(h) {
				return rules.Impossible("a host is a name, or *. and a name, not " + h)
			}
			return holdsIf(hasHost(folded(h), w.host))
		})
	case "path":
		return anyOf(v.texts(), func(p string) rules.Condition { return seen(patternOf(p), view, within) })
	case "path_regexp":
		return pathExpression(v, view)
	case "method":
		return anyOf(v.texts(), func(m string) rules.Condition {
			return rules.One(&rules.Atom{Kind: rules.Method, Value: strings.ToUpper(m)})
		})
	case "header":
		return headers(v)
	case "header_regexp":
		return headerExpressions(v)
	case "query":
		return query(v)
	case "remote_ip", "client_ip":
		return clientIn(v.get("ranges").texts())
	case "protocol":
		switch v.text {
		case "https":
			return holdsIf(w.s.secure)
		case "http":
			return holdsIf(!w.s.secure)
		}
	case "not":
		return w.matched(v, view, within).Not()
	}
	return rules.Impossible("a route cannot be chosen by the matcher " + name)
}

// clientIn is when the client's address is in one of the networks. They are one atom.
func clientIn(ranges []string) rules.Condition {
	var all []string
	for _, text := range ranges {
		p, err := netip.ParsePrefix(text)
		if a, e := netip.ParseAddr(text); e == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return rules.Impossible("not an address or network: " + text)
		}
		all = append(all, p.Masked().String())
	}
	slices.Sort(all)
	return rules.One(&rules.Atom{Kind: rules.Client, Value: strings.Join(slices.Compact(all), " ")})
}

func anyOf(all []string, each func(string) rules.Condition) (c rules.Condition) {
	for _, text := range all {
		c = c.Or(each(text))
	}
	return c
}

// Names of atoms for a path say how: their Regex is the expression for it.
const (
	exact   = "exact" // the path alone
	below   = "below" // what is below it
	open    = "open"  // what starts with it, such as /apix with /api
	byRegex = "regex" // what the expression matches; it has no path
)

// anyLetters is the note of every path.
const anyLetters = "paths are case-sensitive; with Caddy, they are not"

// pattern is a path of Caddy: /api/*, /api*, /api, or * for all.
type pattern struct {
	text string // as it is written
	path string // without the star and a slash before it
	kind string
}

func patternOf(text string) pattern {
	inner, star := strings.CutSuffix(text, "*")
	p := pattern{text: text, path: strings.TrimSuffix(inner, "/")}
	switch {
	case text == "*" || text == "/*":
	case strings.ContainsAny(inner, "*?[{%") || !strings.HasPrefix(inner, "/") || strings.Contains(inner, "//"):
		p.kind = byRegex
	case !star:
		p.kind = exact
	case strings.HasSuffix(inner, "/"):
		p.kind = below
	default:
		p.kind = open
	}
	return p
}

// after returns the pattern that is below a prefix.
func (p pattern) after(prefix string) pattern { return patternOf(prefix + p.text) }

// condition matches the pattern against the path as the client has sent it.
func (p pattern) condition() rules.Condition {
	a := &rules.Atom{Kind: rules.Path, Name: p.kind, Value: p.path}
	inner := strings.TrimSuffix(p.text, "*")
	switch p.kind {
	case "":
		return rules.Holds()
	case byRegex:
		expr, ok := globExpression(p.text)
		if !ok {
			return rules.Impossible("a route is chosen by a prefix of the path, not by " + p.text)
		}
		a.Value, a.Regex = "", expr
		return rules.One(a)
	case exact:
		a.Regex = "(?i)^" + regexp.QuoteMeta(inner) + "$"
		return rules.One(a).Noted("a path also matches paths below it: there are no exact paths; " + anyLetters)
	}
	a.Regex = "(?i)^" + regexp.QuoteMeta(inner)
	if p.kind == below {
		return rules.One(a).Noted(p.path + " without the slash matches too; " + anyLetters)
	}
	return rules.One(a).Noted("headgate matches whole segments: " + p.path + "x does not reach it; " + anyLetters)
}

// globExpression is the expression of a path with stars in it: one at its ends matches
// anything, another one anything except a slash.
func globExpression(text string) (string, bool) {
	if strings.ContainsAny(text, "?[{%\\") || text == "" {
		return "", false
	}
	head, tail := strings.HasPrefix(text, "*"), strings.HasSuffix(text, "*")
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "*"), "*")
	if strings.Contains(inner, "*") && (head || tail) {
		return "", false
	}
	expr := strings.ReplaceAll(regexp.QuoteMeta(inner), `\*`, "[^/]*")
	if !head {
		expr = "^" + expr
	}
	if !tail {
		expr += "$"
	}
	return "(?i)" + expr, true
}

// seen is when a pattern matches the path after it was changed.
func seen(p pattern, view []change, within rules.Condition) rules.Condition {
	if p.kind == "" {
		return rules.Holds()
	}
	if len(view) == 0 {
		return p.condition()
	}
	last, rest := view[len(view)-1], view[:len(view)-1]
	if both := within.And(last.when); both.Problem == "" && len(both.Any) == 0 {
		return seen(p, rest, within)
	}
	in := last.when.And(last.sees(p, rest, within))
	out := last.when.Not()
	if both := within.And(out); both.Problem == "" && len(both.Any) == 0 {
		return in
	}
	return in.Or(out.And(seen(p, rest, within)))
}

// within returns the changes of the path that requests of a condition can have seen.
func within(c rules.Condition, view []change) (out []change) {
	for _, ch := range view {
		if both := c.And(ch.when); both.Problem != "" || len(both.Any) > 0 {
			out = append(out, ch)
		}
	}
	return out
}

// sees is when a pattern matches the path that was changed.
func (ch change) sees(p pattern, rest []change, within rules.Condition) rules.Condition {
	switch ch.kind {
	case stripped:
		if p.kind == byRegex {
			break
		}
		return seen(p.after(ch.text), rest, within)
	case prefixed:
		if p.kind != byRegex && strings.HasPrefix(p.text, ch.text+"/") {
			return seen(patternOf(strings.TrimPrefix(p.text, ch.text)), rest, within)
		}
		if c := p.condition(); c.Problem == "" && !rules.Below(p.path, ch.text) {
			return holdsIf(p.kind == below && rules.Below(ch.text, p.path) || p.kind == open && strings.HasPrefix(ch.text, p.path))
		}
	case replaced:
		if c := p.condition(); c.Problem == "" {
			return holdsIf(regexp.MustCompile(c.Any[0][0].Regex).MatchString(ch.text))
		}
	}
	return rules.Impossible("the path " + p.text + " is compared after a rewrite")
}

// pathExpression matches an expression against the path.
func pathExpression(v *value, view []change) rules.Condition {
	expr := v.get("pattern").text
	if _, err := regexp.Compile(expr); err != nil || expr == "" || len(view) > 0 {
		return rules.Impossible("the expression on the path cannot be used, or is compared after a rewrite")
	}
	return rules.One(&rules.Atom{Kind: rules.Path, Name: byRegex, Regex: expr, Value: v.get("name").text})
}

// byPrefixes writes a condition without expressions on the path: those that are prefixes of
// paths become these.
func byPrefixes(c rules.Condition) rules.Condition {
	out := rules.Condition{Notes: c.Notes, Problem: c.Problem}
	for _, list := range c.Any {
		all := rules.Holds()
		for _, l := range list {
			one := rules.Condition{Any: [][]rules.Literal{{l}}}
			if l.Kind == rules.Path && l.Name == byRegex {
				one = prefixesOf(l.Regex)
				if l.Not {
					one = one.Not()
				}
			}
			all = all.And(one)
		}
		out = out.Or(all)
	}
	return out
}

func prefixesOf(expr string) (c rules.Condition) {
	all, ok := rules.Prefixes(expr)
	if !ok {
		return rules.Impossible("a route is chosen by a prefix of the path, and the expression " + expr + " is none")
	}
	for _, p := range all {
		c = c.Or(rules.One(&rules.Atom{Kind: rules.Path, Value: p.Path})).Noted(p.Note)
	}
	return c
}

// headers matches headers, of which several values are alternatives.
func headers(v *value) rules.Condition {
	out := rules.Holds()
	for _, name := range v.keys {
		values := v.fields[name]
		if values.isList && len(values.list) == 0 || !values.is() {
			out = out.And(header(name, "", "").Not())
			continue
		}
		out = out.And(anyOf(values.texts(), func(text string) rules.Condition {
			plain, expression, ok := wildcards(text)
			if !ok {
				return rules.Impossible("a header is compared with a text")
			}
			return header(name, plain, expression)
		}))
	}
	return out
}

// header matches one header. A route is never chosen by one that belongs to the
// connection; Connection: Upgrade is equivalent to the field Upgrade.
func header(name, plain, expression string) rules.Condition {
	a := &rules.Atom{Kind: rules.Header, Name: name, Value: plain, Regex: expression}
	switch strings.ToLower(name) {
	case "connection":
		if upgrade := strings.ToLower(plain + expression); upgrade != "upgrade" && upgrade != "upgrade$" && upgrade != "^upgrade" {
			return rules.Impossible("the header Connection can only be matched for Upgrade")
		}
		return rules.One(&rules.Atom{Kind: rules.Header, Name: "Upgrade"}).Noted("Connection: Upgrade is matched by the header Upgrade")
	case "host", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "proxy-connection", "proxy-authorization", "proxy-authenticate":
		return rules.Impossible("a route is not chosen by the header " + name)
	}
	return rules.One(a)
}

func headerExpressions(v *value) rules.Condition {
	c := rules.Holds()
	for _, field := range v.keys {
		expr := v.fields[field].get("pattern").text
		if _, err := regexp.Compile(expr); err != nil || expr == "" {
			return rules.Impossible("the expression of the header " + field + " cannot be used")
		}
		c = c.And(header(field, "", expr))
	}
	return c
}

// query matches parameters.
func query(v *value) rules.Condition {
	out := rules.Holds()
	for _, name := range v.keys {
		out = out.And(anyOf(v.fields[name].texts(), func(text string) rules.Condition {
			if strings.Contains(text, "{") || text == "" || name == "" {
				return rules.Impossible("a parameter is compared with a text")
			}
			a := &rules.Atom{Kind: rules.Query, Name: name}
			if text != "*" {
				a.Value = text
			}
			return rules.One(a)
		}))
	}
	return out
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
