package basicauth

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
)

// Hashes with the least cost of "secret", "pa:ss wörd" and "bobs".
const (
	secretHash = "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$ksyymBktxhBPob64O6We0Q"
	wordHash   = "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$YtLtbUAqMY3x//P75dApsg"
	bobsHash   = "$2y$04$TQo2idYYxatW7B9EaROH8OIaoXMp3r89FD0Nxv8uT2SPbJeG/4Uga"
	bobsAPR1   = "$apr1$abcd1234$eJC6K4jxyFZ28KBmsBj.X."
)

func settings() *Config {
	return &Config{Enabled: true, Realm: `the "shop"`, Users: []User{
		{Name: "ada", PasswordHash: secretHash}, {Name: "j\u00fcrgen", PasswordHash: wordHash},
		{Name: "bob", PasswordHash: bobsHash}, {Name: "eve", PasswordHash: bobsAPR1},
	}}
}

func compile(t testing.TB, c *Config, env exchange.Env) exchange.Filter {
	t.Helper()
	f, err := Compile(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// credentials returns an Authorization field.
func credentials(pair string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
}

func with(fields ...string) exchangetest.Option { return exchangetest.Head("GET", "/", fields...) }

// filter passes a request through the filter and returns what the server gets of it.
func filter(t testing.TB, f exchange.Filter, options ...exchangetest.Option) (*exchangetest.Front, *exchange.Exchange) {
	t.Helper()
	ex := exchangetest.New(t, options...)
	return exchangetest.Run(t, ex, &exchangetest.Source{Status: 200}, f), ex
}

func TestWhoComesIn(t *testing.T) {
	f := compile(t, settings(), exchangetest.Env(t))
	const asked, bad = 401, 400
	for _, c := range []struct {
		name   string
		fields []string
		status int
		user   string
	}{
		{"argon2id", []string{credentials("ada:secret")}, 200, "ada"},
		{"again", []string{credentials("ada:secret")}, 200, "ada"},
		{"bcrypt", []string{credentials("bob:bobs")}, 200, "bob"},
		{"apr1", []string{credentials("eve:bobs")}, 200, "eve"},
		{"colon and letters beyond ASCII", []string{credentials("j\u00fcrgen:pa:ss w\u00f6rd")}, 200, "j\u00fcrgen"},
		{"decomposed letters", []string{credentials("ju\u0308rgen:pa:ss wo\u0308rd")}, 200, "j\u00fcrgen"},
		{"scheme in capitals", []string{strings.Replace(credentials("ada:secret"), "Basic ", "BASIC   ", 1)}, 200, "ada"},
		{"nothing", nil, asked, ""},
		{"empty", []string{"Authorization: "}, asked, ""},
		{"only the scheme", []string{"Authorization: Basic"}, asked, ""},
		{"wrong password", []string{credentials("ada:Secret")}, asked, ""},
		{"another's password", []string{credentials("ada:bobs")}, asked, ""},
		{"empty password", []string{credentials("ada:")}, asked, ""},
		{"unknown user", []string{credentials("mallory:secret")}, asked, ""},
		{"empty user", []string{credentials(":secret")}, asked, ""},
		{"user in capitals", []string{credentials("ADA:secret")}, asked, ""},
		{"no colon", []string{credentials("adasecret")}, asked, ""},
		{"Latin-1", []string{credentials("j\xfcrgen:pa:ss w\xf6rd")}, asked, ""},
		{"NUL", []string{credentials("ada:secret\x00")}, asked, ""},
		{"no Base64", []string{"Authorization: Basic !!!!"}, asked, ""},
		{"no padding", []string{strings.TrimRight(credentials("ada:secret"), "=")}, asked, ""},
		{"bits that say nothing", []string{"Authorization: Basic YWRhOnNlY3JldB=="}, asked, ""},
		{"something behind", []string{credentials("ada:secret") + " x"}, asked, ""},
		{"too long", []string{credentials("ada:" + strings.Repeat("x", 4000))}, asked, ""},
		{"longest", []string{credentials("ada:" + strings.Repeat("x", 1024))}, asked, ""},
		{"another scheme", []string{"Authorization: Bearer c2VjcmV0"}, asked, ""},
		{"twice", []string{credentials("ada:secret"), credentials("ada:secret")}, bad, ""},
		{"right, then wrong", []string{credentials("ada:secret"), credentials("ada:x")}, bad, ""},
	} {
		got, ex := filter(t, f, with(c.fields...), exchangetest.From("192.0.2.9"))
		if got.Status != c.status || ex.User != c.user || ex.Personal != (c.user != "") {
			t.Errorf("%s: status %d, user %q, personal %v; want %d, %q", c.name, got.Status, ex.User, ex.Personal, c.status, c.user)
		}
		if want := map[bool]string{true: `Basic realm="the \"shop\"", charset="UTF-8"`}[c.status == asked]; got.Field("WWW-Authenticate") != want {
			t.Errorf("%s: WWW-Authenticate %q, want %q", c.name, got.Field("WWW-Authenticate"), want)
		}
		if _, stays := ex.Request.Header.Lookup("Authorization"); c.status == 200 && stays {
			t.Errorf("%s: the server gets the password", c.name)
		}
		for _, secret := range []string{"secret", "bobs", "pa:ss"} {
			if strings.Contains(ex.Cause, secret) {
				t.Errorf("%s: the log tells the password: %s", c.name, ex.Cause)
			}
		}
		if got.Status == asked && got.Field("Cache-Control") != "no-store" {
			t.Errorf("%s: a 401 that may be stored", c.name)
		}
	}
}

func TestServersGetCredentialsWhenToldSo(t *testing.T) {
	set := settings()
	set.ForwardCredentials = true
	_, ex := filter(t, compile(t, set, exchangetest.Env(t)), with(credentials("ada:secret")))
	if v, _ := ex.Request.Header.Lookup("Authorization"); "Authorization: "+v != credentials("ada:secret") {
		t.Errorf("the server gets %q", v)
	}
}

// Who changes a hash or takes a user out locks the old pair out at once.
func TestVerifiedPairsGoWithTheHash(t *testing.T) {
	env := exchangetest.Env(t)
	right := with(credentials("ada:secret"))
	if got, _ := filter(t, compile(t, settings(), env), right); got.Status != 200 {
		t.Fatalf("status %d", got.Status)
	}
	changed, gone, other := settings(), settings(), settings()
	changed.Users[0].PasswordHash = bobsHash
	gone.Users = gone.Users[1:]
	other.Users[0].Name = "adam"
	for name, set := range map[string]*Config{"changed": changed, "gone": gone, "renamed": other} {
		if got, _ := filter(t, compile(t, set, env), right); got.Status != 401 {
			t.Errorf("%s: status %d, want 401", name, got.Status)
		}
	}
	if got, _ := filter(t, compile(t, changed, env), with(credentials("ada:bobs"))); got.Status != 200 {
		t.Errorf("the new password: status %d, want 200", got.Status)
	}
}

func TestVerifiedPairs(t *testing.T) {
	r := &room{users: map[string]*user{}}
	for _, u := range settings().Users {
		r.users[u.Name] = mustUser(t, u)
	}
	v, now := newVerified(), int64(time.Hour)
	scope := [scopeSize]byte{1}
	m := v.mark(&scope, "pair")
	if v.find(&m, r.users, now) != nil {
		t.Fatal("a pair nobody verified is known")
	}
	v.remember(&m, r.users["ada"], now)
	if u := v.find(&m, r.users, now+int64(verifiedFor)-1); u != r.users["ada"] {
		t.Errorf("found %v, want ada", u)
	}
	if u := v.find(&m, r.users, now+int64(verifiedFor)); u != nil {
		t.Errorf("it does not expire: %v", u)
	}
	for _, other := range []mark{v.mark(&[scopeSize]byte{2}, "pair"), v.mark(&scope, "paiR"), v.mark(&scope, ""), newVerified().mark(&scope, "pair")} {
		if v.find(&other, r.users, now) != nil {
			t.Errorf("another pair or scope, or another process's mark, counts too")
		}
	}
	// A full set gives up what expires first.
	same := make([]mark, verifiedWays+1)
	for i := range same {
		same[i] = m
		same[i][31] = byte(i)
	}
	v = newVerified()
	for i := range same {
		v.remember(&same[i], r.users["bob"], now+int64(i))
	}
	for i := range same {
		if got := v.find(&same[i], r.users, now) != nil; got != (i > 0) {
			t.Errorf("pair %d of %d is known: %v", i, len(same), got)
		}
	}
}

func TestRehearsalChecksNothing(t *testing.T) {
	f := compile(t, settings(), exchangetest.Env(t))
	rehearse := func(ex *exchange.Exchange) { ex.Rehearsal = true }
	_, ex := filter(t, f, with(credentials("ada:wrong")), rehearse)
	if ex.User != "ada" || !slices.ContainsFunc(ex.Notes, func(n string) bool { return strings.Contains(n, "would check the password of ada") }) {
		t.Errorf("user %q, notes %q", ex.User, ex.Notes)
	}
	if got, _ := filter(t, f, with(credentials("ada:wrong"))); got.Status != 401 {
		t.Errorf("what was rehearsed is believed: %d", got.Status)
	}
	for _, fields := range [][]string{nil, {credentials("mallory:secret")}, {"Authorization: Basic !"}} {
		if got, _ := filter(t, f, with(fields...), rehearse); got.Status != 401 {
			t.Errorf("%q: status %d, want 401", fields, got.Status)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	user := func(name, hash string) *Config { return &Config{Enabled: true, Users: []User{{name, hash}}} }
	for _, c := range []struct {
		name string
		set  *Config
		want string
	}{
		{"good", settings(), ""},
		{"off without users", &Config{}, ""},
		{"nobody", &Config{Enabled: true}, "basic_auth.users: basic_auth has no users"},
		{"colon", user("a:b", secretHash), "basic_auth.users[0].name: the name contains a colon"},
		{"control", user("a\nb", secretHash), "basic_auth.users[0].name: the name contains the control character U+000A"},
		{"empty", user("", secretHash), "basic_auth.users[0].name: the name is empty"},
		{"plain password", user("a", "hunter2"), "basic_auth.users[0].password_hash: not a password hash; make one with headgate hash-password"},
		{"too dear", user("a", strings.Replace(secretHash, "m=64", "m=4194304", 1)), "basic_auth.users[0].password_hash: argon2id: m=4194304 is more than 256 MiB"},
		{"one name in two forms", &Config{Enabled: true, Users: []User{{"j\u00fc", secretHash}, {"ju\u0308", secretHash}}}, "basic_auth.users[1].name: duplicate user name"},
		{"realm", &Config{Enabled: true, Realm: "a\r\nb", Users: settings().Users}, "basic_auth.realm: the realm contains characters"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("basic_auth"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzCredentials(f *testing.F) {
	f.Add("Basic YWRhOnNlY3JldA==")
	f.Add("basic  Og==")
	f.Fuzz(func(t *testing.T, value string) {
		coded, ok := basic(value)
		if !ok {
			return
		}
		if name, secret, ok := pair(coded); ok && (strings.Contains(name, ":") || len(secret) > 1024*3) {
			t.Errorf("%q: name %q, %d bytes of password", value, name, len(secret))
		}
	})
}

// BenchmarkVerified is what basic_auth adds to a request whose pair was verified.
func BenchmarkVerified(b *testing.B) {
	f := compile(b, settings(), exchangetest.Env(b))
	ex := exchangetest.New(b, with(credentials("ada:secret")))
	line := strings.TrimPrefix(credentials("ada:secret"), "Authorization: ")
	if answer := f.Request(ex); answer != nil {
		b.Fatal(answer.Cause)
	}
	conn, front, ip, now := ex.Conn, ex.Front, ex.ClientIP, exchange.Now()
	b.ReportAllocs()
	for b.Loop() {
		ex.Reset(conn, front)
		ex.ClientIP, ex.Times.Start = ip, now
		ex.Request.Header.AddField("Authorization", line)
		if f.Request(ex) != nil {
			b.Fatal("refused")
		}
	}
}
