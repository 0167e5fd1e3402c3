package control

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"headgate/internal/server/split"
	"headgate/internal/testhouse"
)

// splitHouse is a configuration with a split between the servers a and b.
func splitHouse(at, a, b, settings string) string {
	return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
proxies:
  shop:
    routes:
      - servers: [{url: "http://%s"}, {url: "http://%s", group: candidate}]
        split: {%s}
`, at, a, b, settings)
}

// live returns the run-time side of the only split.
func (c *Control) live() *split.Live { return c.Plan().Splits()[0].Live }

// splitIs waits until the only split is in a phase with a share.
func splitIs(t *testing.T, c *Control, phase split.Phase, share int) SplitState {
	t.Helper()
	var last []SplitState
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); testhouse.Pause() {
		if last = c.Splits(); len(last) == 1 && last[0].Phase == phase && last[0].Share == share && c.live().Share() == share {
			return last[0]
		}
	}
	t.Fatalf("splits: %+v, want one that is %s at %d%%", last, phase, share)
	return SplitState{}
}

// splitsKept reports whether all states of splits are kept.
func (c *Control) splitsKept() bool {
	c.splits.mu.Lock()
	defer c.splits.mu.Unlock()
	for _, s := range c.splits.mu.states {
		if s.unsaved {
			return false
		}
	}
	return true
}

// failing counts requests of which all of the candidate fail.
func failing(c *Control) {
	for range 400 {
		c.live().Observe(split.Stable, false, time.Millisecond)
		c.live().Observe(split.Candidate, true, 0)
	}
}

func TestAWorseCandidateIsReturnedAndStaysSo(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	text := splitHouse(at[0], named(t, "a"), named(t, "b"), "candidate: 50, sticky: false")
	h := start(t, text)
	splitIs(t, h.c, split.Running, 50)
	if got := answers(t, at[0], "", 100); got["a"] < 20 || got["b"] < 20 {
		t.Errorf("answers at 50%%: %v", got)
	}
	began := time.Now()
	failing(h.c)
	s := splitIs(t, h.c, split.Returned, 0)
	if took := time.Since(began); took > 2*time.Second+time.Second/2 {
		t.Errorf("the return took %v", took)
	}
	if s.Who != "headgate" || !strings.HasPrefix(s.Why, "errors: candidate 8") && !strings.HasPrefix(s.Why, "errors: candidate 9") {
		t.Errorf("returned by %q because %q", s.Who, s.Why)
	}
	if got := answers(t, at[0], "", 50); got["a"] != 50 {
		t.Errorf("answers after the return: %v", got)
	}
	if issues := h.c.Issues("proxies")["shop"]; len(issues) != 1 || !strings.Contains(issues[0], "the candidate gets no requests") {
		t.Errorf("issues: %v", issues)
	}
	if got, err := os.ReadFile(h.file); err != nil || string(got) != text {
		t.Errorf("the configuration has changed: %v\n%s", err, got)
	}

	// Other settings and a restart leave it so.
	h.apply(strings.Replace(text, "sticky: false", "sticky: false, rollback: {min_requests: 300}", 1))
	splitIs(t, h.c, split.Returned, 0)
	h.apply(text)
	for !h.c.splitsKept() {
		testhouse.Pause()
	}
	h = h.again()
	if s := splitIs(t, h.c, split.Returned, 0); s.Who != "headgate" {
		t.Errorf("after a restart: %+v", s)
	}
	if got := answers(t, at[0], "", 50); got["a"] != 50 {
		t.Errorf("answers after a restart: %v", got)
	}

	// An operator starts it again, and what was counted before does not return it.
	failing(h.c)
	if _, err := h.c.DecideSplit(t.Context(), SplitCommand{Proxy: "shop", Do: SplitPromote, Who: "ann"}); err != nil {
		t.Fatal(err)
	}
	splitIs(t, h.c, split.Running, 50)
	time.Sleep(splitTick + splitTick/2)
	splitIs(t, h.c, split.Running, 50)

	// A change of the shares in the configuration is a new start.
	if _, err := h.c.DecideSplit(t.Context(), SplitCommand{Proxy: "shop", Do: SplitReturn, Who: "ann", Why: "looks odd"}); err != nil {
		t.Fatal(err)
	}
	splitIs(t, h.c, split.Returned, 0)
	h.apply(strings.Replace(text, "candidate: 50", "candidate: 40", 1))
	splitIs(t, h.c, split.Running, 40)
	h.apply(strings.Replace(text, "        split: {candidate: 50, sticky: false}\n", "", 1)[:strings.Index(text, ", {url")] + "]\n")
	if all := h.c.Splits(); len(all) != 0 {
		t.Errorf("splits without any: %+v", all)
	}
}

func TestCommandsForSplits(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, splitHouse(at[0], named(t, "a"), named(t, "b"), `schedule: "5, 25, 100", rollback: {enabled: false}`))
	splitIs(t, h.c, split.Running, 5)
	do := func(verb SplitVerb, to int) error {
		_, err := h.c.DecideSplit(t.Context(), SplitCommand{Proxy: "shop", Do: verb, To: to, Who: "ann"})
		return err
	}
	for _, c := range []struct {
		verb  SplitVerb
		to    int
		want  error
		phase split.Phase
		share int
	}{
		{SplitPromote, 0, nil, split.Running, 25},
		{SplitHold, 0, nil, split.Held, 25},
		{SplitHold, 0, split.ErrHeld, split.Held, 25},
		{SplitPromote, 40, nil, split.Running, 40},
		{SplitPromote, 101, split.ErrShare, split.Running, 40},
		{SplitPromote, 0, nil, split.Complete, 100},
		{SplitPromote, 0, split.ErrComplete, split.Complete, 100},
		{SplitReturn, 0, nil, split.Returned, 0},
		{SplitReturn, 0, split.ErrReturned, split.Returned, 0},
		{SplitHold, 0, split.ErrReturned, split.Returned, 0},
		{SplitRestart, 0, nil, split.Running, 5},
	} {
		if err := do(c.verb, c.to); !errors.Is(err, c.want) {
			t.Errorf("%s to %d: %v, want %v", c.verb, c.to, err, c.want)
		}
		splitIs(t, h.c, c.phase, c.share)
	}
	if _, err := h.c.DecideSplit(t.Context(), SplitCommand{Proxy: "shop", Route: "/x", Do: SplitHold}); !errors.Is(err, ErrNoSplit) {
		t.Errorf("another route: %v", err)
	}
	if would, err := h.c.TrySplit(SplitCommand{Proxy: "shop", Do: SplitPromote}); err != nil || would.Share != 25 {
		t.Errorf("a dry run: %+v, %v", would, err)
	}
	splitIs(t, h.c, split.Running, 5)
}

// A machine returns a candidate by what it counts itself, and the others follow; without the
// store each does so alone, and the return is kept when the store is back.
func TestMachinesShareTheStateOfASplit(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	a, b := named(t, "a"), named(t, "b")
	text := splitHouse(at[0], a, b, "candidate: 50")
	text = strings.Replace(text, fmt.Sprintf("ports: {web: {address: %q, protocol: http}}", at[0]), fmt.Sprintf("ports: {x: {address: %q, protocol: http, nodes: [one]}, y: {address: %q, protocol: http, nodes: [two]}}", at[0], at[1]), 1)
	e := newEngine()
	one := newMember(t, "one", text, e)
	splitIs(t, one.c, split.Running, 50)
	other := e.alone()
	two := newMember(t, "two", text, other)
	splitIs(t, two.c, split.Running, 50)

	failing(one.c)
	splitIs(t, one.c, split.Returned, 0)
	splitIs(t, two.c, split.Returned, 0)
	if _, err := two.c.DecideSplit(t.Context(), SplitCommand{Proxy: "shop", Do: SplitPromote, Who: "ann"}); err != nil {
		t.Fatal(err)
	}
	splitIs(t, one.c, split.Running, 50)
	splitIs(t, two.c, split.Running, 50)

	other.away.Store(true)
	failing(two.c)
	splitIs(t, two.c, split.Returned, 0)
	splitIs(t, one.c, split.Running, 50)
	other.away.Store(false)
	splitIs(t, one.c, split.Returned, 0)
	splitIs(t, two.c, split.Returned, 0)
}
