package plan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"headgate/internal/config"
)

// An edit of one proxy makes its path table anew and leaves those of others as they are,
// whatever the edit is; where hosts move, all are joined again.
func TestAnEditJoinsWhatItChanged(t *testing.T) {
	text := "proxies:\n" + named("a", "a.example, also.example", "/", "/x") + named("b", "b.example, shared.example", "/") +
		named("c", "shared.example", "/c") + named("d", "'*.d.example'", "/") + named("e", "", "/") + named("f", "f.example", "/")
	edits := []struct {
		name, old, new string
		joined         bool // the table was made out of the one before
	}{
		{"a route more", named("a", "a.example, also.example", "/", "/x"), named("a", "a.example, also.example", "/", "/x", "/y"), true},
		{"another host", named("f", "f.example", "/"), named("f", "other.example", "/"), false},
		{"a host that others have", named("b", "b.example, shared.example", "/"), named("b", "b.example, shared.example", "/", "/b"), false},
		{"a wildcard", named("d", "'*.d.example'", "/"), named("d", "'*.d.example'", "/", "/d"), false},
		{"all hosts", named("e", "", "/"), named("e", "", "/", "/e"), true},
		{"gone", named("f", "f.example", "/"), "", false},
		{"renamed", named("f", "f.example", "/"), named("g", "f.example", "/"), false},
		{"nobody's any more", named("f", "f.example", "/"), named("f", "f.example", "/") + "    active: false\n", false},
	}
	for _, edit := range edits {
		t.Run(edit.name, func(t *testing.T) {
			first, _ := Compile(load(t, text), nil, House{}, nil)
			now := strings.Replace(text, edit.old, edit.new, 1)
			cfg := load(t, now)
			shareUnchanged(first.config, cfg)
			next, _ := Compile(cfg, first, House{}, nil)
			fresh, _ := Compile(load(t, now), nil, House{}, nil)
			if got, want := outline(next), outline(fresh); got != want {
				t.Errorf("after the edit:\n%s\nalone:\n%s", got, want)
			}
			was, is := &first.Port("web").hosts, &next.Port("web").hosts
			if was.exact["also.example"] == is.exact["also.example"] && strings.HasPrefix(edit.name, "a route") {
				t.Error("the proxy that was edited has the table that it had")
			}
			// A table of several proxies is made anew by every join.
			if joined := was.exact["shared.example"] == is.exact["shared.example"]; joined != edit.joined {
				t.Errorf("joined out of the tables before: %v, want %v", joined, edit.joined)
			}
			if reflect.ValueOf(was.exact).Pointer() == reflect.ValueOf(is.exact).Pointer() && edit.name == "a route more" {
				t.Error("both plans have one map")
			}
		})
	}
}

// shareUnchanged has a configuration share the proxies of another one that say the same,
// as config.Load does.
func shareUnchanged(was, is *config.Config) {
	for name, p := range was.Proxies {
		if other := is.Proxies[name]; other != nil && reflect.DeepEqual(p, other) {
			is.Proxies[name] = p
		}
	}
}

// Nothing of an edit is linear in the proxies but what looks at each: the memory that a
// compile takes for one edited proxy of many is that of its lists.
func TestAnEditAllocatesLittle(t *testing.T) {
	const many = 2000
	var b strings.Builder
	b.WriteString("proxies:\n")
	for i := range many {
		b.WriteString(named(fmt.Sprintf("p%04d", i), fmt.Sprintf("h%d.example", i), "/", "/x"))
	}
	text := b.String()
	last, _ := Compile(load(t, text), nil, House{}, nil)
	edited := [2]*config.Config{load(t, text), load(t, strings.Replace(text, `"/x"`, `"/z"`, 1))}
	shareUnchanged(last.config, edited[0])
	shareUnchanged(last.config, edited[1])
	n := 0
	allocs := testing.AllocsPerRun(20, func() {
		n++
		next, _ := Compile(edited[n%2], last, House{}, nil)
		last.Retire(next)
		last = next
	})
	if allocs > many/4 {
		t.Errorf("%v allocations for one proxy of %d", allocs, many)
	}
}
