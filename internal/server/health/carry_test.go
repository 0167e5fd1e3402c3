package health

import (
	"log/slog"
	"testing"
	"time"

	"headgate/internal/clock"
	"headgate/internal/server/balance"
	"headgate/internal/setting/unit"
)

func carryServer() *Server {
	return NewServer(Name{"shop", "/", "http://10.0.0.1"}, Options{Log: slog.New(slog.DiscardHandler)})
}

func TestUnhealthyServerIsKnownToBeUnhealthyInTheNewProcess(t *testing.T) {
	c := &Config{Interval: unit.Duration(time.Hour), UnhealthyInterval: unit.Duration(time.Hour), Rise: 2, Fall: 2}
	old, check := carryServer(), NewCheck(c, Probe{Name: "x"}, NewRounds(), slog.New(slog.DiscardHandler))
	defer check.Watch(old, 0).Retire()
	at := time.Now().Add(-time.Minute)
	for range 3 {
		for _, w := range check.note(Result{At: at, Error: "no answer"}) {
			w.server.refresh()
		}
	}
	before := old.Status(true)
	if before.State != Unhealthy {
		t.Fatalf("got %+v", before)
	}

	fresh, next := carryServer(), NewCheck(c, Probe{Name: "x"}, NewRounds(), slog.New(slog.DiscardHandler))
	fresh.Import(old.Export())
	next.Import(check.Export())
	if fresh.Out()&balance.Unhealthy == 0 {
		t.Error("the server takes requests")
	}
	defer next.Watch(fresh, 0).Retire()
	got := fresh.Status(true)
	if got.State != Unhealthy || !got.Since.Equal(before.Since) || got.Reason != before.Reason || got.Recent != "---" || got.Failed != 3 || got.LastError != "no answer" {
		t.Errorf("got %+v, want %+v", got, before)
	}
	// It comes back as in the old process: after two checks that pass.
	next.note(Result{At: time.Now(), Healthy: true})
	for _, w := range next.note(Result{At: time.Now(), Healthy: true}) {
		w.server.refresh()
	}
	if got := fresh.Status(false); got.State != Healthy || fresh.Out() != 0 {
		t.Errorf("after checks that passed: %+v", got)
	}
}

func TestEjectedServerStaysOutForTheRestOfItsTime(t *testing.T) {
	old := carryServer()
	p := &Policy{Ejection: Ejection{Enabled: true, Failures: 3, Time: unit.Duration(time.Hour), MaxTime: unit.Duration(2 * time.Hour), MaxPercent: 100}, Servers: []*Server{old}}
	for range 3 {
		old.Failed(p, refused)
	}
	defer old.Retire()
	fresh := carryServer()
	fresh.Import(old.Export())
	defer fresh.Retire()
	before, got := old.Status(false), fresh.Status(false)
	if got.State != Ejected || !got.Until.Equal(before.Until) || got.Ejections != 1 || fresh.Out()&balance.Ejected == 0 {
		t.Errorf("got %+v, want %+v", got, before)
	}
	fresh.readmit(2) // its time is over: one failure ejects it again, for longer
	fresh.Failed(&Policy{Ejection: p.Ejection, Servers: []*Server{fresh}}, refused)
	if got := fresh.Status(false); got.State != Ejected || time.Until(got.Until) < 90*time.Minute {
		t.Errorf("ejected again until %v", got.Until)
	}
}

func TestEjectionThatHasEndedMeanwhileIsOver(t *testing.T) {
	fresh := carryServer()
	fresh.Import([]byte(`{"state":"ejected","verdict":"unknown","ejected_until":"2020-01-01T00:00:00Z","ejections":4}`))
	if got := fresh.Status(false); got.State != Unknown || got.Ejections != 4 || fresh.Out() != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestOpenCircuitStaysOpen(t *testing.T) {
	b := &Breaker{Window: unit.Duration(time.Minute), MinRequests: 2, ErrorPercent: 50, OpenTime: unit.Duration(time.Hour), Probes: 1, Status: "5xx"}
	s := carryServer()
	old := NewCircuit(b, s)
	for range 3 {
		old.Failed(clock.Now(), clock.Now())
	}
	defer old.Retire()
	other := carryServer()
	fresh := NewCircuit(b, other)
	fresh.Import(old.Export())
	defer fresh.Retire()
	if fresh.State() != CircuitOpen || fresh.Opened() != 1 || other.Out()&balance.Open == 0 {
		t.Errorf("the circuit is %s, opened %d times", fresh.State(), fresh.Opened())
	}
	if NewCircuit(b, s).Export() != nil {
		t.Error("a circuit that was never open has something to hand over")
	}
}

// FuzzCarried reads what a process of another version may send.
func FuzzCarried(f *testing.F) {
	f.Add([]byte(`{"state":"unhealthy","verdict":"unhealthy","since":"2026-01-01T00:00:00Z","results":[{"healthy":true}],"due":"2030-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"state":"open","due":"9999-01-01T00:00:00Z","failures":-5,"again":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := carryServer()
		s.Import(data)
		s.Export()
		c := NewCircuit(&Breaker{Window: unit.Duration(time.Minute), OpenTime: unit.Duration(time.Hour)}, s)
		c.Import(data)
		k := NewCheck(&Config{Interval: unit.Duration(time.Hour)}, Probe{}, NewRounds(), slog.New(slog.DiscardHandler))
		k.Import(data)
		w := k.Watch(s, 0)
		s.Status(true)
		w.Retire()
		c.Retire()
		s.Retire()
	})
}
