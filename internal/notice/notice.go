// Package notice delivers events to other systems and to people: webhooks get each event
// as JSON, notices get messages by e-mail, ntfy, Slack and others. New makes a Sender over
// the log of events; Set replaces the webhooks and notices.
//
// All of them use one queue. What is not accepted is sent again with growing pauses for a
// day; then it is a dead letter, which is kept and shown. A queue continues where it was
// after a restart. A message may arrive twice; its id is then the same.
//
// Messages to webhooks are signed according to Standard Webhooks, so that receivers can
// verify them with existing libraries: the headers webhook-id, webhook-timestamp and
// webhook-signature, an HMAC-SHA256 of id, timestamp and body.
//
// Where several machines share the store, one of them sends the events of all: see group.go.
//
// Notices have rules: a lowest level, quiet hours, a digest. Events of one burst become one
// message.
//
// Redirects are not followed, and addresses are checked when they are dialed. Of what
// receivers of webhooks answer only the status is shown; of notices the beginning, without
// the secrets of the notice.
package notice

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/event"
	"headgate/internal/server/safedial"
	"headgate/internal/store"
)

// The bounds of a webhook.
const (
	// maxWaiting is how many messages that were refused wait to be sent again, maxDead
	// how many dead letters are kept, and maxKept how many bytes all of them have.
	maxWaiting = 200
	maxDead    = 100
	maxKept    = 512 << 10
	// maxHeld is how many events are collected for one message; more are only counted.
	maxHeld = 200
	// maxAge is for how long a message is tried.
	maxAge = 24 * time.Hour
	// firstRetry and lastRetry bound the pause after a try that failed.
	firstRetry = 5 * time.Second
	lastRetry  = time.Hour
	// sendTimeout is how long a try may take.
	sendTimeout = 15 * time.Second
	// saveTimeout is how long the store has.
	saveTimeout = 5 * time.Second
	// idle is how often a webhook looks around while nothing happens.
	idle = time.Minute
)

// Kind is what a queue delivers to. The value is the prefix of its state in the store.
type Kind string

// The kinds.
const (
	Webhooks Kind = store.PrefixWebhook
	Notices  Kind = store.PrefixNotice
)

// Object returns the name of the kind for people: "webhook".
func (k Kind) Object() string { return strings.TrimSuffix(string(k), "/") }

// Hook is one webhook or notice as operators define it.
type Hook struct {
	// Kind and Name identify it.
	Kind Kind
	Name string
	// URL is where messages of a webhook are sent.
	URL string
	// Secret is what they are signed with: a text, or whsec_ and Base64.
	Secret string
	// Filter selects events by type.
	Filter event.Filter
	// Notice are the settings of a notice, nil for a webhook.
	Notice *Config
}

// place is the name of the queue among those of this machine: "webhook/chat".
func (h *Hook) place() string { return string(h.Kind) + h.Name }

// storeKey returns where the state of the queue is kept in the store.
func (h *hook) storeKey() string {
	if h.sender.Node == "" || h.group != nil {
		return h.place()
	}
	return h.place() + "/" + h.sender.Node
}

// Options are what a sender needs.
type Options struct {
	// Events is where messages come from.
	Events *event.Log
	// Store keeps where each webhook is.
	Store store.Store
	// Node is the name of this machine where several share the store, else "". One of them
	// sends the events of all.
	Node string
	// Log gets errors of what cannot be kept.
	Log *slog.Logger
	// Instance is the name of this machine in messages to people; it may be empty.
	Instance string
	// Roots are the authorities to trust, nil for those of the system.
	Roots *x509.CertPool
}

// Sender sends events to webhooks. Its methods may be called by several goroutines at
// once.
type Sender struct {
	Options
	client *http.Client
	pause  func(failures int) time.Duration

	spacing, leaseTime, readEvery time.Duration // see the constants

	mu struct {
		sync.Mutex
		hooks  map[string]*hook // by their keys
		closed bool
	}
}

// New returns a sender without webhooks.
func New(o Options) *Sender {
	s := &Sender{Options: o, client: safedial.Client(sendTimeout, o.Roots), pause: pause, spacing: spacing, leaseTime: leaseTime, readEvery: readEvery}
	s.mu.hooks = map[string]*hook{}
	return s
}

// pause returns how long to wait after so many failures in a row.
func pause(failures int) time.Duration {
	return min(firstRetry<<min(failures, 20), lastRetry)
}

// ErrUnknown is wrapped by errors about a webhook, notice or dead letter that does not
// exist.
var ErrUnknown = errors.New("not found, or not active")

// hook is a webhook at work.
type hook struct {
	Hook
	sender *Sender
	key    []byte
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{}

	group  *group // of the queue of all machines, else nil
	shared *hook  // the queue of all machines beside that of this one, nil if nothing is shared

	lastMessage time.Time // owned by sendAll: when a message was last sent

	mu struct {
		sync.Mutex
		state State
	}
	saving sync.Mutex // keeps what is kept in the order of what happened
}

