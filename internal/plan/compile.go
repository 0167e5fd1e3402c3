package plan

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/bans"
	"headgate/internal/certs"
	"headgate/internal/certs/ech"
	"headgate/internal/config"
	"headgate/internal/exchange"
	people "headgate/internal/gate"
	"headgate/internal/metrics"
	"headgate/internal/plan/inputs"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/tracing"
)

// House is what a plan asks of the process around it.
type House struct {
	// Log is the application's log. Nil discards.
	Log *slog.Logger
	// Clock returns the time; nil is the system's.
	Clock func() time.Time
	// Metrics counts requests; nil counts nothing.
	Metrics *metrics.Registry
	// Record returns the access log at a path: accesslog.Log.Record. "" is the common
	// one. It returns nil if there is none; a nil Record logs nothing.
	Record func(path string) func(*exchange.Exchange)
	// RecordOf identifies the access logs: proxies of a plan are reused by the next one
	// only if it is equal. It is not nil if there is a Record.
	RecordOf any
	// Tunnels knows the upgraded connections; nil keeps no list of them.
	Tunnels *exchange.Tunnels
	// Spans counts the spans of traces; it may be nil.
	Spans *tracing.Counts
	// Recent keeps the last exchanges and sessions in memory; nil keeps none.
	Recent *recent.Ring
	// RecordSession is Record for TCP and UDP proxies. Nil logs nothing.
	RecordSession func(path string) func(*exchange.Session)
	// Values is where the lists of CDNs are kept that are fetched while the plan
	// serves; nil is nowhere.
	Values store.Values
	// Inputs are what was loaded for the configuration. Nil is nothing, which is
	// enough for one that names no files, no certificates and no sticky cookies.
	Inputs *inputs.Set
	// Managed are the certificates that come by themselves; nil is none.
	Managed *certs.Managed
	// Challenges answer the authorities that those come from; nil answers none.
	Challenges Challenges
	// Demands gets certificates when clients connect; nil gets none.
	Demands Demands
	// Standing is exchange.Env.Standing: the same for all plans.
	Standing func(proxy string)
	// Bans has the active bans; nil means no bans.
	Bans *bans.Engine
	// Gate has the signed-in people; nil means that there is no sign-in.
	Gate *people.Engine
	// Holds is exchange.Env.Holds: the same for all plans.
	Holds exchange.Holds
	// Tickets are the keys of session tickets of the process before this one; nil makes new
	// ones. Only those of the first plan are used.
	Tickets TicketKeys
	// Carried is the state of the parts of the process before this one: Plan.Export. Only
	// the first plan uses it.
	Carried Carried
	// SharedTickets are those of several machines, nil for keys of this one.
	SharedTickets *certs.SharedTickets
	// ECH returns the keys of Encrypted Client Hello for a public name; nil has none.
	ECH func(publicName string) *ech.Ring
	// Start says that nothing is served yet: a certificate that cannot be used is
	// then no problem but a note, so that everything else is served.
	Start bool
}

// discard is the log if none is configured.
var discard = slog.New(slog.DiscardHandler)

// Compile makes a plan from a validated configuration. It is pure: it reads no file, starts
// nothing, sends nothing and logs nothing. External inputs are in house.Inputs, notes for
// operators are in the plan's notes, and goroutines start with the plan's Start. Parts of
// prev that have not changed are reused, including connections to servers and the state of
// load balancing; prev is nil the first time. Problems are added to report, which locates
// them (config.Document.Report) and may be nil; if there are any, they are returned and the
// plan is nil.
//
// A caller that does not use the plan must retire it: plan.Retire(prev).
func Compile(cfg *config.Config, prev *Plan, house House, report *schema.Report) (*Plan, []schema.Problem) {
	if report == nil {
		report = schema.NewReport("", nil)
	}
	c := newCompiler(cfg, prev, house, report)
	c.banRules()
	for _, name := range slices.Sorted(maps.Keys(cfg.Ports)) {
		if port := cfg.Ports[name]; port.Active && cfg.Here(port.Nodes) {
			c.plan.ports = append(c.plan.ports, c.newPort(port))
		}
	}
	c.banOutside()
	c.pairPorts()
	c.shared.filters = c.filters()
	c.proxies(prev)
	c.setDemands()
	c.secure()
	c.tcp()
	c.udp()
	if report.Empty() {
		c.followRedirects()
	}
	if !report.Empty() {
		c.plan.Retire(prev)
		return nil, report.Problems()
	}
	c.plan.unstarted = c.keeper.unstarted
	return c.plan, nil
}

