package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/credential"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const good = "correct horse battery"

var operator = By{Name: "op"}

// house has people over a store, with a clock for limits that the test moves.
type house struct {
	*People
	t       *testing.T
	store   store.Store
	moment  int64
	hashes  int // how many passwords were checked
	changed []string
	mu      sync.Mutex
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, store: memory.NewAhead(-3 * time.Hour), moment: 1}
	h.People = New(Options{Store: h.store})
	h.limits.now = func() int64 { return h.moment }
	matches := h.matches
	h.matches = func(hash, password string) bool {
		h.mu.Lock()
		h.hashes++
		h.mu.Unlock()
		return matches(hash, password)
	}
	h.Start(func(name string) {
		h.mu.Lock()
		h.changed = append(h.changed, name)
		h.mu.Unlock()
	})
	t.Cleanup(func() { h.Close(); h.store.Close() })
	return h
}

// member is a person with a password and an authenticator.
type member struct {
	name, secret string
	recovery     []string
	shift        int // which code is shown next
	store        store.Store
}

// next returns a code that was not used yet. Two are of the authenticator: they stay valid
// when its next step begins meanwhile.
func (m *member) next(t *testing.T) string {
	if m.shift++; m.shift <= 2 {
		return testhouse.TOTP(t, m.secret, store.Time(m.store).Add(time.Duration(m.shift-1)*30*time.Second))
	}
	code := m.recovery[len(m.recovery)-1]
	m.recovery = m.recovery[:len(m.recovery)-1]
	return code
}

func (h *house) add(name string, d Details) *member {
	h.t.Helper()
	ctx := h.t.Context()
	if _, err := h.Create(ctx, operator, name, d, false); err != nil {
		h.t.Fatal(err)
	}
	link, _, err := h.Invite(ctx, operator, name, InvitationAge, false)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.accept(name, link)
}

func (h *house) accept(name, link string) *member {
	h.t.Helper()
	m := &member{name: name, secret: NewAuthenticator(), store: h.store}
	in, codes, err := h.Accept(h.t.Context(), link, good, m.secret, m.next(h.t), netip.Addr{})
	if err != nil || in.Person.Name != name || len(codes) != 10 {
		h.t.Fatalf("%+v, %d codes, %v", in, len(codes), err)
	}
	m.recovery = codes
	return m
}

func (h *house) try(login, password, code, from string, browser string) error {
	in := Attempt{Login: login, Password: password, Code: code, Browser: func(string, int) string { return browser }}
	if from != "" {
		in.Address = netip.MustParseAddr(from)
	}
	_, err := h.SignIn(h.t.Context(), in)
	return err
}

func TestPeopleSignInWithAPasswordAndACode(t *testing.T) {
	h := open(t)
	ann := h.add("ann", Details{FullName: "Ann", Email: "Ann@Example.com", Groups: []string{"family", "admins", "family"}})
	code := ann.next(t)
	if err := h.try("ANN", good, code, "192.0.2.1", ""); err != nil {
		t.Fatal(err)
	}
	if err := h.try("ann", good, code, "192.0.2.1", ""); !errors.Is(err, ErrCredentials) {
		t.Errorf("a code was accepted twice: %v", err)
	}
	if err := h.try(" ann@example.COM ", good, ann.next(t), "192.0.2.1", ""); err != nil {
		t.Errorf("by the address: %v", err)
	}
	if err := h.try("ann", good, ann.recovery[0], "192.0.2.1", ""); err != nil {
		t.Errorf("with a recovery code: %v", err)
	}
	if err := h.try("ann", good, ann.recovery[0], "192.0.2.1", ""); !errors.Is(err, ErrCredentials) {
		t.Errorf("a recovery code was accepted twice: %v", err)
	}
	// A code that comes with a wrong password is not used up.
	if err := h.try("ann", good+"x", ann.recovery[1], "192.0.2.1", ""); !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
	if err := h.try("ann", good, ann.recovery[1], "192.0.2.1", ""); err != nil {
		t.Error(err)
	}
	for _, code := range []string{"", "000000", "12345", " "} {
		if err := h.try("ann", good, code, "192.0.2.1", ""); !errors.Is(err, ErrCredentials) {
			t.Errorf("code %q: %v", code, err)
		}
	}
	if l := h.Listed("ann"); l == nil || !slices.Equal(l.Groups, []string{"admins", "family"}) || l.Email != "ann@example.com" {
		t.Errorf("listed: %+v", l)
	}
	p, err := h.Person(t.Context(), "ann")
	if err != nil || p.RecoveryCodes != 7 || !p.Password || p.SignedIn.IsZero() || !p.Invited.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
}