// Delivery is a message that was not taken.
type Delivery struct {
	// Event is what it tells.
	Event *event.Event `json:"event"`
	// More are the other events of the same message.
	More []*event.Event `json:"more,omitempty"`
	// Omitted is the number of events that the message only counts.
	Omitted int `json:"omitted,omitempty"`
	// First is when the message was first tried.
	First time.Time `json:"first"`
	// Attempts is the number of attempts.
	Attempts int `json:"attempts"`
	// Due is when it is tried next.
	Due time.Time `json:"due,omitzero"`
	// Error is what the last try ended with.
	Error string `json:"error"`
}

// UnmarshalJSON reads a letter as it is kept, also by versions that called the attempts
// tries.
func (l *Delivery) UnmarshalJSON(data []byte) error {
	type delivery Delivery
	kept := struct {
		*delivery
		Tries int `json:"tries"`
	}{delivery: (*delivery)(l)}
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	if l.Attempts == 0 {
		l.Attempts = kept.Tries
	}
	return nil
}

// State is how a webhook stands.
type State struct {
	// After is the last event that was looked at.
	After event.ID `json:"after"`
	// Place is the last record of the shared store's stream that was looked at; 0 if nothing is
	// shared.
	Place store.Sequence `json:"place,omitempty"`
	// Node is the machine that sends for all, "" if nothing is shared.
	Node string `json:"node,omitempty"`
	// Resend are dead letters that another machine wants to be sent again.
	Resend []event.ID `json:"resend,omitempty"`
	// Sent is the number of delivered messages.
	Sent uint64 `json:"sent"`
	// Missed is the number of events that left the log before they were sent.
	Missed uint64 `json:"missed"`
	// Waiting are the messages that are tried again.
	Waiting []Delivery `json:"waiting,omitempty"`
	// Dead are the dead letters: messages that could not be delivered.
	Dead []Delivery `json:"dead,omitempty"`
	// Lost is the number of dead letters that exceeded the limit and were dropped.
	Lost uint64 `json:"lost"`
	// Held are the events that are collected for one message.
	Held []*event.Event `json:"held,omitempty"`
	// Omitted is the number of collected events that the message only counts.
	Omitted int `json:"omitted,omitempty"`
	// Release is when the message is sent.
	Release time.Time `json:"release,omitzero"`
	// Failures is the number of consecutive attempts that did not reach the receiver.
	Failures int `json:"failures"`
	// PausedUntil is when the next attempt is made.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// LastTry is when the last attempt was made.
	LastTry time.Time `json:"last_try,omitzero"`
	// LastStatus is the status of its response; 0 if there was none.
	LastStatus int `json:"last_status"`
	// LastError is why it failed.
	LastError string `json:"last_error,omitempty"`
}

// Set takes webhooks into use. One that is as it was goes on; one that is new begins
// with the next event.
func (s *Sender) Set(hooks []Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return
	}
	var ended []*hook
	for key, h := range s.mu.hooks {
		if !slices.ContainsFunc(hooks, h.same) {
			h.cancel()
			ended = append(ended, h)
			delete(s.mu.hooks, key)
		}
	}
	for _, h := range ended {
		h.end()
	}
	for _, set := range hooks {
		if s.mu.hooks[set.place()] == nil {
			s.mu.hooks[set.place()] = s.start(set)
		}
	}
}

func (h *hook) same(o Hook) bool {
	return reflect.DeepEqual(h.Hook, o)
}

// start begins to send to a webhook.
func (s *Sender) start(set Hook) *hook {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hook{Hook: set, sender: s, key: signingKey(set.Secret), cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	h.load(ctx)
	if s.Node != "" {
		h.shared = &hook{Hook: set, sender: s, key: h.key, group: &group{}, done: make(chan struct{}), wake: make(chan struct{}, 1)}
		go h.shared.runGroup(ctx)
	}
	go h.run(ctx)
	return h
}

// end waits until the queue has ended, after its context.
func (h *hook) end() {
	<-h.done
	if h.shared != nil {
		<-h.shared.done
	}
}

func (s *Sender) find(kind Kind, name string) *hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.hooks[string(kind)+name]
}

// State returns how a webhook stands: where several machines share the store, with what this
// one has sent itself. The error wraps ErrUnknown.
func (s *Sender) State(kind Kind, name string) (State, error) {
	h := s.find(kind, name)
	if h == nil {
		return State{}, fmt.Errorf("%s %s: %w", kind.Object(), name, ErrUnknown)
	}
	if h.shared != nil {
		return h.combinedState(context.Background()), nil
	}
	return h.state(), nil
}

func (h *hook) state() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.mu.state
	state.Waiting, state.Dead, state.Held = slices.Clone(state.Waiting), slices.Clone(state.Dead), slices.Clone(state.Held)
	return state
}

