// Package rewrite maps the path of a request to the path that a server sees, and
// maps paths in the response back.
//
// The way in, in this order: the route's path is stripped, the regular
// expression replaces, the prefix is added. The upstream then puts the server's
// base path in front, which is why the base path shows here only on the way
// back: in Location, Content-Location and the paths of cookies.
package rewrite

import (
	"regexp"

	"headgate/internal/exchange"
	"headgate/internal/proto/uri"
)

// Compile returns the filter of the route in env. c is nil when there is no rewrite;
// stripping and mending then act by themselves. A filter without funcs means
// that there is nothing to do. Settings that were checked give no error.
func Compile(c *Config, env exchange.Env) (exchange.Filter, error) {
	route := env.Route
	m := &mapping{trimsBase: trimsBase(route.Servers)}
	var differs bool
	filter := exchange.Filter{Name: "rewrite"}
	if route.Strip {
		m.strip = len(route.Prefix)
		m.strips = true
	}
	mends := true
	if c != nil {
		mends = c.RewriteResponse
		if err := m.compile(c); err != nil {
			return filter, err
		}
	}
	switch {
	case c == nil && m.strip == 0:
		filter.Name = "rewrite_response"
	case c == nil:
		filter.Name = "strip_prefix"
	}
	switch {
	case m.regex != nil:
		filter.Request = m.rewrite
	case m.prefix != "" || m.strip > 0 || m.strips && m.trimsBase:
		filter.Request = m.plain
	}
	if m.back, differs = newMend(m, route); differs && mends {
		filter.Response = m.back.response
	}
	return filter, nil
}

// trimsBase reports whether the base path of a server does not end in a slash,
// so that an empty path and "/" are not the same to it.
func trimsBase(servers []exchange.RouteServer) bool {
	for i := range servers {
		if base := servers[i].Base; base != "" && base[len(base)-1] != '/' {
			return true
		}
	}
	return false
}

// longest is the longest path that a replacement may make, in bytes.
const longest = 64 << 10

// maxMatches is how often an expression may match in one path.
const maxMatches = 1000

// mapping is the way in, and holds the way back. It is immutable.
type mapping struct {
	strips      bool
	strip       int // bytes of the route's path
	regex       *regexp.Regexp
	replacement string
	prefix      string // to add, without a slash at its end
	slash       bool   // the prefix was written with one
	trimsBase   bool
	back        mend
}

func (m *mapping) compile(c *Config) error {
	m.prefix = c.AddPrefix
	if n := len(m.prefix); n > 0 && m.prefix[n-1] == '/' {
		m.prefix, m.slash = m.prefix[:n-1], true
	}
	if c.Regex == "" {
		return nil
	}
	var err error
	m.regex, err = regexp.Compile(c.Regex)
	m.replacement = encode(c.Replacement)
	return err
}

// encode brings what no path can hold in a replacement into its encoded form.
func encode(s string) string {
	const upper = "0123456789ABCDEF"
	var b []byte
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			b = append(b, '%', upper[c>>4], upper[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// rest returns what the route leaves of the path: "" or a path that begins with
// a slash. A request for the route's path itself leaves nothing, and so does one
// for "/" where the route has the path "/": the server then gets its base path
// as it is written.
func (m *mapping) rest(path string) string {
	switch {
	case path == "*":
		return path
	case m.strip > 0:
		return path[m.strip:]
	case m.strips && path == "/":
		return ""
	}
	return path
}

// plain strips and adds.
func (m *mapping) plain(ex *exchange.Exchange) *exchange.Answer {
	ex.Request.Target = m.add(ex, m.rest(ex.Request.Path))
	return nil
}

// add puts the prefix in front. An empty rest leaves the prefix as it is
// written.
func (m *mapping) add(ex *exchange.Exchange, rest string) string {
	switch {
	case m.prefix == "" || rest == "*":
		return rest
	case rest == "" && m.slash:
		return ex.Text.Join(m.prefix, "/")
	case rest == "":
		return m.prefix
	}
	return ex.Text.Join(m.prefix, rest)
}

// rewrite strips, replaces and adds. The expression always sees a path that
// begins with a slash. What a replacement made is brought into the one form of
// paths again, so that it cannot climb out of what is put in front of it.
func (m *mapping) rewrite(ex *exchange.Exchange) *exchange.Answer {
	rest := m.rest(ex.Request.Path)
	seen := rest
	if seen == "" {
		seen = "/"
	}
	if rest != "*" && m.regex.MatchString(seen) {
		made, ok := m.replaced(seen)
		if !ok {
			return exchange.Fail(exchange.URITooLong, "the rewritten path is too long")
		}
		var err error
		if rest, err = normal(ex, made); err != nil {
			return exchange.Fail(exchange.BadRequest, "the rewritten path "+made+" cannot be sent: "+err.Error())
		}
	}
	ex.Request.Target = m.add(ex, rest)
	return nil
}

// replaced returns a path with every match replaced, and false when that takes more
// than longest bytes or maxMatches. It ends as soon as that is known.
func (m *mapping) replaced(path string) (made string, ok bool) {
	matches := m.regex.FindAllStringSubmatchIndex(path, maxMatches+1)
	if len(matches) > maxMatches {
		return "", false
	}
	var b []byte
	from := 0
	for _, match := range matches {
		b = append(b, path[from:match[0]]...)
		if b = m.regex.ExpandString(b, m.replacement, path, match); len(b) > longest {
			return "", false
		}
		from = match[1]
	}
	b = append(b, path[from:]...)
	return string(b), len(b) <= longest
}

// normal returns the one form of a path that a replacement made, with a slash in
// front; nothing stays nothing.
func normal(ex *exchange.Exchange, made string) (string, error) {
	if made == "" {
		return "", nil
	}
	if made[0] != '/' {
		made = "/" + made
	}
	if uri.Normal(made) {
		return made, nil
	}
	b, err := uri.AppendNormal(ex.Text.Buffer(), made)
	if err != nil {
		return "", err
	}
	return ex.Text.End(b), nil
}