// Nothing about an answer depends on whether there is such a person: neither the error nor
// the password check, which takes nearly all of the time.
func TestUnknownPeopleTakeAsLong(t *testing.T) {
	h := open(t)
	h.add("ann", Details{Email: "ann@example.com"})
	if _, err := h.Create(t.Context(), operator, "new", Details{}, false); err != nil { // without a password
		t.Fatal(err)
	}
	h.add("off", Details{})
	if _, err := h.Change(t.Context(), operator, "off", Any, Details{Disabled: true}, false); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"ann", "ann@example.com", "nobody", "nobody@example.com", "new", "off", "", "?", "\x00", strings.Repeat("x", 2000)} {
		before := h.hashes
		err := h.try(login, "wrong horse battery", "123456", "", "")
		if err != ErrCredentials || h.hashes != before+1 {
			t.Errorf("%.20q: %v after %d password checks, want %v after one", login, err, h.hashes-before, ErrCredentials)
		}
	}
}

func throttled(err error) bool {
	t := (*Throttled)(nil)
	return errors.As(err, &t) && t.Wait > 0
}

func TestGuessesAgainstAnAccountAreBounded(t *testing.T) {
	h := open(t)
	ann := h.add("ann", Details{Email: "ann@example.com"})
	for range 3 { // what succeeds does not count
		if err := h.try("ann", good, ann.recovery[0], "192.0.2.200", ""); err != nil {
			t.Fatal(err)
		}
		ann.recovery = ann.recovery[1:]
	}
	for i := range accountFailures { // each from another address, by name and by address
		login := []string{"ann", "Ann@example.com", "ANN"}[i%3]
		if err := h.try(login, "wrong horse battery", "123456", fmt.Sprintf("198.51.100.%d", i), ""); err != ErrCredentials {
			t.Fatalf("guess %d: %v", i, err)
		}
	}
	before := h.hashes
	if err := h.try("ann", good, ann.recovery[0], "203.0.113.1", ""); !throttled(err) || h.hashes != before {
		t.Errorf("after %d failures: %v", accountFailures, err)
	}
	// The owner gets in from a browser that is known, however many others have guessed.
	if err := h.try("ann", good, ann.recovery[0], "203.0.113.1", "browser-1"); err != nil {
		t.Errorf("from a known browser: %v", err)
	}
	// Others are not affected.
	bob := h.add("bob", Details{})
	if err := h.try("bob", good, bob.next(t), "198.51.100.1", ""); err != nil {
		t.Errorf("another person: %v", err)
	}
	h.moment += int64(accountPeriod / accountFailures)
	if err := h.try("ann", good, ann.recovery[1], "203.0.113.1", ""); err != nil {
		t.Errorf("after a while: %v", err)
	}
	// Names that do not exist are bounded in the same way.
	for range accountFailures {
		h.try("nobody", "wrong horse battery", "123456", "", "")
	}
	if err := h.try("nobody", "wrong horse battery", "123456", "", ""); !throttled(err) {
		t.Errorf("an unknown person: %v", err)
	}
}

// A stolen cookie of a known browser gives no more guesses than any browser has.
func TestGuessesFromAKnownBrowserAreBounded(t *testing.T) {
	h := open(t)
	ann := h.add("ann", Details{})
	for range accountFailures {
		if err := h.try("ann", good, "123456", "192.0.2.1", "browser-1"); err != ErrCredentials {
			t.Fatal(err)
		}
	}
	if err := h.try("ann", good, ann.recovery[0], "192.0.2.1", "browser-1"); !throttled(err) {
		t.Errorf("from the browser: %v", err)
	}
	if err := h.try("ann", good, ann.recovery[0], "192.0.2.1", "browser-2"); err != nil {
		t.Errorf("from another one that is known: %v", err)
	}
}

func TestGuessesFromANetworkAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		from    func(i int) string
		allowed int
	}{
		"one address": {func(int) string { return "192.0.2.1" }, addressFailures},
		"mapped":      {func(i int) string { return []string{"192.0.2.1", "::ffff:192.0.2.1"}[i%2] }, addressFailures},
		"one /64":     {func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i) }, addressFailures},
		"one /48":     {func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i) }, networkFailures},
	} {
		h := open(t)
		h.matches = func(string, string) bool { return false }
		for i := range c.allowed {
			if err := h.try(fmt.Sprintf("name%d", i), "x", "123456", c.from(i), ""); err != ErrCredentials {
				t.Fatalf("%s: guess %d: %v", name, i, err)
			}
		}
		if err := h.try("another", "x", "123456", c.from(c.allowed), ""); !throttled(err) {
			t.Errorf("%s: after %d failures: %v", name, c.allowed, err)
		}
		if err := h.try("another", "x", "123456", "2001:db8:2::1", ""); err != ErrCredentials {
			t.Errorf("%s: from elsewhere: %v", name, err)
		}
	}
}

