package provider

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const redirect = "https://login.example.com/callback/company"

// issuer is an OpenID Connect provider whose tokens a test makes as it likes.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
	// token returns the ID token for a nonce.
	token func(nonce string) string
	nonce string
	// sendsIssuer is whether its responses have the parameter iss.
	sendsIssuer bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}, "authorization_response_iss_parameter_supported": i.sendsIssuer,
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": i.token(i.nonce)})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// claims are those of a good token, with changes; nil removes one.
func (i *issuer) claims(nonce string, changes map[string]any) map[string]any {
	all := map[string]any{
		"iss": i.URL, "aud": "headgate", "sub": "42", "nonce": nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"email": "Ann@example.com", "email_verified": true, "groups": []string{"staff"},
	}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// sign returns a token with claims. The key of HS256 is the one that is public.
func (i *issuer) sign(algorithm string, claims map[string]any) string {
	head, _ := json.Marshal(map[string]string{"alg": algorithm, "kid": "1", "typ": "JWT"})
	body, _ := json.Marshal(claims)
	text := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	switch algorithm {
	case "RS256":
		signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return text + "." + encode(signature)
	case "HS256":
		der, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
		if err != nil {
			panic(err)
		}
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		mac.Write([]byte(text))
		return text + "." + encode(mac.Sum(nil))
	}
	return text + "." // none
}

// finish starts a sign-in and returns how it ends; change changes the provider's response.
func (i *issuer) finish(t *testing.T, c Config, change func(url.Values, *Pending)) (Identity, error) {
	t.Helper()
	c.Issuer, c.ClientID, c.ClientSecret = i.URL, "headgate", "secret"
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	p := Open("company", c, nil)
	defer p.Close()
	to, pending, err := p.Start(t.Context(), redirect)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != redirect || q.Get("nonce") == "" {
		t.Errorf("the browser is sent to %s", to)
	}
	i.nonce = q.Get("nonce")
	response := url.Values{"state": {q.Get("state")}, "code": {"c"}}
	if i.sendsIssuer {
		response.Set("iss", i.URL)
	}
	if change != nil {
		change(response, &pending)
	}
	return p.Finish(t.Context(), redirect, pending, response)
}

func TestOnlyTokensForThisSignInCount(t *testing.T) {
	i := newIssuer(t)
	for _, c := range []struct {
		name, algorithm string
		changes         map[string]any
		want            string // of the error; "" for none
	}{
		{"good", "RS256", nil, ""},
		{"not signed", "none", nil, "check the id_token"},
		{"signed with the public key", "HS256", nil, "check the id_token"},
		{"of another issuer", "RS256", map[string]any{"iss": "https://evil.example"}, "check the id_token"},
		{"for another client", "RS256", map[string]any{"aud": "other"}, "check the id_token"},
		{"for several clients", "RS256", map[string]any{"aud": []string{"headgate", "other"}}, "another client"},
		{"for several clients, issued to another", "RS256", map[string]any{"aud": []string{"headgate", "other"}, "azp": "other"}, "another client"},
		{"for several clients, issued to headgate", "RS256", map[string]any{"aud": []string{"headgate", "other"}, "azp": "headgate"}, ""},
		{"issued to another", "RS256", map[string]any{"azp": "other"}, "another client"},
		{"expired", "RS256", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, "check the id_token"},
		{"of another sign-in", "RS256", map[string]any{"nonce": "x"}, "another sign-in"},
		{"without nonce", "RS256", map[string]any{"nonce": nil}, "another sign-in"},
		{"without subject", "RS256", map[string]any{"sub": nil}, "no subject"},
		{"with a line in the subject", "RS256", map[string]any{"sub": "a\nb"}, "no subject"},
	} {
		i.token = func(nonce string) string { return i.sign(c.algorithm, i.claims(nonce, c.changes)) }
		if c.changes["nonce"] == nil {
			if _, removed := c.changes["nonce"]; removed {
				i.token = func(string) string { return i.sign(c.algorithm, i.claims("", map[string]any{"nonce": nil})) }
			}
		}
		id, err := i.finish(t, Config{}, nil)
		switch {
		case c.want == "" && (err != nil || id.Subject != "42" || id.Email != "ann@example.com" || fmt.Sprint(id.Groups) != "[staff]"):
			t.Errorf("%s: %+v, %v", c.name, id, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %+v, %v; want %q", c.name, id, err, c.want)
		}
	}
	// A token of another key with the same id.
	other := newIssuer(t)
	i.token = func(nonce string) string { return other.sign("RS256", i.claims(nonce, nil)) }
	if _, err := i.finish(t, Config{}, nil); err == nil {
		t.Error("a token of another key counts")
	}
}

func TestOnlyResponsesToThisSignInCount(t *testing.T) {
	i := newIssuer(t)
	i.sendsIssuer = true
	i.token = func(nonce string) string { return i.sign("RS256", i.claims(nonce, nil)) }
	for _, c := range []struct {
		name   string
		change func(url.Values, *Pending)
		want   string
	}{
		{"good", func(url.Values, *Pending) {}, ""},
		{"another state", func(v url.Values, _ *Pending) { v.Set("state", "x") }, "another sign-in"},
		{"no state on either side", func(v url.Values, p *Pending) { v.Del("state"); p.State = "" }, "another sign-in"},
		{"two codes", func(v url.Values, _ *Pending) { v.Add("code", "y") }, "repeated"},
		{"no code", func(v url.Values, _ *Pending) { v.Del("code") }, "no code"},
		{"another issuer", func(v url.Values, _ *Pending) { v.Set("iss", "https://evil.example") }, "another issuer"},
		{"no issuer", func(v url.Values, _ *Pending) { v.Del("iss") }, "does not name its issuer"},
		{"an error", func(v url.Values, _ *Pending) { v.Set("error", "access_denied") }, "refused"},
		{"another nonce in the cookie", func(_ url.Values, p *Pending) { p.Nonce = "x" }, "another sign-in"},
	} {
		if _, err := i.finish(t, Config{}, c.change); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestAddressesCountOnlyIfTheyAreVerified(t *testing.T) {
	i := newIssuer(t)
	for _, c := range []struct {
		changes map[string]any
		emails  []string
		want    string
	}{
		{nil, nil, "ann@example.com"},
		{map[string]any{"email_verified": nil}, nil, ""},
		{map[string]any{"email_verified": nil}, []string{"example.com"}, "ann@example.com"},
		{map[string]any{"email_verified": nil}, []string{"example.org"}, ""},
		{map[string]any{"email_verified": false}, []string{"example.com"}, ""},
		{map[string]any{"email_verified": "true"}, nil, "ann@example.com"},
		{map[string]any{"email_verified": "yes"}, nil, ""},
		{map[string]any{"email_verified": 1}, nil, ""},
		{map[string]any{"email": "company/42@example.com"}, nil, ""},
		{map[string]any{"email": "a@b@example.com\n"}, nil, ""},
	} {
		i.token = func(nonce string) string { return i.sign("RS256", i.claims(nonce, c.changes)) }
		if id, err := i.finish(t, Config{Emails: c.emails}, nil); err != nil || id.Email != c.want {
			t.Errorf("%v, %v: %q, %v; want %q", c.changes, c.emails, id.Email, err, c.want)
		}
	}
}
