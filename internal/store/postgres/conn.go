package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"headgate/internal/store"
)

// Newer is the error of a database of a version that this release cannot read: a later headgate
// has made or migrated it. Knows is the newest version that this release knows.
type Newer struct{ Have, Readable, Knows int }

// Error says what to do.
func (n *Newer) Error() string {
	return fmt.Sprintf("the store has version %d, which this headgate cannot read (it reads up to %d): install the newer headgate", n.Have, n.Knows)
}

// The object identifiers of types, as PostgreSQL has them.
const (
	oidBytes      = 17
	oidInt        = 20
	oidText       = 25
	oidBytesArray = 1001
	oidTextArray  = 1009
	oidIntArray   = 1016
)

// param is one parameter of a statement, in binary form.
type param struct {
	oid  uint32
	data []byte
}

func text(s string) param { return param{oidText, []byte(s)} }
func raw(b []byte) param {
	if b == nil {
		b = []byte{}
	}
	return param{oidBytes, b}
}
func integer[T ~int64 | ~uint64 | ~int](n T) param {
	return param{oidInt, binary.BigEndian.AppendUint64(nil, uint64(n))}
}

// array returns a list in the binary form of PostgreSQL: the number of dimensions, whether
// there are nulls, the type, and per dimension its length and lower bound.
func array(oid, of uint32, items [][]byte) param {
	if len(items) == 0 {
		b := make([]byte, 12)
		binary.BigEndian.PutUint32(b[8:], of)
		return param{oid, b}
	}
	b := make([]byte, 20)
	binary.BigEndian.PutUint32(b, 1)
	binary.BigEndian.PutUint32(b[8:], of)
	binary.BigEndian.PutUint32(b[12:], uint32(len(items)))
	binary.BigEndian.PutUint32(b[16:], 1)
	for _, item := range items {
		b = binary.BigEndian.AppendUint32(b, uint32(len(item)))
		b = append(b, item...)
	}
	return param{oid, b}
}

func texts(list []string) param {
	items := make([][]byte, len(list))
	for i, s := range list {
		items[i] = []byte(s)
	}
	return array(oidTextArray, oidText, items)
}

func raws(list [][]byte) param { return array(oidBytesArray, oidBytes, list) }

func integers[T ~int64 | ~uint64 | ~int](list []T) param {
	items := make([][]byte, len(list))
	for i, n := range list {
		items[i] = binary.BigEndian.AppendUint64(nil, uint64(n))
	}
	return array(oidIntArray, oidInt, items)
}

// epoch is where PostgreSQL counts time from.
const epoch = 946_684_800_000_000 // microseconds since 1970

// moment reads a timestamptz; none is the zero time.
func moment(b []byte) time.Time {
	if len(b) != 8 {
		return time.Time{}
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b)) + epoch).UTC()
}

