package event

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, st store.Store) *Log {
	t.Helper()
	l, err := Open(t.Context(), st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// read returns the next events of a subscription in short: their ports, or "gap".
func read(t *testing.T, s *Subscription, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	for range n {
		e, err := s.Next(ctx)
		if err != nil {
			return strings.Join(append(got, err.Error()), " ")
		}
		if e.Gap() {
			got = append(got, "gap")
			continue
		}
		var p Port
		if err := json.Unmarshal(e.Data, &p); err != nil {
			t.Fatal(err)
		}
		got = append(got, p.Port)
	}
	return strings.Join(got, " ")
}

func port(name string) Payload { return PortListening{Port{Port: name}} }

var update = flag.Bool("update", false, "write the reference page")

//go:generate go test -run TestReferencePageIsFresh -update .

func TestReferencePageIsFresh(t *testing.T) {
	const path = "../../docs/reference/events.md"
	want, err := referencePage(schema.NewComments("headgate", "../.."))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): run go generate ./internal/event", path, err)
	}
}

func TestEveryKindHasAFormOfItsOwn(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)
	seen := map[string]bool{}
	for i, k := range Kinds() {
		if !form.MatchString(k.Type) || seen[k.Type] || k.Payload == nil {
			t.Errorf("%q is not object.verb, or stands twice in the table", k.Type)
		}
		seen[k.Type] = true
		if object, text := table[i].payload.about(); object == "" || text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%s: object %q, text %q", k.Type, object, text)
		}
	}
	if len(kinds) != len(table) {
		t.Errorf("%d payloads for %d kinds", len(kinds), len(table))
	}
}

func TestSubscribersHearWhatIsSentInOrder(t *testing.T) {
	l := open(t, memory.New())
	l.Send(port("before"))
	s := l.Subscribe(Filter{}, -1)
	only := l.Subscribe(Filter{Types: []string{"config.*"}}, -1)
	l.Send(port("a"))
	l.Send(ConfigApplied{Config: Config{Revision: 7, Who: "ann", Via: "api"}})
	if got := read(t, s, 2); got != "a " {
		t.Errorf("got %q", got)
	}
	e, err := only.Next(t.Context())
	if err != nil || e.Type != "config.applied" || e.Object != "revision 7" || e.Text != "the configuration was applied by ann through api" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestReplayGoesOnAfterAnID(t *testing.T) {
	st := memory.New()
	l := open(t, st)
	for i := range 3 {
		l.Send(port(fmt.Sprint(i)))
	}
	first, err := l.Subscribe(Filter{}, 0).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, l.Subscribe(Filter{}, first.ID), 2); got != "1 2" {
		t.Errorf("from memory: got %q", got)
	}
	l.Close()

	l = open(t, st)
	if l.Last() <= first.ID {
		t.Errorf("ids do not grow over a restart: %d after %d", l.Last(), first.ID)
	}
	l.Send(port("3"))
	if got := read(t, l.Subscribe(Filter{}, first.ID), 3); got != "1 2 3" {
		t.Errorf("from the store: got %q", got)
	}
	if got := read(t, l.Subscribe(Filter{}, 0), 4); got != "0 1 2 3" {
		t.Errorf("from the beginning: got %q", got)
	}
	if got := read(t, l.Subscribe(Filter{}, 5), 2); got != "gap 0" {
		t.Errorf("after an id that is not kept any more: got %q", got)
	}
}

func TestReplayFromTheStoreJoinsMemoryWithoutAHole(t *testing.T) {
	l := open(t, memory.New())
	for i := range 3 * kept {
		l.Send(port(fmt.Sprint(i)))
	}
	first := firstKept(t, l)
	s := l.Subscribe(Filter{}, first)
	for i := 1; i < 3*kept; i++ {
		if got := read(t, s, 1); got != fmt.Sprint(i) {
			t.Fatalf("got %q, want %d", got, i)
		}
	}
}

