package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"headgate/internal/store"
)

// The limits of receiving.
const (
	// quickPoll is how often messages are read where notifications do not arrive, for quickFor
	// after the last message: it is sent or received while nodes query each other.
	quickPoll = 250 * time.Millisecond
	quickFor  = 10 * time.Second
	// pageOfMessages is the maximum number of messages that are read at once.
	pageOfMessages = 16
	// maxSeen is the maximum number of messages that are remembered, so that none is received twice.
	// Further messages are dropped.
	maxSeen = 4096
)

const kindMessage = "message"

//go:embed messages.sql
var messageTable string

var _ store.Messenger = (*Store)(nil)

// mail is the state of messages in this process.
type mail struct {
	mu struct {
		sync.Mutex
		wake map[string]chan struct{} // of receivers, by name
		last time.Time                // when a message was sent or received
		seen map[store.ID]time.Time   // when each was received
	}
}

func (m *mail) init() {
	m.mu.wake, m.mu.seen = map[string]chan struct{}{}, map[store.ID]time.Time{}
}

// register returns the channel that wakes a receiver.
func (m *mail) register(to string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.wake[to] == nil {
		m.mu.wake[to] = make(chan struct{}, 1)
	}
	return m.mu.wake[to]
}

// wakeUp wakes the receiver with a name, or all of them if the name is "".
func (m *mail) wakeUp(to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, wake := range m.mu.wake {
		if to == "" || to == name {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}
}

// noteTraffic records that nodes query each other now.
func (m *mail) noteTraffic() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.last = time.Now()
}

// isNew reports whether a message was not received before, and remembers it, so that a row that is
// inserted again is not received again.
func (m *mail) isNew(id store.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if _, seen := m.mu.seen[id]; seen {
		return false
	}
	if len(m.mu.seen) >= maxSeen {
		for other, at := range m.mu.seen {
			if now.Sub(at) > 3*store.MessageLife {
				delete(m.mu.seen, other)
			}
		}
		if len(m.mu.seen) >= maxSeen {
			return false
		}
	}
	m.mu.seen[id] = now
	return true
}

// messageName returns the name to which the seal of a message is bound, in addition to its time.
func messageName(id store.ID, from, to string) string {
	return strings.Join([]string{string(id), from, to}, "\x00")
}

// Send writes a message: see store.Messenger. The database sees the sender, the receiver, the time and
// the size. The sender is not verified, since every node has the key of the group.
func (s *Store) Send(ctx context.Context, m store.Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	id, err := m.ID.Bytes()
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	sent, seal := now.UnixMicro(), s.sealer()
	rows, err := s.callMessages(ctx, seal, `WITH old AS (
			DELETE FROM headgate.message WHERE id IN (SELECT id FROM headgate.message WHERE made < headgate.now() - $7 * interval '1 microsecond' FOR UPDATE SKIP LOCKED)
		), waiting AS (
			SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM headgate.message WHERE receiver = $3 AND made >= headgate.now() - $7 * interval '1 microsecond'
		), put AS (
			INSERT INTO headgate.message (id, sender, receiver, sent, made, size, sealed)
			SELECT $1, $2, $3, $4, headgate.now(), $5, $6 FROM waiting WHERE n < $8 AND bytes + $5 <= $9 RETURNING receiver
		) SELECT count(pg_notify('headgate_message', receiver)) FROM put`,
		raw(id), text(m.From), text(m.To), integer(sent), integer(len(m.Data)), raw(seal.seal(kindMessage, messageName(m.ID, m.From, m.To), uint64(sent), m.Data)),
		integer(store.MessageLife.Microseconds()), integer(store.MaxMessages), integer(store.MaxMessageBytes))
	if err != nil {
		return err
	}
	if number(rows[0][0]) == 0 {
		return fmt.Errorf("%w: too many messages wait for %s already", store.ErrUnavailable, m.To)
	}
	s.mail.noteTraffic()
	return nil
}

// callMessages is callSealed for statements about messages. It creates the table if the database has none.
func (s *Store) callMessages(ctx context.Context, by *sealer, sql string, params ...param) ([]row, error) {
	rows, _, err := s.callSealed(ctx, by, sql, params...)
	if absent(err) {
		if err = s.createMessages(ctx); err == nil {
			rows, _, err = s.callSealed(ctx, by, sql, params...)
		}
	}
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "42501" {
		return nil, fmt.Errorf("%w: the role cannot create or use the table headgate.message; start headgate once with the role that owns the schema headgate, which creates the table, and grant this role SELECT, INSERT, UPDATE and DELETE on it (%s)", store.ErrNoMessages, refused.Message)
	}
	return rows, err
}

// createMessages creates the table in a database of a release without it. Another node may do this at
// the same time.
func (s *Store) createMessages(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	c, err := s.connection(ctx)
	if err != nil {
		return err
	}
	if err := c.Exec(ctx, schemaLock+messageTable).Close(); err != nil {
		s.failed(c, err)
		return s.explain(ctx, fmt.Errorf("create the table headgate.message: %w", err))
	}
	s.release(c)
	return nil
}

// Receive reads and deletes messages: see store.Messenger. The server's notifications only wake it.
func (s *Store) Receive(ctx context.Context, to string) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		wake := s.mail.register(to)
		for {
			n, list, err := s.fetchMessages(ctx, to)
			if err != nil {
				yield(store.Message{}, err)
				return
			}
			for _, m := range list {
				if !yield(m, nil) {
					return
				}
			}
			if n > 0 {
				s.mail.noteTraffic()
				continue
			}
			timer := time.NewTimer(s.pollMessages())
			select {
			case <-wake:
			case <-timer.C:
			case <-s.closing.Done():
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
}

// pollMessages returns the time until messages are read again without a notification.
func (s *Store) pollMessages() time.Duration {
	state, _ := s.State()
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	if state == Polling && time.Since(s.mail.mu.last) < quickFor {
		return quickPoll
	}
	return pollEvery
}

// fetchMessages removes the oldest messages for a node. It returns their number, and the messages that
// are intact, new and not too old.
func (s *Store) fetchMessages(ctx context.Context, to string) (n int, list []store.Message, err error) {
	rows, err := s.callMessages(ctx, nil, `WITH gone AS (
			DELETE FROM headgate.message WHERE id IN (SELECT id FROM headgate.message WHERE receiver = $1 ORDER BY made LIMIT $2 FOR UPDATE SKIP LOCKED)
			RETURNING id, sender, sent, made, sealed
		) SELECT id, sender, sent, sealed, headgate.now() FROM gone ORDER BY made`, text(to), integer(pageOfMessages))
	if err != nil {
		return 0, nil, err
	}
	seal := s.sealer()
	for _, r := range rows {
		m := store.Message{ID: store.IDOf(r[0]), From: string(r[1]), To: to}
		sent := number(r[2])
		if m.Age = moment(r[4]).Sub(time.UnixMicro(int64(sent))); m.Age > store.MessageLife || m.Age < -store.MessageLife {
			continue
		}
		if m.Data, err = seal.open(kindMessage, messageName(m.ID, m.From, to), sent, r[3]); err != nil {
			s.log.Debug("a message was dropped", "from", m.From, "error", err)
			continue
		}
		if m.Age = max(m.Age, 0); s.mail.isNew(m.ID) && m.Check() == nil {
			list = append(list, m)
		}
	}
	return len(rows), list, nil
}
