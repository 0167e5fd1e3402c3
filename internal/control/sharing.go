package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/config"
	"headgate/internal/metrics"
	"headgate/internal/pair"
	"headgate/internal/schema"
	"headgate/internal/store"
)

// sharedStore is a store of several machines: a *cluster.Store.
type sharedStore interface {
	Health() cluster.Health
	Adopt(context.Context) error
	Push(context.Context) error
}

// Copied is the error of New for a state directory that is a copy of what several machines
// share, if this machine is not to share anything: what is changed in a copy would be lost.
type Copied struct {
	// Dir is the state directory, and Of identifies the store that it is a copy of.
	Dir, Of string
}

// Error names the directory and the store.
func (c *Copied) Error() string {
	return fmt.Sprintf("the state directory %s is a copy of %s", c.Dir, c.Of)
}

// ErrNotShared is the error of decisions about a shared store where nothing is shared.
var ErrNotShared = errors.New("this machine shares no database with others")

// StoreHealth returns the state of the shared store; false if nothing is shared.
func (c *Control) StoreHealth() (cluster.Health, bool) {
	s, ok := c.state.(sharedStore)
	if !ok {
		return cluster.Health{}, false
	}
	return s.Health(), true
}

// AdoptStore accepts a shared store that was set back to an older state.
func (c *Control) AdoptStore(ctx context.Context) error {
	if s, ok := c.state.(sharedStore); ok {
		return s.Adopt(ctx)
	}
	return ErrNotShared
}

// PushStore writes the state of this machine to a shared store that was set back to an older
// state.
func (c *Control) PushStore(ctx context.Context) error {
	if s, ok := c.state.(sharedStore); ok {
		return s.Push(ctx)
	}
	return ErrNotShared
}

// storeMetrics returns the state of the shared store for the metrics.
func (c *Control) storeMetrics() (s metrics.Store, ok bool) {
	h, ok := c.StoreHealth()
	return metrics.Store{
		Following: h.State == cluster.Following, Lag: uint64(h.Head - h.Revision), Reconnects: h.Reconnects,
		Commits: h.Commits, CommitTime: h.CommitTime, Waits: h.Waits, WatchTime: h.WatchTime,
	}, ok
}

// paired is the store of a machine of a pair: a *pair.Store.
type paired interface{ State() pair.State }

// pairMetrics returns the state of the pair for the metrics; false if there is none.
func (c *Control) pairMetrics() (metrics.Pair, bool) {
	p, ok := c.state.(paired)
	if !ok {
		return metrics.Pair{}, false
	}
	s := p.State()
	return metrics.Pair{Leads: s.Role == pair.Leader, Connected: s.Connected, Lag: s.Lag, Reconnects: s.Reconnects, LastContact: s.LastContact}, true
}

// NodeEvent is something that happened to a machine or to the shared store.
type NodeEvent struct {
	// Kind is one of the constants.
	Kind NodeEventKind
	// Node is the machine, Version its version.
	Node, Version string
	// Why is the cause, in one line.
	Why string
	// Revision is what the machine serves, Latest the newest that a running machine serves.
	Revision, Latest int
	// Document and Kept are files, for EditSetAside.
	Document, Kept string
	// Away is how long the shared store was away, for StoreReturned.
	Away time.Duration
}

// NodeEventKind is what happened.
type NodeEventKind int

// The kinds of events.
const (
	NodeJoined    NodeEventKind = iota // the machine has published its state for the first time
	NodeDetached                       // it has stopped to publish its state
	NodeReturned                       // it publishes its state again after it was detached
	NodeBehind                         // it serves an older configuration than others
	StoreAway                          // it cannot reach the shared store
	StoreReturned                      // it follows the shared store again
	StoreRewound                       // it sees that the shared store was set back
	EditSetAside                       // it has kept an edit of Document beside it, in Kept
)

