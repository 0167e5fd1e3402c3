package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"headgate/internal/store"
)

// head is the first line of a message, in JSON; the data follows.
type head struct {
	// Question identifies the query. The response has the same identifier.
	Question store.ID `json:"q"`
	// Name is the name of a query, and Left the time in milliseconds until the querying machine
	// stops waiting.
	Name string `json:"name,omitempty"`
	Left int64  `json:"left_ms,omitempty"`
	// Answer is whether the message is a response, and Failed why there is none.
	Answer bool   `json:"answer,omitempty"`
	Failed string `json:"failed,omitempty"`
	// Detail is the text of the handler's error.
	Detail string `json:"detail,omitempty"`
}

// The values of head.Failed.
const (
	failedBusy    = "busy"
	failedUnknown = "unknown"
	failedError   = "error"
)

// err returns why there is no response, nil if there is one.
func (h *head) err() error {
	switch h.Failed {
	case "":
		return nil
	case failedBusy:
		return ErrBusy
	case failedUnknown:
		return ErrUnknown
	}
	return &Failure{h.Detail}
}

// send sends one message.
func (p *Peers) send(ctx context.Context, to string, h *head, data []byte) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	m := store.Message{ID: store.NewID(), From: p.o.Node, To: to, Data: append(append(line, '\n'), data...)}
	return p.o.Messenger.Send(ctx, m)
}

// acceptMessage handles a received message. It drops messages that are neither a query nor a response.
func (p *Peers) acceptMessage(ctx context.Context, m *store.Message) {
	line, data, _ := bytes.Cut(m.Data, []byte{'\n'})
	h := &head{}
	if len(line) > maxHead || json.Unmarshal(line, h) != nil || m.From == p.o.Node {
		return
	}
	if h.Answer {
		p.note(h.Question, m.From, Answer{Data: data, Err: h.err()})
		return
	}
	left := time.Duration(min(h.Left, MaxWait.Milliseconds()))*time.Millisecond - m.Age
	if left <= 0 {
		return // the querying machine no longer waits
	}
	do, failed := p.enter(m.From, h.Name)
	if do == nil && failed == "" {
		return
	}
	ctx, stop := context.WithTimeout(ctx, left)
	p.done.Add(1) // Close waits for receive, which is running
	go func() {
		defer p.done.Done()
		defer stop()
		defer p.leave(m.From, do != nil)
		reply := head{Question: h.Question, Answer: true, Failed: failed}
		var out []byte
		if do != nil {
			out = p.answer(ctx, do, m.From, h.Name, data, &reply)
		}
		_ = p.send(ctx, m.From, &reply, out) // without a response, the querying machine continues
	}()
}

// enter returns the handler for a query, or why there is none; it returns neither if the query must be
// dropped. The handler counts as running until leave.
func (p *Peers) enter(from, name string) (do Handler, failed string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch do = p.mu.handlers[name]; {
	case do == nil:
		failed = failedUnknown
	case p.mu.all >= maxHandlers, p.mu.running[from] >= maxOfOne:
		failed = failedBusy
	default:
		p.mu.all++
		p.mu.running[from]++
		return do, ""
	}
	if p.mu.refusals >= maxRefusals {
		return nil, ""
	}
	p.mu.refusals++
	return nil, failed
}

func (p *Peers) leave(from string, handled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !handled {
		p.mu.refusals--
		return
	}
	p.mu.all--
	if p.mu.running[from]--; p.mu.running[from] == 0 {
		delete(p.mu.running, from)
	}
}

// answer runs a handler. A panic in the handler results in an error.
func (p *Peers) answer(ctx context.Context, do Handler, from, name string, data []byte, reply *head) (out []byte) {
	fail := func(err error) {
		out, reply.Failed, reply.Detail = nil, failedError, shorten(err.Error())
	}
	defer func() {
		if v := recover(); v != nil {
			p.o.Log.Error("broken invariant in a query from another machine", "query", name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			fail(errors.New("broken invariant; please report this"))
		}
	}()
	out, err := do(ctx, from, data)
	if err == nil && len(out) > MaxData {
		err = fmt.Errorf("the response to %s has %d bytes, at most %d are allowed", name, len(out), MaxData)
	}
	if err != nil {
		fail(err)
	}
	return out
}

// shorten returns at most maxText bytes of a text.
func shorten(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
