package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"headgate/internal/store"
)

// The bounds of what is kept in memory for watches. Those that are further behind read the
// log.
const (
	maxFeed      = 1024
	maxFeedBytes = 8 << 20
	pageOfLog    = 32
)

// feed is the newest commits that were read of the log.
type feed struct {
	mu struct {
		sync.Mutex
		batches []store.Batch
		bytes   int
		base    store.Revision // commits up to it are not in the feed
		at      store.Position // the newest
		chain   int            // how often the log was found to be another one
		wake    chan struct{}  // closed at the next commit
		away    error          // why the log cannot be read now
		closed  bool
	}
}

func (f *feed) init() { f.mu.wake = make(chan struct{}) }

func (f *feed) wakeLocked() {
	close(f.mu.wake)
	f.mu.wake = make(chan struct{})
}

// setAway ends the watches with an error while the log cannot be read; nil is the end of that.
func (f *feed) setAway(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.away = err
	if err != nil {
		f.wakeLocked()
	}
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	f.wakeLocked()
}

// restart goes on from a position that the log has. Watches look again whether theirs is in
// it.
func (f *feed) restart(at store.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.batches, f.mu.bytes, f.mu.base, f.mu.at = nil, 0, at.Revision, at
	f.mu.chain++
	f.wakeLocked()
}

func (f *feed) position() store.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.at
}

// add adds a commit that follows the newest.
func (f *feed) add(b store.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.batches, f.mu.at = append(f.mu.batches, b), b.Position
	f.mu.bytes += sizeOf(b)
	for len(f.mu.batches) > maxFeed || f.mu.bytes > maxFeedBytes && len(f.mu.batches) > 0 {
		f.mu.bytes -= sizeOf(f.mu.batches[0])
		f.mu.base = f.mu.batches[0].Revision
		f.mu.batches[0] = store.Batch{}
		f.mu.batches = f.mu.batches[1:]
	}
	f.wakeLocked()
}

func sizeOf(b store.Batch) int {
	n := 128
	for _, e := range b.Put {
		n += 128 + len(e.Key) + len(e.Value)
	}
	for _, key := range b.Delete {
		n += 32 + len(key)
	}
	return n
}

// after returns the commits after a revision that are in the feed; in is false when some
// before them are not.
func (f *feed) after(at store.Revision) (batches []store.Batch, in bool, chain int, wake <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return nil, false, 0, nil, store.ErrClosed
	}
	if f.mu.away != nil {
		return nil, false, 0, nil, f.mu.away
	}
	for i, b := range f.mu.batches {
		if b.Revision > at {
			batches = append(batches, f.mu.batches[i:]...)
			break
		}
	}
	return batches, at >= f.mu.base && at <= f.mu.at.Revision, f.mu.chain, f.mu.wake, nil
}

// wakeUp has the log read now.
func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Watch yields commits: see store.Store.
func (s *Store) Watch(ctx context.Context, prefix string, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		checked := -1 // the chain in which the position was found
		for {
			batches, wake, err := s.since(ctx, after, &checked)
			if err != nil {
				yield(store.Batch{}, err)
				return
			}
			for _, b := range batches {
				after = b.Position
				if part, ok := under(prefix, b); ok && !yield(part, nil) {
					return
				}
			}
			if len(batches) > 0 {
				continue
			}
			select {
			case <-wake:
			case <-ctx.Done():
				yield(store.Batch{}, ctx.Err())
				return
			}
		}
	}
}

// since returns commits after a position: those of the feed, else of the log. It returns
// none when there are none yet.
func (s *Store) since(ctx context.Context, after store.Position, checked *int) ([]store.Batch, <-chan struct{}, error) {
	batches, in, chain, wake, err := s.feed.after(after.Revision)
	if err != nil {
		return nil, nil, err
	}
	if in && *checked == chain {
		return batches, wake, nil
	}
	if err := s.follows(ctx, after); err != nil {
		return nil, nil, err
	}
	*checked = chain
	if in {
		return batches, wake, nil
	}
	batches, _, err = s.logAfter(ctx, after)
	return batches, wake, err
}

