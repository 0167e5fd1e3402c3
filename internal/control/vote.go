package control

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate/internal/clock"
	"headgate/internal/config"
	"headgate/internal/ports"
	"headgate/internal/query"
	"headgate/internal/schema"
	"headgate/internal/store"
)

// Before a change is saved, the other machines that run check whether they could serve it: each
// has its own variables, files and addresses. A problem rejects the change, and a machine that
// does not answer in time is a note.
//
// Changes by operators, edits of the files, and their dry runs are checked. A start, the revert of
// an unconfirmed change and a change that another machine has saved are not checked, because they
// must not wait for other machines. Changes of discovery are not checked either: they are not saved.

// The limits of a vote.
const (
	// voteWait is the maximum time to wait for other machines.
	voteWait = 3 * time.Second
	// voteRetry is the time between two tries to check while this machine makes a change.
	voteRetry = 5 * time.Millisecond
	// maxBallot is the maximum size of the files that another machine sends, in bytes.
	maxBallot = 64 << 20
	// maxVerdict is the maximum number of problems, and of notes, that a machine returns.
	maxVerdict = 50
)

// questionVote is the name of the query whether a machine could serve files.
const questionVote = "vote"

// ballot is the data of the query.
type ballot struct {
	Documents []ballotDocument `json:"documents"`
	// After is the revision of the shared store on the querying machine: the files may need a
	// certificate that was stored with it.
	After store.Revision `json:"after"`
}

// ballotDocument is a file, by its name in the folder.
type ballotDocument struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// verdict is the response of a machine.
type verdict struct {
	// Problems are why it could not serve the files. Their file names have no folder.
	Problems []schema.Problem `json:"problems,omitempty"`
	// Notes are settings that work but are not recommended.
	Notes []schema.Problem `json:"notes,omitempty"`
	// Behind is whether it also rejects the active configuration.
	Behind bool `json:"behind,omitempty"`
	// Unchecked is why it has not checked the files, "" if it has.
	Unchecked string `json:"unchecked,omitempty"`
}

// vote is the check of a change by the other machines.
type vote struct {
	stop     context.CancelFunc
	done     chan struct{} // closed when verdicts is set
	verdicts map[string]verdict
}

// isVotedOn reports whether other machines must check the change.
func (ch *change) isVotedOn() bool {
	c := ch.control
	if c.peers == nil || ch.discovered() || ch.adopted != nil || ch.next.Starting() || ch.verb != Applied {
		return false
	}
	return etagOf(ch.digestsOf()) != etagOf(c.mu.digests)
}

// startVote sends the files to the running machines, which check them while this one continues.
func (ch *change) startVote() error {
	c := ch.control
	if !ch.isVotedOn() {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), voteWait)
	v := &vote{stop: stop, done: make(chan struct{}), verdicts: map[string]verdict{}}
	nodes, err := c.voters(ctx)
	var data []byte
	if err == nil && len(nodes) > 0 {
		data, err = c.packBallot(ctx, ch.docs)
	}
	if err != nil || len(nodes) == 0 {
		stop()
		if err != nil {
			ch.noteUnchecked("", err.Error())
		}
		return nil
	}
	ch.vote = v
	c.voting.Store(true)
	go func() {
		defer close(v.done)
		for node, a := range c.peers.QueryNodes(ctx, nodes, questionVote, data) {
			v.verdicts[node] = verdictOf(a)
		}
	}()
	return nil
}

// voters returns the names of the other machines that run and are not drained.
func (c *Control) voters(ctx context.Context) (names []string, err error) {
	nodes, err := c.runningOthers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the machines: %w", err)
	}
	for i := range nodes {
		if nodes[i].Drained == nil && len(names) < query.MaxNodes {
			names = append(names, nodes[i].Name)
		}
	}
	return names, nil
}

