package api

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/schema"
)

// request returns an exchange that has ended.
func request(serial uint64, path string, status int) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Peer: "192.0.2.7", Remote: netip.MustParseAddrPort("192.0.2.7:1"), Serial: serial}, nil)
	ex.Request.Method, ex.Request.Scheme, ex.Request.Host, ex.Request.Path, ex.Request.Proto = "GET", "https", "shop.example.com", path, exchange.HTTP2
	ex.Place, ex.ClientIP, ex.Response.Status = &exchange.Place{Proxy: "shop"}, netip.MustParseAddr("192.0.2.7"), status
	ex.Times = exchange.Times{Start: exchange.Now(), End: exchange.Now()}
	return ex
}

// at returns the path of a row with a name that is there.
func (r *row) at() string {
	path := strings.NewReplacer("{number}", "1", "{other}", "1").Replace(r.path)
	name := map[string]string{"users": "bob", "tokens": "viewer", "sessions": "0123456789abcdef", "webhooks": "chat", "notices": "phone", "nodes": "local"}[strings.Split(r.path, "/")[1]]
	return strings.ReplaceAll(path, "{name}", cmp.Or(name, "main"))
}

// TestEveryRowRefuses walks the table.
func TestEveryRowRefuses(t *testing.T) {
	h := start(t)
	for _, r := range h.api.rows {
		what := r.method + " " + r.path
		body := ""
		if r.in != nil {
			body = "{}"
		}
		match := []string{"If-Match: *"}
		with := func(fields ...string) []string { return append(append([]string{}, match...), fields...) }
		refused := func(name string, status int, code, body string, fields ...string) {
			t.Helper()
			rs, out := h.call(r.method, r.at(), body, fields...)
			h.expect(what+" "+name, rs, out, status, code)
		}
		lacks := "forbidden"
		if r.area == areaAccess {
			lacks = "access_required"
		}
		refused("asked for another host", 421, "misdirected", body, with("as: admin", "Host: evil.example.com")...)
		if r.method != "GET" {
			refused("from another origin", 403, "cross_origin", body, with("as: admin", "Origin: https://evil.example.com")...)
			refused("from another port of the host", 403, "cross_origin", body, with("as: admin", "Origin: http://127.0.0.1:1")...)
		}
		refused("from a page of another site", 403, "cross_origin", body, with("as: admin", "Sec-Fetch-Site: cross-site")...)
		if r.access != public {
			refused("without credentials", 401, "signed_out", body, match...)
			refused("with a wrong token", 401, "signed_out", body, with("Authorization: Bearer hg_admin_00")...)
			refused("with basic auth", 401, "signed_out", body, with("Authorization: Basic YW5uOng=")...)
			refused("without the scope", 403, lacks, body, with("as: narrow")...)
		}
		for role, below := range map[access][]string{editor: {"viewer"}, admin: {"viewer", "editor"}} {
			for _, as := range below {
				if r.access == role {
					refused("as "+as, 403, lacks, body, with("as: "+as)...)
				}
			}
		}
		rs, out := h.call(r.method, r.at()+"?token="+h.tokens["admin"], body, match...)
		h.expect(what+" with a token in the address", rs, out, 400, "token_in_url")
		rs, out = h.call(r.method, r.at()+"?nonsense=1", body, with("as: admin")...)
		h.expect(what+" with an unknown parameter", rs, out, 400, "unknown_parameter")
		if r.match {
			refused("without If-Match", 428, "precondition_required", body, "as: admin")
			if r.method != "PATCH" && r.in == nil {
				refused("with a stale ETag", 412, "stale", body, "as: admin", `If-Match: "999999"`)
			}
			refused("with an ETag that is none", 412, "stale", body, "as: admin", "If-Match: W/x")
		}
		if r.in != nil {
			as := with("as: admin")
			refused("with an unknown field", 400, "unknown_field", `{"nonsense":1}`, as...)
			refused("with no object", 400, "invalid", `[]`, as...)
			if rs, out := h.call(r.method, r.at(), "", as...); r.method == "POST" && (rs.StatusCode == 415 || out["code"] == "invalid_json") {
				t.Errorf("%s without a body: %d %v", what, rs.StatusCode, out)
			}
			refused("with no JSON", 400, "invalid_json", `{"a":`, as...)
			refused("with a name twice", 400, "invalid_json", `{"name":"a","name":"b"}`, as...)
			refused("with two values", 400, "invalid_json", `{} {}`, as...)
			refused("2 000 deep", 400, "invalid_json", strings.Repeat(`{"a":`, 2_000)+"1"+strings.Repeat("}", 2_000), as...) // within what sign-in takes
			refused("as a form", 415, "media_type", body, append(as, "Content-Type: application/x-www-form-urlencoded")...)
			refused("as text", 415, "media_type", body, append(as, "Content-Type: text/plain")...)
			refused("compressed", 415, "media_type", body, append(as, "Content-Encoding: gzip")...)
			h.huge(r)
		}
	}
	for _, path := range []string{"/nothing", "/users/", "/users/a/b", "//users", "/users/../users"} {
		rs, out := h.call("GET", path, "", "as: admin")
		h.expect(path, rs, out, 404, "not_found")
	}
	rs, out := h.call("DELETE", "/users", "", "as: admin")
	if h.expect("a method that is not there", rs, out, 405, "method_not_allowed"); rs.Header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow is %q", rs.Header.Get("Allow"))
	}
	for _, host := range []string{"gate.example.com", "GATE.example.com.:9080", "localhost", "[::1]:1", "192.0.2.1"} {
		rs, out := h.call("GET", "/version", "", "as: viewer", "Host: "+host)
		h.expect(host, rs, out, 200, "")
	}
}

