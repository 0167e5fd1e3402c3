package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"headgate/internal/config"
)

// tagOf returns the ETag of a path.
func (h *house) tagOf(path string) string {
	h.t.Helper()
	rs, _ := h.does("GET", path, "", 200, "", "as: admin")
	return rs.Header.Get("ETag")
}

func (h *house) text() string {
	h.t.Helper()
	data, err := os.ReadFile(h.file)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

// does asks, and wants a status and a code.
func (h *house) does(method, path, body string, status int, code string, fields ...string) (*http.Response, map[string]any) {
	h.t.Helper()
	rs, out := h.call(method, path, body, fields...)
	h.expect(method+" "+path+" "+body, rs, out, status, code)
	return rs, out
}

const (
	blogBody = `{"name":"blog","virtual_hosts":["blog.example.com"],"routes":[{"servers":[{"url":"http://127.0.0.1:2"}]}]}`
	always   = "If-Match: *"
)

func TestAnObjectIsMadeReadChangedAndRemoved(t *testing.T) {
	h := start(t)
	rs, out := h.does("POST", "/proxies", blogBody, 201, "", "as: editor", "If-Match: "+h.tagOf("/proxies"))
	if rs.Header.Get("Location") != Prefix+"/proxies/blog" || out["etag"] != rs.Header.Get("ETag") || out["name"] != "blog" || out["state"] == "" {
		t.Errorf("made: %v %v", rs.Header, out)
	}
	if origin, _ := out["origin"].(map[string]any); origin["document"] != h.file || origin["line"] == nil {
		t.Errorf("origin: %v", out["origin"])
	}
	if n, _ := out["servers"].(map[string]any); n["total"] != 1.0 {
		t.Errorf("servers: %v", out["servers"])
	}
	if text := h.text(); !strings.HasPrefix(text, mainConfig[:strings.Index(mainConfig, "tcp_proxies")]) || !strings.Contains(text, "blog.example.com") {
		t.Errorf("the document is\n%s", text)
	}
	h.does("POST", "/proxies", blogBody, 409, "exists", "as: editor", always)
	tag := rs.Header.Get("ETag")
	_, out = h.does("PATCH", "/proxies/blog", `{"description":"words","host_header":null}`, 200, "", "as: editor", "If-Match: "+tag)
	if out["description"] != "words" || out["virtual_hosts"] == nil {
		t.Errorf("merged: %v", out)
	}
	_, out = h.does("PUT", "/proxies/blog", blogBody, 412, "stale", "as: editor", "If-Match: "+tag)
	if now, _ := out["current"].(map[string]any); now["description"] != "words" {
		t.Errorf("412 tells %v", out["current"])
	}
	_, out = h.does("PUT", "/proxies/blog", blogBody, 200, "", "as: editor", "If-Match: "+h.tagOf("/proxies/blog"))
	if out["description"] != nil || out["etag"] != tag {
		t.Errorf("replaced: %v", out)
	}
	h.does("PUT", "/proxies/blog?dry_run=true", strings.Replace(blogBody, "blog.ex", "dry.ex", 1), 200, "", "as: editor", always)
	if strings.Contains(h.text(), "dry.ex") {
		t.Error("a dry run has changed the document")
	}
	_, out = h.does("PUT", "/proxies/blog", `{"routes":[{"servers":[{"url":"127.0.0.1:2","wait":1}]}]}`, 400, "unknown_field", "as: editor", always)
	if out["pointer"] != "/routes/0/servers/0/wait" {
		t.Errorf("unknown field at %v", out["pointer"])
	}
	_, out = h.does("PUT", "/proxies/blog", `{"routes":[{"servers":[{"url":"127.0.0.1:2"}]}]}`, 400, "invalid", "as: editor", always)
	if out["pointer"] != "/routes/0/servers/0/url" || out["remedy"] == nil {
		t.Errorf("wrong value: %v", out)
	}
	h.does("PUT", "/proxies/blog", `{"name":"other","routes":[]}`, 400, "invalid", "as: editor", always)
	h.does("GET", "/proxies/blog", "", 304, "", "as: viewer", "If-None-Match: "+tag)
	h.does("DELETE", "/proxies/blog", "", 204, "", "as: editor", "If-Match: "+tag)
	h.does("GET", "/proxies/blog", "", 404, "not_found", "as: viewer")
	if h.text() != mainConfig {
		t.Errorf("the document is\n%s", h.text())
	}
}

func TestObjectsInUseStayAndRenamesReachTheirUsers(t *testing.T) {
	h := start(t)
	_, out := h.does("DELETE", "/policies/main", "", 409, "in_use", "as: editor", always)
	if !strings.Contains(fmt.Sprint(out["detail"]), "proxy main") {
		t.Errorf("users: %v", out)
	}
	h.does("POST", "/policies/main/rename", `{"name":"staff"}`, 200, "", "as: editor", "If-Match: "+h.tagOf("/policies/main"))
	_, out = h.does("GET", "/proxies/main", "", 200, "", "as: viewer")
	if fmt.Sprint(out["use"]) != "[staff]" {
		t.Errorf("use: %v", out["use"])
	}
	h.does("POST", "/policies/none/rename", `{"name":"x"}`, 404, "not_found", "as: editor", always)
	h.does("POST", "/config/edits", `{"edits":[{"op":"rename","path":"policies.staff","to":"main"},{"op":"set","path":"proxies.main.description","value":"twice"}]}`,
		200, "", "as: editor", "If-Match: "+h.tagOf("/proxies"))
	if text := h.text(); !strings.Contains(text, "use: [main]") || !strings.Contains(text, "description: twice") {
		t.Errorf("the document is\n%s", text)
	}
}

func TestSecretsAreOnlyWritten(t *testing.T) {
	h := start(t)
	rs, err := h.client.Do(h.request("GET", "/proxies/main"))
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	var object map[string]any
	if err := json.NewDecoder(rs.Body).Decode(&object); err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(object)
	if text := string(data); strings.Contains(text, "$2y$") || !strings.Contains(text, `"password_hash":"********"`) || !strings.Contains(text, `"password_hash_set":true`) {
		t.Fatalf("shown: %s", data)
	}
	// What was read is written back, with another description: the hash stays.
	object["description"] = "written back"
	data, _ = json.Marshal(object)
	h.does("PUT", "/proxies/main", string(data), 200, "", "as: editor", always)
	if text := h.text(); !strings.Contains(text, `password_hash: "$2y$12$abc`) || !strings.Contains(text, "written back") {
		t.Errorf("the document is\n%s", text)
	}
	h.does("PATCH", "/proxies/main", `{"basic_auth":{"users":[{"name":"eve","password_hash":"********"}]}}`, 400, "invalid", "as: editor", always)
	_, out := h.does("GET", "/acme/main", "", 200, "", "as: viewer")
	if strings.Contains(fmt.Sprint(out), "c2VjcmV0") {
		t.Errorf("shown: %v", out)
	}
	_, out = h.does("GET", "/audit", "", 200, "", "as: admin")
	if text := fmt.Sprint(out); strings.Contains(text, "$2y$") || !strings.Contains(text, "written back") || !strings.Contains(text, "the shop") {
		t.Errorf("audit: %s", text)
	}
}

func TestHostFieldsAreForAdmins(t *testing.T) {
	h := start(t)
	t.Setenv("HEADGATE_TEST_SECRET", "seventeen")
	before := h.text()
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", "/proxies/main", `{"routes":[{"servers":[{"url":"unix:/run/docker.sock"}]}]}`},
		{"PATCH", "/proxies/main", `{"routes":[{"servers":[{"url":"UNIX:/run/docker.sock"}]}]}`},
		{"PATCH", "/proxies/main", `{"routes":[{"servers":[{"url":"Unix+H2C:/run/docker.sock"}]}]}`},
		{"PATCH", "/proxies/main", `{"forward_auth":{"url":"uniX:/run/docker.sock"}}`},
		{"PATCH", "/proxies/main", `{"routes":[{"servers":[{"url":"https://127.0.0.1:1","tls":{"ca_file":"/etc/shadow"}}]}]}`},
		{"PATCH", "/proxies/main", `{"description":"${HEADGATE_TEST_SECRET}"}`},
		{"PATCH", "/proxies/main", `{"virtual_hosts":["${file:/etc/passwd}"]}`},
		{"PUT", "/settings/access_log", `{"enabled":false,"path":"/root/.ssh/authorized_keys"}`},
		{"POST", "/certificates", `{"name":"other","cert_file":"/etc/a.pem","key_file":"/etc/b.pem"}`},
		{"PATCH", "/certificates/main", `{"key_file":"/etc/b.pem"}`},
		{"PATCH", "/ports/main", `{"protocol":"https","tls":{"client_auth":"required","client_ca":"/etc/b.pem"}}`},
		{"PATCH", "/policies/main", `{"error_pages":[{"status":[503],"file":"/etc/shadow"}]}`},
		{"POST", "/lists", `{"name":"bad","url":"https://lists.example.com/drop.txt"}`},
		{"POST", "/lists", `{"name":"bad","file":"/etc/shadow"}`},
		{"POST", "/lists", `{"name":"bad","crowdsec":{"url":"http://10.0.0.1:8080","key":"k"}}`},
		{"PUT", "/settings/geo", `{"country":{"file":"/etc/shadow"}}`},
		{"PUT", "/settings/geo", `{"asn":{"url":"https://lists.example.com/asn.mmdb"}}`},
		{"POST", "/config/edits", `{"edits":[{"op":"set","path":"lists.bad","value":{"file":"/etc/shadow"}}]}`},
		{"POST", "/config/edits", `{"edits":[{"op":"set","path":"x-note","value":"${HEADGATE_TEST_SECRET}"}]}`},
		{"POST", "/config/plan", `{"edits":[{"op":"set","path":"proxies.main.description","value":"${HEADGATE_TEST_SECRET}"}]}`},
		{"POST", "/config/edits", `{"edits":[{"op":"set","path":"certificates.main.cert_file","value":"/etc/c.pem"}]}`},
	} {
		_, out := h.does(c.method, c.path, c.body, 403, "host_field", "as: editor", always)
		if strings.Contains(fmt.Sprint(out), "seventeen") {
			t.Errorf("%s %s tells the secret: %v", c.method, c.path, out)
		}
	}
	if h.text() != before {
		t.Errorf("the document is\n%s", h.text())
	}
	h.does("POST", "/lists", `{"name":"office","entries":["203.0.113.0/24"]}`, 201, "", "as: editor", always)
	h.does("POST", "/lists", `{"name":"local","file":"`+filepath.Join(t.TempDir(), "bad.txt")+`"}`, 201, "", "as: admin", always)
	h.does("PATCH", "/acme/main", `{"challenge":"dns-01","dns":{"provider":"exec","command":"/bin/sh"}}`, 403, "host_field", "as: admin", always)
	h.does("PATCH", "/proxies/main", `{"description":"${HEADGATE_TEST_SECRET}"}`, 200, "", "as: admin", always)
	// An editor may change what stands beside it, and hears the text, not the value.
	_, out := h.does("PATCH", "/proxies/main", `{"virtual_hosts":["b.example.com"]}`, 200, "", "as: editor", always)
	if out["description"] != "${HEADGATE_TEST_SECRET}" {
		t.Errorf("description: %v", out["description"])
	}
}

