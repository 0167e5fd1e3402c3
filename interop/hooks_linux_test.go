package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// messages are what a receiver of a webhook has got.
type messages struct {
	*httptest.Server
	mu     sync.Mutex
	all    []message
	before func(n int) // called with the number of each message before it is answered; nil is nothing
}

// message is one of them, with the machine that has sent it.
type message struct {
	id, by, node, kind string
	adopted, connected bool
	revision           float64
}

// receiveMessages starts a receiver. The path of a request is the name of the machine that sends.
func receiveMessages(t *testing.T) *messages {
	r := &messages{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, rq *http.Request) {
		body, err := io.ReadAll(rq.Body)
		e := struct {
			Type, Node string
			Data       struct {
				Adopted, Connected bool
				Revision           float64
			}
		}{}
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			return // it was cut off
		}
		r.mu.Lock()
		r.all = append(r.all, message{rq.Header.Get("webhook-id"), strings.TrimPrefix(rq.URL.Path, "/"), e.Node, e.Type, e.Data.Adopted, e.Data.Connected, e.Data.Revision})
		n, before := len(r.all), r.before
		r.mu.Unlock()
		if before != nil {
			before(n)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *messages) list() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// answerAfter has a func called before a message is answered.
func (r *messages) answerAfter(do func(n int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = do
}

// sender returns the machine that sends the webhook of all, as another one shows it.
func (m *machines) sender(shownBy *machine) *machine {
	m.t.Helper()
	var found *machine
	m.eventually("a machine sends for all", func() bool {
		out := shownBy.manager().ask("GET", "/webhooks/ops/state", "", "")
		for _, one := range m.all {
			if out.status == 200 && out.body["node"] == one.name {
				found = one
			}
		}
		return found != nil
	})
	return found
}

// changesOf returns the identifiers of the changes that were made on any machine, in the order of the
// log of all machines.
func (m *machines) changesOf(one *machine) (ids []string) {
	m.t.Helper()
	items := one.manager().must(200, "GET", "/events/history?types=config.applied&limit=1000", "", "").body["items"].([]any)
	for _, item := range slices.Backward(items) {
		e := item.(map[string]any)
		if data := e["data"].(map[string]any); data["adopted"] == nil {
			ids = append(ids, fmt.Sprintf("evt_%.0f_%s", e["id"], e["node"]))
		}
	}
	return ids
}

// delivered waits until a receiver has all changes after the first ones, which are at least min, and
// returns how many messages came twice. The order is that of the log.
func (m *machines) delivered(r *messages, one *machine, what string, first, min int) (again int) {
	m.t.Helper()
	var want, got []string
	m.eventually(what, func() bool {
		want, got, again = m.changesOf(one)[first:], nil, 0
		for _, e := range r.list() {
			if slices.Contains(got, e.id) {
				again++
			} else if slices.Contains(want, e.id) {
				got = append(got, e.id)
			}
		}
		return len(want) >= min && slices.Equal(got, want)
	})
	return again
}

// TestMachinesSendWebhooksOnce changes the configuration on three machines with a database while one of
// them sends a webhook for all. That one is killed before a message is answered, and the next one is
// frozen until another has taken its place: each change arrives, in order, and only the message
// without an answer twice.
func TestMachinesSendWebhooksOnce(t *testing.T) {
	t.Parallel()
	r := receiveMessages(t)
	m := &machines{t: t, equip: func(one *machine) {
		one.inside = append(one.inside, "HOOK="+r.URL+"/"+one.name)
	}, more: func() string {
		return `webhooks: {ops: {url: "${HOOK}", secret: "sixteen bytes or more", events: [config.*]}}` + "\n"
	}}
	m.open()
	first := m.sender(m.all[1])
	base := len(m.changesOf(first))
	for i := range 9 {
		m.change(m.all[i%3], 200)
	}
	if again := m.delivered(r, first, "all changes arrive", base, 9); again > 0 {
		t.Errorf("%d messages came twice", again)
	}

	var killed sync.Once
	dead := make(chan struct{})
	r.answerAfter(func(int) {
		killed.Do(func() {
			first.up.Store(false)
			first.signal(syscall.SIGKILL)
			close(dead)
		})
	})
	rest := slices.DeleteFunc(slices.Clone(m.all), func(one *machine) bool { return one == first })
	for i := range 4 {
		m.change(rest[i%2], 200)
	}
	<-dead
	if again := m.delivered(r, rest[0], "all changes arrive after the machine that sends was killed", base, 13); again != 1 {
		t.Errorf("%d messages came twice, want the one without an answer", again)
	}
	r.answerAfter(nil)
	first.kill()
	first.restart()
	first.up.Store(true)

	second := m.sender(rest[0])
	if second == first {
		t.Fatalf("%s sends, which was killed", first.name)
	}
	second.up.Store(false)
	second.signal(syscall.SIGSTOP)
	rest = slices.DeleteFunc(slices.Clone(m.all), func(one *machine) bool { return one == second })
	for i := range 2 {
		m.change(rest[i%2], 200)
	}
	if again := m.delivered(r, rest[0], "all changes arrive while the machine that sends is frozen", base, 15); again != 1 {
		t.Errorf("%d messages came twice, want no other one", again-1)
	}
	third, frozen := m.sender(rest[0]), len(r.list())
	second.signal(syscall.SIGCONT)
	m.eventually("the frozen machine goes on", func() bool { return m.change(second, 0) == 200 })
	second.up.Store(true)
	for _, one := range rest {
		m.change(one, 200)
	}
	if again := m.delivered(r, second, "all changes arrive after the frozen machine goes on", base, 18); again != 1 {
		t.Errorf("%d messages came twice, want no other one", again-1)
	}
	for _, e := range r.list()[frozen:] {
		if e.by != third.name {
			t.Errorf("%s has sent a message after it was frozen, while %s sends", e.by, third.name)
		}
	}
	for _, e := range r.list() {
		if e.adopted && e.kind == "config.applied" {
			t.Errorf("%s has sent the event of %s, which only follows revision %.0f", e.by, e.node, e.revision)
		}
	}
}

// TestUpgradeKeepsThePlaceOfWebhooks replaces the process of the machine that sends while others make changes.
func TestUpgradeKeepsThePlaceOfWebhooks(t *testing.T) {
	t.Parallel()
	r := receiveMessages(t)
	m := &machines{t: t, equip: func(one *machine) {
		one.inside = append(one.inside, "HOOK="+r.URL+"/"+one.name)
	}, more: func() string {
		return `webhooks: {ops: {url: "${HOOK}", secret: "sixteen bytes or more", events: [config.*]}}` + "\n"
	}}
	m.open()
	sends := m.sender(m.all[0])
	base := len(m.changesOf(sends))
	go acknowledge(sends.told)
	other := m.all[0]
	if sends == other {
		other = m.all[1]
	}
	for range 2 {
		m.change(other, 200)
		m.upgrade(sends, func() { m.change(other, 200) })
		m.change(sends, 200)
	}
	if again := m.delivered(r, other, "all changes arrive", base, 6); again > 2 {
		t.Errorf("%d messages came twice, want at most the one that each upgrade interrupts", again)
	}
}

// got waits for a message of a kind about a machine, other than that it is connected, and returns which
// machine has sent it.
func (r *messages) got(t *testing.T, kind, node string, after int) string {
	t.Helper()
	by := ""
	eventually(t, kind+" of "+node+" arrives", func() bool {
		for _, e := range r.list()[after:] {
			if e.kind == kind && e.node == node && !e.connected && by == "" {
				by = e.by
			}
		}
		return by != ""
	})
	return by
}

// TestPairSendsWebhooksOnce has the leader of a pair send the events of both. The follower sends its own while
// it is cut off, and those of all once it is promoted. No message arrives twice.
func TestPairSendsWebhooksOnce(t *testing.T) {
	t.Parallel()
	r := receiveMessages(t)
	p := newPairOf(t, pairConfig()+`webhooks: {ops: {url: "${HOOK}", secret: "sixteen bytes or more", events: [config.*, node.role_changed]}}`+"\n", func(one *twin) {
		one.inside = append(one.inside, "HOOK="+r.URL+"/"+one.name)
	})
	p.b.is("follower", true)
	if one := p.sender(p.b.machine); one != p.a.machine {
		t.Fatalf("%s sends, want the leader", one.name)
	}
	want := func(kind, node, by string, do func()) {
		t.Helper()
		after := len(r.list())
		do()
		if got := r.got(t, kind, node, after); got != by {
			t.Errorf("%s has sent %s of %s, want %s: %+v", got, kind, node, by, r.list())
		}
	}
	want("config.applied", "a", "a", func() { p.must(p.a, 1) })
	p.serves(p.b, 1)
	text := mustRead(t, p.b.file)
	want("config.refused", "b", "a", func() { p.b.put("headgate.yaml", string(text)+"policies: {p: {}}\n") })
	p.b.put("headgate.yaml", string(text))
	want("node.role_changed", "b", "b", func() {
		p.a.cable.set(true)
		p.b.cable.set(true)
	})
	p.b.is("follower", false)
	p.a.cable.set(false)
	p.b.cable.set(false)
	p.b.is("follower", true)
	want("config.applied", "a", "a", func() { p.must(p.a, 2) })
	p.serves(p.b, 2)
	p.eventually("b has the place of a", func() bool {
		return p.b.manager().must(200, "GET", "/webhooks/ops/state", "", "").body["sent"] == float64(len(r.list()))
	})
	p.a.crash()
	p.b.is("follower", false)
	p.b.manager().must(200, "POST", "/pair/promote", `{"alone": true}`, "")
	want("config.applied", "b", "b", func() { p.must(p.b, 3) })
	seen := map[string]bool{}
	for _, e := range r.list() {
		if seen[e.id] || e.kind == "config.applied" && e.adopted {
			t.Errorf("arrived twice, or only follows another machine: %+v", e)
		}
		seen[e.id] = true
	}
}
