package notice

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/event"
	"headgate/internal/store"
	"headgate/internal/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secretText = "whsec_c2VjcmV0IG9mIHRoZSByZWNlaXZlcg=="

// receiver takes messages and answers as told.
type receiver struct {
	t *testing.T
	*httptest.Server
	got chan *event.Event
	mu  struct {
		sync.Mutex
		answer func(*event.Event) int
	}
}

func receive(t *testing.T, answer func(*event.Event) int) *receiver {
	r := &receiver{t: t, got: make(chan *event.Event, 1000)}
	r.set(answer)
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) set(answer func(*event.Event) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.answer = answer
}

func accepted(*event.Event) int { return 204 }

func (r *receiver) serve(w http.ResponseWriter, rq *http.Request) {
	body, err := io.ReadAll(rq.Body)
	if err != nil {
		return
	}
	id, stamp := rq.Header.Get("webhook-id"), rq.Header.Get("webhook-timestamp")
	want := "v1," + base64.StdEncoding.EncodeToString(sign([]byte("secret of the receiver"), id, stamp, body))
	if got := rq.Header.Get("webhook-signature"); got != want || rq.Method != "POST" || rq.Header.Get("Content-Type") != "application/json" {
		r.t.Errorf("signature %q, want %q", got, want)
	}
	e := &event.Event{}
	if err := json.Unmarshal(body, e); err != nil || id != messageID(e) {
		r.t.Errorf("id %q, body %s: %v", id, body, err)
	}
	r.mu.Lock()
	status := r.mu.answer(e)
	r.mu.Unlock()
	if status == 302 {
		w.Header().Set("Location", "http://169.254.169.254/")
	}
	w.WriteHeader(status)
	r.got <- e
}

// next returns what the next message tells: the name of its port.
func (r *receiver) next() string {
	r.t.Helper()
	p := event.Port{}
	json.Unmarshal(r.event().Data, &p)
	return p.Port
}

// event returns the event of the next message.
func (r *receiver) event() *event.Event {
	r.t.Helper()
	select {
	case e := <-r.got:
		return e
	case <-time.After(time.Minute):
		r.t.Fatal("no message comes")
		return nil
	}
}

func port(name string) event.Payload { return event.PortListening{Port: event.Port{Port: name}} }

func open(t *testing.T, st store.Store) (*Sender, *event.Log) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	events, err := event.Open(t.Context(), st, log)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Events: events, Store: st, Log: log})
	s.pause = func(int) time.Duration { return time.Millisecond }
	t.Cleanup(events.Close)
	t.Cleanup(s.Close)
	return s, events
}

// until waits for a state.
func until(t *testing.T, s *Sender, holds func(State) bool) State {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		st, err := s.State(Webhooks, "a")
		if err != nil {
			t.Fatal(err)
		}
		if holds(st) {
			return st
		}
		timer := time.NewTimer(time.Millisecond)
		<-timer.C
	}
	st, _ := s.State(Webhooks, "a")
	t.Fatalf("the state does not come: %+v", st)
	return st
}

func TestSignatureIsThatOfTheStandard(t *testing.T) {
	// The example of the Standard Webhooks.
	key := signingKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	body := []byte(`{"test": 2432232314}`)
	got := base64.StdEncoding.EncodeToString(sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body))
	if want := "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEventsAreSentInOrder(t *testing.T) {
	s, events := open(t, memory.New())
	r := receive(t, accepted)
	events.Send(port("before"))
	s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: r.URL, Secret: secretText, Filter: event.Filter{Types: []string{"port.*"}}}})
	for i := range 5 {
		events.Send(event.ProcessStarted{})
		events.Send(port(fmt.Sprint(i)))
	}
	for i := range 5 {
		if got := r.next(); got != fmt.Sprint(i) {
			t.Fatalf("got %q, want %d", got, i)
		}
	}
	until(t, s, func(st State) bool { return st.Sent == 5 && st.LastStatus == 204 })
}

func TestReceiverThatIsAwayGetsAllLater(t *testing.T) {
	s, events := open(t, memory.New())
	down := true
	r := receive(t, func(*event.Event) int {
		if down {
			return 503
		}
		return 200
	})
	s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: r.URL, Secret: secretText}})
	for i := range 3 {
		events.Send(port(fmt.Sprint(i)))
	}
	for range 3 {
		if got := r.next(); got != "0" {
			t.Fatalf("while it is away it is bothered with %q", got)
		}
	}
	st := until(t, s, func(st State) bool { return st.Failures >= 3 })
	if st.LastStatus != 503 || len(st.Waiting) > 1 {
		t.Errorf("%+v", st)
	}
	r.set(func(*event.Event) int { return 200 })
	until(t, s, func(st State) bool { return st.Sent == 3 && st.Failures == 0 })
	seen := map[string]bool{}
	for len(r.got) > 0 {
		seen[r.next()] = true
	}
	if !seen["1"] || !seen["2"] {
		t.Errorf("got %v", seen)
	}
}

