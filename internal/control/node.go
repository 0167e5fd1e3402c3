package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// nodeLook is how often a machine compares what it has published with its state.
const nodeLook = time.Second

// nodeEnd is how long an end waits to be published, and nodeRetry the time between two tries.
const (
	nodeEnd   = 2 * time.Second
	nodeRetry = 20 * time.Millisecond
)

// soleNode is the name of a machine that shares nothing and whose host name cannot be used.
const soleNode = "local"

// maxNodeTexts limits the addresses and problems that a machine publishes.
const maxNodeTexts = 32

// publishNode publishes what others have to know of this machine, until ctx ends. Then it
// publishes that.
func (c *Control) publishNode(ctx context.Context) {
	var published []byte
	var at time.Time
	fields := false // are published
	var offset time.Duration
	watch := &nodesWatch{c: c, running: map[string]bool{}, gone: map[string]bool{}, behind: map[string]time.Time{}}
	for ctx.Err() == nil {
		watch.check(ctx)
		c.followHostFields()
		c.orderForFollower(ctx)
		due := time.Since(at) >= store.NodeSeen
		if due {
			offset = c.clockOffset(ctx, offset)
		}
		if !fields && published != nil { // then others keep the list
			fields = c.publishFields(ctx) == nil
		}
		value, before, err := c.nodeEntry(ctx, func(n *store.Node) { n.Offset = offset })
		if err == nil && (due || !bytes.Equal(value, published)) {
			if err = c.putNode(ctx, value, before); err == nil {
				published, at = value, time.Now()
				if before == 0 {
					c.joined()
				}
			}
			if p := c.current.Load(); p != nil {
				c.holds.forget(p.Config()) // what another machine had until now
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrClosed) && !errors.As(err, new(*store.Conflict)) {
			c.log.Warn("the state of this machine is not published to the others", "error", err)
		}
		clock.Sleep(ctx, nodeLook)
	}
	c.publishEnd(ctx, offset)
}

// publishEnd publishes that this machine has stopped. Others find out without it, later.
func (c *Control) publishEnd(ctx context.Context, offset time.Duration) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), nodeEnd)
	defer stop()
	for ctx.Err() == nil {
		value, before, err := c.nodeEntry(ctx, func(n *store.Node) { n.Stopped, n.Offset = true, offset })
		if err == nil {
			err = c.putNode(ctx, value, before)
		}
		// The copy of this machine may lack what it has just published.
		if !errors.As(err, new(*store.Conflict)) {
			return
		}
		clock.Sleep(ctx, nodeRetry)
	}
}

// nodeEntry returns the entry of this machine as it should be, and the revision of the
// present one, 0 for none.
func (c *Control) nodeEntry(ctx context.Context, with func(*store.Node)) (value []byte, before store.Revision, err error) {
	have, before, err := c.nodeAt(ctx, c.options.Node)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, 0, err
	}
	if c.alone.lost(have.Process) {
		c.log.Error("another machine has the same name: give each a name of its own with --node", "node", c.options.Node)
	}
	n := c.node()
	n.Drained, n.Orders = have.Drained, c.ordersForLeader(ctx)
	with(&n)
	value, err = json.Marshal(n)
	return value, before, err
}

// putNode writes the entry of this machine unless an operator has changed it since it was
// read.
func (c *Control) putNode(ctx context.Context, value []byte, before store.Revision) error {
	key := store.PrefixNode + c.options.Node
	_, err := c.state.Commit(ctx, store.Change{
		If:  []store.Condition{{Key: key, Revision: before}},
		Put: []store.Entry{{Key: key, Value: value, TTL: store.NodeLife}}, Who: c.options.Node, Why: "node",
	})
	return err
}

// clockOffset returns how far the clock of this machine is ahead of the engine's, and last
// if the engine does not answer.
func (c *Control) clockOffset(ctx context.Context, last time.Duration) time.Duration {
	before := time.Now()
	now, err := c.state.Now(ctx)
	if err != nil {
		return last
	}
	middle := before.Add(time.Since(before) / 2)
	return middle.Sub(now).Round(100 * time.Millisecond)
}

// node returns what others have to know of this machine.
func (c *Control) node() store.Node {
	fields, _ := knownFields()
	n := store.Node{Name: c.options.Node, Version: c.options.Build.Version, Fields: fields, Schema: c.options.Schema, Machine: c.options.Machine, Process: c.alone.process, Wants: c.issuer.manager.Wanted(), NotReady: c.notReady()}
	if p := c.current.Load(); p != nil {
		n.Holds = c.holds.published(p.Config())
	}
	if s := c.standing.Load(); s != nil {
		n.Applied, _ = strconv.Atoi(s.revision) // what could not be saved has no number
		if s.refused != nil {
			n.Problems = append(n.Problems, "the configuration files are rejected: "+s.refused.Problems[0])
		}
		if s.degraded {
			n.Problems = append(n.Problems, "an older revision is served than the configuration files contain")
		}
		for _, w := range s.withheld[:min(len(s.withheld), maxNodeTexts/2)] {
			n.Problems = append(n.Problems, w.text)
		}
	}
	for _, p := range c.ports.States() {
		switch p.State {
		case "draining":
		case "listening":
			n.Addresses = append(n.Addresses, p.Address)
		default:
			n.Problems = append(n.Problems, fmt.Sprintf("port %s does not listen at %s: %s", p.Name, p.Address, p.Reason))
		}
	}
	if c.alone.isLost() {
		n.Problems = append(n.Problems, "another machine has the same name: give each a name of its own with --node")
	}
	slices.Sort(n.Addresses)
	slices.Sort(n.Problems)
	n.Addresses = slices.Compact(n.Addresses)
	n.Addresses, n.Problems = n.Addresses[:min(len(n.Addresses), maxNodeTexts)], n.Problems[:min(len(n.Problems), maxNodeTexts)]
	return n
}

// aloneAgain is for how long another machine with the same name is a problem after it last
// published something.
const aloneAgain = 3 * store.NodeSeen

// alone finds out whether another machine publishes under the name of this one.
type alone struct {
	process   string      // of this machine
	published bool        // by this process; of the goroutine that publishes
	anew      atomic.Bool // another process has published meanwhile; see start
	until     atomic.Pointer[time.Time]
}

// lost takes the process in the entry of this machine. It reports whether another machine is
// noticed that was not before.
func (a *alone) lost(process string) (is bool) {
	if a.anew.Swap(false) {
		a.published = false
	}
	switch {
	case process == a.process:
		a.published = true
	case a.published && process != "":
		is = !a.isLost()
		until := time.Now().Add(aloneAgain)
		a.until.Store(&until)
	}
	return is
}

// start forgets what was published: an upgrade has failed, and what the new process has published is no other
// machine's.
func (a *alone) start() { a.anew.Store(true) }

// isLost reports whether another machine has the same name.
func (a *alone) isLost() bool {
	until := a.until.Load()
	return until != nil && time.Now().Before(*until)
}
