package api

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"headgate/internal/admin/operator"
	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/certs/certstest"
	"headgate/internal/event"
	"headgate/internal/event/webhook"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// answers are the statuses that rows were seen to answer with.
type answers struct {
	sync.Mutex
	seen  map[string]map[int]bool
	asked atomic.Int64
}

// of returns the API as a handler whose answers are noted.
func (s *answers) of(a *API) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		noted := &statusWriter{ResponseWriter: w, status: 200}
		a.ServeHTTP(noted, rq)
		_, pattern := a.mux.Handler(rq)
		s.Lock()
		defer s.Unlock()
		key := rq.Method + " " + strings.TrimPrefix(pattern, Prefix)
		if s.seen[key] == nil {
			s.seen[key] = map[int]bool{}
		}
		s.seen[key][noted.status] = true
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// scene asks a handler for what a test wants to see of it. Nothing is sent over a socket.
type scene struct {
	h    *house
	to   http.Handler
	seen *answers
}

func (h *house) scene(seen *answers) *scene { return &scene{h, seen.of(h.api), seen} }

// ask sends a request by an admin and returns the answer. Fields are those of house.ask.
func (s *scene) ask(method, path, body string, fields ...string) (*httptest.ResponseRecorder, map[string]any) {
	s.h.t.Helper()
	rq := httptest.NewRequestWithContext(s.h.t.Context(), method, "http://localhost"+Prefix+path, strings.NewReader(body))
	rq.RemoteAddr = fmt.Sprintf("127.0.%d.%d:1", s.seen.asked.Add(1)/250%250, s.seen.asked.Load()%250+1) // nobody is throttled
	rq.Header.Set("Authorization", "Bearer "+s.h.tokens["admin"])
	rq.Header.Set("Content-Type", "application/json")
	for _, f := range fields {
		switch name, value, _ := strings.Cut(f, ": "); name {
		case "From":
			rq.RemoteAddr = value
		case "Host":
			rq.Host = value
		case "Length":
			rq.ContentLength = 1 << 33
		case "Authorization":
			rq.Header.Del(name)
			if value != "" {
				rq.Header.Set(name, value)
			}
		default:
			rq.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	s.to.ServeHTTP(w, rq)
	out := map[string]any{}
	json.Unmarshal(w.Body.Bytes(), &out)
	return w, out
}

// does wants a status.
func (s *scene) does(status int, method, path, body string, fields ...string) (*httptest.ResponseRecorder, map[string]any) {
	s.h.t.Helper()
	w, out := s.ask(method, path, body, fields...)
	if w.Code != status {
		s.h.t.Errorf("%s %s %.200q: got %d %v, want %d", method, path, body, w.Code, out, status)
	}
	return w, out
}

// TestEveryRowAnswersEveryStatusItDocuments walks the table by many scenes, and holds that
// every status of the OpenAPI document was seen, and none that is not in it.
func TestEveryRowAnswersEveryStatusItDocuments(t *testing.T) {
	seen := &answers{seen: map[string]map[int]bool{}}
	h := start(t)
	t.Chdir(t.TempDir())
	s := h.scene(seen)
	s.refusals()
	s.objects()
	s.operators()
	s.sessions()
	s.certificates()
	s.runtime()
	s.configuration()
	s.cutover()
	orders(t, seen)
	s.broken()

	for _, r := range h.api.rows {
		key := r.method + " " + r.path
		want := r.documented()
		for _, status := range want {
			if !seen.seen[key][status] {
				t.Errorf("%s documents %d and was never seen to answer with it", key, status)
			}
		}
		for status := range seen.seen[key] {
			if !slices.Contains(want, status) {
				t.Errorf("%s answered with %d and does not document it", key, status)
			}
		}
	}
}

// documented returns the statuses that the OpenAPI document has for a row.
func (r *row) documented() (all []int) {
	var d struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	if err := json.Unmarshal(openapi, &d); err != nil {
		panic(err)
	}
	for text := range d.Paths[Prefix+r.path][strings.ToLower(r.method)].Responses {
		var status int
		fmt.Sscan(text, &status)
		all = append(all, status)
	}
	slices.Sort(all)
	return all
}

// refusals are what the table itself makes of every request.
func (s *scene) refusals() {
	for _, r := range s.h.api.rows {
		s.does(421, r.method, r.at(), "", "Host: evil.example.com")
		s.does(403, r.method, r.at(), "", "Sec-Fetch-Site: cross-site")
		s.does(400, r.method, r.at()+"?nonsense=1", "{}", always)
		if r.access != public {
			s.does(401, r.method, r.at(), "", "Authorization: ")
		}
		if r.match {
			s.does(428, r.method, r.at(), "{}")
			s.does(412, r.method, r.at(), "{}", "If-Match: W/x")
		}
		if r.in != nil {
			s.does(415, r.method, r.at(), "{}", always, "Content-Type: text/plain")
			s.does(413, r.method, r.at(), "{}", always, "Length: ")
		}
	}
}

// bodies are objects of each kind that can be made beside those called main.
var bodies = map[string]string{
	"ports":        `"address":"127.0.0.1:2","protocol":"http","active":false`,
	"proxies":      `"virtual_hosts":["second.example.com"],"routes":[{"servers":[{"url":"http://127.0.0.1:2"}]}]`,
	"tcp_proxies":  `"address":"127.0.0.1:2","servers":[{"address":"127.0.0.1:2"}],"active":false`,
	"udp_proxies":  `"address":"127.0.0.1:2","servers":[{"address":"127.0.0.1:2"}],"active":false`,
	"certificates": `"cert_file":"main.pem","key_file":"main.key"`,
	"policies":     `"compression":{}`,
	"webhooks":     `"url":"http://127.0.0.1:2/","secret":"a secret of sixteen or more"`,
	"acme":         `"email":"ops@example.com"`,
}

// objects are the lives of objects of the documents.
func (s *scene) objects() {
	for _, r := range s.h.api.rows {
		k := r.kind
		if k == nil || r.method != http.MethodGet || strings.Contains(r.path, "{") {
			continue
		}
		path := r.path
		if k.Single {
			w, _ := s.does(200, "GET", path, "")
			s.does(200, "PUT", path, w.Body.String(), always)
			s.does(200, "PATCH", path, "{}", always)
			s.does(204, "DELETE", path, "", always)
			s.pending(func() {
				s.does(409, "PUT", path, w.Body.String(), always)
				s.does(409, "PATCH", path, `{}`, always)
				s.does(409, "DELETE", path, "", always)
			})
			continue
		}
		fields := bodies[k.Name]
		if fields == "" {
			s.h.t.Fatalf("no body for the kind %s", k.Name)
		}
		s.does(201, "POST", path, `{"name":"second",`+fields+`}`, always)
		s.does(200, "GET", path, "")
		s.does(200, "GET", path+"/second", "")
		s.does(200, "PUT", path+"/second", "{"+fields+"}", always)
		s.does(200, "PATCH", path+"/second", "{}", always)
		s.late(path, "{"+fields+"}")
		s.does(200, "POST", path+"/second/rename", `{"name":"third"}`, always)
		s.pending(func() {
			s.does(409, "POST", path, `{"name":"fourth",`+fields+`}`, always)
			s.does(409, "PUT", path+"/third", "{"+fields+"}", always)
			s.does(409, "PATCH", path+"/third", "{}", always)
			s.does(409, "POST", path+"/third/rename", `{"name":"fifth"}`, always)
			s.does(409, "DELETE", path+"/third", "", always)
		})
		s.does(204, "DELETE", path+"/third", "", always)
		s.does(404, "GET", path+"/third", "")
		s.does(404, "PUT", path+"/third", "{"+fields+"}", always)
		s.does(404, "PATCH", path+"/third", "{}", always)
		s.does(404, "DELETE", path+"/third", "", always)
		s.does(404, "POST", path+"/third/rename", `{"name":"fifth"}`, always)
	}
}

// late changes an object with the ETag that it had before somebody else changed it: it is
// refused, and told what the object is now.
func (s *scene) late(path, body string) {
	s.h.t.Helper()
	w, _ := s.does(200, "GET", path+"/second", "")
	list, _ := s.does(200, "GET", path, "")
	s.does(200, "PATCH", path+"/second", `{"description":"meanwhile"}`, always)
	for _, c := range [][4]string{
		{"PUT", path + "/second", body, w.Header().Get("ETag")}, {"PATCH", path + "/second", "{}", w.Header().Get("ETag")},
		{"DELETE", path + "/second", "", w.Header().Get("ETag")}, {"POST", path + "/second/rename", `{"name":"third"}`, w.Header().Get("ETag")},
		{"POST", path, `{"name":"fourth",` + body[1:], list.Header().Get("ETag")},
	} {
		_, out := s.does(412, c[0], c[1], c[2], "If-Match: "+c[3])
		if text := fmt.Sprint(out["current"]); c[3] == "" || !strings.Contains(text, "meanwhile") {
			s.h.t.Errorf("%s %s with the ETag %s does not tell what was changed: %.300s", c[0], c[1], c[3], text)
		}
	}
}

// pending does something while a change waits to be confirmed.
func (s *scene) pending(do func()) {
	s.h.t.Helper()
	s.does(200, "PATCH", "/settings/upstreams?confirm_within=5m", `{"idle_timeout":"77s"}`, always)
	do()
	s.does(200, "POST", "/revert", "{}")
}

// operators are users and tokens.
func (s *scene) operators() {
	eve := `{"name":"eve","role":"viewer","password":"` + good + `"}`
	s.does(201, "POST", "/users", eve)
	s.does(409, "POST", "/users", eve)
	s.does(200, "GET", "/users", "")
	s.does(200, "GET", "/users/eve", "")
	s.does(404, "GET", "/users/none", "")
	s.does(200, "PUT", "/users/eve", eve, always)
	s.does(404, "PUT", "/users/none", strings.Replace(eve, "eve", "none", 1), always)
	s.does(409, "PUT", "/users/ann", `{"name":"ann","role":"viewer"}`, always)
	s.does(200, "PATCH", "/users/eve", "{}", always)
	s.does(404, "PATCH", "/users/none", "{}", always)
	s.does(409, "PATCH", "/users/ann", `{"role":"viewer"}`, always)
	s.does(200, "DELETE", "/users/eve/totp", "")
	s.does(404, "DELETE", "/users/none/totp", "")
	s.does(409, "DELETE", "/users/ann", "", always)
	s.does(204, "DELETE", "/users/eve", "", always)
	s.does(404, "DELETE", "/users/eve", "", always)

	ci := `{"name":"ci","role":"viewer"}`
	s.does(201, "POST", "/tokens", ci)
	s.does(409, "POST", "/tokens", ci)
	s.does(200, "GET", "/tokens", "")
	s.does(200, "GET", "/tokens/ci", "")
	s.does(404, "GET", "/tokens/none", "")
	s.does(204, "DELETE", "/tokens/ci", "", always)
	s.does(404, "DELETE", "/tokens/ci", "", always)
	s.does(200, "GET", "/audit", "")
}

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
		w, _ := s.ask("POST", "/session/oidc", "{}")
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
	} {
		status := 0
		for range 40 {
			w, _ := s.ask(c[0], c[1], c[2], append(mine, "From: 192.0.2.9:1")...)
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

// runtime is what is done and told beside the configuration.
func (s *scene) runtime() {
	s.does(200, "GET", "/servers/held", "")
	meant := `{"proxy":"main","server":"127.0.0.1:1"%s}`
	for _, verb := range []string{"drain", "disable", "enable"} {
		s.does(404, "POST", "/servers/"+verb, `{"proxy":"none","server":"127.0.0.1:1"}`)
		s.does(200, "POST", "/servers/"+verb, fmt.Sprintf(meant, `,"kind":"proxies"`))
	}
	s.does(409, "POST", "/servers/enable", fmt.Sprintf(meant, `,"kind":"proxies"`))
	for _, kind := range []string{"ports", "tcp_proxies", "udp_proxies"} {
		s.does(404, "POST", "/"+kind+"/none/reset", "{}")
		s.does(409, "POST", "/"+kind+"/main/reset", "{}")
	}
	at := testhouse.Addresses(s.h.t, 3)
	s.does(200, "PATCH", "/ports/main", `{"address":"`+at[0]+`","active":true}`, always)
	s.does(200, "PATCH", "/tcp_proxies/main", `{"address":"`+at[1]+`","active":true}`, always)
	s.does(200, "PATCH", "/udp_proxies/main", `{"address":"`+at[2]+`","active":true}`, always)
	for _, kind := range []string{"ports", "tcp_proxies", "udp_proxies"} {
		s.does(200, "POST", "/"+kind+"/main/reset", "{}")
	}
	s.does(200, "GET", "/discovery", "")
	s.does(200, "GET", "/status", "")
	s.does(404, "GET", "/status?proxy=none", "")
	s.does(200, "GET", "/summary", "")
	s.does(200, "GET", "/series", "")
	s.does(404, "GET", "/series?proxy=none", "")
	s.does(200, "POST", "/explain", `{"url":"http://shop.example.com/"}`)
	s.does(404, "POST", "/cache/purge", `{"all":true}`)
	s.does(200, "PATCH", "/proxies/main", `{"cache":{}}`, always)
	s.does(200, "POST", "/cache/purge", `{"all":true}`)

	s.does(200, "GET", "/events/history", "")
	s.does(200, "GET", "/webhooks/chat/state", "")
	s.does(404, "GET", "/webhooks/none/state", "")
	s.does(200, "POST", "/webhooks/chat/test", "{}")
	s.does(404, "POST", "/webhooks/none/test", "{}")
	s.does(404, "POST", "/webhooks/chat/resend", `{"event":1}`)
	s.deadLetter()
	s.does(200, "GET", "/logs/access", "")
	for _, path := range []string{"/events", "/logs/access/stream"} {
		ctx, stop := context.WithCancel(s.h.t.Context())
		stop() // it ends when its head is sent
		rq := httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+Prefix+path, nil)
		rq.Header.Set("Authorization", "Bearer "+s.h.tokens["viewer"])
		s.to.ServeHTTP(httptest.NewRecorder(), rq)
	}
	kept := s.h.ring
	s.h.ring = nil
	s.does(404, "GET", "/logs/access", "")
	s.does(404, "GET", "/logs/access/stream", "")
	s.h.ring = kept
}

// deadLetter has one sent again.
func (s *scene) deadLetter() {
	kept := memory.New()
	state, err := json.Marshal(webhook.State{Dead: []webhook.Letter{{Event: &event.Event{ID: 1, Type: "process.started"}}}})
	if err != nil {
		s.h.t.Fatal(err)
	}
	if _, err := kept.Commit(s.h.t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixWebhook + "chat", Value: state}}}); err != nil {
		s.h.t.Fatal(err)
	}
	o := s.h.api.Options
	o.Webhooks = webhook.New(webhook.Options{Events: s.h.events, Store: kept, Log: slog.New(slog.DiscardHandler)})
	defer o.Webhooks.Close()
	o.Webhooks.Set([]webhook.Hook{{Name: "chat", URL: s.h.receiver.URL, Secret: "x"}})
	(&scene{s.h, s.seen.of(New(o)), s.seen}).does(204, "POST", "/webhooks/chat/resend", `{"event":1}`)
}

