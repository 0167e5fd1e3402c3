// Package query lets the machines of a group query each other: for example whether a machine
// could serve a configuration, or what its log contains. A query has a name, and the handler of
// this name on the other machine returns the response. Queries and responses are messages of the
// store (store.Messenger), so only members of the group can send them.
//
// Delivery is not guaranteed: if a machine does not respond in time, the caller continues without
// its response. Data that must not be lost belongs in the store.
package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// The limits of queries.
const (
	// MaxData is the maximum size of the data of a query or response in bytes.
	MaxData = store.MaxMessage - maxHead
	// MaxWait is the maximum time to wait for the responses to a query.
	MaxWait = 20 * time.Second
	// MaxOpen is the maximum number of pending queries of this machine, and MaxNodes the maximum
	// number of machines that a query is sent to.
	MaxOpen  = 16
	MaxNodes = 64

	maxHandlers = 8                // that run at the same time
	maxOfOne    = 4                // of these, for one machine
	maxRefusals = 16               // that are being sent; further queries are dropped
	maxHead     = 4 << 10          // bytes before the data
	maxText     = 2 << 10          // bytes of an error
	pause       = time.Second      // before messages are received again
	longPause   = 30 * time.Second // if the store sends none
)

// The reasons why there is no response.
var (
	// ErrNoAnswer means that a machine did not respond in time.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrBusy means that too many queries are pending, here or on the other machine.
	ErrBusy = errors.New("too many queries are pending: try again in a moment")
	// ErrUnknown means that the other machine has no handler for the query: it runs a different
	// release.
	ErrUnknown = errors.New("the machine does not support this query: it runs a different version of headgate")
)

// Failure is the error of a handler on another machine.
type Failure struct{ Text string }

// Error returns the text of the other machine.
func (f *Failure) Error() string { return f.Text }

// Answer is the response of a machine, or the reason why there is none.
type Answer struct {
	// Data is the response if Err is nil.
	Data []byte
	// Err wraps ErrNoAnswer, ErrBusy, ErrUnknown or an error of store.Messenger, or is a *Failure.
	Err error
}

// Handler returns the response to a query of the machine from, which the transport has verified as
// far as it can. The context ends when the querying machine stops waiting. The handler owns data.
// An error is sent to the querying machine as a string of at most 2 kB.
type Handler func(ctx context.Context, from string, data []byte) ([]byte, error)

// Options are the parameters of New.
type Options struct {
	// Messenger sends and receives queries and responses.
	Messenger store.Messenger
	// Node is the name of this machine.
	Node string
	// Log gets the reason why no messages are received. Nil discards it.
	Log *slog.Logger
}

// Peers queries other machines and responds to their queries. Its methods may be called by several
// goroutines at once.
type Peers struct {
	// constant
	o    Options
	stop context.CancelFunc
	done sync.WaitGroup

	mu struct {
		sync.Mutex
		handlers map[string]Handler
		open     map[store.ID]*question
		running  map[string]int // handlers, by querying machine
		all      int            // handlers
		refusals int            // that are being sent
		closed   bool
	}
}

// question is a pending query.
type question struct {
	waits   map[string]bool // machines that have not responded
	answers map[string]Answer
	all     chan struct{} // closed when all have responded
}

// New returns a Peers that sends and receives nothing yet: see Start.
func New(o Options) *Peers {
	p := &Peers{o: o, stop: func() {}}
	if p.o.Log == nil {
		p.o.Log = slog.New(slog.DiscardHandler)
	}
	p.mu.handlers, p.mu.open, p.mu.running = map[string]Handler{}, map[store.ID]*question{}, map[string]int{}
	return p
}

// Handle sets the handler for the queries with a name.
func (p *Peers) Handle(name string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.handlers[name] = h
}

// Start starts receiving messages. Close stops it.
func (p *Peers) Start() {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Add(1)
	go p.receive(ctx)
}

// Close stops receiving and all handlers, and waits for them. Pending queries get no response.
func (p *Peers) Close() {
	p.mu.Lock()
	p.mu.closed = true
	for _, q := range p.mu.open {
		q.end()
	}
	p.mu.Unlock()
	p.stop()
	p.done.Wait()
}

