package notice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"headgate/internal/event"
	"headgate/internal/store/memory"
)

// got is a request that a service of a test has received.
type got struct {
	line   string
	header http.Header
	body   map[string]any
}

// service answers every request with a status and a text.
func service(t *testing.T, status int, header http.Header, answer string) (string, chan got) {
	t.Helper()
	seen := make(chan got, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		g := got{line: rq.Method + " " + rq.URL.EscapedPath(), header: rq.Header}
		if err := json.NewDecoder(rq.Body).Decode(&g.body); err != nil {
			t.Errorf("%s: %v", g.line, err)
		}
		seen <- g
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

// phone returns a hook of a notice that sends everything.
func phone(c Config) Hook {
	c.Level = event.Info
	return Hook{Kind: Notices, Name: "phone", Notice: &c}
}

// TestPresets holds the request of each service, its result, and that no secret is shown.
func TestPresets(t *testing.T) {
	const secret = "s3cret/token"
	for name, test := range map[string]struct {
		config func(url string) Config
		line   string
		header string // "Name: value"
		body   string // a part of the body as JSON
	}{
		"ntfy":     {func(u string) Config { return Config{Ntfy: &Ntfy{URL: u, Topic: "gate", Token: secret}} }, "POST /", "Authorization: Bearer " + secret, `"topic":"gate"`},
		"gotify":   {func(u string) Config { return Config{Gotify: &Gotify{URL: u + "/push/", Token: secret}} }, "POST /push/message", "X-Gotify-Key: " + secret, `"priority":2`},
		"discord":  {func(u string) Config { return Config{Discord: &Discord{URL: u + "/api/webhooks/1/" + secret}} }, "POST /api/webhooks/1/s3cret/token", "", `"allowed_mentions":{"parse":[]}`},
		"slack":    {func(u string) Config { return Config{Slack: &Slack{URL: u + "/services/" + secret}} }, "POST /services/s3cret/token", "", `"text":"headgate on gate1: notice phone (info)`},
		"telegram": {func(u string) Config { return Config{Telegram: &Telegram{URL: u, Token: secret, Chat: "-100"}} }, "POST /bots3cret%2Ftoken/sendMessage", "", `"chat_id":"-100"`},
		"matrix":   {func(u string) Config { return Config{Matrix: &Matrix{URL: u, Room: "!a:example.com", Token: secret}} }, "PUT /_matrix/client/v3/rooms/%21a:example.com/send/m.room.message/evt_", "Authorization: Bearer " + secret, `"msgtype":"m.notice"`},
		"teams":    {func(u string) Config { return Config{Teams: &Teams{URL: u + "/" + secret}} }, "POST /s3cret/token", "", `"contentType":"application/vnd.microsoft.card.adaptive"`},
		"json": {func(u string) Config {
			return Config{JSON: &JSON{URL: u, Authorization: secret, Body: `{"a": ["{title}"], "n": 3, "level": "{level}"}`}}
		}, "POST /", "Authorization: " + secret, `"a":["headgate on gate1: notice phone (info)"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, seen := service(t, 200, nil, `{"ok":true,"echo":"`+secret+`"}`)
			s, _ := open(t, memory.New())
			s.Instance = "gate1"
			s.Set([]Hook{phone(test.config(url))})
			o, err := s.Test(t.Context(), Notices, "phone", "ann")
			if err != nil || o.Err != nil || o.Status != 200 {
				t.Fatalf("%+v, %v", o, err)
			}
			if !strings.Contains(o.Answer, `"ok":true`) {
				t.Errorf("the answer is shown as %q", o.Answer)
			}
			if strings.Contains(o.Answer, secret) && name != "discord" && name != "slack" && name != "teams" { // their secret is the whole URL
				t.Errorf("the answer shows the secret: %q", o.Answer)
			}
			g := <-seen
			body, _ := json.Marshal(g.body)
			if !strings.HasPrefix(g.line, test.line) || !strings.Contains(string(body), test.body) || !strings.Contains(string(body), "phone") {
				t.Errorf("%s %s", g.line, body)
			}
			if field, value, _ := strings.Cut(test.header, ": "); g.header.Get(field) != value {
				t.Errorf("%s: %q", field, g.header.Get(field))
			}
		})
	}
}

// TestAnswersOfServices holds what becomes of a message that is not accepted.
func TestAnswersOfServices(t *testing.T) {
	for name, test := range map[string]struct {
		status   int
		header   http.Header
		answer   string
		err      string
		rejected bool
		after    time.Duration
	}{
		"a wrong token":        {401, nil, `{"error":"unauthorized"}`, `answered with 401: {"error":"unauthorized"}`, true, 0},
		"too many requests":    {429, http.Header{"Retry-After": {"7"}}, "", "answered with 429", false, 7 * time.Second},
		"Discord's own":        {429, nil, `{"retry_after":1.5}`, "answered with 429", false, 1500 * time.Millisecond},
		"Telegram's own":       {429, nil, `{"parameters":{"retry_after":4}}`, "answered with 429", false, 4 * time.Second},
		"Matrix's own":         {429, nil, `{"retry_after_ms":2500}`, "answered with 429", false, 2500 * time.Millisecond},
		"longer than an hour":  {503, http.Header{"Retry-After": {"999999"}}, "", "answered with 503", false, lastRetry},
		"nonsense":             {503, http.Header{"Retry-After": {"-1"}}, "", "answered with 503", false, 0},
		"a redirect":           {302, http.Header{"Location": {"http://127.0.0.1:1/"}}, "", "redirects are not followed", false, 0},
		"control characters":   {400, nil, "a\x1b[31mb", "answered with 400: a [31mb", true, 0},
		"a very long response": {400, nil, strings.Repeat("x", 2*maxAnswer), "answered with 400: xxx", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := service(t, test.status, test.header, test.answer)
			s, _ := open(t, memory.New())
			o := s.deliver(t.Context(), &Config{Gotify: &Gotify{URL: url, Token: "token"}}, &Message{Events: []*event.Event{draft(t)}})
			if o.Err == nil || !strings.Contains(o.Err.Error(), test.err) || o.Rejected != test.rejected || o.RetryAfter != test.after || o.Status != test.status {
				t.Errorf("%+v", o)
			}
			if len(o.Answer) > maxShown+8 {
				t.Errorf("%d bytes of the answer are shown", len(o.Answer))
			}
		})
	}
}

func draft(t *testing.T) *event.Event {
	t.Helper()
	e, err := event.Draft(port("web"))
	if err != nil {
		t.Fatal(err)
	}
	e.ID = 7
	return e
}

// TestServicesThatDoNotAnswer holds that a receiver that is not there, or answers never,
// does not hold up the process.
func TestServicesThatDoNotAnswer(t *testing.T) {
	s, _ := open(t, memory.New())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	o := s.deliver(t.Context(), &Config{Ntfy: &Ntfy{URL: "http://" + closed.Addr().String(), Topic: "a"}}, &Message{Events: []*event.Event{draft(t)}})
	if o.Err == nil || o.Rejected || o.Status != 0 {
		t.Errorf("refused: %+v", o)
	}
	for _, address := range []string{"169.254.169.254:80", "[fe80::1]:80"} {
		o := s.deliver(t.Context(), &Config{Ntfy: &Ntfy{URL: "http://" + address, Topic: "a"}}, &Message{Events: []*event.Event{draft(t)}})
		if o.Err == nil || !strings.Contains(o.Err.Error(), "not allowed") {
			t.Errorf("%s: %+v", address, o)
		}
	}
	arrived := make(chan struct{}, 10)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, rq *http.Request) {
		io.Copy(io.Discard, rq.Body) // only then the end of the connection is noticed
		arrived <- struct{}{}
		<-rq.Context().Done()
	}))
	defer hanging.Close()
	s.Set([]Hook{phone(Config{Ntfy: &Ntfy{URL: hanging.URL, Topic: "a"}})})
	s.Events.Send(port("web"))
	<-arrived
	s.Close() // ends the attempt; the message is kept for the next start
	h, err := s.Store.Get(t.Context(), string(Notices)+"phone")
	if !strings.Contains(string(h.Value), `"port.listening"`) {
		t.Errorf("the message is lost: %s, %v", h.Value, err)
	}
}

// TestDigest holds that events are collected, and that urgent ones are not.
func TestDigest(t *testing.T) {
	url, seen := service(t, 200, nil, "")
	s, events := open(t, memory.New())
	s.Set([]Hook{phone(Config{Ntfy: &Ntfy{URL: url, Topic: "a"}, Digest: 1e15, Urgent: "error"})})
	for i := range 3 {
		events.Send(port(fmt.Sprint("p", i)))
	}
	events.Send(event.StoreUnavailable{Cause: "the disk is full"})
	if g := <-seen; !strings.Contains(fmt.Sprint(g.body), "the disk is full") {
		t.Fatalf("the urgent event is not first: %v", g.body)
	}
	h := s.find(Notices, "phone")
	h.mu.Lock()
	if n := len(h.mu.state.Held); n != 3 {
		t.Errorf("%d events are held", n)
	}
	h.mu.state.Release = time.Now() // the time of the digest is over
	h.mu.Unlock()
	h.wake <- struct{}{}
	g := <-seen
	if text := fmt.Sprint(g.body["message"]); !strings.Contains(fmt.Sprint(g.body["title"]), "3 events") || !strings.Contains(text, "port p0") || !strings.Contains(text, "port p2") {
		t.Errorf("the digest is %v", g.body)
	}
}

// TestABurstIsOneMessage holds that many failures at once are not a message each.
func TestABurstIsOneMessage(t *testing.T) {
	url, seen := service(t, 200, nil, "")
	s, events := open(t, memory.New())
	s.Set([]Hook{phone(Config{Ntfy: &Ntfy{URL: url, Topic: "a"}, Urgent: "error"})})
	for range 500 {
		events.Send(event.StoreUnavailable{Cause: "the disk is full"})
	}
	<-seen
	h := s.find(Notices, "phone")
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		h.mu.Lock()
		n, omitted := len(h.mu.state.Held), h.mu.state.Omitted
		if n+omitted >= 499 {
			h.mu.state.Release = time.Now()
			h.mu.Unlock()
			if n > maxHeld {
				t.Errorf("%d events are held", n)
			}
			break
		}
		h.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("%d held, %d omitted", n, omitted)
		}
		<-tick.C
	}
	h.wake <- struct{}{}
	g := <-seen
	if text := fmt.Sprint(g.body["message"]); !strings.Contains(fmt.Sprint(g.body["title"]), "499 events") || !strings.Contains(text, "more") || len(text) > maxMessage+100 {
		t.Errorf("%v", g.body)
	}
}

// TestEventsBelowTheLevelAreNotSent holds level, and that a notice does not report itself.
func TestEventsBelowTheLevelAreNotSent(t *testing.T) {
	url, seen := service(t, 200, nil, "")
	s, events := open(t, memory.New())
	c := Config{Ntfy: &Ntfy{URL: url, Topic: "a"}, Level: event.Error, Urgent: "error"}
	s.Set([]Hook{{Kind: Notices, Name: "phone", Notice: &c}})
	events.Send(port("web"))
	events.Send(event.NoticeDead{Notice: "phone", Cause: "itself"})
	events.Send(event.StoreUnavailable{Cause: "the disk is full"})
	if g := <-seen; !strings.Contains(fmt.Sprint(g.body), "the disk is full") {
		t.Errorf("%v", g.body)
	}
}

// TestQuietHours holds when messages are sent, over midnight and over changes of the clock.
func TestQuietHours(t *testing.T) {
	night := &Quiet{From: "22:00", Until: "07:00", Zone: "UTC"}
	noon := &Quiet{From: "12:00", Until: "13:30", Zone: "UTC"}
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		q        *Quiet
		at, want string
	}{
		{night, "2026-03-01T21:59:59Z", "2026-03-01T21:59:59Z"},
		{night, "2026-03-01T22:00:00Z", "2026-03-02T07:00:00Z"},
		{night, "2026-03-02T06:59:00Z", "2026-03-02T07:00:00Z"},
		{night, "2026-03-02T07:00:00Z", "2026-03-02T07:00:00Z"},
		{night, "2026-12-31T23:30:00Z", "2027-01-01T07:00:00Z"},
		{noon, "2026-03-01T12:10:00Z", "2026-03-01T13:30:00Z"},
		{noon, "2026-03-01T13:30:00Z", "2026-03-01T13:30:00Z"},
		{nil, "2026-03-01T13:30:00Z", "2026-03-01T13:30:00Z"},
	} {
		if got := c.q.end(at(c.at)); !got.Equal(at(c.want)) {
			t.Errorf("%+v at %s: %v, want %s", c.q, c.at, got, c.want)
		}
	}
	now := at("2026-03-01T23:00:00Z")
	c := Config{Quiet: night, Urgent: "error"}
	if got := c.sendAt(now, time.Time{}, spacing, event.Error); !got.Equal(now) {
		t.Errorf("an urgent event waits until %v", got)
	}
	if got := c.sendAt(now, now.Add(-time.Second), spacing, event.Error); !got.Equal(now.Add(spacing - time.Second)) {
		t.Errorf("one right after another is sent at %v", got)
	}
	c.Urgent = noneUrgent
	if got := c.sendAt(now, time.Time{}, spacing, event.Error); !got.Equal(at("2026-03-02T07:00:00Z")) {
		t.Errorf("with none urgent it is sent at %v", got)
	}
}

// TestTemplatesStayJSON holds that values cannot break out of a text.
func TestTemplatesStayJSON(t *testing.T) {
	tmpl, err := newTemplate(`{"text": "{text} {title}", "n": [1, null, "{unknown}"]}`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tmpl.render(map[string]string{"text": `a"},{"b": {title}`, "title": "\n\\"})
	var back map[string]any
	if err = errors.Join(err, json.Unmarshal(out, &back)); err != nil || back["text"] != "a\"},{\"b\": {title} \n\\" || len(back) != 2 {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := newTemplate(`{"text": {text}}`); err == nil {
		t.Error("a document that is not JSON is accepted")
	}
}

// FuzzTemplate holds that every template that is accepted renders to JSON.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"a":"{text}"}`, "x\"")
	f.Add(`["{title}{text}"]`, "{title}")
	f.Fuzz(func(t *testing.T, text, value string) {
		tmpl, err := newTemplate(text)
		if err != nil {
			return
		}
		out, err := tmpl.render(map[string]string{"text": value, "title": value})
		if err != nil || !json.Valid(out) {
			t.Errorf("%q with %q: %s, %v", text, value, out, err)
		}
	})
}