// behindAfter is how long a machine may serve an older configuration than others before that
// is reported.
const behindAfter = 30 * time.Second

// nodesWatch reports what happens to machines. It belongs to one goroutine.
type nodesWatch struct {
	c       *Control
	store   cluster.State
	rewinds uint64
	away    time.Time // since when the store is away; the zero time while it is not
	running map[string]bool
	gone    map[string]bool      // that were reported as detached
	behind  map[string]time.Time // since when; the zero time once it is reported
}

// check reports what has changed since the last call.
func (w *nodesWatch) check(ctx context.Context) {
	if h, ok := w.c.StoreHealth(); ok {
		if h.Rewinds > w.rewinds { // also if an operator has decided since
			w.c.watcher.Node(NodeEvent{Kind: StoreRewound, Node: w.c.options.Node, Why: fmt.Sprint(h.Rewind)})
		}
		switch {
		case h.State == cluster.Detached && w.store != h.State:
			w.away = time.Now()
			w.c.watcher.Node(NodeEvent{Kind: StoreAway, Node: w.c.options.Node, Why: fmt.Sprint(h.Why)})
		case h.State == cluster.Following && !w.away.IsZero():
			w.c.watcher.Node(NodeEvent{Kind: StoreReturned, Node: w.c.options.Node, Away: time.Since(w.away)})
			w.away = time.Time{}
		}
		w.store, w.rewinds = h.State, h.Rewinds
	}
	if w.store != cluster.Following {
		return // what it knows of others is old
	}
	nodes, err := w.c.Nodes(ctx)
	if err != nil {
		return // the store was lost at this moment
	}
	first := slices.IndexFunc(nodes, func(n NodeState) bool { return runs(n.State) })
	report := first >= 0 && nodes[first].Self // one of the running machines reports
	now, seen := time.Now(), map[string]bool{}
	for _, n := range nodes {
		seen[n.Name] = runs(n.State)
		what := NodeEvent{Node: n.Name, Version: n.Version, Revision: n.Applied, Latest: n.Latest}
		if what.Kind = NodeDetached; w.running[n.Name] && n.State == NodeMissing {
			w.gone[n.Name] = true
			w.report(report, what)
		}
		if what.Kind = NodeReturned; w.gone[n.Name] && runs(n.State) {
			delete(w.gone, n.Name)
			w.report(report, what)
		}
		since, known := w.behind[n.Name]
		switch late := runs(n.State) && n.Applied > 0 && n.Applied < n.Latest; {
		case !late:
			delete(w.behind, n.Name)
		case !known:
			w.behind[n.Name] = now
		case report && !since.IsZero() && now.Sub(since) >= behindAfter:
			w.behind[n.Name] = time.Time{}
			w.c.watcher.Node(NodeEvent{Kind: NodeBehind, Node: n.Name, Version: n.Version, Revision: n.Applied, Latest: n.Latest})
		}
	}
	w.running = seen
}

// unknownNodes returns a note for each name in a list of nodes that no known node has.
func (c *Control) unknownNodes(cfg *config.Config) []schema.Problem {
	if !cfg.NamesNodes() {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), nodeEnd)
	defer stop()
	all, err := store.Nodes(ctx, c.state)
	if err != nil {
		return nil // the store says so elsewhere
	}
	known := []string{c.options.Node}
	for _, n := range all {
		known = append(known, n.Name)
	}
	return cfg.UnknownNodes(known)
}

// report reports what happened if this machine is the one that does.
func (w *nodesWatch) report(is bool, e NodeEvent) {
	if is {
		w.c.watcher.Node(e)
	}
}

// runs reports whether a machine in a state is running.
func runs(state string) bool { return state != NodeStopped && state != NodeMissing }

// joined reports that this machine has published its state for the first time.
func (c *Control) joined() {
	c.watcher.Node(NodeEvent{Kind: NodeJoined, Node: c.options.Node, Version: c.options.Build.Version})
}
