package control

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/store/history"
)

// LastChange is when an object was made or changed last.
type LastChange struct {
	// When, Who and Via are those of the revision. They are unknown without a Revision.
	When     time.Time
	Who, Via string
	Revision int
}

// changes are the last changes of objects, from the kept revisions.
type changes struct {
	mu struct {
		sync.Mutex
		// all is the last change of everything, of those that are not in the map.
		all  LastChange
		last map[string]LastChange // by KIND/NAME
	}
}

// LastChange returns when an object was made or changed last; of a single one the name is
// "".
func (c *Control) LastChange(kind, name string) LastChange {
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	if l, ok := c.changes.mu.last[kind+"/"+name]; ok {
		return l
	}
	return c.changes.mu.all
}

// remember reads the kept revisions.
func (s *changes) remember(revisions *history.History) {
	s.mu.last = map[string]LastChange{}
	for _, r := range slices.Backward(revisions.List(0, history.MaxRevisions)) {
		s.put(LastChange{r.When, r.Who, r.Via, r.Number}, r.Changes)
	}
}

func (s *changes) put(l LastChange, changed []string) {
	for _, object := range changed {
		if object == history.Everything || len(changed) > history.MaxChanges {
			s.mu.all = l
			clear(s.mu.last)
			return
		}
		s.mu.last[object] = l
	}
}

// note keeps what a revision has changed.
func (s *changes) note(revision string, cause Cause, changed []string) {
	number, err := strconv.Atoi(revision)
	if err != nil {
		return // it could not be kept
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(LastChange{cause.When.UTC(), cause.Who, string(cause.Via), number}, changed)
}

// nameChanges names the objects that the change makes otherwise, as revisions do. It is
// called before the change is saved.
func (ch *change) nameChanges() {
	d := ch.difference()
	if ch.next.Starting() {
		if d = ch.sinceLastRun(); d == nil {
			return
		}
	}
	for _, o := range d.Objects {
		if o.Origin != nil && o.Origin.Via != config.ViaDocument {
			continue // a revision is of documents
		}
		ch.changed = append(ch.changed, o.Kind+"/"+o.Name)
	}
}

// sinceLastRun is what the documents say at a start otherwise than the newest revision;
// nil if they say the same, or that cannot be found out.
func (ch *change) sinceLastRun() *diff.Difference {
	c := ch.control
	r, ok := c.history.Head()
	switch {
	case !ok:
		return ch.difference()
	case ETagOf(r) == ETag(ch.docs):
		return nil
	}
	list, err := c.history.Documents(context.Background(), r.Number)
	if err != nil {
		return nil
	}
	docs := config.Documents{Dir: ch.docs.Dir}
	for _, d := range list {
		docs.List = append(docs.List, config.Document{Name: d.Name, Data: d.Data})
	}
	before, _, problems := config.LoadDocuments(docs, nil)
	if len(problems) > 0 {
		return nil
	}
	return diff.Compare(before, ch.next.Config)
}
