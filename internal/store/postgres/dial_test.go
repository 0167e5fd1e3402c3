//go:build unix

package postgres

import (
	"testing"
	"time"
)

// A pool that refuses the parameter is used without it, and is asked once.
func TestAServerThatRefusesTheUserTimeoutIsUsed(t *testing.T) {
	database := newDatabase(t)
	p := newProxy(t)
	p.rejects(userTimeout)
	s := openAt(t, p.url(database), "a")
	if _, err := putOne(t, s, "user/a", "x"); err != nil {
		t.Fatal(err)
	}
	if !s.noUserTimeout.Load() || s.config.RuntimeParams[userTimeout] == "" {
		t.Error("the parameter was not sent, or is sent again")
	}
	p.rejects("statement_timeout") // of which it says so, too
	p.away(true)
	p.away(false)
	if _, err := s.connect(t.Context()); err == nil {
		t.Error("a server that refuses another parameter is used")
	}
}

// The limit is derived from that of calls, unless the address has one, and is not for Unix sockets.
func TestTheUserTimeoutIsThatOfACall(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://a@/b?host=/run/postgresql":                           "",
		"postgres://a@127.0.0.1/b?sslmode=disable":                       "4000",
		"postgres://a@db1,db2/b?sslmode=verify-full":                     "4000",
		"postgres://a@127.0.0.1/b?sslmode=disable&tcp_user_timeout=9000": "9000",
		"postgres://a@/b?host=/run/postgresql,db2&sslmode=verify-full":   "4000",
	} {
		config, err := configOf(url, 4*time.Second)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := config.RuntimeParams[userTimeout]; got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
