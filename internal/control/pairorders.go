package control

import (
	"context"

	"headgate/internal/pair"
	"headgate/internal/store"
)

// ordersForLeader returns the certificates that the leader of a pair has to order for this
// machine: those that labels or documents which only this machine has define, or objects of this
// machine. It is nil on all machines that do not follow.
func (c *Control) ordersForLeader(ctx context.Context) []store.NodeOrder {
	p, ok := c.state.(paired)
	if !ok {
		return nil
	}
	st := p.State()
	if st.Role != pair.Follower {
		return nil
	}
	leader, _, err := c.nodeAt(ctx, st.Leader)
	if err != nil {
		return nil // it has not published what it wants
	}
	return c.issuer.manager.Missing(leader.Wants)
}

// orderForFollower orders what the follower of this machine wants. A follower that is away keeps
// its certificates until it is removed.
func (c *Control) orderForFollower(ctx context.Context) {
	p, ok := c.state.(paired)
	if !ok {
		return
	}
	if p.State().Role != pair.Leader {
		c.issuer.manager.SetOthers(nil)
		return
	}
	nodes, err := store.Nodes(ctx, c.state)
	if err != nil {
		return // what was known is kept
	}
	var orders []store.NodeOrder
	for i := range nodes {
		if nodes[i].Name != c.options.Node && len(orders)+len(nodes[i].Orders) <= store.MaxNodeOrders {
			orders = append(orders, nodes[i].Orders...)
		}
	}
	c.issuer.manager.SetOthers(orders)
}