// follows returns why a watch cannot go on from a position.
func (s *Store) follows(ctx context.Context, after store.Position) error {
	rows, _, err := s.call(ctx, `SELECT h.revision, h.id, (SELECT min(revision) FROM headgate.log), (SELECT id FROM headgate.log WHERE revision = $1) FROM headgate.head h`, integer(after.Revision))
	if err != nil {
		return err
	}
	head, oldest, id := store.Revision(number(rows[0][0])), store.Revision(number(rows[0][2])), rows[0][3]
	if after.Revision == head {
		id = rows[0][1]
	}
	switch {
	case after.Revision > head, id != nil && after.ID != "" && after.ID != store.IDOf(id):
		return fmt.Errorf("watch after revision %d: %w", after.Revision, store.ErrRewound)
	case after.Revision < head && (oldest == 0 || oldest > after.Revision+1):
		return fmt.Errorf("watch after revision %d: %w", after.Revision, store.ErrTooOld)
	}
	return nil
}

// errBroken says that the log does not go on from where it was read.
var errBroken = errors.New("the log of the store is not the one that was read before")

// logAfter reads commits of the log after a position, in order, and the head. The error
// wraps errBroken if they do not follow it.
func (s *Store) logAfter(ctx context.Context, after store.Position) ([]store.Batch, store.Position, error) {
	rows, _, err := s.call(ctx, `SELECT h.revision, h.id, l.revision, l.made, l.sealed FROM headgate.head h
		LEFT JOIN (SELECT * FROM headgate.log WHERE revision > $1 ORDER BY revision LIMIT $2) l ON true ORDER BY l.revision`, integer(after.Revision), integer(pageOfLog))
	if err != nil {
		return nil, store.Position{}, err
	}
	head := store.Position{Revision: store.Revision(number(rows[0][0])), ID: store.IDOf(rows[0][1])}
	if after.Revision > head.Revision || after.Revision == head.Revision && after.ID != "" && after.ID != head.ID {
		return nil, head, errBroken
	}
	var list []store.Batch
	for _, r := range rows {
		if r[2] == nil {
			break // there are none
		}
		b, err := s.sealer().openLog(store.Revision(number(r[2])), moment(r[3]), r[4])
		if err != nil {
			return nil, head, err
		}
		if b.Revision != after.Revision+1 || after.ID != "" && b.Before != after.ID {
			return nil, head, errBroken
		}
		after = b.Position
		list = append(list, b)
	}
	if len(list) == 0 && after.Revision < head.Revision {
		return nil, head, errBroken // the log was emptied
	}
	return list, head, nil
}

// under returns what a commit has done to keys with a prefix, as a copy.
func under(prefix string, b store.Batch) (part store.Batch, ok bool) {
	part = store.Batch{Position: b.Position, Before: b.Before, Time: b.Time, Who: b.Who, Why: b.Why}
	for _, e := range b.Put {
		if strings.HasPrefix(e.Key, prefix) {
			e.Value = bytes.Clone(e.Value)
			part.Put = append(part.Put, e)
		}
	}
	for _, key := range b.Delete {
		if strings.HasPrefix(key, prefix) {
			part.Delete = append(part.Delete, key)
		}
	}
	return part, prefix == "" || len(part.Put)+len(part.Delete) > 0
}

// follow keeps the feed at the end of the log until its context ends. The server's
// notifications only wake it.
func (s *Store) follow(ctx context.Context) {
	defer close(s.done)
	var listening *listener
	defer func() { listening.close() }()
	swept := time.Now()
	failures := 0 // in a row; one may be a slow moment, so watches end with the second
	for ctx.Err() == nil {
		if listening.ended() {
			listening.close()
			listening = s.listen(ctx)
		}
		if err := s.poll(ctx); err != nil && ctx.Err() == nil {
			s.away(err)
			if failures++; failures > 1 {
				s.feed.setAway(err)
			}
			pause(ctx, probeEvery, nil, s.wake)
			continue
		}
		failures = 0
		s.feed.setAway(nil)
		s.setState(listening.state(), nil, false)
		if time.Since(swept) >= sweepEvery {
			swept = time.Now()
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
				s.log.Warn("expired entries of the store are not removed", "error", err)
			}
		}
		pause(ctx, pollEvery, listening.notified(), s.wake)
	}
}

