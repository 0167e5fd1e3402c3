package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// unpack writes the files of a compressed tar archive into a folder.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o700)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestStateOfReleasedVersionsIsOpened serves the configuration and the state of every
// released version: its users, tokens, certificates and revisions are still there.
func TestStateOfReleasedVersionsIsOpened(t *testing.T) {
	folders, err := filepath.Glob("testdata/released/*/headgate.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatal("no released version", err)
	}
	for _, name := range folders {
		dir := filepath.Dir(name)
		t.Run(filepath.Base(dir), func(t *testing.T) { openReleased(t, dir) })
	}
}

func openReleased(t *testing.T, released string) {
	dir := t.TempDir()
	state, name := filepath.Join(dir, "state"), filepath.Join(dir, "headgate.yaml")
	unpack(t, filepath.Join(released, "state.tar.gz"), state)
	document, err := os.ReadFile(filepath.Join(released, "headgate.yaml"))
	if err == nil {
		err = os.WriteFile(name, document, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(released, "token"))
	if err != nil {
		t.Fatal(err)
	}
	web, admin := testhouse.Address(t), testhouse.Address(t)
	t.Setenv("HEADGATE_TEST_WEB", web)
	t.Setenv("HEADGATE_TEST_TCP", testhouse.Address(t))
	t.Setenv("HEADGATE_TEST_ADMIN", admin)
	m := manage(t, name, state)
	defer m.end()

	// What clients get is what the version answered.
	get := func(path, host string) (int, string) {
		rq, err := http.NewRequest("GET", "http://"+web+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		rq.Host = host
		c := newHTTPClient()
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		rs, err := c.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		defer rs.Body.Close()
		text, _ := io.ReadAll(rs.Body) // a body that breaks off is not the expected one
		return rs.StatusCode, string(text)
	}
	if status, text := get("/fixed", "shop.example.com"); status != 200 || text != "of shop.example.com\n" {
		t.Errorf("GET /fixed: %d %q", status, text)
	}
	if status, _ := get("/old/page", "a.shop.example.com"); status != 301 {
		t.Errorf("GET /old/page: %d", status)
	}
	if status, _ := get("/fixed", "other.example.com"); status != 404 {
		t.Errorf("another host: %d", status)
	}

	// Operators sign in with what they had.
	base := "http://" + admin + "/api/v1"
	signIn := func(user string) int {
		status, _, _ := fetch("POST", base+"/session", `{"user":"`+user+`","password":"correct horse battery"}`)
		return status
	}
	for _, user := range []string{"ann", "bob"} {
		if status := signIn(user); status/100 != 2 {
			t.Errorf("%s signs in: %d", user, status)
		}
	}
	if status := signIn("eve"); status/100 == 2 {
		t.Error("a user that never was signs in")
	}
	bearer := "Authorization: Bearer " + strings.TrimSpace(string(token))
	list := func(path, key string) (names []string) {
		status, text, _ := fetch("GET", base+path, "", bearer)
		var page struct{ Items []map[string]any }
		if err := json.Unmarshal([]byte(text), &page); err != nil || status != 200 {
			t.Fatalf("GET %s: %d %s", path, status, text)
		}
		for _, item := range page.Items {
			value, _ := json.Marshal(item[key])
			names = append(names, strings.Trim(string(value), `"`))
		}
		return names
	}
	if got := list("/stored_certificates", "name"); len(got) != 1 || got[0] != "lab" {
		t.Errorf("stored certificates: %q", got)
	}
	if got := list("/revisions", "number"); len(got) < 2 {
		t.Errorf("revisions: %q, there were two", got)
	}
	if got := list("/proxies", "name"); len(got) != 1 || got[0] != "shop" {
		t.Errorf("proxies: %q", got)
	}
}
