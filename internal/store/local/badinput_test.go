package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"headgate/internal/store"
)

// testContext is that of a child process, which has no test.
func testContext() context.Context { return context.Background() }

func TestStateOfANewerVersionIsRefused(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, versionName), fmt.Appendln(nil, Version+1), 0o600)
		},
		"words": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, versionName), []byte("three\n"), 0o600)
		},
		"database": func(dir string) error {
			db, err := bbolt.Open(filepath.Join(dir, dbName), 0o600, nil)
			if err != nil {
				return err
			}
			defer db.Close()
			return db.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaVersion), number(Version+1))
			})
		},
	} {
		dir := t.TempDir()
		s := openDir(t, Options{Dir: dir})
		commitOne(t, s, "user/a", "x")
		s.Close()
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(filepath.Join(dir, dbName))
		if err != nil {
			t.Fatal(err)
		}
		s, err = Open(Options{Dir: dir})
		var newer *Newer
		if !errors.As(err, &newer) || !strings.Contains(err.Error(), "run the newer headgate again") {
			t.Errorf("%s: Open = %v, want *Newer", name, err)
		}
		if err == nil {
			s.Close()
		}
		if after, err := os.ReadFile(filepath.Join(dir, dbName)); err != nil || string(after) != string(before) {
			t.Errorf("%s: the database was touched: %v", name, err)
		}
	}
}

func TestSecretsAreSealed(t *testing.T) {
	dir := t.TempDir()
	const outside = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	s := openDir(t, Options{Dir: dir, Key: outside})
	for _, key := range []string{"user/a", "certificate/a", "token/a", "key/sticky"} {
		commitOne(t, s, key, "plain secret "+key)
	}
	commitOne(t, s, "node/a", "plain public")
	s.Close()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "plain secret") {
			t.Errorf("%s holds a secret as it is", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", strings.Repeat("ab", 32)} {
		s = openDir(t, Options{Dir: dir, Key: key})
		if e, err := s.Get(t.Context(), "user/a"); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "HEADGATE_STATE_KEY") {
			t.Errorf("with another key: %q, %v", e.Value, err)
		}
		if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/b"}}}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a commit with another key: %v", err)
		}
		if got := valueOf(t, s, "node/a"); got != "plain public" {
			t.Errorf("what is not sealed is %q", got)
		}
		s.Close()
	}
	s = openDir(t, Options{Dir: dir, Key: outside})
	for _, key := range []string{"user/a", "certificate/a", "token/a", "key/sticky"} {
		if got := valueOf(t, s, key); got != "plain secret "+key {
			t.Errorf("%s is %q", key, got)
		}
	}
	if s, err := Open(Options{Dir: t.TempDir(), Key: "short"}); err == nil {
		s.Close()
		t.Error("a short key is taken")
	} else if !strings.Contains(err.Error(), "64 hexadecimal digits") {
		t.Errorf("a short key: %v", err)
	}
}

// A sealed value that is moved to another name does not open there.
func TestASealHoldsForItsNameOnly(t *testing.T) {
	s := openDir(t, Options{Dir: t.TempDir()})
	sealed := s.keys.seal("user/a", []byte("x"))
	if value, err := s.keys.open("user/b", sealed); err == nil {
		t.Errorf("opened as %q", value)
	}
	if value, err := s.keys.open("user/a", sealed); err != nil || string(value) != "x" {
		t.Errorf("got %q, %v", value, err)
	}
}

func TestOneCertificateIsOneFile(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	commitOne(t, s, "certificate/*.Shop.example", "-----BEGIN CERTIFICATE-----\n")
	data, err := os.ReadFile(filepath.Join(dir, "certificates", "%2A.%53hop.example.pem"))
	if err != nil || string(data) != "-----BEGIN CERTIFICATE-----\n" {
		t.Errorf("got %q, %v; want what was put, for a person to read", data, err)
	}
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "certificate/" + strings.Repeat("a", 300)}}}); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a name too long for a file: %v", err)
	}
}

func TestADamagedKeyDoesNotKeepTheStart(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	commitOne(t, s, "user/a", "secret")
	commitOne(t, s, "certificate/a", "pem")
	s.Close()
	name := filepath.Join(dir, keyName)
	key, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, Options{Dir: dir})
	if got := valueOf(t, s, "certificate/a"); got != "pem" {
		t.Errorf("the certificate is %q", got)
	}
	if _, err := s.Get(t.Context(), "user/a"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get of what is sealed = %v", err)
	}
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/b"}}}); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), keyName) {
		t.Errorf("Commit = %v", err)
	}
	s.Close()
	if data, err := os.ReadFile(name); err != nil || string(data) != "not a key" {
		t.Errorf("the key's file was touched: %q, %v", data, err)
	}
	if err := os.WriteFile(name, key, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, Options{Dir: dir})
	if got := valueOf(t, s, "user/a"); got != "secret" {
		t.Errorf("with its key back the secret is %q", got)
	}
}
