package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/balance"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/basicauth"
	"headgate/internal/feature/bodylimit"
	"headgate/internal/feature/cache"
	"headgate/internal/feature/clientip"
	"headgate/internal/feature/fixed"
	"headgate/internal/feature/forwardauth"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/feature/ratelimit"
	"headgate/internal/feature/redirects"
	"headgate/internal/feature/rewrite"
	"headgate/internal/feature/timeout"
	"headgate/internal/health"
	"headgate/internal/metrics"
	"headgate/internal/schema"
	"headgate/internal/target"
	"headgate/internal/upstream"
	"headgate/internal/uri"
)

// Route is a route of a proxy on one port.
type Route struct {
	*body
	place    exchange.Place
	pipeline exchange.Pipeline
}

// body is what a route is on every port of its proxy.
type body struct {
	proxy    *config.Proxy
	settings *config.Route
	number   int    // its place in the proxy's list
	prefix   string // the path in its one form, without a slash at its end
	connect  time.Duration
	filters  []exchange.Filter
	source   exchange.Source
	servers  *upstream.Servers // nil for a fixed response
	cache    *cache.Cache      // nil without one
	// redirects are the rules that act on the route.
	redirects redirects.Config
}

// path returns the route's path as it is shown.
func (b *body) path() string {
	if b.prefix == "" {
		return "/"
	}
	return b.prefix
}

// shared is what routes have in common.
type shared struct {
	clientIP    map[*clientip.Config]exchange.Filter
	ipFilter    map[*ipfilter.Config]exchange.Filter
	rateLimit   map[*ratelimit.Config]exchange.Filter
	basicAuth   map[*basicauth.Config]exchange.Filter
	forwardAuth map[*forwardauth.Config]exchange.Filter
	forward     map[forwarding]exchange.Filter
	timeout     map[timeout.Config]exchange.Filter
	upstream    upstream.Settings
	settings    string          // the same as text
	ejection    health.Ejection // what routes have that say nothing of it
	content     content
	keyBuffer   []byte

	// inherited are the features that a route without its own has from the proxy
	// inherits.
	inherits  *config.Proxy
	inherited config.Features
}

// forwarding is how a proxy wants the forwarded fields.
type forwarding struct {
	style config.ForwardedStyle
	via   config.ViaStyle
}

func newShared(cfg *config.Config) shared {
	u := &cfg.Upstreams
	s := shared{
		clientIP: map[*clientip.Config]exchange.Filter{}, ipFilter: map[*ipfilter.Config]exchange.Filter{},
		rateLimit: map[*ratelimit.Config]exchange.Filter{}, basicAuth: map[*basicauth.Config]exchange.Filter{},
		forwardAuth: map[*forwardauth.Config]exchange.Filter{},
		content:     newContent(),
		forward:     map[forwarding]exchange.Filter{}, timeout: map[timeout.Config]exchange.Filter{},
	}
	s.upstream = upstream.Settings{
		IdleTimeout:     u.IdleTimeout.D(),
		IdleConnections: u.IdleConnections,
		BodyIdle:        u.BodyIdleTimeout.D(),
		HeadSize:        int(u.HeadSize),
		ResolveInterval: u.ResolveInterval.D(),
		Resolvers:       u.NameServers(),
	}
	s.ejection = config.NewRoute().Ejection
	s.settings = fmt.Sprintf("%+v", s.upstream)
	return s
}

// mostFilters is how many filters a route has room for from the beginning. More
// find their own.
const mostFilters = 5

// bodies compiles the routes of a proxy. With ten thousand proxies memory is
// what takes the time, so the parts of all routes of one lie together.
func (c *compiler) bodies(p *config.Proxy, at schema.Place) []*body {
	all := make([]body, len(p.Routes))
	out := make([]*body, 0, len(p.Routes))
	filters := make([]exchange.Filter, len(p.Routes)*mostFilters)
	for i, r := range p.Routes {
		b := &all[i]
		*b = body{proxy: p, settings: r, number: i, connect: r.Timeouts.Connect.D()}
		b.filters = filters[i*mostFilters : i*mostFilters : (i+1)*mostFilters]
		if err := c.body(b); err != nil {
			place := at.Field("routes").Index(i).Called("route", r.Path)
			if fault := (*serverFault)(nil); errors.As(err, &fault) {
				fault.tell(place, r.Servers)
			} else {
				place.Problem(err.Error(), "")
			}
			continue
		}
		out = append(out, b)
	}
	return out
}

