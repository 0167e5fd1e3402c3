package interop

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hold starts an upgrade that waits at a step, and returns when it does. release lets it go on
// and returns the output of the command.
func (r *replaced) hold(step string) (release func() string) {
	r.t.Helper()
	r.install(relayScript(step, "hold", r.dir))
	type result struct {
		out string
		err error
	}
	ended := make(chan result, 1)
	go func() {
		out, err := r.command("upgrade")
		ended <- result{out, err}
	}()
	eventually(r.t, "the upgrade waits at "+step, func() bool {
		b, _ := os.ReadFile(filepath.Join(r.dir, relayLog))
		return strings.Contains(string(b), "held")
	})
	return func() string {
		r.t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, releaseFile), nil, 0o600); err != nil {
			r.t.Fatal(err)
		}
		got := <-ended
		if got.err != nil {
			r.t.Fatalf("upgrade: %v\n%s\n%s", got.err, got.out, r.logged())
		}
		return got.out
	}
}

// TestChangesDuringAnUpgrade holds that changes are rejected with 503 and Retry-After while the
// new process takes over, that the rest is served meanwhile, and that the same change is made by
// the new process afterwards.
func TestChangesDuringAnUpgrade(t *testing.T) {
	plain := free(t)
	r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {plain: {address: %q, protocol: http}}
proxies: {all: {routes: [{servers: [{url: %q}]}]}}
`, plain, echoRequests(t)))
	old := r.pid
	release := r.hold("serving")
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/tokens", `{"name": "early", "role": "viewer"}`},
		{"PUT", "/proxies/other", `{"routes": [{"fixed_response": {"status": 204}}]}`},
		{"POST", "/upgrade", `{}`},
		{"POST", "/upgrade", `{"force": true}`},
	} {
		rs, body := r.send(c.method, "/api/v1"+c.path, c.body)
		if rs.StatusCode != http.StatusServiceUnavailable || rs.Header.Get("Retry-After") == "" || !strings.Contains(body, `"upgrading"`) {
			t.Errorf("%s %s: %s, Retry-After %q, %s", c.method, c.path, rs.Status, rs.Header.Get("Retry-After"), body)
		}
	}
	if s, err := r.state(); err != nil || !s.Running || s.PID != old {
		t.Errorf("the state of the upgrade: %+v, %v", s, err)
	}
	if got, err := posts(&http.Transport{DisableKeepAlives: true}, "http://"+plain+"/")([]byte("hello")); err != nil || string(got) != "hello" {
		t.Errorf("a client: %q, %v", got, err)
	}
	release()
	eventually(t, "the new process serves", func() bool {
		s, err := r.state()
		if err == nil && s.PID != old {
			r.pid = s.PID
		}
		return r.pid != old
	})
	if rs, body := r.send("POST", "/api/v1/tokens", `{"name": "early", "role": "viewer"}`); rs.StatusCode != http.StatusCreated {
		t.Errorf("after the upgrade: %s, %s", rs.Status, body)
	}
}

// send sends a request through the admin socket. PUT makes an object.
func (r *replaced) send(method, path, body string) (*http.Response, string) {
	r.t.Helper()
	condition := "If-Match"
	if method == "PUT" {
		condition = "If-None-Match"
	}
	return r.sendIf(condition, method, path, body)
}

// change changes what is there.
func (r *replaced) change(method, path, body string) (*http.Response, string) {
	r.t.Helper()
	return r.sendIf("If-Match", method, path, body)
}

// sendIf sends a request with a condition on any version.
func (r *replaced) sendIf(condition, method, path, body string) (*http.Response, string) {
	r.t.Helper()
	link := filepath.Join(shortDir(r.t), "state")
	if err := os.Symlink(filepath.Join(r.dir, "state"), link); err != nil {
		r.t.Fatal(err)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(link, "admin.sock"))
		}}}
	rq, err := http.NewRequest(method, "http://headgate"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	rq.Header.Set("Content-Type", "application/json")
	if method != "POST" {
		rq.Header.Set(condition, "*")
	}
	rs, err := client.Do(rq)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rs.Body.Close()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return rs, string(text)
}
