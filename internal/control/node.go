package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// nodeLook is how often a machine looks whether what it has published is still so.
const nodeLook = time.Second

// nodeEnd is how long an end waits to be published.
const nodeEnd = 2 * time.Second

// publishNode publishes what others have to know of this machine, until ctx ends. Then it
// publishes that.
func (c *Control) publishNode(ctx context.Context) {
	var said []byte
	var at time.Time
	for ctx.Err() == nil {
		value, err := json.Marshal(c.node())
		if err == nil && (!bytes.Equal(value, said) || time.Since(at) >= store.NodeSeen) {
			if err = c.putNode(ctx, value); err == nil {
				said, at = value, time.Now()
			}
			if p := c.current.Load(); p != nil {
				c.holds.forget(p.Config()) // what another machine had until now
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			c.log.Warn("what this machine serves is not published to the others", "error", err)
		}
		clock.Sleep(ctx, nodeLook)
	}
	ended := c.node()
	ended.Stopped = true
	if value, err := json.Marshal(ended); err == nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), nodeEnd)
		defer stop()
		_ = c.putNode(ctx, value) // others find out without it
	}
}

func (c *Control) putNode(ctx context.Context, value []byte) error {
	_, err := c.state.Commit(ctx, store.Change{
		Put: []store.Entry{{Key: store.PrefixNode + c.options.Node, Value: value, TTL: store.NodeLife}}, Who: c.options.Node, Why: "node",
	})
	return err
}

// node returns what others have to know of this machine.
func (c *Control) node() store.Node {
	n := store.Node{Name: c.options.Node, Version: c.options.Build.Version, Wants: c.issuer.manager.Wanted()}
	if p := c.current.Load(); p != nil {
		n.Holds = c.holds.published(p.Config())
	}
	if s := c.standing.Load(); s != nil {
		n.Applied, _ = strconv.Atoi(s.revision) // what could not be saved has no number
	}
	return n
}
