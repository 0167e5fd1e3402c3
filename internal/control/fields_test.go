package control

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// A machine with an older release could not serve a configuration with fields that it does
// not know: no other machine saves one while it runs.
func TestFieldsThatARunningNodeLacksAreRefused(t *testing.T) {
	e := newEngine()
	all := map[string]string{"a.yaml": policy("a", 1)}
	a := newFolder(t, "a", e, all)
	const older = "0123456789abcdef"
	publish := func(n store.Node) {
		t.Helper()
		value, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		at, err := e.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixNode + "old", Value: value}}})
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); ; testhouse.Pause() {
			if _, seen, err := a.c.nodeAt(t.Context(), "old"); err == nil && seen == at {
				break
			} else if time.Now().After(end) {
				t.Fatal("a does not see what the other node publishes")
			}
		}
	}
	known := slices.DeleteFunc(slices.Clone(config.KnownFields()), func(name string) bool { return strings.HasSuffix(name, ".request_body_limit") })
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(strings.Join(known, "\n")))
	w.Close()
	publish(store.Node{Version: "0.9", Fields: older})
	if _, err := e.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixFields + older, Value: b.Bytes()}}}); err != nil {
		t.Fatal(err)
	}
	own, _ := knownFields()
	for end := time.Now().Add(30 * time.Second); ; testhouse.Pause() {
		n, _, err := a.c.nodeAt(t.Context(), "a")
		if _, missing := a.c.state.Get(t.Context(), store.PrefixFields+own); err == nil && missing == nil && n.Fields == own {
			break
		} else if time.Now().After(end) {
			t.Fatalf("a has not published what it knows: %+v %v %v", n, err, missing)
		}
	}
	change := func(text string, dry bool) error {
		_, err := a.c.Change(Edit{DryRun: dry, Cause: Cause{Via: ViaAPI}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
			docs.List = []config.Document{{Name: docs.List[0].Name, Data: []byte(text)}}
			return docs, nil
		}})
		return err
	}
	for _, dry := range []bool{true, false} {
		var refused *Refused
		if err := change(policy("a", 2), dry); !errors.As(err, &refused) || len(refused.Problems) != 1 ||
			!strings.Contains(refused.Problems[0].Error(), "node old (headgate 0.9) does not know the field request_body_limit") {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
	a.has(all)
	if err := change("version: 1\n", false); err != nil {
		t.Errorf("a change without the field: %v", err)
	}
	publish(store.Node{Version: "0.9", Fields: older, Stopped: true})
	if err := change(policy("a", 3), false); err != nil {
		t.Errorf("after the older node has stopped: %v", err)
	}
	publish(store.Node{Version: "1.0", Fields: own})
	a.stop()
	a.start() // removes the list that no node refers to
	for end := time.Now().Add(30 * time.Second); ; testhouse.Pause() {
		if _, err := e.Get(t.Context(), store.PrefixFields+older); errors.Is(err, store.ErrNotFound) {
			break
		} else if time.Now().After(end) {
			t.Fatal("the list of a release that no node has is kept")
		}
	}
}
