package importer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// finished finishes a translation and returns the entry of each text, with what a person
// is to look at.
func finished(t *testing.T, tr *Translation) (entries map[string]Entry, check string) {
	t.Helper()
	_, report, err := tr.Finish("a test", "line", nil)
	if err != nil {
		t.Fatal(err)
	}
	entries = map[string]Entry{}
	for _, e := range report.Entries {
		entries[e.Directive] = e
	}
	return entries, strings.Join(report.Check, "\n")
}

func part(text string) *line { return &line{Origin{File: "f", Line: 1}, text} }

func TestAVerdictNamesTheFieldThatItBecame(t *testing.T) {
	tr := NewTranslation("test")
	route := NewObject().Set("path", "/a")
	route.Append("headers", NewObject().Set("name", "A"))
	route.Append("headers", NewObject().Set("name", "B"))
	tr.Became(part("path"), Same, route.Field("path"), "")
	tr.Became(part("header"), Close, route.LastOf("headers"), "with %s", "a difference")
	tr.Became(part("version"), Same, ByItself(), "")
	tr.Proxies.Set("p", NewObject().Set("routes", []Object{route}))
	route.Objects("headers")[1].Set("value", "later") // a field may be completed behind its verdict
	entries, check := finished(t, tr)
	for text, want := range map[string]string{"path": "proxies.p.routes[0].path", "header": "proxies.p.routes[0].headers[1]", "version": "default"} {
		if got := entries[text].Became; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, want %s", text, got, want)
		}
	}
	if entries["header"].Verdict != Close || entries["header"].Note != "with a difference" || check != "" {
		t.Errorf("got %+v, %q", entries["header"], check)
	}
}

// A route that is left out takes what was said of its directives along.
func TestAVerdictWhoseFieldIsNotInTheDocumentIsImpossible(t *testing.T) {
	tr := NewTranslation("test")
	lost := NewObject().Set("path", "/lost")
	both := part("both")
	tr.Became(part("lost"), Same, lost.Field("path"), "")
	tr.Became(part("never set"), Close, lost.Field("servers"), "a difference")
	tr.Became(both, Same, lost.Field("path"), "")
	inner := part("inner")
	tr.Became(inner, Same, lost.Field("path"), "")
	tr.Became(part("block"), Same, Through(inner), "")
	tr.Became(part("large block"), Same, Through(inner, both), "")
	kept := NewObject().Set("path", "/kept")
	tr.Became(both, Same, kept.Field("path"), "")
	tr.Proxies.Set("p", NewObject().Set("routes", []Object{kept}))
	entries, check := finished(t, tr)
	for _, text := range []string{"lost", "never set", "inner", "block"} {
		if e := entries[text]; e.Verdict != Impossible || !strings.HasSuffix(e.Note, notThere) || e.Became != nil || strings.Contains(check, "f:1: "+text+" is not in the document") == strings.Contains(text, "block") {
			t.Errorf("%s: got %+v, %q", text, e, check)
		}
	}
	for _, text := range []string{"both", "large block"} {
		if e := entries[text]; e.Verdict != Same || !slices.Equal(e.Became, []string{"proxies.p.routes[0].path"}) {
			t.Errorf("%s: got %+v", text, e)
		}
	}
}

// Hoist leaves one of several equal fields, and at another place.
func TestAnEqualFieldAtAnotherPlaceIsFound(t *testing.T) {
	tr := NewTranslation("test")
	limit := func() Object { return NewObject().Set("request_body_limit", "1MiB") }
	a, b := limit().Set("path", "/a"), limit().Set("path", "/b")
	tr.Became(part("second"), Same, b.Field("request_body_limit"), "")
	p := NewObject()
	Hoist(p, []Object{a, b}, []string{"request_body_limit"})
	tr.Proxies.Set("p", p.Set("routes", []Object{a, b}))
	if entries, _ := finished(t, tr); !slices.Equal(entries["second"].Became, []string{"proxies.p.request_body_limit"}) {
		t.Errorf("got %+v", entries["second"])
	}
}

func TestPartsThatActThroughEachOtherEnd(t *testing.T) {
	tr := NewTranslation("test")
	a, b := part("a"), part("b")
	tr.Became(a, Same, Through(b), "")
	tr.Became(b, Same, Through(a), "")
	if entries, _ := finished(t, tr); entries["a"].Verdict != Impossible || entries["b"].Verdict != Impossible {
		t.Errorf("got %+v", entries)
	}
}

// unnamed are how many verdicts "same" and "close" of each file name no field yet. A file
// that is not here has none; take numbers down, and none up.
var unnamed = map[string]int{
	"compose/fill.go":        1,
	"compose/nginxproxy.go":  24,
	"compose/read.go":        3,
	"haproxy/action.go":      4,
	"haproxy/bind.go":        3,
	"haproxy/condition.go":   2,
	"haproxy/frontend.go":    3,
	"haproxy/haproxy.go":     8,
	"haproxy/header.go":      1,
	"haproxy/health.go":      7,
	"haproxy/server.go":      1,
	"haproxy/servers.go":     13,
	"haproxy/stream.go":      12,
	"haproxy/tables.go":      8,
	"npm/access.go":          11,
	"npm/hosts.go":           23,
	"npm/npm.go":             1,
	"traefik/compose.go":     1,
	"traefik/middlewares.go": 34,
	"traefik/routers.go":     13,
	"traefik/services.go":    23,
	"traefik/static.go":      20,
	"traefik/traefik.go":     2,
}

// TestEveryVerdictNamesItsField holds that "same" and "close" are only said by what
// takes a field: Became and NewDefault. A verdict that is computed goes the same way.
func TestEveryVerdictNamesItsField(t *testing.T) {
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		n, where := unnamedIn(t, name)
		if n != unnamed[name] {
			t.Errorf("%s: %d verdicts name no field, want %d; use Became:\n%s", name, n, unnamed[name], strings.Join(where, "\n"))
		}
	}
}

// unnamedIn returns the calls of a file that give the verdict Same or Close, or one that
// is computed, without a field.
func unnamedIn(t *testing.T, name string) (n int, where []string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, data, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := func(at ast.Node) {
		n++
		where = append(where, fset.Position(at.Pos()).String())
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.CallExpr:
			called := calledName(x.Fun)
			if strings.EqualFold(called, "became") || called == "NewDefault" || called == "Amend" {
				return true
			}
			if called == "Say" && len(x.Args) > 1 && !isVerdict(x.Args[1], "Ignored", "Impossible") {
				found(x)
			} else if called != "Say" && slices.ContainsFunc(x.Args, func(a ast.Expr) bool { return isVerdict(a, "Same", "Close") }) {
				found(x)
			}
		case *ast.KeyValueExpr:
			if key, ok := x.Key.(*ast.Ident); ok && key.Name == "Verdict" && isVerdict(x.Value, "Same", "Close") {
				found(x)
			}
		}
		return true
	})
	return n, where
}

func calledName(e ast.Expr) string {
	switch f := e.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// isVerdict reports whether an expression is one of the constants of this package.
func isVerdict(e ast.Expr, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, s.Sel.Name) {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "importer"
}
