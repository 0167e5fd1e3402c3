package api

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"headgate/internal/gate"
	"headgate/internal/testhouse"
)

// people are those who sign in at applications, and their sessions.
func (s *scene) people() {
	ann := `{"name":"ann","email":"ann@example.com","groups":["family"]}`
	s.does(200, "GET", "/gate", "")
	s.does(201, "POST", "/people", ann)
	s.does(409, "POST", "/people", ann)
	s.does(400, "POST", "/people", `{"name":"bob","groups":["company/staff"]}`)
	s.does(200, "GET", "/people", "")
	w, _ := s.does(200, "GET", "/people/ann", "")
	s.does(404, "GET", "/people/none", "")
	s.does(200, "PUT", "/people/ann", ann, always)
	s.does(412, "PUT", "/people/ann", ann, "If-Match: "+w.Header().Get("ETag"))
	s.does(404, "PUT", "/people/none", strings.Replace(ann, "ann", "none", 1), always)
	s.does(200, "PATCH", "/people/ann", `{"full_name":"Ann"}`, always)
	s.does(404, "PATCH", "/people/none", "{}", always)
	s.does(201, "POST", "/people", `{"name":"bob","email":"bob@example.com"}`)
	s.does(409, "PATCH", "/people/bob", `{"email":"ann@example.com"}`, always)
	s.does(409, "PUT", "/people/bob", `{"name":"bob","email":"ann@example.com"}`, always)
	s.does(200, "GET", "/gate/groups", "")
	_, first := s.does(201, "POST", "/people/ann/invitation", "{}")
	if _, has := first["link"]; has || !strings.HasPrefix(first["path"].(string), "/invite?link=") {
		s.h.t.Errorf("an invitation without a sign-in page: %v", first)
	}
	s.does(400, "POST", "/people/ann/invitation", `{"for":"1000h"}`)
	s.does(404, "POST", "/people/none/invitation", "{}")
	s.does(204, "DELETE", "/people/ann/invitation", "")
	s.does(404, "DELETE", "/people/none/invitation", "")
	s.does(404, "POST", "/people/none/reset", "{}")

	s.gate()
	_, made := s.does(201, "POST", "/people/ann/reset", `{"for":"1h"}`)
	link, _ := made["link"].(string)
	secret, isLink := strings.CutPrefix(link, "https://login.example.com/invite?link=")
	if !isLink {
		s.h.t.Fatalf("a reset: %v", made)
	}
	in := s.h.accept(secret)
	s.does(200, "GET", "/gate/sessions", "")
	s.does(404, "DELETE", "/gate/sessions/none", "")
	s.does(204, "DELETE", "/gate/sessions/"+in.Session.ID(), "")
	if !in.Session.Ended() {
		s.h.t.Error("the session goes on")
	}
	s.allSessions()
	s.does(200, "GET", "/gate/openings", "")
	s.does(404, "POST", "/gate/openings", `{"host":"other.example.com","for":"10m"}`)
	s.does(400, "POST", "/gate/openings", `{"host":"gated.example.com","for":"100h"}`)
	s.does(201, "POST", "/gate/openings", `{"host":"Gated.Example.Com","for":"10m","why":"the provider is down"}`)
	s.does(204, "DELETE", "/gate/openings/gated.example.com", "")
	s.does(404, "DELETE", "/gate/openings/gated.example.com", "")
	s.does(204, "DELETE", "/people/bob", "", always)
	s.does(404, "DELETE", "/people/bob", "", always)
	s.does(204, "DELETE", "/proxies/gated", "", always)
	s.does(204, "DELETE", "/proxies/login", "", always)
	s.does(204, "DELETE", "/settings/sign_in", "", always)
}

// gate configures a sign-in page and an application behind a gate.
func (s *scene) gate() {
	const front = `"client_ip":{"trusted":["127.0.0.1"]}`
	s.does(200, "PUT", "/settings/sign_in", `{"local":true}`, always)
	s.does(201, "POST", "/proxies", `{"name":"login","virtual_hosts":["login.example.com"],`+front+`,"routes":[{"path":"/","sign_in":{}}]}`, always)
	s.does(201, "POST", "/proxies", `{"name":"gated","virtual_hosts":["gated.example.com"],`+front+`,"gate":{"allow":["group:family"]},"routes":[{"fixed_response":{"status":204}}]}`, always)
}

