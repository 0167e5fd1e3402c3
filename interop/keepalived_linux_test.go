package interop

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// virtualAt is the address that the machines of TestKeepalived share.
const virtualAt = "192.0.2.10"

// holders are machines with a virtual address, on one network with a client.
type holders struct {
	t              *testing.T
	bridge, client string // network namespaces
	all            map[string]*holder
}

// holder is one of them: headgate and keepalived in a network namespace.
type holder struct {
	*gate
	name, space string
	config      string
}

// TestKeepalived holds that the virtual address of packaging/keepalived is on a machine whose
// headgate serves: it moves when headgate is killed, when it is drained, when a port cannot be
// opened, and when the machine is cut off.
func TestKeepalived(t *testing.T) {
	t.Parallel()
	keepalived := needed(t, "keepalived", "keepalived")
	h := newHolders(t, "a", "b")
	for i, name := range []string{"a", "b"} {
		h.all[name].serve(i+1, keepalived)
	}
	first := h.servedBy("")
	second := map[string]string{"a": "b", "b": "a"}[first]
	one, two := h.all[first], h.all[second]

	began := time.Now()
	one.kill()
	h.servedBy(second)
	t.Logf("after kill -9 of the holder, %s answers after %v", second, time.Since(began).Round(10*time.Millisecond))

	one.start(one.config)
	h.holds(second) // it keeps the address
	one.ready()

	began = time.Now()
	two.command("node", "drain", second)
	h.servedBy(first)
	t.Logf("after a drain, %s answers after %v", first, time.Since(began).Round(10*time.Millisecond))
	two.command("node", "undrain", second)
	two.ready()

	began = time.Now()
	command(t, "", "ip", "-n", h.bridge, "link", "set", "port-"+first, "down")
	h.servedBy(second)
	t.Logf("after the cable of the holder was cut, %s answers after %v", second, time.Since(began).Round(10*time.Millisecond))
	command(t, "", "ip", "-n", h.bridge, "link", "set", "port-"+first, "up")
	h.servedBy(second)

	// A machine on which another program has the port of headgate cannot hold the address.
	one.ready()
	two.stop()
	h.servedBy(first)
	l, err := inSpace(two.space, func() (net.Listener, error) { return net.Listen("tcp4", virtualAt+":80") })
	if err != nil {
		t.Fatal(err)
	}
	two.start(two.config)
	if out := two.tries("health", "--ready"); !strings.Contains(out, "not ready: a port does not listen") {
		t.Errorf("while another program has the port: %s", out)
	}
	h.holds(first)
	l.Close()
	two.ready()
}

// newHolders makes the network: a switch, a client, and machines.
func newHolders(t *testing.T, names ...string) *holders {
	t.Helper()
	ip := needed(t, "ip", "iproute2")
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	space := func(name string) string { return fmt.Sprintf("hgk%d%s", os.Getpid(), name) }
	h := &holders{t: t, bridge: space("s"), client: space("c"), all: map[string]*holder{}}
	do := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	add := func(name string) {
		do("netns", "add", name)
		t.Cleanup(func() { exec.Command(ip, "netns", "delete", name).Run() })
		do("-n", name, "link", "set", "lo", "up")
	}
	add(h.bridge)
	do("-n", h.bridge, "link", "add", "net", "type", "bridge")
	do("-n", h.bridge, "link", "set", "net", "up")
	join := func(name, address string) {
		add(space(name))
		do("-n", h.bridge, "link", "add", "port-"+name, "type", "veth", "peer", "name", "eth0", "netns", space(name))
		do("-n", h.bridge, "link", "set", "port-"+name, "master", "net")
		do("-n", h.bridge, "link", "set", "port-"+name, "up")
		do("-n", space(name), "address", "add", address+"/24", "dev", "eth0")
		do("-n", space(name), "link", "set", "eth0", "up")
	}
	join("c", "192.0.2.99")
	for i, name := range names {
		join(name, fmt.Sprintf("192.0.2.%d", i+1))
		h.all[name] = &holder{gate: prepare(t), name: name, space: space(name)}
	}
	return h
}

