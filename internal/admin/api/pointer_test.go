package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pointers are JSON pointers (RFC 6901, section 3).
var pointers = regexp.MustCompile(`^(/([^~]|~[01])*)*$`)

// checkPlaces holds that the places which a problem names are JSON pointers, and
// parameters by their names. All tests of the API ask for answers through it.
func checkPlaces(t testing.TB, what string, out map[string]any) {
	t.Helper()
	if out["type"] != "about:blank" || out["code"] == nil {
		return
	}
	list, _ := out["problems"].([]any)
	for _, p := range append(list, any(out)) {
		at, _ := p.(map[string]any)["pointer"].(string)
		parameter, _ := p.(map[string]any)["parameter"].(string)
		if !pointers.MatchString(at) || at != "" && parameter != "" {
			t.Errorf("%.300s: the problem is at the pointer %q, parameter %q", what, at, parameter)
		}
	}
}

// TestProblemsOfTheConfigurationArePointedAt sends what is refused by each step of a
// change: the editor of documents, the fields that there are, the checks, the compile, and
// what only admins may set.
func TestProblemsOfTheConfigurationArePointedAt(t *testing.T) {
	h := start(t)
	edit := func(edits string) string { return `{"edits":[` + edits + `]}` }
	for _, c := range []struct{ what, method, path, body, as, want string }{
		{"the editor", "POST", "/config/edits", edit(`{"op":"remove","path":"proxies.none"}`), "editor", "/proxies/none"},
		{"the editor, inside", "POST", "/config/edits", edit(`{"op":"remove","path":"proxies.main.routes[7].path"}`), "editor", "/proxies/main/routes/7/path"},
		{"a name with a dot and a slash", "POST", "/config/edits", edit(`{"op":"remove","path":"proxies[\"a.b/c\"]"}`), "editor", "/proxies/a.b~1c"},
		{"the editor, in a plan", "POST", "/config/plan", edit(`{"op":"remove","path":"proxies.none"}`), "editor", "/proxies/none"},
		{"a check, by edits", "POST", "/config/edits", edit(`{"op":"set","path":"proxies.main.routes[0].path","value":"api"}`), "editor", "/proxies/main/routes/0/path"},
		{"a check", "PATCH", "/proxies/main", `{"routes":[{"path":"api","servers":[{"url":"http://127.0.0.1:1"}]}]}`, "editor", "/routes/0/path"},
		{"an unknown field", "PATCH", "/proxies/main", `{"routes":[{"pathh":"/"}]}`, "editor", "/routes/0/pathh"},
		{"a reference", "PATCH", "/proxies/main", `{"use":["none"]}`, "editor", "/use/0"},
		{"the compile", "POST", "/proxies", `{"name":"a/b.c","virtual_hosts":["shop.example.com"],"routes":[{"servers":[{"url":"http://127.0.0.1:1"}]}]}`, "editor", ""},
		{"a host field", "PATCH", "/access_log", `{}`, "editor", ""},
		{"a document", "PUT", "/config", `{"documents":[{"name":"other.yaml","text":""}]}`, "admin", "/documents/0/name"},
		{"what a document says", "PUT", "/config", `{"documents":[{"name":"headgate.yaml","text":"version: 1\nproxies: {shop: {routes: [{path: x}]}}\n"}]}`, "admin", "/proxies/shop/routes/0"},
		{"a mask", "PATCH", "/proxies/main", `{"basic_auth":{"users":[{"name":"eve","password_hash":"********"}]}}`, "editor", "/basic_auth/users/0/password_hash"},
	} {
		rs, out := h.call(c.method, c.path, c.body, "as: "+c.as, always)
		if rs.StatusCode < 400 || c.want != "" && out["pointer"] != c.want {
			t.Errorf("%s: %d at %v, want %s: %v", c.what, rs.StatusCode, out["pointer"], c.want, out["detail"])
		}
	}
	for path, want := range map[string]string{
		"/users?cursor=x": "cursor", "/events?types=x": "types", "/logs/access?client=x": "client", "/status?proxy=none": "proxy", "/users?a%2Fb=1": "a/b",
		"/series?period=x": "period", "/users?limit=x": "limit",
	} {
		if rs, out := h.call("GET", path, "", "as: admin"); rs.StatusCode < 400 || out["parameter"] != want || out["pointer"] != nil {
			t.Errorf("%s: %d %v", path, rs.StatusCode, out)
		}
	}
}

// TestRefusalsPointIntoBodies reads the sources: a place that is written there is a JSON
// pointer, and parameters are named as such.
func TestRefusalsPointIntoBodies(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, ok := call.Fun.(*ast.Ident)
			if !ok || name.Name != "refuse" && name.Name != "refuseParameter" {
				return true
			}
			seen++
			at, ok := call.Args[1].(*ast.BasicLit)
			if !ok {
				return true
			}
			place, err := strconv.Unquote(at.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name.Name == "refuse" && !pointers.MatchString(place) || name.Name == "refuseParameter" && (place == "" || strings.Contains(place, "/")) {
				t.Errorf("%s: %s(…, %q, …)", f.Name(), name.Name, place)
			}
			return true
		})
	}
	if seen < 100 {
		t.Errorf("only %d refusals were seen", seen)
	}
}