// firstKept waits until all is kept and returns the oldest event's id.
func firstKept(t *testing.T, l *Log) ID {
	for l.waiting() > 0 {
		if t.Context().Err() != nil {
			t.Fatal("events are not kept")
		}
	}
	all, err := l.Page(t.Context(), Filter{}, 0, 1000)
	for err == nil && len(all) == 1000 {
		var more []*Event
		if more, err = l.Page(t.Context(), Filter{}, all[len(all)-1].ID, 1000); len(more) == 0 {
			break
		}
		all = more
	}
	if err != nil {
		t.Fatal(err)
	}
	return all[len(all)-1].ID
}

func TestSlowSubscriberIsToldOfAGap(t *testing.T) {
	l := open(t, memory.New())
	s := l.Subscribe(Filter{}, -1)
	for i := range kept + 5 {
		l.Send(port(fmt.Sprint(i)))
	}
	if got := read(t, s, 3); got != "gap 5 6" {
		t.Errorf("got %q", got)
	}
	s = l.Subscribe(Filter{Types: []string{"config.*"}}, -1)
	for range 2 * kept {
		l.Send(port("x"))
	}
	e, err := s.Next(t.Context())
	if err != nil || string(e.Data) != fmt.Sprintf(`{"missed":%d}`, kept) {
		t.Errorf("got %s, %v", e.Data, err)
	}
}

func TestPageTellsTheNewestFirst(t *testing.T) {
	l := open(t, memory.New())
	for i := range 5 {
		l.Send(port(fmt.Sprint(i)))
		l.Send(ProcessStarted{})
	}
	firstKept(t, l)
	got, err := l.Page(t.Context(), Filter{Types: []string{"port.listening"}}, 0, 2)
	if err != nil || len(got) != 2 || !strings.Contains(string(got[0].Data), `"4"`) {
		t.Fatalf("got %v, %v", got, err)
	}
	got, err = l.Page(t.Context(), Filter{Types: []string{"port.*"}}, got[1].ID, 10)
	if err != nil || len(got) != 3 || !strings.Contains(string(got[0].Data), `"2"`) {
		t.Errorf("got %v, %v", got, err)
	}
}

// failing is a store that is away for a while.
type failing struct {
	*memory.Store
	away   atomic.Bool
	writes atomic.Int64
}

func (f *failing) Append(ctx context.Context, stream string, records [][]byte) (store.Sequence, error) {
	if f.away.Load() {
		return 0, store.ErrUnavailable
	}
	f.writes.Add(1)
	return f.Store.Append(ctx, stream, records)
}

func TestStoreThatIsAwayStopsNobody(t *testing.T) {
	st := &failing{Store: memory.New()}
	st.away.Store(true)
	l := open(t, st)
	s := l.Subscribe(Filter{}, -1)
	l.Send(port("a"))
	if got := read(t, s, 1); got != "a" {
		t.Errorf("while it is away: got %q", got)
	}
	st.away.Store(false)
	l.Close()
	if got := read(t, open(t, st).Subscribe(Filter{}, 0), 1); got != "a" {
		t.Errorf("when it is back: got %q", got)
	}
}

func TestCloseEndsSubscriptions(t *testing.T) {
	l := open(t, memory.New())
	s := l.Subscribe(Filter{}, -1)
	go l.Close()
	if _, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	l.Send(port("late")) // does nothing
	(*Log)(nil).Send(port("nobody"))
}

func TestPatterns(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"*": true, "config.*": true, "config.applied": true, "config": false, "confi*": false, "config.aplied": false, "": false, "gap": false,
	} {
		if err := CheckPattern(pattern); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	if err := CheckPattern("config.aplied"); err == nil || !strings.Contains(err.Error(), `"config.applied"`) {
		t.Errorf("no suggestion: %v", err)
	}
}

func TestThousandSubscribersAtOnce(t *testing.T) {
	l := open(t, memory.New())
	var wait sync.WaitGroup
	for range 1000 {
		s := l.Subscribe(Filter{}, -1)
		wait.Go(func() {
			if got := read(t, s, 3); got != "a b c" {
				t.Errorf("got %q", got)
			}
		})
	}
	for _, name := range []string{"a", "b", "c"} {
		l.Send(port(name))
	}
	wait.Wait()
}

func BenchmarkSend(b *testing.B) {
	l, err := Open(b.Context(), memory.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		l.Send(port("web"))
	}
}