func TestMessageThatIsRefusedHoldsUpNoOther(t *testing.T) {
	s, events := open(t, memory.New())
	s.pause = func(int) time.Duration { return time.Hour }
	r := receive(t, func(e *event.Event) int {
		if strings.Contains(string(e.Data), "bad") {
			return 400
		}
		return 200
	})
	s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: r.URL, Secret: secretText}})
	events.Send(port("bad"))
	events.Send(port("good"))
	if one, two := r.next(), r.next(); one != "bad" || two != "good" {
		t.Errorf("got %q, %q", one, two)
	}
	st := until(t, s, func(st State) bool { return st.Sent == 1 && len(st.Waiting) == 1 })
	if l := st.Waiting[0]; l.Attempts != 1 || l.Error != "answered with 400" {
		t.Errorf("%+v", l)
	}
}

func TestOldMessagesAreDeadLettersAndCanBeSentAgain(t *testing.T) {
	s, events := open(t, memory.New())
	r := receive(t, func(*event.Event) int { return 422 })
	s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: r.URL, Secret: secretText, Filter: event.Filter{Types: []string{"port.*", "webhook.*"}}}})
	events.Send(port("x"))
	r.next()
	until(t, s, func(st State) bool { return len(st.Waiting) == 1 })
	h := s.find(Webhooks, "a")
	// A day goes by.
	for dead := false; !dead; {
		h.mu.Lock()
		for i := range h.mu.state.Waiting {
			h.mu.state.Waiting[i].First = time.Now().Add(-maxAge - time.Minute)
		}
		dead = len(h.mu.state.Dead) == 1
		h.mu.Unlock()
	}
	sub := events.Subscribe(event.Filter{Types: []string{"webhook.dead"}}, 0)
	e, err := sub.Next(t.Context())
	if err != nil || !strings.Contains(e.Text, "webhook a") {
		t.Fatalf("%+v, %v", e, err)
	}
	st := until(t, s, func(st State) bool { return len(st.Dead) == 1 })
	if err := s.Resend(Webhooks, "a", 1); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
	r.set(accepted)
	if err := s.Resend(Webhooks, "a", st.Dead[0].Event.ID); err != nil {
		t.Fatal(err)
	}
	until(t, s, func(st State) bool { return st.Sent == 1 && len(st.Dead) == 0 && len(st.Waiting) == 0 })
}

// TestLettersOfEarlierVersionsKeepTheirAttempts reads what was kept when attempts were
// called tries.
func TestLettersOfEarlierVersionsKeepTheirAttempts(t *testing.T) {
	st := memory.New()
	const kept = `{"after":3,"sent":1,"missed":0,"lost":0,"failures":0,"last_status":410,
		"dead":[{"event":{"id":2,"type":"port.opened"},"first":"2026-01-01T00:00:00Z","tries":7,"error":"answered with 410"}],
		"waiting":[{"event":{"id":3,"type":"port.opened"},"first":"2126-01-01T00:00:00Z","due":"2126-01-01T00:00:00Z","attempts":4,"error":"answered with 410"}]}`
	if _, err := st.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixWebhook + "a", Value: []byte(kept)}}}); err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, st)
	s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: receive(t, accepted).URL, Secret: secretText, Filter: event.Filter{Types: []string{"port.*"}}}})
	got, err := s.State(Webhooks, "a")
	if err != nil || len(got.Dead) != 1 || got.Dead[0].Attempts != 7 || got.Dead[0].Error == "" || got.Dead[0].Event.ID != 2 {
		t.Errorf("dead letters %+v, %v", got.Dead, err)
	}
	if len(got.Waiting) != 1 || got.Waiting[0].Attempts != 4 {
		t.Errorf("waiting %+v", got.Waiting)
	}
	if err := errors.Join(s.CanResend(Webhooks, "a", 2), s.CanResend(Webhooks, "a", 2)); err != nil {
		t.Errorf("a dead letter could not be sent again: %v", err)
	}
	if err := s.CanResend(Webhooks, "a", 3); !errors.Is(err, ErrUnknown) {
		t.Errorf("one that waits could be sent again: %v", err)
	}
}

