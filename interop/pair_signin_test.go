package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/passkey/passkeytest"
	"headgate/internal/testhouse"
)

// caller is a person whose browser reaches the sign-in page and an application at one machine
// of several, which have the same ports at addresses of their own.
type caller struct {
	*browser
	at   string   // the machine's address
	port string   // of https
	sent []string // the addresses that were opened
}

// newCaller returns a person who has not signed in.
func newCaller(t *testing.T, at string) *caller {
	t.Helper()
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	v := &caller{browser: newBrowser(t), at: host, port: port}
	v.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(v.at, v.port))
	}
	v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return v
}

func (v *caller) login(path string) string { return "https://login.example.com:" + v.port + path }
func (v *caller) wiki() string             { return "https://wiki.example.com:" + v.port + "/page" }

// goOn follows where a page leads, and notes it.
func (v *caller) goOn(p page, next string) page {
	v.t.Helper()
	for range 15 {
		if next == "" {
			return p
		}
		v.sent = append(v.sent, next)
		p, next = v.send("GET", next, nil)
	}
	v.t.Fatalf("the redirects do not end: %s", p.address)
	return p
}

// visit opens an address as the person does.
func (v *caller) visit(address string) page {
	v.t.Helper()
	return v.goOn(page{}, address)
}

var (
	formOf    = regexp.MustCompile(`(?s)<form method="?post"? action="?([^" >]*)"?(.*?)>(.*?)</form>`)
	inputOf   = regexp.MustCompile(`<input [^>]*>`)
	valueOf   = regexp.MustCompile(` (name|value)=("[^"]*"|[^ >]*)`)
	optionsOf = regexp.MustCompile(`data-options="([^"]*)"`)
	secretOf  = regexp.MustCompile(`[?&;]secret=([A-Z2-7]+)`)
)

// form returns the fields of a form of a page, and the options of its passkey.
func (v *caller) form(p page, action string) (fields url.Values, options string) {
	v.t.Helper()
	for _, f := range formOf.FindAllStringSubmatch(p.text, -1) {
		if f[1] != action {
			continue
		}
		fields = url.Values{}
		for _, in := range inputOf.FindAllString(f[3], -1) {
			a := map[string]string{}
			for _, m := range valueOf.FindAllStringSubmatch(in, -1) {
				a[m[1]] = html.UnescapeString(strings.Trim(m[2], `"`))
			}
			fields.Set(a["name"], a["value"])
		}
		if m := optionsOf.FindStringSubmatch(f[2]); m != nil {
			options = html.UnescapeString(m[1])
		}
		return fields, options
	}
	v.t.Fatalf("no form %s at %s: %d %s", action, p.address, p.status, p.text)
	return nil, ""
}

// post sends a form with values, and follows where it leads. It returns what was sent.
func (v *caller) post(path string, fields url.Values) page {
	v.t.Helper()
	return v.goOn(v.send("POST", v.login(path), fields))
}

// invited uses an invitation, and returns the secret of the authenticator.
func (v *caller) invited(link, password string, now time.Time) string {
	v.t.Helper()
	p := v.visit(link)
	fields, _ := v.form(p, "/invite")
	secret := secretOf.FindStringSubmatch(html.UnescapeString(p.text))
	if secret == nil {
		v.t.Fatalf("no authenticator at %s: %s", p.address, p.text)
	}
	fields.Set("password", password)
	fields.Set("code", testhouse.TOTP(v.t, secret[1], now))
	if p := v.post("/invite", fields); p.status != 200 {
		v.t.Fatalf("an invitation at %s: %d %s", v.at, p.status, p.text)
	}
	return secret[1]
}

// signInPair is the configuration of a pair with a gate.
const signInPair = `version: 1
admin: {address: "${ADMIN}"}
access_log: {enabled: false}
ports:
  web: {address: "${WEB}", protocol: http}
  secure: {address: "${SECURE}", protocol: https}
sign_in: {local: true}
proxies:
  count: {virtual_hosts: [count.example.com], routes: [{fixed_response: {status: 200, body: "n0"}}]}
  shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: "shop"}}]}
  login: {virtual_hosts: [login.example.com], routes: [{path: /, sign_in: {}}]}
  wiki: {virtual_hosts: [wiki.example.com], gate: {allow: ["group:family"]}, routes: [{fixed_response: {status: 200, body: "the wiki"}}]}
`

// newSignInPair makes a pair whose machines have the same port of https at two addresses.
func newSignInPair(t *testing.T, equip func(*twin)) *pairOfMachines {
	t.Helper()
	_, port, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	return newPairOf(t, signInPair, func(w *twin) {
		w.secure = map[string]string{"a": "127.0.0.1:", "b": "127.0.0.2:"}[w.name] + port
		w.inside = append(w.inside, "SECURE="+w.secure)
		if equip != nil {
			equip(w)
		}
	})
}

// TestPairSignsPeopleIn has a person sign in at the follower with an invitation, a password and a
// passkey. The leader gets what the sign-in changes, so that neither machine accepts what was
// captured a second time. While the leader is away, sessions go on and new sign-ins fail.
func TestPairSignsPeopleIn(t *testing.T) {
	t.Parallel()
	p := newSignInPair(t, nil)
	p.signIn(time.Now)
}

