package api

import (
	"errors"
	"fmt"
	"time"

	"headgate/internal/event"
	"headgate/internal/event/webhook"
	"headgate/internal/operator"
)

// letterBody is a message that was not taken.
type letterBody struct {
	// Event is what it tells.
	Event eventBody `json:"event"`
	// First is when it was tried first.
	First time.Time `json:"first"`
	// Attempts is how often it was sent.
	Attempts int `json:"attempts"`
	// Due is when it is tried next.
	Due time.Time `json:"due,omitzero"`
	// Error is what the last try ended with.
	Error string `json:"error"`
}

// webhookState is how a webhook stands.
type webhookState struct {
	// Name is the name of the webhook.
	Name string `json:"name"`
	// Sent is how many messages were taken.
	Sent int64 `json:"sent"`
	// Missed is how many gaps there were: events that were gone before they were sent.
	Missed int64 `json:"missed"`
	// Waiting are messages that are sent again.
	Waiting []letterBody `json:"waiting"`
	// Dead are messages that no receiver took for a day.
	Dead []letterBody `json:"dead"`
	// Lost is how many dead letters were too many to keep.
	Lost int64 `json:"lost"`
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

func showLetters(all []webhook.Delivery) []letterBody {
	out := make([]letterBody, 0, len(all))
	for _, l := range all {
		out = append(out, letterBody{showEvent(l.Event), l.First, l.Attempts, l.Due, l.Error})
	}
	return out
}

// unknownHook says that there is no such webhook or letter.
func unknownHook(err error) error {
	if errors.Is(err, webhook.ErrUnknown) {
		return refuse(operator.CodeNotFound, "", err.Error(), "")
	}
	return err
}

// hooks returns the webhooks, or that there are none.
func (a *API) hooks() (*webhook.Sender, error) {
	if a.Webhooks == nil {
		return nil, unknownHook(webhook.ErrUnknown)
	}
	return a.Webhooks, nil
}

func (a *API) webhookState(c *call) (any, error) {
	hooks, err := a.hooks()
	if err != nil {
		return nil, err
	}
	s, err := hooks.State(c.name())
	if err != nil {
		return nil, unknownHook(err)
	}
	return webhookState{
		Name: c.name(), Sent: int64(s.Sent), Missed: int64(s.Missed), Waiting: showLetters(s.Waiting), Dead: showLetters(s.Dead), Lost: int64(s.Lost),
		Failures: s.Failures, PausedUntil: s.PausedUntil, LastTry: s.LastTry, LastStatus: s.LastStatus, LastError: s.LastError,
	}, nil
}

// webhookTest is how a test message ended.
type webhookTest struct {
	// Taken is whether the receiver took it.
	Taken bool `json:"taken"`
	// Status is the status that came back, 0 without an answer.
	Status int `json:"status"`
	// Error is why it was not taken.
	Error string `json:"error,omitempty"`
	// Duration is how long it took, in milliseconds.
	Duration float64 `json:"duration_ms"`
}

func (a *API) testWebhook(c *call, _ *empty) (any, error) {
	hooks, err := a.hooks()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	status, err := hooks.Test(c.rq.Context(), c.name(), c.who.Name)
	if errors.Is(err, webhook.ErrUnknown) {
		return nil, unknownHook(err)
	}
	out := webhookTest{Taken: err == nil, Status: status, Duration: float64(time.Since(begun).Microseconds()) / 1000}
	if err != nil {
		out.Error = err.Error()
	}
	c.note("webhook.test", "webhook "+c.name(), "")
	return out, nil
}

// resendInput names a dead letter.
type resendInput struct {
	// Event is the id of its event.
	Event int64 `json:"event" required:"true"`
}

func (a *API) resend(c *call, in *resendInput) (any, error) {
	hooks, err := a.hooks()
	if err != nil {
		return nil, err
	}
	if c.dryRun {
		return nil, unknownHook(hooks.CanResend(c.name(), event.ID(in.Event)))
	}
	if err := hooks.Resend(c.name(), event.ID(in.Event)); err != nil {
		return nil, unknownHook(err)
	}
	c.note("webhook.resend", "webhook "+c.name(), fmt.Sprintf("event %d", in.Event))
	return nil, nil
}
