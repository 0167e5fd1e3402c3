package interop

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// dockerEngine is a Docker engine with folders of its own.
type dockerEngine struct {
	t       *testing.T
	dir     string
	program string
	client  string
	cmd     *exec.Cmd
	out     *record
}

// image is what the containers are made of.
const image = "container:1"

// startDocker starts an engine, and makes the image of a static program: nothing is
// pulled from anywhere.
func startDocker(t *testing.T) *dockerEngine {
	t.Helper()
	d := &dockerEngine{t: t, program: needed(t, "dockerd", "docker.io"), client: needed(t, "docker", "docker.io"), dir: shortDir(t), out: &record{}}
	if os.Getuid() != 0 {
		t.Skip("only root can start an engine")
	}
	t.Cleanup(d.stop)
	d.up()
	program := filepath.Join(d.dir, "container")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./container")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "container", Mode: 0o755, Size: int64(len(data))}); err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	w.Close()
	file := filepath.Join(d.dir, "layer.tar")
	if err := os.WriteFile(file, layer.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d.do("import", file, image)
	return d
}

// up starts the engine, and returns when it answers.
func (d *dockerEngine) up() {
	d.t.Helper()
	d.cmd = exec.Command(d.program, "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false", "--live-restore",
		"--storage-driver=vfs", "--data-root="+d.dir+"/data", "--exec-root="+d.dir+"/exec", "--pidfile="+d.dir+"/pid", "--host="+d.endpoint())
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	for until := time.Now().Add(3 * patience); ; time.Sleep(50 * time.Millisecond) {
		if exec.Command(d.client, "-H", d.endpoint(), "version").Run() == nil {
			return
		}
		if time.Now().After(until) {
			d.t.Fatalf("dockerd does not answer:\n%s", d.out)
		}
	}
}

// down ends the engine; its containers go on.
func (d *dockerEngine) down() {
	d.cmd.Process.Signal(syscall.SIGTERM)
	last := time.AfterFunc(patience, func() { d.cmd.Process.Kill() })
	d.cmd.Wait()
	last.Stop()
}

// stop removes every container and ends the engine.
func (d *dockerEngine) stop() {
	if d.t.Failed() {
		if text := d.out.String(); len(text) > 0 {
			d.t.Logf("dockerd:\n%s", text[max(0, len(text)-4000):])
		}
	}
	if out, err := exec.Command(d.client, "-H", d.endpoint(), "ps", "-aq").Output(); err == nil {
		for id := range strings.FieldsSeq(string(out)) {
			exec.Command(d.client, "-H", d.endpoint(), "rm", "-f", id).Run()
		}
		exec.Command(d.client, "-H", d.endpoint(), "network", "prune", "-f").Run()
	}
	d.down()
}

func (d *dockerEngine) endpoint() string { return "unix://" + d.dir + "/docker.sock" }

// do runs a command of the client.
func (d *dockerEngine) do(args ...string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, d.client, append([]string{"-H", d.endpoint()}, args...)...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// run starts a container on the network of the machine, which says its name.
func (d *dockerEngine) run(name string, labels ...string) (address string) {
	d.t.Helper()
	address = free(d.t)
	_, port, _ := net.SplitHostPort(address)
	d.runAt(name, "host", address, append(labels, "headgate.port="+port)...)
	return address
}

// runAt starts a container in a network.
func (d *dockerEngine) runAt(name, network, address string, labels ...string) {
	d.t.Helper()
	args := []string{"run", "-d", "--name", name, "--network", network}
	for _, l := range labels {
		args = append(args, "--label", l)
	}
	d.do(append(args, image, "/container", address, name)...)
}

// visitor asks a gate for pages of hosts.
type visitor struct {
	t       *testing.T
	address string
	client  *http.Client
}

func newVisitor(t *testing.T, address string) *visitor {
	v := &visitor{t: t, address: address, client: &http.Client{Timeout: patience / 4, Transport: &http.Transport{}}}
	t.Cleanup(v.client.CloseIdleConnections)
	return v
}

// get returns the status and the body of a page.
func (v *visitor) get(host, path string) (int, string, error) {
	rq, err := http.NewRequest("GET", "http://"+v.address+path, nil)
	if err != nil {
		return 0, "", err
	}
	rq.Host = host
	rs, err := v.client.Do(rq)
	if err != nil {
		return 0, "", err
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(rs.Body)
	return rs.StatusCode, string(body), err
}

// sees waits until a host answers with a status, and a body if that is not "".
func (v *visitor) sees(host string, status int, body string) {
	v.t.Helper()
	var got string
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		s, b, err := v.get(host, "/")
		if got = fmt.Sprintf("%d %q %v", s, b, err); s == status && (body == "" || b == body) {
			return
		}
	}
	v.t.Fatalf("%s: got %s, want %d %q", host, got, status, body)
}

// crowd asks for pages of a host until it is stopped, and counts those that failed.
type crowd struct {
	stop   chan struct{}
	done   sync.WaitGroup
	asked  atomic.Int64
	failed atomic.Int64
	first  atomic.Pointer[string]
}

func (v *visitor) crowd(host string) *crowd {
	c := &crowd{stop: make(chan struct{})}
	for range 4 {
		c.done.Go(func() {
			for {
				select {
				case <-c.stop:
					return
				default:
				}
				testhouse.Pause()
				s, b, err := v.get(host, "/")
				if c.asked.Add(1); s != 200 || err != nil {
					text := fmt.Sprintf("%d %q %v", s, b, err)
					c.first.CompareAndSwap(nil, &text)
					c.failed.Add(1)
				}
			}
		})
	}
	return c
}

// end stops the crowd, and tells of requests that failed.
func (c *crowd) end(t *testing.T) {
	t.Helper()
	close(c.stop)
	c.done.Wait()
	if n := c.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed: %s", n, c.asked.Load(), *c.first.Load())
	}
	t.Logf("%d requests", c.asked.Load())
}

// discovered is a configuration with an engine, and a proxy by hand.
const discovered = `
version: 1
admin: {address: "%s"}
ports: {web: {address: "%s", protocol: http}}
discovery: {docker: {local: {endpoint: "%s"}}}
proxies:
  hand:
    virtual_hosts: [hand.example]
    routes: [{fixed_response: {status: 200, body: by hand}}]
`

// state returns what headgate says of itself, by its own command and admin socket.
func (g *gate) state() string {
	g.t.Helper()
	out, err := exec.Command(os.Getenv(binaryFolder), "status", "-o", "json", "--config", g.file, "--state", filepath.Join(g.dir, "state")).Output()
	if err != nil && len(out) == 0 {
		g.t.Fatalf("headgate status: %v", err)
	}
	return string(out)
}

// TestDocker holds that headgate follows a real engine: through the life of containers,
// and of the engine.
func TestDocker(t *testing.T) {
	d := startDocker(t)
	admin, address := free(t), free(t)
	d.run("before", "headgate.host=before.example")
	g := start(t, fmt.Sprintf(discovered, admin, address, d.endpoint()))
	v := newVisitor(t, address)
	v.sees("before.example", 200, "before")

	service := []string{"headgate.host=shop.example", "com.docker.compose.project=shop", "com.docker.compose.service=web"}
	d.run("one", service...)
	v.sees("shop.example", 200, "one")
	c := v.crowd("shop.example")
	for i, name := range []string{"two", "three", "four"} { // each at another address
		d.run(name, service...)
		v.sees("shop.example", 200, name)
		d.do("stop", "-t", "20", []string{"one", "two", "three"}[i])
		v.sees("shop.example", 200, name)
	}
	c.end(t)

	d.do("pause", "four")
	v.sees("shop.example", 503, "")
	d.do("unpause", "four")
	v.sees("shop.example", 200, "four")
	d.do("rename", "four", "five")
	v.sees("shop.example", 200, "four")
	d.do("kill", "five")
	v.sees("shop.example", 404, "")
	d.do("start", "five")
	v.sees("shop.example", 200, "four")

	// While the engine is away everything goes on, and what it does is found afterwards.
	c = v.crowd("shop.example")
	d.down()
	for until := time.Now().Add(patience); !strings.Contains(g.state(), `"error"`); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the status does not tell that the engine is away: %s", g.state())
		}
	}
	v.sees("before.example", 200, "before")
	d.up()
	d.run("late", "headgate.host=late.example")
	v.sees("late.example", 200, "late")
	c.end(t)
	d.do("rm", "-f", "before")
	v.sees("before.example", 404, "")
	if t.Failed() {
		t.Logf("headgate:\n%s", g.log)
	}
}