// routes puts the routes of a proxy on a port.
func (c *compiler) routes(port *Port, p *config.Proxy, bodies []*body) []*Route {
	logged := c.config.AccessLog.Enabled
	if p.AccessLog != nil {
		logged = p.AccessLog.Enabled
	}
	all := make([]Route, len(bodies))
	out := make([]*Route, len(bodies))
	tell := make([]func(*exchange.Exchange), 0, len(bodies)*mostDone)
	for i, b := range bodies {
		r := &all[i]
		r.body = b
		r.place = exchange.Place{Port: port.Name(), Proxy: p.Name, Route: b.path()}
		tell = c.appendDone(tell[len(tell):], r.place, logged)
		r.pipeline = exchange.Pipeline{Filters: b.filters, Source: b.source, Log: c.house.Log, Tunnels: c.house.Tunnels, Alternative: port.tells(p), Done: slices.Clip(tell)}
		out[i] = r
		if len(b.redirects) > 0 {
			c.sending = append(c.sending, sending{port, r})
		}
	}
	return out
}

// mostDone is how many hear of an exchange that is done.
const mostDone = 2

// appendDone appends what hears of the finished exchanges of a place.
func (c *compiler) appendDone(out []func(*exchange.Exchange), place exchange.Place, logged bool) []func(*exchange.Exchange) {
	if c.house.Metrics != nil {
		counter := c.house.Metrics.Route(place)
		c.plan.counters = append(c.plan.counters, counter)
		out = append(out, counter.Done)
	}
	if logged && c.house.Record != nil {
		out = append(out, c.house.Record)
	}
	return out
}

// body compiles a route. Settings that were checked give no error.
func (c *compiler) body(b *body) error {
	prefix, err := onePath(b.settings.Path)
	if err != nil {
		return err
	}
	b.prefix = strings.TrimSuffix(prefix, "/")
	if b.settings.FixedResponse != nil {
		b.source, err = fixed.Compile(b.settings.FixedResponse)
	} else {
		err = c.servers(b)
	}
	if err == nil {
		err = c.mirror(b)
	}
	if err != nil {
		return err
	}
	return c.filters(b)
}

// onePath returns the one form of a path.
func onePath(path string) (string, error) {
	if uri.Normal(path) {
		return path, nil
	}
	b, err := uri.AppendNormal(nil, path)
	return string(b), err
}

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
	lists := clientip.Lists{Refresh: c.config.CDNNetworks, StateDir: c.house.StateDir, Asleep: c.house.Rehearsal}
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

// isSticky reports whether clients of a route keep their server.
func isSticky(r *config.Route) bool { return r.StickyCookie != nil && r.StickyCookie.Enabled }

// affinity returns what a route needs for its sticky cookie; nil without one.
func (c *compiler) affinity(b *body) *upstream.Affinity {
	if !isSticky(b.settings) {
		return nil
	}
	return &upstream.Affinity{Sticky: b.settings.StickyCookie, Key: c.affinityKey(), Proxy: b.proxy.Name, Route: b.path()}
}

// affinityKey returns the key of all sticky cookies.
func (c *compiler) affinityKey() *upstream.AffinityKey {
	return c.env.Keep("affinity key\x00"+c.house.StateDir, func() exchange.Kept {
		return upstream.OpenAffinityKey(c.house.StateDir, !c.house.Rehearsal, c.house.Log)
	}).(*upstream.AffinityKey)
}

// keptServers is the source of a route, carried over while nothing of it
// changes. Its pools are kept, and retired, by themselves.
type keptServers struct {
	*upstream.Servers
	counters []retirer
}

// Retire takes the servers' counters off the page.
func (k *keptServers) Retire() {
	for _, c := range k.counters {
		c.Retire()
	}
}

// servers opens the source of a route, or carries it over.
func (c *compiler) servers(b *body) error {
	secure, err := c.secureServers(b)
	if err != nil {
		return err
	}
	key := c.serversKey(b, secure)
	if kept := c.keeper.carry(key); kept != nil {
		b.servers = kept.(*keptServers).Servers
		b.source = b.servers
		return nil
	}
	list, err := targets(b.settings)
	if err != nil {
		return err
	}
	policy := policy(b)
	policy.Affinity = c.affinity(b)
	b.servers = c.env.Keep(string(key), func() exchange.Kept {
		kept := &keptServers{}
		for i, s := range secure {
			if s != nil {
				list[i].Secure = s.keep(c.env)
			}
		}
		kept.counters = c.countTries(b, list)
		if policy.Retry != nil && c.house.Metrics != nil {
			counter := c.house.Metrics.Retries(b.proxy.Name, b.path())
			kept.counters = append(kept.counters, counter)
			policy.Retried = counter.Told
		}
		kept.Servers = upstream.New(list, c.shared.upstream, policy, c.env)
		c.showServers(b, kept)
		return kept
	}).(*keptServers).Servers
	b.source = b.servers
	return nil
}

// showServers has the metrics tell how the servers of a route stand.
func (c *compiler) showServers(b *body, kept *keptServers) {
	if c.house.Metrics == nil {
		return
	}
	for i := range kept.List() {
		kept.counters[i].(*metrics.Server).Stands(kept.Place(i))
	}
	if kept.Bounded() {
		kept.counters = append(kept.counters, c.house.Metrics.Queue(b.proxy.Name, b.path(), kept.Waiting))
	}
}

