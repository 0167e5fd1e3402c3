package rewrite

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/uri"
)

// mend is the way back. It is immutable.
type mend struct {
	client  string // what stands before the rest on the client's side
	servers []exchange.RouteServer
}

// newMend returns the way back, and false if client and servers see the same
// paths and the same Host. It takes the servers over: their base paths become
// what stands before the rest on their side.
func newMend(m *mapping, route exchange.Route) (b mend, differs bool) {
	b.servers = route.Servers
	if m.strips {
		b.client = route.Prefix
	}
	for i := range b.servers {
		s := &b.servers[i]
		s.Base = strings.TrimSuffix(s.Base, "/") + m.prefix
		differs = differs || s.Base != b.client || s.Authority != ""
	}
	return b, differs
}

func (b *mend) response(ex *exchange.Exchange) {
	rs := &ex.Response
	h := &rs.Header
	if rs.Ours || !h.Has(header.Location) && !h.Has(header.ContentLocation) && !h.Has(header.SetCookie) {
		return
	}
	s := b.server(answered(ex))
	if s == nil {
		return
	}
	all := h.All()
	for i := range all {
		switch f := &all[i]; f.ID {
		case header.Location, header.ContentLocation:
			f.Value = b.location(ex, s, f.Value)
		case header.SetCookie:
			f.Value = b.cookie(ex, s, f.Value)
		}
	}
}

// answered returns the URL of the server that the response is from. What comes out
// of a cache is from the one that answered then.
func answered(ex *exchange.Exchange) string {
	if ex.Cache.Server != "" {
		return ex.Cache.Server
	}
	return ex.Server
}

func (b *mend) server(url string) *exchange.RouteServer {
	for i := range b.servers {
		if b.servers[i].URL == url {
			return &b.servers[i]
		}
	}
	return nil
}

// location maps a URI reference back. Relative ones hold as they are, and those
// of another authority are none of ours.
func (b *mend) location(ex *exchange.Exchange, s *exchange.RouteServer, value string) string {
	front, rest := splitReference(value)
	switch _, authority, found := strings.Cut(front, "//"); {
	case !found && !strings.HasPrefix(rest, "/"):
		return value
	case !found:
	case s.Authority != "" && sameAuthority(authority, s.Authority, "http"):
		// The server told its own address, which the client may not reach.
		front = ex.Text.Join(ex.Request.Scheme, "://", ex.Request.Host)
		value = ex.Text.Join(front, rest)
	case !sameAuthority(authority, ex.Request.Host, ex.Request.Scheme):
		return value
	}
	path, tail := rest, ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		path, tail = rest[:i], rest[i:]
	}
	if path == "" {
		path = "/"
	}
	before, after, ok := b.back(s, path)
	if !ok {
		return value
	}
	if before == "" && (after == "" || front == "" && isNetworkPath(after)) {
		before, after = "/", strings.TrimLeft(after, "/\\")
	}
	return ex.Text.Join(front, before, after, tail)
}

// splitReference cuts a URI reference behind its authority. Front is "" when
// there is none, or when the scheme is not HTTP's.
func splitReference(value string) (front, rest string) {
	from := strings.Index(value, "//")
	if from != 0 && (from < 2 || !isHTTP(value[:from])) {
		return "", value
	}
	from += len("//")
	if i := strings.IndexAny(value[from:], "/?#"); i >= 0 {
		return value[:from+i], value[from+i:]
	}
	return value, ""
}

// back maps a server's path to the client's: what to put in front of which rest
// of it. ok is false when it stays as it is.
func (b *mend) back(s *exchange.RouteServer, path string) (before, rest string, ok bool) {
	if s.Base == b.client || !uri.Below(path, s.Base) {
		return "", "", false
	}
	// A server that knows of the route's path has put it in front itself.
	if len(b.client) > len(s.Base) && uri.Below(path, b.client) {
		return "", "", false
	}
	return b.client, path[len(s.Base):], true
}

// isNetworkPath reports whether browsers take a path for the begin of an
// authority.
func isNetworkPath(path string) bool {
	return len(path) > 1 && path[0] == '/' && (path[1] == '/' || path[1] == '\\')
}

// isHTTP reports whether a scheme with its colon is one of HTTP.
func isHTTP(scheme string) bool {
	return header.EqualFold(scheme, "http:") || header.EqualFold(scheme, "https:")
}

// sameAuthority reports whether two authorities are the same host and port,
// where the port that a scheme has anyway may be left out.
func sameAuthority(a, b, scheme string) bool {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return header.EqualFold(strings.TrimSuffix(a, port), strings.TrimSuffix(b, port))
}

// cookie maps the Path attributes of a Set-Cookie value back (RFC 6265, section
// 5.2.4).
func (b *mend) cookie(ex *exchange.Exchange, s *exchange.RouteServer, value string) string {
	from := strings.IndexByte(value, ';')
	for from >= 0 {
		end := len(value)
		if i := strings.IndexByte(value[from+1:], ';'); i >= 0 {
			end = from + 1 + i
		}
		if made := b.cookiePath(ex, s, value[from+1:end]); made != "" {
			value = ex.Text.Join(value[:from+1], made, value[end:])
			end = from + 1 + len(made)
		}
		if from = end; from == len(value) {
			break
		}
	}
	return value
}

// cookiePath returns an attribute with its path mapped back, or "" if it is
// another attribute or needs no change.
func (b *mend) cookiePath(ex *exchange.Exchange, s *exchange.RouteServer, attribute string) string {
	name, path, _ := strings.Cut(attribute, "=")
	path = header.TrimOWS(path)
	if !header.EqualFold(header.TrimOWS(name), "path") || path == "" || path[0] != '/' {
		return ""
	}
	before, rest, ok := b.back(s, path)
	if !ok {
		return ""
	}
	if rest == "/" && before != "" {
		// A path with a slash at its end would leave out the one without.
		rest = ""
	}
	if before == "" && rest == "" {
		rest = "/"
	}
	return ex.Text.Join(name, "=", before, rest)
}