// TestDockerNetworks holds which address of a container is used, with networks of a real
// engine.
func TestDockerNetworks(t *testing.T) {
	d := startDocker(t)
	if out, err := exec.Command(d.client, "-H", d.endpoint(), "network", "create", "--subnet=172.29.251.0/24", "first").CombinedOutput(); err != nil {
		t.Skipf("the engine cannot make networks on this machine: %s", out)
	}
	d.do("network", "create", "--subnet=172.29.252.0/24", "second")
	admin, address := free(t), free(t)
	g := start(t, fmt.Sprintf(discovered, admin, address, d.endpoint()))
	v := newVisitor(t, address)

	d.runAt("app", "first", ":8080", "headgate.host=app.example", "headgate.port=8080")
	v.sees("app.example", 200, "app")
	d.do("network", "connect", "second", "app")
	v.sees("app.example", 503, "")
	if text := g.state(); !strings.Contains(text, "the networks first, second") {
		t.Errorf("the status does not tell of several networks: %s", text)
	}
	d.do("network", "disconnect", "first", "app")
	v.sees("app.example", 200, "app")
	// The network of another container is that container's address.
	d.runAt("guest", "container:app", ":8081", "headgate.host=guest.example", "headgate.port=8081")
	v.sees("guest.example", 200, "guest")
}

