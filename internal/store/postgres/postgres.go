// Package postgres is a store that several machines share: a PostgreSQL server, version 12
// or newer. Open returns a Store at once; the server is connected when it answers, and as
// long as it does not every method returns an error that wraps store.ErrUnavailable.
//
// A commit is one round trip, a call of one function on the server (schema.sql): a node
// that is stopped between two messages holds no lock. The row of the head puts commits in
// order. LISTEN only wakes the nodes: they poll the log besides.
//
// Everything but the names of keys and streams, sizes and times is sealed by the nodes with
// AES-256-GCM, bound to the group of nodes, the key and the revision, and each commit in the
// log is sealed with the identifier of the commit before it: rows that are swapped or put
// back by others are noticed. Names of keys are not secret.
//
// This package does not keep anything on the machine; see package cluster for that.
package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"headgate/internal/store"
)

// The times of a connection. The server ends statements that take longer and transactions
// that are left open, so that no node holds up others.
const (
	dialTimeout = 2 * time.Second
	callTimeout = 3 * time.Second
	pollEvery   = 2 * time.Second
	probeEvery  = time.Second
	maxIdle     = 4 // connections
)

// Options says where the server is and how it is used.
type Options struct {
	// URL is that of the database: postgres://user@host/database, with parameters as
	// libpq has them. Outside of this machine it must ask for a verified certificate:
	// sslmode=verify-full.
	URL string
	// Key is the key of the group that everything is sealed with: 32 bytes.
	Key []byte
	// Reread returns the key again if the database is sealed with another one: the operator
	// may have replaced it. Nil has no other.
	Reread func() ([]byte, error)
	// Node is the name of this machine, which others see as the holder of leases.
	Node string
	// Timeout is how long one call of the server takes at most, by default 3s. The server
	// ends it after two thirds of that.
	Timeout time.Duration
	// Log reports what happens to the connection. Nil discards it.
	Log *slog.Logger
	// LogSize is how many bytes of the log are kept, by default store.LogSize.
	LogSize int64
	// Change is called when the server has become reachable or unreachable. It may be nil.
	Change func(State)

	form form // of another release, in tests
}

// State is the state of the connection.
type State string

// The states.
const (
	// Connecting is before the first answer of the server.
	Connecting State = "connecting"
	// Listening is the usual state: the server notifies of commits.
	Listening State = "listening"
	// Polling is where notifications do not arrive, as behind a pool of connections.
	Polling State = "polling"
	// Away is when the server does not answer.
	Away State = "away"
)

// Store is a PostgreSQL server as a store.Store. Its methods may be called by several
// goroutines at once.
type Store struct {
	// constant
	config  *pgconn.Config
	node    string
	log     *slog.Logger
	logSize int64
	timeout time.Duration
	reread  func() ([]byte, error)
	changed func(State)
	form    form
	closing context.Context // ends with stop
	stop    context.CancelFunc
	done    chan struct{}
	wake    chan struct{} // a node of ours has committed
	idle    chan *pgconn.PgConn

	// noUserTimeout is whether the server has refused the parameter.
	noUserTimeout atomic.Bool

	preparing sync.Mutex // held while a connection is made ready; it guards key
	key       []byte
	writer    sync.Mutex // held for a commit, so that those of this node do not repeat because of each other

	mu struct {
		sync.Mutex
		sealer *sealer // nil until the schema was read
		state  State
		why    error // of Away
		slow   bool  // it did not answer in time
		head   store.Position
		lasts  map[string]store.Sequence // of streams, as far as they are known
		closed bool
	}
	feed store.Feed
	mail mail
}

var _ store.Store = (*Store)(nil)

// Open returns a store that connects by itself. The error says what is wrong with the
// options.
func Open(o Options) (*Store, error) {
	if o.Timeout == 0 {
		o.Timeout = callTimeout
	}
	config, err := configOf(o.URL, o.Timeout)
	if err != nil {
		return nil, err
	}
	if _, err := newSealer(o.Key, nil); err != nil {
		return nil, err
	}
	s := &Store{config: config, node: o.Node, log: o.Log, logSize: o.LogSize, timeout: o.Timeout, key: o.Key, reread: o.Reread, changed: o.Change, form: o.form,
		done: make(chan struct{}), wake: make(chan struct{}, 1), idle: make(chan *pgconn.PgConn, maxIdle)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.form.steps == nil {
		s.form = thisForm()
	}
	if s.changed == nil {
		s.changed = func(State) {}
	}
	if s.node == "" {
		s.node, _ = os.Hostname() // an empty name tells nothing, and harms nothing
	}
	if s.logSize == 0 {
		s.logSize = store.LogSize
	}
	s.mu.state, s.mu.lasts = Connecting, map[string]store.Sequence{}
	s.feed.Init()
	s.mail.init()
	ctx, stop := context.WithCancel(context.Background())
	s.closing, s.stop = ctx, stop
	go s.follow(ctx)
	return s, nil
}

// configOf reads the address of the server.
func configOf(url string, timeout time.Duration) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("address of the store: %s", withoutSecrets(err))
	}
	if err := verified(config); err != nil {
		return nil, err
	}
	config.ConnectTimeout, config.DialFunc = dialTimeout, dialer(timeout)
	parameters := map[string]string{
		"application_name": "headgate", "statement_timeout": fmt.Sprint((timeout * 2 / 3).Milliseconds()), "lock_timeout": "2s", "idle_in_transaction_session_timeout": "3s",
		"synchronous_commit": "on", "client_min_messages": "warning", "search_path": "pg_catalog",
	}
	if overTCP(config) {
		parameters[userTimeout] = fmt.Sprint(timeout.Milliseconds())
	}
	for name, value := range parameters {
		if _, ok := config.RuntimeParams[name]; !ok || name == "synchronous_commit" {
			config.RuntimeParams[name] = value
		}
	}
	return config, nil
}

// withoutSecrets returns the text of an error about an address, which may hold a password.
func withoutSecrets(err error) string {
	if parse := (*pgconn.ParseConfigError)(nil); errors.As(err, &parse) {
		return "it cannot be read; the form is postgres://USER@HOST/DATABASE?sslmode=verify-full"
	}
	return err.Error()
}

// verified returns an error if a server on another machine would be used without a verified
// certificate.
func verified(config *pgconn.Config) error {
	type target struct {
		host string
		safe bool
	}
	all := []target{{config.Host, config.TLSConfig != nil && !config.TLSConfig.InsecureSkipVerify}}
	for _, f := range config.Fallbacks {
		all = append(all, target{f.Host, f.TLSConfig != nil && !f.TLSConfig.InsecureSkipVerify})
	}
	for _, t := range all {
		if !t.safe && !here(t.host) {
			return fmt.Errorf("the store at %s is on another machine, and the connection would not be verified: add sslmode=verify-full to its address", t.host)
		}
	}
	return nil
}

// here reports whether a host is this machine.
func here(host string) bool {
	if strings.HasPrefix(host, "/") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// State returns the state of the connection, and of Away why.
func (s *Store) State() (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.state, s.mu.why
}

// Close ends all watches and connections.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.mu.closed
	s.mu.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.stop()
	<-s.done
	s.feed.Close()
	for {
		select {
		case c := <-s.idle:
			end(c)
		default:
			return nil
		}
	}
}

// end closes a connection without waiting for a server that does not answer.
func end(c *pgconn.PgConn) {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = c.Close(ctx) // it is gone either way
}

//go:embed schema.sql
var schema string
