//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"headgate/internal/admin"
)

// stranger listens where a configuration has its admin listener, and notes what it is
// asked and told.
type stranger struct {
	address  string
	instance admin.Instance // what it claims to be; without an ID it does not tell

	mu struct {
		sync.Mutex
		asked, told []string
	}
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	s := &stranger{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.address = server.Listener.Addr().String()
	return s
}

func (s *stranger) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	body, _ := io.ReadAll(rq.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.asked = append(s.mu.asked, rq.URL.Path)
	if secret := rq.Header.Get("Authorization") + string(body); secret != "" {
		s.mu.told = append(s.mu.told, secret)
	}
	if rq.URL.Path != admin.InstancePath {
		io.WriteString(w, "{}")
	} else if s.instance.ID == "" {
		http.NotFound(w, rq)
	} else {
		json.NewEncoder(w).Encode(s.instance)
	}
}

// TestStrangersAreToldNothing runs commands that name no listener and no state directory,
// while somebody else listens where the configuration has the admin listener: neither a
// token nor a password goes there, and nothing is done elsewhere in its place.
func TestStrangersAreToldNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("STATE_DIRECTORY", filepath.Join(dir, "state"))
	t.Setenv(tokenVariable, "hg_ci_secret")
	s := newStranger(t)
	file := filepath.Join(dir, "headgate.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nadmin: {address: \""+s.address+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, claims := range map[string]admin.Instance{
		"tells nothing":          {},
		"claims to serve":        {ID: "x", Config: file, State: "/var/lib/headgate"},
		"names a socket in vain": {ID: "x", Config: file, State: dir, Socket: filepath.Join(dir, "none.sock")},
	} {
		s.instance = claims
		for _, args := range [][]string{{"status"}, {"logs"}, {"user", "add", "ann"}, {"user", "passwd", "ann"}, {"token", "list"}} {
			var out, errs bytes.Buffer
			code := execute(append(args, "--config", file), stdio{strings.NewReader("correct horse battery\n"), &out, &errs})
			if code != exitNotRunning || !strings.Contains(errs.String(), "--state") || !strings.Contains(errs.String(), "--admin") {
				t.Errorf("%s, %v: code %d, out %q, err %q; want %d and what to name", name, args, code, &out, &errs, exitNotRunning)
			}
		}
		var out, errs bytes.Buffer
		if code := execute([]string{"health", "--config", file}, stdio{strings.NewReader(""), &out, &errs}); code != exitOK {
			t.Errorf("%s, health: code %d, %s", name, code, &errs)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked := slices.Compact(slices.Sorted(slices.Values(s.mu.asked))); !slices.Equal(asked, []string{"/healthz", admin.InstancePath}) {
		t.Errorf("the stranger was asked for %v", asked)
	}
	if len(s.mu.told) > 0 {
		t.Errorf("the stranger was told %q", s.mu.told)
	}
	if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
		t.Error("a state directory was made")
	}
}

// TestSocketOfAnotherUserIsNotAsked connects to a socket whose process is of a user who is
// not trusted.
func TestSocketOfAnotherUserIsNotAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 8)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, rq *http.Request) { asked <- rq.URL.Path })}
	go server.Serve(l)
	defer server.Close()
	r := &reach{cmd: newStatus()}
	saw := -1
	_, err = r.openSocket(t.Context(), path, func(uid int) bool { saw = uid; return false })
	if err == nil || !strings.Contains(err.Error(), "is of a process of the user with number") || saw != os.Geteuid() {
		t.Errorf("got %v, user %d", err, saw)
	}
	if len(asked) > 0 {
		t.Errorf("it was asked for %s", <-asked)
	}
	if ownUser(os.Geteuid()+1) || !ownUser(os.Geteuid()) || !ownUser(0) {
		t.Error("only root and our own user are trusted")
	}
}

// TestFingerprintIsNeverPassedOver names a listener on this machine with a fingerprint:
// one that speaks plain HTTP has none and gets no token.
func TestFingerprintIsNeverPassedOver(t *testing.T) {
	t.Setenv(tokenVariable, "hg_ci_secret")
	s := newStranger(t)
	for _, address := range []string{s.address, "http://" + s.address, "https://" + s.address} {
		var out, errs bytes.Buffer
		if code := execute([]string{"status", "--admin", address, "--fingerprint", strings.Repeat("ab", 32)}, stdio{strings.NewReader(""), &out, &errs}); code == exitOK {
			t.Errorf("%s: code %d, %s", address, code, &out)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.asked) > 0 || len(s.mu.told) > 0 {
		t.Errorf("it was asked for %v and told %q", s.mu.asked, s.mu.told)
	}
	if _, _, err := adminURL("http://127.0.0.1:9080", true); err == nil || errors.Is(err, errNotRunning) {
		t.Errorf("a fingerprint of plain HTTP: %v", err)
	}
}
