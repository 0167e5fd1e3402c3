package control

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/store"
)

// maxFields is how large the names of the fields of a release are at most, in bytes.
const maxFields = 1 << 20

// knownFields are the names of the configuration fields that this release knows, compressed,
// with their digest.
var knownFields = sync.OnceValues(func() (digest string, packed []byte) {
	text := strings.Join(config.KnownFields(), "\n")
	sum := sha256.Sum256([]byte(text))
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		panic("control: " + err.Error()) // to memory
	}
	if err := w.Close(); err != nil {
		panic("control: " + err.Error())
	}
	return hex.EncodeToString(sum[:16]), b.Bytes()
})

// publishFields writes which configuration fields this release knows, unless that is known,
// and removes what no node refers to any more.
func (c *Control) publishFields(ctx context.Context) error {
	digest, packed := knownFields()
	key := store.PrefixFields + digest
	have, _, err := c.state.Snapshot(ctx, store.PrefixFields)
	if err != nil {
		return err
	}
	nodes, err := store.Nodes(ctx, c.state)
	if err != nil {
		return err
	}
	used := map[string]bool{key: true}
	for _, n := range nodes {
		used[store.PrefixFields+n.Fields] = true
	}
	change := store.Change{Who: c.options.Node, Why: "node", Put: []store.Entry{{Key: key, Value: packed}}, If: []store.Condition{{Key: key}}}
	for _, e := range have {
		if e.Key == key {
			change.Put, change.If = nil, nil
		} else if !used[e.Key] && len(change.Delete) < store.MaxOperations/2 {
			change.Delete = append(change.Delete, e.Key)
		}
	}
	if len(change.Put)+len(change.Delete) == 0 {
		return nil
	}
	if _, err = c.state.Commit(ctx, change); errors.As(err, new(*store.Conflict)) {
		return nil // another node has written it
	}
	return err
}

// nodesKnow refuses a change that uses a field that a running node does not know: it could
// not serve the configuration. What was saved already, and what a start finds, is not
// refused.
func (ch *change) nodesKnow(cfg *config.Config) error {
	c := ch.control
	if !c.shared || ch.next.Starting() || ch.adopted != nil || ch.servesKept() {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), nodeEnd)
	defer stop()
	nodes, err := store.Nodes(ctx, c.state)
	own, _ := knownFields()
	if err != nil {
		return nil // nothing can be saved either
	}
	var now time.Time
	for _, n := range nodes {
		if n.Fields == "" || n.Fields == own || n.Stopped {
			continue
		}
		if now.IsZero() {
			if now, err = c.state.Now(ctx); err != nil {
				return nil // likewise
			}
		}
		known, err := c.fieldsOf(ctx, n.Fields)
		if err != nil || !n.Running(now) {
			continue
		}
		who := "node " + n.Name
		if n.Version != "" {
			who += fmt.Sprintf(" (headgate %s)", n.Version)
		}
		if problems := cfg.FieldsOutside(known, who, "install this release on it first, or leave the field out"); len(problems) > 0 {
			return &Refused{Problems: problems}
		}
	}
	return nil
}

// fieldsOf reads the names of the fields of another release.
func (c *Control) fieldsOf(ctx context.Context, digest string) ([]string, error) {
	e, err := c.state.Get(ctx, store.PrefixFields+digest)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(e.Value))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFields))
	return strings.Split(string(text), "\n"), err
}
