package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/event"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// shortLease is leaseTime in tests.
const shortLease = 600 * time.Millisecond

// line is the connection of a machine to the shared store.
type line struct {
	store.Store
	cut  atomic.Bool // calls fail
	full atomic.Bool // changes fail, and reads do not: what is sent cannot be saved

	refused atomic.Int64                // the changes that failed
	behind  atomic.Pointer[store.Entry] // what reads return in place of the next entry of a queue, once
}

var errCut = fmt.Errorf("%w: cut", store.ErrUnavailable)

func (l *line) Acquire(ctx context.Context, name string, ttl time.Duration) (*store.Lease, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	asked := time.Now()
	lease, err := l.Store.Acquire(ctx, name, ttl)
	if err != nil {
		return nil, err
	}
	return store.NewLease(l, name, lease.Token, ttl, asked), nil
}

func (l *line) RenewLease(ctx context.Context, name string, token uint64, ttl time.Duration) error {
	if l.cut.Load() {
		return errCut
	}
	return l.Store.(store.LeaseEngine).RenewLease(ctx, name, token, ttl)
}

func (l *line) ReleaseLease(ctx context.Context, name string, token uint64) error {
	if l.cut.Load() {
		return errCut
	}
	return l.Store.(store.LeaseEngine).ReleaseLease(ctx, name, token)
}

func (l *line) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if l.cut.Load() || l.full.Load() {
		l.refused.Add(1)
		return 0, errCut
	}
	return l.Store.Commit(ctx, c)
}

func (l *line) Append(ctx context.Context, stream string, records [][]byte) (store.Sequence, error) {
	if l.cut.Load() {
		return 0, errCut
	}
	return l.Store.Append(ctx, stream, records)
}

func (l *line) Get(ctx context.Context, key string) (store.Entry, error) {
	if e := l.behind.Load(); e != nil && e.Key == key {
		l.behind.Store(nil)
		return *e, nil
	}
	return l.Store.Get(ctx, key)
}

func (l *line) Page(ctx context.Context, stream string, before store.Sequence, n int) ([]store.Record, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	return l.Store.Page(ctx, stream, before, n)
}

// member is one of several machines that share a store, with a receiver that only it knows: so a
// test sees who sends.
type member struct {
	*Sender
	name   string
	events *event.Log
	line   *line
	got    *receiver
}

// join adds a machine. Its webhook a gets events of ports, configurations and the store.
func join(t *testing.T, st store.Store, name string) *member {
	t.Helper()
	return joinFor(t, st, name, shortLease)
}

// joinFor is join with another time of leases.
func joinFor(t *testing.T, st store.Store, name string, lease time.Duration) *member {
	t.Helper()
	m := &member{name: name, line: &line{Store: st}, got: receive(t, accepted)}
	log := slog.New(slog.DiscardHandler)
	var err error
	if m.events, err = event.Open(t.Context(), m.line, log); err != nil {
		t.Fatal(err)
	}
	m.events.Share(name)
	m.Sender = New(Options{Events: m.events, Store: m.line, Log: log, Node: name})
	m.Sender.pause = func(int) time.Duration { return time.Millisecond }
	m.Sender.leaseTime, m.Sender.readEvery = lease, 2*time.Millisecond
	t.Cleanup(m.events.Close)
	t.Cleanup(m.Sender.Close)
	m.use()
	return m
}

func (m *member) use() {
	m.Set([]Hook{{Kind: Webhooks, Name: "a", URL: m.got.URL, Secret: secretText, Filter: event.Filter{Types: []string{"port.*", "config.*", "store.*"}}}})
}

// leading returns the machine that sends for all, and waits for it.
func leading(t *testing.T, all ...*member) *member {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); testhouse.Pause() {
		for _, m := range all {
			if h := m.find(Webhooks, "a"); h != nil && h.shared.leads() {
				return m
			}
		}
	}
	t.Fatal("no machine sends")
	return nil
}

func others(of *member, all ...*member) []*member {
	return slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m == of })
}

// kept waits until a stream has a number of records.
func kept(t *testing.T, st store.Store, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); testhouse.Pause() {
		if page, err := st.Page(t.Context(), store.StreamEvents, 0, store.MaxPage); err == nil && len(page) >= n {
			return
		}
	}
	t.Fatalf("the store does not get %d events", n)
}

