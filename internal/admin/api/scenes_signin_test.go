package api

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"headgate/internal/certs/certstest"
	"headgate/internal/operator"
	"headgate/internal/store/memory"
)

// sessions are sign-ins and what a user does to itself.
func (s *scene) sessions() {
	for _, path := range []string{"/version", "/openapi.json", "/setup", "/session", "/sessions"} {
		s.does(200, "GET", path, "")
	}
	in := func(user, password string) string { return fmt.Sprintf(`{"user":%q,"password":%q}`, user, password) }
	s.does(403, "POST", "/setup", `{"token":"x","name":"eve","password":"`+good+`"}`)
	w, out := s.does(201, "POST", "/session", in("ann", good), "Authorization: ")
	mine := []string{"Authorization: ", "Cookie: " + Cookie + "=" + w.Result().Cookies()[0].Value, Header + ": " + fmt.Sprint(out["secret"])}
	s.does(401, "POST", "/session", in("ann", "wrong password"))
	current := `{"current_password":"` + good + `"}`
	s.does(200, "POST", "/session/totp", current, mine...)
	s.does(400, "PUT", "/session/totp", `{"code":"000000"}`, mine...)
	_, out = s.does(200, "POST", "/session/totp", current, mine...)
	s.does(200, "PUT", "/session/totp", `{"code":"`+codeNow(s.h.t, fmt.Sprint(out["secret"]))+`"}`, mine...)
	s.does(404, "DELETE", "/sessions/none", "")
	_, out = s.does(200, "GET", "/sessions", "")
	s.does(204, "DELETE", "/sessions/"+fmt.Sprint(out["items"].([]any)[0].(map[string]any)["id"]), "")
	s.does(401, "POST", "/session", in("ann", good)) // the code is missing
	w, out = s.does(201, "POST", "/session", in("bob", good))
	mine = []string{"Authorization: ", "Cookie: " + Cookie + "=" + w.Result().Cookies()[0].Value, Header + ": " + fmt.Sprint(out["secret"])}
	s.does(204, "DELETE", "/session", "", mine...)
	w, out = s.does(201, "POST", "/session", in("bob", good))
	mine = []string{"Authorization: ", "Cookie: " + Cookie + "=" + w.Result().Cookies()[0].Value, Header + ": " + fmt.Sprint(out["secret"])}
	s.does(204, "PUT", "/session/password", `{"current_password":"`+good+`","password":"another horse battery"}`, mine...)
	s.throttled()
	s.does(404, "POST", "/session/oidc", "{}")
	s.does(404, "PUT", "/session/oidc", `{"code":"a","state":"b","browser":"c"}`)
}

// provider is sign-ins through a provider. First the store is away, then the provider.
func (s *scene) provider() {
	const back = `{"code":%q,"state":%q,"browser":%q}`
	m, err := mockoidc.Run()
	if err != nil {
		s.h.t.Fatal(err)
	}
	defer s.h.ops.SetOIDC(nil)
	settings := &operator.OIDC{
		Issuer: m.Issuer(), ClientID: m.Config().ClientID, ClientSecret: m.Config().ClientSecret,
		RedirectURL: "https://127.0.0.1/oidc", Roles: []operator.OIDCRole{{Claim: "preferred_username", Value: "eve", Role: operator.Editor}},
	}
	s.h.ops.SetOIDC(settings)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, status := range []int{201, 403, 401, 503} {
		m.QueueUser(&mockoidc.MockUser{Subject: "x", PreferredUsername: map[int]string{201: "eve", 403: "mallory", 401: "eve", 503: "eve"}[status], Email: "x@example.com"})
		_, out := s.does(200, "POST", "/session/oidc", "{}")
		rs, err := client.Get(fmt.Sprint(out["url"]))
		if err != nil {
			s.h.t.Fatal(err)
		}
		rs.Body.Close()
		to, err := url.Parse(rs.Header.Get("Location"))
		if err != nil {
			s.h.t.Fatal(err)
		}
		browser := fmt.Sprint(out["browser"])
		if status == 401 {
			browser = "another"
		}
		if status == 503 {
			s.h.c.Store().Close()
		}
		s.does(status, "PUT", "/session/oidc", fmt.Sprintf(back, to.Query().Get("code"), to.Query().Get("state"), browser))
	}
	_, out := s.does(200, "POST", "/session/oidc", "{}")
	for full := 200; full != 503; { // somebody goes there and never comes back
		w, _ := s.call("POST", "/session/oidc", "{}")
		if full = w.Code; full != 200 && full != 503 {
			s.h.t.Fatalf("another one who signs in: %d", full)
		}
	}
	m.Shutdown()
	s.does(502, "PUT", "/session/oidc", fmt.Sprintf(back, "a", out["state"], out["browser"]))
	s.h.ops.SetOIDC(settings)
	s.does(502, "POST", "/session/oidc", "{}")
}