// packBallot returns the files as they are sent.
func (c *Control) packBallot(ctx context.Context, docs config.Documents) ([]byte, error) {
	_, at, err := c.state.Snapshot(ctx, store.KeyConfirm) // for the position only
	if err != nil {
		return nil, err
	}
	b := ballot{Documents: make([]ballotDocument, 0, len(docs.List)), After: at.Revision}
	for _, d := range docs.List {
		b.Documents = append(b.Documents, ballotDocument{filepath.Base(d.Name), d.Data})
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	err = json.NewEncoder(w).Encode(b)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	if packed.Len() > query.MaxData {
		return nil, fmt.Errorf("the compressed configuration has %d bytes, and at most %d can be sent to other machines", packed.Len(), query.MaxData)
	}
	return packed.Bytes(), nil
}

// unpackBallot returns the files that another machine has sent, with the names that they have here.
func (c *Control) unpackBallot(data []byte) (docs config.Documents, after store.Revision, err error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return docs, 0, err
	}
	b, limited := ballot{}, &io.LimitedReader{R: r, N: maxBallot}
	if err := json.NewDecoder(limited).Decode(&b); err != nil {
		return docs, 0, fmt.Errorf("read the files of another machine: %w", err)
	}
	path, single := c.source.Folder()
	docs.Dir = path
	if single {
		docs.Dir = filepath.Dir(path)
	}
	for _, d := range b.Documents {
		name := filepath.Join(docs.Dir, filepath.Base(d.Name))
		if single {
			name = path
		}
		docs.List = append(docs.List, config.Document{Name: name, Data: d.Data})
	}
	return docs, b.After, c.fits(docs)
}

// verdictOf reads the response of a machine.
func verdictOf(a query.Answer) (v verdict) {
	err := a.Err
	if err == nil {
		if err = json.Unmarshal(a.Data, &v); err == nil {
			return v
		}
	}
	switch {
	case errors.Is(err, query.ErrNoAnswer):
		return verdict{Unchecked: fmt.Sprintf("no response within %v", voteWait)}
	case errors.Is(err, query.ErrUnknown):
		return verdict{Unchecked: "it runs a version of headgate that does not check changes of other machines"}
	}
	return verdict{Unchecked: err.Error()}
}

