package plan

import (
	"errors"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/basicauth"
	"headgate/internal/feature/bodylimit"
	"headgate/internal/feature/clientip"
	"headgate/internal/feature/compression"
	"headgate/internal/feature/cors"
	"headgate/internal/feature/errorpages"
	"headgate/internal/feature/forwardauth"
	"headgate/internal/feature/headers"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/feature/maintenance"
	"headgate/internal/feature/ratelimit"
	"headgate/internal/feature/redirects"
	"headgate/internal/feature/rewrite"
	"headgate/internal/feature/securityheaders"
	"headgate/internal/feature/timeout"
	"headgate/internal/feature/tohttps"
	"headgate/internal/schema"
	"headgate/internal/upstream"
)

// room is a row of the table of rooms.
type room struct {
	// name is the setting's, and the filter's unless that does one of several things.
	name string
	// of is for whom the room compiles.
	of scope
	// answers are the reasons for which it answers in place of the source.
	answers []exchange.Reason
	// alike returns what a room depends on that compiles for each route: routes with equal
	// values share what is compiled. It returns nil where a route shares it with none; nil
	// shares nothing.
	alike func(b *body, settings any) any
	// stream compiles the room for a TCP or UDP proxy that has its settings; nil where
	// the room does not act on those. A room that is switched off gives no Admit.
	stream func(f *config.StreamFeatures, env exchange.Env) (exchange.StreamFilter, error)
	// add puts what the room compiles to into a route that has its settings.
	add func(c *compiler, b *body, f *config.Features) error
}

// scope says for which routes a room compiles, and what they share.
type scope uint8

const (
	// memoized rooms compile settings once for all routes that have them.
	memoized scope = 1 << iota
	// always means that every route has the room, without settings too.
	always
	// served means that only routes with servers have it.
	served
	// again marks the second row of a room that has settings in two.
	again
)

// sources is the table of the features that wrap the source of a route, the innermost
// first.
func sources() []room {
	return []room{
		{name: "mirror", of: served, add: func(c *compiler, b *body, _ *config.Features) error { return c.mirror(b) }},
		around("compression", 0, func(f *config.Features) *compression.Config { return f.Compression }, compression.Wrap),
		{name: "cache", of: served, answers: []exchange.Reason{exchange.NotCached}, add: (*compiler).cache},
	}
}

