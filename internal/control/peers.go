package control

import (
	"context"
	"slices"

	"headgate/internal/query"
	"headgate/internal/store"
)

// newPeers creates the Peers with which this machine queries others, if there can be others.
func (c *Control) newPeers() {
	if by, ok := c.state.(store.Messenger); ok && c.shared {
		c.peers = query.New(query.Options{Messenger: by, Node: c.options.Node, Log: c.log})
		c.peers.Handle(questionVote, c.answerVote)
	}
}

// answerPeers handles the queries of other machines until ctx ends.
func (c *Control) answerPeers(ctx context.Context) {
	if c.peers == nil {
		return
	}
	c.peers.Start()
	<-ctx.Done()
	c.peers.Close()
}

// Peers returns the Peers with which this machine queries the other machines that share the store,
// and which accepts handlers for their queries; nil if this machine shares nothing. It is constant.
func (c *Control) Peers() *query.Peers { return c.peers }

// runningOthers returns the other machines that run, in order of their names.
func (c *Control) runningOthers(ctx context.Context) ([]store.Node, error) {
	now := c.Time()
	nodes, err := store.Nodes(ctx, c.state)
	return slices.DeleteFunc(nodes, func(n store.Node) bool { return n.Name == c.options.Node || !n.Running(now) }), err
}
