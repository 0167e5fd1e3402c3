package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"headgate/internal/store"
)

// pageOfLog is how many commits are read of the log at once.
const pageOfLog = 32

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
				if part, ok := b.Under(prefix); ok && !yield(part, nil) {
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
	news, err := s.feed.After(after.Revision)
	if err != nil {
		return nil, nil, err
	}
	if news.Whole && *checked == news.Chain {
		return news.Batches, news.Wake, nil
	}
	if err := s.follows(ctx, after); err != nil {
		return nil, nil, err
	}
	*checked = news.Chain
	if news.Whole {
		return news.Batches, news.Wake, nil
	}
	batches, _, err := s.logAfter(ctx, after)
	return batches, news.Wake, err
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
				s.feed.SetAway(err)
			}
			pause(ctx, probeEvery, nil, s.wake)
			continue
		}
		failures = 0
		s.feed.SetAway(nil)
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
	at := s.feed.Position()
	if at == (store.Position{}) {
		_, head, err := s.headNow(ctx)
		if err == nil {
			s.noteHead(head)
			s.feed.Restart(head)
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
			s.feed.Restart(head)
			s.closeIdle()
			return nil
		}
		if err != nil {
			return err
		}
		for _, b := range list {
			s.feed.Add(b)
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
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if !proven {
			proven = true
			close(l.proven)
		}
		if n.Channel == "headgate_message" {
			s.mail.wakeUp(n.Payload)
			return
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	c, err := s.open(opening, config)
	if err != nil {
		return nil
	}
	if err = c.Exec(opening, "LISTEN headgate; LISTEN headgate_message").Close(); err != nil {
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
	s.mail.wakeUp("") // what was sent before
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
