package control

import (
	"context"

	"headgate/internal/pair"
	"headgate/internal/store"
)

// ordersForLeader returns the certificates that the leader of a pair must order for this machine:
// those for labels, documents or objects that only this machine has. It is nil on a machine that is
// not a follower.
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
		return nil // it has not published the certificates that it needs
	}
	return c.issuer.manager.Missing(leader.Wants)
}

// orderForFollower orders the certificates that the follower of this machine needs. They are kept
// while the follower is not connected, until it is removed.
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
		return // the last known orders are kept
	}
	var orders []store.NodeOrder
	for i := range nodes {
		if nodes[i].Name != c.options.Node && len(orders)+len(nodes[i].Orders) <= store.MaxNodeOrders {
			orders = append(orders, nodes[i].Orders...)
		}
	}
	c.issuer.manager.SetOthers(orders)
}