func TestOneMachineSendsTheEventsOfAll(t *testing.T) {
	st := memory.New()
	all := []*member{join(t, st, "a.example"), join(t, st, "b.example"), join(t, st, "c.example")}
	sends := leading(t, all...)
	sent := 0
	for i := range 10 {
		for _, m := range all {
			m.events.Send(port(fmt.Sprint(m.name, i)))
			sent++
			kept(t, st, sent)
		}
	}
	for i := range 10 {
		for _, m := range all {
			e := sends.got.event()
			p := event.Port{}
			if err := json.Unmarshal(e.Data, &p); err != nil || p.Port != fmt.Sprint(m.name, i) || e.Node != m.name || e.Claimed != nil {
				t.Fatalf("got %s of %q, want %s%d", e.Data, e.Node, m.name, i)
			}
		}
	}
	for _, m := range all {
		n := until(t, m.Sender, func(st State) bool { return st.Sent == 30 })
		if n.Node != sends.name {
			t.Errorf("%s shows that %q sends, want %s", m.name, n.Node, sends.name)
		}
	}
	for _, m := range others(sends, all...) {
		if len(m.got.got) > 0 {
			t.Errorf("%s has sent, too", m.name)
		}
	}
}

func TestAChangeThatOthersFollowIsReportedOnce(t *testing.T) {
	st := memory.New()
	a, b := join(t, st, "a"), join(t, st, "b")
	sends := leading(t, a, b)
	a.events.Send(event.ConfigApplied{Config: event.Config{Revision: 7}})
	kept(t, st, 1)
	b.events.Send(event.ConfigApplied{Config: event.Config{Revision: 7, Adopted: true}})
	b.events.Send(event.ConfigRefused{Config: event.Config{Revision: 7, Adopted: true}, Problems: []string{"no such file"}})
	if e := sends.got.event(); e.Type != "config.applied" || e.Node != "a" {
		t.Errorf("first %s of %q", e.Type, e.Node)
	}
	if e := sends.got.event(); e.Type != "config.refused" || e.Node != "b" {
		t.Errorf("then %s of %q, want the refusal by b", e.Type, e.Node)
	}
}