// signIn is the test; now is the time of the group.
func (p *pairOfMachines) signIn(now func() time.Time) {
	t := p.t
	t.Helper()
	p.b.is("follower", true)
	const good = "correct horse battery"
	p.a.manager().must(201, "POST", "/people", `{"name": "ann", "groups": ["family"]}`, "")
	link := fmt.Sprint(p.a.manager().must(201, "POST", "/people/ann/invitation", "{}", "").body["link"])
	eventually(t, "b knows the invitation", func() bool { return p.b.manager().ask("GET", "/people/ann", "", "").body["invited"] != nil })

	first := newCaller(t, p.b.secure)
	secret := first.invited(link, good, now().Add(-30*time.Second))
	for _, at := range []*twin{p.a, p.b} {
		again := newCaller(t, at.secure)
		if got := again.visit(link); strings.Contains(got.text, `action="/invite"`) {
			t.Errorf("a used invitation at %s: %d", at.name, got.status)
		}
	}

	// A password and a code, at the follower.
	ann := newCaller(t, p.b.secure)
	fields, _ := ann.form(ann.visit(ann.wiki()), "/password")
	fields.Set("login", "ann")
	fields.Set("password", good)
	fields.Set("code", testhouse.TOTP(t, secret, now()))
	if got := ann.post("/password", fields); got.text != "the wiki" {
		t.Fatalf("sign in at the follower with a password: %d %s", got.status, got.text)
	}
	p.signedInOnBoth(ann)
	p.refuses("a password with a code that was used", "/password", fields)
	codes := slices.DeleteFunc(slices.Clone(ann.sent), func(address string) bool { return !strings.Contains(address, "code=") })
	if len(codes) == 0 {
		t.Errorf("no address with a code: %q", ann.sent)
	}
	for _, address := range codes {
		for _, at := range []*twin{p.a, p.b} {
			if got, _ := newCaller(t, at.secure).send("GET", address, nil); strings.Contains(got.text, "the wiki") || got.status == 200 {
				t.Errorf("a code that was used, at %s: %d %s", at.name, got.status, got.text)
			}
		}
	}

	// A passkey, made and used at the follower.
	device := passkeytest.New(t, "login.example.com", "https://login.example.com:"+ann.port)
	ann.at, _, _ = net.SplitHostPort(p.b.secure)
	fields, options := ann.form(ann.visit(ann.login("/")), "/passkey/add")
	fields.Set("answer", string(device.Create(json.RawMessage(options))))
	ann.post("/passkey/add", fields)
	eventually(t, "the passkey is known", func() bool {
		out := p.a.manager().ask("GET", "/people/ann", "", "")
		keys, _ := out.body["passkeys"].([]any)
		return len(keys) == 1
	})
	ben := newCaller(t, p.b.secure)
	fields, options = ben.form(ben.visit(ben.wiki()), "/passkey")
	fields.Set("answer", string(device.Get(json.RawMessage(options))))
	if got := ben.post("/passkey", fields); got.text != "the wiki" {
		t.Fatalf("sign in at the follower with a passkey: %d %s", got.status, got.text)
	}
	p.signedInOnBoth(ben)
	p.refuses("the answer of a passkey that was used", "/passkey", fields)
	p.signInAlone(ben, device)
}

// signedInOnBoth waits until a session counts on both machines.
func (p *pairOfMachines) signedInOnBoth(v *caller) {
	p.t.Helper()
	for _, at := range []*twin{p.a, p.b} {
		v.at, _, _ = net.SplitHostPort(at.secure)
		eventually(p.t, "the session counts on "+at.name, func() bool {
			got, _ := v.send("GET", v.wiki(), nil)
			return got.text == "the wiki"
		})
	}
}

// refuses sends a captured form of the sign-in page to machines again.
func (p *pairOfMachines) refuses(what, path string, fields url.Values, at ...*twin) {
	p.t.Helper()
	if at == nil {
		at = []*twin{p.a, p.b}
	}
	for _, at := range at {
		thief := newCaller(p.t, at.secure)
		if got, next := thief.send("POST", thief.login(path), fields); next != "" || got.status < 400 {
			p.t.Errorf("%s, at %s: %d, to %q: %s", what, at.name, got.status, next, got.text)
		}
		if got := thief.visit(thief.wiki()); got.text == "the wiki" {
			p.t.Errorf("%s lets a browser in at %s", what, at.name)
		}
	}
}

// signInAlone goes on without the leader: with the session of a person and the person's passkey.
func (p *pairOfMachines) signInAlone(ann *caller, device *passkeytest.Device) {
	t := p.t
	t.Helper()
	p.a.crash()
	p.b.is("follower", false)
	ann.at, _, _ = net.SplitHostPort(p.b.secure)
	if got := ann.visit(ann.wiki()); got.text != "the wiki" {
		t.Errorf("a session while the leader is away: %d %s", got.status, got.text)
	}
	cid := newCaller(t, p.b.secure)
	fields, options := cid.form(cid.visit(cid.wiki()), "/passkey")
	fields.Set("answer", string(device.Get(json.RawMessage(options))))
	if got, next := cid.send("POST", cid.login("/passkey"), fields); got.status != 503 || next != "" {
		t.Errorf("sign in while the leader is away: %d, to %q: %s", got.status, next, got.text)
	}

	p.b.manager().must(200, "POST", "/pair/promote", `{"alone": true}`, "")
	p.b.is("leader", false)
	if got := cid.post("/passkey", fields); got.text != "the wiki" {
		t.Errorf("the same sign-in after the promotion, which was not used: %d %s", got.status, got.text)
	}
	p.refuses("the answer of a passkey that was used after a promotion", "/passkey", fields, p.b)
	p.a.again()
	p.a.is("follower", true)
	p.refuses("the answer of a passkey that was used on the other machine", "/passkey", fields)
}
