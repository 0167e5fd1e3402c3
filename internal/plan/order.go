package plan

import (
	"reflect"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/basicauth"
	"headgate/internal/feature/bodylimit"
	"headgate/internal/feature/clientip"
	"headgate/internal/feature/forwardauth"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/feature/ratelimit"
	"headgate/internal/feature/rewrite"
	"headgate/internal/feature/timeout"
	"headgate/internal/upstream"
)

// effective returns the features that act on a route. Most routes have none of
// their own, and then they are those of the route before.
func (c *compiler) effective(b *body) config.Features {
	own := !reflect.ValueOf(&b.settings.Features).Elem().IsZero()
	if own {
		return b.proxy.Effective(b.settings)
	}
	if c.shared.inherits != b.proxy {
		c.shared.inherits, c.shared.inherited = b.proxy, b.proxy.Effective(b.settings)
	}
	return c.shared.inherited
}

// filters puts the filters of a route into the order in which they act. This is
// the order of config.Features, with what every route has in its place. What sees
// every response stands first: responses pass the filters backwards.
func (c *compiler) filters(b *body) error {
	f := c.effective(b)
	b.gate = c.gate(b, &f)
	c.around(b, &f)
	rules, err := c.headers(f.Headers)
	if err != nil {
		return err
	}
	b.add(rules.response)
	c.errorPages(b, f.ErrorPages)
	if err := c.admission(b, &f); err != nil {
		return err
	}
	if err := c.elsewhere(b, &f); err != nil {
		return err
	}
	if f.RequestBodyLimit != nil {
		b.filters = append(b.filters, bodylimit.Compile(*f.RequestBodyLimit))
	}
	if f.RequestTimeout != nil && b.servers != nil {
		b.filters = append(b.filters, c.timeout(*f.RequestTimeout))
	}
	if err := c.signIn(b, &f); err != nil {
		return err
	}
	if b.servers == nil {
		return nil // nobody gets a path
	}
	if isSticky(b.settings) {
		b.filters = append(b.filters, c.affinity(b).Filter())
	}
	mapped, err := rewrite.Compile(f.Rewrite, mapping(b))
	if err != nil {
		return err
	}
	b.add(mapped)
	b.add(c.forward(b.proxy))
	b.add(rules.request)
	return nil
}

// add adds a filter unless it does nothing.
func (b *body) add(f exchange.Filter) {
	if f.Request != nil || f.Response != nil {
		b.filters = append(b.filters, f)
	}
}

// admission puts in front who the client is, and whether it may come in.
func (c *compiler) admission(b *body, f *config.Features) error {
	lists := clientip.Lists{Refresh: c.config.CDNNetworks, Values: c.house.Values, Kept: c.house.Inputs.List}
	client, err := once(c.shared.clientIP, f.ClientIP, c.env, func(settings *clientip.Config, env exchange.Env) (exchange.Filter, error) {
		return clientip.Compile(settings, lists, env)
	})
	if err != nil {
		return err
	}
	b.filters = append(b.filters, client)
	if f.IPFilter != nil {
		filter, err := once(c.shared.ipFilter, f.IPFilter, c.env, ipfilter.Compile)
		if err != nil {
			return err
		}
		b.filters = append(b.filters, filter)
	}
	if f.RateLimit != nil && !f.RateLimit.AfterSignIn() {
		return c.rateLimit(b, f.RateLimit)
	}
	return nil
}

// signIn adds who has to sign in, and what depends on who did.
func (c *compiler) signIn(b *body, f *config.Features) error {
	if f.BasicAuth != nil {
		scope := scopeOf(b, f.BasicAuth == b.settings.BasicAuth)
		filter, err := once(c.shared.basicAuth, f.BasicAuth, c.env, func(settings *basicauth.Config, env exchange.Env) (exchange.Filter, error) {
			return basicauth.Compile(settings, scope, env)
		})
		if err != nil {
			return err
		}
		b.filters = append(b.filters, filter)
	}
	if f.ForwardAuth != nil {
		scope := scopeOf(b, f.ForwardAuth == b.settings.ForwardAuth)
		filter, err := once(c.shared.forwardAuth, f.ForwardAuth, c.env, func(settings *forwardauth.Config, env exchange.Env) (exchange.Filter, error) {
			return forwardauth.Compile(settings, scope, env)
		})
		if err != nil {
			return err
		}
		b.filters = append(b.filters, filter)
	}
	if f.RateLimit != nil && f.RateLimit.AfterSignIn() {
		return c.rateLimit(b, f.RateLimit)
	}
	return nil
}

// scopeOf names whose settings those of a route are: its own, or its proxy's.
func scopeOf(b *body, own bool) string {
	scope := "proxy " + b.proxy.Name
	if own {
		scope += ", route " + b.path()
	}
	return scope
}

// rateLimit adds a rate limit. The proxy's is one for all routes that have none
// of their own.
func (c *compiler) rateLimit(b *body, settings *ratelimit.Config) error {
	scope := scopeOf(b, settings == b.settings.RateLimit)
	filter, err := once(c.shared.rateLimit, settings, c.env, func(settings *ratelimit.Config, env exchange.Env) (exchange.Filter, error) {
		return ratelimit.Compile(settings, scope, env)
	})
	if err == nil {
		b.filters = append(b.filters, filter)
	}
	return err
}

// once compiles settings that routes have from their proxy, or do not have, only
// once.
func once[C any](known map[*C]exchange.Filter, settings *C, env exchange.Env, compile func(*C, exchange.Env) (exchange.Filter, error)) (exchange.Filter, error) {
	filter, ok := known[settings]
	if ok {
		return filter, nil
	}
	filter, err := compile(settings, env)
	if err == nil {
		known[settings] = filter
	}
	return filter, err
}

// mapping is what the rewrite needs to know of a route.
func mapping(b *body) rewrite.Route {
	out := rewrite.Route{Prefix: b.prefix, Strip: b.settings.StripPrefix}
	host := b.servers.Host()
	for _, s := range b.servers.List() {
		side := rewrite.Server{URL: s.URL, Base: s.Base, Authority: host.Fixed}
		if host.Upstream {
			side.Authority = s.Authority
		}
		out.Servers = append(out.Servers, side)
	}
	return out
}

// forward returns the filter of the forwarded fields.
func (c *compiler) forward(p *config.Proxy) exchange.Filter {
	want := forwarding{p.ForwardedStyle, p.ViaStyle}
	filter, known := c.shared.forward[want]
	if known {
		return filter
	}
	style := upstream.Compat
	switch want.style {
	case config.ForwardedRFC7239:
		style = upstream.RFC7239
	case config.ForwardedOff:
		style = upstream.Off
	}
	filter = upstream.Forward(style, want.via == config.ViaRFC9110)
	c.shared.forward[want] = filter
	return filter
}

// timeout returns the filter of a time-out; most routes have the same.
func (c *compiler) timeout(limit timeout.Config) exchange.Filter {
	filter, known := c.shared.timeout[limit]
	if !known {
		filter = timeout.Compile(limit)
		c.shared.timeout[limit] = filter
	}
	return filter
}
