package operator

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/credential"
	"headgate/internal/event"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard collects events.
type heard struct {
	sync.Mutex
	all []event.Payload
}

func (h *heard) Send(p event.Payload) {
	h.Lock()
	defer h.Unlock()
	h.all = append(h.all, p)
}

const good = "correct horse battery"

var (
	root = Identity{Name: "local:0", Role: Admin, Via: "cli"}
	home = netip.MustParseAddr("192.0.2.1")
	here = Anonymous(home, "console")
)

func open(t *testing.T) (*Operators, *memory.Store, *heard) {
	t.Helper()
	st, h := memory.NewAhead(3*time.Hour), &heard{}
	return New(Options{Store: st, Events: h, Log: slog.New(slog.DiscardHandler), SetupFile: filepath.Join(t.TempDir(), "setup")}), st, h
}

// code returns the code of an error, "" for none.
func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return "not an *Error: " + err.Error()
	}
	return ""
}

func make1(t *testing.T, o *Operators, name string, role Role) User {
	t.Helper()
	u, err := o.CreateUser(t.Context(), root, NewUser{Name: name, Role: role, Password: good}, false)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func signIn(t *testing.T, o *Operators, name string) Credentials {
	t.Helper()
	c, err := o.SignIn(t.Context(), here, SignIn{User: name, Password: good})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSignInMakesASessionOfTwoSecrets(t *testing.T) {
	o, st, h := open(t)
	make1(t, o, "ann", Editor)
	c := signIn(t, o, "ANN")
	who, err := o.BySession(t.Context(), c.Cookie, c.Header, home)
	if err != nil || who.Name != "ann" || who.Role != Editor || who.Session != c.Session.ID {
		t.Fatalf("got %+v, %v", who, err)
	}
	for name, pair := range map[string][2]string{
		"cookie alone": {c.Cookie, ""}, "header alone": {"", c.Header}, "swapped": {c.Header, c.Cookie}, "wrong header": {c.Cookie, c.Cookie},
	} {
		if _, err := o.BySession(t.Context(), pair[0], pair[1], home); code(err) != CodeSignedOut {
			t.Errorf("%s: got %v", name, err)
		}
	}
	entries, _, err := st.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	records, err := st.Page(t.Context(), store.StreamAudit, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := json.Marshal([]any{entries, records, h.all})
	for _, e := range entries {
		all = append(append(all, e.Key...), e.Value...)
	}
	for _, r := range records {
		all = append(all, r.Data...)
	}
	for _, secret := range []string{c.Cookie, c.Header, good} {
		if strings.Contains(string(all), secret) {
			t.Errorf("%q stands in the store or the events", secret)
		}
	}
	if _, ok := h.all[0].(event.AuthSignedIn); !ok || len(h.all) != 1 {
		t.Errorf("events: %+v", h.all)
	}
}

func TestSignInRefusals(t *testing.T) {
	o, _, h := open(t)
	make1(t, o, "ann", Admin)
	make1(t, o, "bob", Viewer)
	yes := true
	if _, err := o.ChangeUser(t.Context(), root, "bob", Any, UserChange{Disabled: &yes}, false); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, in := range []SignIn{{User: "ann", Password: "wrong"}, {User: "bob", Password: good}, {User: "nobody", Password: good}, {User: "../etc", Password: good}, {}} {
		_, err := o.SignIn(t.Context(), here, in)
		if code(err) != CodeSignedOut {
			t.Errorf("%+v: got %v", in, err)
		}
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("refusals can be told apart: %q", texts)
		}
	}
	if len(h.all) != 5 {
		t.Errorf("%d events", len(h.all))
	}
}

func TestTriesAreThrottledByAddressAndByUser(t *testing.T) {
	o, _, _ := open(t)
	make1(t, o, "ann", Admin)
	for range addressAttempts {
		o.throttle.try(home, "")
	}
	_, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: good})
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeThrottled || e.RetryAfter <= 0 {
		t.Errorf("by address: got %v", err)
	}
	elsewhere := Anonymous(netip.MustParseAddr("2001:db8::1"), "console")
	if _, err := o.SignIn(t.Context(), elsewhere, SignIn{User: "ann", Password: good}); err != nil {
		t.Errorf("from another address: %v", err)
	}
	for range userAttempts {
		o.throttle.try(netip.Addr{}, "ann")
	}
	stranger := Anonymous(netip.MustParseAddr("2001:db8::2"), "console")
	if _, err := o.SignIn(t.Context(), stranger, SignIn{User: "ann", Password: good}); code(err) != CodeThrottled {
		t.Errorf("by user: got %v", err)
	}
	if _, err := o.SignIn(t.Context(), elsewhere, SignIn{User: "ann", Password: good}); err != nil {
		t.Errorf("from an address that she has signed in from: %v", err)
	}
}

