package control

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/metrics"
	"headgate/internal/schema"
)

// providers are the sources under discovery in the configuration. They participate in
// changes: a new source is opened before a change and started with it; a removed one is
// stopped after it, and its objects are removed.
type providers struct {
	log      *slog.Logger
	open     discovery.DockerOpener
	openHTTP discovery.HTTPOpener
	agents   discovery.AgentOpener
	env      discovery.Environment
	// wake has a value when a source may know something new.
	wake    chan struct{}
	stopped sync.WaitGroup

	mu struct {
		sync.Mutex
		running map[string]*running
		closed  bool
	}
}

// running is the source of one entry.
type running struct {
	name   string
	dir    string
	source discovery.Source // nil if it could not be opened
	quit   chan struct{}

	// guarded by providers.mu
	settings config.Provider
	objects  []*config.Discovered // that were known last
	failed   *discovery.Snapshot  // why there is no source
}

func newProviders(o *Options) *providers {
	p := &providers{log: o.Log, open: o.Docker, openHTTP: o.HTTP, agents: o.Agent, wake: make(chan struct{}, 1)}
	p.env = discovery.Environment{Log: o.Log, Agent: agentOf(o), Roots: o.Roots}
	if o.StateDir != "" {
		p.env.State = filepath.Join(o.StateDir, "discovery")
	}
	p.mu.running = map[string]*running{}
	return p
}

// rouse says that there may be something new.
func (p *providers) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Prepare opens the new sources of next. At the start a source that cannot be opened does
// not prevent serving: it is tried again.
func (p *providers) Prepare(next *Next) (Change, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := &providing{providers: p, opened: map[string]*running{}, settings: next.Config.Providers()}
	for _, name := range slices.Sorted(maps.Keys(ch.settings)) {
		settings := ch.settings[name]
		if r := p.mu.running[name]; r != nil && r.source != nil && r.dir == next.Config.Dir && r.settings.SameSource(settings) {
			continue
		}
		r := &running{name: name, dir: next.Config.Dir, settings: settings, quit: make(chan struct{})}
		if err := p.openSource(r); err != nil && !next.Starting() && !errors.Is(err, errNotBuilt) {
			ch.Cancel()
			return nil, &Refused{Problems: []schema.Problem{{
				Object: "discovery, provider " + name, Field: schema.JoinPath("discovery."+string(settings.Via()), name), What: err.Error(),
			}}}
		}
		ch.opened[name] = r
	}
	return ch, nil
}

// openSource opens a source, or notes why it could not be.
func (p *providers) openSource(r *running) error {
	err := errNotBuilt
	env := p.env
	env.Dir = r.dir
	switch settings := r.settings.(type) {
	case *config.Docker:
		if p.open != nil {
			r.source, err = p.open(r.name, settings, env)
		}
	case *config.HTTPDocument:
		if p.openHTTP != nil {
			r.source, err = p.openHTTP(r.name, settings, env)
		}
	case *config.Agent:
		if p.agents != nil {
			r.source, err = p.agents(r.name, settings, env)
		}
	}
	if err != nil {
		r.source, r.failed = nil, &discovery.Snapshot{State: discovery.Failed, Since: time.Now(), Reason: err.Error()}
		return err
	}
	r.failed = nil
	return nil
}

// errNotBuilt is of a provider whose kind this program does not have.
var errNotBuilt = errors.New("this headgate was built without discovery of this kind")

// providing is the sources that a change is about to have.
type providing struct {
	*providers
	opened   map[string]*running
	settings map[string]config.Provider
}

// Commit starts what was opened, and stops what is not wanted any more.
func (ch *providing) Commit() {
	p := ch.providers
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, was := range p.mu.running {
		if is := ch.opened[name]; is != nil {
			is.objects = was.objects // until it knows better
		} else if settings := ch.settings[name]; settings != nil {
			was.settings = settings
			continue
		}
		delete(p.mu.running, name)
		p.end(was, ch.settings[name] == nil || !sameLocation(was.settings, ch.settings[name]))
	}
	for name, r := range ch.opened {
		p.mu.running[name] = r
		p.startSource(r)
	}
}

