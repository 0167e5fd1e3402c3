package notice

import (
	"bytes"
	"context"
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
	"headgate/internal/setting/shown"
)

// The bounds of an answer.
const (
	// maxAnswer is how much of an answer is read, and maxShown how much is shown.
	maxAnswer = 64 << 10
	maxShown  = 400
)

// Outcome is the result of one attempt to deliver a message.
type Outcome struct {
	// Status is the HTTP status, or the code of an SMTP reply; 0 without an answer.
	Status int
	// Answer is what the other side answered, without secrets; empty for webhooks.
	Answer string
	// RetryAfter is for how long the receiver asked to send nothing.
	RetryAfter time.Duration
	// Rejected is whether the receiver works and rejects this message.
	Rejected bool
	// Err is why the message was not accepted, nil if it was.
	Err error
}

// post is a request that delivers a message.
type post struct {
	method, url string
	header      map[string]string
	body        any
}

// deliver sends a message to the service of a notice, once.
func (s *Sender) deliver(ctx context.Context, c *Config, m *Message) Outcome {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if c.Email != nil {
		return c.redact(s.mail(ctx, c.Email, m))
	}
	p, err := c.post(m)
	if err != nil {
		return Outcome{Err: err, Rejected: true}
	}
	return c.redact(s.post(ctx, p))
}

// post returns the request of a message in the format of the service.
func (c *Config) post(m *Message) (post, error) {
	switch {
	case c.Ntfy != nil:
		return c.Ntfy.post(m), nil
	case c.Gotify != nil:
		return c.Gotify.post(m), nil
	case c.Discord != nil:
		return c.Discord.post(m), nil
	case c.Slack != nil:
		return c.Slack.post(m), nil
	case c.Telegram != nil:
		return c.Telegram.post(m), nil
	case c.Matrix != nil:
		return c.Matrix.post(m), nil
	case c.Teams != nil:
		return c.Teams.post(m), nil
	case c.JSON != nil:
		return c.JSON.post(m)
	}
	return post{}, errors.New("no service is set")
}

func below(base, path string) string { return strings.TrimSuffix(base, "/") + path }

func bearer(token string) map[string]string {
	if token == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + token}
}

// levelWord returns one of three values for a level.
func levelWord[T any](l event.Level, info, warning, failure T) T {
	switch l {
	case event.Error:
		return failure
	case event.Warning:
		return warning
	}
	return info
}

// post publishes as JSON, so that titles may have any character.
func (n *Ntfy) post(m *Message) post {
	return post{http.MethodPost, n.URL, bearer(n.Token), map[string]any{
		"topic": n.Topic, "title": m.title(), "message": m.text(),
		"priority": levelWord(m.level(), 2, 3, 4), "tags": []string{levelWord(m.level(), "information_source", "warning", "rotating_light")},
	}}
}

func (g *Gotify) post(m *Message) post {
	return post{http.MethodPost, below(g.URL, "/message"), map[string]string{"X-Gotify-Key": g.Token}, map[string]any{
		"title": m.title(), "message": m.text(), "priority": levelWord(m.level(), 2, 5, 8),
	}}
}

// post mentions no one: the text of an event may contain what a client has sent.
func (d *Discord) post(m *Message) post {
	return post{http.MethodPost, d.URL, nil, map[string]any{
		"allowed_mentions": map[string]any{"parse": []string{}},
		"embeds": []map[string]any{{
			"title": m.title(), "description": m.text(), "color": levelWord(m.level(), 0x3b82f6, 0xf59e0b, 0xdc2626),
		}},
	}}
}

// slackText escapes what Slack gives a meaning.
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (s *Slack) post(m *Message) post {
	return post{http.MethodPost, s.URL, nil, map[string]any{"text": slackText.Replace(m.title() + "\n" + m.text())}}
}

func (t *Telegram) post(m *Message) post {
	return post{http.MethodPost, below(t.URL, "/bot"+url.PathEscape(t.Token)+"/sendMessage"), nil, map[string]any{
		"chat_id": t.Chat, "text": m.title() + "\n" + m.text(), "link_preview_options": map[string]any{"is_disabled": true},
	}}
}

// post uses the name of the message as transaction, so that a repeated one is one message.
func (x *Matrix) post(m *Message) post {
	return post{http.MethodPut, below(x.URL, "/_matrix/client/v3/rooms/"+url.PathEscape(x.Room)+"/send/m.room.message/"+m.id()), bearer(x.Token), map[string]any{
		"msgtype": levelWord(m.level(), "m.notice", "m.text", "m.text"), "body": m.title() + "\n" + m.text(),
	}}
}