// TestVariablesOfRequestsAreNotShownInResponses has an editor move what servers are sent
// into a header of responses, where everybody reads it.
func TestVariablesOfRequestsAreNotShownInResponses(t *testing.T) {
	h := start(t)
	t.Setenv("HEADGATE_TEST_SECRET", "seventeen")
	rule := func(direction, name string) string {
		return `{"headers":[{"direction":"` + direction + `","name":"` + name + `","value":"Bearer ${HEADGATE_TEST_SECRET}"}]}`
	}
	h.does("PATCH", "/proxies/main", rule("request", "Authorization"), 200, "", "as: admin", always)
	before := h.text()
	h.does("PATCH", "/proxies/main", rule("response", "X-Secret"), 403, "host_field", "as: editor", always)
	h.does("POST", "/config/edits", `{"edits":[{"op":"set","path":"proxies.main.headers[0].direction","value":"response"}]}`, 403, "host_field", "as: editor", always)
	if h.text() != before {
		t.Errorf("the document is\n%s", h.text())
	}
	h.does("PATCH", "/proxies/main", rule("request", "X-Upstream-Token"), 200, "", "as: editor", always)
}

// TestEditorsCannotMakeThemselvesAdmins tries the settings that say who may sign in.
func TestEditorsCannotMakeThemselvesAdmins(t *testing.T) {
	h := start(t)
	const oidc = `{"issuer":"https://login.evil.example","client_id":"a","client_secret":"b","redirect_url":"https://gate.example.com/","roles":[{"claim":"sub","role":"admin"}]}`
	before := h.text()
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", "/settings/admin", `{"oidc":` + oidc + `}`},
		{"PUT", "/settings/admin", `{"hosts":["evil.example"]}`},
		{"DELETE", "/settings/admin", ""},
		{"POST", "/config/edits", `{"edits":[{"op":"set","path":"admin.oidc","value":` + oidc + `}]}`},
		{"POST", "/config/edits", `{"edits":[{"op":"set","path":"admin.trusted_proxies","value":["0.0.0.0/0"]}]}`},
		{"POST", "/config/plan", `{"edits":[{"op":"set","path":"admin.hosts","value":["evil.example"]}]}`},
	} {
		h.does(c.method, c.path, c.body, 403, "forbidden", "as: editor", always)
	}
	if h.text() != before {
		t.Errorf("the document is\n%s", h.text())
	}
	h.does("PATCH", "/settings/admin", `{"hosts":["gate.example.com"]}`, 200, "", "as: admin", always)
	// To go back to a revision that says otherwise is a change of it, too.
	_, list := h.does("GET", "/revisions", "", 200, "", "as: editor")
	first := list["items"].([]any)[len(list["items"].([]any))-1].(map[string]any)["number"]
	h.does("POST", fmt.Sprintf("/revisions/%v/rollback", first), "{}", 403, "forbidden", "as: editor", always)
	h.does("PATCH", "/settings/upstreams", `{"idle_timeout":"80s"}`, 200, "", "as: editor", always)
}

