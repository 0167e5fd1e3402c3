package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/cache"
	"headgate/internal/feature/files"
	"headgate/internal/feature/fixed"
	gatefeature "headgate/internal/feature/gate"
	"headgate/internal/feature/redirects"
	"headgate/internal/feature/signin"
	people "headgate/internal/gate"
	"headgate/internal/matchers"
	"headgate/internal/proto/uri"
	"headgate/internal/schema"
	"headgate/internal/server/health"
	"headgate/internal/server/mirror"
	"headgate/internal/upstream"
)

// Route is a route of a proxy on one port. Fields that a request reads are together at the
// beginning: with many routes, each request uses a different one, and loads its memory.
type Route struct {
	*body
	connect  time.Duration
	pipeline exchange.Pipeline
	place    exchange.Place
}

// body is what a route is on every port of its proxy.
type body struct {
	proxy    *config.Proxy
	settings *config.Route
	number   int    // its place in the proxy's list
	prefix   string // the path in its one form, without a slash at its end
	label    string // the path as it is shown, with the matchers: no other route has it
	matchers *matchers.Matchers
	filters  []exchange.Filter
	source   exchange.Source
	servers  *upstream.Servers // nil for a fixed response; with a split, the stable ones
	split    *upstream.Split   // nil without one
	compared *mirror.Report    // nil without a comparison of mirrored responses
	scripts  *files.Scripts    // nil if the servers do not speak FastCGI
	cache    *cache.Cache      // nil without one
	closed   bool              // for maintenance
	gate     *gate             // nil lets everyone in
	// allow are the people whom a gate of sign_in lets in, nil without one.
	allow *people.Allow
	// reserved says that the route is not of the configuration: it is headgate's own on the
	// hosts of a gate.
	reserved bool
	// redirects are the rules that act on the route.
	redirects redirects.Config
}

// path returns the route's path, which is never "".
func (b *body) path() string {
	if b.prefix == "" {
		return "/"
	}
	return b.prefix
}

// shared is what routes have in common.
type shared struct {
	sources, filters []room // the tables
	memo             memo
	securePorts      map[string]map[string]int // by the names of a proxy's ports
	upstream         upstream.Settings
	settings         string          // the same as text
	ejection         health.Ejection // of routes without the setting
	affinityKey      *upstream.AffinityKey
	authorities      map[string]authorities // by their files
	gates            map[gate]*gate
	pairs            map[string]*certs.Certificate // of the configuration
	selfSigned       *certs.SelfSigned             // nil if nothing speaks TLS, or after a problem
	keyBuffer        []byte
	lists            filterLists
	done             []func(*exchange.Exchange) // of proxies without settings of their log

	// inherited are the features that a route without its own has from the proxy
	// inherits.
	inherits  *config.Proxy
	inherited config.Features
}

func newShared(cfg *config.Config) shared {
	u := &cfg.Upstreams
	s := shared{
		sources: sources(), memo: memo{}, securePorts: map[string]map[string]int{}, authorities: map[string]authorities{}, gates: map[gate]*gate{},
		lists: filterLists{known: map[[longestShared]*shareable][]exchange.Filter{}},
	}
	s.upstream = upstream.Settings{
		IdleTimeout:     u.IdleTimeout.D(),
		IdleConnections: u.MaxIdleConnections,
		BodyIdle:        u.BodyIdleTimeout.D(),
		HeadSize:        int(u.HeaderSize),
		ResolveInterval: u.ResolveInterval.D(),
		Resolvers:       u.NameServers(),
	}
	s.ejection = config.NewRoute().Ejection
	s.settings = fmt.Sprintf("%+v", s.upstream)
	return s
}

// bodies compiles the routes of a proxy. With ten thousand proxies memory is
// what takes the time, so the parts of all routes of one lie together.
func (c *compiler) bodies(p *config.Proxy, at schema.Place) []*body {
	all := make([]body, len(p.Routes))
	out := make([]*body, 0, len(p.Routes)+1)
	for i, r := range p.Routes {
		b := &all[i]
		*b = body{proxy: p, settings: r, number: i}
		if err := c.body(b); err != nil {
			place := at.Field("routes").Index(i).Called("route", r.Label())
			if fault := (*serverFault)(nil); errors.As(err, &fault) {
				fault.report(place, r.Servers)
			} else {
				place.Problem(err.Error(), "")
			}
			continue
		}
		out = append(out, b)
	}
	if p.Gated() {
		out = c.reserve(p, out, at)
	}
	return out
}

// reserve adds the route that is headgate's own on the hosts of a gate.
func (c *compiler) reserve(p *config.Proxy, out []*body, at schema.Place) []*body {
	settings := config.NewRoute()
	settings.Path = people.Reserve
	b := &body{proxy: p, settings: settings, number: -1, reserved: true}
	if err := c.body(b); err != nil {
		at.Problem(err.Error(), "")
		return out
	}
	return append(out, b)
}

// routes puts the routes of a proxy on a port.
func (c *compiler) routes(port *Port, p *config.Proxy, bodies []*body) []*Route {
	record := c.record(p.AccessLog) != nil
	all := make([]Route, len(bodies))
	out := make([]*Route, len(bodies))
	done := c.done(p.AccessLog)
	for i, b := range bodies {
		r := &all[i]
		r.body, r.connect = b, b.settings.Timeouts.Connect.D()
		r.place = exchange.Place{Port: port.Name(), Proxy: p.Name, Route: b.label}
		r.pipeline = exchange.Pipeline{Filters: b.filters, Source: b.source, Log: c.house.Log, Tunnels: c.house.Tunnels, Alternative: port.alternativeOf(p), Counter: c.counter(r.place), Done: done}
		if record {
			r.pipeline.Logged = c.config.AccessLog.ResponseHeaders
		}
		out[i] = r
	}
	return out
}

