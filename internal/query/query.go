// Package query lets the machines of a group query each other: whether a machine could serve a
// configuration, or what its log contains. A question has a name, which a handler on the other
// machine answers. Both are sent as messages of the store (store.Messenger), so only members of
// the group can query and answer.
//
// Nothing is guaranteed: a machine that does not answer in time has not answered, and the caller
// goes on without it. What must not be lost is committed to the store instead.
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

// The bounds of questions.
const (
	// MaxData is how many bytes the data of a question or of an answer has.
	MaxData = store.MaxMessage - maxHead
	// MaxWait is how long the answers of a question are waited for.
	MaxWait = 20 * time.Second
	// MaxOpen is how many questions of this machine are open at a time, and MaxNodes how many
	// machines one goes to.
	MaxOpen  = 16
	MaxNodes = 64

	maxHandlers = 8                // that run at a time
	maxOfOne    = 4                // of them for one machine
	maxRefusals = 16               // that are being sent; more questions are dropped
	maxHead     = 4 << 10          // bytes before the data
	maxText     = 2 << 10          // bytes of an error
	pause       = time.Second      // before messages are received again
	longPause   = 30 * time.Second // if the store sends none
)

// The reasons why there is no answer.
var (
	// ErrNoAnswer says that a machine has not answered in time.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrBusy says that too many questions are open, here or on the other machine.
	ErrBusy = errors.New("too many queries are pending: try again in a moment")
	// ErrUnknown says that the other machine does not know the question: it runs another release.
	ErrUnknown = errors.New("the machine does not support this query: it runs a different version of headgate")
)

// Failure is the error of a handler on another machine.
type Failure struct{ Text string }

// Error returns the text of the other machine.
func (f *Failure) Error() string { return f.Text }

// Answer is what came back from a machine.
type Answer struct {
	// Data is the answer if Err is nil.
	Data []byte
	// Err wraps ErrNoAnswer, ErrBusy, ErrUnknown or an error of store.Messenger, or is a *Failure.
	Err error
}

// Handler answers a question of the machine from, which the transport has verified as far as it can.
// Its context ends when the asker waits no longer. The data is the handler's. An error is sent
// to the asker as a text of at most 2 kB.
type Handler func(ctx context.Context, from string, data []byte) ([]byte, error)

// Options is what a Peers is made of.
type Options struct {
	// Messenger carries questions and answers.
	Messenger store.Messenger
	// Node is the name of this machine.
	Node string
	// Log reports why no messages are received. Nil discards it.
	Log *slog.Logger
}

// Peers queries other machines and answers them. Its methods may be called by several goroutines at
// once.
type Peers struct {
	// constant
	o    Options
	stop context.CancelFunc
	done sync.WaitGroup

	mu struct {
		sync.Mutex
		handlers map[string]Handler
		open     map[store.ID]*question
		running  map[string]int // handlers, by asking machine
		all      int            // handlers
		refusals int            // that are being sent
		closed   bool
	}
}

// question is one that is open.
type question struct {
	waits   map[string]bool // machines that have not answered
	answers map[string]Answer
	all     chan struct{} // closed when all have answered
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

// Handle has a question answered, from now on.
func (p *Peers) Handle(name string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.handlers[name] = h
}

// Start begins to receive. Close ends it.
func (p *Peers) Start() {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Add(1)
	go p.receive(ctx)
}

// Close ends receiving and all handlers, and waits for them. Questions that are open have no answer.
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

// end has the one who waits go on. It may be called again.
func (q *question) end() {
	if q.waits != nil {
		q.waits = nil
		close(q.all)
	}
}

// QueryNodes sends a question to machines and returns what each has answered until all have, ctx ends or
// MaxWait has passed: an Answer for each name, of which there are at most MaxNodes. This machine is left out.
// The deadline of ctx is how long the others may take.
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
	q.answers = nil // what comes late is not added
	return answers
}

func allWith(nodes []string, err error) map[string]Answer {
	answers := map[string]Answer{}
	for _, n := range nodes {
		answers[n] = Answer{Err: err}
	}
	return answers
}

// openQuestion opens a question to machines.
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

// sendAll sends a question to all machines at once, and notes those that it cannot be sent to. The
// result waits for it.
func (p *Peers) sendAll(ctx context.Context, nodes []string, id store.ID, name string, data []byte) *sync.WaitGroup {
	var sent sync.WaitGroup
	end, _ := ctx.Deadline() // Ask has set one
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

// note takes the answer of a machine. One that was not asked, or comes late or again, is ignored.
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

// receive takes messages until ctx ends.
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
