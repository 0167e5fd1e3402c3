package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// shedEvery is how often a drained machine makes kept connections end: clients that do not
// know yet that it is drained open new ones.
const shedEvery = 10 * time.Second

// The errors of DrainNode and RemoveNode.
var (
	ErrNoNode      = errors.New("there is no such node")
	ErrNodeRunning = errors.New("the node is running")
	ErrNodeChanged = errors.New("the node has published its state at the same moment")
)

// NotReady returns why this machine should get no requests from a load balancer, and should
// not hold a virtual address; "" if it should. The state of servers has no influence.
func (c *Control) NotReady() string { return c.notReady() }

func (c *Control) notReady() string {
	switch {
	case c.stopping.Load():
		return "stopping"
	case !c.ready.Load():
		return "starting"
	case c.drained.Load():
		return "drained by an operator"
	}
	closed := 0
	for _, s := range c.ports.States() {
		if s.State != "listening" && s.State != "draining" {
			closed++
		}
	}
	switch closed {
	case 0:
		return ""
	case 1:
		return "a port does not listen"
	}
	return fmt.Sprintf("%d ports do not listen", closed)
}

// NodeState is the state of a machine.
type NodeState struct {
	store.Node
	// Self reports that it is the machine that answers.
	Self bool
	// State is ready, not_ready, drained, stopped, or missing if it has not been heard from.
	State string
	// Latest is the newest revision that a running machine serves.
	Latest int
}

// The states of machines.
const (
	NodeReady    = "ready"
	NodeNotReady = "not_ready"
	NodeDrained  = "drained"
	NodeStopped  = "stopped"
	NodeMissing  = "missing"
)

// NodeName returns the name of this machine.
func (c *Control) NodeName() string { return c.options.Node }

// Time returns the time that the machines agree on: see store.Time.
func (c *Control) Time() time.Time { return store.Time(c.state) }

// Nodes returns the machines that share the store, in order of their names. This one is
// among them, with its present state.
func (c *Control) Nodes(ctx context.Context) ([]NodeState, error) {
	known, err := store.Nodes(ctx, c.state)
	if err != nil {
		return nil, err
	}
	now, err := c.state.Now(ctx)
	if err != nil {
		now = c.Time() // the engine is away
	}
	own := c.node()
	if own.Drained, _, err = c.drainEntry(ctx, own.Name); err != nil {
		return nil, err
	}
	own.Seen = now
	for i, n := range known {
		if n.Name == own.Name {
			own.Offset = n.Offset
			known = slices.Delete(known, i, i+1)
			break
		}
	}
	known = append(known, own)
	slices.SortFunc(known, func(a, b store.Node) int { return strings.Compare(a.Name, b.Name) })
	all, latest := make([]NodeState, len(known)), 0
	for i, n := range known {
		all[i] = NodeState{Node: n, Self: n.Name == own.Name, State: nodeWord(&n, now)}
		if n.Running(now) {
			latest = max(latest, n.Applied)
		}
	}
	for i := range all {
		all[i].Latest = latest
	}
	return all, nil
}

// nodeWord returns the state of a machine in a word: now is by the engine's clock.
func nodeWord(n *store.Node, now time.Time) string {
	switch {
	case n.Stopped:
		return NodeStopped
	case !n.Running(now):
		return NodeMissing
	case n.Drained != nil:
		return NodeDrained
	case n.NotReady != "":
		return NodeNotReady
	}
	return NodeReady
}

// Node returns the machine with a name. The error is ErrNoNode if there is none.
func (c *Control) Node(ctx context.Context, name string) (NodeState, error) {
	all, err := c.Nodes(ctx)
	if err != nil {
		return NodeState{}, err
	}
	for _, n := range all {
		if n.Name == name {
			return n, nil
		}
	}
	return NodeState{}, ErrNoNode
}

// drainEntry returns the decision of an operator about a machine, nil for none, and the
// revision of the machine's entry, 0 if it has none.
func (c *Control) drainEntry(ctx context.Context, name string) (*store.NodeDrain, store.Revision, error) {
	n, at, err := c.nodeAt(ctx, name)
	if errors.Is(err, ErrNoNode) {
		return nil, 0, nil
	}
	return n.Drained, at, err
}

