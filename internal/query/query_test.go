package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// machine returns a machine that answers "echo".
func machine(t *testing.T, by store.Messenger, name string) *Peers {
	a := New(Options{Messenger: by, Node: name})
	a.Handle("echo", func(_ context.Context, from string, data []byte) ([]byte, error) {
		return fmt.Appendf(nil, "%s to %s: %s", name, from, data), nil
	})
	t.Cleanup(a.Close)
	return a
}

// within runs a test on fake time.
func within(t *testing.T, test func(t *testing.T, s *memory.Store)) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
}

func queryNodes(t *testing.T, a *Peers, wait time.Duration, name, data string, nodes ...string) (map[string]Answer, time.Duration) {
	ctx, stop := context.WithTimeout(t.Context(), wait)
	defer stop()
	began := time.Now()
	return a.QueryNodes(ctx, nodes, name, []byte(data)), time.Since(began)
}

func TestMachinesAnswerEachOther(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a, b, c := machine(t, s, "a"), machine(t, s, "b"), machine(t, s, "c")
		for _, m := range []*Peers{a, b, c} {
			m.Start()
		}
		got, took := queryNodes(t, a, 3*time.Second, "echo", "hello", "c", "b", "a", "b")
		if len(got) != 2 || string(got["b"].Data) != "b to a: hello" || string(got["c"].Data) != "c to a: hello" || took != 0 {
			t.Errorf("got %v after %v, want the answers of b and c at once, and none of a itself", got, took)
		}
		if got, _ := queryNodes(t, b, time.Second, "echo", "", "a"); string(got["a"].Data) != "a to b: " {
			t.Errorf("got %v, want an answer to an empty question", got)
		}
	})
}

func TestAMachineThatDoesNotAnswerIsNotWaitedForAfterTheDeadline(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a, b := machine(t, s, "a"), machine(t, s, "b")
		a.Start()
		b.Start()
		got, took := queryNodes(t, a, 3*time.Second, "echo", "hello", "away", "b")
		if !errors.Is(got["away"].Err, ErrNoAnswer) || string(got["b"].Data) != "b to a: hello" || took != 3*time.Second {
			t.Errorf("got %v after %v, want that of b, and that the other has not answered within 3s", got, took)
		}
		if got := a.QueryNodes(t.Context(), []string{"away"}, "echo", nil); !errors.Is(got["away"].Err, ErrNoAnswer) {
			t.Errorf("got %v without a deadline, want no answer after the longest wait", got)
		}
	})
}

func TestAHandlerHasTheTimeThatTheAskerHas(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a, b := machine(t, s, "a"), machine(t, s, "b")
		ended := make(chan time.Time, 1)
		b.Handle("long", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			ended <- time.Now()
			return []byte("late"), nil
		})
		a.Start()
		b.Start()
		began := time.Now()
		if got, _ := queryNodes(t, a, 2*time.Second, "long", "", "b"); !errors.Is(got["b"].Err, ErrNoAnswer) {
			t.Errorf("got %v, want no answer", got)
		}
		if took := (<-ended).Sub(began); took != 2*time.Second {
			t.Errorf("the handler ended after %v, want 2s", took)
		}
		time.Sleep(time.Second)
		if got, _ := queryNodes(t, a, time.Second, "echo", "next", "b"); string(got["b"].Data) != "b to a: next" {
			t.Errorf("got %v, want the answer to the next question and not a late one", got)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.mu.open) != 0 {
			t.Errorf("%d questions are open, want none", len(a.mu.open))
		}
	})
}

// TestATimeUnderWayCounts tests that a question which waited in the store leaves its handler less
// time, and none if the asker has left.
func TestATimeUnderWayCounts(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a, b := machine(t, s, "a"), machine(t, s, "b")
		var runs atomic.Int32
		b.Handle("count", func(context.Context, string, []byte) ([]byte, error) {
			runs.Add(1)
			return nil, nil
		})
		a.Start()
		queryNodes(t, a, time.Second, "count", "", "b") // it is not running yet
		time.Sleep(time.Second)
		b.Start()
		synctest.Wait()
		if n := runs.Load(); n != 0 {
			t.Errorf("the handler ran %d times for an asker that has left, want 0", n)
		}
	})
}

