package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"headgate/internal/config/decode"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// commented is a file as people write them.
const commented = `# Managed by hand. Ask Ada before you change anything.
version: 1

ports:   # what is open
  web: {address: "0.0.0.0:8080", protocol: http}   # side by side for now
  websecure:
    address: '0.0.0.0:8443'
    protocol: https

    limits: # small machine
      max_connections: 100

policies:
  # who works here
  staff: { ip_filter: { allow: [10.0.0.0/8,   192.0.2.0/24] } }
defaults: {compression: {}}
proxies:
    # the shop, and what is below it
    shop:
        virtual_hosts: [ shop.example.com, "*.shop.example.com" ] # both
        use: [staff]
        headers:
        - direction: response   # for browsers
          name: X-Frame-Options
          value: ${FRAME:-DENY}
        # not indented, on purpose
        - {direction: request, name: X-A, value: 'it''s'}

        basic_auth:
            users:
              - name: ada
                # made with headgate hash-password
                password_hash: "$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se"
        routes:
            - path: /api # the API
              servers:
                  - url: http://127.0.0.1:3000/v2/
                    weight: 3

                  - {url: "http://127.0.0.1:3001/v2/"}   # the old one
              health_check:
                  path: /healthz
                  interval: 10s # often
            # gone for good
            - path: /gone
              fixed_response:
                  status: 410
                  body: |
                      Gone.

                      # not a comment
                  content_type: text/plain
    blog:
        routes: [{servers: [{url: "http://127.0.0.1:4000"}]}]
tcp_proxies: {db: {address: "0.0.0.0:5432", servers: [{address: "127.0.0.1:5433"}]}}
udp_proxies:
  dns:
    address: 0.0.0.0:53
    servers:
    - address: 127.0.0.1:5353
certificates:
  main: {cert_file: cert.pem, key_file: key.pem}
access_log:
  enabled: false   # for now
# the end
`

// decoded reads a file without looking at what does not fit together.
func decoded(t testing.TB, text string) *Config {
	t.Helper()
	c := New()
	out := &Loaded{config: c}
	report := schema.NewReport("", out)
	l := loader{expand: &decode.Expander{Lookup: func(string) (string, bool) { return "", false }}}
	d := newSectionReader(c, l, false)
	if unread := l.read(one("f", []byte(text)), out, d, report); unread {
		t.Fatalf("%v\n%s", report.Problems(), text)
	}
	return c
}

func edit(text string, e document.Edit) (string, *Problem) {
	doc, p := document.Read("f", []byte(text), document.Outline{Section: isSection})
	if p != nil {
		return "", p
	}
	out, p := doc.Edit(e, isSection)
	if p != nil {
		return "", p
	}
	return out.Text(), nil
}

// sample returns a JSON value for a type, another one than v has.
func sample(f *schema.Field, ty *schema.Type, v reflect.Value) any {
	switch ty.Kind {
	case schema.Bool:
		return !v.IsValid() || v.Kind() != reflect.Bool || !v.Bool()
	case schema.Int:
		n := int64(1)
		if f.Min != nil {
			n = *f.Min + 1
		}
		if v.IsValid() && v.CanInt() && v.Int() == n {
			n++
		}
		return n
	case schema.Text:
		for _, word := range f.Enum {
			if !v.IsValid() || v.Kind() != reflect.String || v.String() != word {
				return word
			}
		}
		return `it's "x": #1, {é}`
	case schema.Struct:
		out := map[string]any{}
		for _, sub := range ty.Object.Fields {
			if sub.Required {
				out[sub.Name] = sample(sub, sub.Type, reflect.Value{})
			}
		}
		return out
	case schema.List:
		return []any{sample(f, ty.Elem, reflect.Value{}), sample(f, ty.Elem, reflect.Value{})}
	case schema.Map:
		return map[string]any{"x": sample(f, ty.Elem, reflect.Value{})}
	}
	for _, text := range []string{"17s", "17KiB", "true", "10.1.2.3:77", "404", "502", "connect"} {
		w := reflect.New(ty.Go).Elem()
		if ty.SetText(w, text) == nil && !(v.IsValid() && v.Type() == w.Type() && schema.SameValue(v, w)) {
			if text == "true" {
				return true
			}
			return text
		}
	}
	return "x"
}

// eachPath calls visit for every field below an object, of all that is there.
func eachPath(o *schema.Object, v reflect.Value, path string, visit func(f *schema.Field, v reflect.Value, path string)) {
	for _, f := range o.Fields {
		at, value := schema.JoinPath(path, f.Name), v.FieldByIndex(f.Index)
		visit(f, value, at)
		below(f.Type, value, at, visit)
	}
}