// TestEditorsCannotHaveCredentialsSentToThem moves a DNS provider's token to an endpoint
// of somebody's own.
func TestEditorsCannotHaveCredentialsSentToThem(t *testing.T) {
	h := start(t)
	t.Setenv("HEADGATE_TEST_TOKEN", "s3cret-token")
	h.does("PATCH", "/acme/main", `{"challenge":"dns-01","dns":{"provider":"cloudflare","credentials":{"api_token":"${HEADGATE_TEST_TOKEN}"}}}`, 200, "", "as: admin", always)
	_, shown := h.does("GET", "/acme/main", "", 200, "", "as: editor")
	before := h.text()
	dns := shown["dns"].(map[string]any)["credentials"]
	t.Logf("credentials are shown as %v", dns)
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", "/acme/main", `{"dns":{"credentials":{"endpoint":"https://evil.example"}}}`},
		{"POST", "/config/edits", `{"edits":[{"op":"set","path":"acme.main.dns.credentials.endpoint","value":"https://evil.example"}]}`},
		{"POST", "/config/edits", `{"edits":[{"op":"rename","path":"acme.main","to":"evil"},{"op":"set","path":"acme.evil.dns.credentials.endpoint","value":"https://evil.example"}]}`},
		{"PATCH", "/acme/main", `{"dns":{"provider":"httpreq","credentials":{"api_token":null,"endpoint":"https://evil.example","password":"${HEADGATE_TEST_TOKEN}"}}}`},
	} {
		rs, out := h.call(c.method, c.path, c.body, "as: editor", always)
		if rs.StatusCode != 403 {
			t.Errorf("%s %s %s: %d %v", c.method, c.path, c.body, rs.StatusCode, out)
		}
	}
	if h.text() != before {
		t.Errorf("the document is\n%s", h.text())
	}
	h.does("PATCH", "/acme/main", `{"dns":{"credentials":{"api_token":"another","endpoint":"https://dns.example"}}}`, 200, "", "as: editor", always)
}

