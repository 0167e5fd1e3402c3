package operator

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/event"
	"headgate/internal/passkey"
	"headgate/internal/passkey/passkeytest"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

var console = passkey.Site{Host: "gate.example.com", Origins: []string{"https://gate.example.com:9080"}, Title: "headgate"}

func newDevice(t *testing.T) *passkeytest.Device {
	return passkeytest.New(t, console.Host, console.Origins[0])
}

// addPasskey gives a user a passkey.
func addPasskey(t *testing.T, o *Operators, user string) (*passkeytest.Device, passkey.Passkey) {
	t.Helper()
	q, err := o.AskNewPasskey(t.Context(), console, user)
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(t)
	p, err := o.AddPasskey(t.Context(), root, console, user, "Phone", PasskeyAnswer{Sealed: q.Sealed, Answer: d.Create(q.Options)})
	if err != nil {
		t.Fatal(err)
	}
	return d, p
}

// withPasskey signs in with the passkey of a device.
func withPasskey(t *testing.T, o *Operators, d *passkeytest.Device, from Identity) (Credentials, error) {
	t.Helper()
	q, err := o.AskPasskey(console)
	if err != nil {
		t.Fatal(err)
	}
	return o.SignInPasskey(t.Context(), from, console, PasskeyAnswer{Sealed: q.Sealed, Answer: d.Get(q.Options)})
}

func TestAPasskeyReplacesPasswordAndCode(t *testing.T) {
	o, _, h := open(t)
	make1(t, o, "ann", Editor)
	e, err := o.BeginTOTP(t.Context(), root, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.FinishTOTP(t.Context(), root, "ann", testhouse.TOTP(t, e.Secret, store.Time(o.store))); err != nil {
		t.Fatal(err)
	}
	phone, p := addPasskey(t, o, "ann")
	if p.Name != "Phone" || p.Host != console.Host || p.ID == "" {
		t.Errorf("got %+v", p)
	}
	tablet, _ := addPasskey(t, o, "ann") // several
	for _, d := range []*passkeytest.Device{phone, tablet} {
		c, err := withPasskey(t, o, d, here)
		if err != nil {
			t.Fatal(err)
		}
		who, err := o.BySession(t.Context(), c.Cookie, c.Header, home)
		if err != nil || who.Name != "ann" || who.Role != Editor || c.Session.Method != "passkey" || !o.SignedInWithPasskey(t.Context(), c.Cookie) {
			t.Fatalf("got %+v, %+v, %v", who, c.Session, err)
		}
	}
	u, err := o.User(t.Context(), "ann")
	if err != nil || len(u.Passkeys) != 2 || u.Passkeys[0].Used.IsZero() || u.SignedIn.IsZero() {
		t.Errorf("got %+v, %v", u, err)
	}
	// The session and the user show nothing that the other could use.
	shown, _ := json.Marshal([]any{u, h.all})
	if strings.Contains(string(shown), phone.Handle) || strings.Contains(string(shown), "credential") {
		t.Errorf("secrets are shown: %s", shown)
	}
	password := signInTOTP(t, o, e.Secret)
	if o.SignedInWithPasskey(t.Context(), password) {
		t.Error("a session with a password passes for one with a passkey")
	}
}

func signInTOTP(t *testing.T, o *Operators, secret string) string {
	t.Helper()
	c, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: good, Code: testhouse.TOTP(t, secret, store.Time(o.store).Add(30*time.Second))})
	if err != nil {
		t.Fatal(err)
	}
	return c.Cookie
}

