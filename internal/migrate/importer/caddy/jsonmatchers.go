package caddy

import (
	"net/netip"
	"regexp"
	"strings"

	"headgate/internal/migrate/importer/rules"
)

// matched is when any of the sets of matchers does.
func (s *server) matched(list *value, strip string) rules.Condition {
	if len(list.list) == 0 {
		return rules.Holds()
	}
	var out rules.Condition
	for _, set := range list.list {
		all := rules.Holds()
		for _, name := range set.keys {
			c := s.matcher(name, set.fields[name], strip)
			if c.Problem == "" {
				s.t.sayNote(set.fields[name], strings.Join(c.Notes, "; "))
			}
			all = all.And(c)
		}
		out = out.Or(all)
	}
	return out
}

// matcher is when one matcher does.
func (s *server) matcher(name string, v *value, strip string) rules.Condition {
	switch name {
	case "host":
		return anyOf(v.texts(), func(h string) rules.Condition {
			if strings.Contains(strings.TrimPrefix(h, "*."), "*") || strings.Contains(h, "{") {
				return rules.Impossible("a host is a name, or *. and a name, not " + h)
			}
			return rules.One(&rules.Atom{Kind: rules.Host, Value: strings.ToLower(h)})
		})
	case "path":
		return anyOf(v.texts(), func(p string) rules.Condition { return pathMatcher(p, strip) })
	case "path_regexp":
		all, ok := rules.Prefixes(v.get("pattern").text)
		if !ok || strip != "" {
			return rules.Impossible("a route is chosen by a prefix of the path, and this expression is none")
		}
		var c rules.Condition
		for _, p := range all {
			c = c.Or(rules.One(&rules.Atom{Kind: rules.Path, Value: p.Path})).Noted(p.Note)
		}
		return c
	case "method":
		return anyOf(v.texts(), func(m string) rules.Condition {
			return rules.One(&rules.Atom{Kind: rules.Method, Value: strings.ToUpper(m)})
		})
	case "header":
		return s.headers(v)
	case "header_regexp":
		c := rules.Holds()
		for _, field := range v.keys {
			expr := v.fields[field].get("pattern").text
			if _, err := regexp.Compile(expr); err != nil || expr == "" {
				return rules.Impossible("the expression of the header " + field + " cannot be used")
			}
			c = c.And(rules.One(&rules.Atom{Kind: rules.Header, Name: field, Regex: expr}))
		}
		return c
	case "query":
		return s.query(v)
	case "remote_ip", "client_ip":
		return anyOf(v.get("ranges").texts(), func(text string) rules.Condition {
			p, err := netip.ParsePrefix(text)
			if a, e := netip.ParseAddr(text); e == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err != nil {
				return rules.Impossible("not an address or network: " + text)
			}
			return rules.One(&rules.Atom{Kind: rules.Client, Value: p.Masked().String()})
		})
	case "protocol":
		tls := rules.One(&rules.Atom{Kind: rules.TLS})
		switch v.text {
		case "https":
			return tls
		case "http":
			return tls.Not()
		}
	case "not":
		return s.matched(v, strip).Not()
	}
	return rules.Impossible("a route cannot be chosen by the matcher " + name)
}

func anyOf(all []string, each func(string) rules.Condition) (c rules.Condition) {
	for _, text := range all {
		c = c.Or(each(text))
	}
	return c
}

// pathMatcher asks for a path of Caddy: /api/*, /api* or /api.
func pathMatcher(pattern, strip string) rules.Condition {
	if pattern == "*" || pattern == "/*" {
		return rules.Holds()
	}
	inner, open := strings.CutSuffix(pattern, "*")
	if strings.ContainsAny(inner, "*{%") || !strings.HasPrefix(inner, "/") || inner == "/" || strings.Contains(inner, "//") {
		return rules.Impossible("a route is chosen by a prefix of the path, not by " + pattern)
	}
	path := strip + strings.TrimSuffix(inner, "/")
	c := rules.One(&rules.Atom{Kind: rules.Path, Value: path}).Noted(anyLetters)
	switch {
	case !open:
		return c.Noted("a path takes what is below it too: exact paths do not exist")
	case strings.HasSuffix(inner, "/"):
		return c.Noted(path + " without the slash is taken, too")
	}
	return c.Noted("headgate takes whole segments: " + path + "x does not reach it")
}

// anyLetters is told of every path.
const anyLetters = "paths are compared in the letters in which they are written; Caddy takes any"

// headers asks for headers, of which several values are alternatives.
func (s *server) headers(v *value) rules.Condition {
	out := rules.Holds()
	for _, name := range v.keys {
		values := v.fields[name]
		if values.isList && len(values.list) == 0 || !values.is() {
			out = out.And(rules.One(&rules.Atom{Kind: rules.Header, Name: name}).Not())
			continue
		}
		c := anyOf(values.texts(), func(text string) rules.Condition {
			plain, expression, ok := wildcards(text)
			if !ok {
				return rules.Impossible("a header is compared with a text")
			}
			return rules.One(&rules.Atom{Kind: rules.Header, Name: name, Value: plain, Regex: expression})
		})
		out = out.And(c)
	}
	return out
}

// query asks for parameters.
func (s *server) query(v *value) rules.Condition {
	out := rules.Holds()
	for _, name := range v.keys {
		out = out.And(anyOf(v.fields[name].texts(), func(text string) rules.Condition {
			if strings.Contains(text, "{") || text == "" {
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
