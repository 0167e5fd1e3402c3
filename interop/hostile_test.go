package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// operation is one row of the OpenAPI document.
type operation struct {
	method, path string
	role         string // that it needs, "" for none
	schema       any    // of its body, nil if it takes no JSON
	media        string
	match, dry   bool
}

// hostile asks for everything that a gate has.
type hostile struct {
	t          *testing.T
	address    string
	tokens     map[string]string
	client     *http.Client
	operations []operation
	schemas    map[string]any
}

// operationsOf reads the OpenAPI document of a gate.
func (h *hostile) operationsOf() {
	status, spec := h.ask("GET", "/openapi.json", "")
	if status != 200 {
		h.t.Fatalf("the OpenAPI document: %d", status)
	}
	h.schemas = dig(spec, "components", "schemas").(map[string]any)
	role := regexp.MustCompile(`Needs the role (\w+)`)
	for path, item := range spec["paths"].(map[string]any) {
		for method, raw := range item.(map[string]any) {
			op := raw.(map[string]any)
			o := operation{method: strings.ToUpper(method), path: strings.TrimPrefix(path, "/api/v1")}
			if m := role.FindStringSubmatch(fmt.Sprint(op["description"])); m != nil {
				o.role = m[1]
			}
			content, _ := dig(op, "requestBody", "content").(map[string]any)
			for media, c := range content {
				if o.media = media; strings.Contains(media, "json") {
					o.schema = c.(map[string]any)["schema"]
				}
			}
			parameters, _ := op["parameters"].([]any)
			for _, p := range parameters {
				o.match = o.match || dig(p, "name") == "If-Match"
				o.dry = o.dry || dig(p, "name") == "dry_run"
			}
			h.operations = append(h.operations, o)
		}
	}
	slices.SortFunc(h.operations, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
}

func dig(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// at is the path of an operation with names that are there.
func (o *operation) at() string {
	return strings.NewReplacer("{number}", "1", "{other}", "1", "{name}", "shop").Replace(o.path)
}

// ask sends a request. Fields are "Name: value"; "as" names a token.
func (h *hostile) ask(method, path, body string, fields ...string) (int, map[string]any) {
	h.t.Helper()
	rq, err := http.NewRequest(method, "http://"+h.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	rq.Host = "localhost"
	rq.Header.Set("Content-Type", "application/json")
	for _, f := range fields {
		switch name, value, _ := strings.Cut(f, ": "); name {
		case "as":
			rq.Header.Set("Authorization", "Bearer "+h.tokens[value])
		case "Host":
			rq.Host = value
		default:
			rq.Header.Set(name, value)
		}
	}
	rs, err := h.client.Do(rq)
	if err != nil {
		h.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer rs.Body.Close()
	out := map[string]any{}
	if !strings.HasPrefix(rs.Header.Get("Content-Type"), "text/event-stream") {
		json.NewDecoder(rs.Body).Decode(&out) // archives are no JSON
	}
	return rs.StatusCode, out
}

// refused wants a status and a code.
func (h *hostile) refused(o *operation, what string, status int, code, body string, fields ...string) {
	h.t.Helper()
	h.refusedAt(o, o.at(), what, status, code, body, fields...)
}

func (h *hostile) refusedAt(o *operation, path, what string, status int, code, body string, fields ...string) {
	h.t.Helper()
	if got, out := h.ask(o.method, path, body, fields...); got != status || out["code"] != code {
		h.t.Errorf("%s %s %s: %d %v (%v), want %d %s", o.method, o.path, what, got, out["code"], out["detail"], status, code)
	}
}

// TestEveryRowIsAttacked asks the binary for every row of its OpenAPI document as strangers,
// curious colleagues and pages of other sites do, and holds that nothing of it is done.
func TestEveryRowIsAttacked(t *testing.T) {
	t.Parallel()
	h := &hostile{t: t, address: free(t), tokens: map[string]string{}, client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
	g := start(t, strings.Replace(managed(t), `admin: {address: ""}`, `admin: {address: "`+h.address+`"}`, 1))
	a := g.manager()
	for _, role := range []string{"admin", "editor", "viewer"} {
		h.tokens[role] = a.must(201, "POST", "/tokens", fmt.Sprintf(`{"name":%q,"role":%q}`, role, role), "").body["token"].(string)
	}
	h.tokens["narrow"] = a.must(201, "POST", "/tokens", `{"name":"narrow","role":"admin","scopes":["nothing"]}`, "").body["token"].(string)
	a.must(201, "POST", "/users", `{"name":"shop","role":"viewer","password":"correct horse battery"}`, "")
	a.must(201, "POST", "/people", `{"name":"shop"}`, "")
	before, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	h.operationsOf()
	if len(h.operations) < 100 {
		t.Fatalf("only %d operations", len(h.operations))
	}
	r := rand.New(rand.NewPCG(13, uint64(time.Now().UnixNano())))
	for i := range h.operations {
		o := &h.operations[i]
		h.asStrangers(o)
		if o.schema != nil {
			h.withBadBodies(o)
			h.withRandomBodies(o, r)
		}
	}
	if after, err := os.ReadFile(g.file); err != nil || string(after) != string(before) {
		t.Errorf("the document is %s, %v", after, err)
	}
	if text := g.log.String(); strings.Contains(text, "panic in a request to the API") || strings.Contains(text, "a request to the API failed") {
		t.Errorf("the log: %s", text)
	}
}

// asStrangers asks without rights, from elsewhere, and for what is not there.
func (h *hostile) asStrangers(o *operation) {
	h.t.Helper()
	const match = "If-Match: *"
	h.refused(o, "for another host", 421, "misdirected", "{}", match, "as: admin", "Host: evil.example.com")
	h.refused(o, "from a page of another site", 403, "cross_origin", "{}", match, "as: admin", "Sec-Fetch-Site: cross-site")
	if o.method != "GET" {
		h.refused(o, "from another origin", 403, "cross_origin", "{}", match, "as: admin", "Origin: https://evil.example.com")
		h.refused(o, "from another port", 403, "cross_origin", "{}", match, "as: admin", "Origin: http://localhost:1")
	}
	h.refusedAt(o, o.at()+"?token="+h.tokens["admin"], "with a token in the address", 400, "token_in_url", "{}", match)
	h.refusedAt(o, o.at()+"?q="+h.tokens["admin"], "with a token in another parameter", 400, "token_in_url", "{}", match)
	h.refusedAt(o, "/users/"+h.tokens["admin"], "with a token in the path", 400, "token_in_url", "{}", match)
	h.refusedAt(o, o.at()+"?nonsense=1", "with an unknown parameter", 400, "unknown_parameter", "{}", match, "as: admin")
	if o.role == "" {
		return
	}
	h.refused(o, "without credentials", 401, "signed_out", "{}", match)
	h.refused(o, "with a made-up token", 401, "signed_out", "{}", match, "Authorization: Bearer hg_admin_"+strings.Repeat("0", 48))
	h.refused(o, "with a made-up session", 401, "signed_out", "{}", match, "Cookie: __Host-headgate="+strings.Repeat("0", 64), "Headgate-Session: x")
	h.refused(o, "as a client of a proxy says it is", 401, "signed_out", "{}", match, "X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "X-Real-Ip: 127.0.0.1")
	h.refused(o, "without the scope", 403, "forbidden", "{}", match, "as: narrow")
	for _, below := range map[string][]string{"editor": {"viewer"}, "admin": {"viewer", "editor"}}[o.role] {
		h.refused(o, "as "+below, 403, "forbidden", "{}", match, "as: "+below)
	}
	if o.match {
		h.refused(o, "without If-Match", 428, "precondition_required", "{}", "as: admin")
		h.refused(o, "with an ETag that is none", 412, "stale", "{}", "as: admin", "If-Match: x")
		if got, out := h.ask(o.method, o.at(), "", "as: admin", `If-Match: "99999"`); o.schema == nil && o.media == "" && got != 412 && got != 404 {
			h.t.Errorf("%s %s with a stale ETag: %d %v", o.method, o.path, got, out)
		}
	}
}

// withBadBodies sends what no JSON object of the API is.
func (h *hostile) withBadBodies(o *operation) {
	h.t.Helper()
	as := []string{"as: admin", "If-Match: *"}
	for what, c := range map[string][2]string{
		"2 000 deep":              {strings.Repeat(`{"a":`, 2_000) + "1" + strings.Repeat("}", 2_000), "invalid_json"},
		"10 000 lists deep":       {strings.Repeat(`[`, 10_000), "invalid_json"},
		"an unknown field":        {`{"nonsense":1}`, "unknown_field"},
		"a list":                  {`[]`, "invalid"},
		"no object":               {`null`, "invalid"},
		"a name twice":            {`{"name":"a","name":"b"}`, "invalid_json"},
		"two values":              {`{}{}`, "invalid_json"},
		"half of a value":         {`{"a":`, "invalid_json"},
		"what is not UTF-8":       {"{\"a\":\"\xff\"}", "invalid_json"},
		"a number out of bounds":  {`{"nonsense":1e999999999}`, "unknown_field"},
		"a byte order mark":       {"\ufeff{}", "invalid_json"},
		"a NUL behind the object": {"{}\x00", "invalid_json"},
	} {
		h.refused(o, "with "+what, 400, c[1], c[0], as...)
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-16"} {
		h.refused(o, "as "+kind, 415, "media_type", "{}", append(as, "Content-Type: "+kind)...)
	}
	h.refused(o, "compressed", 415, "media_type", "{}", append(as, "Content-Encoding: gzip")...)
	h.huge(o)
}

// huge announces a body of 1 GB.
func (h *hostile) huge(o *operation) {
	h.t.Helper()
	c, err := net.Dial("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "%s /api/v1%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nIf-Match: *\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n{", o.method, o.at(), h.tokens["admin"])
	rs, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		h.t.Errorf("%s %s with 1 GB: %v", o.method, o.path, err)
		return
	}
	rs.Body.Close()
	if rs.StatusCode != 413 {
		h.t.Errorf("%s %s with 1 GB: %s", o.method, o.path, rs.Status)
	}
}

// withRandomBodies sends what the schema allows, or nearly, and tries it only.
func (h *hostile) withRandomBodies(o *operation, r *rand.Rand) {
	h.t.Helper()
	if !o.dry {
		return
	}
	for range 6 {
		body, err := json.Marshal(h.random(r, o.schema, 0))
		if err != nil {
			h.t.Fatal(err)
		}
		status, out := h.ask(o.method, o.at()+"?dry_run=true", string(body), "as: admin", "If-Match: *")
		if status >= 500 && status != 503 {
			h.t.Errorf("%s %s with %s: %d %v", o.method, o.path, body, status, out)
		}
	}
}

// random returns a value that a schema allows, or nearly.
func (h *hostile) random(r *rand.Rand, schema any, depth int) any {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return h.random(r, h.schemas[ref[strings.LastIndex(ref, "/")+1:]], depth)
	}
	if r.IntN(15) == 0 || depth > 8 {
		return []any{nil, true, -1, 1.5, "x", []any{}, map[string]any{}, "********", strings.Repeat("ä", 3000)}[r.IntN(9)]
	}
	if all, ok := s["allOf"].([]any); ok {
		whole := map[string]any{}
		for _, part := range all {
			if m, ok := h.random(r, part, depth).(map[string]any); ok {
				for name, v := range m {
					whole[name] = v
				}
			}
		}
		return whole
	}
	if words, ok := s["enum"].([]any); ok {
		return words[r.IntN(len(words))]
	}
	switch s["type"] {
	case "object":
		out := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			if r.IntN(4) == 0 {
				out[name] = h.random(r, p, depth+1)
			}
		}
		if more, ok := s["additionalProperties"]; ok {
			out["main"] = h.random(r, more, depth+1)
		}
		return out
	case "array":
		out := []any{}
		for range r.IntN(3) {
			out = append(out, h.random(r, s["items"], depth+1))
		}
		return out
	case "boolean":
		return r.IntN(2) == 0
	case "integer", "number":
		return r.Int64() >> r.IntN(63)
	}
	return []string{"shop", "", "\x00", "ünï", "a/b", "..", "127.0.0.1:1", "http://127.0.0.1:1", "/", "10s", "1MiB", "${HOME}", "proxies.shop.routes[0]", "shop.example.com"}[r.IntN(14)]
}

// TestTheMachineIsItsOwners sets what reaches for the machine through the API, by each role,
// and signs in with the cookie that somebody else has put into the browser.
func TestTheMachineIsItsOwners(t *testing.T) {
	t.Parallel()
	h := &hostile{t: t, address: free(t), tokens: map[string]string{}, client: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}}
	g := start(t, strings.Replace(managed(t), `admin: {address: ""}`, `admin: {address: "`+h.address+`"}`, 1)+"acme: {main: {email: ops@example.com, directory: \"https://127.0.0.1:1/\"}}\n")
	a := g.manager()
	for _, role := range []string{"admin", "editor", "viewer"} {
		h.tokens[role] = a.must(201, "POST", "/tokens", fmt.Sprintf(`{"name":%q,"role":%q}`, role, role), "").body["token"].(string)
	}
	for _, c := range []struct {
		path, body              string
		viewer, editor, machine int // the last is an admin
	}{
		{"/proxies/shop", `{"routes":[{"servers":[{"url":"unix:/run/shop.sock"}]}]}`, 403, 403, 200},
		{"/proxies/shop", `{"description":"${HOME}"}`, 403, 403, 200},
		{"/settings/admin", `{"hosts":["gate.example.com"]}`, 403, 403, 200},
		{"/acme/main", `{"challenge":"dns-01","dns":{"provider":"exec","command":"/bin/true"}}`, 403, 403, 403},
	} {
		for role, want := range map[string]int{"viewer": c.viewer, "editor": c.editor, "admin": c.machine} {
			status, out := h.ask("PATCH", c.path+"?dry_run=true", c.body, "as: "+role, "If-Match: *")
			if status != want || want == 403 && role == "editor" && out["code"] != "host_field" && out["code"] != "forbidden" {
				t.Errorf("%s with %s as %s: %d %v, want %d", c.path, c.body, role, status, out, want)
			}
		}
	}
	a.must(201, "POST", "/users", `{"name":"ann","role":"admin","password":"correct horse battery"}`, "")
	const planted = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rq, err := http.NewRequest("POST", "http://"+h.address+"/api/v1/session", strings.NewReader(`{"user":"ann","password":"correct horse battery"}`))
	if err != nil {
		t.Fatal(err)
	}
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("Cookie", "__Host-headgate="+planted)
	rs, err := h.client.Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	var in struct{ Secret string }
	if err := json.NewDecoder(rs.Body).Decode(&in); err != nil || rs.StatusCode != 201 || len(rs.Cookies()) != 1 {
		t.Fatalf("signs in: %s %v, %v", rs.Status, rs.Cookies(), err)
	}
	c := rs.Cookies()[0]
	if c.Value == planted || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %s", c)
	}
	for what, f := range map[string][3]string{
		"both secrets":                      {c.Value, in.Secret, "200"},
		"the planted cookie":                {planted, in.Secret, "401"},
		"the cookie alone, as another port": {c.Value, "", "401"},
		"the header alone":                  {"", in.Secret, "401"},
	} {
		status, _ := h.ask("GET", "/session", "", "Cookie: __Host-headgate="+f[0], "Headgate-Session: "+f[1])
		if fmt.Sprint(status) != f[2] {
			t.Errorf("with %s: %d, want %s", what, status, f[2])
		}
	}
}

// TestHeadsOfStreamsEnd asks for the streams as HEAD, whose answers have no body.
func TestHeadsOfStreamsEnd(t *testing.T) {
	t.Parallel()
	address := free(t)
	g := start(t, strings.Replace(managed(t), `admin: {address: ""}`, `admin: {address: "`+address+`"}`, 1))
	token := g.manager().must(201, "POST", "/tokens", `{"name":"viewer","role":"viewer"}`, "").body["token"].(string)
	for _, path := range []string{"/events", "/logs/access/stream"} {
		rq, err := http.NewRequest("HEAD", "http://"+address+"/api/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		rq.Header.Set("Authorization", "Bearer "+token)
		tr := &http.Transport{}
		rs, err := (&http.Client{Timeout: patience, Transport: tr}).Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, rs.Body)
		rs.Body.Close()
		if err != nil || rs.StatusCode != 200 || rs.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HEAD %s: %s %v, %v", path, rs.Status, rs.Header, err)
		}
		// The connection is free for the next request.
		rq.Method = "GET"
		rq.URL.Path = "/api/v1/version"
		if rs, err = (&http.Client{Timeout: patience, Transport: tr}).Do(rq); err != nil || rs.StatusCode != 200 {
			t.Errorf("after HEAD %s: %v, %v", path, rs, err)
		} else {
			rs.Body.Close()
		}
		tr.CloseIdleConnections()
	}
}