// configuration is the configuration as a whole, its revisions, and a backup of it.
func (s *scene) configuration() {
	_, out := s.does(200, "GET", "/config", "")
	data, err := json.Marshal(map[string]any{"documents": out["documents"]})
	if err != nil {
		s.h.t.Fatal(err)
	}
	whole, edits := string(data), `{"edits":[{"op":"set","path":"proxies.main.description","value":"by an edit"}]}`
	s.does(200, "GET", "/config/schema", "")
	s.does(200, "PUT", "/config", whole, always)
	s.does(200, "POST", "/config/edits", edits, always)
	s.does(200, "POST", "/config/plan", edits)
	s.does(200, "POST", "/config/validate", whole)
	s.does(200, "GET", "/revisions", "")
	s.does(200, "GET", "/revisions/1", "")
	s.does(404, "GET", "/revisions/9999", "")
	s.does(200, "GET", "/revisions/1/diff/current", "")
	s.does(404, "GET", "/revisions/9999/diff/current", "")
	s.does(200, "POST", "/revisions/1/rollback", "{}", always)
	s.does(404, "POST", "/revisions/9999/rollback", "{}", always)
	s.h.t.Setenv("HEADGATE_TEST_GONE", "x")
	s.does(200, "PATCH", "/proxies/main", `{"description":"${HEADGATE_TEST_GONE}"}`, always)
	os.Unsetenv("HEADGATE_TEST_GONE")
	_, out = s.does(200, "GET", "/revisions", "")
	gone := fmt.Sprint(out["items"].([]any)[0].(map[string]any)["number"])
	s.does(409, "GET", "/revisions/"+gone+"/diff/1", "")
	s.h.t.Setenv("HEADGATE_TEST_GONE", "x")
	s.does(200, "POST", "/revisions/1/rollback", "{}", always)

	s.does(409, "POST", "/confirm", "{}")
	s.does(409, "POST", "/revert", "{}")
	s.does(404, "POST", "/backup", "{}") // of an API without a state directory
	o := s.h.api.Options
	o.Backup = s.h.c.Backup
	kept := scene{s.h, s.seen.of(New(o)), s.seen}
	w, _ := kept.does(200, "POST", "/backup", "{}")
	archive := w.Body.String()
	kept.does(400, "POST", "/restore", "no archive", always)
	kept.pending(func() {
		s.does(409, "PUT", "/config", whole, always)
		s.does(409, "POST", "/config/edits", edits, always)
		s.does(409, "POST", "/revisions/1/rollback", "{}", always)
		kept.does(409, "POST", "/restore", archive, always)
	})
	s.does(200, "PATCH", "/proxies/main?confirm_within=5m", `{"description":"stays"}`, always)
	s.does(200, "POST", "/confirm", "{}")
	kept.does(413, "POST", "/restore", archive, always, "Length: ")
	kept.does(200, "POST", "/restore", archive, always)
}

