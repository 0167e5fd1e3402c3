package cache

import (
	"encoding/binary"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/uri"
)

// A key distinguishes stored responses before Vary does: scheme, host, path,
// query and route, and the Host field as it was written. Everything in a plain
// request that changes the server's response is in it or in the fields that
// Vary names: a client cannot make others get a response to something else.
//
// The part of the key up to the route is hashed, with the host in its one form,
// so that a purge finds what is stored of a URL however the Host was written.
//
//	https \0 shop.example.com \0 /a?b=c \0 /route \0 Shop.example.com:443
//
// A route with two groups of servers adds the group.

// keyOf makes the key of a request in h.
func (c *Cache) keyOf(h *hit, ex *exchange.Exchange) {
	rq := &ex.Request
	b := append(h.key[:0], rq.Scheme...)
	b = append(b, 0)
	b = appendHost(b, rq.Host, rq.Scheme)
	b = append(b, 0)
	b = append(b, rq.Path...)
	b = c.ignored.appendQuery(b, rq.Query)
	h.url = len(b)
	b = append(b, 0)
	b = append(b, ex.Place.Route...)
	b = append(b, 0)
	b = append(b, rq.Host...)
	if c.partition != nil {
		b = binary.LittleEndian.AppendUint32(append(b, 0), c.partition(ex))
	}
	h.key = b
	h.hash = c.store.hash(b[:h.url])
}

// appendHost appends a host in its one form: lower case, without a dot at the
// end and without the port that the scheme has anyway.
func appendHost(b []byte, host, scheme string) []byte {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	host = strings.TrimSuffix(host, port)
	host = strings.TrimSuffix(host, ".")
	for i := 0; i < len(host); i++ {
		c := host[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b = append(b, c)
	}
	return b
}

// ignored are the query parameters that make no difference.
type ignored struct {
	all      bool
	names    []string
	prefixes []string
}

func newIgnored(names []string) ignored {
	var g ignored
	for _, name := range names {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			g.prefixes = append(g.prefixes, prefix)
			g.all = g.all || prefix == ""
			continue
		}
		g.names = append(g.names, name)
	}
	return g
}

func (g *ignored) has(name string) bool {
	for _, n := range g.names {
		if n == name {
			return true
		}
	}
	for _, p := range g.prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// appendQuery appends a query, with its "?", without what makes no difference.
// What is left keeps its order and its writing.
func (g *ignored) appendQuery(b []byte, query string) []byte {
	if len(g.names)+len(g.prefixes) == 0 || query == "" {
		return append(b, query...)
	}
	if g.all {
		return b
	}
	sep := byte('?')
	for rest := query[1:]; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		name, _, _ := strings.Cut(pair, "=")
		if g.has(name) {
			continue
		}
		b = append(append(b, sep), pair...)
		sep = '&'
	}
	return b
}

// touches reports whether a query has something that makes no difference.
func (g *ignored) touches(query string) bool {
	return len(g.names)+len(g.prefixes) > 0 && string(g.appendQuery(nil, query)) != query
}

// overrides are fields with which some servers let a client change the method or
// the path of a request. A request with one of them, or with an alias of one,
// bypasses the cache: its response would be stored for others under the key of a
// plain one.
var overrides = []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Rewrite-URL", "X-Original-URL"}

// passes returns why a request bypasses the cache; "" if it does not.
func passes(ex *exchange.Exchange) (status string) {
	rq := &ex.Request
	switch {
	case rq.Method != "GET" && rq.Method != "HEAD":
		return statusMethod
	case ex.Gated:
		return statusBypass
	case rq.Upgrade != "" || rq.Body != nil || rq.Length != 0:
		return statusBypass
	case rq.Header.Has(header.IfMatch) || rq.Header.Has(header.IfUnmodifiedSince):
		// Not for caches to judge (RFC 9111, section 4.3.2).
		return statusBypass
	}
	if overridden(&rq.Header) {
		return statusBypass
	}
	return ""
}

// overridden reports whether a request has a field that may change its method or path.
func overridden(list *header.List) bool {
	fields := list.All()
	for i := range fields {
		f := &fields[i]
		if (f.ID == header.Other || f.ID == header.XOriginalURL) && len(f.Name) > 12 && (f.Name[0]|0x20) == 'x' && isOverride(f) {
			return true
		}
	}
	return false
}

func isOverride(f *header.Field) bool {
	for _, name := range overrides {
		if header.Twins(f.Name, name) {
			return true
		}
	}
	return false
}

// normalPath returns a path in the one form that requests have.
func normalPath(path string) string {
	if uri.Normal(path) {
		return path
	}
	b, err := uri.AppendNormal(nil, path)
	if err != nil {
		return path
	}
	return string(b)
}
