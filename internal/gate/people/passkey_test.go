package people

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

var theSite = Site{Host: "login.example.com", Origins: []string{"https://login.example.com", "https://login.example.com:8443"}, Title: "Example"}

// device is an authenticator with one passkey (WebAuthn, section 6).
type device struct {
	t       *testing.T
	key     *ecdsa.PrivateKey
	id      []byte
	handle  string
	party   string
	origin  string
	counter uint32
	flags   byte // of answers
}

// The flags of authenticator data: user present, user verified, attested data.
const present, verified, attested = 1, 4, 64

func newDevice(t *testing.T) *device {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	return &device{t: t, key: k, id: id, party: theSite.Host, origin: theSite.Origins[0], flags: present | verified}
}

var url64 = base64.RawURLEncoding

func (d *device) client(kind string, options json.RawMessage) []byte {
	var o struct{ Challenge string }
	if err := json.Unmarshal(options, &o); err != nil || o.Challenge == "" {
		d.t.Fatal(err, string(options))
	}
	data, err := json.Marshal(map[string]any{"type": kind, "challenge": o.Challenge, "origin": d.origin, "crossOrigin": false})
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

func (d *device) data(flags byte, more ...byte) []byte {
	sum := sha256.Sum256([]byte(d.party))
	return append(binary.BigEndian.AppendUint32(append(sum[:], flags), d.counter), more...)
}

func (d *device) write(response map[string]any) []byte {
	out, err := json.Marshal(map[string]any{"id": url64.EncodeToString(d.id), "rawId": url64.EncodeToString(d.id), "type": "public-key", "response": response, "clientExtensionResults": map[string]any{}})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// create answers the question for a new passkey.
func (d *device) create(options json.RawMessage) []byte {
	var o struct{ User struct{ ID string } }
	if err := json.Unmarshal(options, &o); err != nil {
		d.t.Fatal(err)
	}
	handle, err := url64.DecodeString(o.User.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	d.handle = string(handle)
	pub, err := d.key.PublicKey.Bytes()
	if err != nil {
		d.t.Fatal(err)
	}
	cose, err := cbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: pub[1:33], -3: pub[33:]})
	if err != nil {
		d.t.Fatal(err)
	}
	more := append(make([]byte, 16), 0, byte(len(d.id)))
	more = append(append(more, d.id...), cose...)
	object, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": d.data(d.flags|attested, more...)})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.write(map[string]any{"clientDataJSON": url64.EncodeToString(d.client("webauthn.create", options)), "attestationObject": url64.EncodeToString(object)})
}

// get answers the question for a passkey.
func (d *device) get(options json.RawMessage) []byte {
	d.counter++
	client, data := d.client("webauthn.get", options), d.data(d.flags)
	sum := sha256.Sum256(client)
	signed := sha256.Sum256(append(data[:len(data):len(data)], sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.key, signed[:])
	if err != nil {
		d.t.Fatal(err)
	}
	return d.write(map[string]any{
		"clientDataJSON": url64.EncodeToString(client), "authenticatorData": url64.EncodeToString(data), "signature": url64.EncodeToString(signature), "userHandle": url64.EncodeToString([]byte(d.handle)),
	})
}

// withPasskey adds a person who accepts the invitation with a passkey.
func (h *house) withPasskey(name string) *device {
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
	in, err := h.AcceptPasskey(ctx, theSite, link, c.Session, d.create(c.Options), netip.Addr{})
	if err != nil || in.Person.Name != name {
		h.t.Fatal(in, err)
	}
	if _, err := h.AcceptPasskey(ctx, theSite, link, c.Session, d.create(c.Options), netip.Addr{}); err != ErrLink {
		h.t.Errorf("a link that was used: %v", err)
	}
	return d
}

func (h *house) question() Ceremony {
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
		d.origin = origin
		in, err := h.Passkey(ctx, theSite, c.Session, d.get(c.Options))
		if err != nil || in.Person.Name != "ann" || in.Method != "passkey" || in.Warning != "" {
			t.Fatalf("%+v, %v", in, err)
		}
	}
	d.origin = theSite.Origins[0]
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
	if err != nil || !strings.Contains(string(c.Options), url64.EncodeToString(d.id)) {
		t.Fatalf("known passkeys are not excluded: %s, %v", c.Options, err)
	}
	answer := second.create(c.Options)
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
	if _, err := h.Passkey(ctx, theSite, c.Session, d.get(c.Options)); !errors.Is(err, ErrCredentials) {
		t.Errorf("a passkey that was removed: %v", err)
	}
	c = h.question()
	if _, err := h.Passkey(ctx, theSite, c.Session, second.get(c.Options)); err != nil {
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
		change func(*device)
		site   Site
	}{
		"another origin":          {change: func(d *device) { d.origin = "https://evil.example" }},
		"a sibling":               {change: func(d *device) { d.origin = "https://wiki.example.com" }},
		"the parent":              {change: func(d *device) { d.origin = "https://example.com" }},
		"below the host":          {change: func(d *device) { d.origin = "https://a.login.example.com" }},
		"another port":            {change: func(d *device) { d.origin = "https://login.example.com:9999" }},
		"plain http":              {change: func(d *device) { d.origin = "http://login.example.com" }},
		"another relying party":   {change: func(d *device) { d.party = "example.com" }},
		"not verified":            {change: func(d *device) { d.flags = present }},
		"not present":             {change: func(d *device) { d.flags = verified }},
		"the handle of another":   {change: func(d *device) { d.handle = bob.handle }},
		"no handle":               {change: func(d *device) { d.handle = "" }},
		"a handle that is a path": {change: func(d *device) { d.handle = "../account/ann" }},
		"another key":             {change: func(d *device) { d.key = newDevice(t).key }},
		"another passkey":         {change: func(d *device) { d.id = bob.id }},
		"the host has moved":      {change: func(d *device) { d.origin, d.party = "https://new.example.com", "new.example.com" }, site: Site{Host: "new.example.com", Origins: []string{"https://new.example.com"}, Title: "x"}},
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
		d.counter = 100
		c.change(&d)
		if in, err := h.Passkey(ctx, site, q.Session, d.get(q.Options)); !errors.Is(err, ErrCredentials) {
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
	answer := ann.get(c.Options)
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
	if _, err := h.Passkey(ctx, theSite, c.Session, ann.get(c.Options)); !errors.Is(err, ErrCredentials) {
		t.Errorf("a person who is disabled: %v", err)
	}
	// A question for a sign-in is none for a new passkey.
	c = h.question()
	if err := h.AddPasskey(ctx, theSite, "bob", c.Session, ann.create(json.RawMessage(`{"challenge":"`+c.Session.Challenge+`","user":{"id":""}}`)), netip.Addr{}); err == nil {
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
		d.counter = step.counter
		c := h.question()
		in, err := h.Passkey(t.Context(), theSite, c.Session, d.get(c.Options))
		if err != nil || (in.Warning != "") != step.warned {
			t.Errorf("sign-in %d: %+v, %v", i, in, err)
		}
	}
}