// A record that is too large, or many that are large together, kept all later ones from
// being kept.
func TestLargeEventsAreKept(t *testing.T) {
	st := memory.New()
	l, err := Open(t.Context(), st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 300_000)
	for range 20 {
		l.Send(ConfigRefused{Config{Who: long, Changes: slices.Repeat([]string{long}, 300)}, slices.Repeat([]string{long + " is wrong"}, 1000)})
	}
	l.Send(ProcessStopping{})
	l.Close()
	kept, err := st.Page(t.Context(), store.StreamEvents, 0, 100)
	if err != nil || len(kept) != 21 {
		t.Fatalf("%d events are kept, want 21: %v", len(kept), err)
	}
	last, _ := Decode(kept[0].Data)
	if last.Type != "process.stopping" {
		t.Errorf("the last is %s", last.Type)
	}
	first, _ := Decode(kept[20].Data)
	var data ConfigRefused
	if err := json.Unmarshal(first.Data, &data); err != nil {
		t.Fatal(err)
	}
	if len(first.Text) > maxText || len(data.Who) > maxText || len(data.Problems) != maxList || !strings.HasSuffix(data.Problems[0], "is wrong") ||
		data.Problems[maxList-1] != "and 873 more" {
		t.Errorf("got text %d bytes, who %d bytes, %d problems, the last %q", len(first.Text), len(data.Who), len(data.Problems), data.Problems[len(data.Problems)-1])
	}
}

// smallStore takes records of a few bytes only.
type smallStore struct{ store.Store }

func (s smallStore) Append(ctx context.Context, stream string, records [][]byte) (store.Sequence, error) {
	if size := len(slices.Concat(records...)); size > 700 {
		return 0, fmt.Errorf("%d bytes: %w", size, store.ErrTooLarge)
	}
	return s.Store.Append(ctx, stream, records)
}

func TestARecordThatNeverFitsIsReplaced(t *testing.T) {
	st := memory.New()
	l, err := Open(t.Context(), smallStore{st}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l.Send(ProcessStarted{Version: "1"})
	l.Send(WebhookDead{Webhook: "a", Cause: strings.Repeat("c", 500)})
	l.Send(ProcessStopping{})
	l.Close()
	kept, err := st.Page(t.Context(), store.StreamEvents, 0, 100)
	if err != nil || len(kept) != 3 {
		t.Fatalf("%d events are kept, want 3: %v", len(kept), err)
	}
	if e, _ := Decode(kept[1].Data); e.Type != "webhook.dead" || string(e.Data) != "{}" || !strings.Contains(e.Text, "not kept whole") {
		t.Errorf("got %+v", e)
	}
}

// A machine that shares its store writes what it has to keep once a second, however many events
// there are.
func TestEventsOfASecondAreKeptTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &failing{Store: memory.New()}
		l := open(t, st)
		l.Spread(time.Second)
		const seconds, each = 10, 20
		for i := range seconds * each {
			l.Send(port(fmt.Sprint(i)))
			time.Sleep(time.Second / each)
		}
		l.Close()
		records, err := st.Page(t.Context(), store.StreamEvents, 0, store.MaxPage)
		if err != nil || len(records) != seconds*each {
			t.Fatalf("%d events were kept, %v; want %d", len(records), err, seconds*each)
		}
		if n := st.writes.Load(); n > seconds+2 {
			t.Errorf("%d writes in %d seconds", n, seconds)
		}
	})
}

// What waits for a store that is away has a bound, and what is dropped is counted.
func TestEventsThatAreDroppedAreCounted(t *testing.T) {
	st := &failing{Store: memory.New()}
	st.away.Store(true)
	var said testhouse.Log
	l, err := Open(t.Context(), st, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxWaiting + 7 {
		l.Send(port(fmt.Sprint(i)))
	}
	st.away.Store(false)
	l.Close()
	records, err := st.Page(t.Context(), store.StreamEvents, 0, store.MaxPage)
	if err != nil || len(records) == 0 {
		t.Fatalf("%d events were kept, %v", len(records), err)
	}
	if text := said.String(); !regexp.MustCompile(`dropped=(7|8)\b`).MatchString(text) { // with the event that the store is away
		t.Errorf("the log does not say how many were dropped: %s", text)
	}
}
