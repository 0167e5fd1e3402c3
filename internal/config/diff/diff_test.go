package diff

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate/internal/config"
	"headgate/internal/schema"
)

// load reads a configuration of one document.
func load(t testing.TB, text string) *config.Config {
	t.Helper()
	c, _, problems := config.Load("headgate.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatalf("problems: %v\nin %s", problems, text)
	}
	return c
}

// differenceLines writes a difference as lines.
func differenceLines(d *Difference) string {
	var b strings.Builder
	for _, o := range d.Objects {
		fmt.Fprintf(&b, "%s %s %s\n", o.Change, o.Kind, o.Name)
		for _, f := range o.Fields {
			fmt.Fprintf(&b, "  %s %s (%s) %s -> %s", f.Change, f.Path, f.Within, f.Before, f.After)
			if f.Secret {
				b.WriteString(" secret")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestDifferenceNamesEveryFieldThatIsNotTheSame(t *testing.T) {
	const before = `version: 1
ports:
  web: {address: "0.0.0.0:8080", protocol: http}
  gone: {address: "0.0.0.0:8081", protocol: http}
proxies:
  same: {routes: [{fixed_response: {status: 200}}]}
  shop:
    virtual_hosts: [a.example.com, b.example.com]
    basic_auth: {users: [{name: ada, password_hash: "$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se"}]}
    routes:
      - path: /api
        health_check: {path: /healthz}
        servers: [{url: "http://10.0.0.1:3000"}, {url: "http://10.0.0.2:3000", weight: 2}]
      - {path: /old, fixed_response: {status: 410}}
    headers:
      - {direction: response, name: X-A, value: "1"}
      - {direction: response, name: X-B, value: "2"}
`
	const after = `version: 1
ports:
  web: {address: "0.0.0.0:80", protocol: http}
proxies:
  same: {routes: [{fixed_response: {status: 200}}]}
  new: {routes: [{fixed_response: {status: 200}}]}
  shop:
    description: "the shop"
    virtual_hosts: [a.example.com, c.example.com]
    basic_auth: {users: [{name: ada, password_hash: "$2y$12$zyxwvutsrqponmlkjihgfedcba0987654321zyxwvutsrqponmlkj"}]}
    routes:
      - {path: /new, fixed_response: {status: 200}}
      - path: /api
        servers: [{url: "http://10.0.0.2:3000", weight: 5}, {url: "http://10.0.0.3:3000"}]
    headers:
      - {direction: response, name: X-B, value: "2"}
      - {direction: response, name: X-A, value: "1"}
access_log: {format: combined}
`
	a := load(t, before)
	b := load(t, after)
	const want = `removed ports gone
changed ports web
  changed address () "0.0.0.0:8080" -> "0.0.0.0:80"
added proxies new
changed proxies shop
  added description ()  -> "the shop"
  changed virtual_hosts () ["a.example.com","b.example.com"] -> ["a.example.com","c.example.com"]
  changed basic_auth.users[0].password_hash (user ada)  ->  secret
  moved headers ()  -> 
  added routes[0] (route /new)  -> {"path":"/new","fixed_response":{"status":200}}
  changed routes[1].servers[0].weight (route /api, server http://10.0.0.2:3000) 2 -> 5
  added routes[1].servers[1] (route /api, server http://10.0.0.3:3000)  -> {"url":"http://10.0.0.3:3000"}
  removed routes[0].servers[0] (route /api, server http://10.0.0.1:3000) {"url":"http://10.0.0.1:3000"} -> 
  removed routes[0].health_check (route /api) {"path":"/healthz"} -> 
  removed routes[1] (route /old) {"path":"/old","fixed_response":{"status":410}} -> 
changed access_log 
  changed format () "json" -> "combined"
`
	if diff := cmp.Diff(lines(want), lines(differenceLines(Compare(a, b)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := Compare(a, a); !d.Empty() {
		t.Errorf("a configuration differs from itself: %s", differenceLines(d))
	}
	again := load(t, before+"# and a comment\n")
	if d := Compare(a, again); !d.Empty() {
		t.Errorf("two readings of one file differ: %s", differenceLines(d))
	}
	if text, err := json.Marshal(Compare(a, b)); err != nil || strings.Contains(string(text), "$2y$") {
		t.Errorf("the difference as JSON shows a password hash, or fails: %v\n%s", err, text)
	}
}

// lines returns the lines of a text, sorted into no other order.
func lines(text string) []string { return strings.Split(text, "\n") }

// TestRoutesOnOnePathAreNotMixedUp holds that routes on one path are told apart by their
// matchers, wherever they stand.
func TestRoutesOnOnePathAreNotMixedUp(t *testing.T) {
	load := func(routes ...string) *config.Config {
		return load(t, "version: 1\nproxies:\n  shop:\n    routes:\n      - "+strings.Join(routes, "\n      - ")+"\n")
	}
	all, get, post := "{path: /a, fixed_response: {status: %d}}", "{path: /a, matchers: {methods: [GET]}, fixed_response: {status: %d}}", "{path: /a, matchers: {methods: [POST]}, fixed_response: {status: %d}}"
	one := func(route string, status int) string { return fmt.Sprintf(route, status) }
	d := Compare(load(one(all, 200), one(get, 201), one(post, 202)), load(one(post, 202), one(all, 200), one(get, 301)))
	if got, want := differenceLines(d), "changed proxies shop\n  changed routes[2].fixed_response.status (route /a GET) 201 -> 301\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	d = Compare(load(one(all, 200)), load(one(get, 201), one(all, 200)))
	if got := differenceLines(d); !strings.Contains(got, "added routes[0] (route /a GET)") || strings.Count(got, "\n") != 2 {
		t.Errorf("got %s", got)
	}
	d = Compare(load(one(get, 200)), load(one(post, 200)))
	if got := differenceLines(d); !strings.Contains(got, "routes[0].matchers.methods (route /a)") {
		t.Errorf("got %s", got)
	}
}

func TestDifferenceShowsNothingThatCameFromOutside(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	load := func(secret string) *config.Config {
		t.Setenv("PAUSE", secret)
		t.Setenv("TEXT", secret)
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		return load(t, `version: 1
proxies:
  shop:
    headers: [{direction: request, name: Authorization, value: "Bearer ${file:`+filepath.ToSlash(file)+`}"}]
    maintenance: {retry_after: "${PAUSE:-5m}"}
    routes: [{fixed_response: {status: 200, body: "${TEXT}"}}]
`)
	}
	d := Compare(load("77s"), load("78s"))
	text, _ := json.Marshal(d)
	if strings.Contains(string(text), "77s") || strings.Contains(string(text), "78s") {
		t.Errorf("the difference shows what was put in: %s", text)
	}
	for _, want := range []string{`Bearer ${file:` + filepath.ToSlash(file) + `}`, `"${PAUSE:-5m}"`, `"${TEXT}"`, `"secret":true`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the difference does not show %s: %s", want, text)
		}
	}
	if n := len(d.Objects[0].Fields); n != 3 {
		t.Errorf("%d fields changed, want 3: %s", n, text)
	}
}

// TestAChangedPolicyIsOneDifference holds that proxies that use a policy do not change with it.
func TestAChangedPolicyIsOneDifference(t *testing.T) {
	const text = "version: 1\npolicies: {slow: {rate_limit: {requests: 50}}}\nproxies: {shop: {use: [slow], routes: [{fixed_response: {status: 200}}]}}\n"
	d := Compare(load(t, text), load(t, strings.Replace(text, "50", "51", 1)))
	if got, want := differenceLines(d), "changed policies slow\n  changed rate_limit.requests () 50 -> 51\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDifferenceSeesEveryField changes every plain field of the schema, one by one.
func TestDifferenceSeesEveryField(t *testing.T) {
	fields := 0
	for _, k := range config.Kinds() {
		for _, f := range k.Schema().Fields {
			a, b := reflect.New(k.Schema().Go).Elem(), reflect.New(k.Schema().Go).Elem()
			k.Schema().Fill(a)
			k.Schema().Fill(b)
			if !alter(f.Type, b.FieldByIndex(f.Index)) {
				t.Fatalf("no other value for %s.%s", k.Name, f.Name)
			}
			cmp := comparison{kind: k, before: config.New(), after: config.New()}
			if got := cmp.compare(a, b, k.Name+".x"); len(got) == 0 || !strings.HasPrefix(got[0].Path, f.Name) {
				t.Errorf("%s.%s: difference %v", k.Name, f.Name, got)
			}
			fields++
		}
	}
	if fields < 60 {
		t.Errorf("only %d fields", fields)
	}
}

// alter gives a value of type t another value.
func alter(t *schema.Type, v reflect.Value) bool {
	if t.Pointer {
		v.Set(reflect.New(t.Go))
		return true
	}
	switch t.Kind {
	case schema.Struct:
		for _, f := range t.Object.Fields {
			if alter(f.Type, v.FieldByIndex(f.Index)) {
				return true
			}
		}
		return false
	case schema.List:
		v.Set(reflect.MakeSlice(t.Go, 1, 1))
		if t.Elem.Pointer {
			v.Index(0).Set(reflect.New(t.Elem.Go))
		}
		return true
	case schema.Map:
		v.Set(reflect.MakeMap(t.Go))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.New(t.Elem.Go))
		return true
	case schema.Bool:
		v.SetBool(!v.Bool())
	case schema.Int:
		v.SetInt(v.Int() + 1)
	case schema.Text:
		v.SetString(v.String() + "x")
	default:
		for _, text := range []string{"7s", "7KiB", "true", "10.1.2.3:77", "404", "502"} {
			w := reflect.New(t.Go).Elem()
			if t.SetText(w, text) == nil && !schema.SameValue(v, w) {
				v.Set(w)
				return true
			}
		}
		return false
	}
	return true
}

func BenchmarkCompare10000Proxies(b *testing.B) {
	text := []byte("version: 1\nproxies:\n")
	for i := range 10_000 {
		text = fmt.Appendf(text, "  p%05d: {routes: [{path: /a, fixed_response: {status: 200}}, {fixed_response: {status: 404}}]}\n", i)
	}
	before, after := load(b, string(text)), load(b, string(text))
	for name, p := range before.Proxies {
		if name != "p00007" {
			after.Proxies[name] = p
		}
	}
	after.Proxies["p00007"].Routes[1].Path = "/other"
	b.ReportAllocs()
	for b.Loop() {
		if d := Compare(before, after); len(d.Objects) != 1 {
			b.Fatal(differenceLines(d))
		}
	}
}
