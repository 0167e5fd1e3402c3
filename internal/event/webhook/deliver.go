package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"headgate/internal/event"
)

// run sends events until ctx ends: first those that wait and are due, then new ones. A
// receiver that is not reached pauses all of them; one that refuses a message only that.
func (h *hook) run(ctx context.Context) {
	defer close(h.done)
	var sub *event.Subscription
	for ctx.Err() == nil {
		if wait := h.pausedFor(); wait > 0 {
			sub = nil // what comes meanwhile is read from the log afterwards
			h.rest(ctx, wait)
			continue
		}
		if l, ok := h.due(); ok {
			h.try(ctx, l)
			continue
		}
		if sub == nil {
			sub = h.sender.Events.Subscribe(h.Filter, h.after())
		}
		if !h.next(ctx, sub) {
			return
		}
	}
}

// rest waits, or until somebody wants something.
func (h *hook) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.wake:
	case <-ctx.Done():
	}
}

func (h *hook) pausedFor() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.mu.state.PausedUntil)
}

func (h *hook) after() event.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.state.After
}

// due takes the first message that waits and is to be sent now.
func (h *hook) due() (Delivery, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for i, l := range h.mu.state.Waiting {
		if !l.Due.After(now) {
			h.mu.state.Waiting = append(h.mu.state.Waiting[:i:i], h.mu.state.Waiting[i+1:]...)
			return l, true
		}
	}
	return Delivery{}, false
}

// next waits for an event and sends it. It returns false when there will be none.
func (h *hook) next(ctx context.Context, sub *event.Subscription) bool {
	wait, cancel := context.WithTimeout(ctx, h.untilDue())
	ended := make(chan struct{})
	// Whoever was woken here is gone before the next look at what is due: later it
	// would take a wake-up that is not meant for this call, and nobody would look.
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		select {
		case <-h.wake:
			cancel()
		case <-wait.Done():
		}
	}()
	e, err := sub.Next(wait)
	switch {
	case errors.Is(err, event.ErrClosed):
		<-ctx.Done()
		return false
	case err != nil:
		return ctx.Err() == nil
	case e.Gap():
		h.mu.Lock()
		h.mu.state.Missed++
		h.mu.Unlock()
		return true
	}
	h.mu.Lock()
	h.mu.state.After = e.ID
	h.mu.Unlock()
	if strings.HasPrefix(e.Type, "webhook.") && e.Object == "webhook "+h.Name {
		return true // nobody is told by a webhook that it does not work
	}
	h.try(ctx, Delivery{Event: e, First: e.Time})
	return true
}

// untilDue returns how long nothing that waits is due.
func (h *hook) untilDue() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := idle
	for _, l := range h.mu.state.Waiting {
		wait = min(wait, max(time.Until(l.Due), time.Millisecond))
	}
	return wait
}

// try sends a message once and keeps what came of it.
func (h *hook) try(ctx context.Context, l Delivery) {
	if time.Since(l.First) > maxAge {
		h.moveToDeadLetters(l)
		h.save()
		return
	}
	status, after, err := h.send(ctx, l.Event)
	if ctx.Err() != nil && err != nil {
		// We are being stopped: the message is sent after the next start.
		h.mu.Lock()
		h.mu.state.Waiting = append(h.mu.state.Waiting, l)
		h.mu.Unlock()
		h.save()
		return
	}
	h.mu.Lock()
	st := &h.mu.state
	st.LastTry, st.LastStatus, st.LastError = time.Now().UTC(), status, ""
	if err == nil {
		st.Sent++
		st.Failures, st.PausedUntil = 0, time.Time{}
		h.mu.Unlock()
		h.save()
		return
	}
	l.Attempts++
	l.Error, st.LastError = err.Error(), err.Error()
	wait := max(h.sender.pause(l.Attempts-1), after)
	if status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests {
		st.Failures = 0 // it is there; this message is what it does not want
	} else {
		wait = max(h.sender.pause(st.Failures), after)
		st.Failures++
		st.PausedUntil = time.Now().Add(wait)
	}
	l.Due = time.Now().Add(wait)
	st.Waiting = append(st.Waiting, l)
	var over []Delivery
	for len(st.Waiting) > maxWaiting || len(st.Waiting) > 1 && size(st.Waiting)+size(st.Dead) > maxKept {
		over = append(over, st.Waiting[0])
		st.Waiting = st.Waiting[1:]
	}
	h.mu.Unlock()
	for _, l := range over {
		h.moveToDeadLetters(l)
	}
	h.save()
}

// size returns how many bytes letters have, about.
func size(deliveries []Delivery) int {
	n := 0
	for _, l := range deliveries {
		n += len(l.Event.Data) + len(l.Event.Text) + len(l.Error) + 400
	}
	return n
}

// moveToDeadLetters gives a message up, and tells.
func (h *hook) moveToDeadLetters(l Delivery) {
	h.mu.Lock()
	st := &h.mu.state
	l.Due = time.Time{}
	st.Dead = append(st.Dead, l)
	for len(st.Dead) > maxDead || len(st.Dead) > 1 && size(st.Waiting)+size(st.Dead) > maxKept {
		st.Dead = st.Dead[1:]
		st.Lost++
	}
	h.mu.Unlock()
	h.sender.Events.Send(event.WebhookDead{Webhook: h.Name, Event: int64(l.Event.ID), Cause: l.Error})
}

// send sends a message once. It returns the status, how long the receiver wants to be
// left alone, and why it was not taken.
func (h *hook) send(ctx context.Context, e *event.Event) (status int, after time.Duration, err error) {
	body, err := json.Marshal(e)
	if err != nil {
		return 0, 0, fmt.Errorf("write event %d as JSON: %w", e.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return 0, 0, errors.New("the address of the webhook cannot be read")
	}
	id, stamp := "evt_"+strconv.FormatInt(int64(e.ID), 10), strconv.FormatInt(time.Now().Unix(), 10)
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("User-Agent", "headgate-webhook")
	rq.Header["webhook-id"] = []string{id}
	rq.Header["webhook-timestamp"] = []string{stamp}
	rq.Header["webhook-signature"] = []string{"v1," + base64.StdEncoding.EncodeToString(sign(h.key, id, stamp, body))}
	rs, err := h.sender.client.Do(rq)
	if err != nil {
		return 0, 0, brief(err)
	}
	defer rs.Body.Close()
	io.Copy(io.Discard, io.LimitReader(rs.Body, 64<<10)) // so that the connection can be kept
	if rs.StatusCode/100 == 2 {
		return rs.StatusCode, 0, nil
	}
	if seconds, err := strconv.Atoi(rs.Header.Get("Retry-After")); err == nil {
		after = min(time.Duration(max(seconds, 0))*time.Second, lastRetry)
	}
	if rs.StatusCode/100 == 3 {
		return rs.StatusCode, after, fmt.Errorf("answered with %d; redirects are not followed", rs.StatusCode)
	}
	return rs.StatusCode, after, fmt.Errorf("answered with %d", rs.StatusCode)
}

// brief returns the error of a request without its URL, which may hold a secret.
func brief(err error) error {
	if asked := (*url.Error)(nil); errors.As(err, &asked) {
		return asked.Err
	}
	return err
}

// signingKey returns the key of a secret.
func signingKey(secret string) []byte {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}

// sign returns the signature of a message.
func sign(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
