package control

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate/internal/gate/people"
	"headgate/internal/testhouse"
)

const passphrase = "correct horse battery"

var theOperator = people.By{Name: "op"}

// startLocal is a gated headgate at which people kept by headgate can sign in, too.
func startLocal(t *testing.T) *gated {
	t.Helper()
	g := startGated(t)
	g.reconfigure(strings.NewReplacer("sign_in:\n  providers", "sign_in:\n  local: true\n  providers",
		"chiefs.example.com]\n    gate: {allow: [group:company/chiefs]}", "chiefs.example.com]\n    gate: {allow: [group:family, \"person:bob\"]}"))
	return g
}

// reconfigure applies the configuration with replacements.
func (g *gated) reconfigure(r *strings.Replacer) {
	g.t.Helper()
	text := r.Replace(g.config(""))
	write(g.t, g.file, text)
	g.apply(text)
}

// invite adds a person and returns the address of the invitation.
func (g *gated) invite(name string, d people.Details) string {
	g.t.Helper()
	all := g.c.Gate().People()
	if _, err := all.Create(g.t.Context(), theOperator, name, d, false); err != nil {
		g.t.Fatal(err)
	}
	link, _, err := all.Invite(g.t.Context(), theOperator, name, time.Hour, false)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.at("login", "/invite?link="+link)
}

var (
	hiddenField = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"/>`)
	shownSecret = regexp.MustCompile(`<code>([A-Z2-7 ]{30,})</code>`)
	shownCode   = regexp.MustCompile(`<code>([a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4})</code>`)
)