// number reads a bigint or an integer; none is 0.
func number(b []byte) uint64 {
	switch len(b) {
	case 8:
		return binary.BigEndian.Uint64(b)
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return 0
}

// row is one row of a result, in binary form.
type row [][]byte

// run sends one statement and returns its rows.
func run(ctx context.Context, c *pgconn.PgConn, sql string, params ...param) ([]row, error) {
	values, oids, formats := make([][]byte, len(params)), make([]uint32, len(params)), make([]int16, len(params))
	for i, p := range params {
		values[i], oids[i], formats[i] = p.data, p.oid, 1
	}
	result := c.ExecParams(ctx, sql, values, oids, formats, []int16{1}).Read()
	rows := make([]row, len(result.Rows))
	for i, r := range result.Rows {
		rows[i] = r
	}
	return rows, result.Err
}

// call runs one statement on a connection of its own, within a bounded time. The error
// wraps store.ErrUnavailable. Lost says that the statement may have been carried out.
func (s *Store) call(ctx context.Context, sql string, params ...param) (rows []row, lost bool, err error) {
	return s.callSealed(ctx, nil, sql, params...)
}

// callSealed is call for parameters that a sealer has sealed. They are not sent to a database
// that was replaced or sealed with another key since; nil checks nothing.
func (s *Store) callSealed(ctx context.Context, by *sealer, sql string, params ...param) (rows []row, lost bool, err error) {
	caller := ctx
	ctx, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	c, err := s.connection(ctx)
	if err != nil {
		return nil, false, err
	}
	if by != nil && by != s.sealer() {
		s.release(c)
		return nil, false, fmt.Errorf("%w: %w", store.ErrUnavailable, errReplaced)
	}
	rows, err = run(ctx, c, sql, params...)
	if err == nil {
		s.release(c)
		return rows, false, nil
	}
	lost = s.failed(c, err)
	if timeout(err) && caller.Err() == nil {
		s.away(err) // others do not wait as long
	}
	return nil, lost, s.explain(ctx, err)
}

// timeout reports whether an error is that of a server that did not answer in time.
func timeout(err error) bool {
	var t interface{ Timeout() bool }
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// failed takes note of a statement that came back with an error. It reports whether the
// statement may have been carried out all the same.
func (s *Store) failed(c *pgconn.PgConn, err error) (lost bool) {
	refused := (*pgconn.PgError)(nil)
	if errors.As(err, &refused) && !ending(refused.Code) && !absent(err) {
		s.release(c) // the server has rolled it back, and goes on
		return false
	}
	end(c)
	if !pgconn.SafeToRetry(err) {
		lost = true
	}
	return lost
}

// ending reports whether an error of the server ends its connection: it is stopping, or
// something is broken.
func ending(code string) bool {
	return strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08") || strings.HasPrefix(code, "XX")
}

// explain returns the error of the store for one of a connection.
func (s *Store) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) {
		return cause
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// probing marks the context of who finds out whether a server answers again. Others do not
// wait for one that did not.
type probing struct{}

// connection returns a connection that is ready, one that is idle if there is one.
func (s *Store) connection(ctx context.Context) (*pgconn.PgConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	closed, state, why, slow := s.mu.closed, s.mu.state, s.mu.why, s.mu.slow
	s.mu.Unlock()
	switch {
	case closed:
		return nil, store.ErrClosed
	case state == Away && slow && ctx.Value(probing{}) == nil:
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, why) // at once: it would take long again
	}
	for {
		select {
		case c := <-s.idle:
			if !c.IsClosed() {
				return c, nil
			}
			continue
		default:
		}
		break
	}
	c, err := s.connect(ctx)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.away(err)
		}
		return nil, s.explain(ctx, err)
	}
	return c, nil
}

// closeIdle closes the connections that are idle: the next ones are checked anew.
func (s *Store) closeIdle() {
	for {
		select {
		case c := <-s.idle:
			end(c)
		default:
			return
		}
	}
}

// release puts a connection back.
func (s *Store) release(c *pgconn.PgConn) {
	s.mu.Lock()
	closed := s.mu.closed
	s.mu.Unlock()
	if !closed && !c.IsClosed() {
		select {
		case s.idle <- c:
			return
		default:
		}
	}
	end(c)
}

// connect opens a connection to a database whose schema is ready and whose key is known.
func (s *Store) connect(ctx context.Context) (*pgconn.PgConn, error) {
	c, err := s.open(ctx, s.config)
	if err != nil {
		return nil, withoutAddress(err)
	}
	if err := s.prepare(ctx, c); err != nil {
		end(c)
		return nil, err
	}
	return c, nil
}

// withoutAddress returns the error of a connection without the address of the server, which
// the library repeats with the user for each of its addresses.
func withoutAddress(err error) error {
	if at := (*pgconn.ConnectError)(nil); errors.As(err, &at) {
		return fmt.Errorf("connect to the database: %w", at.Unwrap())
	}
	return err
}

// away notes that the server does not answer.
func (s *Store) away(err error) {
	s.setState(Away, err, timeout(err))
}

