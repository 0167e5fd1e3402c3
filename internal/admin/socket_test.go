package admin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/admin/api"
)

func socketOptions() Options {
	return Options{Log: slog.New(slog.DiscardHandler), Metrics: http.NotFoundHandler(), NotReady: func() string { return "" },
		Instance: &Instance{ID: "one", Config: "/etc/headgate.yaml"}, Peers: func(ctx context.Context, _ net.Conn) context.Context { return api.WithLocal(ctx, os.Geteuid()) }}
}

// askSocket sends a request to a socket and returns status and body.
func askSocket(t *testing.T, path, page string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialSocket(ctx, path)
	}}}
	rs, err := client.Get("http://headgate" + page)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(rs.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rs.StatusCode, string(body)
}

func needsPeers(t *testing.T) {
	t.Helper()
	if !api.KnowsPeers {
		t.Skip("peers cannot be told apart here")
	}
}

func TestSocketIsForItsOwner(t *testing.T) {
	needsPeers(t)
	path := filepath.Join(t.TempDir(), SocketName)
	s, err := OpenSocket(path, socketOptions())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("mode %v, %v; want a socket with 0600", info.Mode(), err)
	}
	if status, body := askSocket(t, path, InstancePath); status != 200 || !strings.Contains(body, `"id": "one"`) {
		t.Errorf("instance: %d %s", status, body)
	}
	s.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after Close: %v, want the socket gone", err)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestOwnProcessHasNoRights stands for a proxy whose server is the socket.
func TestOwnProcessHasNoRights(t *testing.T) {
	needsPeers(t)
	if os.Getpid() == 0 {
		t.Skip("the system does not tell processes")
	}
	o := socketOptions()
	o.Peers = nil
	path := filepath.Join(t.TempDir(), SocketName)
	s, err := OpenSocket(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if status, body := askSocket(t, path, InstancePath); status != 403 {
		t.Errorf("got %d %s, want 403", status, body)
	}
}

func TestSocketReplacesOneThatNobodyAnswersAt(t *testing.T) {
	needsPeers(t)
	path := filepath.Join(t.TempDir(), SocketName)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	s, err := OpenSocket(path, socketOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := OpenSocket(path, socketOptions()); err == nil || !strings.Contains(err.Error(), "another process answers there") {
		t.Errorf("a second one: %v, want it refused", err)
	}
	if status, _ := askSocket(t, path, InstancePath); status != 200 {
		t.Errorf("the first one answers %d", status)
	}
}

func TestSocketLeavesOtherFilesAlone(t *testing.T) {
	needsPeers(t)
	path := filepath.Join(t.TempDir(), SocketName)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSocket(path, socketOptions()); err == nil || !strings.Contains(err.Error(), "something else has this name") {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestSocketAtAPathThatIsTooLong(t *testing.T) {
	needsPeers(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SocketName)
	s, err := OpenSocket(path, socketOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if status, body := askSocket(t, path, InstancePath); status != 200 || !strings.Contains(body, `"one"`) {
		t.Errorf("got %d %s", status, body)
	}
}

func TestSocketHasABoundOfConnections(t *testing.T) {
	needsPeers(t)
	path := filepath.Join(t.TempDir(), SocketName)
	l, err := listenSocket(path)
	if err != nil {
		t.Fatal(err)
	}
	b := &bounded{l, make(chan struct{}, 1)}
	defer b.Close()
	accepted := func() (near, far net.Conn) {
		near, err := dialSocket(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { near.Close() })
		if far, err = b.Accept(); err != nil {
			t.Fatal(err)
		}
		return near, far
	}
	_, first := accepted()
	near, _ := accepted()
	if n, err := near.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("beyond the bound: read %d, %v; want the end", n, err)
	}
	first.Close()
	first.Close()
	_, third := accepted()
	if _, err := third.Write([]byte("x")); err != nil {
		t.Errorf("after one has gone: %v", err)
	}
}