// Guesses at once do not pass the bound before one of them is counted.
func TestGuessesAtOnceAreBounded(t *testing.T) {
	h := open(t)
	h.add("ann", Details{})
	h.matches = func(string, string) bool {
		h.mu.Lock()
		h.hashes++
		h.mu.Unlock()
		return false
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() { h.try("ann", "x", "123456", "", "") })
	}
	all.Wait()
	if limit := accountFailures + h.checks.Open() - 1; h.hashes > limit {
		t.Errorf("%d passwords were checked, want at most %d", h.hashes, limit)
	}
}

func TestInvitationsWorkOnce(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, err := h.Create(ctx, operator, "ann", Details{}, false); err != nil {
		t.Fatal(err)
	}
	first, _, err := h.Invite(ctx, operator, "ann", InvitationAge, false)
	if err != nil {
		t.Fatal(err)
	}
	second, until, err := h.Invite(ctx, operator, "ann", InvitationAge, false)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := h.Person(ctx, "ann"); err != nil || !p.Invited.Equal(until) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := h.Invited(ctx, first); err != ErrLink {
		t.Errorf("a link that was replaced: %v", err)
	}
	for range 2 { // looking at it does not use it
		if p, err := h.Invited(ctx, second); err != nil || p.Name != "ann" {
			t.Errorf("%+v, %v", p, err)
		}
	}
	secret := NewAuthenticator()
	for field, c := range map[string][2]string{"password": {"short", testhouse.TOTP(t, secret, store.Time(h.store))}, "code": {good, "000000x"}} {
		_, _, err := h.Accept(ctx, second, c[0], secret, c[1], netip.Addr{})
		if e := (*Error)(nil); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	// Of several at once one is accepted.
	var all sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for range 4 {
		all.Go(func() {
			_, _, err := h.Accept(ctx, second, good, secret, testhouse.TOTP(t, secret, store.Time(h.store)), netip.Addr{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				accepted++
			} else if !errors.Is(err, ErrLink) && !errors.Is(err, ErrBusy) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if accepted != 1 {
		t.Errorf("the link was accepted %d times", accepted)
	}
	if _, err := h.Invited(ctx, second); err != ErrLink {
		t.Errorf("a link that was used: %v", err)
	}
	third, _, err := h.Invite(ctx, operator, "ann", time.Minute, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Withdraw(ctx, operator, "ann", false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Invited(ctx, third); err != ErrLink {
		t.Errorf("a link that was withdrawn: %v", err)
	}
	for _, age := range []time.Duration{0, time.Second, MaxInvitationAge + 1} {
		if _, _, err := h.Invite(ctx, operator, "ann", age, false); err == nil {
			t.Errorf("an invitation for %v", age)
		}
	}
}

// An invitation that has expired is worth nothing, also where the store still has it.
func TestInvitationsExpire(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, err := h.Create(ctx, operator, "ann", Details{}, false); err != nil {
		t.Fatal(err)
	}
	link, _, err := h.Invite(ctx, operator, "ann", InvitationAge, false)
	if err != nil {
		t.Fatal(err)
	}
	a, r, err := h.account(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	in := invitation{"ann", a.Generation, h.now().Add(-time.Second)}
	if _, err := h.commit(ctx, store.Change{If: []store.Condition{{Key: keyAccount + "ann", Revision: r}}, Put: []store.Entry{entry(keyInvitation+credential.Digest(link), in)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Invited(ctx, link); err != ErrLink {
		t.Error(err)
	}
}

func TestAResetEndsAllThatAPersonHas(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	ann := h.add("ann", Details{Email: "ann@example.com", Groups: []string{"family"}})
	before := h.Listed("ann").Generation
	link, _, err := h.Reset(ctx, operator, "ann", InvitationAge, false)
	if err != nil {
		t.Fatal(err)
	}
	if l := h.Listed("ann"); l.Generation == before || l.Email != "ann@example.com" {
		t.Errorf("%+v", l)
	}
	if err := h.try("ann", good, ann.next(t), "", ""); err != ErrCredentials {
		t.Errorf("the old password: %v", err)
	}
	again := h.accept("ann", link)
	if err := h.try("ann", good, ann.recovery[0], "", ""); err != ErrCredentials {
		t.Errorf("an old recovery code: %v", err)
	}
	if err := h.try("ann", good, again.next(t), "", ""); err != nil {
		t.Error(err)
	}
	p, err := h.Person(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(ctx, operator, "ann", p.Revision-1, false); !isStale(err) {
		t.Errorf("an older revision: %v", err)
	}
	if err := h.Remove(ctx, operator, "ann", p.Revision, false); err != nil {
		t.Fatal(err)
	}
	if h.Listed("ann") != nil {
		t.Error("still listed")
	}
	entries, _, err := h.store.Snapshot(ctx, store.PrefixPerson)
	if err != nil || len(entries) != 0 {
		t.Errorf("left in the store: %v, %v", entries, err)
	}
	// Another person of the name has none of the old sessions.
	h.add("ann", Details{})
	if h.Listed("ann").Generation == before {
		t.Error("the generation is that of an earlier person")
	}
}

func TestAddressesBelongToOnePerson(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	want := func(code string, err error) {
		t.Helper()
		if e := (*Error)(nil); !errors.As(err, &e) || e.Code != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	h.Create(ctx, operator, "ann", Details{Email: "a@example.com"}, false)
	_, err := h.Create(ctx, operator, "bob", Details{Email: "A@example.com"}, false)
	want(CodeExists, err)
	_, err = h.Create(ctx, operator, "ann", Details{}, false)
	want(CodeExists, err)
	if _, err := h.Create(ctx, operator, "bob", Details{}, true); err != nil || h.Listed("bob") != nil {
		t.Errorf("a dry run: %v", err)
	}
	if _, err := h.Create(ctx, operator, "bob", Details{}, false); err != nil {
		t.Fatal(err)
	}
	_, err = h.Change(ctx, operator, "bob", Any, Details{Email: "a@example.com"}, false)
	want(CodeExists, err)
	if _, err := h.Change(ctx, operator, "ann", Any, Details{Email: "ann@example.com"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Change(ctx, operator, "bob", Any, Details{Email: "a@example.com"}, false); err != nil {
		t.Errorf("an address that became free: %v", err)
	}
	_, err = h.Person(ctx, "eve")
	want(CodeNotFound, err)
	for _, name := range []string{"", "Ann", "a/b", "-a", "a@b", strings.Repeat("a", 65), "ä"} {
		_, err := h.Create(ctx, operator, name, Details{}, true)
		want(CodeInvalid, err)
	}
	for _, d := range []Details{{Email: "x"}, {Email: "a/b@example.com"}, {Email: "a@"}, {Groups: []string{"company/staff"}}, {Groups: []string{"A,B"}}, {FullName: "a\nb"}, {FullName: strings.Repeat("x", 257)}} {
		_, err := h.Create(ctx, operator, "new", d, true)
		want(CodeInvalid, err)
	}
}

// What one node writes counts on the others.
func TestNodesFollowEachOther(t *testing.T) {
	h := open(t)
	other := New(Options{Store: h.store})
	changed := make(chan string, 16)
	other.Start(func(name string) { changed <- name })
	t.Cleanup(other.Close)
	wait := func(what string, holds func() bool) {
		t.Helper()
		timer := time.NewTimer(20 * time.Second)
		defer timer.Stop()
		for !holds() {
			select {
			case <-changed:
			case <-timer.C:
				t.Fatalf("%s is not known on the other node", what)
			}
		}
	}
	h.add("ann", Details{})
	wait("the person", func() bool {
		l := other.Listed("ann")
		return l != nil && l.Generation == h.Listed("ann").Generation
	})
	if _, err := h.Change(t.Context(), operator, "ann", Any, Details{Disabled: true, Groups: []string{"x"}}, false); err != nil {
		t.Fatal(err)
	}
	wait("the change", func() bool { l := other.Listed("ann"); return l.Disabled && slices.Equal(l.Groups, []string{"x"}) })
	if err := h.Remove(t.Context(), operator, "ann", Any, false); err != nil {
		t.Fatal(err)
	}
	wait("the removal", func() bool { return other.Listed("ann") == nil })
}

func TestPasswordsAreChangedByTheirOwner(t *testing.T) {
	h := open(t)
	ann := h.add("ann", Details{})
	before := h.Listed("ann").Generation
	const next = "another good passphrase"
	if _, err := h.ChangePassword(t.Context(), "ann", Attempt{Password: good, Code: "123456"}, next); err != ErrCredentials {
		t.Errorf("with a wrong code: %v", err)
	}
	if _, err := h.ChangePassword(t.Context(), "ann", Attempt{Password: good, Code: ann.recovery[0]}, "short"); err == nil {
		t.Error("a short password was accepted")
	}
	in, err := h.ChangePassword(context.WithoutCancel(t.Context()), "ann", Attempt{Password: good, Code: ann.recovery[0]}, next)
	if err != nil || in.Person.Generation == before {
		t.Fatalf("%+v, %v", in, err)
	}
	if err := h.try("ann", good, ann.recovery[1], "", ""); err != ErrCredentials {
		t.Errorf("the old password: %v", err)
	}
	if err := h.try("ann", next, ann.recovery[1], "", ""); err != nil {
		t.Errorf("the new password: %v", err)
	}
}
