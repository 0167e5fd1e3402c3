package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/cache"
	"headgate/internal/feature/fixed"
	"headgate/internal/feature/redirects"
	"headgate/internal/plan/matchers"
	"headgate/internal/proto/uri"
	"headgate/internal/schema"
	"headgate/internal/server/health"
	"headgate/internal/upstream"
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
	label    string // the path as it is shown, with the matchers: no other route has it
	matchers *matchers.Matchers
	connect  time.Duration
	filters  []exchange.Filter
	source   exchange.Source
	servers  *upstream.Servers // nil for a fixed response
	cache    *cache.Cache      // nil without one
	closed   bool              // for maintenance
	gate     *gate             // nil lets everyone in
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
	ejection         health.Ejection // what routes have that say nothing of it
	affinityKey      *upstream.AffinityKey
	authorities      map[string]authorities // by their files
	gates            map[gate]*gate
	keyBuffer        []byte
	lists            filterLists

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
	out := make([]*body, 0, len(p.Routes))
	for i, r := range p.Routes {
		b := &all[i]
		*b = body{proxy: p, settings: r, number: i, connect: r.Timeouts.Connect.D()}
		if err := c.body(b); err != nil {
			place := at.Field("routes").Index(i).Called("route", r.Label())
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
	record, kept := c.record(p.AccessLog), p.AccessLog == nil || p.AccessLog.Enabled
	all := make([]Route, len(bodies))
	out := make([]*Route, len(bodies))
	var tell []func(*exchange.Exchange)
	for i, b := range bodies {
		r := &all[i]
		r.body = b
		r.place = exchange.Place{Port: port.Name(), Proxy: p.Name, Route: b.label}
		if tell = c.appendDone(tell[len(tell):], r.place, record, kept); i == 0 { // as many hear of the others
			tell = append(make([]func(*exchange.Exchange), 0, len(tell)*len(bodies)), tell...)
		}
		r.pipeline = exchange.Pipeline{Filters: b.filters, Source: b.source, Log: c.house.Log, Tunnels: c.house.Tunnels, Alternative: port.tells(p), Done: slices.Clip(tell)}
		if record != nil {
			r.pipeline.Logged = c.config.AccessLog.ResponseHeaders
		}
		out[i] = r
	}
	return out
}

// appendDone appends what hears of the finished exchanges of a place: the metrics, the
// access log if there is one, the memory of recent requests if they are kept, and the
// tracer.
func (c *compiler) appendDone(out []func(*exchange.Exchange), place exchange.Place, record func(*exchange.Exchange), kept bool) []func(*exchange.Exchange) {
	if c.house.Metrics != nil {
		counter := c.house.Metrics.Route(place)
		c.count(counter)
		out = append(out, counter.Done)
	}
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

// recordPassage returns what hears of the passages of a TCP or UDP proxy with its
// settings, nil if nobody does. Nil settings are those of a proxy without any.
func (c *compiler) recordPassage(l *config.ProxyLog) func(*exchange.Passage) {
	wanted, path := c.config.AccessLog.Enabled, ""
	if l != nil {
		wanted, path = l.Enabled, l.File()
	}
	var logged func(*exchange.Passage)
	if wanted && c.house.RecordPassage != nil {
		logged = c.house.RecordPassage(path)
	}
	ring := c.house.Recent
	switch {
	case ring == nil || l != nil && !l.Enabled:
		return logged
	case logged == nil:
		return ring.RecordPassage
	}
	return func(p *exchange.Passage) {
		logged(p)
		ring.RecordPassage(p)
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
	if b.settings.FixedResponse != nil {
		b.source, err = fixed.Compile(b.settings.FixedResponse)
	} else {
		err = c.servers(b)
	}
	if err != nil {
		return err
	}
	c.shared.lists.begin()
	err = c.rooms(b)
	b.filters = c.shared.lists.end()
	return err
}

// onePath returns the one form of a path.
func onePath(path string) (string, error) {
	if uri.Normal(path) {
		return path, nil
	}
	b, err := uri.AppendNormal(nil, path)
	return string(b), err
}
