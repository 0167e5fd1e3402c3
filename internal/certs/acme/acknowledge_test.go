package acme

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// publish makes machines known that share a store.
func publish(t *testing.T, s store.Store, nodes ...store.Node) {
	t.Helper()
	for _, n := range nodes {
		data, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixNode + n.Name, Value: data}}}); err != nil {
			t.Fatal(err)
		}
	}
}

// The authority comes to another machine than that which has ordered.
func TestAllMachinesAnswerChallenges(t *testing.T) {
	for _, kind := range []Challenge{HTTP01, TLSALPN01} {
		t.Run(string(kind), func(t *testing.T) {
			a, s := start(t, acmetest.Settings{}), newStore()
			publish(t, s, store.Node{Name: "one"}, store.Node{Name: "two"}, store.Node{Name: "gone", Stopped: true})
			a.node = "one"
			one := a.manager(s)
			a.node = "two"
			a.manager(s) // whose ports the authority asks
			e := a.entry()
			e.Challenge = kind
			one.setWanted(e, []string{"shop.example.com"})
			r := one.state("shop.example.com", Valid)
			if text := timeline(r); strings.Contains(text, "not acknowledged") {
				t.Errorf("it did not wait for the other machine:\n%s", text)
			}
			if left, err := s.List(t.Context(), store.PrefixChallenge, "", store.MaxPage); err != nil || len(left) > 0 {
				t.Errorf("answers are left: %v, %v", left, err)
			}
		})
	}
}

func timeline(r *Record) string {
	var b strings.Builder
	for _, a := range r.Timeline {
		for _, s := range a.Steps {
			fmt.Fprintln(&b, s.Text)
		}
	}
	return b.String()
}

// A machine that runs, as far as the others know, does not acknowledge the answer.
func TestAMachineThatDoesNotAcknowledgeIsNotWaitedForForEver(t *testing.T) {
	for name, want := range map[string]string{"dns": "proven by dns-01 instead", "ports": "machine two has not acknowledged the answer to http-01"} {
		t.Run(name, func(t *testing.T) {
			a, s := start(t, acmetest.Settings{}), newStore()
			publish(t, s, store.Node{Name: "one"}, store.Node{Name: "two"})
			a.node = "one"
			m := a.manager(s)
			e := a.entry()
			if name == "dns" {
				e = a.withDNS()
			}
			m.setWanted(e, []string{"shop.example.com"})
			if text := timeline(m.state("shop.example.com", Valid)); !strings.Contains(text, want) {
				t.Errorf("the timeline does not say %q:\n%s", want, text)
			}
		})
	}
}

// slowSet is a set of records whose reads and writes overlap unless they are kept apart.
type slowSet struct {
	mu     sync.Mutex
	values []string
	inside chan struct{} // has room for one
	broken bool
}

func (s *slowSet) read(context.Context, string, string) ([]string, error) {
	select {
	case s.inside <- struct{}{}:
	default:
		s.mu.Lock()
		s.broken = true
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.values), nil
}

func (s *slowSet) write(_ context.Context, _, _ string, values []string) error {
	time.Sleep(5 * time.Millisecond) // an API of the internet
	s.mu.Lock()
	s.values = values
	s.mu.Unlock()
	<-s.inside
	return nil
}

// Several machines write one set of records; each value is of another order.
func TestMachinesWriteASetOfRecordsOneAfterTheOther(t *testing.T) {
	s, set := memory.New(), &slowSet{inside: make(chan struct{}, 1)}
	var all sync.WaitGroup
	for i := range 4 {
		m := New(Options{Store: s, Node: fmt.Sprint("node-", i)})
		w := newSetWriter(set)
		w.lease = m.leaseRecord
		all.Go(func() {
			for k := range 3 {
				value := fmt.Sprintf("value-%d-%d", i, k)
				if err := w.present(t.Context(), "example.com", "_acme-challenge.Example.com", value); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if set.broken || len(set.values) != 12 {
		t.Errorf("machines wrote at once (%v); the set has %d values of 12", set.broken, len(set.values))
	}
}