// throttled has one address try too often.
func (s *scene) throttled() {
	h := s.h
	w, out := s.does(201, "POST", "/session", `{"user":"bob","password":"another horse battery"}`)
	mine := []string{"Authorization: ", "Cookie: " + Cookie + "=" + w.Result().Cookies()[0].Value, Header + ": " + fmt.Sprint(out["secret"])}
	// Who is asked for the password again has a limit by its own name.
	for _, c := range [][3]string{
		{"PUT", "/session/password", `{"current_password":"wrong password","password":"a third horse battery"}`},
		{"POST", "/session/totp", `{"current_password":"wrong password"}`},
		{"PUT", "/session/totp", `{"code":"000000"}`},
		{"POST", "/session", `{"user":"none","password":"wrong password"}`},
		{"POST", "/setup", `{"token":"x","name":"eve","password":"` + good + `"}`},
		{"POST", "/session/oidc", `{}`},
		{"PUT", "/session/oidc", `{"code":"a","state":"b","browser":"c"}`},
		{"PUT", "/session/passkey", `{"sealed":"a","answer":"{}"}`},
		{"POST", "/session/passkey", `{}`},
		{"POST", "/session/passkeys", `{"current_password":"wrong password"}`},
	} {
		status := 0
		for range 40 {
			w, _ := s.call(c[0], c[1], c[2], append(mine, "From: 192.0.2.9:1", "Host: gate.example.com", "TLS: on")...)
			if status = w.Code; status == 429 {
				if w.Header().Get("Retry-After") == "" {
					h.t.Errorf("%s %s tells no Retry-After", c[0], c[1])
				}
				break
			}
		}
		if status != 429 {
			h.t.Errorf("%s %s is not throttled: %d", c[0], c[1], status)
		}
	}
	// The first user is made where there is none.
	kept := memory.New()
	ops := operator.New(operator.Options{Store: kept, Log: slog.New(slog.DiscardHandler)})
	token, err := ops.NewSetup(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	o := h.api.Options
	o.Operators = ops
	fresh := &scene{h, s.seen.of(New(o)), s.seen}
	fresh.does(201, "POST", "/setup", `{"token":"`+token+`","name":"eve","password":"`+good+`"}`)
}

// codeNow is the code of an authenticator (RFC 6238).
func codeNow(t testing.TB, secret string) string {
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	binary.Write(mac, binary.BigEndian, uint64(time.Now().Unix()/30))
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[at:])&0x7fffffff)%1_000_000)
}

// certificates are stored ones.
func (s *scene) certificates() {
	c := certstest.Sign(s.h.t, &x509.Certificate{DNSNames: []string{"shop.example.com"}}, nil)
	text := func(name string) string {
		data, err := json.Marshal(map[string]string{"name": name, "certificate": string(certstest.PEM(c)), "key": string(certstest.KeyPEM(s.h.t, c))})
		if err != nil {
			s.h.t.Fatal(err)
		}
		return string(data)
	}
	s.does(201, "POST", "/certificates/upload", text("shop"))
	s.does(409, "POST", "/certificates/upload", text("shop"))
	s.does(201, "POST", "/certificates/self_signed", `{"name":"self","hosts":["self.example.com"]}`)
	s.does(409, "POST", "/certificates/self_signed", `{"name":"self","hosts":["self.example.com"]}`)
	const one = "/stored_certificates/shop"
	s.does(200, "GET", "/stored_certificates", "")
	s.does(200, "GET", one, "")
	s.does(404, "GET", "/stored_certificates/none", "")
	s.does(200, "PUT", one, text(""), always)
	s.does(404, "PUT", "/stored_certificates/none", text(""), always)
	s.does(200, "POST", one+"/export", "{}")
	s.does(404, "POST", "/stored_certificates/none/export", "{}")
	s.does(201, "POST", "/certificates", `{"name":"kept","stored":"shop"}`, always)
	s.does(409, "DELETE", one, "", always)
	s.does(204, "DELETE", "/certificates/kept", "", always)
	s.does(204, "DELETE", one, "", always)
	s.does(404, "DELETE", one, "", always)
	s.does(200, "GET", "/certificates/chosen?host=shop.example.com", "")
	s.does(404, "GET", "/certificates/chosen?proxy=none", "")
}