// filters is the table of filters, in the order in which they process a request; responses
// pass them in reverse order, so that filters that must see every response are first. A new
// feature is one line here.
func (c *compiler) filters() []room {
	lists := clientip.Lists{Refresh: c.config.CDNNetworks, Values: c.house.Values, Kept: c.house.Inputs.List}
	client := func(settings *clientip.Config, env exchange.Env) (exchange.Filter, error) {
		return clientip.Compile(settings, lists, env)
	}
	return []room{
		list("headers", memoized, func(f *config.Features) headers.Config { return f.Headers }, headers.CompileResponse),
		feature("security_headers", memoized, func(f *config.Features) *securityheaders.Config { return f.SecurityHeaders }, securityheaders.Compile),
		feature("cors", memoized, func(f *config.Features) *cors.Config { return f.CORS }, cors.CompileResponse),
		list("error_pages", memoized, func(f *config.Features) errorpages.Config { return f.ErrorPages }, errorpages.Compile),
		feature("client_ip", memoized|always, func(f *config.Features) *clientip.Config { return f.ClientIP }, client),
		{name: "gate", of: again, add: (*compiler).gateGuard},
		{name: "tracing", add: (*compiler).tracing},
		{name: "bans", answers: []exchange.Reason{exchange.Banned}, add: (*compiler).banFilter},
		onStreams(feature("ip_filter", memoized, func(f *config.Features) *ipfilter.Config { return f.IPFilter }, ipfilter.Compile, exchange.AddressDenied),
			func(f *config.StreamFeatures) *ipfilter.Config { return f.IPFilter }, ipfilter.CompileStream),
		feature("rate_limit", memoized, rateLimit(false), ratelimit.Compile, exchange.RateLimited),
		feature("redirect_http_to_https", memoized, func(f *config.Features) *tohttps.Config { return f.RedirectHTTPToHTTPS }, tohttps.Compile, exchange.Redirected, exchange.BadRequest),
		feature("cors", memoized|again, func(f *config.Features) *cors.Config { return f.CORS }, cors.CompileRequest, exchange.CORSPreflight),
		feature("maintenance", memoized, func(f *config.Features) *maintenance.Config { return f.Maintenance }, maintenance.Compile, exchange.Maintenance),
		list("redirects", memoized, func(f *config.Features) redirects.Config { return f.Redirects }, redirects.Compile, exchange.Redirected, exchange.BadRequest, exchange.URITooLong),
		feature("request_body_limit", memoized, func(f *config.Features) *bodylimit.Config { return f.RequestBodyLimit }, bodylimit.Compile, exchange.BodyTooLarge),
		feature("request_timeout", memoized|served, func(f *config.Features) *timeout.Config { return f.RequestTimeout }, timeout.Compile),
		{name: "gate", answers: []exchange.Reason{exchange.AuthRequired, exchange.GateDenied, exchange.GateNeedsHTTPS, exchange.SignInUnavailable, exchange.Redirected}, add: (*compiler).peopleGate},
		feature("basic_auth", memoized, func(f *config.Features) *basicauth.Config { return f.BasicAuth }, basicauth.Compile, exchange.AuthRequired, exchange.BadRequest),
		feature("forward_auth", memoized, func(f *config.Features) *forwardauth.Config { return f.ForwardAuth }, forwardauth.Compile, exchange.AuthRequired, exchange.Loop),
		feature("rate_limit", memoized, rateLimit(true), ratelimit.Compile, exchange.RateLimited),
		{name: "split", of: served, add: (*compiler).splitFilter},
		{name: "sticky_cookie", of: served, add: (*compiler).sticky},
		whereAlike(sameMapping, "rewrite", served|always, func(f *config.Features) *rewrite.Config { return f.Rewrite }, rewrite.Compile, exchange.BadRequest),
		{name: "forwarded", of: served | always, add: (*compiler).forwarded},
		list("headers", memoized|served, func(f *config.Features) headers.Config { return f.Headers }, headers.CompileRequest, exchange.HeadTooLarge),
	}
}

// rateLimit returns the settings of a limit before authentication, or after it because it
// counts by user.
func rateLimit(afterSignIn bool) func(f *config.Features) *ratelimit.Config {
	return func(f *config.Features) *ratelimit.Config {
		if f.RateLimit == nil || f.RateLimit.AfterSignIn() != afterSignIn {
			return nil
		}
		return f.RateLimit
	}
}

// feature is the row of a room with settings of its own.
func feature[C any](name string, of scope, get func(*config.Features) *C, compile func(*C, exchange.Env) (exchange.Filter, error), answers ...exchange.Reason) room {
	return whereAlike(nil, name, of, get, compile, answers...)
}

// whereAlike is the row of a room that compiles for each route, once for those that are
// alike.
func whereAlike[C any](alike func(*body, any) any, name string, of scope, get func(*config.Features) *C, compile func(*C, exchange.Env) (exchange.Filter, error), answers ...exchange.Reason) room {
	r := room{name: name, of: of, answers: answers, alike: alike}
	r.add = func(c *compiler, b *body, f *config.Features) error {
		settings := get(f)
		if settings == nil && of&always == 0 {
			return nil
		}
		own := settings != nil && settings == get(&b.settings.Features)
		return c.addRoom(&r, b, own, settings, func(env exchange.Env) (exchange.Filter, error) { return compile(settings, env) })
	}
	return r
}

// list is the row of a room whose settings are a list.
func list[E any, C ~[]E](name string, of scope, get func(*config.Features) C, compile func(C, exchange.Env) (exchange.Filter, error), answers ...exchange.Reason) room {
	r := room{name: name, of: of, answers: answers}
	r.add = func(c *compiler, b *body, f *config.Features) error {
		settings := get(f)
		if len(settings) == 0 {
			return nil
		}
		mine := get(&b.settings.Features)
		own := len(mine) > 0 && &mine[0] == &settings[0]
		return c.addRoom(&r, b, own, &settings[0], func(env exchange.Env) (exchange.Filter, error) { return compile(settings, env) })
	}
	return r
}