// post sends an adaptive card, which the Workflows app expects.
func (t *Teams) post(m *Message) post {
	block := func(text string, more map[string]any) map[string]any {
		out := map[string]any{"type": "TextBlock", "text": text, "wrap": true}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	return post{http.MethodPost, t.URL, nil, map[string]any{
		"type": "message",
		"attachments": []map[string]any{{
			"contentType": "application/vnd.microsoft.card.adaptive",
			"content": map[string]any{
				"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
				"body": []map[string]any{
					block(m.title(), map[string]any{"weight": "Bolder", "color": levelWord(m.level(), "Default", "Warning", "Attention")}),
					block(strings.ReplaceAll(m.text(), "\n", "\n\n"), nil),
				},
			},
		}},
	}}
}

func (j *JSON) post(m *Message) (post, error) {
	t, err := newTemplate(j.Body)
	if err != nil {
		return post{}, err
	}
	body, err := t.render(m.values())
	if err != nil {
		return post{}, err
	}
	var header map[string]string
	if j.Authorization != "" {
		header = map[string]string{"Authorization": j.Authorization}
	}
	return post{http.MethodPost, j.URL, header, json.RawMessage(body)}, nil
}

// post sends a request and interprets the answer.
func (s *Sender) post(ctx context.Context, p post) Outcome {
	body, err := json.Marshal(p.body)
	if err != nil {
		return Outcome{Err: fmt.Errorf("write the message as JSON: %w", err), Rejected: true}
	}
	rq, err := http.NewRequestWithContext(ctx, p.method, p.url, bytes.NewReader(body))
	if err != nil {
		return Outcome{Err: errors.New("the URL is not valid"), Rejected: true}
	}
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("User-Agent", "headgate-notice")
	for name, value := range p.header {
		rq.Header.Set(name, value)
	}
	rs, err := s.client.Do(rq)
	if err != nil {
		return Outcome{Err: brief(err)}
	}
	defer rs.Body.Close()
	text, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer))
	out := Outcome{Status: rs.StatusCode, Answer: shown.Line(strings.TrimSpace(string(text)), maxShown)}
	out.conclude(rs.Header, text)
	if out.Err == nil && err != nil {
		out.Err = fmt.Errorf("read the answer: %w", brief(err))
	}
	return out
}

// conclude sets what the status of an answer means.
func (o *Outcome) conclude(h http.Header, body []byte) {
	switch {
	case o.Status/100 == 2:
		return
	case o.Status/100 == 3:
		o.Err = fmt.Errorf("answered with %d; redirects are not followed", o.Status)
	case o.Answer != "":
		o.Err = fmt.Errorf("answered with %d: %s", o.Status, o.Answer)
	default:
		o.Err = fmt.Errorf("answered with %d", o.Status)
	}
	o.Rejected = o.Status >= 400 && o.Status < 500 && o.Status != http.StatusRequestTimeout && o.Status != http.StatusTooManyRequests
	o.RetryAfter = min(retryAfter(h, body, time.Now()), lastRetry)
}

// retryAfter returns for how long an answer asks to send nothing: in Retry-After, in
// seconds or as a date, or in the body as Discord, Telegram and Matrix write it.
func retryAfter(h http.Header, body []byte, now time.Time) time.Duration {
	if text := h.Get("Retry-After"); text != "" {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			return duration(seconds)
		}
		if at, err := http.ParseTime(text); err == nil {
			return max(at.Sub(now), 0)
		}
	}
	var in struct {
		Seconds      float64 `json:"retry_after"`
		Milliseconds float64 `json:"retry_after_ms"`
		Parameters   struct {
			Seconds float64 `json:"retry_after"`
		} `json:"parameters"`
	}
	if json.Unmarshal(body, &in) != nil {
		return 0
	}
	return duration(max(in.Seconds, in.Milliseconds/1000, in.Parameters.Seconds))
}

// duration returns a number of seconds as a bounded duration.
func duration(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, lastRetry.Seconds()) * float64(time.Second))
}

// redact removes the secrets of the notice from what is shown of an answer.
func (c *Config) redact(o Outcome) Outcome {
	for secret := range c.Credentials() {
		if len(secret) < 4 {
			continue
		}
		for _, form := range []string{secret, url.PathEscape(secret), url.QueryEscape(secret)} {
			o.Answer = strings.ReplaceAll(o.Answer, form, "********")
			if o.Err != nil && strings.Contains(o.Err.Error(), form) {
				o.Err = errors.New(strings.ReplaceAll(o.Err.Error(), form, "********"))
			}
		}
	}
	return o
}