// setState notes the state of the connection, and reports a new one.
func (s *Store) setState(state State, why error, slow bool) {
	s.mu.Lock()
	was := s.mu.state
	s.mu.state, s.mu.why, s.mu.slow = state, why, slow
	closed := s.mu.closed
	s.mu.Unlock()
	if was == state || closed {
		return
	}
	switch state {
	case Away:
		s.log.Error("the store does not answer: changes are refused, traffic is served", "error", why)
	case Listening:
		s.log.Info("the store is connected")
	case Polling:
		s.log.Warn("the store is connected, and its notifications do not arrive, as behind a connection pool: changes of other nodes act later", "poll", pollEvery.String())
	}
	s.changed(state)
}

// sealer returns what seals. It is known once a connection was ready.
func (s *Store) sealer() *sealer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.sealer
}

// errReplaced is the error of a connection to a database that was emptied or sealed with
// another key since the last one. What was sealed for the database before is not sent to it.
var errReplaced = errors.New("the database was replaced or sealed with another key; the change can be repeated")

// prepare makes the schema, or checks that this program can read it and has its key. It does
// so for each connection: the database may be another one than before.
func (s *Store) prepare(ctx context.Context, c *pgconn.PgConn) error {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	const look = "SELECT version, readable_from, group_id, seal FROM headgate.head"
	rows, err := run(ctx, c, look)
	if absent(err) {
		if err := s.create(ctx, c); err != nil {
			return err
		}
		rows, err = run(ctx, c, look)
	}
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return errors.New("the database has no head: it is not one of headgate, or was damaged")
	}
	if version, readable := int(number(rows[0][0])), int(number(rows[0][1])); readable > s.knows() {
		return &Newer{version, readable, s.knows()}
	}
	return s.unlock(rows[0][2], rows[0][3])
}

// absent reports whether an error is that of a database without the schema.
func absent(err error) bool {
	refused := (*pgconn.PgError)(nil)
	return errors.As(err, &refused) && (refused.Code == "3F000" || refused.Code == "42P01" || refused.Code == "42883")
}

// unlock checks the key against the seal of the database of a group.
func (s *Store) unlock(group, seal []byte) error {
	known := s.sealer()
	if known != nil && bytes.Equal(known.group, group) && known.opens(seal) {
		return nil
	}
	sealer, err := newSealer(s.key, group)
	if err != nil {
		return err
	}
	if !sealer.opens(seal) {
		if sealer, err = s.rereadKey(group, seal); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.mu.sealer, s.mu.head, s.mu.lasts = sealer, store.Position{}, map[string]store.Sequence{}
	s.mu.Unlock()
	if known == nil {
		return nil
	}
	s.log.Warn("the database of the store was replaced or sealed with another key")
	return errReplaced
}

// rereadKey returns what opens a database whose key was replaced, if the operator has put the
// new key into its place.
func (s *Store) rereadKey(group, seal []byte) (*sealer, error) {
	if s.reread == nil {
		return nil, ErrKey
	}
	key, err := s.reread()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	sealer, err := newSealer(key, group)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if !sealer.opens(seal) {
		return nil, ErrKey
	}
	s.key = key
	return sealer, nil
}

// schemaLock is held by a node that makes tables.
const schemaLock = "SELECT pg_advisory_xact_lock(7236819304518);\n"

// create makes the schema in one transaction. Another node may do it at the same time.
func (s *Store) create(ctx context.Context, c *pgconn.PgConn) error {
	group := make([]byte, 16)
	rand.Read(group)
	sealer, err := newSealer(s.key, group)
	if err != nil {
		return err
	}
	version, readable := s.form.newest()
	head := fmt.Sprintf(`INSERT INTO headgate.head (version, readable_from, group_id, seal) VALUES (%d, %d, '\x%x', '\x%x');`,
		version, readable, group, sealer.seal(kindTest, "", 0, []byte("headgate")))
	// Several statements of one message are one transaction.
	all := schemaLock + s.form.sql(0) + head
	err = c.Exec(ctx, all).Close()
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "42P06" {
		return nil // another node was first
	}
	if err != nil {
		return fmt.Errorf("make the tables of the store: %w", err)
	}
	return nil
}