// serve starts headgate, which listens at the virtual address also where that is not, and
// keepalived as it is packaged.
func (one *holder) serve(number int, keepalived string) {
	t := one.t
	t.Helper()
	exec := []string{"ip", "netns", "exec", one.space}
	command(t, "", exec[0], append(exec[1:], "sysctl", "-w", "net.ipv4.ip_nonlocal_bind=1")...)
	one.inside, one.flags = exec, []string{"--node", one.name}
	one.config = fmt.Sprintf(`version: 1
access_log: {enabled: false}
ports:
  web: {address: "%s:80", protocol: http}
proxies:
  who: {routes: [{fixed_response: {status: 200, body: %q}}, {path: /server, servers: [{url: "http://127.0.0.1:1"}], health_check: {interval: 1s}}]}
`, virtualAt, one.name)
	one.start(one.config)

	check := one.packaged("check-headgate", "exec \"${HEADGATE:-headgate}\"", "exec "+os.Getenv(binaryFolder))
	config := one.packaged("keepalived.conf", "/etc/keepalived/check-headgate", check, "priority 100", fmt.Sprint("priority ", 100+number),
		"script_user nobody", "script_user root", "192.0.2.10/24", virtualAt+"/24", "    enable_script_security\n", "")
	dir := shortDir(t)
	args := append(exec[1:], keepalived, "--dont-fork", "--log-console", "--log-detail", "--vrrp", "--use-file", config,
		"--pid", filepath.Join(dir, "pid"), "--vrrp_pid", filepath.Join(dir, "vrrp"))
	runKeepalived(t, exec[0], args...)
}

// packaged writes a file of packaging/keepalived with changes, which must apply.
func (one *holder) packaged(name string, changes ...string) string {
	t := one.t
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "packaging", "keepalived", name))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(string(data), changes[i]) {
			t.Fatalf("%s has no %q", name, changes[i])
		}
	}
	text := strings.NewReplacer(changes...).Replace(string(data))
	path := filepath.Join(one.dir, name)
	info, err := os.Stat(filepath.Join("..", "packaging", "keepalived", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), info.Mode().Perm()); err != nil { // keepalived reads no executable file
		t.Fatal(err)
	}
	return path
}

// runKeepalived runs keepalived until the test ends: it removes its addresses then.
func runKeepalived(t *testing.T, name string, args ...string) {
	t.Helper()
	out := &record{}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		last := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		cmd.Wait()
		last.Stop()
		if t.Failed() {
			t.Logf("keepalived:\n%s", out)
		}
	})
}

// command runs a command of headgate on the machine.
func (one *holder) command(args ...string) {
	one.t.Helper()
	command(one.t, "", one.inside[0], append(one.inside[1:], append([]string{os.Getenv(binaryFolder)}, append(args, "--state", filepath.Join(one.dir, "state"))...)...)...)
}

// tries returns what a command of headgate on the machine prints, whether it fails or not.
func (one *holder) tries(args ...string) string {
	out, _ := exec.Command(one.inside[0], append(one.inside[1:], append([]string{os.Getenv(binaryFolder)}, append(args, "--state", filepath.Join(one.dir, "state"))...)...)...).CombinedOutput()
	return string(out)
}

// ready waits until the machine can hold the address.
func (one *holder) ready() {
	one.t.Helper()
	eventually(one.t, one.name+" is ready", func() bool { return one.tries("health", "--ready") == "ready\n" })
}

// inSpace calls f on a thread that is in a network namespace.
func inSpace[T any](space string, f func() (T, error)) (T, error) {
	return inside(&network{client: space}, f)
}

// get requests the virtual address from the client, with a connection of its own.
func (h *holders) get() (string, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(_ context.Context, _, to string) (net.Conn, error) {
			return inSpace(h.client, func() (net.Conn, error) {
				d := net.Dialer{Timeout: 250 * time.Millisecond}
				return d.Dial("tcp4", to)
			})
		}}}
	rs, err := client.Get("http://" + virtualAt + "/")
	if err != nil {
		return "", err
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(rs.Body)
	return string(body), err
}

// servedBy waits until a machine answers at the virtual address, any for "", and has the
// address. It returns its name.
func (h *holders) servedBy(name string) (by string) {
	h.t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); pause() {
		body, err := h.get()
		if last = err; err == nil {
			if (name == "" || body == name) && h.has(body) {
				return body
			}
		}
	}
	h.t.Fatalf("%q does not answer at the virtual address within %v: %v", name, patience, last)
	return ""
}

// holds checks that a machine has the address and no other has.
func (h *holders) holds(name string) {
	h.t.Helper()
	for other := range h.all {
		if h.has(other) != (other == name) {
			h.t.Errorf("%s has the virtual address: %t", other, h.has(other))
		}
	}
}

// has reports whether a machine has the virtual address.
func (h *holders) has(name string) bool {
	one := h.all[name]
	return one != nil && strings.Contains(command(h.t, "", "ip", "-n", one.space, "address", "show", "dev", "eth0"), virtualAt+"/")
}