// nodeAt reads the entry of a machine.
func (c *Control) nodeAt(ctx context.Context, name string) (n store.Node, at store.Revision, err error) {
	e, err := c.state.Get(ctx, store.PrefixNode+name)
	if errors.Is(err, store.ErrNotFound) {
		return n, 0, ErrNoNode
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &n)
	}
	if err != nil {
		return n, 0, fmt.Errorf("read what node %s has published: %w", name, err)
	}
	n.Name, n.Seen = name, e.Modified
	return n, e.Revision, nil
}

// DrainNode marks a machine as drained, or removes the mark if drain is nil. The audit
// records are part of the same commit.
func (c *Control) DrainNode(ctx context.Context, name string, drain *store.NodeDrain, records ...store.Record) error {
	key := store.PrefixNode + name
	for range nodeAttempts {
		n, at, err := c.nodeAt(ctx, name)
		if errors.Is(err, ErrNoNode) && name == c.options.Node {
			n, err = c.node(), nil // nothing is published where nothing is shared
		}
		if err != nil {
			return err
		}
		n.Drained = drain
		value, err := json.Marshal(n)
		if err != nil {
			return err
		}
		put := store.Entry{Key: key, Value: value}
		if c.shared {
			put.TTL = store.NodeLife
		}
		_, err = c.state.Commit(ctx, store.Change{If: []store.Condition{{Key: key, Revision: at}}, Put: []store.Entry{put}, Append: records, Why: "node"})
		if errors.As(err, new(*store.Conflict)) {
			clock.Sleep(ctx, nodeRetry) // the machine has published something that the copy of this one lacks
			continue
		}
		if err == nil && name == c.options.Node {
			c.setDrained(drain)
		}
		return err
	}
	return ErrNodeChanged
}

// nodeAttempts is how often DrainNode reads the entry of a machine again that has changed.
const nodeAttempts = 100

// RemoveNode removes a machine that does not run, so that nothing waits for it any more.
func (c *Control) RemoveNode(ctx context.Context, name string, records ...store.Record) error {
	if err := c.TryRemoveNode(ctx, name); err != nil {
		return err
	}
	n, at, err := c.nodeAt(ctx, name)
	if err != nil {
		return err
	}
	key := store.PrefixNode + n.Name
	_, err = c.state.Commit(ctx, store.Change{If: []store.Condition{{Key: key, Revision: at}}, Delete: []string{key}, Append: records, Why: "node"})
	if errors.As(err, new(*store.Conflict)) {
		return ErrNodeRunning // it has published something at this moment
	}
	return err
}

// TryRemoveNode returns why RemoveNode would fail, and changes nothing.
func (c *Control) TryRemoveNode(ctx context.Context, name string) error {
	n, err := c.Node(ctx, name)
	switch {
	case err != nil:
		return err
	case n.Self || n.State != NodeStopped && n.State != NodeMissing:
		return ErrNodeRunning
	}
	return nil
}

// followDrain acts on what operators have decided about this machine.
func (c *Control) followDrain(ctx context.Context) {
	drain, _, err := c.drainEntry(ctx, c.options.Node)
	if err != nil {
		if !errors.Is(err, store.ErrClosed) { // as in a process that was replaced
			c.log.Error("whether this machine is drained cannot be read", "error", err)
		}
		return
	}
	c.setDrained(drain)
}

// setDrained acts on a decision about this machine.
func (c *Control) setDrained(drain *store.NodeDrain) {
	if is := drain != nil; c.drained.Swap(is) == is {
		return
	}
	if drain == nil {
		c.log.Info("this machine is ready again after it was drained")
		return
	}
	c.log.Warn("this machine is drained: /readyz answers 503, and open connections end with their next response", "who", drain.Who, "why", drain.Why)
	c.ports.Shed()
}

// shedDrained makes kept connections end while the machine is drained, as Envoy does while
// its health check is failed: clients that keep a connection would otherwise stay.
func (c *Control) shedDrained(ctx context.Context) {
	for clock.Sleep(ctx, shedEvery); ctx.Err() == nil; clock.Sleep(ctx, shedEvery) {
		if c.drained.Load() {
			c.ports.Shed()
		}
	}
}
