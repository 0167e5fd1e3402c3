package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// gate is a headgate that runs, with an admin listener on loopback.
type gate struct {
	dir, web, admin string
	cmd             *exec.Cmd
	local           *http.Client // by the admin socket
	ended           chan error
}

// startGate runs headgate with the settings of a configuration behind its ports.
func startGate(ctx context.Context, settings string) (*gate, error) {
	dir, err := os.MkdirTemp("", "hg")
	if err != nil {
		return nil, err
	}
	g := &gate{dir: dir, web: freeAddress(), admin: freeAddress(), ended: make(chan error, 1)}
	text := fmt.Sprintf("version: 1\nadmin: {address: %q}\nports: {web: {address: %q, protocol: http}}\n%s", g.admin, g.web, settings)
	file := filepath.Join(dir, "headgate.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	g.cmd = exec.CommandContext(ctx, *binary, "run", "--config", file, "--state", filepath.Join(dir, "state"))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	g.cmd.Stderr = log
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { g.ended <- g.cmd.Wait() }()
	g.local = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "state", "admin.sock"))
	}}}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if rs, err := http.Get("http://" + g.admin + "/readyz"); err == nil {
			rs.Body.Close()
			if rs.StatusCode == http.StatusOK {
				return g, nil
			}
		}
		select {
		case err := <-g.ended:
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("headgate ended with %v: %s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, errors.New("headgate does not serve")
}

// stop ends headgate and removes what it has written.
func (g *gate) stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-g.ended:
	case <-time.After(30 * time.Second):
		_ = g.cmd.Process.Kill()
	}
	os.RemoveAll(g.dir)
}

// call sends a request to the API as the owner of the machine.
func (g *gate) call(method, path string, in, out any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	rq, err := http.NewRequest(method, "http://headgate/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("If-Match", "*")
	rs, err := g.local.Do(rq)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	data, err = io.ReadAll(rs.Body)
	if err != nil {
		return err
	}
	if rs.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s", method, path, rs.Status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// token makes one for a viewer.
func (g *gate) token() (string, error) {
	var t struct{ Token string }
	err := g.call("POST", "/tokens", map[string]string{"name": "viewer", "role": "viewer"}, &t)
	return t.Token, err
}

// memory is how many bytes of memory the process has.
func (g *gate) memory() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", g.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// cpu is how much time of processors the process has used, to a hundredth of a second.
func (g *gate) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func freeAddress() string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer l.Close()
	return l.Addr().String()
}

func loadOfMachine() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}
