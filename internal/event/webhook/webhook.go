// Package webhook sends events on to addresses that operators name. New makes a Sender
// over the log of events; Set says which webhooks there are.
//
// Each message is signed as the Standard Webhooks say, so that receivers can check it
// with what they have: the fields webhook-id, webhook-timestamp and webhook-signature,
// an HMAC-SHA256 of id, timestamp and body. What is not taken with a status 2xx is sent
// again, further and further apart, for a day; then it is a dead letter, which is kept
// and shown. A webhook goes on where it was after a restart. A message may come twice;
// its id is then the same.
//
// Redirects are not followed, and what an address stands for is checked when it is
// dialled. What receivers answer is never shown, only its status.
package webhook

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
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

// Hook is one webhook as operators set it.
type Hook struct {
	// Name is what it is called.
	Name string
	// URL is where messages go.
	URL string
	// Secret is what they are signed with: a text, or whsec_ and Base64.
	Secret string
	// Filter says which events it gets.
	Filter event.Filter
}

// Options are what a sender needs.
type Options struct {
	// Events is where messages come from.
	Events *event.Log
	// Store keeps where each webhook is.
	Store store.Store
	// Log hears of what cannot be kept.
	Log *slog.Logger
	// Roots are the authorities to trust, nil for those of the system.
	Roots *x509.CertPool
}

// Sender sends events to webhooks. Its methods may be called by several goroutines at
// once.
type Sender struct {
	Options
	client *http.Client
	pause  func(failures int) time.Duration

	mu struct {
		sync.Mutex
		hooks  map[string]*hook
		closed bool
	}
}

// New returns a sender without webhooks.
func New(o Options) *Sender {
	s := &Sender{Options: o, client: safedial.Client(sendTimeout, o.Roots), pause: pause}
	s.mu.hooks = map[string]*hook{}
	return s
}

// pause returns how long to wait after so many failures in a row.
func pause(failures int) time.Duration {
	return min(firstRetry<<min(failures, 20), lastRetry)
}

// ErrUnknown is wrapped by the error of a question for a webhook or a letter that is
// not there.
var ErrUnknown = errors.New("there is no such webhook or letter")