// TestAnotherMachineGoesOn cuts the machine that sends from the store in the middle: its place is not
// moved any more, so it sends one message at most that the next machine sends again.
func TestAnotherMachineGoesOn(t *testing.T) {
	st := memory.New()
	all := []*member{join(t, st, "a"), join(t, st, "b"), join(t, st, "c")}
	first := leading(t, all...)
	rest := others(first, all...)
	const n = 200
	go func() {
		for i := range n {
			rest[i%2].events.Send(port(fmt.Sprint(i)))
			testhouse.Pause()
		}
	}()
	var one []event.ID
	for range 40 {
		one = append(one, first.got.event().ID)
	}
	first.line.cut.Store(true)
	second := leading(t, rest...)
	var two []event.ID
	for len(two) == 0 || len(distinct(one, two)) < n {
		for len(first.got.got) > 0 {
			one = append(one, first.got.event().ID)
		}
		two = append(two, second.got.event().ID)
	}
	if repeated := len(one) + len(two) - n; repeated > 1 || repeated == 1 && one[len(one)-1] != two[0] {
		t.Errorf("%d messages arrived twice, want the last of the first machine at most", repeated)
	}
	page, err := st.Page(t.Context(), store.StreamEvents, 0, store.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(page)
	var want []event.ID
	for _, r := range page {
		e, _ := event.Decode(r.Data)
		want = append(want, e.ID)
	}
	if got := distinct(one, two); !slices.Equal(got, want) {
		t.Errorf("%d messages in another order than that of the store, or some are lost", len(got))
	}

	first.line.cut.Store(false)
	rest[0].events.Send(port("after"))
	if got := second.got.next(); got != "after" {
		t.Errorf("got %q", got)
	}
	if len(first.got.got) > 0 {
		t.Errorf("%s sends again after it lost the lease", first.name)
	}
}

func distinct(lists ...[]event.ID) (all []event.ID) {
	for _, id := range slices.Concat(lists...) {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// TestNothingIsSentWhileThePlaceCannotBeMoved has a store that refuses changes only.
func TestNothingIsSentWhileThePlaceCannotBeMoved(t *testing.T) {
	st := memory.New()
	a := joinFor(t, st, "a", time.Minute)
	leading(t, a)
	a.line.full.Store(true)
	for i := range 5 {
		a.events.Send(port(fmt.Sprint(i)))
	}
	if got := a.got.next(); got != "0" {
		t.Fatalf("got %q", got)
	}
	kept(t, st, 5)
	for tried := a.line.refused.Load(); a.line.refused.Load() < tried+2; testhouse.Pause() {
	}
	if len(a.got.got) > 0 {
		t.Errorf("got %q before the place after the first was saved", a.got.next())
	}
	a.line.full.Store(false)
	var got []string
	for len(got) == 0 || got[len(got)-1] != "4" {
		got = append(got, a.got.next())
	}
	if want := []string{"1", "2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("got %q then, want %q", got, want)
	}
}

// TestAMachineThatWasStoppedSendsNothing has a lease end while its holder cannot notice it.
func TestAMachineThatWasStoppedSendsNothing(t *testing.T) {
	st := memory.New()
	a := join(t, st, "a")
	leading(t, a)
	h := a.find(Webhooks, "a").shared
	h.group.mu.Lock()
	h.group.mu.until = time.Now().Add(-time.Millisecond) // the process was stopped until now
	h.group.mu.Unlock()
	h.try(t.Context(), Delivery{Event: &event.Event{ID: 1, Type: "port.closed", Time: time.Now()}, First: time.Now()})
	if len(a.got.got) > 0 {
		t.Error("it sends after its lease has ended")
	}
}

func TestAMachineThatIsCutSendsItsOwnEvents(t *testing.T) {
	st := memory.New()
	a, b := join(t, st, "a"), join(t, st, "b")
	sends := leading(t, a, b)
	cut := others(sends, a, b)[0]
	cut.line.cut.Store(true)
	cut.events.Send(event.StoreAway{Node: cut.name, Cause: "cut"})
	cut.events.Send(port("down"))
	var got []string
	for range 3 { // the log reports store.unavailable, too
		got = append(got, cut.got.event().Type)
	}
	slices.Sort(got)
	if want := []string{"port.listening", "store.away", "store.unavailable"}; !slices.Equal(got, want) {
		t.Errorf("the machine itself sends %q, want %q", got, want)
	}
	cut.line.cut.Store(false)
	kept(t, st, 3)
	cut.events.Send(port("later"))
	if got := sends.got.next(); got != "later" {
		t.Errorf("the machine that sends for all sends %q, want what was not sent yet", got)
	}
	if len(cut.got.got) > 0 {
		t.Errorf("%s still sends itself", cut.name)
	}
}

func TestTheNextMachineGoesOnAtOnceWhenOneStops(t *testing.T) {
	st := memory.New()
	a := join(t, st, "a")
	leading(t, a)
	b := join(t, st, "b")
	a.Sender.Close()
	a.events.Send(port("x"))
	a.events.Close()
	if leading(t, b); b.got.next() != "x" {
		t.Error("the last event of a machine that stopped is lost")
	}
}

// TestACopyThatIsBehindIsNotUsed has a machine take over that reads an older place first.
func TestACopyThatIsBehindIsNotUsed(t *testing.T) {
	st := memory.New()
	a := join(t, st, "a")
	leading(t, a)
	old, err := st.Get(t.Context(), "webhook/a")
	if err != nil {
		t.Fatal(err)
	}
	a.events.Send(port("sent"))
	a.got.next()
	until(t, a.Sender, func(st State) bool { return st.Sent == 1 })
	b := join(t, st, "b")
	b.line.behind.Store(&old)
	a.Sender.Close()
	leading(t, b)
	if b.line.behind.Load() != nil {
		t.Fatal("the older entry was not read")
	}
	a.events.Send(port("next"))
	if got := b.got.next(); got != "next" {
		t.Errorf("got %q, which was sent before", got)
	}
}

// TestStatesOfEarlierReleases begins with what machines have written that sent their own events, and
// with that of a machine that was alone.
func TestStatesOfEarlierReleases(t *testing.T) {
	st := memory.New()
	old := func(id event.ID, kind string) []byte {
		data, err := json.Marshal(event.Event{ID: id, Type: kind, Time: time.Now(), Data: json.RawMessage(`{"port": "old"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	waits, err := json.Marshal(State{After: 1, Sent: 4, Waiting: []Delivery{{Event: &event.Event{ID: 1, Type: "port.closed", Data: json.RawMessage(`{"port": "waits"}`)}, First: time.Now()}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Append(t.Context(), store.StreamEvents, [][]byte{old(1, "port.closed"), old(2, "port.closed")}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "webhook/a", Value: []byte(`{"after": 1, "sent": 9}`)}, {Key: "webhook/a/one", Value: waits}}}); err != nil {
		t.Fatal(err)
	}
	one := join(t, st, "one")
	if got := one.got.next(); got != "waits" {
		t.Errorf("got %q, want the message that waited", got)
	}
	leading(t, one)
	if _, err := st.Append(t.Context(), store.StreamEvents, [][]byte{old(3, "port.closed"), old(4, event.StoreRestoredType)}); err != nil {
		t.Fatal(err)
	}
	if e := one.got.event(); e.ID != 4 {
		t.Errorf("event %d was sent, want that of the store; the other is sent by the machine of the earlier release", e.ID)
	}
	one.events.Send(port("new"))
	if got := one.got.next(); got != "new" {
		t.Errorf("got %q", got)
	}
	until(t, one.Sender, func(st State) bool { return st.Sent == 9+5+2 })
}

func TestADeadLetterIsSentAgainByTheMachineThatSends(t *testing.T) {
	st := memory.New()
	a, b := join(t, st, "a"), join(t, st, "b")
	sends := leading(t, a, b)
	other := others(sends, a, b)[0]
	sends.got.set(func(*event.Event) int { return 422 })
	other.events.Send(port("x"))
	id := sends.got.event().ID
	h := sends.find(Webhooks, "a").shared
	for dead := false; !dead; testhouse.Pause() {
		h.mu.Lock()
		for i := range h.mu.state.Waiting { // a day goes by
			h.mu.state.Waiting[i].First = time.Now().Add(-maxAge - time.Minute)
		}
		dead = len(h.mu.state.Dead) == 1
		h.mu.Unlock()
	}
	sends.got.set(accepted)
	until(t, other.Sender, func(st State) bool { return len(st.Dead) == 1 })
	for len(sends.got.got) > 0 {
		sends.got.event()
	}
	if err := errors.Join(other.CanResend(Webhooks, "a", id), other.Resend(Webhooks, "a", id)); err != nil {
		t.Fatal(err)
	}
	if got := sends.got.event().ID; got != id {
		t.Errorf("event %d was sent again, want %d", got, id)
	}
	until(t, other.Sender, func(st State) bool { return len(st.Dead) == 0 && len(st.Waiting) == 0 && st.Sent == 1 })
	if err := other.Resend(Webhooks, "a", id); !errors.Is(err, ErrUnknown) {
		t.Errorf("once more: %v", err)
	}
	if err := sends.Resend(Webhooks, "a", id); !errors.Is(err, ErrUnknown) {
		t.Errorf("once more: %v", err)
	}
}

func TestMessagesHaveTheNameOfTheMachine(t *testing.T) {
	e := &event.Event{ID: 5, Node: "a.example", Object: "port web", Level: event.Error}
	if got := messageID(e); got != "evt_5_a-example" {
		t.Errorf("id %q", got)
	}
	m := &Message{Events: []*event.Event{e}, Instance: "other"}
	if got := m.title(); got != "headgate on a.example: port web (error)" {
		t.Errorf("title %q", got)
	}
	m.Events = append(m.Events, &event.Event{ID: 6, Node: "b", Text: "port web was closed", Level: event.Info})
	if got := m.title() + m.text(); got[:len("headgate: 2 events")] != "headgate: 2 events" || !strings.Contains(got, "error on a.example: ") || !strings.Contains(got, "info on b: ") {
		t.Errorf("got %q", got)
	}
}