// fields returns the hidden fields of a page with more.
func (r reply) fields(more ...string) url.Values {
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(r.text, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

// send posts a form to the sign-in page as its own pages do.
func (b *browser) send(path string, form url.Values) reply {
	b.t.Helper()
	return b.do("POST", b.at("login", path), form.Encode(), "Origin", b.at("login", ""), "Accept-Language", "en", "Accept", "text/html")
}

// local is a person with what they sign in with.
type localPerson struct {
	name     string
	recovery []string
}

func (l *localPerson) code() (code string) {
	code, l.recovery = l.recovery[0], l.recovery[1:]
	return code
}

// accept opens an invitation and chooses a password and an authenticator.
func (b *browser) accept(name, address string) *localPerson {
	b.t.Helper()
	page := b.get(address)
	m := shownSecret.FindStringSubmatch(page.text)
	if m == nil || page.StatusCode != 200 || !strings.Contains(page.text, `<svg class="qr"`) {
		b.t.Fatalf("status %d: %s", page.StatusCode, page.text)
	}
	code := testhouse.TOTP(b.t, strings.ReplaceAll(m[1], " ", ""), time.Now())
	done := b.send("/invite", page.fields("password", passphrase, "code", code))
	done.want(b.t, 200, "Recovery codes")
	l := &localPerson{name: name}
	for _, m := range shownCode.FindAllStringSubmatch(done.text, -1) {
		l.recovery = append(l.recovery, m[1])
	}
	if len(l.recovery) != 10 {
		b.t.Fatal(done.text)
	}
	return l
}

// password signs in at the page that an address leads to, and returns where that ends.
func (b *browser) password(address, login, password, code string) reply {
	b.t.Helper()
	page := b.follow(address)
	r := b.send("/password", page.fields("login", login, "password", password, "code", code))
	if to := r.next(); to != "" {
		return b.follow(to)
	}
	return r
}

func TestPeopleKeptByHeadgateSignIn(t *testing.T) {
	g := startLocal(t)
	link := g.invite("ann", people.Details{FullName: "Ann <b>", Email: "ann@example.com", Groups: []string{"family"}})
	first := g.browser()
	first.get(link).want(t, 200, "Welcome, Ann &lt;b&gt;", `autocomplete="new-password"`)
	ann := first.accept("ann", link)
	first.follow(g.at("chiefs", "/x")).want(t, 200, "GET /x\n", "Remote-User: ann\n", "Remote-Email: ann@example.com\n", "Remote-Groups: family\n", "!Cookie")
	first.get(link).want(t, 403, "This link is not valid") // it was used

	other := g.browser()
	page := other.follow(g.at("chiefs", "/page?x=1"))
	page.want(t, 200, "Sign in to open chiefs.example.com.", `autocomplete="current-password"`, `autocomplete="one-time-code"`, "Continue with company")
	for _, wrong := range [][3]string{{"ann", passphrase, "123456"}, {"ann", "wrong " + passphrase, ann.recovery[0]}, {"eve", passphrase, "123456"}} {
		r := other.send("/password", page.fields("login", wrong[0], "password", wrong[1], "code", wrong[2]))
		r.want(t, 403, "The name, the password or the code is wrong.", `value="`+wrong[0]+`"`, "!"+passphrase, "Sign in to open chiefs.example.com.")
	}
	r := other.password(g.at("chiefs", "/page?x=1"), "Ann@Example.com", passphrase, ann.code())
	r.want(t, 200, "GET /page\n", "Remote-User: ann\n")
	if got := r.Request.URL.String(); got != g.at("chiefs", "/page?x=1") {
		t.Errorf("came back to %s", got)
	}
	// Neither page has the password, and no code works twice.
	again := g.browser()
	used := ann.recovery[0]
	again.password(g.at("wiki", "/"), "ann", passphrase, ann.code()).want(t, 200, "GET /\n") // person:ann@example.com
	g.browser().password(g.at("wiki", "/"), "ann", passphrase, used).want(t, 403, "is wrong")
	// Groups of a provider are not those of headgate.
	company := g.browser()
	r = company.follow(g.at("chiefs", "/"))
	company.signInBelow(r, "eve", "family").want(t, 403, "You may not open chiefs.example.com")
}

// signInBelow signs in through the provider whose link is below the form.
func (b *browser) signInBelow(r reply, name string, groups ...string) reply {
	b.t.Helper()
	m := regexp.MustCompile(`class="button plain" href="([^"]*)"`).FindStringSubmatch(r.text)
	if m == nil {
		b.t.Fatal(r.text)
	}
	b.queue(name, groups...)
	u, err := r.Request.URL.Parse(html.UnescapeString(m[1]))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.follow(u.String())
}

func TestAFormOfAnotherOriginSignsNobodyIn(t *testing.T) {
	g := startLocal(t)
	link := g.invite("ann", people.Details{Groups: []string{"family"}})
	b := g.browser()
	page := b.get(link)
	ann := b.accept("ann", link)
	form := url.Values{"login": {"ann"}, "password": {passphrase}, "code": {ann.recovery[0]}}.Encode()
	for _, origin := range []string{"https://evil.example", "null", "https://login.example.com", "http://login.example.com:" + g.port, g.at("chiefs", "")} {
		b.do("POST", g.at("login", "/password"), form, "Origin", origin).want(t, 403, "another page")
		b.do("POST", g.at("login", "/invite"), page.fields("password", passphrase, "code", "123456").Encode(), "Origin", origin).want(t, 403, "another page")
	}
	b.do("POST", g.at("login", "/password"), form).want(t, 403, "another page") // old browsers send none
	b.do("GET", g.at("login", "/password?"+form), "").want(t, 404)
	b.do("POST", "http://login.example.com:"+g.plain+"/password", form, "Origin", "http://login.example.com:"+g.plain).want(t, 403, "HTTPS")
	// The secret of an authenticator counts for its link only.
	other := g.browser()
	bob := other.get(g.invite("bob", people.Details{}))
	stolen := bob.fields("password", passphrase, "code", "123456")
	stolen.Set("totp", page.fields().Get("totp"))
	other.send("/invite", stolen).want(t, 403, "This link is not valid")
}

// Whoever guesses at an account keeps its owner out of no browser that is known.
func TestAKnownBrowserIsNeverLockedOut(t *testing.T) {
	g := startLocal(t)
	b := g.browser()
	ann := b.accept("ann", g.invite("ann", people.Details{Groups: []string{"family"}}))
	b.send("/sign-out", url.Values{}).want(t, 200, "Signed out")
	thief := g.browser()
	page := thief.follow(g.at("chiefs", "/"))
	for range 10 {
		thief.send("/password", page.fields("login", "ann", "password", "wrong horse 7", "code", "123456")).want(t, 403, "is wrong")
	}
	r := thief.send("/password", page.fields("login", "ann", "password", passphrase, "code", ann.recovery[0]))
	r.want(t, 429, "Too many sign-ins have failed")
	// The cookie of a known browser is headgate's own: it cannot be made.
	thief.client.Jar.SetCookies(page.Request.URL, []*http.Cookie{{Name: "__Host-headgate-known", Value: "x", Path: "/", Secure: true}})
	thief.send("/password", page.fields("login", "ann", "password", passphrase, "code", ann.recovery[0])).want(t, 429)
	b.password(g.at("chiefs", "/"), "ann", passphrase, ann.code()).want(t, 200, "Remote-User: ann\n")
}

func TestChangesOfAPersonCountInRunningSessions(t *testing.T) {
	g := startLocal(t)
	all, ctx := g.c.Gate().People(), t.Context()
	b := g.browser()
	ann := b.accept("ann", g.invite("ann", people.Details{Groups: []string{"family"}}))
	b.follow(g.at("chiefs", "/")).want(t, 200, "Remote-Groups: family\n")
	change := func(d people.Details) {
		t.Helper()
		if _, err := all.Change(ctx, theOperator, "ann", people.Any, d, false); err != nil {
			t.Fatal(err)
		}
	}
	change(people.Details{Groups: []string{"family", "more"}})
	b.get(g.at("chiefs", "/")).want(t, 200, "Remote-Groups: family,more\n")
	change(people.Details{Groups: []string{"more"}})
	b.get(g.at("chiefs", "/")).want(t, 403, "You may not open")
	change(people.Details{Groups: []string{"family"}})
	b.get(g.at("chiefs", "/")).want(t, 200)
	g.house = g.house.again() // sessions and people outlive a restart
	b.get(g.at("chiefs", "/")).want(t, 200, "Remote-User: ann\n")
	all = g.c.Gate().People()

	change(people.Details{Groups: []string{"family"}, Disabled: true})
	b.get(g.at("chiefs", "/")).want(t, 302)
	b.password(g.at("chiefs", "/"), "ann", passphrase, ann.recovery[0]).want(t, 403, "is wrong")
	change(people.Details{Groups: []string{"family"}})
	b.get(g.at("chiefs", "/")).want(t, 302) // the session has ended for good
	b.password(g.at("chiefs", "/"), "ann", passphrase, ann.code()).want(t, 200)
	link, _, err := all.Reset(ctx, theOperator, "ann", time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	b.get(g.at("chiefs", "/")).want(t, 302)
	b.accept("ann", g.at("login", "/invite?link="+link))
	b.follow(g.at("chiefs", "/")).want(t, 200)
	if err := all.Remove(ctx, theOperator, "ann", people.Any, false); err != nil {
		t.Fatal(err)
	}
	b.get(g.at("chiefs", "/")).want(t, 302)
	// A new person of the same name has no session.
	g.invite("ann", people.Details{Groups: []string{"family"}})
	b.get(g.at("chiefs", "/")).want(t, 302)

	// Without local people sessions do not count, and count again with them.
	bob := g.browser()
	bob.accept("bob", g.invite("bob", people.Details{}))
	bob.follow(g.at("chiefs", "/")).want(t, 200, "Remote-User: bob\n")
	g.reconfigure(strings.NewReplacer())
	bob.get(g.at("wiki", "/")).want(t, 302)
	bob.follow(g.at("wiki", "/")).want(t, 200, "Continue with company", "!current-password")
}

// The start page has the applications that a person may open, and no others.
func TestTheStartPageHasThePersonsApplications(t *testing.T) {
	g := startLocal(t)
	b := g.browser()
	b.accept("ann", g.invite("ann", people.Details{Email: "ann@example.com"}))
	b.follow(g.at("login", "/")).want(t, 200, `href="`+g.at("wiki", "/")+`"`, "!"+g.at("chiefs", "/"), "!"+g.at("open", "/"), "Add a passkey")
	bob := g.browser()
	bob.accept("bob", g.invite("bob", people.Details{}))
	bob.follow(g.at("login", "/")).want(t, 200, `href="`+g.at("chiefs", "/")+`"`, "!"+g.at("wiki", "/"))
}

// The pages with passkeys have one script, which the policy names by its digest, and work
// without it.
func TestPagesForPasskeysHaveAStrictPolicy(t *testing.T) {
	g := startLocal(t)
	b := g.browser()
	for _, page := range []reply{b.follow(g.at("login", "/")), b.get(g.invite("ann", people.Details{}))} {
		m := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(page.text, -1)
		if len(m) != 1 {
			t.Fatalf("%d scripts", len(m))
		}
		sum := sha256.Sum256([]byte(m[0][1]))
		policy := page.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || strings.Contains(policy, "unsafe") {
			t.Errorf("policy %q", policy)
		}
		if !strings.Contains(page.text, `hidden data-options`) && !strings.Contains(page.text, ` hidden`) {
			t.Error("without scripts the form for passkeys is shown")
		}
	}
	// An answer without a question, and one for another page, sign nobody in.
	page := b.follow(g.at("login", "/"))
	for _, form := range []url.Values{{}, {"question": {"x"}, "answer": {"{}"}}, {"question": {page.fields().Get("question")}, "answer": {"{}"}}} {
		b.send("/passkey", form).want(t, 403, "failed")
		b.send("/invite/passkey", form).want(t, 403)
		if r := b.send("/passkey/add", form); r.StatusCode != 303 || r.Header.Get("Location") != "/" {
			t.Errorf("a passkey without a session: %d", r.StatusCode)
		}
	}
	b.do("POST", g.at("login", "/passkey"), "", "Origin", "https://evil.example").want(t, 403, "another page")
}

// For the day on which a provider is down, an operator lets everyone in for a while.
func TestAnOperatorOpensAGate(t *testing.T) {
	g := startLocal(t)
	b := g.browser()
	b.get(g.at("chiefs", "/")).want(t, 302)
	if _, err := g.c.Gate().Open("chiefs.example.com", time.Hour, "op", "the provider is down", nil, false); err != nil {
		t.Fatal(err)
	}
	b.do("GET", g.at("chiefs", "/x"), "", "Remote-User", "ann").want(t, 200, "GET /x\n", "!Remote-User")
	b.get(g.at("wiki", "/")).want(t, 302)                        // others stay closed
	b.get("http://chiefs.example.com:"+g.plain+"/").want(t, 302) // and plain http goes to https
	g.house = g.house.again()
	b.get(g.at("chiefs", "/")).want(t, 200)
	if found, err := g.c.Gate().CloseOpening("chiefs.example.com", "op", nil, false); !found || err != nil {
		t.Fatal(found, err)
	}
	b.get(g.at("chiefs", "/")).want(t, 302)
}