func TestARevertKeepsWhatWasEditedByHand(t *testing.T) {
	h := start(t)
	h.does("PATCH", "/proxies/main?confirm_within=5m", `{"description":"a"}`, 200, "", "as: editor", always)
	edited := h.text() + "# by hand\n"
	if err := os.WriteFile(h.file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	h.does("POST", "/revert", `{}`, 409, "nothing_pending", "as: editor")
	if h.text() != edited {
		t.Errorf("the document is\n%s", h.text())
	}
	h.does("POST", "/confirm", `{}`, 409, "nothing_pending", "as: editor")
}

func TestAMaskedSecretStaysInEdits(t *testing.T) {
	h := start(t)
	_, object := h.does("GET", "/proxies/main", "", 200, "", "as: viewer")
	value := map[string]any{"virtual_hosts": object["virtual_hosts"], "routes": object["routes"], "basic_auth": object["basic_auth"], "description": "by an edit"}
	body, err := json.Marshal(map[string]any{"edits": []any{map[string]any{"op": "set", "path": "proxies.main", "value": value}}})
	if err != nil {
		t.Fatal(err)
	}
	// What is only told is not written back.
	text := strings.ReplaceAll(string(body), `,"password_hash_set":true`, "")
	if !strings.Contains(text, masked) || strings.Contains(text, "_set") {
		t.Fatalf("what is written back: %s", text)
	}
	_, out := h.does("POST", "/config/plan", text, 200, "", "as: editor")
	if text := fmt.Sprint(out); strings.Contains(text, "password_hash") || !strings.Contains(text, "by an edit") {
		t.Errorf("the plan: %s", text)
	}
	h.does("POST", "/config/edits", text, 200, "", "as: editor", always)
	if text := h.text(); !strings.Contains(text, `password_hash: "$2y$12$abc`) || !strings.Contains(text, "by an edit") {
		t.Errorf("the document is\n%s", text)
	}
	h.does("POST", "/config/edits", `{"edits":[{"op":"set","path":"proxies.new","value":{"basic_auth":{"users":[{"name":"eve","password_hash":"********"}]}}}]}`, 400, "invalid", "as: editor", always)
}

func TestTheSchemaOfTheConfigurationIsTold(t *testing.T) {
	h := start(t)
	_, out := h.does("GET", "/config/schema", "", 200, "", "as: viewer")
	properties, _ := out["properties"].(map[string]any)
	for _, k := range config.Kinds() {
		if properties[k.Name] == nil {
			t.Errorf("the schema does not tell %s", k.Name)
		}
	}
}

func TestAStatusLeavesTheProxiesOut(t *testing.T) {
	h := start(t)
	if _, out := h.does("GET", "/status", "", 200, "", "as: viewer"); len(out["proxies"].([]any)) == 0 {
		t.Errorf("the whole status tells %v", out["proxies"])
	}
	_, out := h.does("GET", "/status?proxies=false", "", 200, "", "as: viewer")
	if len(out["proxies"].([]any)) != 0 || len(out["ports"].([]any)) == 0 {
		t.Errorf("the status tells %v and %v", out["proxies"], out["ports"])
	}
}

func TestAChangeThatWaitsIsTakenBackAtOnce(t *testing.T) {
	h := start(t)
	h.does("POST", "/revert", `{}`, 409, "nothing_pending", "as: editor")
	h.does("PATCH", "/proxies/main?confirm_within=5m", `{"description":"a"}`, 200, "", "as: editor", always)
	h.does("POST", "/revert", `{"revision":"7"}`, 409, "nothing_pending", "as: editor")
	h.does("POST", "/revert", `{"revision":"2"}`, 403, "forbidden", "as: viewer")
	h.does("POST", "/revert", `{"revision":"2"}`, 200, "", "as: editor")
	if h.text() != mainConfig {
		t.Errorf("after the revert: %s", h.text())
	}
	h.does("POST", "/confirm", `{}`, 409, "nothing_pending", "as: editor")
}

func TestAChangeWaitsToBeConfirmed(t *testing.T) {
	h := start(t)
	h.does("POST", "/confirm", `{}`, 409, "nothing_pending", "as: editor")
	h.does("PATCH", "/proxies/main?confirm_within=1s", `{"description":"a"}`, 400, "invalid", "as: editor", always)
	h.does("PATCH", "/proxies/main?confirm_within=5m&why=to+try", `{"description":"a"}`, 200, "", "as: editor", always)
	h.does("PATCH", "/proxies/main", `{"description":"b"}`, 409, "confirm_pending", "as: editor", always)
	_, out := h.does("GET", "/status", "", 200, "", "as: viewer")
	if pending, _ := out["pending"].(map[string]any); pending["revision"] != "00000002" {
		t.Errorf("pending: %v", out["pending"])
	}
	h.does("POST", "/confirm", `{"revision":"7"}`, 409, "nothing_pending", "as: editor")
	h.does("POST", "/confirm", `{"revision":"2"}`, 200, "", "as: editor")
	h.does("PATCH", "/proxies/main", `{"description":"b"}`, 200, "", "as: editor", always)
	_, out = h.does("GET", "/revisions/1/diff/current", "", 200, "", "as: viewer")
	if text := fmt.Sprint(out); !strings.Contains(text, "description") || !strings.Contains(text, "the shop") {
		t.Errorf("difference: %s", text)
	}
	_, out = h.does("POST", "/revisions/1/rollback", `{}`, 200, "", "as: editor", always)
	if h.text() != mainConfig || out["revision"] != "00000004" {
		t.Errorf("rolled back: %v\n%s", out, h.text())
	}
	_, out = h.does("GET", "/revisions", "", 200, "", "as: viewer")
	if list, _ := out["items"].([]any); len(list) != 4 || !strings.Contains(fmt.Sprint(list), "to try") {
		t.Errorf("revisions: %v", out)
	}
	h.does("GET", "/revisions/99", "", 404, "not_found", "as: admin")
	h.does("GET", "/revisions/nine", "", 404, "not_found", "as: admin")
}

func TestOfTwoWritersOneIsRefused(t *testing.T) {
	h := start(t)
	for round := range 10 {
		tag := h.tagOf("/proxies/main")
		var statuses [2]int
		var wait sync.WaitGroup
		for i := range statuses {
			wait.Go(func() {
				rq := h.request("PATCH", "/proxies/main")
				rq.Header.Set("If-Match", tag)
				rq.Header.Set("Content-Type", "application/json")
				rq.Body = body(fmt.Sprintf(`{"description":"round %d, writer %d"}`, round, i))
				rs, err := h.client.Do(rq)
				if err != nil {
					t.Error(err)
					return
				}
				rs.Body.Close()
				statuses[i] = rs.StatusCode
			})
		}
		wait.Wait()
		if statuses[0]+statuses[1] != 200+412 {
			t.Errorf("round %d: %v", round, statuses)
		}
	}
}

func TestAHandEditIsNotLost(t *testing.T) {
	h := start(t)
	whole := h.tagOf("/proxies")
	// Nobody has noticed the edit when the API writes: it is in the result.
	if err := os.WriteFile(h.file, []byte(strings.Replace(mainConfig, "the shop", "by hand", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, out := h.call("POST", "/policies", `{"name":"other","compression":{}}`, "as: editor", "If-Match: "+whole)
	if out["code"] != nil && out["code"] != "stale" {
		t.Errorf("got %v", out)
	}
	h.does("POST", "/policies", `{"name":"third","compression":{}}`, 201, "", "as: editor", always)
	_, out = h.does("GET", "/proxies/main", "", 200, "", "as: viewer")
	if text := h.text(); !strings.Contains(text, "by hand") || !strings.Contains(text, "third") || out["description"] != "by hand" {
		t.Errorf("%v, the document is\n%s", out, text)
	}
	// A stale ETag of the configuration is told what was changed since.
	_, out = h.does("POST", "/policies", `{"name":"fourth","compression":{}}`, 412, "stale", "as: editor", "If-Match: "+whole)
	if text := fmt.Sprint(out["current"]); !strings.Contains(text, "by hand") || !strings.Contains(text, "third") {
		t.Errorf("412 tells %s", text)
	}
}

func TestTheWholeConfiguration(t *testing.T) {
	h := start(t)
	rs, out := h.does("GET", "/config", "", 200, "", "as: admin")
	list, _ := out["documents"].([]any)
	if one, _ := list[0].(map[string]any); one["text"] != mainConfig || one["name"] != h.file || one["read_only"] != nil {
		t.Errorf("documents: %v", out)
	}
	text, _ := json.Marshal(strings.Replace(mainConfig, "the shop", "as a whole", 1))
	in := `{"documents":[{"name":"headgate.yaml","text":` + string(text) + `}]}`
	_, out = h.does("POST", "/config/validate", in, 200, "", "as: admin")
	if out["valid"] != true {
		t.Errorf("validate: %v", out)
	}
	_, out = h.does("POST", "/config/validate", strings.Replace(in, "version: 1", "version: 7", 1), 200, "", "as: admin")
	if out["valid"] != false || !strings.Contains(fmt.Sprint(out["problems"]), "version") {
		t.Errorf("validate: %v", out)
	}
	_, out = h.does("PUT", "/config", in, 200, "", "as: admin", "If-Match: "+rs.Header.Get("ETag"))
	if !strings.Contains(fmt.Sprint(out["changes"]), "as a whole") || out["etag"] != h.tagOf("/config") {
		t.Errorf("put: %v", out)
	}
	h.does("PUT", "/config", in, 412, "stale", "as: admin", "If-Match: "+rs.Header.Get("ETag"))
	_, out = h.does("POST", "/config/plan", `{"edits":[{"op":"set","path":"ports.main.active","value":true}]}`, 200, "", "as: editor")
	_ = out
}

func TestExplainTellsNobodyElsesSecrets(t *testing.T) {
	h := start(t)
	_, out := h.does("POST", "/explain", `{"url":"http://shop.example.com/x"}`, 200, "", "as: viewer")
	if out["asked"] != "/x" {
		t.Errorf("explained: %v", out)
	}
	for _, url := range []string{"shop.example.com", "ftp://a/", "http:///x", "http://a b/"} {
		h.does("POST", "/explain", `{"url":"`+url+`"}`, 400, "invalid", "as: viewer")
	}
	h.does("POST", "/cache/purge", `{"all":true}`, 404, "not_found", "as: editor")
	h.does("POST", "/cache/purge", `{}`, 400, "invalid", "as: editor")
}