// huge announces a body of 1 GB, and then sends one without end.
func (h *house) huge(r *row) {
	h.t.Helper()
	const most = 2*maxSource + 64<<20 // what the system keeps of it for nobody is less
	for _, framing := range []string{"Content-Length: 1073741824", "Transfer-Encoding: chunked"} {
		c, err := net.Dial("tcp", h.server.Listener.Addr().String())
		if err != nil {
			h.t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "%s %s%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nIf-Match: *\r\nContent-Type: application/json\r\n%s\r\n\r\n",
			r.method, Prefix, r.at(), h.tokens["admin"], framing)
		written := make(chan int)
		go func() {
			n := 0
			chunk := []byte("10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n")
			for n < most {
				m, err := c.Write(chunk)
				if n += m; err != nil {
					break
				}
			}
			written <- n
		}()
		rs, err := http.ReadResponse(bufio.NewReader(c), nil)
		c.Close()
		n := <-written
		if err == nil {
			rs.Body.Close()
		}
		if err != nil || rs.StatusCode != 413 || n >= most {
			h.t.Errorf("%s %s with %s: %v after %d bytes", r.method, r.path, framing, err, n)
		}
	}
}

// random returns a value that a schema allows, or nearly.
func random(r *rand.Rand, f *schema.Field, t *schema.Type) any {
	if r.IntN(12) == 0 {
		return []any{nil, true, -1, 1.5e300, "x", []any{}, map[string]any{}, masked, strings.Repeat("ä", 2000)}[r.IntN(9)]
	}
	switch t.Kind {
	case schema.Struct:
		return randomObject(r, t.Object)
	case schema.List:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, random(r, f, t.Elem))
		}
		return list
	case schema.Bool:
		return r.IntN(2) == 0
	case schema.Int:
		return r.Int64() >> r.IntN(63)
	case schema.Text:
		if len(f.Enum) > 0 {
			return f.Enum[r.IntN(len(f.Enum))]
		}
	case schema.Scalar:
		return []string{"2100-01-01T00:00:00Z", "192.0.2.0/24", "", "2001-13-01T00:00:00Z", "::/0"}[r.IntN(5)]
	}
	return []string{"eve", "ann", "", "bob", "\x00", "ünï", "a/b", "..", good, "logs:read", "123456"}[r.IntN(11)]
}

func randomObject(r *rand.Rand, o *schema.Object) map[string]any {
	object := map[string]any{}
	for _, f := range o.Fields {
		if f.Required && r.IntN(10) > 0 || r.IntN(2) == 0 {
			object[f.Name] = random(r, f, f.Type)
		}
	}
	return object
}

// TestRandomBodiesNeverBreakAnything sends what the schema allows, or nearly.
func TestRandomBodiesNeverBreakAnything(t *testing.T) {
	h := start(t)
	t.Chdir(t.TempDir()) // an access log may be opened
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for _, row := range h.api.rows {
		if row.input == nil {
			continue
		}
		n := 60
		if row.area == areaConfig {
			n = 20 // each is tried out, and saved if it is good
		}
		for range n {
			body, err := json.Marshal(randomObject(r, row.input))
			if err != nil {
				t.Fatal(err)
			}
			rs, out := h.call(row.method, row.at(), string(body), "as: admin", "If-Match: *")
			if rs.StatusCode >= 500 && rs.StatusCode != 503 {
				t.Errorf("%s %s with %s: %d %v", row.method, row.path, body, rs.StatusCode, out)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, `[1,2,{"a":null}]`, `{"a":"\u0000"}`, `{"a":1,"a":2}`, `"x`, `1e999`, strings.Repeat("[", 100)} {
		f.Add([]byte(text))
	}
	o := schema.Describe(of[tokenBody]())
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parse(data)
		if err != nil {
			if p, internal := problemOf(err); internal || p.Status != 400 {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Errorf("%q was taken and is not valid", data)
		}
		if _, err := fill(v, o); err != nil {
			if p, internal := problemOf(err); internal || p.Status != 400 {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}

func TestMergePatch(t *testing.T) {
	// RFC 7396, appendix A.
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`}, {`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`}, {`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`}, {`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, _ := parse([]byte(c[0]))
		patch, _ := parse([]byte(c[1]))
		got, err := json.Marshal(mergePatch(target, patch))
		if err != nil || string(got) != c[2] {
			t.Errorf("%s with %s: got %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