// Cancel ends what was opened.
func (ch *providing) Cancel() {
	for _, r := range ch.opened {
		ch.end(r, false)
	}
}

// startSource starts a source and receives its snapshots.
func (p *providers) startSource(r *running) {
	if r.source == nil {
		return
	}
	r.source.Start()
	p.stopped.Go(func() {
		for {
			select {
			case <-r.source.Changed():
				p.rouse()
			case <-r.quit:
				return
			}
		}
	})
	p.rouse()
}

// sameLocation reports whether two entries find their objects at the same place.
func sameLocation(a, b config.Provider) bool {
	x, ok := a.(*config.HTTPDocument)
	y, also := b.(*config.HTTPDocument)
	return a.Via() == b.Via() && (!ok || also && x.URL == y.URL)
}

// end stops a source, in the background: a change does not wait for it. Forget is whether
// what it keeps is removed.
func (p *providers) end(r *running, forget bool) {
	close(r.quit)
	if r.source == nil {
		return
	}
	p.stopped.Go(func() {
		r.source.Stop()
		if f, ok := r.source.(discovery.Forgetter); ok && forget {
			f.Forget()
		}
	})
}

// close stops all sources and waits for them.
func (p *providers) close() {
	p.mu.Lock()
	p.mu.closed = true
	for name, r := range p.mu.running {
		delete(p.mu.running, name)
		p.end(r, false)
	}
	p.mu.Unlock()
	p.stopped.Wait()
}

// reopen tries again to open what could not be opened at the start.
func (p *providers) reopen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, r := range p.mu.running {
		if r.source != nil || p.mu.closed {
			continue
		}
		again := &running{name: name, dir: r.dir, settings: r.settings, objects: r.objects, quit: make(chan struct{})}
		if since := r.failed.Since; p.openSource(again) != nil {
			again.failed.Since = since
		}
		p.mu.running[name] = again
		p.startSource(again)
	}
}

// found returns what the entries of a configuration found, of which those that run
// already have found something.
func (p *providers) found(c *config.Config) []discovery.Provider {
	entries := c.Providers()
	if len(entries) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []discovery.Provider
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		one := discovery.Provider{Name: name, Bounds: entries[name].Bounds()}
		if r := p.mu.running[name]; r != nil {
			if s := r.snapshot(); s.Known {
				r.objects, one.Issues = s.Objects, s.Issues
			} else {
				one.Issues = s.Issues
			}
			one.Objects = r.objects
		}
		all = append(all, one)
	}
	return all
}

// unknown reports whether a provider of a configuration has not reported its objects yet.
func (p *providers) unknown(c *config.Config) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range c.Providers() {
		if r := p.mu.running[name]; r == nil || !r.snapshot().Known {
			return true
		}
	}
	return false
}

// snapshot returns what the source of an entry knows.
func (r *running) snapshot() *discovery.Snapshot {
	if r.source == nil {
		return r.failed
	}
	return r.source.Snapshot()
}

// states returns the states of the sources, by name.
func (p *providers) states() []ProviderState {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []ProviderState{}
	for _, name := range slices.Sorted(maps.Keys(p.mu.running)) {
		r := p.mu.running[name]
		s := r.snapshot()
		all = append(all, ProviderState{
			Name: name, Type: string(r.settings.Via()), Endpoint: r.settings.Location(),
			State: s.State, Since: s.Since, Reason: s.Reason, Hint: s.Hint, Issues: []discovery.Issue{},
		})
	}
	return all
}

