package control

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// voters is two machines with a port each, which share a folder of files.
type voters struct {
	t    *testing.T
	e    sharedEngine
	at   []string // addresses of the machines
	a, b *member
}

func newVoters(t *testing.T) *voters {
	t.Helper()
	v := &voters{t: t, e: newEngine(), at: testhouse.Addresses(t, 2)}
	v.a = newFolder(t, "a", v.e, map[string]string{"x.yaml": v.text("")})
	v.b = newFolder(t, "b", v.e, nil)
	v.b.has(map[string]string{"x.yaml": v.text("")})
	for _, m := range []*member{v.a, v.b} {
		if err := os.WriteFile(filepath.Join(m.dir, "state", AllowHostFields), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v.knows("b")
	return v
}

// text is the file of the machines, with a proxy of a file if page is not empty.
func (v *voters) text(page string) string {
	text := "version: 1\nports:\n  pa: {address: " + v.at[0] + ", protocol: http, nodes: [a]}\n  pb: {address: " + v.at[1] + ", protocol: http, nodes: [b]}\n"
	if page != "" {
		text += "proxies:\n  shop:\n    virtual_hosts: [shop.example]\n    routes:\n      - {fixed_response: {status: 200}, maintenance: {file: " + page + "}}\n"
	}
	return text
}

// knows waits until a knows that a machine runs.
func (v *voters) knows(name string) {
	v.t.Helper()
	for end := time.Now().Add(patience); ; testhouse.Pause() {
		if n, _, err := v.a.c.nodeAt(v.t.Context(), name); err == nil && !n.Stopped {
			return
		}
		if time.Now().After(end) {
			v.t.Fatalf("a does not know that %s runs", name)
		}
	}
}

// publish has a machine that does not exist publish something.
func (v *voters) publish(n store.Node) {
	v.t.Helper()
	value, err := json.Marshal(n)
	if err == nil {
		_, err = v.e.Commit(v.t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixNode + n.Name, Value: value}}})
	}
	if err != nil {
		v.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; testhouse.Pause() {
		if have, _, err := v.a.c.nodeAt(v.t.Context(), n.Name); err == nil && have.Stopped == n.Stopped && (have.Drained == nil) == (n.Drained == nil) {
			return
		}
		if time.Now().After(end) {
			v.t.Fatalf("a does not know what %s publishes", n.Name)
		}
	}
}

func (v *voters) change(on *member, text string, dry bool) (Event, error) {
	return on.c.Change(Edit{DryRun: dry, Cause: Cause{Via: ViaAPI, Who: "ann"}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		docs.List = []config.Document{{Name: docs.List[0].Name, Data: []byte(text)}}
		return docs, nil
	}})
}

