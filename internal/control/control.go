// Package control applies changes. Every change is applied completely or not at all, one at
// a time, in these steps: read, check, compile, prepare, save, swap, commit, publish. Run
// is the main loop of the process: it applies the configuration files, watches them, and
// drains at the end.
//
// apply.go is the life of a change; participant.go is the interface of components with
// resources, such as ports; event.go describes a change, and tell.go logs it; edit.go
// changes the files, confirm.go reverts unconfirmed changes, start.go is the first change,
// handover.go hands everything over to another process; status.go is the status.
//
// The package does not know sockets, nor the packages above it: the admin listener joins as
// a participant.
package control

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/bans"
	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/config/disk"
	"headgate/internal/discovery"
	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/geo"
	"headgate/internal/lists"
	"headgate/internal/metrics"
	"headgate/internal/plan"
	"headgate/internal/plan/inputs"
	"headgate/internal/ports"
	"headgate/internal/ports/listen"
	"headgate/internal/query"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/local"
	"headgate/internal/tracing"
	"headgate/internal/upgrade"
)

// Options is what a Control is made of.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// ConfigFile is the configuration file, or a folder with several. It is watched.
	ConfigFile string
	// Created says that ConfigFile was created by this start because there was none. A shared
	// store that has documents replaces it.
	Created bool
	// Strict refuses to start with documents that are refused, instead of serving the
	// newest revision that was confirmed.
	Strict bool
	// StateDir is where state is kept. It is made if it is absent.
	StateDir string
	// StateKey is the key that secrets in the state directory are sealed with, ""
	// for one in a file there.
	StateKey string
	// Share returns the store that this machine shares with others, made of the state
	// directory, which becomes a copy of it. Nil shares nothing.
	Share func(dir *local.Store) (store.Store, error)
	// Node is the name of this machine among those that share the store.
	Node string
	// Schema is the newest version of the tables of the shared database that this release knows; 0
	// without a database.
	Schema int
	// Machine identifies the state directory, so that another machine with the same name is
	// noticed; "" if that is not known.
	Machine string
	// Build is exported as a metric.
	Build metrics.Build
	// Docker opens the sources under discovery.docker; nil has none.
	Docker discovery.DockerOpener
	// HTTP opens the sources under discovery.http; nil has none.
	HTTP discovery.HTTPOpener
	// Agent opens the sources under discovery.agent; nil has none.
	Agent discovery.AgentOpener
	// Roots are the authorities by which servers are trusted that lists and geo databases
	// are downloaded from; nil is the system's.
	Roots *x509.CertPool
	// Watcher is notified of state changes outside of configuration changes; it may be nil.
	Watcher Watcher
	// Inherited is what the previous process has handed over; nil for none.
	Inherited *upgrade.Inheritance
	// Activated has the sockets that the service manager has opened; nil is none.
	Activated ports.Activated
	// TakeOver is called once, when this process can serve and before it accepts
	// connections or writes state. It returns when the process before has released both.
	// An error ends this process. Nil waits for nothing.
	TakeOver func() error
	// Ready is called once, when the first configuration has been applied. It
	// may be nil.
	Ready func()
}

// Control applies configurations and serves by them. Its methods may be called
// by several goroutines at once.
type Control struct {
	// constant
	log        *slog.Logger
	options    Options
	state      store.Store
	files      *local.Store   // the state directory: of archives, and of state unless it is shared
	shared     bool           // others change the state, too
	handover   sharedHandover // never nil
	history    *history.History
	source     *disk.Source
	metrics    *metrics.Registry
	series     *metrics.Series
	tunnels    *exchange.Tunnels
	uploads    *certs.Uploads
	inputs     *inputs.Loader
	ports      *ports.Set
	records    *records
	spans      tracing.Counts
	rings      rings
	issuer     *issuer
	bans       *bans.Engine
	gate       *gate.Engine
	lists      *lists.Manager
	geo        *geo.Manager
	changes    changes
	holds      *holds
	splits     *splits
	quic       *listen.QUICKeys
	late       late // of an upgrade
	alone      alone
	keys       *sharedKeys
	ech        *echKeys
	echRecords *echRecords
	purges     purges
	watcher    Watcher
	peers      *query.Peers // nil if this machine has none to query
	// providers are the sources of discovered objects.
	providers *providers
	// participants, observers and endings are constant from Run on.
	participants []Participant
	observers    []func(*Event)
	endings      []func()
	passkeys     func(host string) int // nil if there are no users

	// current is what requests are served by. It is swapped whole.
	current  atomic.Pointer[plan.Plan]
	ready    atomic.Bool
	stopping atomic.Bool
	frozen   atomic.Bool // the same as mu.frozen
	voting   atomic.Bool // other machines check a change of this one, which holds mu
	replaced atomic.Bool // another process has taken over
	drained  atomic.Bool // an operator wants no requests here
	// standing is the source of Status; it is replaced after every change.
	standing atomic.Pointer[standing]

	restoring sync.Mutex // held while users and tokens are replaced; taken after mu

	mu struct {
		sync.Mutex                           // held for the whole of a change
		seen       string                    // the ETag of the documents that were applied last, "" if they were refused
		tried      string                    // that of files that the start has rejected, "" for none
		digested   *config.Config            // what the documents say of which digests are
		digests    map[string]history.Digest // by name
		pending    *history.Pending
		confirm    *time.Timer       // of pending
		without    int               // the revision that is not served as it was not confirmed, and not reverted as the shared store is away; 0 for none
		merged     *discovery.Merged // the active objects
		blamed     map[*config.Discovered]discovery.Blame
		again      bool                          // something that was discovered is to be tried again
		issues     map[discovery.Issue]time.Time // since when, without Since
		degraded   bool                          // an older revision is served than the documents say
		since      time.Time
		revision   string
		refused    *RefusedState
		host       hostFields
		closed     bool
		frozen     bool // see Freeze
	}
}