// Whoever tries passwords from everywhere keeps only strangers from signing in.
func TestWhoIsKnownIsNotLockedOut(t *testing.T) {
	o, _, _ := open(t)
	make1(t, o, "ann", Admin)
	signIn(t, o, "ann")
	for range o.throttle.checks.Open() { // all places are taken
		if _, ok := o.throttle.checks.Acquire(t.Context(), false); !ok {
			t.Fatal("a place is missing")
		}
	}
	if _, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: good}); err != nil {
		t.Errorf("from a known address: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	stranger := Anonymous(netip.MustParseAddr("2001:db8::2"), "console")
	if _, err := o.SignIn(soon, stranger, SignIn{User: "ann", Password: good}); code(err) != CodeOverloaded {
		t.Errorf("from another address: %v", err)
	}
}

func TestKnownAddressesAreBounded(t *testing.T) {
	k := newKnown()
	for i := range 2 * maxKnown {
		k.add(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), "ann")
	}
	if len(k.all) != maxKnown {
		t.Errorf("%d are remembered, want %d", len(k.all), maxKnown)
	}
}

func TestSignInRotatesTheSession(t *testing.T) {
	o, _, _ := open(t)
	make1(t, o, "ann", Admin)
	first := signIn(t, o, "ann")
	second, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: good, OldCookie: first.Cookie})
	if err != nil || second.Cookie == first.Cookie {
		t.Fatalf("got %v", err)
	}
	if _, err := o.BySession(t.Context(), first.Cookie, first.Header, home); code(err) != CodeSignedOut {
		t.Errorf("the cookie from before the sign-in still opens: %v", err)
	}
	if _, err := o.BySession(t.Context(), second.Cookie, second.Header, home); err != nil {
		t.Error(err)
	}
}

func TestSessionsEnd(t *testing.T) {
	role, newPassword, yes := Viewer, "another good password", true
	for name, end := range map[string]func(*Operators, Credentials) error{
		"sign-out": func(o *Operators, c Credentials) error { return o.SignOut(t.Context(), root, c.Cookie) },
		"revoked": func(o *Operators, c Credentials) error {
			return o.RevokeSession(t.Context(), root, c.Session.ID, "ann", false)
		},
		"user deleted": func(o *Operators, _ Credentials) error { return o.DeleteUser(t.Context(), root, "ann", Any, false) },
		"user made again": func(o *Operators, _ Credentials) error {
			err := o.DeleteUser(t.Context(), root, "ann", Any, false)
			make1(t, o, "ann", Admin)
			return err
		},
		"user disabled": func(o *Operators, _ Credentials) error {
			_, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Disabled: &yes}, false)
			return err
		},
		"new password": func(o *Operators, _ Credentials) error {
			_, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Password: &newPassword}, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := open(t)
			make1(t, o, "root", Admin)
			make1(t, o, "ann", Editor)
			c := signIn(t, o, "ann")
			if _, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Role: &role}, false); err != nil {
				t.Fatal(err)
			}
			if who, err := o.BySession(t.Context(), c.Cookie, c.Header, home); err != nil || who.Role != Viewer {
				t.Errorf("a new role acts at once: got %+v, %v", who, err)
			}
			if list, err := o.Sessions(t.Context(), "ann"); err != nil || len(list) != 1 || list[0].Role != Viewer {
				t.Errorf("list: %+v, %v", list, err)
			}
			if err := end(o, c); err != nil {
				t.Fatal(err)
			}
			if _, err := o.BySession(t.Context(), c.Cookie, c.Header, home); code(err) != CodeSignedOut {
				t.Errorf("the session goes on: %v", err)
			}
			if list, err := o.Sessions(t.Context(), ""); err != nil || len(list) != 0 {
				t.Errorf("list: %+v, %v", list, err)
			}
		})
	}
}

func TestSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, _ := open(t)
		o.throttle.now = func() int64 { return time.Now().UnixNano() }
		make1(t, o, "ann", Admin)
		valid := func(c Credentials) bool {
			_, err := o.BySession(t.Context(), c.Cookie, c.Header, home)
			return err == nil
		}
		idle := signIn(t, o, "ann")
		time.Sleep(sessionIdle + time.Minute)
		if valid(idle) {
			t.Error("an idle session goes on")
		}
		used := signIn(t, o, "ann")
		for range 16 {
			time.Sleep(10 * time.Hour)
			if !valid(used) {
				t.Fatal("a session that is used has ended")
			}
		}
		time.Sleep(10 * time.Hour)
		if valid(used) {
			t.Error("a session of more than 7 days goes on")
		}
	})
}

func TestSecondFactor(t *testing.T) {
	o, _, _ := open(t)
	make1(t, o, "ann", Admin)
	by := Identity{Name: "ann", Role: Admin}
	e, err := o.BeginTOTP(t.Context(), by, "ann")
	if err != nil || !strings.Contains(e.URI, e.Secret) {
		t.Fatalf("%+v, %v", e, err)
	}
	signIn(t, o, "ann") // not asked for before it is proven
	if _, err := o.FinishTOTP(t.Context(), by, "ann", "000000x"); code(err) != CodeInvalid {
		t.Errorf("a wrong code: %v", err)
	}
	current := func(shift int) string {
		return testhouse.TOTP(t, e.Secret, store.Time(o.store).Add(time.Duration(shift)*30*time.Second))
	}
	codes, err := o.FinishTOTP(t.Context(), by, "ann", current(-1))
	if err != nil || len(codes) != credential.RecoveryCodes {
		t.Fatalf("%v, %v", codes, err)
	}
	in := SignIn{User: "ann", Password: good}
	try := func(c string) string {
		in.Code = c
		_, err := o.SignIn(t.Context(), Anonymous(netip.Addr{}, "console"), in)
		return code(err)
	}
	fresh := current(0)
	for _, step := range []struct{ name, code, want string }{
		{"without a code", "", CodeTOTP},
		{"wrong code", "123", CodeSignedOut},
		{"right code", fresh, ""},
		{"the same again", fresh, CodeSignedOut},
		{"recovery code", codes[3], ""},
		{"the same recovery code again", codes[3], CodeSignedOut},
		{"another, written otherwise", strings.ToUpper(strings.ReplaceAll(codes[4], "-", " ")), ""},
	} {
		if got := try(step.code); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
	in.Password = "wrong password"
	if got := try(""); got != CodeSignedOut {
		t.Errorf("a wrong password tells of the second factor: %q", got)
	}
	if u, err := o.RemoveTOTP(t.Context(), root, "ann", false); err != nil || u.TOTP || u.RecoveryCodes != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestUsersAreChangedByTheirRevision(t *testing.T) {
	o, _, _ := open(t)
	u := make1(t, o, "ann", Admin)
	text := "on call"
	changed, err := o.ChangeUser(t.Context(), root, "ann", u.Revision, UserChange{Description: &text}, false)
	if err != nil || changed.Description != text || changed.Revision == u.Revision {
		t.Fatalf("%+v, %v", changed, err)
	}
	if _, err := o.ChangeUser(t.Context(), root, "ann", u.Revision, UserChange{Description: &text}, false); code(err) != CodeStale {
		t.Errorf("a stale revision: %v", err)
	}
	if err := o.DeleteUser(t.Context(), root, "ann", u.Revision, false); code(err) != CodeStale {
		t.Errorf("a stale revision: %v", err)
	}
	viewer := Viewer
	if _, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Role: &viewer}, false); code(err) != CodeLastAdmin {
		t.Errorf("the last admin: %v", err)
	}
	if err := o.DeleteUser(t.Context(), root, "ann", Any, false); code(err) != CodeLastAdmin {
		t.Errorf("the last admin: %v", err)
	}
	if _, err := o.CreateUser(t.Context(), root, NewUser{Name: "ann", Role: Viewer, Password: good}, false); code(err) != CodeExists {
		t.Errorf("twice: %v", err)
	}
	for _, n := range []NewUser{{Name: "Bob", Role: Viewer, Password: good}, {Name: "bob", Role: "king", Password: good}, {Name: "bob", Role: Viewer, Password: "short"}, {Role: Viewer, Password: good}} {
		if _, err := o.CreateUser(t.Context(), root, n, false); code(err) != CodeInvalid {
			t.Errorf("%+v: %v", n, err)
		}
	}
	if _, err := o.CreateUser(t.Context(), root, NewUser{Name: "dry", Role: Viewer, Password: good}, true); err != nil {
		t.Error(err)
	}
	if all, err := o.Users(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestTokens(t *testing.T) {
	o, st, _ := open(t)
	tk, text, err := o.CreateToken(t.Context(), root, Token{Name: "ci", Role: Editor, Scopes: []string{"config", "logs:read"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Expires: store.Time(o.store).Add(time.Hour)}, false)
	if err != nil || !strings.HasPrefix(text, "hg_ci_") {
		t.Fatalf("%+v, %q, %v", tk, text, err)
	}
	who, err := o.ByToken(t.Context(), text, home)
	if err != nil || who.Name != "token:ci" || who.Role != Editor {
		t.Fatalf("%+v, %v", who, err)
	}
	for area, want := range map[string][2]bool{"config": {true, true}, "logs": {true, false}, "operators": {false, false}} {
		if got := [2]bool{who.May(area, false), who.May(area, true)}; got != want {
			t.Errorf("%s: may read and write %v, want %v", area, got, want)
		}
	}
	if _, err := o.ByToken(t.Context(), text, netip.MustParseAddr("::ffff:192.0.2.9")); err != nil {
		t.Errorf("a mapped address: %v", err)
	}
	if _, err := o.ByToken(t.Context(), text, netip.MustParseAddr("198.51.100.1")); code(err) != CodeForbidden {
		t.Errorf("another address: %v", err)
	}
	for _, wrong := range []string{"", "hg_", "hg_ci_", text[:len(text)-1] + "x", strings.Replace(text, "ci", "cd", 1), strings.TrimPrefix(text, "hg_"), "hg_../user/ann_00", strings.Repeat("x", 1000)} {
		if _, err := o.ByToken(t.Context(), wrong, home); code(err) != CodeSignedOut {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if seen, err := o.Token(t.Context(), "ci"); err != nil || seen.UsedFrom != "192.0.2.1" || seen.Used.IsZero() {
		t.Errorf("%+v, %v", seen, err)
	}
	e, err := st.Get(t.Context(), store.PrefixToken+"ci")
	if err != nil || strings.Contains(string(e.Value), text) {
		t.Errorf("the token stands in the store: %v", err)
	}
	if err := o.RevokeToken(t.Context(), root, "ci", Any, false); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ByToken(t.Context(), text, home); code(err) != CodeSignedOut {
		t.Errorf("revoked: %v", err)
	}
}

func TestNobodyGivesATokenMoreThanTheyHave(t *testing.T) {
	o, _, _ := open(t)
	editor := Identity{Name: "token:x", Role: Editor, Scopes: []string{"config", "logs:read"}}
	for _, tk := range []Token{
		{Name: "a", Role: Admin, Scopes: []string{"config"}}, {Name: "a", Role: Editor}, {Name: "a", Role: Viewer, Scopes: []string{"logs"}},
		{Name: "a", Role: Viewer, Scopes: []string{"operators:read"}},
	} {
		if _, _, err := o.CreateToken(t.Context(), editor, tk, false); code(err) != CodeForbidden {
			t.Errorf("%+v: %v", tk, err)
		}
	}
	if _, _, err := o.CreateToken(t.Context(), editor, Token{Name: "a", Role: Viewer, Scopes: []string{"logs:read", "config:read"}}, false); err != nil {
		t.Error(err)
	}
	if _, _, err := o.CreateToken(t.Context(), root, Token{Name: "b", Role: Viewer, Expires: store.Time(o.store).Add(-time.Hour)}, false); code(err) != CodeInvalid {
		t.Errorf("expired: %v", err)
	}
}

func TestSetUpOnce(t *testing.T) {
	o, _, _ := open(t)
	old, err := o.NewSetup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	link, err := o.NewSetup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(o.setup)
	if data, _ := os.ReadFile(o.setup); err != nil || strings.TrimSpace(string(data)) != link || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %q, %v", data, err)
	}
	in := SignIn{User: "ann", Password: good}
	for _, wrong := range []string{old, "", "x" + link} {
		if _, err := o.SetUp(t.Context(), here, wrong, in); code(err) != CodeForbidden {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := o.SetUp(t.Context(), here, link, SignIn{User: "ann", Password: "short"}); code(err) != CodeInvalid {
		t.Errorf("a bad password: %v", err)
	}
	c, err := o.SetUp(t.Context(), here, link, in)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := o.BySession(t.Context(), c.Cookie, c.Header, home); err != nil || who.Role != Admin {
		t.Errorf("%+v, %v", who, err)
	}
	if _, err := o.SetUp(t.Context(), Anonymous(netip.Addr{}, ""), link, SignIn{User: "eve", Password: good}); code(err) != CodeForbidden {
		t.Errorf("a second time: %v", err)
	}
	if _, err := os.Stat(o.setup); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if needed, err := o.NeedsSetup(t.Context()); err != nil || needed {
		t.Errorf("%v, %v", needed, err)
	}
}

// TestEachMachineHasItsSetUpLink makes a link on each of two machines that share a store: both
// let the first person in, and the first that is used ends the other.
func TestEachMachineHasItsSetUpLink(t *testing.T) {
	st := memory.New()
	var links []string
	var machines []*Operators
	for _, node := range []string{"a", "b"} {
		o := New(Options{Store: st, Events: &heard{}, Log: slog.New(slog.DiscardHandler), Node: node})
		link, err := o.NewSetup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		links, machines = append(links, link), append(machines, o)
	}
	if _, err := machines[1].SetUp(t.Context(), here, links[0], SignIn{User: "ann", Password: good}); err != nil {
		t.Fatalf("the link of a, used at b: %v", err)
	}
	if _, err := machines[0].SetUp(t.Context(), here, links[1], SignIn{User: "eve", Password: good}); code(err) != CodeForbidden {
		t.Errorf("the link of b afterwards: %v", err)
	}
	if left, err := st.List(t.Context(), store.PrefixSetup, "", 1); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// interleaved is a store that does something before its next commit.
type interleaved struct {
	store.Store
	before func()
}

func (s *interleaved) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	return s.Store.Commit(ctx, c)
}

// TestSetUpAtTheSameMoment checks that of two requests with the same link one makes a user
// and the other gets the refusal of a used link (issue 34).
func TestSetUpAtTheSameMoment(t *testing.T) {
	st := &interleaved{Store: memory.New()}
	o := New(Options{Store: st, Events: &heard{}, Log: slog.New(slog.DiscardHandler)})
	link, err := o.NewSetup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st.before = func() {
		if _, err := o.SetUp(t.Context(), here, link, SignIn{User: "eve", Password: good}); err != nil {
			t.Errorf("the first: %v", err)
		}
	}
	if _, err := o.SetUp(t.Context(), here, link, SignIn{User: "ann", Password: good}); code(err) != CodeForbidden || !strings.Contains(err.Error(), "has been used") {
		t.Errorf("the second: %v", err)
	}
	if users, err := o.Users(t.Context()); err != nil || len(users) != 1 || users[0].Name != "eve" {
		t.Errorf("users %v, %v", users, err)
	}
}

func TestSetUpLinkExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, _ := open(t)
		o.throttle.now = func() int64 { return time.Now().UnixNano() }
		link, err := o.NewSetup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(setupAge + time.Second)
		if _, err := o.SetUp(t.Context(), here, link, SignIn{User: "ann", Password: good}); code(err) != CodeForbidden {
			t.Errorf("got %v", err)
		}
	})
}

func TestAuditTellsBeforeAndAfterWithoutSecrets(t *testing.T) {
	o, _, _ := open(t)
	make1(t, o, "ann", Admin)
	make1(t, o, "bob", Viewer)
	role, password := Editor, "a brand new secret"
	if _, err := o.ChangeUser(t.Context(), Identity{Name: "ann", Role: Admin, Via: "api", Address: home}, "bob", Any, UserChange{Role: &role, Password: &password}, false); err != nil {
		t.Fatal(err)
	}
	page, next, err := o.AuditPage(t.Context(), AuditQuery{Object: "bob", Action: "user.password"}, 0, 10)
	if err != nil || len(page) != 1 || next != 0 {
		t.Fatalf("%+v, %d, %v", page, next, err)
	}
	a := page[0]
	if a.Who != "ann" || a.Via != "api" || a.Address != "192.0.2.1" || !strings.Contains(string(a.Before), `"viewer"`) || !strings.Contains(string(a.After), `"editor"`) {
		t.Errorf("%+v", a)
	}
	for _, secret := range []string{password, "argon2", "hash"} {
		if strings.Contains(string(a.Before)+string(a.After), secret) {
			t.Errorf("%q stands in the audit", secret)
		}
	}
	first, next, err := o.AuditPage(t.Context(), AuditQuery{}, 0, 2)
	if err != nil || len(first) != 2 || next == 0 {
		t.Fatalf("%+v, %d, %v", first, next, err)
	}
	rest, _, err := o.AuditPage(t.Context(), AuditQuery{}, next, 10)
	if err != nil || len(rest) != 1 || rest[0].Object != "user ann" {
		t.Errorf("%+v, %v", rest, err)
	}
}

// full is a store that nothing can be written to.
type full struct{ *memory.Store }

func (full) Commit(context.Context, store.Change) (store.Revision, error) {
	return 0, store.ErrUnavailable
}

func TestFullDiskSaysSoAndLetsPeopleIn(t *testing.T) {
	o, st, _ := open(t)
	make1(t, o, "ann", Admin)
	c := signIn(t, o, "ann")
	o.store = full{st}
	if _, err := o.CreateUser(t.Context(), root, NewUser{Name: "bob", Role: Viewer, Password: good}, false); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := o.BySession(t.Context(), c.Cookie, c.Header, home); err != nil {
		t.Errorf("a session that is there: %v", err)
	}
}