// note is exchange.Env.Note.
func (c *compiler) note(n exchange.Note) { c.plan.notes = append(c.plan.notes, n) }

// warn adds a note for operators.
func (c *compiler) warn(text string, attrs ...any) {
	c.note(exchange.Note{Level: slog.LevelWarn, Text: text, Attrs: attrs})
}

// compiler belongs to one Compile.
type compiler struct {
	config *config.Config
	house  House
	report *schema.Report
	plan   *Plan
	keeper *keeper
	env    exchange.Env
	shared shared
	// recent is Record of house.Recent, made once for all places; nil without one.
	recent func(*exchange.Exchange)
	// redact removes secrets from a finished exchange; it may be nil.
	redact func(*exchange.Exchange)
	// tracer traces requests; nil when nothing is traced.
	tracer *tracing.Tracer
	// bans are the rules by which clients are refused; nil without any.
	bans *bans.Rules
	// compiling is the proxy that is being compiled.
	compiling *proxy
	// reported are the clashes that were reported already.
	reported map[clash]bool
	// challenged are the hosts that ACME entries get certificates for.
	challenged *challenged
}

// clash is two routes that want the same requests.
type clash struct{ first, second *config.Route }

func newCompiler(cfg *config.Config, prev *Plan, house House, report *schema.Report) *compiler {
	if house.Log == nil {
		house.Log = discard
	}
	if house.Clock == nil {
		house.Clock = time.Now
	}
	c := &compiler{config: cfg, house: house, report: report, reported: map[clash]bool{}, challenged: newChallenged(cfg)}
	if house.Recent != nil {
		c.recent = house.Recent.Record
	}
	c.keeper = newKeeper(prev, house.Carried)
	c.env = exchange.Env{Log: house.Log, Clock: house.Clock, Source: c.source, Keep: c.keeper.keep, File: c.file, Note: c.note, Standing: house.Standing, Holds: house.Holds, Addresses: house.Inputs.Addresses()}
	c.plan = &Plan{config: cfg, house: house, parts: c.keeper.parts, rest: &unit{}}
	c.keeper.unit = c.plan.rest
	c.redact = redactor(cfg.AccessLog.RedactQuery)
	if cfg.Tracing.Enabled {
		c.tracer = tracing.Open(&cfg.Tracing, c.env, house.Spans)
	}
	c.shared = newShared(cfg)
	return c
}

// count notes a counter of the unit that is being compiled.
func (c *compiler) count(r retirer) { c.keeper.unit.counters = append(c.keeper.unit.counters, r) }

// newPort makes a port, without its hosts.
func (c *compiler) newPort(settings *config.Port) *Port {
	l := &settings.Limits
	at := c.report.Root().Field("ports").Field(settings.Name).Called("port", settings.Name)
	p := &Port{settings: settings, minBodyRate: int64(l.MinBodyRate), challenges: c.house.Challenges, challenged: c.challenged, tracer: c.tracer, announcers: newAnnouncers(settings.ProxyProtocol, at.Field("proxy_protocol"))}
	p.locator = c.env.Addresses.Locator
	place := &exchange.Place{Port: settings.Name}
	p.front = exchange.Port{
		Place:       place,
		HeadTimeout: l.HeaderTimeout.D(),
		KeepAlive:   l.KeepAliveTimeout.D(),
		WriteIdle:   l.WriteIdleTimeout.D(),
		HeadSize:    int(l.HeaderSize),
		HeadFields:  l.HeaderFields,
		URISize:     int(l.URISize), StrictTarget: settings.StrictTarget,
		Streams:   l.MaxConcurrentStreams,
		MaxMemory: int64(l.MaxMemory), MaxClientMemory: int64(l.MaxMemoryPerClient),
		Limits: exchange.Limits{BodyIdle: l.BodyIdleTimeout.D(), TunnelIdle: l.TunnelIdleTimeout.D()},
		Serve:  p.serve,
		Refuse: p.refuse,
	}
	p.outside = exchange.Pipeline{Log: c.house.Log, Logged: c.config.AccessLog.ResponseHeaders, Counter: c.counter(*place), Done: c.done(nil)}
	return p
}
