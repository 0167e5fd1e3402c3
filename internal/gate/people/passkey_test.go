package people

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/passkey"
	"headgate/internal/passkey/passkeytest"
)

var theSite = passkey.Site{Host: "login.example.com", Origins: []string{"https://login.example.com", "https://login.example.com:8443"}, Title: "Example"}

func newDevice(t *testing.T) *passkeytest.Device {
	return passkeytest.New(t, theSite.Host, theSite.Origins[0])
}

// withPasskey adds a person who accepts the invitation with a passkey.
func (h *house) withPasskey(name string) *passkeytest.Device {
	h.t.Helper()
	ctx := h.t.Context()
	if _, err := h.Create(ctx, operator, name, Details{}, false); err != nil {
		h.t.Fatal(err)
	}
	link, _, err := h.Invite(ctx, operator, name, InvitationAge, false)
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := h.AskInvited(ctx, theSite, link)
	if err != nil {
		h.t.Fatal(err)
	}
	d := newDevice(h.t)
	in, err := h.AcceptPasskey(ctx, theSite, link, c.Session, d.Create(c.Options), netip.Addr{})
	if err != nil || in.Person.Name != name {
		h.t.Fatal(in, err)
	}
	if _, err := h.AcceptPasskey(ctx, theSite, link, c.Session, d.Create(c.Options), netip.Addr{}); err != ErrLink {
		h.t.Errorf("a link that was used: %v", err)
	}
	return d
}

