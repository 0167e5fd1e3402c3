package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPrefixes(t *testing.T) {
	for expr, want := range map[string]string{
		`^/api(/|$)`: "/api", `^/api(/.*)?$`: "/api", `^/api/`: "/api!", `^/api/.*$`: "/api!", `^/api/(.*)`: "/api!", `^/api`: "/api!", `^/api$`: "/api!", `^/`: "", `^/.*$`: "",
		`^/(a|bc)(/|$)`: "/a /bc", `^/v[12](?:/|$)`: "/v1 /v2", `^/a/?$`: "/a!", `^/a/?(.*)$`: "/a!", `^/(api|.well-known)`: "/api! /.well-known!", `^/(?:\.|autotest)`: "/autotest!",
		`/api`: "none", `\.php$`: "none", `^/x\.php$`: "/x.php!", `^/$`: "none", `^/a.*b`: "none", `^/a+`: "none", `(?i)^/a(/|$)`: "none", `^/[a-z]{3}/`: "none", `(`: "none", `^/(a/|a$)x`: "none",
	} {
		got := "none"
		if all, ok := Prefixes(expr); ok {
			var parts []string
			for _, p := range all {
				if p.Note != "" {
					p.Path += "!"
				}
				parts = append(parts, p.Path)
			}
			got = strings.Join(parts, " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

func TestLiterals(t *testing.T) {
	for expr, want := range map[string]string{`^(GET|HEAD)$`: "[GET HEAD]", `^P(OS|U)T$`: "[POST PUT]", `^GET`: "[]", `GET`: "[]", `^.*$`: "[]"} {
		if got, _ := Literals(expr); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", expr, got, want)
		}
	}
}

// decided is what a list of rules says of a request, and what the routes made of it say.
func TestRoutesDecideAsTheRulesInOrder(t *testing.T) {
	get, post := &Atom{Kind: Method, Value: "GET"}, &Atom{Kind: Method, Value: "POST"}
	a, b := &Atom{Kind: Header, Name: "X-A", Value: "1"}, &Atom{Kind: Header, Name: "X-B"}
	api := &Atom{Kind: Path, Value: "/api"}
	for name, list := range map[string][]Condition{
		"methods and headers": {One(get).And(One(a)), One(b), One(post).Or(One(a))},
		"not":                 {One(get).Not().And(One(b)), One(a).Not()},
		"paths":               {One(api).And(One(get)), One(b), One(api)},
		"other values":        {One(a).And(One(b)), One(&Atom{Kind: Header, Name: "x-a", Value: "2"}), One(b)},
		"two methods at once": {One(get).Or(One(post)).And(One(b).Not()), One(b).And(One(get)), One(a)},
	} {
		var atoms []*Atom
		for _, c := range list {
			c.Atoms(func(a *Atom) { atoms = append(atoms, a) })
		}
		decide := func(r Region) (int, string) {
			i := slices.IndexFunc(list, func(c Condition) bool { return c.Within(r) })
			return i, fmt.Sprint(i)
		}
		pieces, full := Routes("", atoms, decide, func(left, other Piece[int]) {
			t.Errorf("%s: %s was left out for %s", name, left.Label(), other.Label())
		})
		if full {
			t.Errorf("%s: too many", name)
		}
		for _, method := range []string{"GET", "POST", "PUT"} {
			for _, path := range []string{"", "/api"} {
				for _, x := range []string{"", "1", "2", "3"} {
					for _, y := range []string{"", "z"} {
						has := func(a *Atom) bool {
							value := map[string]string{"x-a": x, "x-b": y}[strings.ToLower(a.Name)]
							switch a.Kind {
							case Method:
								return a.Value == method
							case Path:
								return Below(path, a.Value)
							}
							return value != "" && (a.Value == "" || a.Value == value)
						}
						want := slices.IndexFunc(list, func(c Condition) bool {
							return slices.ContainsFunc(c.Any, func(l []Literal) bool {
								return !slices.ContainsFunc(l, func(l Literal) bool { return has(l.Atom) == l.Not })
							})
						})
						if got := chosen(pieces, method, path, has); got != want {
							t.Errorf("%s: %s %s with %q and %q: %d, want %d", name, method, path, x, y, got, want)
						}
					}
				}
			}
		}
	}
}

// A value and an expression that it matches are as many matchers, and headgate refuses
// the two: the second one is told and left out.
func TestWhatHeadgateCannotTellApartIsLeftOut(t *testing.T) {
	value, expr := &Atom{Kind: Header, Name: "X-A", Value: "1"}, &Atom{Kind: Header, Name: "X-A", Regex: "^[12]$"}
	lost := ""
	pieces, _ := Routes("", []*Atom{value, expr}, func(r Region) (bool, string) {
		return r.Within(value), fmt.Sprint(r.Within(value), r.Within(expr))
	}, func(left, other Piece[bool]) { lost += left.Asks[0].Regex })
	if len(pieces) != 2 || !pieces[1].Out || lost != "^[12]$" {
		t.Errorf("%d pieces, lost %q", len(pieces), lost)
	}
}

// chosen is what headgate's choice says: the longest path, then the most matchers.
func chosen(pieces []Piece[int], method, path string, has func(*Atom) bool) int {
	best := -1
	for i, p := range pieces {
		if !Below(path, p.Path) || len(p.Methods) > 0 && !slices.Contains(p.Methods, method) || slices.ContainsFunc(p.Asks, func(a *Atom) bool { return !has(a) }) {
			continue
		}
		if best < 0 || len(p.Path) > len(pieces[best].Path) || p.Path == pieces[best].Path && p.matchers() > pieces[best].matchers() {
			best = i
		}
	}
	if best < 0 {
		return -2
	}
	return pieces[best].Out
}