func TestErrorsOfHandlersAreReturned(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a, b := machine(t, s, "a"), machine(t, s, "b")
		b.Handle("fails", func(context.Context, string, []byte) ([]byte, error) {
			return nil, errors.New(strings.Repeat("why ", 2000))
		})
		b.Handle("panics", func(context.Context, string, []byte) ([]byte, error) { panic("broken") })
		b.Handle("large", func(context.Context, string, []byte) ([]byte, error) { return make([]byte, MaxData+1), nil })
		b.Handle("largest", func(context.Context, string, []byte) ([]byte, error) { return make([]byte, MaxData), nil })
		a.Start()
		b.Start()
		for name, want := range map[string]string{"fails": "why why", "panics": "broken invariant", "large": "at most"} {
			got, _ := queryNodes(t, a, time.Second, name, "", "b")
			failure := (*Failure)(nil)
			if !errors.As(got["b"].Err, &failure) || !strings.Contains(failure.Text, want) || len(failure.Text) > maxText+10 {
				t.Errorf("%s: got %v, want a failure with %q", name, got, want)
			}
		}
		if got, _ := queryNodes(t, a, time.Second, "largest", strings.Repeat("x", MaxData), "b"); got["b"].Err != nil || len(got["b"].Data) != MaxData {
			t.Errorf("largest: got %d bytes, %v", len(got["b"].Data), got["b"].Err)
		}
		if got, took := queryNodes(t, a, time.Second, "unheard of", "", "b"); !errors.Is(got["b"].Err, ErrUnknown) || took != 0 {
			t.Errorf("got %v after %v, want at once that the question is not known", got, took)
		}
		if got, _ := queryNodes(t, a, time.Second, "echo", strings.Repeat("x", MaxData+1), "b"); !errors.Is(got["b"].Err, store.ErrTooLarge) {
			t.Errorf("got %v, want that the question is too large", got)
		}
	})
}

func TestOneMachineDoesNotUseAllHandlers(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a, b, c := machine(t, s, "a"), machine(t, s, "b"), machine(t, s, "c")
		var running, most atomic.Int32
		c.Handle("slow", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			most.Store(max(most.Load(), running.Add(1)))
			<-ctx.Done()
			running.Add(-1)
			return nil, nil
		})
		for _, m := range []*Peers{a, b, c} {
			m.Start()
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		busy := make(chan error, MaxOpen)
		for range MaxOpen {
			go func() { busy <- a.QueryNodes(ctx, []string{"c"}, "slow", nil)["c"].Err }()
		}
		synctest.Wait()
		if got := a.QueryNodes(ctx, []string{"c"}, "slow", nil); !errors.Is(got["c"].Err, ErrBusy) {
			t.Errorf("got %v for one more question than may run for a machine, want ErrBusy", got)
		}
		if got := b.QueryNodes(ctx, []string{"c"}, "echo", []byte("hi")); string(got["c"].Data) != "c to b: hi" {
			t.Errorf("got %v for another machine, want an answer", got)
		}
		refused := 0
		for range MaxOpen {
			if err := <-busy; errors.Is(err, ErrBusy) {
				refused++
			}
		}
		if most.Load() != maxOfOne || refused != MaxOpen-maxOfOne {
			t.Errorf("%d handlers ran for one machine and %d questions were refused, want %d and %d", most.Load(), refused, maxOfOne, MaxOpen-maxOfOne)
		}
	})
}

func TestOpenQuestionsAreBounded(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a := machine(t, s, "a")
		a.Start()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		for range MaxOpen {
			go a.QueryNodes(ctx, []string{"away"}, "echo", nil)
		}
		synctest.Wait()
		if got := a.QueryNodes(ctx, []string{"away"}, "echo", nil); !errors.Is(got["away"].Err, ErrBusy) {
			t.Errorf("got %v for one question too many, want ErrBusy", got)
		}
	})
}