func (h *house) question() passkey.Question {
	h.t.Helper()
	c, err := h.AskPasskey(theSite)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func TestPeopleSignInWithPasskeys(t *testing.T) {
	h := open(t)
	d := h.withPasskey("ann")
	ctx := t.Context()
	for _, origin := range theSite.Origins { // each that the configuration has
		c := h.question()
		d.Origin = origin
		in, err := h.Passkey(ctx, theSite, c.Session, d.Get(c.Options))
		if err != nil || in.Person.Name != "ann" || in.Method != "passkey" || in.Warning != "" {
			t.Fatalf("%+v, %v", in, err)
		}
	}
	d.Origin = theSite.Origins[0]
	p, err := h.Person(ctx, "ann")
	if err != nil || len(p.Passkeys) != 1 || p.Passkeys[0].Host != theSite.Host || p.Passkeys[0].Used.IsZero() || p.Password {
		t.Errorf("%+v, %v", p, err)
	}
	// A password does not work for a person without one.
	if err := h.try("ann", "", "", "", ""); err != ErrCredentials {
		t.Error(err)
	}
	// A second passkey, which is another one.
	second := newDevice(t)
	c, err := h.AskNewPasskey(ctx, theSite, "ann")
	if err != nil || !strings.Contains(string(c.Options), base64.RawURLEncoding.EncodeToString(d.ID)) {
		t.Fatalf("known passkeys are not excluded: %s, %v", c.Options, err)
	}
	answer := second.Create(c.Options)
	if err := h.AddPasskey(ctx, theSite, "ann", c.Session, answer, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	if err := h.AddPasskey(ctx, theSite, "ann", c.Session, answer, netip.Addr{}); err == nil {
		t.Error("a passkey was added twice")
	}
	if err := h.RemovePasskey(ctx, operator, "ann", p.Passkeys[0].ID, false); err != nil {
		t.Fatal(err)
	}
	c = h.question()
	if _, err := h.Passkey(ctx, theSite, c.Session, d.Get(c.Options)); !errors.Is(err, ErrCredentials) {
		t.Errorf("a passkey that was removed: %v", err)
	}
	c = h.question()
	if _, err := h.Passkey(ctx, theSite, c.Session, second.Get(c.Options)); err != nil {
		t.Errorf("the other passkey: %v", err)
	}
	if got := h.PasskeyHosts(); got[theSite.Host] != 1 || len(got) != 1 {
		t.Errorf("passkeys by host: %v", got)
	}
}

func TestAnswersOfPasskeysThatAreNotAccepted(t *testing.T) {
	h := open(t)
	ann, bob := h.withPasskey("ann"), h.withPasskey("bob")
	ctx := t.Context()
	for name, c := range map[string]struct {
		change func(*passkeytest.Device)
		site   passkey.Site
	}{
		"another origin":          {change: func(d *passkeytest.Device) { d.Origin = "https://evil.example" }},
		"a sibling":               {change: func(d *passkeytest.Device) { d.Origin = "https://wiki.example.com" }},
		"the parent":              {change: func(d *passkeytest.Device) { d.Origin = "https://example.com" }},
		"below the host":          {change: func(d *passkeytest.Device) { d.Origin = "https://a.login.example.com" }},
		"another port":            {change: func(d *passkeytest.Device) { d.Origin = "https://login.example.com:9999" }},
		"plain http":              {change: func(d *passkeytest.Device) { d.Origin = "http://login.example.com" }},
		"another relying party":   {change: func(d *passkeytest.Device) { d.Party = "example.com" }},
		"not verified":            {change: func(d *passkeytest.Device) { d.Flags = passkeytest.Present }},
		"not present":             {change: func(d *passkeytest.Device) { d.Flags = passkeytest.Verified }},
		"the handle of another":   {change: func(d *passkeytest.Device) { d.Handle = bob.Handle }},
		"no handle":               {change: func(d *passkeytest.Device) { d.Handle = "" }},
		"a handle that is a path": {change: func(d *passkeytest.Device) { d.Handle = "../account/ann" }},
		"another key":             {change: func(d *passkeytest.Device) { d.Key = newDevice(t).Key }},
		"another passkey":         {change: func(d *passkeytest.Device) { d.ID = bob.ID }},
		"the host has moved":      {change: func(d *passkeytest.Device) { d.Origin, d.Party = "https://new.example.com", "new.example.com" }, site: passkey.Site{Host: "new.example.com", Origins: []string{"https://new.example.com"}, Title: "x"}},
	} {
		site := theSite
		if c.site.Host != "" {
			site = c.site
		}
		q, err := h.AskPasskey(site)
		if err != nil {
			t.Fatal(err)
		}
		d := *ann
		d.Counter = 100
		c.change(&d)
		if in, err := h.Passkey(ctx, site, q.Session, d.Get(q.Options)); !errors.Is(err, ErrCredentials) {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
	for _, text := range []string{"", "{}", "null", "[]", `{"id":"x"}`, strings.Repeat("[", 1000)} {
		if _, err := h.Passkey(ctx, theSite, h.question().Session, []byte(text)); !errors.Is(err, ErrCredentials) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	// An answer is accepted once, and for its own question only.
	c, other := h.question(), h.question()
	answer := ann.Get(c.Options)
	if _, err := h.Passkey(ctx, theSite, other.Session, answer); !errors.Is(err, ErrCredentials) {
		t.Errorf("the answer to another question: %v", err)
	}
	if _, err := h.Passkey(ctx, theSite, c.Session, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Passkey(ctx, theSite, c.Session, answer); !errors.Is(err, ErrCredentials) {
		t.Errorf("an answer was accepted twice: %v", err)
	}
	if _, err := h.Change(ctx, operator, "ann", Any, Details{Disabled: true}, false); err != nil {
		t.Fatal(err)
	}
	c = h.question()
	if _, err := h.Passkey(ctx, theSite, c.Session, ann.Get(c.Options)); !errors.Is(err, ErrCredentials) {
		t.Errorf("a person who is disabled: %v", err)
	}
	// A question for a sign-in is none for a new passkey.
	c = h.question()
	if err := h.AddPasskey(ctx, theSite, "bob", c.Session, ann.Create(json.RawMessage(`{"challenge":"`+c.Session.Challenge+`","user":{"id":""}}`)), netip.Addr{}); err == nil {
		t.Error("a passkey was added with the question of a sign-in")
	}
}

// A counter that does not grow may be of a copy. It is reported, and the person gets in.
func TestACounterThatDoesNotGrowIsReported(t *testing.T) {
	h := open(t)
	d := h.withPasskey("ann")
	for i, step := range []struct {
		counter uint32
		warned  bool
	}{{10, false}, {11, false}, {5, true}, {12, false}} {
		d.Counter = step.counter
		c := h.question()
		in, err := h.Passkey(t.Context(), theSite, c.Session, d.Get(c.Options))
		if err != nil || (in.Warning != "") != step.warned {
			t.Errorf("sign-in %d: %+v, %v", i, in, err)
		}
	}
}