func below(ty *schema.Type, v reflect.Value, path string, visit func(f *schema.Field, v reflect.Value, path string)) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch ty.Kind {
	case schema.Struct:
		eachPath(ty.Object, v, path, visit)
	case schema.List:
		for i := range v.Len() {
			below(ty.Elem, v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case schema.Map:
		for _, key := range v.MapKeys() {
			below(ty.Elem, v.MapIndex(key), schema.JoinPath(path, key.String()), visit)
		}
	}
}

// at returns the canonical form of the value at a path.
func at(c *Config, path string) string {
	out := "absent"
	eachPath(Describe(), reflect.ValueOf(c).Elem(), "", func(f *schema.Field, v reflect.Value, p string) {
		if p == path {
			out = string(f.AppendJSON(nil, v, p, schema.Form{}))
		}
	})
	return out
}

// kept tells which line of before, but for those that an edit may touch, is not in
// after any more, in the same order.
func kept(before, after string, touched func(line string) bool) string {
	rest := strings.Split(after, "\n")
	for _, line := range strings.Split(before, "\n") {
		if touched(line) && (len(rest) == 0 || rest[0] != line) {
			continue
		}
		i := slices.Index(rest, line)
		if i < 0 {
			return line
		}
		rest = rest[i+1:]
	}
	return ""
}

// TestEveryFieldCanBeEdited sets every field of the schema in a commented file, one
// by one, and holds that the field reads as it was set, and that no other line is
// another one.
func TestEveryFieldCanBeEdited(t *testing.T) {
	text := grown(t)
	before := decoded(t, text)
	edits, seen := 0, map[string]bool{}
	eachPath(Describe(), reflect.ValueOf(before).Elem(), "", func(f *schema.Field, v reflect.Value, path string) {
		if f.Name == "version" {
			return
		}
		seen[fmt.Sprintf("%v.%s", f.Owner, f.Name)] = true
		inner := v
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			inner = v.Elem()
		}
		want := sample(f, f.Type, inner)
		data, _ := json.Marshal(want)
		after, p := edit(text, document.Edit{Op: document.Set, Path: path, Value: data})
		if p != nil {
			t.Errorf("set %s to %s: %v", path, data, p)
			return
		}
		edits++
		got := decoded(t, after)
		if f.Type.Kind != schema.Struct && f.Type.Kind != schema.List && f.Type.Kind != schema.Map {
			w := reflect.New(f.Type.Go).Elem()
			if err := f.Type.SetText(w, fmt.Sprint(want)); err == nil {
				if wanted := string(f.AppendJSON(nil, w, path, schema.Form{})); at(got, path) != wanted {
					t.Errorf("set %s to %s, reads as %s, want %s\n%s", path, data, at(got, path), wanted, after)
				}
			}
		} else if at(got, path) == at(before, path) && after != text && len(data) > 2 {
			t.Errorf("set %s to %s, reads as before: %s", path, data, at(got, path))
		}
		leaf := f.Name
		if line := kept(text, after, func(line string) bool { return touchedBy(line, path, leaf, f.Type.Kind) }); line != "" {
			t.Errorf("set %s to %s: the line %q is not there any more\n%s", path, data, line, after)
		}
		first, rest := document.CutStep(path)
		second, _ := document.CutStep(rest)
		for _, k := range Kinds() {
			for name := range changedNames(k, before, got) {
				if k.Name != first.Name || name != "" && rest != "" && name != second.Name {
					t.Errorf("set %s: %s %s is another one, too", path, k.Name, name)
				}
			}
		}
	})
	for _, o := range Describe().Objects() {
		for _, f := range o.Fields {
			if id := fmt.Sprintf("%v.%s", f.Owner, f.Name); !seen[id] && f.Name != "version" {
				t.Errorf("%s was not edited", id)
			}
		}
	}
	t.Logf("%d edits of %d fields", edits, len(seen))
}

// changedNames returns the names of the objects of a kind that two configurations do not
// have alike, "" for a single one.
func changedNames(k *Kind, a, b *Config) map[string]bool {
	out := map[string]bool{}
	for _, name := range append(k.Names(a), k.Names(b)...) {
		out[name] = true
	}
	if k.Single {
		out[""] = true
	}
	maps.DeleteFunc(out, func(name string, _ bool) bool { return a.ETag(k.Name, name) == b.ETag(k.Name, name) })
	return out
}