// TestForeignAnswersAreIgnored tests a neighbor that answers for another machine, with a question that
// is not open, and with what is no message.
func TestForeignAnswersAreIgnored(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a := machine(t, s, "a")
		a.Start()
		asked := make(chan store.ID, 1)
		go func() {
			for m, err := range s.Receive(t.Context(), "b") {
				if err != nil {
					return
				}
				h := head{}
				line, _, _ := bytes.Cut(m.Data, []byte("\n"))
				if json.Unmarshal(line, &h) == nil {
					asked <- h.Question
				}
			}
		}()
		send := func(from, text string) {
			if err := s.Send(t.Context(), store.Message{ID: store.NewID(), From: from, To: "a", Data: []byte(text)}); err != nil {
				t.Error(err)
			}
		}
		go func() {
			id := <-asked
			answer := func(id store.ID, text string) string {
				return fmt.Sprintf("{\"q\":%q,\"answer\":true}\n%s", id, text)
			}
			send("c", answer(id, "forged"))
			send("b", answer(store.NewID(), "of another question"))
			send("b", "no JSON")
			send("b", "{"+strings.Repeat(" ", maxHead)+"}")
			send("a", answer(id, "of itself"))
			send("b", `{"q":"x","name":"echo","left_ms":-1}`)
			send("b", answer(id, "right"))
			send("b", answer(id, "twice"))
		}()
		if got, _ := queryNodes(t, a, time.Second, "echo", "", "b"); len(got) != 1 || string(got["b"].Data) != "right" {
			t.Errorf("got %v, want the answer of b only", got)
		}
	})
}

// TestAFloodOfQuestionsIsDropped tests that a neighbor who asks without end uses a bounded number of
// goroutines, and that others are answered meanwhile.
func TestAFloodOfQuestionsIsDropped(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		stuck := &stuckTo{Store: s, to: "b"}
		a := machine(t, stuck, "a")
		c := machine(t, s, "c")
		a.Start()
		c.Start()
		for i := range 10 * maxRefusals {
			text := fmt.Sprintf("{\"q\":%q,\"name\":%q,\"left_ms\":9999}\n", store.NewID(), []string{"echo", "unheard of"}[i%2])
			if err := s.Send(t.Context(), store.Message{ID: store.NewID(), From: "b", To: "a", Data: []byte(text)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := stuck.waits.Load(); n > maxOfOne+maxRefusals {
			t.Errorf("%d answers wait to be sent, want at most %d", n, maxOfOne+maxRefusals)
		}
		if got, _ := queryNodes(t, c, time.Second, "echo", "hi", "a"); string(got["a"].Data) != "a to c: hi" {
			t.Errorf("got %v for another machine, want an answer", got)
		}
	})
}

// stuckTo is a store that cannot send to one machine.
type stuckTo struct {
	*memory.Store
	to    string
	waits atomic.Int32
}

func (s *stuckTo) Send(ctx context.Context, m store.Message) error {
	if m.To != s.to {
		return s.Store.Send(ctx, m)
	}
	s.waits.Add(1)
	defer s.waits.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func TestWhatCannotBeSentIsReportedAtOnce(t *testing.T) {
	within(t, func(t *testing.T, _ *memory.Store) {
		a := New(Options{Messenger: mute{}, Node: "a"})
		a.Start()
		defer a.Close()
		got, took := queryNodes(t, a, 3*time.Second, "echo", "", "b")
		if !errors.Is(got["b"].Err, store.ErrNoMessages) || took != 0 {
			t.Errorf("got %v after %v, want at once that there are no messages", got, took)
		}
	})
}

type mute struct{}

func (mute) Send(context.Context, store.Message) error { return store.ErrNoMessages }
func (mute) Receive(context.Context, string) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) { yield(store.Message{}, store.ErrNoMessages) }
}

// TestCloseEndsEverything tests that a question that is open, and a handler that runs, end with Close; fake time
// fails the test if a goroutine is left.
func TestCloseEndsEverything(t *testing.T) {
	within(t, func(t *testing.T, s *memory.Store) {
		a, b := machine(t, s, "a"), machine(t, s, "b")
		b.Handle("long", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		a.Start()
		b.Start()
		done := make(chan map[string]Answer)
		began := time.Now()
		go func() { done <- a.QueryNodes(t.Context(), []string{"b"}, "long", nil) }()
		synctest.Wait()
		a.Close()
		b.Close()
		if got, took := <-done, time.Since(began); !errors.Is(got["b"].Err, ErrNoAnswer) || took != 0 {
			t.Errorf("got %v after %v, want no answer at once", got, took)
		}
		if got := a.QueryNodes(t.Context(), []string{"b"}, "long", nil); !errors.Is(got["b"].Err, store.ErrClosed) {
			t.Errorf("got %v after Close, want ErrClosed", got)
		}
	})
}
