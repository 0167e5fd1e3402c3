package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Node is what a machine publishes about itself under PrefixNode, for the other machines
// and for operators.
type Node struct {
	// Name identifies the machine.
	Name string `json:"name"`
	// Version is that of its headgate.
	Version string `json:"version,omitempty"`
	// Fields is the digest of the configuration fields that it knows: PrefixFields has them.
	Fields string `json:"fields,omitempty"`
	// Schema is the newest version of the tables of a shared database that it knows; 0 is 1.
	Schema int `json:"schema,omitempty"`
	// Machine identifies the state directory of the machine.
	Machine string `json:"machine,omitempty"`
	// Process identifies its process. Another machine with the same name has others.
	Process string `json:"process,omitempty"`
	// Applied is the number of the revision of the documents that it serves.
	Applied int `json:"applied,omitempty"`
	// Wants are the names of the certificates that it wants. A certificate that a node
	// wants is not removed.
	Wants []string `json:"wants,omitempty"`
	// Orders are the certificates that it needs and cannot order, as the follower of a pair, and
	// that its leader does not need: see MaxNodeOrders.
	Orders []NodeOrder `json:"orders,omitempty"`
	// Holds are the keys, without their prefix, of the servers that it has of those which
	// operators drain or have disabled.
	Holds []string `json:"holds,omitempty"`
	// Addresses are those that its ports listen on.
	Addresses []string `json:"addresses,omitempty"`
	// NotReady is why it should get no requests, "" if it should.
	NotReady string `json:"not_ready,omitempty"`
	// Problems are what an operator has to look at.
	Problems []string `json:"problems,omitempty"`
	// Offset is how far its clock is ahead of the engine's, to a tenth of a second.
	Offset time.Duration `json:"clock_offset,omitempty"`
	// Drained is the decision of an operator that it should get no requests, nil for none.
	// Operators write it, on any machine; the machine itself keeps it as it is.
	Drained *NodeDrain `json:"drained,omitempty"`
	// Stopped says that it has ended, and not by a crash.
	Stopped bool `json:"stopped,omitempty"`
	// Seen is when it published this, by the engine's clock. It is not written: Nodes
	// sets it.
	Seen time.Time `json:"-"`
}

// NodeOrder is a certificate that another machine has to order.
type NodeOrder struct {
	// Entry is the ACME entry to order it with, and Names are its names.
	Entry string   `json:"entry"`
	Names []string `json:"names"`
}

// MaxNodeOrders limits the certificates that a machine has another one order.
const MaxNodeOrders = 1000

// Outdated is the error of a migration of a shared database while a node runs that could not use it
// afterwards.
type Outdated struct {
	// Node is its name, Release its version of headgate, and Knows the version of the tables.
	Node, Release string
	Knows, Needs  int
}

// Error says what to do.
func (o *Outdated) Error() string {
	who := "node " + o.Node
	if o.Release != "" {
		who += fmt.Sprintf(" (headgate %s)", o.Release)
	}
	return fmt.Sprintf("%s runs and cannot use version %d of the database, it knows version %d: upgrade it first", who, o.Needs, o.Knows)
}

// NodeDrain is the decision to send no more requests to a machine.
type NodeDrain struct {
	// Since is when it was made.
	Since time.Time `json:"since"`
	// Who made the decision.
	Who string `json:"who,omitempty"`
	// Why is the reason that was given.
	Why string `json:"why,omitempty"`
}

// NodeLife is for how long what a machine has published is kept after it was last heard
// from.
const NodeLife = 7 * 24 * time.Hour

// NodeSeen is how often a machine publishes at least, and nodeMissed after which time
// without that it counts as not running.
const (
	NodeSeen   = 30 * time.Second
	nodeMissed = 3 * NodeSeen
)

// Running reports whether a machine runs, as far as the others know: now is by the engine's
// clock.
func (n *Node) Running(now time.Time) bool { return !n.Stopped && now.Sub(n.Seen) < nodeMissed }

// Nodes returns what all machines have published, in order of their names. The error says
// that it is not known of all.
func Nodes(ctx context.Context, s Store) ([]Node, error) {
	entries, _, err := s.Snapshot(ctx, PrefixNode)
	if err != nil {
		return nil, err
	}
	all := make([]Node, 0, len(entries))
	for _, e := range entries {
		n := Node{}
		if err := json.Unmarshal(e.Value, &n); err != nil {
			return nil, fmt.Errorf("read what node %s has published: %w", strings.TrimPrefix(e.Key, PrefixNode), err)
		}
		n.Name, n.Seen = strings.TrimPrefix(e.Key, PrefixNode), e.Modified
		all = append(all, n)
	}
	return all, nil
}

// Wanted reports whether any of the nodes wants a certificate.
func Wanted(nodes []Node, certificate string) bool {
	return slices.ContainsFunc(nodes, func(n Node) bool { return slices.Contains(n.Wants, certificate) })
}