func TestAnswersOfPasskeysOfOperatorsThatAreNotAccepted(t *testing.T) {
	for name, change := range map[string]func(ann, ben *passkeytest.Device){
		"another origin":        func(ann, _ *passkeytest.Device) { ann.Origin = "https://evil.example" },
		"another port":          func(ann, _ *passkeytest.Device) { ann.Origin = "https://gate.example.com" },
		"a sibling":             func(ann, _ *passkeytest.Device) { ann.Origin = "https://wiki.example.com:9080" },
		"below the host":        func(ann, _ *passkeytest.Device) { ann.Origin = "https://a.gate.example.com:9080" },
		"plain http":            func(ann, _ *passkeytest.Device) { ann.Origin = "http://gate.example.com:9080" },
		"another relying party": func(ann, _ *passkeytest.Device) { ann.Party = "example.com" },
		"not verified":          func(ann, _ *passkeytest.Device) { ann.Flags = passkeytest.Present },
		"not present":           func(ann, _ *passkeytest.Device) { ann.Flags = passkeytest.Verified },
		"the handle of another": func(ann, ben *passkeytest.Device) { ann.Handle = ben.Handle },
		"no handle":             func(ann, _ *passkeytest.Device) { ann.Handle = "" },
		"an unknown handle":     func(ann, _ *passkeytest.Device) { ann.Handle = passkey.NewHandle() },
		"another key":           func(ann, ben *passkeytest.Device) { ann.Key = ben.Key },
		"an unknown passkey":    func(ann, _ *passkeytest.Device) { ann.ID = []byte("another passkey!") },
	} {
		t.Run(name, func(t *testing.T) {
			o, _, h := open(t)
			make1(t, o, "ann", Admin)
			make1(t, o, "ben", Admin)
			ann, _ := addPasskey(t, o, "ann")
			ben, _ := addPasskey(t, o, "ben")
			change(ann, ben)
			if _, err := withPasskey(t, o, ann, here); code(err) != CodeSignedOut {
				t.Errorf("got %v", err)
			}
			if e, ok := h.all[len(h.all)-1].(event.AuthFailed); !ok || e.Method != "passkey" {
				t.Errorf("got %+v, want an event", h.all)
			}
		})
	}
	o, _, _ := open(t)
	make1(t, o, "ann", Admin)
	d, _ := addPasskey(t, o, "ann")
	for i, text := range []string{"", "{}", "null", "[]", `{"id":"x"}`, strings.Repeat("[", 1000)} {
		q, _ := o.AskPasskey(console)
		from := here
		from.Address = home.Next()
		for range i {
			from.Address = from.Address.Next()
		}
		if _, err := o.SignInPasskey(t.Context(), from, console, PasskeyAnswer{Sealed: q.Sealed, Answer: []byte(text)}); code(err) != CodeSignedOut {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	// A question is answered once, and by its own answer only.
	q, other := question(t, o), question(t, o)
	answer := d.Get(q.Options)
	if _, err := o.SignInPasskey(t.Context(), here, console, PasskeyAnswer{Sealed: other.Sealed, Answer: answer}); code(err) != CodeSignedOut {
		t.Errorf("the answer to another question: %v", err)
	}
	if _, err := o.SignInPasskey(t.Context(), here, console, PasskeyAnswer{Sealed: q.Sealed, Answer: answer}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.SignInPasskey(t.Context(), here, console, PasskeyAnswer{Sealed: q.Sealed, Answer: answer}); code(err) != CodeSignedOut {
		t.Errorf("an answer was accepted twice: %v", err)
	}
	// A question for a new passkey is none of a sign-in, nor of another user.
	create, err := o.AskNewPasskey(t.Context(), console, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.SignInPasskey(t.Context(), here, console, PasskeyAnswer{Sealed: create.Sealed, Answer: d.Get(create.Options)}); code(err) != CodeInvalid {
		t.Errorf("the question for a new passkey: %v", err)
	}
	make1(t, o, "ben", Admin)
	if _, err := o.AddPasskey(t.Context(), root, console, "ben", "x", PasskeyAnswer{Sealed: create.Sealed, Answer: newDevice(t).Create(create.Options)}); code(err) != CodeInvalid {
		t.Errorf("the question of another user: %v", err)
	}
	if _, err := o.AddPasskey(t.Context(), root, console, "ann", " \n", PasskeyAnswer{Sealed: create.Sealed, Answer: newDevice(t).Create(create.Options)}); code(err) != CodeInvalid {
		t.Errorf("a passkey without a name: %v", err)
	}
	fresh := newDevice(t).Create(create.Options)
	if _, err := o.AddPasskey(t.Context(), root, console, "ann", "Key", PasskeyAnswer{Sealed: create.Sealed, Answer: fresh}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.AddPasskey(t.Context(), root, console, "ann", "Key", PasskeyAnswer{Sealed: create.Sealed, Answer: fresh}); err == nil {
		t.Error("a passkey was added twice")
	}
}

func question(t *testing.T, o *Operators) PasskeyQuestion {
	t.Helper()
	q, err := o.AskPasskey(console)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestARemovedPasskeyOpensNothing(t *testing.T) {
	o, st, _ := open(t)
	make1(t, o, "ann", Admin)
	phone, p := addPasskey(t, o, "ann")
	key, _ := addPasskey(t, o, "ann")
	lost, err := withPasskey(t, o, phone, here)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := withPasskey(t, o, key, here)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := o.RemovePasskey(t.Context(), root, "ann", p.ID, true); err != nil || len(u.Passkeys) != 1 {
		t.Errorf("dry: %+v, %v", u, err)
	}
	if _, err := o.RemovePasskey(t.Context(), root, "ann", p.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := o.RemovePasskey(t.Context(), root, "ann", p.ID, false); code(err) != CodeNotFound {
		t.Errorf("again: %v", err)
	}
	if _, err := withPasskey(t, o, phone, here); code(err) != CodeSignedOut {
		t.Errorf("a removed passkey: %v", err)
	}
	if _, err := o.BySession(t.Context(), lost.Cookie, lost.Header, home); code(err) != CodeSignedOut {
		t.Errorf("its session goes on: %v", err)
	}
	if _, err := o.BySession(t.Context(), kept.Cookie, kept.Header, home); err != nil {
		t.Errorf("the session of the other passkey: %v", err)
	}
	off := true
	if _, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Disabled: &off}, false); code(err) != CodeLastAdmin {
		t.Fatal(err)
	}
	make1(t, o, "ben", Admin)
	if _, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Disabled: &off}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := withPasskey(t, o, key, here); code(err) != CodeSignedOut {
		t.Errorf("a disabled user: %v", err)
	}
	if u, err := o.RemovePasskey(t.Context(), root, "ann", "", false); err != nil || len(u.Passkeys) != 0 {
		t.Errorf("all: %+v, %v", u, err)
	}
	records, err := st.Page(t.Context(), store.StreamAudit, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := json.Marshal(records)
	actions := map[string]int{}
	for _, r := range records {
		var a Audited
		if json.Unmarshal(r.Data, &a) == nil {
			actions[a.Action]++
		}
	}
	if actions["user.passkey_add"] != 2 || actions["user.passkey_remove"] != 2 || strings.Contains(string(all), phone.Handle) {
		t.Errorf("audit: %v", actions)
	}
}

// A counter that does not grow may be of a copy. It is reported, and the operator gets in.
func TestACounterOfAnOperatorThatDoesNotGrowIsReported(t *testing.T) {
	o, _, h := open(t)
	make1(t, o, "ann", Admin)
	d, _ := addPasskey(t, o, "ann")
	for i, step := range []struct {
		counter uint32
		warned  bool
	}{{10, false}, {11, false}, {5, true}, {12, false}} {
		d.Counter = step.counter
		if _, err := withPasskey(t, o, d, here); err != nil {
			t.Fatalf("sign-in %d: %v", i, err)
		}
		if e, ok := h.all[len(h.all)-1].(event.AuthSignedIn); !ok || (e.Warning != "") != step.warned {
			t.Errorf("sign-in %d: %+v", i, h.all[len(h.all)-1])
		}
	}
}

// Answers count among the attempts of an address, and questions keep nothing.
func TestGuessesWithPasskeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, st, _ := open(t)
		o.throttle.now = func() int64 { return time.Now().UnixNano() }
		make1(t, o, "ann", Admin)
		d, _ := addPasskey(t, o, "ann")
		before, _, _ := st.Snapshot(t.Context(), "")
		for range 1000 {
			question(t, o)
		}
		if after, _, _ := st.Snapshot(t.Context(), ""); len(after) != len(before) {
			t.Errorf("%d questions: %d entries, want %d", 1000, len(after), len(before))
		}
		wrong := *d
		wrong.Key = newDevice(t).Key
		for i := range addressAttempts {
			if _, err := withPasskey(t, o, &wrong, here); code(err) != CodeSignedOut {
				t.Fatalf("attempt %d: %v", i, err)
			}
		}
		if _, err := withPasskey(t, o, d, here); code(err) != CodeThrottled {
			t.Errorf("after %d attempts: %v", addressAttempts, err)
		}
		if _, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: good}); code(err) != CodeThrottled {
			t.Errorf("a password after %d attempts: %v", addressAttempts, err)
		}
		if _, err := withPasskey(t, o, d, Anonymous(home.Next(), "console")); err != nil {
			t.Errorf("the owner elsewhere: %v", err)
		}
		// A question has an end.
		q := question(t, o)
		time.Sleep(passkey.CeremonyAge + time.Second)
		if _, err := o.SignInPasskey(t.Context(), here, console, PasskeyAnswer{Sealed: q.Sealed, Answer: d.Get(q.Options)}); code(err) != CodeInvalid {
			t.Errorf("an old question: %v", err)
		}
	})
}

// While the shared store is away, an answer cannot be marked as used.
func TestAwayStoreAcceptsNoPasskey(t *testing.T) {
	o, st := openShared(t)
	make1(t, o, "ann", Admin)
	d, _ := addPasskey(t, o, "ann")
	st.away = true
	if _, err := withPasskey(t, o, d, here); code(err) != CodeStore {
		t.Errorf("got %v, want %s", err, CodeStore)
	}
	st.away = false
	if _, err := withPasskey(t, o, d, here); err != nil {
		t.Error(err)
	}
}
