package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/store"
)

// TestTheHostOfTheServerVanishes has the network swallow all packets, as when the host of the server
// loses its power: nothing is reset. A commit is refused in time, later ones at once, no connection
// is left on either side, and all goes on when packets arrive again. It runs in a namespace of its own.
func TestTheHostOfTheServerVanishes(t *testing.T) {
	const inside = "HEADGATE_TEST_NAMESPACE"
	if os.Getenv(inside) != "" {
		vanish(t)
		return
	}
	for _, program := range []string{"ip", "iptables"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			t.Skip("it needs root, ip and iptables:", err)
		}
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestTheHostOfTheServerVanishes$", "-test.v", "-test.timeout", "2m")
	run.Env = append(os.Environ(), inside+"=1", listenVariable+"=127.0.0.1")
	run.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := run.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("no namespace of the network can be made:", err)
	}
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
}

// sh runs a program in the namespace.
func sh(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", words, err, out)
	}
}

// swallow has all packets of the server swallowed, or not any more.
func swallow(t *testing.T, yes bool) {
	t.Helper()
	how := map[bool]string{true: "-A", false: "-D"}[yes]
	for _, port := range []string{"--dport", "--sport"} {
		sh(t, "iptables", how, "INPUT", "-p", "tcp", port, "5432", "-j", "DROP")
	}
}

// clientSockets returns how many sockets to the server the system has.
func clientSockets(t *testing.T) (n int) {
	t.Helper()
	data, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		const timeWait = "06"
		if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[2], ":1538") && f[3] != timeWait && f[3] != "02" {
			n++
		}
	}
	return n
}

func vanish(t *testing.T) {
	sh(t, "ip", "link", "set", "lo", "up")
	database := newDatabase(t)
	s, err := Open(Options{URL: fmt.Sprintf("postgres://%s@127.0.0.1/%s?sslmode=disable", server.user, database), Key: groupKey(), Node: "a", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := putOne(t, s, "user/a", "x"); err != nil {
		t.Fatal(err)
	}
	rows, _, err := s.call(t.Context(), "SELECT current_setting('"+userTimeout+"')")
	if err != nil || string(rows[0][0]) != fmt.Sprint(s.timeout.Milliseconds()) && string(rows[0][0]) != "3s" {
		t.Errorf("the server gives up after %q, %v", rows, err)
	}
	within(t, 10*time.Second, "it listens", func() bool { state, _ := s.State(); return state == Listening })

	swallow(t, true)
	began := time.Now()
	if _, err := putOne(t, s, "user/a", "y"); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) || time.Since(began) > 2*s.timeout {
		t.Errorf("a change without the host: %v after %v", err, time.Since(began))
	}
	t.Logf("the first change was refused after %v", time.Since(began))
	for range 5 {
		again := time.Now()
		if _, err := putOne(t, s, "user/a", "y"); !errors.Is(err, store.ErrUnavailable) || time.Since(again) > 200*time.Millisecond {
			t.Errorf("another change without the host: %v after %v", err, time.Since(again))
		}
	}
	if err := statement(database, "SELECT pg_notify('headgate', '0')"); err != nil { // the server sends something, too
		t.Fatal(err)
	}
	within(t, 4*s.timeout, "the connections of before end here", func() bool { return clientSockets(t) == 0 })
	t.Logf("no connection was left here after %v", time.Since(began))
	within(t, 4*s.timeout, "the connection for notifications ends on the server", func() bool {
		return statement(database, `DO $$ BEGIN IF EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'headgate' AND query LIKE 'LISTEN%') THEN RAISE 'one is left'; END IF; END $$`) == nil
	})
	t.Logf("none was left on the server after %v", time.Since(began))

	swallow(t, false)
	back := time.Now()
	within(t, 10*time.Second, "a change is made", func() bool { _, err := putOne(t, s, "user/a", "z"); return err == nil })
	within(t, 10*time.Second, "it listens again", func() bool { state, _ := s.State(); return state == Listening })
	t.Logf("changes were made again after %v", time.Since(back))
}

// within waits until something holds.
func within(t *testing.T, d time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, d)
		}
	}
}