// end releases the caller that waits. It may be called again.
func (q *question) end() {
	if q.waits != nil {
		q.waits = nil
		close(q.all)
	}
}

// QueryNodes sends a query to machines and waits until all have responded, ctx ends or MaxWait has
// passed. It returns an Answer for each name except that of this machine. There are at most MaxNodes
// names. The deadline of ctx is also the deadline of the handlers.
func (p *Peers) QueryNodes(ctx context.Context, nodes []string, name string, data []byte) map[string]Answer {
	ctx, stop := context.WithTimeout(ctx, MaxWait)
	defer stop()
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	nodes = slices.DeleteFunc(nodes, func(n string) bool { return n == p.o.Node })
	id, q, err := p.openQuestion(nodes)
	if err != nil || len(data) > MaxData {
		if err == nil {
			p.finish(id, q)
			err = fmt.Errorf("query %s: %d bytes, at most %d are allowed: %w", name, len(data), MaxData, store.ErrTooLarge)
		}
		return allWith(nodes, err)
	}
	defer p.finish(id, q)
	sent := p.sendAll(ctx, nodes, id, name, data)
	select {
	case <-q.all:
	case <-ctx.Done():
	}
	stop()
	sent.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		if _, ok := q.answers[n]; !ok {
			q.answers[n] = Answer{Err: ErrNoAnswer}
		}
	}
	answers := q.answers
	q.answers = nil // late responses are not added
	return answers
}

func allWith(nodes []string, err error) map[string]Answer {
	answers := map[string]Answer{}
	for _, n := range nodes {
		answers[n] = Answer{Err: err}
	}
	return answers
}

// openQuestion registers a query to machines.
func (p *Peers) openQuestion(nodes []string) (store.ID, *question, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.closed:
		return "", nil, store.ErrClosed
	case len(nodes) > MaxNodes:
		return "", nil, fmt.Errorf("a query to %d machines, at most %d are allowed: %w", len(nodes), MaxNodes, store.ErrTooLarge)
	case len(p.mu.open) >= MaxOpen:
		return "", nil, ErrBusy
	}
	id, q := store.NewID(), &question{waits: map[string]bool{}, answers: map[string]Answer{}, all: make(chan struct{})}
	for _, n := range nodes {
		q.waits[n] = true
	}
	if len(nodes) == 0 {
		q.end()
	}
	p.mu.open[id] = q
	return id, q, nil
}

func (p *Peers) finish(id store.ID, q *question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.open, id)
	q.end()
}

// sendAll sends a query to all machines at once, and records the machines to which it could not be
// sent. The caller waits for the returned group.
func (p *Peers) sendAll(ctx context.Context, nodes []string, id store.ID, name string, data []byte) *sync.WaitGroup {
	var sent sync.WaitGroup
	end, _ := ctx.Deadline() // QueryNodes has set one
	for _, n := range nodes {
		sent.Go(func() {
			h := head{Question: id, Name: name, Left: time.Until(end).Milliseconds()}
			if err := p.send(ctx, n, &h, data); err != nil && ctx.Err() == nil {
				p.note(id, n, Answer{Err: err})
			}
		})
	}
	return &sent
}

// note records the response of a machine. It ignores responses of machines that were not queried,
// and those that are late or duplicate.
func (p *Peers) note(id store.ID, from string, answer Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.mu.open[id]
	if q == nil || !q.waits[from] {
		return
	}
	delete(q.waits, from)
	q.answers[from] = answer
	if len(q.waits) == 0 {
		q.end()
	}
}

// receive handles messages until ctx ends.
func (p *Peers) receive(ctx context.Context) {
	defer p.done.Done()
	reported := ""
	for {
		wait := pause
		for m, err := range p.o.Messenger.Receive(ctx, p.o.Node) {
			if err == nil {
				reported = ""
				p.acceptMessage(ctx, &m)
				continue
			}
			if errors.Is(err, store.ErrClosed) {
				return
			}
			if !errors.Is(err, store.ErrNoMessages) {
				continue // it is away
			}
			wait = longPause
			if text := err.Error(); text != reported {
				reported = text
				p.o.Log.Warn("other machines cannot query this one", "error", err)
			}
		}
		if !clock.Sleep(ctx, wait) {
			return
		}
	}
}
