// Package forwardauth lets requests pass that an auth server allows: a service such
// as Authelia, authentik or oauth2-proxy, which gets a subrequest for each request.
// This file is the filter; question.go is the subrequest, reply.go handles the
// response, signin.go redirects browsers to sign in, and kept.go caches responses
// for a moment.
//
// It fails closed: a request passes only when the auth server answered 2xx. It
// follows no redirects and sends no bodies.
package forwardauth

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/uri"
)

// Compile returns the filter. Valid settings cause no error.
func Compile(c *Config, env exchange.Env) (exchange.Filter, error) {
	c = c.full()
	base, query := splitQuery(c.URL)
	source, err := env.Source(base)
	if err != nil {
		return exchange.Filter{}, fmt.Errorf("forward_auth: %w", err)
	}
	r := &room{url: c.URL, source: source, query: query, timeout: c.Timeout.D(), skip: prefixes(c.SkipPaths), believe: c.TrustForwardHeader, user: -1}
	for i, name := range c.ResponseHeaders {
		r.names = append(r.names, named{header.Lookup(name), name})
		if r.user < 0 && tellsUser(name) {
			r.user = i
		}
	}
	if c.SigninURL != "" {
		if r.signin, err = parseSignin(c.SigninURL); err != nil {
			return exchange.Filter{}, fmt.Errorf("forward_auth: %w", err)
		}
	}
	if c.Cache != nil {
		r.kept = exchange.Keep(env, "forward_auth of "+env.Scope, c, func() *kept { return newKept(c.Cache) })
	}
	r.subrequests.New = func() any { return &exchange.Subrequest{} }
	return exchange.Filter{Name: "forward_auth", Request: r.request, Response: giveCookies, Owned: &exchange.Owned{Request: r.owns}}, nil
}

// room is a compiled forward_auth. It is immutable except for what it caches.
type room struct {
	url         string
	source      exchange.Source
	query       string
	timeout     time.Duration
	names       []named
	user        int // index in names of the field with the user name, -1 for none
	skip        []string
	believe     bool
	signin      *signin // nil without
	kept        *kept   // nil without
	subrequests sync.Pool
}

// named is a field that is copied.
type named struct {
	id   header.ID
	name string
}

func (n *named) is(f *header.Field) bool {
	return f.ID == n.id && (n.id != header.Other || f.Is(n.name))
}

// looksLike reports whether a server may confuse a field with this one.
func (n *named) looksLike(f *header.Field) bool { return n.is(f) || header.Twins(f.Name, n.name) }

// credential reports whether the auth server has to see what the client sends
// under this name.
func (n *named) credential() bool { return n.id == header.Authorization || n.id == header.Cookie }

// request sends a subrequest for a request, and lets it pass or answers it.
func (r *room) request(ex *exchange.Exchange) *exchange.Answer {
	skipped := r.skips(ex.Request.Path)
	r.forget(&ex.Request.Header, skipped)
	switch {
	case skipped:
		ex.Note("forward_auth sends no subrequest for this path")
		return nil
	case loops(&ex.Request.Header):
		return exchange.Fail(exchange.Loop, "forward_auth: loop detected: the url of the auth server leads to a route with the same forward_auth")
	case ex.Rehearsal:
		ex.Note("forward_auth would send a subrequest to " + r.url + "; assumed to be allowed")
		r.forget(&ex.Request.Header, true)
		ex.Personal = true
		return nil
	}
	sum, keeps := r.kept.sum(ex)
	if keeps && r.kept.letIn(r, ex, &sum) {
		return nil
	}
	e := r.subrequests.Get().(*exchange.Subrequest)
	defer r.subrequests.Put(e)
	defer e.Close()
	r.question(e, ex)
	answer := e.Send(r.source)
	ex.Times.Passed = exchange.Now()
	if answer != nil {
		return failed(answer)
	}
	if status := e.Response.Status; status < 200 || status > 299 {
		return r.refuse(ex, e)
	}
	r.letIn(ex, &e.Response.Header)
	if keeps {
		r.kept.remember(&sum, &e.Response.Header, r.names)
	}
	finish(e)
	return nil
}

// skips reports whether a path needs no subrequest. A path whose segments a server could
// interpret differently, such as "/open/..%2fadmin", is never skipped.
func (r *room) skips(path string) bool {
	for _, prefix := range r.skip {
		if uri.Below(path, prefix) {
			return uri.SpellingOf(path) != uri.Loose
		}
	}
	return false
}

// forget drops the fields that only the auth server may set. Credentials are
// kept until the subrequest, unless all is true.
func (r *room) forget(list *header.List, all bool) {
	if len(r.names) == 0 {
		return
	}
	list.DeleteFunc(func(f *header.Field) bool {
		for i := range r.names {
			if n := &r.names[i]; (all || !n.credential()) && n.looksLike(f) {
				return true
			}
		}
		return false
	})
}

// owns reports whether only the auth server may set a field.
func (r *room) owns(f *header.Field) bool {
	for i := range r.names {
		if r.names[i].looksLike(f) {
			return true
		}
	}
	return false
}

// giveCookies passes the cookies of the auth server to the client.
func giveCookies(ex *exchange.Exchange) {
	for _, value := range ex.Cookies {
		ex.Response.Header.Add(header.SetCookie, value)
	}
}

// tellsUser reports whether a field is one in which auth servers name the user:
// Remote-User, X-Auth-Request-User, X-authentik-username.
func tellsUser(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "-user") || strings.HasSuffix(name, "-username")
}

// prefixes removes the slashes at the ends of paths.
func prefixes(paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, strings.TrimSuffix(path, "/"))
	}
	return all
}

// asks is the value of a subrequest in CDN-Loop (RFC 8586), and maxDepth the
// maximum number of nested subrequests of headgate: an auth server behind a
// headgate with forward_auth of its own is allowed, one that leads back to the
// same route is not.
const (
	asks     = "headgate;asks"
	maxDepth = 2
)

// loops reports whether a request is the question about a question.
func loops(list *header.List) bool {
	if !list.Has(header.CDNLoop) {
		return false
	}
	n := 0
	for _, f := range list.All() {
		if f.ID == header.CDNLoop {
			n += strings.Count(f.Value, asks)
		}
	}
	return n >= maxDepth
}