// hook is a webhook at work.
type hook struct {
	Hook
	sender *Sender
	key    []byte
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{}

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
	// First is when it was tried first, and Attempts how often.
	First    time.Time `json:"first"`
	Attempts int       `json:"attempts"`
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
	// Sent is how many messages were taken, Missed how many events are not in the log
	// any more that were never sent.
	Sent   uint64 `json:"sent"`
	Missed uint64 `json:"missed"`
	// Waiting are messages that are sent again, Dead those that were given up. Lost is
	// how many dead letters were too many to keep.
	Waiting []Delivery `json:"waiting,omitempty"`
	Dead    []Delivery `json:"dead,omitempty"`
	Lost    uint64     `json:"lost"`
	// Failures is how many attempts in a row did not reach the receiver, and PausedUntil
	// when it is tried again.
	Failures    int       `json:"failures"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// LastTry, LastStatus and LastError tell of the last try; the status is 0 if there
	// was no answer.
	LastTry    time.Time `json:"last_try,omitzero"`
	LastStatus int       `json:"last_status"`
	LastError  string    `json:"last_error,omitempty"`
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
	for name, h := range s.mu.hooks {
		if !slices.ContainsFunc(hooks, h.same) {
			h.cancel()
			ended = append(ended, h)
			delete(s.mu.hooks, name)
		}
	}
	for _, h := range ended {
		<-h.done
	}
	for _, set := range hooks {
		if s.mu.hooks[set.Name] == nil {
			s.mu.hooks[set.Name] = s.start(set)
		}
	}
}

func (h *hook) same(o Hook) bool {
	return h.Name == o.Name && h.URL == o.URL && h.Secret == o.Secret && slices.Equal(h.Filter.Types, o.Filter.Types)
}

// start begins to send to a webhook.
func (s *Sender) start(set Hook) *hook {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hook{Hook: set, sender: s, key: signingKey(set.Secret), cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	h.load(ctx)
	go h.run(ctx)
	return h
}

// Forget removes what is kept of a webhook that is not set any more.
func (s *Sender) Forget(ctx context.Context, name string) error {
	if s.find(name) != nil {
		return fmt.Errorf("webhook %s is in use", name)
	}
	if _, err := s.Store.Commit(ctx, store.Change{Delete: []string{store.PrefixWebhook + name}}); err != nil {
		return fmt.Errorf("forget webhook %s: %w", name, err)
	}
	return nil
}

func (s *Sender) find(name string) *hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.hooks[name]
}

// State returns how a webhook stands. The error wraps ErrUnknown.
func (s *Sender) State(name string) (State, error) {
	h := s.find(name)
	if h == nil {
		return State{}, fmt.Errorf("webhook %s: %w", name, ErrUnknown)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.mu.state
	state.Waiting, state.Dead = slices.Clone(state.Waiting), slices.Clone(state.Dead)
	return state, nil
}

// CanResend returns what Resend would, and sends nothing.
func (s *Sender) CanResend(name string, id event.ID) error {
	h := s.find(name)
	if h == nil {
		return fmt.Errorf("webhook %s: %w", name, ErrUnknown)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.deadLocked(id)
	return err
}

// deadLocked returns which of the dead letters is of an event.
func (h *hook) deadLocked(id event.ID) (int, error) {
	i := slices.IndexFunc(h.mu.state.Dead, func(l Delivery) bool { return l.Event.ID == id })
	if i < 0 {
		return i, fmt.Errorf("webhook %s, event %d: %w", h.Name, id, ErrUnknown)
	}
	return i, nil
}

// Resend sends a dead letter once more, and for another day. The error wraps
// ErrUnknown.
func (s *Sender) Resend(name string, id event.ID) error {
	h := s.find(name)
	if h == nil {
		return fmt.Errorf("webhook %s: %w", name, ErrUnknown)
	}
	h.mu.Lock()
	i, err := h.deadLocked(id)
	if err != nil {
		h.mu.Unlock()
		return err
	}
	l := h.mu.state.Dead[i]
	h.mu.state.Dead = slices.Delete(slices.Clone(h.mu.state.Dead), i, i+1)
	l.First, l.Due = time.Now(), time.Now()
	h.mu.state.Waiting = append(h.mu.state.Waiting, l)
	h.mu.Unlock()
	h.save()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return nil
}

// Test sends a message at once and returns how it ended: the status, 0 without an
// answer, and an error if it was not taken. The error wraps ErrUnknown when there is no
// such webhook.
func (s *Sender) Test(ctx context.Context, name, who string) (status int, err error) {
	h := s.find(name)
	if h == nil {
		return 0, fmt.Errorf("webhook %s: %w", name, ErrUnknown)
	}
	e, err := event.Draft(event.WebhookTested{Webhook: name, Who: who})
	if err != nil {
		return 0, err
	}
	e.ID = event.ID(e.Time.UnixMicro())
	status, _, err = h.send(ctx, e)
	return status, err
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
		<-h.done
	}
	s.client.CloseIdleConnections()
}

// load reads where the webhook was. One that is new begins with the next event.
func (h *hook) load(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	h.mu.state.After = h.sender.Events.Last()
	e, err := h.sender.Store.Get(ctx, store.PrefixWebhook+h.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		h.save()
		return
	case err == nil:
		err = json.Unmarshal(e.Value, &h.mu.state)
	}
	if err != nil {
		h.sender.Log.Error("where a webhook was cannot be read; it begins with the next event", "webhook", h.Name, "error", err)
	}
	h.mu.state.PausedUntil, h.mu.state.Failures = time.Time{}, 0
}

// save keeps where the webhook is.
func (h *hook) save() {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	data, err := json.Marshal(h.mu.state)
	h.mu.Unlock()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		defer cancel()
		_, err = h.sender.Store.Commit(ctx, store.Change{Put: []store.Entry{{Key: store.PrefixWebhook + h.Name, Value: data}}})
	}
	if err != nil && !errors.Is(err, store.ErrClosed) {
		h.sender.Log.Warn("where a webhook is cannot be kept; messages may come twice after a restart", "webhook", h.Name, "error", err)
	}
}
