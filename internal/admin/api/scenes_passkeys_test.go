package api

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"headgate/internal/operator"
	"headgate/internal/passkey/passkeytest"
)

// named opens the console at its host name.
var named = []string{"Host: gate.example.com", "TLS: on"}

// session signs a user in and returns the fields of the session.
func (s *scene) session(body string, path, method string) []string {
	s.h.t.Helper()
	w, out := s.does(201, method, path, body, append([]string{"Authorization: "}, named...)...)
	return append([]string{"Authorization: ", "Cookie: " + Cookie + "=" + w.Result().Cookies()[0].Value, Header + ": " + fmt.Sprint(out["secret"])}, named...)
}

func encoded(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// passkeyQuestion returns a question for a passkey.
func (s *scene) passkeyQuestion(path, body string, fields ...string) (options json.RawMessage, sealed string) {
	s.h.t.Helper()
	_, out := s.does(200, "POST", path, body, fields...)
	return json.RawMessage(encoded(out["options"])), fmt.Sprint(out["sealed"])
}

// withPasskey signs in with the passkey of a device.
func (s *scene) withPasskey(d *passkeytest.Device) []string {
	s.h.t.Helper()
	options, sealed := s.passkeyQuestion("/session/passkey", "{}", named...)
	return s.session(encoded(map[string]string{"sealed": sealed, "answer": string(d.Get(options))}), "/session/passkey", "PUT")
}

// passkeys are those of an operator.
func (s *scene) passkeys() {
	h := s.h
	if _, err := h.ops.CreateUser(h.t.Context(), root, operator.NewUser{Name: "pam", Role: operator.Viewer, Password: good}, false); err != nil {
		h.t.Fatal(err)
	}
	mine := s.session(`{"user":"pam","password":"`+good+`"}`, "/session", "POST")
	device := passkeytest.New(h.t, "gate.example.com", "https://gate.example.com")
	s.does(409, "POST", "/session/passkey", "{}")
	s.does(409, "PUT", "/session/passkey", `{"sealed":"a","answer":"{}"}`)
	s.does(400, "PUT", "/session/passkey", `{"sealed":"a","answer":"{}"}`, named...)
	s.does(403, "GET", "/session/passkeys", "") // a token has none
	s.does(403, "POST", "/session/passkeys", "{}")
	s.does(403, "PUT", "/session/passkeys", `{"sealed":"a","answer":"{}","name":"Phone"}`)
	s.does(403, "DELETE", "/session/passkeys/none", "")
	s.does(409, "POST", "/session/passkeys", "{}", append(mine, "Host: localhost")...)
	s.does(409, "PUT", "/session/passkeys", `{"sealed":"a","answer":"{}","name":"Phone"}`, append(mine, "Host: localhost")...)
	s.does(400, "POST", "/session/passkeys", "{}", mine...) // the password is missing
	options, sealed := s.passkeyQuestion("/session/passkeys", `{"current_password":"`+good+`"}`, mine...)
	answer := encoded(map[string]string{"sealed": sealed, "answer": string(device.Create(options)), "name": "Phone"})
	s.does(400, "PUT", "/session/passkeys", `{"sealed":"a","answer":"{}","name":"Phone"}`, mine...)
	_, out := s.does(201, "PUT", "/session/passkeys", answer, mine...)
	if out["name"] != "Phone" || out["host"] != "gate.example.com" {
		h.t.Errorf("got %v", out)
	}
	s.does(409, "PUT", "/session/passkeys", answer, mine...)
	_, own := s.does(200, "GET", "/session/passkeys", "", mine...)
	if own["offered"] != true || len(own["passkeys"].([]any)) != 1 {
		h.t.Errorf("got %v", own)
	}
	signed := s.withPasskey(device)
	_, sealed = s.passkeyQuestion("/session/passkeys", "{}", signed...) // without the password
	if sealed == "" {
		h.t.Error("no question without the password")
	}
	wrong := *device
	wrong.Origin = "https://gate.example.com:9"
	options, sealed = s.passkeyQuestion("/session/passkey", "{}", named...)
	s.does(401, "PUT", "/session/passkey", encoded(map[string]string{"sealed": sealed, "answer": string(wrong.Get(options))}), named...)
	s.does(404, "DELETE", "/session/passkeys/none", "", mine...)
	s.does(204, "DELETE", "/session/passkeys/"+fmt.Sprint(out["id"]), "", mine...)
	s.does(401, "GET", "/session/passkeys", "", signed...) // its session has ended

	options, sealed = s.passkeyQuestion("/session/passkeys", `{"current_password":"`+good+`"}`, mine...)
	_, out = s.does(201, "PUT", "/session/passkeys", encoded(map[string]string{"sealed": sealed, "answer": string(device.Create(options)), "name": "Phone"}), mine...)
	s.does(200, "DELETE", "/users/pam/passkeys/"+fmt.Sprint(out["id"]), "")
	s.does(404, "DELETE", "/users/pam/passkeys/"+fmt.Sprint(out["id"]), "")
	s.does(404, "DELETE", "/users/none/passkeys", "")
	s.lostPasskeys(mine)
}

// lostPasskeys has an admin remove all passkeys of a user.
func (s *scene) lostPasskeys(mine []string) {
	device := passkeytest.New(s.h.t, "gate.example.com", "https://gate.example.com")
	options, sealed := s.passkeyQuestion("/session/passkeys", `{"current_password":"`+good+`"}`, mine...)
	s.does(201, "PUT", "/session/passkeys", encoded(map[string]string{"sealed": sealed, "answer": string(device.Create(options)), "name": "Phone"}), mine...)
	_, u := s.does(200, "GET", "/users/pam", "")
	if len(u["passkeys"].([]any)) != 1 {
		s.h.t.Errorf("got %v", u)
	}
	_, u = s.does(200, "DELETE", "/users/pam/passkeys", "")
	if u["passkeys"] != nil {
		s.h.t.Errorf("got %v", u)
	}
	options, sealed = s.passkeyQuestion("/session/passkey", "{}", named...)
	s.does(401, "PUT", "/session/passkey", encoded(map[string]string{"sealed": sealed, "answer": string(device.Get(options))}), named...)
}

// noKey asks a process that has not read the key of questions, while the store is away.
func (s *scene) noKey() {
	o := s.h.api.Options
	o.Operators = operator.New(operator.Options{Store: s.h.c.Store(), Log: slog.New(slog.DiscardHandler)})
	fresh := &scene{s.h, s.seen.of(New(o)), s.seen}
	fresh.does(503, "POST", "/session/passkey", "{}", named...)
	fresh.does(503, "PUT", "/session/passkey", `{"sealed":"a","answer":"{}"}`, named...)
}

func TestTheReasonWhyPasskeysAreNotOffered(t *testing.T) {
	h := start(t)
	s := h.scene(&answers{seen: map[string]map[int]bool{}})
	why := ""
	s.h.api.Passkeys = func(host string) ([]string, string) { return []string{"https://" + host}, why }
	for _, c := range []struct {
		host, tls, why, want string
	}{
		{"gate.example.com", "TLS: on", "", ""},
		{"GATE.example.com.:9080", "TLS: on", "", ""},
		{"192.0.2.1:9080", "TLS: on", "", "address"},
		{"[2001:db8::1]:9080", "TLS: on", "", "address"},
		{"localhost:9080", "TLS: on", "", "name"},
		{"gate.example.com", "X-Plain: 1", "", "plain_http"},
		{"gate.example.com", "TLS: on", PasskeyCertificate, "certificate"},
	} {
		why = c.why
		_, out := s.call("GET", "/setup", "", "Host: "+c.host, c.tls)
		if out["passkeys"] != (c.want == "") {
			t.Errorf("%s: sign-in page: got %v", c.host, out)
		}
		w, out := s.call("POST", "/session/passkey", "{}", "Host: "+c.host, c.tls)
		if got := h.api.passkeyState(withTLS(t, c.host, c.tls == "TLS: on")); got.Reason != c.want || (w.Code == 200) != (c.want == "") {
			t.Errorf("%s: got %+v, %d %v, want %q", c.host, got, w.Code, out, c.want)
		}
		if text := passkeyRemedies[c.want]; c.want != "" && (out["detail"] != text[0] || out["remedy"] != text[1]) {
			t.Errorf("%s: got %v, want the reason", c.host, out)
		}
	}
}

func withTLS(t *testing.T, host string, secure bool) *http.Request {
	rq := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	if rq.Host = host; secure {
		rq.TLS = &tls.ConnectionState{}
	}
	return rq
}
