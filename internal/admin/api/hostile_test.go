package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"headgate/internal/schema"
)

// TestHostileInputGetsDocumentedStatuses sends every operation what no client of ours would:
// parameters, paths, fields and bodies of the wrong kind, length and form. Each status that
// comes back has to be in the OpenAPI document for that operation, and none is 500. Each
// place gets some of the values in turn, so that all operations together get all of them.
func TestHostileInputGetsDocumentedStatuses(t *testing.T) {
	seen := &answers{seen: map[string]map[int]bool{}}
	h := start(t)
	t.Chdir(t.TempDir())
	s := h.scene(seen)
	all := documented(t)
	turn := turn{}
	for _, r := range h.api.rows {
		key := r.method + " " + r.path
		for _, in := range turn.attacks(r) {
			w, out := s.call(in.method, in.path, in.body, in.fields...)
			switch want := all[key]; {
			case w.Code == http.StatusInternalServerError:
				t.Errorf("%s %.200s %.200q %.200q: 500 %v", in.method, in.path, in.fields, in.body, out)
			case !slices.Contains(want, w.Code) && !(w.Code == http.StatusNotFound && in.elsewhere):
				t.Errorf("%s %.200s %.200q %.200q: %d %v, and %s documents %v", in.method, in.path, in.fields, in.body, w.Code, out, key, want)
			}
			if w.Code >= 400 && in.method != http.MethodHead && (w.Header().Get("Content-Type") != "application/problem+json" || out["code"] == nil) {
				t.Errorf("%s %.200s: %d is no problem: %q", in.method, in.path, w.Code, w.Body)
			}
			h.alive(s)
		}
	}
}

// alive ends what would keep later requests from being looked at: a change that waits to be
// confirmed, and a missing token.
func (h *house) alive(s *scene) {
	h.t.Helper()
	if h.c.Pending() != nil {
		s.call("POST", "/revert", "{}")
	}
}

// attack is a request that means harm, or a mistake.
type attack struct {
	method, path, body string
	fields             []string
	// elsewhere says that the path may be none of the operation's.
	elsewhere bool
}

// texts are values for parameters, parts of paths and fields.
var texts = []string{
	"", " ", "-1", "0", "1", "1e9", "99999999999999999999", "0x10", "true", "null", "[]", "{}", `"`, "*", "..", ".", "%", "\x00", "\r\nX: y", "\xff\xfe",
	"\u202e", "a/b", "../../etc/passwd", "${PATH}", "main", "none", strings.Repeat("9", 400), strings.Repeat("a", 9000), "1h", "-1h", "10s", "2026-13-45T00:00:00Z",
}

// turn deals out values.
type turn struct{ n int }

// some returns n of the values, and others the next time.
func (t *turn) some(n int, of ...string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = of[t.n%len(of)]
		t.n++
	}
	return out
}

// attacks returns the requests for a row.
func (t *turn) attacks(r *row) (all []attack) {
	body := ""
	if r.in != nil {
		body = "{}"
	}
	add := func(path, body string, fields ...string) {
		all = append(all, attack{method: r.method, path: path, body: body, fields: append(fields, always)})
	}
	if r.stream == nil { // a stream that begins does not end
		for _, p := range r.query {
			for _, text := range t.some(5, texts...) {
				add(r.at()+"?"+url.Values{p.name: {text}}.Encode(), body)
			}
			add(r.at()+"?"+p.name+"=1&"+p.name+"=2", body)
		}
		add(r.at()+"?%zz=1;&&==", body)
	}
	if strings.Contains(r.path, "{") {
		for _, text := range t.some(8, texts...) {
			if text == "main" {
				continue // what is there is not to go
			}
			path := strings.NewReplacer("{name}", url.PathEscape(text), "{number}", url.PathEscape(text), "{other}", url.PathEscape(text), "{address}", url.PathEscape(text)).Replace(r.path)
			all = append(all, attack{r.method, path, body, []string{always}, true})
		}
	}
	for _, name := range []string{"If-Match", "If-None-Match", "Content-Type", "Content-Encoding", "Accept", "Last-Event-ID", "Origin", "Cookie", Header, passphraseField, "Authorization", "X-Forwarded-For", "Range"} {
		for _, text := range t.some(1, "*, *", "\x00", "\"", `W/"1", "2"`, "\xff", "a; b=\"", strings.Repeat("x", 9000), "bytes=0-0,-1") {
			if r.stream == nil && r.method != http.MethodDelete {
				all = append(all, attack{method: r.method, path: r.at(), body: body, fields: []string{always, name + ": " + text}})
			}
		}
	}
	if r.method == http.MethodGet {
		all = append(all, attack{method: http.MethodHead, path: r.at()})
	}
	if r.in == nil && r.upload == "" {
		return all
	}
	for _, text := range t.some(4, "null", "[]", `""`, "0", "{", "{}{}", "\xef\xbb\xbf{}", "{\"\xff\":1}", `{"":null}`, `{"__proto__":{}}`, "\x00", strings.Repeat("[", 5000),
		`{"`+strings.Repeat("n", 70_000)+`":1}`) {
		add(r.at(), text)
	}
	if r.input != nil {
		for _, text := range t.wrongFields(r.input) {
			add(r.at(), text)
		}
	}
	return all
}

// wrongFields returns bodies with one field of a wrong kind or length, and the others absent
// or good.
func (t *turn) wrongFields(o *schema.Object) (out []string) {
	values := []string{"null", "true", "-1", "1e308", "99999999999999999999", `""`, `"x"`, `"\u0000"`, `"` + strings.Repeat("x", 5000) + `"`, "[]", "[null]", `[["x"]]`, "{}", `{"x":{}}`,
		`"\ud800"`, `"169.254.169.254:80"`, `"http://169.254.169.254/"`, `"file:///etc/passwd"`, "[" + strings.Repeat(`"x",`, 3000) + `"x"]`}
	good := map[string]string{}
	for _, f := range o.Fields {
		if f.Required {
			good[f.Name] = cmp.Or(f.Example, `"x"`)
		}
	}
	for _, f := range o.Fields {
		for _, v := range t.some(3, values...) {
			body := []string{fmt.Sprintf("%q:%s", f.Name, v)}
			for name, text := range good {
				if name != f.Name {
					if !json.Valid([]byte(text)) {
						text = fmt.Sprintf("%q", text)
					}
					body = append(body, fmt.Sprintf("%q:%s", name, text))
				}
			}
			out = append(out, "{"+strings.Join(body, ",")+"}")
		}
	}
	return out
}