// countTries gives the servers of a route their counters, and returns those.
func (c *compiler) countTries(b *body, list []upstream.Target) []retirer {
	if c.house.Metrics == nil {
		return nil
	}
	counters := make([]retirer, len(list), len(list)+1)
	for i := range list {
		counter := c.house.Metrics.Server(b.proxy.Name, b.path(), list[i].URL)
		counters[i], list[i].Tried = counter, counter.Tried
	}
	return counters
}

// source is exchange.Env.Source: a single server that no route has.
func (c *compiler) source(url string) (exchange.Source, error) {
	s := config.Server{URL: url, Weight: 1}
	list, err := targets(&config.Route{Servers: []*config.Server{&s}})
	if err != nil {
		return nil, err
	}
	if t, err := s.Target(); err == nil && t.Scheme == target.HTTPS {
		list[0].Secure = &upstream.Secure{Name: t.Host, Key: t.Host}
	}
	return upstream.New(list, c.shared.upstream, upstream.Policy{Proxy: "alone", Host: upstream.HostField{Upstream: true}}, c.env), nil
}

// policy returns what a route wants of its servers.
func policy(b *body) upstream.Policy {
	r := b.settings
	choice, _, _ := balance.Parse(r.LoadBalancing)
	return upstream.Policy{
		Host: hostField(b.proxy.HostHeader), Retry: r.Retry, Expand: true,
		Proxy: b.proxy.Name, Route: b.path(), Balance: choice, SlowStart: r.SlowStart.D(),
		QueueLength: r.Queue.Length, QueueTimeout: r.Queue.Timeout.D(),
		Health: upstream.Health{Check: r.HealthCheck, Ejection: r.Ejection, Breaker: r.CircuitBreaker},
	}
}

// hostField returns which Host servers get.
func hostField(setting string) upstream.HostField {
	switch setting {
	case config.HostPreserve, "":
		return upstream.HostField{}
	case config.HostUpstream:
		return upstream.HostField{Upstream: true}
	}
	return upstream.HostField{Fixed: setting}
}

// targets parses the URLs of a route's servers.
func targets(r *config.Route) ([]upstream.Target, error) {
	out := make([]upstream.Target, len(r.Servers))
	for i, s := range r.Servers {
		t, err := s.Target()
		if err != nil {
			return nil, err
		}
		out[i] = upstream.Target{URL: s.URL, Address: t.Address(), Authority: t.Authority(), Base: t.BasePath,
			Weight: s.Weight, MaxConnections: s.MaxConnections, Backup: s.Backup}
		switch {
		case t.Socket != "":
			out[i].Network = "unix"
		case t.Service != "":
			out[i].Network = "srv"
		}
		out[i].HTTP2 = t.Scheme == target.H2C || t.Scheme == target.UnixH2C
	}
	return out, nil
}

// serversKey names a route's source and everything it depends on. The next call
// overwrites it.
func (c *compiler) serversKey(b *body, secure []*secureServer) []byte {
	key := append(c.shared.keyBuffer[:0], "servers "...)
	for _, s := range []string{b.proxy.Name, b.prefix, c.shared.settings, b.proxy.HostHeader, b.settings.LoadBalancing} {
		key = append(append(key, s...), '\n')
	}
	for i, s := range b.settings.Servers {
		key = append(append(key, s.URL...), ' ')
		key = append(strconv.AppendInt(key, int64(s.Weight), 10), ' ')
		key = strconv.AppendInt(key, int64(s.MaxConnections), 10)
		if s.Backup {
			key = append(key, " backup"...)
		}
		key = append(key, '\n')
		if secure != nil && secure[i] != nil {
			key = append(append(key, secure[i].Key...), '\n')
		}
	}
	for _, n := range []int64{int64(b.settings.SlowStart), int64(b.settings.Queue.Length), int64(b.settings.Queue.Timeout)} {
		key = append(strconv.AppendInt(key, n, 10), ' ')
	}
	if e := b.settings.Ejection; e != c.shared.ejection {
		key = fmt.Appendf(key, "ejection %+v\n", e)
	}
	if h := b.settings.HealthCheck; h != nil {
		key = fmt.Appendf(key, "check %+v\n", *h)
	}
	if b := b.settings.CircuitBreaker; b != nil {
		key = fmt.Appendf(key, "breaker %+v\n", *b)
	}
	if isSticky(b.settings) {
		key = fmt.Appendf(key, "sticky %+v\n", *b.settings.StickyCookie)
	}
	if r := b.settings.Retry; r != nil {
		key = fmt.Appendf(key, "retry %+v\n", *r)
	}
	c.shared.keyBuffer = key
	return key
}
