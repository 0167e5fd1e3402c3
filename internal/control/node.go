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

// How often a machine looks whether what it has published is still so, and after how long
// it publishes it again in any case, so that others see it running.
const (
	nodeLook = 2 * time.Second
	nodeSeen = time.Minute
)

// publishNode publishes what others have to know of this machine, until ctx ends.
func (c *Control) publishNode(ctx context.Context) {
	var said []byte
	var at time.Time
	for ctx.Err() == nil {
		value, err := json.Marshal(c.node())
		if err == nil && (!bytes.Equal(value, said) || time.Since(at) >= nodeSeen) {
			_, err = c.state.Commit(ctx, store.Change{
				Put: []store.Entry{{Key: store.PrefixNode + c.options.Node, Value: value, TTL: store.NodeLife}}, Who: c.options.Node, Why: "node",
			})
			if err == nil {
				said, at = value, time.Now()
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			c.log.Warn("what this machine serves is not published to the others", "error", err)
		}
		clock.Sleep(ctx, nodeLook)
	}
}

// node returns what others have to know of this machine.
func (c *Control) node() store.Node {
	n := store.Node{Name: c.options.Node, Version: c.options.Build.Version, Wants: c.issuer.manager.Wanted()}
	if s := c.standing.Load(); s != nil {
		n.Applied, _ = strconv.Atoi(s.revision) // what could not be saved has no number
	}
	return n
}