// accept uses an invitation as the sign-in page does.
func (h *house) accept(link string) *gate.Entered {
	h.t.Helper()
	engine := h.api.Control.Gate()
	_, secret, sealed, err := engine.Invited(link)
	if err != nil {
		h.t.Fatal(err)
	}
	in, err := engine.Accept(&gate.Client{Address: netip.MustParseAddr("192.0.2.7"), Cookies: &gate.Cookies{}}, link, good, sealed, testhouse.TOTP(h.t, secret, time.Now()), "")
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// Reading and changing people are rights of their own.
func TestPeopleNeedAScopeOfTheirOwn(t *testing.T) {
	h := start(t)
	for _, c := range []struct {
		role, scopes string
		read, write  int
	}{
		{"admin", "", 200, 201}, {"admin", `"access"`, 200, 201}, {"admin", `"access:read"`, 200, 403}, {"admin", `"operators"`, 403, 403}, {"editor", "", 200, 403}, {"editor", `"access"`, 200, 201}, {"viewer", "", 200, 403},
	} {
		name := "t" + strings.NewReplacer(`"`, "", ":", "-", ",", "").Replace(c.role+c.scopes)
		rs, out := h.call("POST", "/tokens", `{"name":"`+name+`","role":"`+c.role+`","scopes":[`+c.scopes+`]}`, "as: admin")
		h.expect("the token", rs, out, 201, "")
		h.tokens[name] = out["token"].(string)
		rs, out = h.call("GET", "/people", "", "as: "+name)
		h.expect(name+" lists", rs, out, c.read, map[int]string{403: "access_required"}[c.read])
		rs, out = h.call("POST", "/people", `{"name":"`+name+`"}`, "as: "+name)
		h.expect(name+" adds", rs, out, c.write, map[int]string{403: "access_required"}[c.write])
	}
}

// An editor writes proxies, and cannot open a gate by that: what grants access needs an admin
// or the scope access, also over several changes.
func TestEditorsDoNotWidenGates(t *testing.T) {
	h := start(t)
	const front = `"client_ip":{"trusted":["127.0.0.1"]}`
	h.does("PUT", "/settings/sign_in", `{"local":true}`, 200, "", "as: admin", always)
	h.does("POST", "/proxies", `{"name":"login","virtual_hosts":["login.example.com"],`+front+`,"routes":[{"path":"/","sign_in":{}}]}`, 201, "", "as: admin", always)
	h.does("POST", "/proxies", `{"name":"gated","virtual_hosts":["gated.example.com"],`+front+`,"gate":{"allow":["group:family"]},"routes":[{"fixed_response":{"status":204}}]}`, 201, "", "as: admin", always)
	h.does("POST", "/lists", `{"name":"office","entries":["192.0.2.0/24"]}`, 201, "", "as: admin", always)
	h.does("PATCH", "/proxies/gated", `{"gate":{"from":["list:office"],"bypass":[{"paths":["/health"]}]},"routes":[{"fixed_response":{"status":204}},{"path":"/strict","gate":{"allow":["group:chiefs"]},"fixed_response":{"status":204}},{"path":"/public","gate":{"enabled":false},"fixed_response":{"status":204}}]}`, 200, "", "as: admin", always)
	rs, out := h.call("POST", "/tokens", `{"name":"granter","role":"editor","scopes":["config","access"]}`, "as: admin")
	h.expect("the token", rs, out, 201, "")
	h.tokens["granter"] = out["token"].(string)
	before := h.text()
	const routes = `{"fixed_response":{"status":204}},{"path":"/strict","gate":{"allow":["group:chiefs"]},"fixed_response":{"status":204}},{"path":"/public","gate":{"enabled":false},"fixed_response":{"status":204}}`
	for _, c := range [][3]string{
		{"PATCH", "/proxies/gated", `{"gate":{"allow":["group:family","person:eve@example.com"]}}`},
		{"PATCH", "/proxies/gated", `{"gate":{"allow":["token:eve"]}}`},
		{"PATCH", "/proxies/gated", `{"gate":{"from":["list:office","0.0.0.0/0"]}}`},
		{"PATCH", "/proxies/gated", `{"gate":{"bypass":[{"paths":["/"]}]}}`},
		{"PATCH", "/proxies/gated", `{"gate":{"shared_cache":true}}`},
		{"PATCH", "/proxies/gated", `{"gate":{"enabled":false}}`},
		{"PATCH", "/proxies/gated", `{"gate":null}`},
		{"PATCH", "/proxies/gated", `{"routes":[` + routes + `,{"path":"/x","gate":{"enabled":false},"fixed_response":{"status":204}}]}`},
		{"PATCH", "/proxies/gated", `{"routes":[` + routes + `,{"matchers":{"methods":["POST"]},"gate":{"allow":["domain:example.org"]},"fixed_response":{"status":204}}]}`},
		{"PATCH", "/proxies/gated", `{"routes":[{"fixed_response":{"status":204}}]}`}, // family would enter /strict
		{"PATCH", "/proxies/gated", `{"virtual_hosts":["other.example.com"]}`},
		{"PATCH", "/proxies/gated", `{"client_ip":{"trusted":["0.0.0.0/0"]}}`},
		{"DELETE", "/proxies/gated", ""},
		{"POST", "/proxies", `{"name":"aside","virtual_hosts":["GATED.example.com"],"routes":[{"path":"/deep","fixed_response":{"status":204}}]}`},
		{"PATCH", "/lists/office", `{"entries":["0.0.0.0/0"]}`},
		{"PATCH", "/settings/sign_in", `{"providers":{"mine":{"issuer":"https://id.example.org","client_id":"x","client_secret":"y","emails":["example.com"]}}}`},
		{"POST", "/config/edits", `{"edits":[{"op":"set","path":"proxies.gated.gate.allow","value":["domain:example.org"]}]}`},
	} {
		h.does(c[0], c[1], c[2], 403, "access_required", "as: editor", always)
		h.does(c[0], c[1]+"?dry_run=true", c[2], 403, "access_required", "as: editor", always)
	}
	if h.text() != before {
		t.Errorf("changed all the same:\n%s", h.text())
	}
	for _, c := range [][2]string{
		{"/proxies/gated", `{"description":"words"}`},
		{"/proxies/gated", `{"virtual_hosts":["gated.example.com","second.example.com"]}`},
		{"/proxies/gated", `{"gate":{"bypass":null}}`},
		{"/proxies/gated", `{"routes":[` + routes + `,{"path":"/new","fixed_response":{"status":204}},{"path":"/public/x","gate":{"enabled":false},"fixed_response":{"status":204}}]}`},
		{"/proxies/main", `{"gate":{"allow":["group:family"]},"virtual_hosts":["main.example.com"],` + front + `}`},
	} {
		h.does("PATCH", c[0], c[1], 200, "", "as: editor", always)
	}
	// What an admin narrows for a while, an editor does not revert.
	h.does("PATCH", "/proxies/gated?confirm_within=5m", `{"gate":{"allow":["group:chiefs"]}}`, 200, "", "as: admin", always)
	h.does("POST", "/revert", "{}", 403, "access_required", "as: editor")
	h.does("POST", "/revert", "{}", 200, "", "as: granter")
	h.does("PATCH", "/proxies/gated", `{"gate":{"allow":["group:family","person:eve@example.com"]}}`, 200, "", "as: granter", always)
}

// Each operation that decides who enters applications says what an operator lacks, and who can
// do it.
func TestWhoMayNotGrantAccessIsToldWhoMay(t *testing.T) {
	h := start(t)
	const front = `"client_ip":{"trusted":["127.0.0.1"]}`
	for name, tk := range map[string]string{
		"configurer": `{"name":"configurer","role":"editor","scopes":["config","servers"]}`, "bounded": `{"name":"bounded","role":"admin","scopes":["config"]}`,
		"looker": `{"name":"looker","role":"viewer","scopes":["access"]}`,
	} {
		rs, out := h.call("POST", "/tokens", tk, "as: admin")
		h.expect(name, rs, out, 201, "")
		h.tokens[name] = out["token"].(string)
	}
	h.does("PUT", "/settings/sign_in", `{"local":true}`, 200, "", "as: admin", always)
	h.does("POST", "/proxies", `{"name":"login","virtual_hosts":["login.example.com"],`+front+`,"routes":[{"path":"/","sign_in":{}}]}`, 201, "", "as: admin", always)
	h.does("POST", "/proxies", `{"name":"gated","virtual_hosts":["gated.example.com"],`+front+`,"gate":{"allow":["group:family"]},"routes":[{"fixed_response":{"status":204}}]}`, 201, "", "as: admin", always)
	has := map[string]string{
		"editor": "you have the role editor", "configurer": "this token has the role editor and the scopes config, servers",
		"bounded": "this token has the role admin and the scopes config", "looker": "this token has the role viewer and the scopes access",
	}
	for _, c := range [][4]string{
		{"people", "POST", "/people", `{"name":"eve"}`},
		{"groups", "PATCH", "/people/main", `{"groups":["family"]}`},
		{"a person", "PUT", "/people/main", `{"name":"main"}`},
		{"removal", "DELETE", "/people/main", ""},
		{"invitations", "POST", "/people/main/invitation", `{}`},
		{"resets", "POST", "/people/main/reset", `{}`},
		{"tokens", "POST", "/gate/tokens", `{"name":"phone"}`},
		{"tokens, listed", "GET", "/gate/tokens", ""},
		{"links", "POST", "/gate/links", `{"url":"https://gated.example.com/x"}`},
		{"openings", "POST", "/gate/openings", `{"host":"gated.example.com","for":"10m"}`},
		{"sessions", "DELETE", "/gate/sessions?person=local/main", ""},
		{"allow", "PATCH", "/proxies/gated", `{"gate":{"allow":["domain:example.org"]}}`},
		{"an edit", "POST", "/config/edits", `{"edits":[{"op":"set","path":"proxies.gated.gate.allow","value":["domain:example.org"]}]}`},
	} {
		for who, what := range has {
			changes := strings.HasPrefix(c[2], "/proxies") || strings.HasPrefix(c[2], "/config")
			if who == "looker" && changes {
				continue // a viewer changes nothing
			}
			_, out := h.does(c[1], c[2], c[3], 403, "access_required", "as: "+who, always)
			detail, remedy := fmt.Sprint(out["detail"]), fmt.Sprint(out["remedy"])
			if !strings.Contains(detail, "you need the role admin, or a token with the role editor and the scope access") || !strings.HasSuffix(detail, what) || !strings.Contains(remedy, "ask an admin") {
				t.Errorf("%s by %s: %s; %s", c[0], who, detail, remedy)
			}
			if grant := fmt.Sprint(out["grant"]); changes != (out["grant"] != nil) || changes && !strings.Contains(detail, "("+grant+")") {
				t.Errorf("%s by %s: grant %v in %q", c[0], who, out["grant"], detail)
			}
		}
	}
}

// allSessions ends all sessions of a person at once, of which there is one.
func (s *scene) allSessions() {
	s.h.t.Helper()
	_, made := s.does(201, "POST", "/people/ann/reset", `{"for":"1h"}`)
	_, secret, _ := strings.Cut(made["link"].(string), "?link=")
	in := s.h.accept(secret)
	s.does(400, "DELETE", "/gate/sessions", "")
	s.does(404, "DELETE", "/gate/sessions?person=local/none", "")
	if _, out := s.does(200, "DELETE", "/gate/sessions?person=local/ann", ""); out["ended"] != 1.0 || !in.Session.Ended() {
		s.h.t.Errorf("%v, ended: %v", out, in.Session.Ended())
	}
}
