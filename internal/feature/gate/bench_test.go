package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"headgate/internal/credential"
	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/gate"
	"headgate/internal/gate/provider"
	"headgate/internal/proto/header"
	"headgate/internal/setting/unit"
	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// signedIn returns an engine with one session, and the secret of its cookie at an
// application's host.
func signedIn(t testing.TB, host string) (*gate.Engine, string) {
	t.Helper()
	own, child := credential.NewSecret(), credential.NewSecret()
	key := func(secret string) string {
		sum := sha256.Sum256([]byte(secret))
		return hex.EncodeToString(sum[:])
	}
	now := time.Now().UTC()
	s := memory.New()
	var entries []store.Entry
	for secret, value := range map[string]any{
		own: map[string]any{
			"person": gate.Person{ID: "company/42", Provider: "company", User: "ann@example.com", Email: "ann@example.com", Groups: []string{"company/staff"}},
			"issuer": "https://id.example.com", "created": now, "seen": now, "expires": now.Add(time.Hour),
		},
		child: map[string]any{"parent": key(own), "host": host, "created": now},
	} {
		b, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, store.Entry{Key: store.PrefixGateSession + key(secret), Value: b})
	}
	if _, err := s.Commit(t.Context(), store.Change{Put: entries, Who: "test"}); err != nil {
		t.Fatal(err)
	}
	e := gate.New(gate.Options{Store: s})
	t.Cleanup(e.Close)
	c := &gate.Config{Providers: map[string]*provider.Config{"company": {Issuer: "https://id.example.com"}}}
	c.Session.IdleTimeout, c.Session.MaxAge = unit.Duration(time.Hour), unit.Duration(24*time.Hour)
	e.Use(c, nil)
	return e, child
}

// BenchmarkRequest is what a gate adds to a request: the guard and the gate, with a session and
// without a gate.
func BenchmarkRequest(b *testing.B) {
	const host = "wiki.example.com"
	engine, secret := signedIn(b, host)
	guard := Guard(headers())
	gated, err := Compile(&Config{Enabled: true, Allow: []string{"group:company/staff"}}, headers(), engine, false, exchange.Env{})
	if err != nil {
		b.Fatal(err)
	}
	ex := exchangetest.New(b, exchangetest.Head("GET", "/page", "Host: "+host, "Accept: text/html", "User-Agent: Mozilla/5.0", "Accept-Language: en", "Cookie: theme=dark"))
	ex.Request.Scheme, ex.Request.Host, ex.Times.Start = "https", host, exchange.Now()
	fields := append([]header.Field(nil), ex.Request.Header.All()...)
	signed := append([]header.Field(nil), fields...)
	for i := range signed {
		if signed[i].ID == header.Cookie {
			signed[i].Value = "theme=dark; __Host-headgate-gate=" + secret
		}
	}
	run := func(fields []header.Field, filters ...exchange.Filter) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ex.Request.Header.Reset()
				for i := range fields {
					ex.Request.Header.AddKnown(fields[i].ID, fields[i].Name, fields[i].Value)
				}
				for i := range filters {
					if answer := filters[i].Request(ex); answer != nil {
						b.Fatalf("answered: %+v", answer)
					}
				}
			}
		}
	}
	b.Run("ungated", run(fields))
	b.Run("gated", run(signed, guard, gated))
}