// CanResend returns what Resend would, and sends nothing.
func (s *Sender) CanResend(kind Kind, name string, id event.ID) error {
	st, err := s.State(kind, name)
	if err != nil {
		return err
	}
	return checkDead(s.find(kind, name), &st, id)
}

// checkDead returns an error if no dead letter is of an event.
func checkDead(h *hook, st *State, id event.ID) error {
	if h == nil || !slices.ContainsFunc(st.Dead, func(l Delivery) bool { return l.Event.ID == id }) {
		return fmt.Errorf("event %d: %w", id, ErrUnknown)
	}
	return nil
}

// reviveLocked has a dead letter sent again, for another day.
func (h *hook) reviveLocked(id event.ID) error {
	if err := checkDead(h, &h.mu.state, id); err != nil {
		return err
	}
	i := slices.IndexFunc(h.mu.state.Dead, func(l Delivery) bool { return l.Event.ID == id })
	l := h.mu.state.Dead[i]
	h.mu.state.Dead = slices.Delete(slices.Clone(h.mu.state.Dead), i, i+1)
	l.First, l.Due = time.Now(), time.Now()
	h.mu.state.Waiting = append(h.mu.state.Waiting, l)
	return nil
}

// Resend sends a dead letter once more, and for another day. The error wraps
// ErrUnknown, or is that of the store if another machine has to send it.
func (s *Sender) Resend(kind Kind, name string, id event.ID) error {
	h := s.find(kind, name)
	if h == nil {
		return fmt.Errorf("%s %s: %w", kind.Object(), name, ErrUnknown)
	}
	st := h.state()
	if h.shared != nil && checkDead(h, &st, id) != nil {
		if h.shared.leads() {
			return h.shared.requestHere(id)
		}
		return h.shared.requestResend(context.Background(), id)
	}
	h.mu.Lock()
	err := h.reviveLocked(id)
	h.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind.Object(), name, err)
	}
	h.save()
	h.wakeUp()
	return nil
}

// wakeUp wakes the queue.
func (h *hook) wakeUp() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Test sends a message immediately and returns the outcome. The error wraps ErrUnknown if
// the webhook or notice does not exist or is not active.
func (s *Sender) Test(ctx context.Context, kind Kind, name, who string) (Outcome, error) {
	h := s.find(kind, name)
	if h == nil {
		return Outcome{}, fmt.Errorf("%s %s: %w", kind.Object(), name, ErrUnknown)
	}
	var tested event.Payload = event.WebhookTested{Webhook: name, Who: who}
	if kind == Notices {
		tested = event.NoticeTested{Notice: name, Who: who}
	}
	e, err := event.Draft(tested)
	if err != nil {
		return Outcome{}, err
	}
	e.ID, e.Node = event.ID(e.Time.UnixMicro()), s.Node
	return h.deliver(ctx, &Delivery{Event: e}), nil
}

// Close ends all webhooks. What was not sent is sent after the next start.
func (s *Sender) Close() {
	s.mu.Lock()
	hooks := s.mu.hooks
	s.mu.hooks, s.mu.closed = map[string]*hook{}, true
	s.mu.Unlock()
	for _, h := range hooks {
		h.cancel()
	}
	for _, h := range hooks {
		h.end()
	}
	s.client.CloseIdleConnections()
}

// load reads where the webhook was. One that is new begins with the next event.
func (h *hook) load(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	h.mu.state.After = h.sender.Events.Last()
	e, err := h.sender.Store.Get(ctx, h.storeKey())
	switch {
	case errors.Is(err, store.ErrNotFound):
		if h.sender.Node == "" {
			h.save()
		}
		return
	case err == nil:
		err = json.Unmarshal(e.Value, &h.mu.state)
		if last := h.sender.Events.Last(); last > 0 { // a machine whose clock was ahead may have written it
			h.mu.state.After = min(h.mu.state.After, last)
		}
		h.mu.state.Place, h.mu.state.Node = 0, ""
	}
	if err != nil {
		h.sender.Log.Error("cannot read the state of a queue; it starts with the next event", "queue", h.place(), "error", err)
	}
	h.mu.state.PausedUntil, h.mu.state.Failures = time.Time{}, 0
}

// save keeps where the webhook is.
func (h *hook) save() {
	if h.group != nil {
		h.saveGroup()
		return
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	data, err := json.Marshal(h.mu.state)
	h.mu.Unlock()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		defer cancel()
		_, err = h.sender.Store.Commit(ctx, store.Change{Put: []store.Entry{{Key: h.storeKey(), Value: data}}})
	}
	if err != nil && !errors.Is(err, store.ErrClosed) {
		h.sender.Log.Warn("cannot save the state of a queue; messages may be sent twice after a restart", "queue", h.place(), "error", err)
	}
}
