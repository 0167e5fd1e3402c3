package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"headgate/internal/testhouse"
)

// ends are the events of changes on a machine.
type ends struct {
	mu  sync.Mutex
	all []string // as "2 applied", with the number of the revision
}

func (e *ends) observe(ev *Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := strings.TrimLeft(ev.Revision, "0") + " " + string(ev.Verb)
	if ev.Adopted {
		text += " adopted"
	}
	e.all = append(e.all, text)
}

func (e *ends) has(want string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.all, want)
}

// The machine that makes a change reports it. Events of those that follow it say so, also if one
// rejects it.
func TestAChangeOfAnotherMachineIsAdopted(t *testing.T) {
	e := newEngine()
	a := newMember(t, "a", limitOf(1), e)
	got := &ends{}
	b := &member{t: t, name: "b", dir: t.TempDir(), engine: e, observe: got.observe}
	b.file = filepath.Join(b.dir, "headgate.yaml")
	b.start()
	expect := func(want string) {
		t.Helper()
		testhouse.Eventually(t, fmt.Sprintf("b reports %q", want), func() bool { return got.has(want) })
	}
	expect("1 applied adopted")
	if err := a.edit(limitOf(2)); err != nil {
		t.Fatal(err)
	}
	expect("2 applied adopted")
	if err := b.edit(limitOf(3)); err != nil {
		t.Fatal(err)
	}
	expect("3 applied")
	a.serves(limitOf(3))
	b.stop() // it does not vote

	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := limitOf(3) + "ports:\n  web: {address: \"127.0.0.1:18080\", protocol: http, active: false, description: \"${file:" + secret + "}\"}\n"
	a.write(text)
	a.serves(text)
	b.start()
	testhouse.Eventually(t, "b reports that it rejects the change", func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		return slices.ContainsFunc(got.all, func(s string) bool { return strings.HasSuffix(s, "refused adopted") })
	})
}
