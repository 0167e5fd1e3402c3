package plan

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/bans"
	"headgate/internal/certs"
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
	// RecordOf tells some access logs from others: the proxies of a plan are carried
	// over to the next only if it is equal, and not nil where there is a Record.
	RecordOf any
	// Tunnels knows the upgraded connections; nil keeps no list of them.
	Tunnels *exchange.Tunnels
	// Spans counts what becomes of spans of traces; nil counts nothing.
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
	// Standing is exchange.Env.Standing: the same for all plans.
	Standing func(proxy string)
	// Bans knows who is banned; nil bans nobody.
	Bans *bans.Engine
	// Gate knows who has signed in; nil signs nobody in.
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
	// Start says that nothing is served yet: a certificate that cannot be used is
	// then no problem but a note, so that everything else is served.
	Start bool
}

// discard is the log of a house without one.
var discard = slog.New(slog.DiscardHandler)

// Compile makes a plan of a configuration that was checked. It is pure: it reads no
// file, starts nothing, sends nothing and logs nothing. What it needs from outside is
// in house.Inputs, what it has to say is in the plan's notes, and what it wants started
// begins with the plan's Begin. Parts of prev that
// the configuration leaves alone are carried over, connections to servers and
// whose turn it is among them; prev is nil the first time. Problems are told to
// report, which knows their places (config.Document.Report) and may be nil; if
// there are any, they come back and the plan is nil.
//
// Who does not take the plan into use retires it: plan.Retire(prev).
func Compile(cfg *config.Config, prev *Plan, house House, report *schema.Report) (*Plan, []schema.Problem) {
	if report == nil {
		report = schema.NewReport("", nil)
	}
	c := newCompiler(cfg, prev, house, report)
	c.banRules()
	for _, name := range slices.Sorted(maps.Keys(cfg.Ports)) {
		if port := cfg.Ports[name]; port.Active {
			c.plan.ports = append(c.plan.ports, c.newPort(port))
		}
	}
	c.banOutside()
	c.pairPorts()
	c.shared.filters = c.filters()
	c.proxies(prev)
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

// warn notes what an operator should hear.
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
	// redact takes secrets out of a finished exchange; nil takes none.
	redact func(*exchange.Exchange)
	// tracer traces requests; nil when nothing is traced.
	tracer *tracing.Tracer
	// bans are the rules by which clients are refused; nil without any.
	bans *bans.Rules
	// compiling is the proxy that is being compiled.
	compiling *proxy
	// told are the clashes that were told already.
	told map[clash]bool
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
	c := &compiler{config: cfg, house: house, report: report, told: map[clash]bool{}, challenged: newChallenged(cfg)}
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