// grown returns the commented file with every object and list that it has not,
// added by edits.
func grown(t *testing.T) string {
	text, known := commented, map[string]bool{}
	for range 4 {
		type absent struct {
			path string
			data []byte
		}
		var todo []absent
		c := decoded(t, text)
		eachPath(Describe(), reflect.ValueOf(c).Elem(), "", func(f *schema.Field, v reflect.Value, path string) {
			id := fmt.Sprintf("%v.%s", f.Owner, f.Name)
			holds := f.Type.Kind == schema.Struct && f.Type.Pointer && v.IsNil() || f.Type.Elem != nil && f.Type.Elem.Kind == schema.Struct && v.Len() == 0
			if holds && !known[id] {
				known[id] = true
				data, _ := json.Marshal(sample(f, f.Type, reflect.Value{}))
				todo = append(todo, absent{path, data})
			}
		})
		for _, a := range todo {
			next, p := edit(text, document.Edit{Op: document.Set, Path: a.path, Value: a.data})
			if p != nil {
				t.Fatalf("add %s: %v", a.path, p)
			}
			text = next
		}
	}
	if line := kept(commented, text, func(line string) bool { return strings.Contains(line, "{") }); line != "" {
		t.Errorf("the line %q is not there any more\n%s", line, text)
	}
	return text
}

// touchedBy reports whether an edit of a field may change a line: it has the field,
// or it is below it.
func touchedBy(line, path, leaf string, kind schema.Kind) bool {
	if kind == schema.List || kind == schema.Struct || kind == schema.Map {
		return true
	}
	if leaf == "body" && (line == "" || strings.HasPrefix(line, "                      ")) {
		return true // a text of several lines
	}
	return strings.Contains(line, leaf+":") || strings.Contains(line, "{") || strings.Contains(line, "- address")
}