// Refused is the error of a configuration that was not applied: everything is
// as it was before.
type Refused struct {
	// Problems are the mistakes in the configuration, if it was that.
	Problems []schema.Problem
	// Err is what else went wrong, such as a busy address.
	Err error
}

// Error returns the first problem and their number, or the failure.
func (r *Refused) Error() string {
	switch {
	case len(r.Problems) == 1:
		return r.Problems[0].Error()
	case len(r.Problems) > 1:
		return fmt.Sprintf("%v (and %d more problems)", r.Problems[0], len(r.Problems)-1)
	}
	return r.Err.Error()
}

// Unwrap returns what went wrong.
func (r *Refused) Unwrap() error { return r.Err }

// Metrics is the page of metrics.
func (c *Control) Metrics() http.Handler { return c.metrics.Handler() }

// CacheUses are the requests of each route by what its cache made of them, since the start.
func (c *Control) CacheUses() map[exchange.Place]*metrics.CacheUses { return c.metrics.CacheUses() }

// Series is what was counted over time.
func (c *Control) Series() *metrics.Series { return c.series }

// ResetPort closes all connections of the port of a kind and name, and retries to open one
// that waits: kind is ports, tcp_proxies or udp_proxies. It returns how many connections
// and sessions were closed, and the state of the port's sockets; none if it has none and
// waits for none.
func (c *Control) ResetPort(kind, name string) (closed int, stands []ports.State) {
	return c.ports.Reset(c.listenerOf(kind, name), func(p config.Protocol) bool { return kindOfPort(p) == kind })
}

// listenerOf returns the name under which the ports list an object: TCP proxies that share an
// address have the socket of the first of them.
func (c *Control) listenerOf(kind, name string) string {
	if p := c.current.Load(); p != nil && kind == "tcp_proxies" {
		if s := p.Config().TCPProxies[name]; s != nil && s.Active && s.Address.IsValid() {
			if port := p.At(s.Address.AddrPort); port != nil {
				return port.Name()
			}
		}
	}
	return name
}

// PortStands returns the state of the sockets of the port of a kind and name; none if it
// has none and waits for none. Kinds are those of ResetPort.
func (c *Control) PortStands(kind, name string) []ports.State {
	name = c.listenerOf(kind, name)
	return slices.DeleteFunc(c.ports.States(), func(s ports.State) bool { return s.Name != name || kindOfPort(s.Protocol) != kind })
}

// kindOfPort returns the kind of the objects whose sockets have a protocol.
func kindOfPort(p config.Protocol) string {
	switch p {
	case config.TCP:
		return "tcp_proxies"
	case config.UDP:
		return "udp_proxies"
	}
	return "ports"
}

// certificates returns the states of the certificates for the metrics.
func (c *Control) certificates() []metrics.Certificate {
	var all []metrics.Certificate
	for _, s := range c.CertificateStates() {
		name := s.Name
		if s.Source == CertificateACME && len(s.Names) > 0 {
			name = s.Names[0]
		}
		all = append(all, metrics.Certificate{Name: name, State: string(s.State), NotAfter: s.NotAfter})
	}
	return all
}

// Plan returns the plan that requests are served by, nil before the first.
func (c *Control) Plan() *plan.Plan { return c.current.Load() }

