//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"headgate/internal/config"
	"headgate/internal/upgrade"
)

// still is a house that serves nothing.
type still struct {
	recordingProxy
	options serverOptions
	running func()
}

func (h *still) Run(ctx context.Context) error {
	h.options.ready()
	h.running()
	<-ctx.Done()
	return nil
}

func (h *still) Upgrade(bool) (upgrade.Result, error) { return upgrade.Result{}, nil }

// runStill runs a command with a house that serves nothing, and stops it by a
// signal once running has returned.
func runStill(t *testing.T, command func(opener) *cobra.Command, args []string, running func(serverOptions)) (stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := command(func(o serverOptions) (server, error) {
		return &still{options: o, running: func() {
			running(o)
			// SIGTERM is heard before Run is called: serve has begun to listen.
			if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}}, nil
	})
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String(), log.String()
}

func TestRunTellsSystemdWhenItServesAndStops(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	heard := systemd(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "headgate.yaml")
	_, stderr := runStill(t, newRun, []string{"--config", file, "--state", dir}, func(o serverOptions) {
		if o.config != file || o.state != dir {
			t.Errorf("got %q and %q", o.config, o.state)
		}
	})
	for _, want := range []string{"READY=1\nSTATUS=Serving.", "STOPPING=1\nSTATUS=Draining."} {
		if got := next(t, heard); got != want {
			t.Errorf("systemd heard %q, want %q", got, want)
		}
	}
	if !strings.Contains(stderr, "msg=starting") || !strings.Contains(stderr, "msg=stopped") {
		t.Errorf("the log says %s", stderr)
	}
}

func TestDemoLeavesNothingBehind(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var file string
	stdout, _ := runStill(t, newDemo, []string{"--address", address, "--admin", ""}, func(o serverOptions) {
		file = o.config
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			return
		}
		c, _, problems := config.Load(file, data)
		if len(problems) > 0 {
			t.Error(problems)
			return
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		rs, err := client.Get(c.Proxies["demo"].Routes[0].Servers[0].URL)
		if err != nil {
			t.Error(err)
			return
		}
		defer rs.Body.Close()
		if body, _ := io.ReadAll(rs.Body); !strings.Contains(string(body), "GET / HTTP/1.1") {
			t.Errorf("the upstream answered %s", body)
		}
	})
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("the folder of the demo is still there: %v", err)
	}
	if !strings.Contains(stdout, "curl -i http://"+address+"/gone") {
		t.Errorf("printed: %s", stdout)
	}
}