func TestEditsKeepWhatPeopleWrote(t *testing.T) {
	for _, v := range []struct {
		name     string
		e        document.Edit
		old, new string // of the text, once
	}{
		{"a value with a comment", document.Edit{Op: document.Set, Path: "proxies.shop.routes[0].servers[0].weight", Value: []byte("5")}, "weight: 3\n", "weight: 5\n"},
		{"quotes stay", document.Edit{Op: document.Set, Path: "ports.websecure.address", Value: []byte(`"0.0.0.0:443"`)}, "'0.0.0.0:8443'", "'0.0.0.0:443'"},
		{"in braces", document.Edit{Op: document.Set, Path: "ports.web.address", Value: []byte(`"0.0.0.0:80"`)}, `"0.0.0.0:8080"`, `"0.0.0.0:80"`},
		{"a new field in braces", document.Edit{Op: document.Set, Path: "ports.web.h2c", Value: []byte("true")}, "protocol: http}", "protocol: http, h2c: true}"},
		{"a list on one line", document.Edit{Op: document.Set, Path: "proxies.shop.virtual_hosts[2]", Value: []byte(`"new.example.com"`)}, `"*.shop.example.com" ]`, `"*.shop.example.com", new.example.com ]`},
		{"one element of a list", document.Edit{Op: document.Set, Path: "proxies.shop.virtual_hosts", Value: []byte(`["shop.example.com"]`)}, `, "*.shop.example.com" ]`, ` ]`},
		{"a new server", document.Edit{Op: document.Set, Path: "proxies.shop.routes[0].servers[2]", Value: []byte(`{"url":"http://127.0.0.1:3002/v2/"}`)},
			"# the old one\n", "# the old one\n                  - url: \"http://127.0.0.1:3002/v2/\"\n"},
		{"a new object", document.Edit{Op: document.Set, Path: "proxies.new", Value: []byte(`{"virtual_hosts":["new.example.com"],"routes":[{"fixed_response":{"status":200}}]}`)},
			"url: \"http://127.0.0.1:4000\"}]}]\n", "url: \"http://127.0.0.1:4000\"}]}]\n    new:\n      virtual_hosts: [new.example.com]\n      routes:\n        - fixed_response:\n            status: 200\n"},
		{"a field taken out", document.Edit{Op: document.Remove, Path: "proxies.shop.routes[0].health_check.interval"}, "                  interval: 10s # often\n", ""},
		{"the first field of an element", document.Edit{Op: document.Remove, Path: "proxies.shop.routes[0].path"}, "- path: /api # the API\n              servers:", "- servers:"},
		{"an object taken out", document.Edit{Op: document.Remove, Path: "proxies.blog"}, "    blog:\n        routes: [{servers: [{url: \"http://127.0.0.1:4000\"}]}]\n", ""},
		{"the last object of a kind", document.Edit{Op: document.Remove, Path: "certificates.main"}, "certificates:\n  main: {cert_file: cert.pem, key_file: key.pem}\n", "certificates: {}\n"},
		{"a new name", document.Edit{Op: document.Rename, Path: "proxies.shop", To: "store"}, "    shop:\n", "    store:\n"},
		{"a new name in braces", document.Edit{Op: document.Rename, Path: "tcp_proxies.db", To: "postgres"}, "{db:", "{postgres:"},
		{"what the environment says stays", document.Edit{Op: document.Set, Path: "proxies.shop.headers[0].name", Value: []byte(`"X-B"`)}, "name: X-Frame-Options", "name: X-B"},
		{"a text of several lines", document.Edit{Op: document.Set, Path: "proxies.shop.routes[1].fixed_response.body", Value: []byte(`"a\nb"`)},
			"body: |\n                      Gone.\n\n                      # not a comment\n", "body: \"a\\nb\"\n"},
		{"a new setting", document.Edit{Op: document.Set, Path: "admin.address", Value: []byte(`"127.0.0.1:9999"`)}, "enabled: false   # for now\n", "enabled: false   # for now\nadmin:\n  address: \"127.0.0.1:9999\"\n"},
	} {
		want := strings.Replace(commented, v.old, v.new, 1)
		got, p := edit(commented, v.e)
		if strings.Count(commented, v.old) != 1 {
			t.Errorf("%s: %q stands %d times in the file", v.name, v.old, strings.Count(commented, v.old))
		}
		if p != nil || got != want {
			t.Errorf("%s: %v\n%s", v.name, p, firstDifference(want, got))
		}
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: want %q\n         got %q", i+1, strings.Join(a[i:min(i+4, len(a))], "\n"), strings.Join(b[i:min(i+4, len(b))], "\n"))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(b), len(a))
}

func TestEditsThatWouldChangeOthersAreRefused(t *testing.T) {
	const text = `version: 1
x-base: &base
  request_timeout: 10s
  rate_limit: {requests: 5}
proxies:
  a: &a
    <<: *base
    routes: &routes
      - fixed_response: {status: 200}
  b: *a
  c:
    <<: [*base]
    routes: *routes
  d: {routes: [{fixed_response: !!map {status: 200}}]}
`
	for _, v := range []struct {
		e    document.Edit
		want string
	}{
		{document.Edit{Op: document.Set, Path: "proxies.a.active", Value: []byte("false")}, "it is part of the anchor &a, which other values use"},
		{document.Edit{Op: document.Set, Path: "proxies.b.active", Value: []byte("false")}, "it is an alias of the anchor &a, which other values use"},
		{document.Edit{Op: document.Set, Path: "proxies.c.rate_limit.requests", Value: []byte("6")}, "rate_limit comes from a merge (<<) that other values may use, too"},
		{document.Edit{Op: document.Set, Path: "proxies.c.routes[0].path", Value: []byte(`"/x"`)}, "it is an alias of the anchor &routes, which other values use"},
		{document.Edit{Op: document.Remove, Path: "proxies.c.request_timeout"}, "request_timeout comes from a merge (<<) that other values may use, too"},
		{document.Edit{Op: document.Remove, Path: "proxies.a"}, "it is part of the anchor &a, which other values use"},
		{document.Edit{Op: document.Set, Path: "proxies.d.routes[0].fixed_response.status", Value: []byte("201")}, "it has a tag"},
		{document.Edit{Op: document.Remove, Path: "proxies.none"}, "there is nothing to remove"},
		{document.Edit{Op: document.Rename, Path: "proxies.c", To: "a"}, `there is "a" already`},
		{document.Edit{Op: document.Set, Path: "proxies.c.active", Value: []byte("{")}, "the value cannot be read: "},
		{document.Edit{Op: document.Set, Path: "proxies.c.routes.path", Value: []byte("1")}, "the path refers to a part that the value does not have"},
		{document.Edit{Op: document.Set, Path: "", Value: []byte("1")}, "the path names no field"},
	} {
		if got, p := edit(text, v.e); p == nil || !strings.HasPrefix(p.What, v.want) {
			t.Errorf("%s %s: %v, want %q\n%s", v.e.Op, v.e.Path, p, v.want, got)
		}
	}
	for _, e := range []document.Edit{
		{Op: document.Set, Path: "proxies.c.request_timeout", Value: []byte(`"20s"`)}, // beside the merge key
		{Op: document.Set, Path: "proxies.c.active", Value: []byte("false")},
		{Op: document.Remove, Path: "proxies.b"},
	} {
		if _, p := edit(text, e); p != nil {
			t.Errorf("%s %s: %v", e.Op, e.Path, p)
		}
	}
}

func BenchmarkEditOneOf10000Proxies(b *testing.B) {
	doc, _ := document.Read("f", large(10_000), document.Outline{Section: isSection})
	b.ReportAllocs()
	for b.Loop() {
		if _, p := doc.Edit(document.Edit{Op: document.Set, Path: "proxies.p05000.routes[1].path", Value: []byte(`"/other"`)}, isSection); p != nil {
			b.Fatal(p)
		}
	}
}
