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
	// Applied is the number of the revision of the documents that it serves.
	Applied int `json:"applied,omitempty"`
	// Wants are the names of the certificates that it wants. A certificate that a node
	// wants is not removed.
	Wants []string `json:"wants,omitempty"`
	// Seen is when it published this, by the engine's clock. It is not written: Nodes
	// sets it.
	Seen time.Time `json:"-"`
}

// NodeLife is for how long what a machine has published is kept after it was last heard
// from.
const NodeLife = 7 * 24 * time.Hour

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
