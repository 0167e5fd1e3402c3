package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/file"
	"headgate/internal/store"
)

// The bounds of the journal, and how often it is looked at.
const (
	maxWaiting      = 1000
	maxJournal      = 1 << 20 // bytes
	journalInterval = time.Second
)

// journal has the audit records that wait for the store of several machines, in a file of
// this machine: one JSON object in a line. Records are sent in order. Each has the identifier
// of the change that it was, or will be, committed with, so that it is in the audit log once
// also if the answer of a commit was lost or the process was killed. Concurrent calls are
// allowed.
type journal struct {
	name string // of the file
	log  *slog.Logger

	mu struct {
		sync.Mutex
		read    bool // what the process before has left
		rows    []journalLine
		size    int64 // of the file
		dropped int   // records that there was no space for
		mark    store.ID
	}
}

// journalLine is one line of the file: a record, one that was sent, or how many were dropped.
type journalLine struct {
	ID      store.ID        `json:"id,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Sent    store.ID        `json:"sent,omitempty"`
	Dropped int             `json:"dropped,omitempty"`
}

// newJournal returns the journal in a file, which is read when it is used first: a process that
// replaces another one uses it only when that has ended to.
func newJournal(name string, log *slog.Logger) *journal { return &journal{name: name, log: log} }

// lock locks mu, and reads the file the first time.
func (j *journal) lock() {
	j.mu.Lock()
	if !j.mu.read && j.name != "" {
		j.mu.read = true
		j.readLocked()
	}
}

// readLocked reads what waits from the process before. A file that cannot be read is reported
// and kept.
func (j *journal) readLocked() {
	data, err := file.Read(j.name, 2*maxJournal, "the file of waiting audit records is too large")
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			j.log.Error("audit records that wait to be sent cannot be read", "path", j.name, "error", err)
		}
		return
	}
	for line := range bytes.Lines(data) {
		var l journalLine
		if json.Unmarshal(line, &l) != nil {
			continue // the process was killed while it wrote the line
		}
		switch {
		case l.Sent != "":
			if len(j.mu.rows) > 0 && j.mu.rows[0].ID == l.Sent {
				j.mu.rows = j.mu.rows[1:]
			}
		case l.Dropped > 0:
			j.mu.dropped, j.mu.mark = l.Dropped, l.ID
		case l.ID != "" && len(l.Data) > 0:
			j.mu.rows = append(j.mu.rows, l)
		}
	}
	if err := j.rewrite(); err != nil {
		j.log.Error("the file of waiting audit records cannot be written", "path", j.name, "error", err)
	}
}

// rewrite writes what waits, and removes the file if that is nothing. The caller holds mu, or
// is the only one.
func (j *journal) rewrite() error {
	var all bytes.Buffer
	for _, l := range j.mu.rows {
		all.Write(l.line())
	}
	if j.mu.dropped > 0 {
		all.Write(journalLine{ID: j.mu.mark, Dropped: j.mu.dropped}.line())
	}
	j.mu.size = int64(all.Len())
	if all.Len() == 0 {
		if err := os.Remove(j.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return file.Replace(j.name, all.Bytes())
}

func (l journalLine) line() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic("operator: " + err.Error()) // JSON that was just made or read
	}
	return append(data, '\n')
}

// waiting reports whether records wait to be sent.
func (j *journal) waiting() bool {
	j.lock()
	defer j.mu.Unlock()
	return len(j.mu.rows) > 0 || j.mu.dropped > 0
}

// add keeps a record that belongs to the change with an identifier. If there is no space, it
// is counted as dropped. The error says that the file cannot be written.
func (j *journal) add(id store.ID, r store.Record) error {
	if j.name == "" {
		return fmt.Errorf("no file for audit records: %w", store.ErrUnavailable)
	}
	j.lock()
	defer j.mu.Unlock()
	l := journalLine{ID: id, Data: r.Data}
	line := l.line()
	if len(j.mu.rows) >= maxWaiting || j.mu.size+int64(len(line)) > maxJournal || j.mu.dropped > 0 {
		return j.dropLocked()
	}
	if err := j.appendLocked(line); err != nil {
		return err
	}
	if j.mu.rows = append(j.mu.rows, l); len(j.mu.rows) == 1 {
		j.log.Warn("audit records wait in a file until the shared store is available", "path", j.name)
	}
	return nil
}

// dropLocked counts a record that is not kept. The count is written when it has doubled, so
// that the file stays small.
func (j *journal) dropLocked() error {
	if j.mu.dropped++; j.mu.dropped == 1 {
		j.mu.mark = store.NewID()
		j.log.Error("audit records are dropped: too many wait for the shared store", "path", j.name)
	}
	if n := j.mu.dropped; n&(n-1) != 0 {
		return nil
	}
	return j.appendLocked(journalLine{ID: j.mu.mark, Dropped: j.mu.dropped}.line())
}

func (j *journal) appendLocked(line []byte) error {
	f, err := os.OpenFile(j.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(line)
	j.mu.size += int64(n)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// next returns the change that sends the oldest record, or at last the mark for those that
// were dropped; false if nothing waits.
func (j *journal) next() (store.Change, bool) {
	j.lock()
	defer j.mu.Unlock()
	switch {
	case len(j.mu.rows) > 0:
		l := j.mu.rows[0]
		return store.Change{ID: l.ID, Append: []store.Record{{Stream: store.StreamAudit, Data: l.Data}}}, true
	case j.mu.dropped > 0:
		by := Identity{Name: "headgate"}
		r := by.Audit("audit.dropped", "", fmt.Sprintf("at least %d records of one machine were dropped while the shared store was unavailable", j.mu.dropped), nil, nil)
		return store.Change{ID: j.mu.mark, Append: []store.Record{r}}, true
	}
	return store.Change{}, false
}

// sent removes the record that a change has sent.
func (j *journal) sent(id store.ID) error {
	j.lock()
	defer j.mu.Unlock()
	switch {
	case len(j.mu.rows) > 0 && j.mu.rows[0].ID == id:
		j.mu.rows = j.mu.rows[1:]
		if len(j.mu.rows) > 0 || j.mu.dropped > 0 {
			return j.appendLocked(journalLine{Sent: id}.line())
		}
	case len(j.mu.rows) == 0 && j.mu.mark == id:
		j.mu.dropped, j.mu.mark = 0, ""
	}
	return j.rewrite()
}

// SendAudit sends the audit records that wait in the file of this machine, until ctx ends.
func (o *Operators) SendAudit(ctx context.Context) {
	for ctx.Err() == nil {
		o.sendWaiting(ctx)
		clock.Sleep(ctx, journalInterval)
	}
}

// sendWaiting sends records until none waits or the store does not accept one.
func (o *Operators) sendWaiting(ctx context.Context) {
	count := 0
	for ctx.Err() == nil {
		c, ok := o.journal.next()
		if !ok {
			break
		}
		if _, err := o.store.Commit(ctx, c); err != nil {
			if !isAway(err) && !errors.Is(err, store.ErrClosed) && ctx.Err() == nil {
				o.log.Error("an audit record cannot be sent, and is tried again", "error", err)
			}
			return
		}
		if err := o.journal.sent(c.ID); err != nil {
			o.log.Error("the file of waiting audit records cannot be written", "path", o.journal.name, "error", err)
			return
		}
		count++
	}
	if count > 0 {
		o.log.Info("the audit records that waited for the shared store were sent", "records", count)
	}
}
