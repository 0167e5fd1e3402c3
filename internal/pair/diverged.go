package pair

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate/internal/file"
	"headgate/internal/store"
)

// divergedName is the folder in the state directory with what leaders had that yielded, a
// folder for each epoch.
const divergedName = "diverged"

// maxShown is how many changes a difference lists at most.
const maxShown = 1000

// Divergence is what a leader had of its own when it yielded to another machine.
type Divergence struct {
	// Epoch is the period that ended.
	Epoch string `json:"epoch" required:"true"`
	// Node is the machine that led in it.
	Node string `json:"node" required:"true"`
	// Leader is the machine that leads now.
	Leader string `json:"leader" required:"true"`
	// Time is when the machine yielded.
	Time time.Time `json:"time" required:"true"`
	// Folder is where the machine keeps an archive of all that it had, and the difference.
	Folder string `json:"folder" required:"true"`
	// Changes describe what only this machine has: who did what, then the keys.
	Changes []string `json:"changes" required:"true"`
}

func (s *Store) divergedDir(epoch Epoch) string {
	return filepath.Join(s.o.Files.Dir(), divergedName, epoch.String())
}

// keep writes an archive of the state into the folder of an epoch.
func (s *Store) keep(ctx context.Context, epoch Epoch) (string, error) {
	dir := s.divergedDir(epoch)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(dir, "state.tar.gz")
	f, err := os.OpenFile(name+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := s.o.Files.Backup(ctx, f, ""); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return dir, os.Rename(name+".part", name)
}

// diverge keeps what this machine has committed since the other one was promoted. It returns
// nil if that was nothing but housekeeping.
func (s *Store) diverge(ctx context.Context, own, to Epoch) (*Divergence, error) {
	changes, err := s.ownChanges(ctx, to)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	dir, err := s.keep(ctx, own)
	if err != nil {
		return nil, fmt.Errorf("keep what only this machine has: %w", err)
	}
	d := &Divergence{Epoch: own.String(), Node: s.id.Name, Leader: to.Node, Time: time.Now().UTC(), Folder: dir, Changes: changes}
	text := fmt.Sprintf("# Changes of epoch %s on %s that the leader %s does not have. state.tar.gz has everything.\n%s\n", d.Epoch, d.Node, d.Leader, strings.Join(changes, "\n"))
	return d, file.Replace(filepath.Join(dir, "difference.txt"), []byte(text))
}

// ownChanges describes what was committed after the other machine was promoted.
func (s *Store) ownChanges(ctx context.Context, to Epoch) (changes []string, err error) {
	for after := to.Audit; ; {
		page, err := s.o.Files.After(ctx, store.StreamAudit, after)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			after = r.Sequence
			var a struct{ Who, Action, Object, Why string }
			if json.Unmarshal(r.Data, &a) == nil && len(changes) < maxShown {
				changes = append(changes, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Time.UTC().Format(time.RFC3339), a.Who, a.Action, a.Object, a.Why)))
			}
		}
		if len(page) < store.MaxPage {
			break
		}
	}
	entries, _, err := s.Snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Revision > to.From.Revision && !hasPrefix(e.Key, housekeeping) && len(changes) < maxShown {
			changes = append(changes, fmt.Sprintf("%s wrote %s (revision %d)", e.Modified.UTC().Format(time.RFC3339), e.Key, e.Revision))
		}
	}
	return changes, nil
}

// announce publishes a divergence: here, and in the state of the leader.
func (s *Store) announce(ctx context.Context, d *Divergence) {
	s.mu.Lock()
	s.mu.divergent = d
	s.mu.Unlock()
	s.log.Error("this machine had changes that the leader does not have: they are kept, and do not count", "epoch", d.Epoch, "changes", len(d.Changes), "folder", d.Folder)
	if s.o.Diverged != nil {
		s.o.Diverged(*d)
	}
	value, err := json.Marshal(d)
	if err == nil {
		_, err = s.Commit(ctx, store.Change{Put: []store.Entry{{Key: store.PrefixDiverged + d.Epoch, Value: value}}, Who: "headgate", Why: "changes of a leader that yielded"})
	}
	if err != nil {
		s.log.Warn("the leader was not informed of the changes that only this machine has", "error", err)
	}
}