// TestDockerLabelsAreNotTrusted tries what a label must not reach.
func TestDockerLabelsAreNotTrusted(t *testing.T) {
	d := startDocker(t)
	admin, address := free(t), free(t)
	g := prepare(t)
	g.start(fmt.Sprintf(discovered, admin, address, d.endpoint()))
	v := newVisitor(t, address)
	_, adminPort, _ := net.SplitHostPort(admin)
	_, webPort, _ := net.SplitHostPort(address)
	secret := g.put("secret.txt", "very secret")

	victim := d.run("victim", "headgate.host=victim.example")
	v.sees("victim.example", 200, "victim")
	_, victimPort, _ := net.SplitHostPort(victim)
	for i, attack := range []struct {
		name   string
		labels []string
		told   string
	}{
		{"the admin port", []string{"headgate.host=evil%d.example", "headgate.port=" + adminPort}, "of headgate itself"},
		{"a port of ours", []string{"headgate.host=evil%d.example", "headgate.port=" + webPort}, "of headgate itself"},
		{"an address", []string{"headgate.http.evil%d.virtual_hosts=evil%d.example", "headgate.http.evil%d.routes.0.servers.0.url=http://" + victim, "headgate.port=1"}, "labels cannot set"},
		{"an address by its path", []string{"headgate.http.evil%d.virtual_hosts=evil%d.example", "headgate.http.evil%d.base_path=@" + victim + "/", "headgate.port=" + victimPort}, "does not begin with /"},
		{"an address by its scheme", []string{"headgate.host=evil%d.example", "headgate.scheme=http://" + victim + "/?", "headgate.port=1"}, "unknown value"},
		{"a socket", []string{"headgate.host=evil%d.example", "headgate.scheme=unix", "headgate.port=1"}, "unknown value"},
		{"an auth server", []string{"headgate.http.evil%d.virtual_hosts=evil%d.example", "headgate.http.evil%d.forward_auth.url=http://" + admin, "headgate.port=" + victimPort}, "labels cannot set"},
		{"a mirror", []string{"headgate.http.evil%d.virtual_hosts=evil%d.example", "headgate.http.evil%d.routes.0.mirror.servers.0.url=http://" + admin, "headgate.port=" + victimPort}, "labels cannot set"},
		{"a file", []string{"headgate.http.evil%d.virtual_hosts=evil%d.example", "headgate.http.evil%d.error_pages.0.status=404", "headgate.http.evil%d.error_pages.0.file=" + secret, "headgate.port=" + victimPort}, "labels cannot set"},
		{"whom to believe", []string{"headgate.http.evil%d.virtual_hosts=evil%d.example", "headgate.http.evil%d.client_ip.trusted=0.0.0.0/0", "headgate.port=" + victimPort}, "labels cannot set"},
		{"a path of a host by hand", []string{"headgate.host=hand.example", "headgate.path=/api", "headgate.port=" + victimPort}, "the host hand.example is one of"},
		{"a host of an older container", []string{"headgate.host=victim.example", "headgate.port=1"}, "and is older"},
		{"an expression", []string{"headgate.http.evil%d.virtual_hosts=~^.*$", "headgate.port=" + victimPort}, "by an expression"},
		{"an address to listen on", []string{"headgate.tcp.evil%d.address=127.0.0.1:1", "headgate.port=" + victimPort}, "does not let labels listen"},
		{"a label that means nothing", []string{"headgate.host=evil%d.example", "headgate.ip_filter.allow=10.0.0.0/8", "headgate.port=" + victimPort}, "unknown label"},
	} {
		name := fmt.Sprintf("evil%d", i)
		args := []string{"run", "-d", "--name", name, "--network", "host"}
		for _, l := range attack.labels {
			args = append(args, "--label", strings.ReplaceAll(l, "evil%d", name))
		}
		d.do(append(args, image, "/container", free(t), name)...)
		text := ""
		for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			if text = g.state(); strings.Contains(text, attack.told) && strings.Contains(text, "container "+name) {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%s: no issue %q of %s: %s", attack.name, attack.told, name, text)
			}
		}
		if s, body, err := v.get(name+".example", "/"); err != nil || s == 200 {
			t.Errorf("%s: got %d %q, %v", attack.name, s, body, err)
		}
		v.sees("victim.example", 200, "victim")
		if s, body, _ := v.get("hand.example", "/api"); s != 200 || body != "by hand" {
			t.Errorf("%s: hand.example/api: %d %q", attack.name, s, body)
		}
		d.do("rm", "-f", name)
	}

	// What reads a file or a variable in a document is text in a label.
	d.run("text", "headgate.http.text.virtual_hosts=text.example", "headgate.http.text.basic_auth.realm=${file:secret.txt} ${HOME}",
		"headgate.http.text.basic_auth.users.0.name=ada", "headgate.http.text.basic_auth.users.0.password_hash=$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se")
	v.sees("text.example", 401, "")
	rq, _ := http.NewRequest("GET", "http://"+address+"/", nil)
	rq.Host = "text.example"
	rs, err := v.client.Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	rs.Body.Close()
	if got := rs.Header.Get("Www-Authenticate"); !strings.Contains(got, "${file:secret.txt} ${HOME}") {
		t.Errorf("the realm is %q", got)
	}
}
