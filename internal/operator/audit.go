package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"headgate/internal/store"
)

// Audited is one record of the audit: who did what.
type Audited struct {
	// Sequence is the record's place.
	Sequence store.Sequence `json:"sequence"`
	// Time is when.
	Time time.Time `json:"time"`
	// Who did it.
	Who string `json:"who"`
	// Via is the interface that was used.
	Via string `json:"via,omitempty"`
	// Address is the address of the client.
	Address string `json:"address,omitempty"`
	// Action is what was done: user.create, session.sign_in, config.apply, …
	Action string `json:"action"`
	// Object is what it was done to.
	Object string `json:"object,omitempty"`
	// Why is what the person wrote.
	Why string `json:"why,omitempty"`
	// Before is the object before the change, without its secrets.
	Before json.RawMessage `json:"before,omitempty"`
	// After is the object after the change, without its secrets.
	After json.RawMessage `json:"after,omitempty"`
}

// Audit returns the record of an action, to be appended in the commit of that action.
// Before and after are written as JSON, nil for nothing; they must not contain
// secrets.
func (i Identity) Audit(action, object, why string, before, after any) store.Record {
	a := Audited{Time: time.Now().UTC().Truncate(time.Second), Who: i.Name, Via: i.Via, Action: action, Object: object, Why: why}
	if i.Address.IsValid() {
		a.Address = i.Address.Unmap().String()
	}
	a.Before, a.After = plain(before), plain(after)
	data, err := json.Marshal(a)
	if err != nil {
		panic("operator: " + err.Error()) // texts and JSON that was just made
	}
	return store.Record{Stream: store.StreamAudit, Data: data}
}

// Note writes a record of something that is in no store, such as a backup. While the store
// of several machines is away, it waits in the journal.
func (o *Operators) Note(ctx context.Context, by Identity, action, object, why string) error {
	return o.keepAudit(ctx, by, by.Audit(action, object, why, nil, nil))
}

// maxAudited is how much of an object an audit record holds, in bytes.
const maxAudited = 64 << 10

func plain(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	switch {
	case err != nil:
		return json.RawMessage(`"cannot be written as JSON"`)
	case len(data) > maxAudited:
		return json.RawMessage(fmt.Sprintf(`"%d bytes, too large to be shown here"`, len(data)))
	}
	return data
}

// AuditQuery selects records. Empty fields match all.
type AuditQuery struct {
	Who, Action, Object string
}

func (q AuditQuery) matches(a *Audited) bool {
	return (q.Who == "" || a.Who == q.Who) && (q.Object == "" || strings.Contains(a.Object, q.Object)) &&
		(q.Action == "" || strings.HasPrefix(a.Action, q.Action))
}

// maxLooked is how many records are looked at for a page.
const maxLooked = 20_000

// AuditPage returns records before a sequence, newest first, at most n of them, and
// where the next page starts: 0 if there is none. Before 0 means from the newest on.
func (o *Operators) AuditPage(ctx context.Context, q AuditQuery, before store.Sequence, n int) ([]Audited, store.Sequence, error) {
	n = min(max(n, 1), store.MaxPage)
	found := []Audited{}
	for range maxLooked / store.MaxPage {
		page, err := o.store.Page(ctx, store.StreamAudit, before, store.MaxPage)
		if err != nil {
			return nil, 0, fmt.Errorf("read the audit: %w", err)
		}
		for _, r := range page {
			before = r.Sequence
			a := Audited{}
			if json.Unmarshal(r.Data, &a) != nil || !q.matches(&a) {
				continue
			}
			a.Sequence = r.Sequence
			if found = append(found, a); len(found) == n {
				return found, before, nil
			}
		}
		if len(page) < store.MaxPage {
			return found, 0, nil
		}
	}
	return found, before, nil
}