// cutover is what helps to leave another proxy.
func (s *scene) cutover() {
	s.does(404, "GET", "/compare", "")
	s.does(404, "DELETE", "/compare", "")
	gate := make(chan struct{})
	held := side(s.h.t, "x", gate)
	defer s.h.api.Close()
	defer close(gate)
	in := fmt.Sprintf(`{"old":[%[1]q],"new":[%[1]q],"list":"http://shop.example.com/","no_dns":true}`, held.Listener.Addr())
	s.does(202, "POST", "/compare", in)
	s.does(409, "POST", "/compare", in)
	s.does(200, "GET", "/compare", "")
	w, _ := s.ask("DELETE", "/compare", "")
	if w.Code >= 300 {
		s.h.t.Errorf("DELETE /compare: %d", w.Code)
	}
	s.does(200, "POST", "/import", `{"source":"nginx","files":[{"name":"nginx.conf","text":"http { server { listen 80; } }"}]}`)
}

// orders are certificates by ACME of an authority.
func orders(t *testing.T, seen *answers) {
	at := testhouse.Addresses(t, 1)[0]
	_, text, _ := strings.Cut(at, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	authority := acmetest.Start(t, acmetest.Settings{HTTPPort: port, HTTPSPort: 1})
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	authority.Meddle = func(_ http.ResponseWriter, rq *http.Request) bool {
		if strings.Contains(rq.URL.Path, "order-plz") {
			<-held
		}
		return false
	}
	defer release()
	h := startWith(t, `version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  web: {address: "`+at+`", protocol: http}
acme:
  main: {directory: "`+authority.Directory+`", ca_file: "`+authority.CAFile+`", challenge: http-01, resolvers: ["`+authority.Names+`"], http_port: `+text+`}
proxies:
  main:
    acme: main
    virtual_hosts: [shop.example.com]
    routes: [{fixed_response: {status: 200}}]
`)
	s := h.scene(seen)
	const one = "/orders/shop.example.com"
	eventually := func(what string, holds func() bool) { t.Helper(); testhouse.Eventually(t, what, holds) }
	s.does(200, "GET", "/orders", "")
	s.does(404, "GET", "/orders/none.example.com", "")
	for _, verb := range []string{"order", "renew", "preflight"} {
		s.does(404, "POST", "/orders/none.example.com/"+verb, "{}")
	}
	eventually("the order is under way", func() bool {
		w, _ := s.ask("POST", one+"/renew", "{}")
		return w.Code == 409
	})
	release()
	eventually("the certificate has come", func() bool {
		_, out := s.does(200, "GET", one, "")
		return out["state"] == "valid"
	})
	s.does(409, "POST", one+"/order", "{}")
	s.does(200, "POST", one+"/preflight", "{}")
	s.does(204, "POST", "/acme/main/rollover", "{}")
	s.does(404, "POST", "/acme/none/rollover", "{}")
	s.does(202, "POST", one+"/renew", "{}")
	s.does(200, "PATCH", "/acme/main", `{"directory":"https://127.0.0.1:1/directory"}`, always)
	s.does(409, "POST", "/acme/main/rollover", "{}")
	s.does(200, "PATCH", "/proxies/main", `{"virtual_hosts":["new.example.com"]}`, always)
	eventually("the order has failed", func() bool {
		_, out := s.ask("GET", "/orders/new.example.com", "")
		return out["state"] == "failed"
	})
	eventually("it is ordered again", func() bool {
		w, _ := s.ask("POST", "/orders/new.example.com/order", "{}")
		return w.Code == 202
	})
}

// broken is an API whose handlers fail, and one whose store is closed.
func (s *scene) broken() {
	o := s.h.api.Options
	o.Log = slog.New(slog.DiscardHandler)
	bad := New(o)
	for _, r := range bad.rows {
		failed := errors.New("broken")
		r.handle = func(*call) (any, error) { return nil, failed }
		if r.stream != nil {
			r.stream = func(*call) error { panic("broken") }
		}
		r.match, r.input = false, nil
		(&scene{s.h, s.seen.of(bad), s.seen}).does(500, r.method, r.at(), "")
	}
	w, out := s.does(201, "POST", "/session", `{"user":"bob","password":"another horse battery"}`)
	mine := []string{"Authorization: ", "Cookie: " + Cookie + "=" + w.Result().Cookies()[0].Value, Header + ": " + fmt.Sprint(out["secret"])}
	s.provider()
	s.does(503, "DELETE", "/session", "", mine...)
	for _, r := range s.h.api.rows {
		body := map[string]string{"/setup": `{"token":"x","name":"eve","password":"` + good + `"}`, "/session": `{"user":"nina","password":"x"}`}[r.path]
		w, out := s.ask(r.method, r.at(), cmp.Or(body, "{}"), always)
		if w.Code != 503 && !r.steady && r.access != public {
			s.h.t.Errorf("%s %s without a store: %d %v", r.method, r.path, w.Code, out)
		}
	}
}