func TestWebhookGoesOnAfterARestart(t *testing.T) {
	st := memory.New()
	s, events := open(t, st)
	r := receive(t, accepted)
	hooks := []Hook{{Kind: Webhooks, Name: "a", URL: r.URL, Secret: secretText, Filter: event.Filter{Types: []string{"port.*"}}}}
	s.Set(hooks)
	events.Send(port("one"))
	r.next()
	until(t, s, func(st State) bool { return st.Sent == 1 })
	s.Close()
	events.Send(port("two")) // nobody sends it
	events.Close()

	s, events = open(t, st)
	s.Set(hooks)
	events.Send(port("three"))
	if one, two := r.next(), r.next(); one != "two" || two != "three" {
		t.Errorf("got %q, %q", one, two)
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	s, _ := open(t, memory.New())
	r := receive(t, func(*event.Event) int { return 302 })
	for address, want := range map[string]string{
		"http://169.254.169.254/latest":          "not allowed",
		"http://[::ffff:169.254.169.254]/latest": "not allowed",
		"http://[fe80::1]/":                      "not allowed",
		r.URL:                                    "redirects are not followed",
	} {
		s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: address, Secret: secretText}})
		o, err := s.Test(t.Context(), Webhooks, "a", "ann")
		if err != nil || o.Err == nil || !strings.Contains(o.Err.Error(), want) || strings.Contains(o.Err.Error(), "latest") || o.Answer != "" {
			t.Errorf("%s: got %+v, %v, want %q", address, o, err, want)
		}
	}
	r.set(accepted)
	if o, err := s.Test(t.Context(), Webhooks, "a", "ann"); addressOf(s) == r.URL && (o.Status != 204 || o.Err != nil || err != nil) {
		t.Errorf("got %+v, %v", o, err)
	}
	if _, err := s.Test(t.Context(), Webhooks, "nobody", "ann"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func addressOf(s *Sender) string { return s.find(Webhooks, "a").URL }

func TestPauses(t *testing.T) {
	sum, attempts := time.Duration(0), 0
	for sum < maxAge {
		p := pause(attempts)
		if p < firstRetry || p > lastRetry {
			t.Fatalf("attempt %d: %v", attempts, p)
		}
		sum += p
		attempts++
	}
	if attempts < 20 || attempts > 60 {
		t.Errorf("%d attempts in a day", attempts)
	}
}

func TestSetEndsWhatIsNotSet(t *testing.T) {
	s, events := open(t, memory.New())
	r := receive(t, accepted)
	s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: r.URL, Secret: secretText}, {Kind: Webhooks, Name: "b", URL: r.URL, Secret: secretText}})
	a := s.find(Webhooks, "a")
	s.Set([]Hook{{Kind: Webhooks, Name: "a", URL: r.URL, Secret: secretText}})
	if s.find(Webhooks, "a") != a || s.find(Webhooks, "b") != nil {
		t.Error("one that is as it was was started anew, or one that is gone goes on")
	}
	events.Send(port("x"))
	r.next()
}

func TestAWakeUpIsNotLostToTheWaitBefore(t *testing.T) {
	s, events := open(t, memory.New())
	h := &hook{Hook: Hook{Kind: Webhooks, Name: "a", Filter: event.Filter{Types: []string{"webhook.*"}}}, sender: s, wake: make(chan struct{}, 1)}
	sub := events.Subscribe(h.Filter, 0)
	for range 1000 {
		events.Send(event.WebhookTested{Webhook: "a"}) // its own, so it is not sent
		if !h.next(t.Context(), sub) {
			t.Fatal("no more events")
		}
		h.wake <- struct{}{} // somebody wants to be heard after that wait
		for range 10 {
			runtime.Gosched()
		}
		select {
		case <-h.wake:
		default:
			t.Fatal("the wake-up is gone, and nobody has looked")
		}
	}
}

// Machines that share a store send their own events, and do not lose their place because of
// each other.
func TestMachinesKeepTheirPlacesApart(t *testing.T) {
	st := memory.New()
	for i, node := range []string{"a", "b"} {
		h := &hook{Hook: Hook{Kind: Webhooks, Name: "chat"}, sender: &Sender{Options: Options{Store: st, Node: node, Log: slog.New(slog.DiscardHandler)}}}
		h.mu.state.Sent = uint64(i + 1)
		h.save()
	}
	for i, node := range []string{"a", "b"} {
		e, err := st.Get(t.Context(), store.PrefixWebhook+"chat/"+node)
		if err != nil {
			t.Fatal(err)
		}
		var have State
		if err := json.Unmarshal(e.Value, &have); err != nil || have.Sent != uint64(i+1) {
			t.Errorf("%s has %+v, %v", node, have, err)
		}
	}
}