// around is the row of a feature that wraps the source.
func around[C any](name string, of scope, get func(*config.Features) *C, wrap func(*C, exchange.Source, exchange.Env) (exchange.Source, error)) room {
	r := room{name: name, of: of}
	r.add = func(c *compiler, b *body, f *config.Features) (err error) {
		if settings := get(f); settings != nil {
			b.source, err = wrap(settings, b.source, c.envFor(b, settings == get(&b.settings.Features)))
		}
		return err
	}
	return r
}

// switchable is settings that can be disabled where they are set.
type switchable[C any] interface {
	*C
	Off() bool
}

// onStreams makes a room act on TCP and UDP proxies too.
func onStreams[C any, P switchable[C]](r room, get func(*config.StreamFeatures) P, compile func(P, exchange.Env) (exchange.StreamFilter, error)) room {
	r.stream = func(f *config.StreamFeatures, env exchange.Env) (exchange.StreamFilter, error) {
		settings := get(f)
		if settings == nil || settings.Off() {
			return exchange.StreamFilter{}, nil
		}
		return compile(settings, env)
	}
	return r
}

// addRoom compiles a room's settings, or takes what was compiled of them, and adds
// the filter to a route unless it does nothing.
func (c *compiler) addRoom(r *room, b *body, own bool, settings any, compile func(exchange.Env) (exchange.Filter, error)) error {
	var key any
	switch {
	case r.of&memoized != 0:
		key = settings
	case r.alike != nil:
		key = r.alike(b, settings)
	}
	of := func() (exchange.Filter, error) {
		env := c.envFor(b, own)
		if r.of&memoized == 0 {
			env.Route = routeOf(b)
		}
		return compile(env)
	}
	if key == nil {
		f, err := of()
		if err == nil {
			c.shared.lists.add(f)
		}
		return err
	}
	f, err := c.once(memoKey{r.key(), key}, of)
	var at placed
	if errors.As(err, &at) {
		at.Place(c.owner(b, own).Field(r.name)).Problem(err.Error(), "write the path of a file that can be read; a relative path starts at the directory of the configuration file")
		c.shared.memo[memoKey{r.key(), key}] = &shareable{} // it is reported once
		return nil
	}
	if err == nil {
		c.shared.lists.share(f)
	}
	return err
}

// sameMapping is what the mapping of a route's paths depends on.
func sameMapping(b *body, settings any) any {
	list := b.list()
	if len(list) != 1 {
		return nil
	}
	return mapping{settings, b.settings.StripPrefix, b.prefix, list[0].URL, list[0].Base, list[0].Authority, b.servers.Host()}
}

// mapping is how the paths of a route with one server are mapped.
type mapping struct {
	settings             any
	strip                bool
	prefix               string
	url, base, authority string
	host                 upstream.HostField
}

// key distinguishes the two rows of a feature, each of which has half of it.
func (r *room) key() string {
	if r.of&(served|again) != 0 {
		return r.name + " again"
	}
	return r.name
}

// placed is an error of a room that knows which of its settings names a file that
// cannot be used.
type placed interface {
	error
	Place(room schema.Place) schema.Place
}

// envFor returns what a room may ask for, whose settings are the route's own or its
// proxy's.
func (c *compiler) envFor(b *body, own bool) exchange.Env {
	env := c.env
	env.Scope = scopeOf(b, own)
	env.SecurePorts = c.securePorts(b.proxy)
	return env
}

// routeOf is what a room may know of a route.
func routeOf(b *body) exchange.Route {
	out := exchange.Route{Prefix: b.prefix, Strip: b.settings.StripPrefix}
	if b.servers == nil || b.scripts != nil {
		return out // a fixed response, files, or scripts, which know the paths of clients
	}
	host := b.servers.Host()
	for _, s := range b.list() {
		side := exchange.RouteServer{URL: s.URL, Base: s.Base, Authority: host.Fixed}
		if host.Upstream {
			side.Authority = s.Authority
		}
		out.Servers = append(out.Servers, side)
	}
	return out
}