// Run applies the configuration file and serves by it until ctx ends; then it
// lets running requests end. The error says why the first configuration could
// not be applied.
func (c *Control) Run(ctx context.Context) error {
	defer c.close()
	start := c.start
	if c.options.Inherited != nil {
		start = c.startInPlace
	}
	if err := start(); err != nil {
		return err
	}
	if err := c.takeOverSockets(); err != nil {
		return err
	}
	c.followDrain(context.Background())
	c.splits.refresh(context.Background()) // what another process has kept until now
	c.ready.Store(true)
	if c.options.Ready != nil {
		c.options.Ready()
	}
	ctx, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { c.series.Run(ctx) })
	beside.Go(func() { c.discover(ctx) })
	beside.Go(func() { followUploads(ctx, c.state, c.uploads) })
	beside.Go(func() { c.shedDrained(ctx) })
	beside.Go(func() { c.splits.run(ctx) })
	beside.Go(func() { c.ech.run(ctx) })
	beside.Go(func() { c.echRecords.run(ctx) })
	if c.shared {
		beside.Go(func() { c.followShared(ctx) })
		beside.Go(func() { c.publishNode(ctx) })
		beside.Go(func() { c.keys.run(ctx) })
		beside.Go(func() { c.answerPeers(ctx) })
	}
	c.source.Watch(ctx, c.changed)
	end()
	beside.Wait()
	c.stopping.Store(true)
	return nil
}

// Reload reads the configuration file and applies it, also when it has not
// changed: what it takes from files and the environment may have. Problems are
// logged, each with its place.
func (c *Control) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.frozen {
		return ErrUpgrading
	}
	if c.shared && c.overtakenLocked() && c.reconcileLocked() {
		if c.mu.refused != nil {
			return asRefused(errors.New(c.mu.refused.Problems[0]))
		}
		return nil
	}
	return c.reloadLocked(ViaCLI)
}

func (c *Control) reloadLocked(via Via) error {
	docs, err := c.source.Read(nil)
	return c.applyReadLocked(Cause{Via: via}, docs, err)
}

// changed is Reload for documents that may not have changed: what is served by is
// not applied again.
func (c *Control) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.frozen {
		return // the new process finds it, or thawChanges
	}
	if c.shared && c.reconcileLocked() {
		return
	}
	docs, err := c.source.Read(c.mu.digested)
	if err == nil {
		if tag := etagOf(c.digestsLocked(docs)); tag == c.mu.seen && !c.unsavedLocked() || tag == c.mu.tried {
			return
		}
	}
	_ = c.applyReadLocked(Cause{Via: ViaFile}, docs, err) // it is logged and counted
}

// applyReadLocked applies what was read of the documents.
func (c *Control) applyReadLocked(cause Cause, docs config.Documents, err error) error {
	c.mu.tried = ""
	if err == nil && c.mu.pending != nil && c.editedLocked(*c.mu.pending, docs) {
		if err := c.confirmEditedLocked(); err != nil && c.current.Load() != nil {
			return asRefused(err) // a start goes on, and it is tried again
		}
	}
	c.mu.seen = ""
	if err = c.applyLocked(cause, docs, err); err == nil {
		c.mu.seen = etagOf(c.digestsLocked(docs))
		c.publishLocked()
	}
	return err
}

// Reopen opens the access log's file again, for log rotation.
func (c *Control) Reopen() error { return c.records.reopen() }

// ErrStopping refuses changes that come while ports drain for the last time.
var ErrStopping = errors.New("headgate is stopping")

// close drains and ends everything. To close again does no harm.
func (c *Control) close() {
	c.stopping.Store(true)
	c.files.RefuseWrites() // of a process that was to replace another, and must not
	c.handover.RefuseWrites()
	if !c.closePorts() {
		return
	}
	c.providers.close()
	c.issuer.gate.Close()
	c.issuer.manager.Close()
	c.holds.close()
	c.ports.Wait()
	if p := c.current.Load(); p != nil {
		p.Retire(nil)
	}
	c.spans.Wait()
	c.bans.Close()
	c.gate.Close()
	c.inputs.Close()
	c.records.close()
	for _, end := range c.endings {
		end()
	}
	if err := c.state.Close(); err != nil {
		c.log.Error("close state directory", "error", err)
	}
}

// closePorts begins to drain every port; from then on nothing can change. It
// reports whether it was the first to.
func (c *Control) closePorts() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return false
	}
	c.mu.closed = true
	c.endConfirmLocked()
	c.ports.Close()
	c.publishLocked()
	return true
}

// asRefused returns err as a *Refused.
func asRefused(err error) *Refused {
	var r *Refused
	if errors.As(err, &r) {
		return r
	}
	return &Refused{Err: err}
}