// ProviderState is the state of a provider of discovered objects.
type ProviderState struct {
	// Name is that of its entry in discovery.
	Name string `json:"name"`
	// Type is docker, http or agent.
	Type string `json:"type"`
	// Endpoint is the address of its API, the URL of its document, or the
	// address of its machine.
	Endpoint string `json:"endpoint"`
	// State is connecting, running, stale or error, since Since.
	State discovery.State `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since,omitzero"`
	// Reason is why the provider is in error.
	Reason string `json:"reason,omitempty"`
	// Hint is what to do.
	Hint string `json:"hint,omitempty"`
	// Objects is the number of active objects that it found.
	Objects int `json:"objects"`
	// Issues are what it found and headgate cannot use.
	Issues []discovery.Issue `json:"issues"`
}

// Discovery returns the states of the providers, by name.
func (c *Control) Discovery() []ProviderState {
	all := c.providers.states()
	s := c.standing.Load()
	if s == nil {
		return all
	}
	for i := range all {
		p := &all[i]
		p.Objects = s.found[p.Name]
		for _, issue := range s.issues {
			if issue.Provider == p.Name {
				p.Issues = append(p.Issues, issue)
			}
		}
	}
	return all
}

// providerMetrics returns the states of the providers for the metrics.
func (c *Control) providerMetrics() []metrics.Provider {
	var all []metrics.Provider
	for _, p := range c.Discovery() {
		all = append(all, metrics.Provider{Name: p.Name, Up: p.State == discovery.Running, Issues: len(p.Issues)})
	}
	return all
}

// The times of discovery.
const (
	// gatherTime is for how long changes are gathered into one.
	gatherTime = 100 * time.Millisecond
	// againTime is after how long what could not be opened is tried again.
	againTime = 30 * time.Second
)

// discover makes changes of what sources find, until ctx ends.
func (c *Control) discover(ctx context.Context) {
	again := time.NewTicker(againTime)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			c.providers.reopen()
			c.discovered(true)
		case <-c.providers.wake:
			gather := time.NewTimer(gatherTime)
			select {
			case <-ctx.Done():
				gather.Stop()
				return
			case <-gather.C:
			}
			c.discovered(false)
		}
	}
}

// discovered takes what sources know now into the configuration, if it is something else
// than before. Again is whether what failed is to be tried again.
func (c *Control) discovered(again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.configLocked()
	if c.mu.closed || now == nil || len(now.Documents().Discovery.Providers()) == 0 {
		return
	}
	if again {
		if !c.mu.again {
			return
		}
		c.mu.blamed = nil
	}
	merged := discovery.Merge(now.Documents(), c.providers.found(now.Documents()), c.mu.merged, c.mu.blamed)
	if merged.Same(c.mu.merged) {
		c.mu.merged = merged
		c.holds.forget(now) // providers have reported, and these do not exist
		c.publishLocked()
		c.watcher.Discovery()
		return
	}
	if c.mu.frozen {
		c.mu.again = true // by thawChanges, or in the new process
		return
	}
	ch := c.newChangeLocked(Cause{Via: viaOf(merged, c.mu.merged)}, nil)
	ch.declared = now.Documents()
	c.mu.again = false
	if err := c.makeLocked(ch); err != nil {
		c.mu.again = true
	}
}

// viaOf returns how the objects came by which a merge differs from the one before.
func viaOf(now, before *discovery.Merged) Via {
	other := now.Discovered(before)
	if before != nil {
		other = append(other, before.Discovered(now)...)
	}
	if len(other) == 0 || slices.ContainsFunc(other, func(d *config.Discovered) bool { return d.Origin.Via != other[0].Origin.Via }) {
		return ViaDocker
	}
	return Via(other[0].Origin.Via)
}

// Agent returns the source of an entry of discovery.agent, nil if there is none.
func (c *Control) Agent(name string) discovery.Source {
	p := c.providers
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.mu.running[name]; r != nil && r.settings.Via() == config.ViaAgent {
		return r.source
	}
	return nil
}