// awaitVote waits for the other machines. The error is a *Refused with their problems.
func (ch *change) awaitVote() error {
	v := ch.vote
	if v == nil {
		return nil
	}
	<-v.done // within voteWait
	var problems []schema.Problem
	for _, node := range slices.Sorted(maps.Keys(v.verdicts)) {
		found := v.verdicts[node]
		if found.Unchecked != "" {
			ch.noteUnchecked(node, found.Unchecked)
		}
		for _, p := range found.Notes {
			if !ch.hasNote(p) {
				ch.notes = append(ch.notes, ch.ofNode(node, p))
			}
		}
		for _, p := range found.Problems {
			p = ch.ofNode(node, p)
			if found.Behind {
				ch.unchecked = append(ch.unchecked, p)
				continue
			}
			p.Remedy = strings.TrimPrefix(fmt.Sprintf("%s; or drain the machine with \"headgate node drain %s\": changes are then saved without its check", p.Remedy, node), "; ")
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return &Refused{Problems: problems}
	}
	return nil
}

// endVote ends the vote of the change, if there is one.
func (ch *change) endVote() {
	if ch.vote == nil {
		return
	}
	ch.vote.stop()
	<-ch.vote.done
	ch.vote = nil
	ch.control.voting.Store(false)
}

// noteUnchecked adds a note about a machine that may not be able to serve the change; "" stands for
// all other machines.
func (ch *change) noteUnchecked(node, why string) {
	object := "other nodes"
	if node != "" {
		object = "node " + node
	}
	ch.unchecked = append(ch.unchecked, schema.Problem{
		Object: object, What: fmt.Sprintf("did not check this change and may not be able to serve it: %s", why), Remedy: "check its state with \"headgate node list\" afterwards",
	})
}

// hasNote reports whether this machine has the same note.
func (ch *change) hasNote(n schema.Problem) bool {
	return slices.ContainsFunc(ch.notes, func(o schema.Problem) bool { return o.Field == n.Field && o.What == n.What })
}

// ofNode returns a problem of another machine, with the name of the file here.
func (ch *change) ofNode(node string, p schema.Problem) schema.Problem {
	for _, d := range ch.docs.List {
		if filepath.Base(d.Name) == filepath.Base(p.File) || len(ch.docs.List) == 1 && p.File != "" {
			p.File = d.Name
		}
	}
	p.What = fmt.Sprintf("node %s: %s", node, p.What)
	return p
}

// answerVote checks whether this machine could serve the files of another one. It changes nothing.
func (c *Control) answerVote(ctx context.Context, from string, data []byte) ([]byte, error) {
	docs, after, err := c.unpackBallot(data)
	if err != nil {
		return json.Marshal(verdict{Problems: []schema.Problem{{What: err.Error()}}})
	}
	if err := c.awaitRevision(ctx, after); err != nil {
		return nil, err
	}
	if why := c.lockForVote(ctx); why != "" {
		return json.Marshal(verdict{Unchecked: why})
	}
	defer c.mu.Unlock()
	v := c.judgeLocked(from, docs)
	v.Behind = c.mu.refused != nil || c.mu.degraded
	return json.Marshal(v)
}

// awaitRevision waits until this machine has a revision of the shared store.
func (c *Control) awaitRevision(ctx context.Context, after store.Revision) error {
	for {
		_, at, err := c.state.Snapshot(ctx, store.KeyConfirm) // for the position only
		if err != nil || at.Revision >= after {
			return err
		}
		if !clock.Sleep(ctx, voteRetry) {
			return fmt.Errorf("it has revision %d of the shared store instead of %d", at.Revision, after)
		}
	}
}

// lockForVote acquires the lock of changes, or returns why this machine cannot check files now. Two
// machines that query each other do not wait for each other.
func (c *Control) lockForVote(ctx context.Context) (why string) {
	for {
		switch {
		case c.current.Load() == nil || !c.ready.Load():
			return "it is starting"
		case c.Frozen():
			return ErrUpgrading.Error()
		case c.voting.Load():
			return "it is making a change of its own"
		case c.mu.TryLock():
			return ""
		case !clock.Sleep(ctx, voteRetry):
			return fmt.Sprintf("no response within %v", voteWait)
		}
	}
}

// judgeLocked takes files of another machine through all steps of a change that can fail, and cancels it.
func (c *Control) judgeLocked(from string, docs config.Documents) (v verdict) {
	ch := c.newChangeLocked(Cause{Who: from, Via: ViaAPI}, func() (config.Documents, error) { return docs, nil })
	ch.dry, ch.adopted = true, &adopted{docs: docs}
	err := ch.do(step{"read", ch.read}, step{"check", ch.check}, step{"build", ch.build})
	ch.cancel()
	v.Notes = ch.notes[:min(len(ch.notes), maxVerdict)]
	if err != nil {
		problems := ch.problemsOf(err)
		v.Problems = problems[:min(len(problems), maxVerdict)]
	}
	for _, list := range [][]schema.Problem{v.Problems, v.Notes} {
		for i := range list {
			if list[i].File != "" {
				list[i].File = filepath.Base(list[i].File)
			}
		}
	}
	return v
}

// problemsOf returns why a change was refused as problems with a place, where one is known.
func (ch *change) problemsOf(err error) []schema.Problem {
	if r := asRefused(err); len(r.Problems) > 0 {
		return slices.Clone(r.Problems)
	}
	open := (*ports.OpenError)(nil)
	if !errors.As(err, &open) || ch.declared == nil {
		return []schema.Problem{{What: err.Error()}}
	}
	report := schema.Problem{
		Field: schema.JoinPath(kindOfPort(open.Protocol), open.Name) + ".address", What: open.Err.Error(),
		Remedy: cmp.Or(open.Remedy, "choose another address") + "; or list in nodes only the machines that open it",
	}
	r := ch.declared.Report()
	r.Add(report)
	return r.Problems()
}