// counter returns what counts the exchanges of a place, nil for nothing.
func (c *compiler) counter(place exchange.Place) exchange.Counter {
	if c.house.Metrics == nil {
		return nil
	}
	counter := c.house.Metrics.Route(place)
	c.count(counter)
	return counter
}

// done returns the other observers of finished exchanges for a proxy with these log
// settings, nil for a proxy without any: the access log if there is one, the recent
// requests if they are kept, and the tracer. Proxies without settings share it.
func (c *compiler) done(l *config.ProxyLog) []func(*exchange.Exchange) {
	if l == nil && c.shared.done != nil {
		return c.shared.done
	}
	record, kept := c.record(l), l == nil || l.Enabled
	out := make([]func(*exchange.Exchange), 0, 4)
	if c.redact != nil && (record != nil || kept || c.tracer != nil) {
		out = append(out, c.redact)
	}
	if record != nil {
		out = append(out, record)
	}
	if kept && c.recent != nil {
		out = append(out, c.recent)
	}
	if c.tracer != nil {
		out = append(out, c.tracer.Done)
	}
	out = slices.Clip(out)
	if l == nil {
		c.shared.done = out
	}
	return out
}

// record returns the access log of a proxy with its settings, nil if it has none. Nil
// settings are those of a proxy without any.
func (c *compiler) record(l *config.ProxyLog) func(*exchange.Exchange) {
	logged, path := c.config.AccessLog.Enabled, ""
	if l != nil {
		logged, path = l.Enabled, l.File()
	}
	if !logged || c.house.Record == nil {
		return nil
	}
	return c.house.Record(path)
}

// recordSession returns the function that logs the sessions of a TCP or UDP proxy with its
// settings, nil if there is none. Nil settings are those of a proxy without any.
func (c *compiler) recordSession(l *config.ProxyLog) func(*exchange.Session) {
	wanted, path := c.config.AccessLog.Enabled, ""
	if l != nil {
		wanted, path = l.Enabled, l.File()
	}
	var logged func(*exchange.Session)
	if wanted && c.house.RecordSession != nil {
		logged = c.house.RecordSession(path)
	}
	ring := c.house.Recent
	switch {
	case ring == nil || l != nil && !l.Enabled:
		return logged
	case logged == nil:
		return ring.RecordSession
	}
	return func(p *exchange.Session) {
		logged(p)
		ring.RecordSession(p)
	}
}

// body compiles a route. Settings that were checked give no error.
func (c *compiler) body(b *body) error {
	prefix, err := onePath(b.settings.Path)
	if err != nil {
		return err
	}
	b.prefix = strings.TrimSuffix(prefix, "/")
	b.label = matchers.Label(b.path(), b.settings.Matchers)
	if b.matchers, err = matchers.Compile(b.settings.Matchers); err != nil {
		return err
	}
	if b.reserved {
		b.source = gatefeature.Entry(c.house.Gate, b.proxy.FramedGate(), c.envFor(b, false))
	} else if b.settings.SignIn != nil {
		b.source, err = signin.Compile(b.settings.SignIn, c.house.Gate, c.envFor(b, true))
	} else if b.settings.Unserved || b.settings.Withheld {
		b.source = unserved{b.settings.Withheld}
	} else if b.settings.FixedResponse != nil {
		b.source, err = fixed.Compile(b.settings.FixedResponse)
	} else if b.settings.Files != nil {
		b.source, err = files.Compile(b.settings.Files, c.config.Dir, exchange.Route{Prefix: b.prefix, Strip: b.settings.StripPrefix}, c.envFor(b, true))
	} else if b.settings.Split != nil {
		err = c.splitServers(b)
	} else {
		err = c.servers(b)
	}
	if err == nil && b.servers != nil && b.settings.FastCGI != nil {
		b.scripts, err = files.CompileScripts(b.settings.FastCGI, c.config.Dir, exchange.Route{Prefix: b.prefix, Strip: b.settings.StripPrefix}, b.source, c.envFor(b, true))
		b.source = b.scripts
	}
	if err != nil {
		return err
	}
	c.shared.lists.reset()
	err = c.rooms(b)
	b.filters = c.shared.lists.end()
	return err
}

// unserved is the source of a route that containers ask for of which none takes requests, and of
// a proxy that is withheld on this machine.
type unserved struct{ withheld bool }

var (
	notServed   = &exchange.Answer{Reason: exchange.NoHealthyServer, RetryAfter: 5, Cause: noContainer}
	notUsedHere = &exchange.Answer{Reason: exchange.NoHealthyServer, RetryAfter: 5, Cause: withheld}
)

// noContainer says why a discovered route has no server.
const noContainer = "no container takes requests"

// withheld is the reason why a proxy that another machine has defined is not used.
const withheld = "another machine has set a path or socket that this machine does not allow"

func (u unserved) Respond(*exchange.Exchange) *exchange.Answer {
	if u.withheld {
		return notUsedHere
	}
	return notServed
}

// Describe returns "no server".
func (unserved) Describe() string { return "no server" }

// onePath returns the one form of a path.
func onePath(path string) (string, error) {
	if uri.Normal(path) {
		return path, nil
	}
	b, err := uri.AppendNormal(nil, path)
	return string(b), err
}
