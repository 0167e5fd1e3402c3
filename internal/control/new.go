package control

import (
	"context"
	"errors"

	"headgate/internal/bans"
	"headgate/internal/certs"
	"headgate/internal/config/disk"
	"headgate/internal/exchange"
	"headgate/internal/feature/clientip"
	"headgate/internal/gate"
	"headgate/internal/geo"
	"headgate/internal/lists"
	"headgate/internal/metrics"
	"headgate/internal/plan/inputs"
	"headgate/internal/ports"
	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/local"
)

// New opens the state directory and returns a control that serves nothing yet.
// Run closes it.
func New(o Options) (*Control, error) {
	st, err := openState(&o)
	if err != nil {
		return nil, err
	}
	c := &Control{
		log: o.Log, options: o, state: st.all, files: st.files, shared: st.shared, history: st.history, source: st.source,
		uploads: certs.NewUploads(store.ValuesOf(st.all)), metrics: metrics.New(o.Build), tunnels: exchange.NewTunnels(), records: &records{log: o.Log},
	}
	c.handover = handoverOf(st.all)
	if c.watcher = o.Watcher; c.watcher == nil {
		c.watcher = unwatched{}
	}
	c.alone.process = string(store.NewID())
	c.changes.remember(st.history)
	c.newEngines(&o)
	c.newHolds(st.node)
	c.newPeers()
	c.newPorts(&o)
	c.issuer = newIssuer(o.Log, st.all, c.ports, st.node, agentOf(&o), c.watcher.Order, c.watcher.DemandLimited)
	c.newDemandIssuer()
	c.echRecords = newECHRecords(c)
	c.ech.renewed = c.echRecords.notify
	c.providers = newProviders(&o)
	c.holds.unknown = c.providers.unknown
	c.participants = []Participant{background{}, c.records, &c.rings, sockets{c.ports}, c.issuer, c.providers, c.holds, c.splits, c.ech, &defence{engine: c.bans, lists: c.lists}, signIn{c.gate}}
	c.observers = []func(*Event){c.logChange, c.count, func(*Event) { c.echRecords.notify() }}
	c.connectMetrics()
	return c, nil
}

// agentOf is the User-Agent of requests that headgate sends for itself.
func agentOf(o *Options) string { return "headgate/" + o.Build.Version }

// openedState is where the state of this machine is, and what was read from it.
type openedState struct {
	files   *local.Store
	all     store.Store // files, or the shared store
	shared  bool
	node    string // the name in what is kept: empty where the state is not shared
	source  *disk.Source
	history *history.History
}

// openState opens the state of this machine. It changes the node's name in o where only this
// machine sees it.
func openState(o *Options) (*openedState, error) {
	files, err := local.Open(local.Options{Dir: o.StateDir, Log: o.Log, Key: o.StateKey, Lock: o.Inherited.TakeFile(lockFile), Hold: o.TakeOver != nil})
	if err != nil {
		return nil, err
	}
	st := &openedState{files: files, all: files, shared: o.Share != nil, source: disk.Open(o.ConfigFile, o.Log)}
	past := history.Options{Dir: o.StateDir, Config: o.ConfigFile, Log: o.Log, Folder: st.source.Folder}
	if st.shared {
		if st.all, err = o.Share(files); err != nil {
			files.Close()
			return nil, err
		}
		st.node = o.Node
		past.Shared, past.Node = true, o.Node
	} else {
		if files.Mirrors() {
			defer files.Close()
			of, err := files.MirrorOf(context.Background())
			return nil, errors.Join(err, &Copied{Dir: o.StateDir, Of: of})
		}
		if store.CheckName(store.PrefixNode+o.Node) != nil {
			o.Node = soleNode // a host name that is no name of a node
		}
	}
	past.Store = st.all
	if st.history, err = history.Open(context.Background(), past); err != nil {
		st.all.Close()
		return nil, err
	}
	return st, nil
}

// newEngines makes what configurations use and what outlives them: bans, lists, the gate, the
// database of places.
func (c *Control) newEngines(o *Options) {
	c.bans = bans.New(bans.Options{Log: o.Log, Store: c.state, Clock: c.Time, CDN: clientip.CDNWith, Told: c.watcher.Ban, Cut: c.cutFrom})
	c.lists = lists.New(lists.Options{
		Log: o.Log, Dir: lists.DirOf(o.StateDir), Version: o.Build.Version, Agent: agentOf(o), Roots: o.Roots, Protected: c.bans.Protected, Notify: c.watcher.List,
	})
	c.gate = gate.New(gate.Options{Log: o.Log, Store: c.state, Roots: o.Roots, Publish: c.watcher.Person, Cut: c.endSession, Detached: c.detached})
	c.geo = geo.New(geo.Options{Log: o.Log, Dir: geo.DirOf(o.StateDir), Agent: agentOf(o), Roots: o.Roots})
	c.inputs = inputs.NewLoader(inputs.Options{Log: o.Log, Values: store.ValuesOf(c.state), Uploads: c.uploads, Lists: c.lists, Geo: c.geo})
}

// newHolds reads which servers operators hold, on which node.
func (c *Control) newHolds(node string) {
	c.holds = newHolds(c.state, c.log, c.watcher.Held)
	c.holds.node = node
	c.holds.remember(context.Background())
	c.splits = newSplits(c)
	c.splits.refresh(context.Background())
}

// newPorts makes the set of ports, and the keys that they share with other machines.
func (c *Control) newPorts(o *Options) {
	c.series = metrics.NewSeries(c.metrics, 0)
	c.quic, c.keys = quicKeys(o.Inherited), &sharedKeys{}
	if c.shared {
		c.keys = newSharedKeys(c.state, o.Log, c.quic)
		c.startPurges(context.Background())
	}
	c.ech = newECHKeys(c.state, o.Log)
	c.ports = ports.New(ports.Options{
		Log: o.Log, Metrics: c.metrics, Current: &c.current, Changed: c.watcher.Ports, QUIC: c.quic, Inheritance: o.Inherited, Activated: o.Activated, Hold: o.TakeOver != nil,
	})
}

// connectMetrics tells the page of metrics where the numbers are.
func (c *Control) connectMetrics() {
	c.metrics.AccessLog(c.records.dropped)
	c.metrics.Spans(func() (sent, dropped, lost uint64) {
		return c.spans.Sent.Load(), c.spans.Dropped.Load(), c.spans.Lost.Load()
	})
	c.metrics.Certificates(c.certificates)
	c.metrics.Providers(c.providerMetrics)
	c.metrics.Defence(c.defenceMetrics)
	c.metrics.Splits(c.splits.metrics)
	c.metrics.Gate(c.gate.Counts)
	c.metrics.OnDemand(c.issuer.gate.Counts)
	c.metrics.Store(c.storeMetrics)
	c.metrics.Pair(c.pairMetrics)
}
