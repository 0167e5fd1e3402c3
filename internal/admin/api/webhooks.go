package api

import (
	"errors"
	"fmt"
	"time"

	"headgate/internal/event"
	"headgate/internal/notice"
	"headgate/internal/operator"
)

// letterBody is a message that was not accepted.
type letterBody struct {
	// Event is the event, or the first one of the message.
	Event eventBody `json:"event"`
	// More is how many other events the message has.
	More int `json:"more,omitempty"`
	// First is when it was tried first.
	First time.Time `json:"first"`
	// Attempts is how often it was sent.
	Attempts int `json:"attempts"`
	// Due is when it is tried next.
	Due time.Time `json:"due,omitzero"`
	// Error is what the last try ended with.
	Error string `json:"error"`
}

// queueState is the state of a webhook or notice.
type queueState struct {
	// Name is the name of the webhook or notice.
	Name string `json:"name"`
	// Node is the machine that sends the messages of all, where several share the store.
	Node string `json:"node,omitempty"`
	// Sent is how many messages were taken.
	Sent int64 `json:"sent"`
	// Missed counts gaps: events that were dropped before they were sent.
	Missed int64 `json:"missed"`
	// Waiting are messages that will be sent again.
	Waiting []letterBody `json:"waiting"`
	// Dead are messages that the receiver did not accept for a day.
	Dead []letterBody `json:"dead"`
	// Lost is how many dead letters were too many to keep.
	Lost int64 `json:"lost"`
	// Held is how many events are collected for the next message of a notice.
	Held int `json:"held"`
	// Release is when that message is sent.
	Release time.Time `json:"release,omitzero"`
	// Failures is how many attempts in a row did not reach the receiver.
	Failures int `json:"failures"`
	// PausedUntil is when it is tried again.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// LastTry is when a message was sent last.
	LastTry time.Time `json:"last_try,omitzero"`
	// LastStatus is the status that came back, 0 without an answer.
	LastStatus int `json:"last_status"`
	// LastError is why it was not taken.
	LastError string `json:"last_error,omitempty"`
}

func showLetters(all []notice.Delivery) []letterBody {
	out := make([]letterBody, 0, len(all))
	for _, l := range all {
		out = append(out, letterBody{showEvent(l.Event), len(l.More) + l.Omitted, l.First, l.Attempts, l.Due, l.Error})
	}
	return out
}

// unknownHook returns the response for a webhook, notice or dead letter that does not
// exist.
func unknownHook(err error) error {
	if errors.Is(err, notice.ErrUnknown) {
		return refuse(operator.CodeNotFound, "", err.Error(), "")
	}
	return err
}

// hooks returns the sender of webhooks and notices.
func (a *API) hooks() (*notice.Sender, error) {
	if a.Notices == nil {
		return nil, unknownHook(notice.ErrUnknown)
	}
	return a.Notices, nil
}

// queueState returns the handler of the state of a webhook or notice.
func (a *API) queueState(kind notice.Kind) func(c *call) (any, error) {
	return func(c *call) (any, error) {
		hooks, err := a.hooks()
		if err != nil {
			return nil, err
		}
		s, err := hooks.State(kind, c.name())
		if err != nil {
			return nil, unknownHook(err)
		}
		return queueState{
			Name: c.name(), Node: s.Node, Sent: int64(s.Sent), Missed: int64(s.Missed), Waiting: showLetters(s.Waiting), Dead: showLetters(s.Dead), Lost: int64(s.Lost),
			Held: len(s.Held) + s.Omitted, Release: s.Release,
			Failures: s.Failures, PausedUntil: s.PausedUntil, LastTry: s.LastTry, LastStatus: s.LastStatus, LastError: s.LastError,
		}, nil
	}
}

// queueTest is the result of a test message.
type queueTest struct {
	// Taken is whether the receiver accepted it.
	Taken bool `json:"taken"`
	// Status is the status of the answer, or the code of an SMTP reply; 0 without an answer.
	Status int `json:"status"`
	// Answer is what the service answered, without secrets. Answers to webhooks are not
	// shown.
	Answer string `json:"answer,omitempty"`
	// Error is why it was not accepted.
	Error string `json:"error,omitempty"`
	// Duration is how long it took, in milliseconds.
	Duration float64 `json:"duration_ms"`
}

// testQueue returns the handler that sends a test message.
func (a *API) testQueue(kind notice.Kind) func(c *call, _ *empty) (any, error) {
	return func(c *call, _ *empty) (any, error) {
		hooks, err := a.hooks()
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		o, err := hooks.Test(c.rq.Context(), kind, c.name(), c.who.Name)
		if err != nil {
			return nil, unknownHook(err)
		}
		out := queueTest{Taken: o.Err == nil, Status: o.Status, Answer: o.Answer, Duration: float64(time.Since(begun).Microseconds()) / 1000}
		if o.Err != nil {
			out.Error = o.Err.Error()
		}
		c.note(kind.Object()+".test", kind.Object()+" "+c.name(), "")
		return out, nil
	}
}

// resendInput is the dead letter to send again.
type resendInput struct {
	// Event is the id of its event.
	Event int64 `json:"event" required:"true"`
}

// resend returns the handler that sends a dead letter again.
func (a *API) resend(kind notice.Kind) func(c *call, in *resendInput) (any, error) {
	return func(c *call, in *resendInput) (any, error) {
		hooks, err := a.hooks()
		if err != nil {
			return nil, err
		}
		if c.dryRun {
			return nil, unknownHook(hooks.CanResend(kind, c.name(), event.ID(in.Event)))
		}
		if err := hooks.Resend(kind, c.name(), event.ID(in.Event)); err != nil {
			return nil, unknownHook(err)
		}
		c.note(kind.Object()+".resend", kind.Object()+" "+c.name(), fmt.Sprintf("event %d", in.Event))
		return nil, nil
	}
}
