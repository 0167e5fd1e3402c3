package pair

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAccessMovesFiles holds that a machine that joins has the files that the address of the
// database names, and that the address names its own.
func TestAccessMovesFiles(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	q := url.Values{"sslmode": {"verify-full"}}
	for _, parameter := range fileParameters {
		name := filepath.Join(from, parameter)
		if err := os.WriteFile(name, []byte("the "+parameter), 0o600); err != nil {
			t.Fatal(err)
		}
		q.Set(parameter, name)
	}
	at := &url.URL{Scheme: "postgres", User: url.UserPassword("headgate", "secret"), Host: "db.example.com", Path: "/headgate", RawQuery: q.Encode()}
	a, err := AccessTo(at, []byte("00ff\n"))
	if err != nil {
		t.Fatal(err)
	}
	name, err := a.save(to)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil || got.User.String() != "headgate:secret" || got.Query().Get("sslmode") != "verify-full" {
		t.Errorf("the address %s, %v", text, err)
	}
	for _, parameter := range fileParameters {
		mine := got.Query().Get(parameter)
		if data, err := os.ReadFile(mine); filepath.Dir(mine) != to || err != nil || string(data) != "the "+parameter {
			t.Errorf("%s is %s: %q, %v", parameter, mine, data, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(to, accessKey)); err != nil || string(data) != "00ff\n" {
		t.Errorf("the key: %q, %v", data, err)
	}

	os.Remove(filepath.Join(from, "sslkey"))
	if _, err := AccessTo(at, nil); err == nil || !strings.Contains(err.Error(), "sslkey") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestTokensAreForOneKindOfGroup holds that a token for a database joins no pair, and the other
// way around.
func TestTokensAreForOneKindOfGroup(t *testing.T) {
	made := func(database bool) string {
		pin := strings.Repeat("0", 64)
		return (&token{Address: "https://127.0.0.1:1", Group: "00", Pin: pin, Leader: pin, Secret: newSecret(), Database: database}).text()
	}
	if _, err := Join(t.Context(), t.TempDir(), made(true), "b", "https://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "share a database") {
		t.Errorf("a token for a database: %v", err)
	}
	if _, err := JoinDatabase(t.Context(), t.TempDir(), made(false), "b"); err == nil || !strings.Contains(err.Error(), "for a pair") {
		t.Errorf("a token for a pair: %v", err)
	}
	if !ForDatabase(made(true)) || ForDatabase(made(false)) || ForDatabase("x") {
		t.Error("the kind of a token")
	}
}
