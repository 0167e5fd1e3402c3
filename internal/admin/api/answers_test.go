package api

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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

// call sends a request by an admin and returns the answer. Fields are those of house.ask.
func (s *scene) call(method, path, body string, fields ...string) (*httptest.ResponseRecorder, map[string]any) {
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
		case "TLS":
			rq.TLS = &tls.ConnectionState{}
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
	checkPlaces(s.h.t, method+" "+path+" "+body, out)
	return w, out
}

// does wants a status, and that a dry run before says the same.
func (s *scene) does(status int, method, path, body string, fields ...string) (*httptest.ResponseRecorder, map[string]any) {
	s.h.t.Helper()
	dry := s.tries(method, path, body, fields...)
	before := s.h.audited()
	w, out := s.call(method, path, body, fields...)
	if w.Code != status {
		s.h.t.Errorf("%s %s %.200q: got %d %v, want %d", method, path, body, w.Code, out, status)
	}
	dry.matches(w.Code, out)
	if r := s.rowOf(method, path); r != nil && w.Code < 300 && r.changes() && before >= 0 && s.h.audited() <= before {
		s.h.t.Errorf("%s %s is not in the audit", method, path)
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
	s.passkeys()
	s.people()
	s.certificates()
	s.runtime()
	s.configuration()
	s.cutover()
	s.upgrade()
	s.nodes()
	s.agents()
	s.pair()
	orders(t, seen)
	s.broken()

	all := documented(t)
	for _, r := range h.api.rows {
		key := r.method + " " + r.path
		want := all[key]
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

// documented returns the statuses that the OpenAPI document has, by method and path.
func documented(t *testing.T) map[string][]int {
	t.Helper()
	var d struct {
		Paths map[string]map[string]struct{ Responses map[int]any }
	}
	if err := json.Unmarshal(openAPIDocument(), &d); err != nil {
		t.Fatal(err)
	}
	all := map[string][]int{}
	for path, methods := range d.Paths {
		for method, row := range methods {
			key := strings.ToUpper(method) + " " + strings.TrimPrefix(path, Prefix)
			all[key] = slices.Sorted(maps.Keys(row.Responses))
		}
	}
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
	"bans":         `"when":[{"reason":"no_route","count":20}]`,
	"lists":        `"entries":["192.0.2.0/24"]`,
	"webhooks":     `"url":"http://127.0.0.1:2/","secret":"a secret of sixteen or more"`,
	"notices":      `"ntfy":{"topic":"headgate"}`,
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
	s.noKey()
	for _, r := range s.h.api.rows {
		body := map[string]string{"/setup": `{"token":"x","name":"eve","password":"` + good + `"}`, "/session": `{"user":"nina","password":"x"}`}[r.path]
		w, out := s.call(r.method, r.at(), cmp.Or(body, "{}"), always)
		if w.Code != 503 && !r.steady && r.access != public {
			s.h.t.Errorf("%s %s without a store: %d %v", r.method, r.path, w.Code, out)
		}
	}
}