func (v *voters) page(m *member) {
	v.t.Helper()
	if err := os.WriteFile(filepath.Join(m.file, "page.html"), []byte("closed"), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// TestAnotherMachineRejectsWhatItCannotServe tests a file that only one machine has: the change and its dry run are rejected with
// the machine and the place, and the change is made when the other has the file.
func TestAnotherMachineRejectsWhatItCannotServe(t *testing.T) {
	v := newVoters(t)
	v.page(v.a)
	text := v.text("page.html")
	for _, dry := range []bool{true, false} {
		_, err := v.change(v.a, text, dry)
		refused := (*Refused)(nil)
		if !errors.As(err, &refused) || len(refused.Problems) != 1 {
			t.Fatalf("dry run %v: %v, want one problem", dry, err)
		}
		p := refused.Problems[0]
		if p.File != filepath.Join(v.a.file, "x.yaml") || p.Line != 9 || p.Field != "proxies.shop.routes[0].maintenance.file" || !strings.HasPrefix(p.What, "node b: read "+filepath.Join(v.b.file, "page.html")+": no such file") {
			t.Errorf("dry run %v: %+v", dry, p)
		}
	}
	if v.a.c.ETag() != v.b.c.ETag() || strings.Contains(string(mustRead(t, filepath.Join(v.a.file, "x.yaml"))), "shop") {
		t.Error("a rejected change was written")
	}
	v.page(v.b)
	ev, err := v.change(v.a, text, false)
	if err != nil || len(ev.Notes) != 0 {
		t.Errorf("both machines have the file: %v, notes %v", err, ev.Notes)
	}
	v.b.has(map[string]string{"x.yaml": text})
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestAnAddressThatIsBusyElsewhereIsRejected tests an address that this machine has open and another one cannot open.
func TestAnAddressThatIsBusyElsewhereIsRejected(t *testing.T) {
	v := newVoters(t)
	_, err := v.change(v.a, strings.Replace(v.text(""), "nodes: [a]", "nodes: [a, b]", 1), false)
	refused := (*Refused)(nil)
	if !errors.As(err, &refused) || len(refused.Problems) != 1 {
		t.Fatalf("got %v, want one problem", err)
	}
	p := refused.Problems[0]
	if p.Field != "ports.pa.address" || p.Line != 3 || !strings.Contains(p.What, "node b: ") || !strings.Contains(p.What, "address already in use") || !strings.Contains(p.Remedy, "list in nodes only the machines that open it") {
		t.Errorf("got %+v", p)
	}
	// What the other machine has tried has no effect: its port still serves.
	if got := v.b.c.PortStands("ports", "pb"); len(got) != 1 || got[0].State != "listening" {
		t.Errorf("the port of b: %+v", got)
	}
}

// TestAMachineThatDoesNotAnswerIsANote tests a machine that publishes that it runs, and is frozen: the change is made after 3 s,
// with a note. One that is drained or has stopped is not queried.
func TestAMachineThatDoesNotAnswerIsANote(t *testing.T) {
	v := newVoters(t)
	v.publish(store.Node{Name: "frozen"})
	began := time.Now()
	ev, err := v.change(v.a, v.text("")+"policies: {p: {}}\n", false)
	if took := time.Since(began); err != nil || took < voteWait || took > 2*voteWait {
		t.Fatalf("got %v after %v, want a change after %v", err, took, voteWait)
	}
	if len(ev.Notes) != 1 || len(ev.Unchecked) != 1 || ev.Notes[0].Object != "node frozen" || !strings.Contains(ev.Notes[0].What, "no response within 3s") {
		t.Errorf("notes %v, unchecked %v, want one of the frozen node", ev.Notes, ev.Unchecked)
	}
	for _, n := range []store.Node{{Name: "frozen", Stopped: true}, {Name: "frozen", Drained: &store.NodeDrain{}}} {
		v.publish(n)
		began := time.Now()
		ev, err := v.change(v.a, v.text("")+"policies: {q: {}}\n", true)
		if took := time.Since(began); err != nil || len(ev.Notes) != 0 || took >= voteWait {
			t.Errorf("%+v: %v after %v with notes %v, want no wait", n, err, took, ev.Notes)
		}
	}
}

// TestAMachineThatIsBehindRejectsNothing tests a machine that cannot serve the active configuration: what it cannot serve either is a
// note, and does not stop changes.
func TestAMachineThatIsBehindRejectsNothing(t *testing.T) {
	v := newVoters(t)
	v.page(v.a)
	v.page(v.b)
	if _, err := v.change(v.a, v.text("page.html"), false); err != nil {
		t.Fatal(err)
	}
	v.b.has(map[string]string{"x.yaml": v.text("page.html")})
	if err := os.Remove(filepath.Join(v.b.file, "page.html")); err != nil {
		t.Fatal(err)
	}
	_ = v.b.c.Reload() // it rejects its files from now on
	ev, err := v.change(v.a, v.text("page.html")+"policies: {p: {}}\n", false)
	if err != nil || len(ev.Unchecked) != 1 || !strings.Contains(ev.Unchecked[0].What, "node b: read ") {
		t.Errorf("got %v, %v, want a change with a note", err, ev.Unchecked)
	}
}

// TestMachinesThatChangeAtOnceDoNotWaitForEachOther tests changes on two machines at the same moment: one is made, or both, and none takes the
// whole time of a vote.
func TestMachinesThatChangeAtOnceDoNotWaitForEachOther(t *testing.T) {
	v := newVoters(t)
	for range 5 {
		type result struct {
			ev   Event
			err  error
			took time.Duration
		}
		results := make(chan result, 2)
		for _, m := range []*member{v.a, v.b} {
			go func() {
				began := time.Now()
				ev, err := v.change(m, v.text("")+"policies: {p: {}}\n", true)
				results <- result{ev, err, time.Since(began)}
			}()
		}
		for range 2 {
			r := <-results
			if r.err != nil || r.took >= voteWait {
				t.Errorf("got %v after %v with notes %v", r.err, r.took, r.ev.Notes)
			}
		}
	}
}

// TestStartsAndReadsWaitForNoMachine tests what is not checked by others: a start, files that have not changed, and what another machine
// has saved.
func TestStartsAndReadsWaitForNoMachine(t *testing.T) {
	v := newVoters(t)
	v.publish(store.Node{Name: "frozen"})
	quick := func(what string, do func() error) {
		t.Helper()
		began := time.Now()
		if err := do(); err != nil || time.Since(began) >= voteWait {
			t.Errorf("%s: %v after %v, want no vote", what, err, time.Since(began))
		}
	}
	quick("files that have not changed", v.a.c.Reload)
	v.b.stop()
	quick("a start", func() error { v.b.start(); return nil })
	began := time.Now()
	v.a.put("y.yaml", policy("y", 1)) // by hand
	v.b.has(map[string]string{"x.yaml": v.text(""), "y.yaml": policy("y", 1)})
	if took := time.Since(began); took < voteWait || took > 2*voteWait {
		t.Errorf("an edit by hand is on the other machine after %v, want one vote of %v", took, voteWait)
	}
}

// TestTheRevertOfAChangeWaitsForNoMachine tests that a change which is not confirmed is reverted without a vote.
func TestTheRevertOfAChangeWaitsForNoMachine(t *testing.T) {
	v := newVoters(t)
	if _, err := v.a.c.Change(Edit{ConfirmWithin: time.Hour, Cause: Cause{Via: ViaAPI}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		docs.List = []config.Document{{Name: docs.List[0].Name, Data: []byte(v.text("") + "policies: {p: {}}\n")}}
		return docs, nil
	}}); err != nil {
		t.Fatal(err)
	}
	v.publish(store.Node{Name: "frozen"})
	began := time.Now()
	err := v.a.c.RevertRevision(v.a.c.Pending().Revision, nil)
	if took := time.Since(began); err != nil || took >= voteWait {
		t.Errorf("got %v after %v, want no vote", err, took)
	}
}

// TestAVoteWaitsForTheStore tests that files are checked with what the machine that sends them has saved before, such as a certificate.
func TestAVoteWaitsForTheStore(t *testing.T) {
	v := newVoters(t)
	docs, _, err := v.a.c.Documents()
	if err != nil {
		t.Fatal(err)
	}
	data, err := v.a.c.packBallot(t.Context(), docs)
	if err != nil {
		t.Fatal(err)
	}
	_, after, err := v.b.c.unpackBallot(data)
	if err != nil || after == 0 {
		t.Fatalf("revision %d, %v", after, err)
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := v.b.c.awaitRevision(short, after+1); err == nil || !strings.Contains(err.Error(), "revision") {
		t.Errorf("a revision that b does not have: %v, want an error", err)
	}
	if answer, err := v.b.c.answerVote(t.Context(), "a", data); err != nil || strings.Contains(string(answer), "problems") {
		t.Errorf("got %s, %v, want no problem", answer, err)
	}
}