// pause waits for a while, or until something wakes.
func pause(ctx context.Context, d time.Duration, notified, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-notified:
	case <-wake:
	}
}

// poll reads what is new in the log.
func (s *Store) poll(ctx context.Context) error {
	ctx = context.WithValue(ctx, probing{}, true)
	at := s.feed.position()
	if at == (store.Position{}) {
		_, head, err := s.headNow(ctx)
		if err == nil {
			s.noteHead(head)
			s.feed.restart(head)
		}
		return err
	}
	for {
		list, head, err := s.logAfter(ctx, at)
		if errors.Is(err, errBroken) {
			s.log.Error("the store was set back or replaced: what was committed since is not in it", "revision", at.Revision, "head", head.Revision)
			s.mu.Lock()
			s.mu.lasts = map[string]store.Sequence{}
			s.mu.head = head
			s.mu.Unlock()
			s.feed.restart(head)
			s.closeIdle()
			return nil
		}
		if err != nil {
			return err
		}
		for _, b := range list {
			s.feed.add(b)
			at = b.Position
		}
		if len(list) < pageOfLog {
			return nil
		}
	}
}

// headNow reads the head.
func (s *Store) headNow(ctx context.Context) (oldest store.Revision, head store.Position, err error) {
	rows, _, err := s.call(ctx, "SELECT revision, id, (SELECT min(revision) FROM headgate.log) FROM headgate.head")
	if err != nil {
		return 0, head, err
	}
	return store.Revision(number(rows[0][2])), store.Position{Revision: store.Revision(number(rows[0][0])), ID: store.IDOf(rows[0][1])}, nil
}

// listener is a connection on which the server notifies of commits. A nil listener has
// ended.
type listener struct {
	stop   context.CancelFunc
	done   chan struct{}
	wake   chan struct{}
	proven chan struct{} // closed when a notification has arrived
	begun  time.Time
}

// listen opens a listener, nil if that is not possible now. It notifies itself, to find out
// whether notifications arrive.
func (s *Store) listen(ctx context.Context) *listener {
	opening, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	l := &listener{done: make(chan struct{}), wake: make(chan struct{}, 1), proven: make(chan struct{}), begun: time.Now()}
	config := s.config.Copy()
	proven := false
	config.OnNotification = func(_ *pgconn.PgConn, _ *pgconn.Notification) {
		if !proven {
			proven = true
			close(l.proven)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	c, err := pgconn.ConnectConfig(opening, config)
	if err != nil {
		return nil
	}
	if err = c.Exec(opening, "LISTEN headgate").Close(); err != nil {
		end(c)
		return nil
	}
	if other, err := s.connection(opening); err == nil {
		if err := other.Exec(opening, "SELECT pg_notify('headgate', '0')").Close(); err != nil {
			end(other)
		} else {
			s.release(other)
		}
	}
	ctx, l.stop = context.WithCancel(ctx)
	go func() {
		defer close(l.done)
		defer end(c)
		for c.WaitForNotification(ctx) == nil {
		}
	}()
	return l
}

func (l *listener) ended() bool {
	if l == nil {
		return true
	}
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *listener) close() {
	if l != nil {
		l.stop()
		<-l.done
	}
}

func (l *listener) notified() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.wake
}

// provenWithin is how long the first notification takes at most.
const provenWithin = 5 * time.Second

// state tells whether notifications arrive.
func (l *listener) state() State {
	if l == nil {
		return Polling
	}
	select {
	case <-l.proven:
		return Listening
	default:
	}
	if time.Since(l.begun) > provenWithin {
		return Polling
	}
	return Listening
}
