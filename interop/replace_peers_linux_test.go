package interop

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// peersVariable names the folder of the peers: bench/peers brings them.
const peersVariable = "HEADGATE_PEERS"

// roundLimit is the time after which a client of a peer counts a request or message as lost.
const roundLimit = 3 * time.Second

// oldEnds is how long an old process of a peer may take to end before the next upgrade.
const oldEnds = 20 * time.Second

// betweenUpgrades is how long the load goes on after an old process has ended.
const betweenUpgrades = time.Second

// peerPlaces are the addresses of a peer and of the servers behind it.
type peerPlaces struct {
	plain, secure, tcp, udp         string
	requests, upgrades, lines, data string // servers; host:port
}

// upgradable is a proxy that can be replaced by its binary.
type upgradable struct {
	name string
	// start starts it in a folder that has cert.pem, key.pem and both.pem. upgrade replaces
	// the binary, and returns when the new process serves; alone returns when the old one has
	// ended, or has had its time.
	start func(t *testing.T, dir string, at peerPlaces) (upgrade func() error, alone func())
	quic  bool
	udp   bool // has UDP proxies
}

// TestUpgradesBesidePeers replaces nginx, HAProxy and headgate under the same load, and prints
// what was lost. It fails for headgate only.
func TestUpgradesBesidePeers(t *testing.T) {
	dir := os.Getenv(peersVariable)
	if dir == "" {
		t.Skip("make upgrades-peers runs it")
	}
	count := upgradesInARow(5)
	for _, u := range []upgradable{
		{name: "nginx", quic: true, udp: true, start: startNginx(dir)},
		{name: "HAProxy", quic: true, start: startHAProxy(dir)},
		{name: "headgate", quic: true, udp: true, start: startHeadgate},
	} {
		t.Run(u.name, func(t *testing.T) { upgradePeer(t, u, count) })
	}
}

// upgradePeer measures one of them.
func upgradePeer(t *testing.T, u upgradable, count int) {
	id := newIdentity(t, "one.example")
	dir := t.TempDir()
	for name, text := range map[string]string{"cert.pem": id.cert, "key.pem": id.key, "both.pem": id.cert + id.key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := func(url string) string { return strings.TrimPrefix(url, "http://") }
	at := peerPlaces{plain: free(t), secure: free(t), tcp: free(t), udp: free(t),
		requests: host(echoRequests(t)), upgrades: host(echoUpgrades(t)), lines: echoStreams(t), data: echoDatagrams(t)}
	upgrade, alone := u.start(t, dir, at)
	eventually(t, u.name+" serves", func() bool {
		c, err := net.Dial("tcp", at.plain)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	l := &upgradeLoad{mixed: &mixed{t: t, stop: make(chan struct{}), counts: true}, config: trusting(id),
		plain: at.plain, secure: at.secure, tcp: at.tcp, limit: roundLimit}
	if u.quic {
		l.packets, l.quic.limit = at.secure, roundLimit
	}
	l.http()
	l.streams()
	var datagrams *datagramCount
	if u.udp {
		datagrams = countDatagrams(t, at.udp)
	}
	l.progress()
	var sum, slowest time.Duration
	for range count {
		start := time.Now()
		if err := upgrade(); err != nil {
			t.Fatalf("upgrade %s: %v", u.name, err)
		}
		took := time.Since(start)
		sum, slowest = sum+took, max(slowest, took)
		l.progress()
		l.over.Add(1)
		alone()
		<-time.After(betweenUpgrades)
	}
	l.progress()
	lost := l.end()
	if datagrams != nil {
		datagrams.end()
		t.Logf("%-44s %6d datagrams, %d lost", "UDP proxy", datagrams.sent, datagrams.sent-datagrams.back)
	}
	t.Logf("%s: %d upgrades, %d requests and messages lost; until serving %v on average, %v at most", u.name, count, lost,
		(sum / time.Duration(count)).Round(time.Millisecond), slowest.Round(time.Millisecond))
	if u.name == "headgate" && lost > 0 {
		t.Errorf("headgate lost %d", lost)
	}
}

// run starts a program of a peer until the test ends.
func runPeer(t *testing.T, dir string, name string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the log of %s:\n%s", name, text)
		}
	})
	return cmd
}

// pidIn returns the number in a file, 0 for none.
func pidIn(path string) int {
	text, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// ended waits for the end of a process, and kills what has not ended in time.
func ended(pid int) {
	for end := time.Now().Add(oldEnds); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil || zombie(pid) {
			return
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
}

// startNginx starts nginx, whose binary is replaced with SIGUSR2, then SIGWINCH and SIGQUIT for
// the old process, as its documentation says.
func startNginx(peers string) func(*testing.T, string, peerPlaces) (func() error, func()) {
	return func(t *testing.T, dir string, at peerPlaces) (func() error, func()) {
		config := fmt.Sprintf(`load_module %s/modules/ngx_stream_module.so;
user root;
worker_processes 2;
error_log stderr error;
pid %s/nginx.pid;
events { worker_connections 4096; }
http {
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  access_log off;
  proxy_http_version 1.1;
  client_max_body_size 0;
  keepalive_requests 1000000;
  upstream up { server %s; keepalive 64; }
  server {
    listen %s;
    listen %s ssl;
    listen %s quic reuseport;
    http2 on;
    ssl_certificate cert.pem; ssl_certificate_key key.pem;
    location / { proxy_pass http://up; proxy_set_header Connection ""; }
    location /ws { proxy_pass http://%s; proxy_set_header Connection upgrade; proxy_set_header Upgrade $http_upgrade; proxy_read_timeout 1h; }
  }
}
stream {
  server { listen %s; proxy_pass %s; }
  server { listen %s udp; proxy_pass %s; }
}
`, peers, dir, at.requests, at.plain, at.secure, at.secure, at.upgrades, at.tcp, at.lines, at.udp, at.data)
		if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		runPeer(t, dir, filepath.Join(peers, "bin/nginx"), "-p", dir, "-c", "nginx.conf", "-e", "stderr")
		file := filepath.Join(dir, "nginx.pid")
		eventually(t, "nginx writes its process ID", func() bool { return pidIn(file) > 0 })
		t.Cleanup(func() {
			pid := pidIn(file)
			syscall.Kill(pid, syscall.SIGTERM)
			ended(pid)
		})
		old := 0
		return func() error {
				old = pidIn(file)
				syscall.Kill(old, syscall.SIGUSR2)
				// The new process writes the file before it starts its workers.
				for end := time.Now().Add(oldEnds); ; <-time.After(5 * time.Millisecond) {
					if now := pidIn(file); now > 0 && now != old && len(childrenOf(now)) >= 2 {
						break
					}
					if time.Now().After(end) {
						return fmt.Errorf("the new process has no workers after %v", oldEnds)
					}
				}
				syscall.Kill(old, syscall.SIGWINCH)
				return nil
			}, func() {
				syscall.Kill(old, syscall.SIGQUIT)
				ended(old)
			}
	}
}

// childrenOf returns the processes that a process has started.
func childrenOf(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	return strings.Fields(string(text))
}

// startHAProxy starts HAProxy with a master, which starts itself again when it is told to
// reload, and passes its listening sockets to the new worker.
func startHAProxy(peers string) func(*testing.T, string, peerPlaces) (func() error, func()) {
	return func(t *testing.T, dir string, at peerPlaces) (func() error, func()) {
		config := fmt.Sprintf(`global
  nbthread 2
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option http-keep-alive
frontend web
  bind %s
  bind %s ssl crt both.pem alpn h2,http/1.1
  bind quic4@%s ssl crt both.pem alpn h3
  use_backend ws if { path /ws }
  default_backend up
backend up
  server s %s
backend ws
  server s %s
listen lines
  mode tcp
  bind %s
  server s %s
`, at.plain, at.secure, at.secure, at.requests, at.upgrades, at.tcp, at.lines)
		if err := os.WriteFile(filepath.Join(dir, "haproxy.cfg"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(shortDir(t), "master")
		cmd := runPeer(t, dir, filepath.Join(peers, "bin/haproxy"), "-W", "-S", socket, "-f", "haproxy.cfg")
		pid := cmd.Process.Pid // the master stays the same process
		t.Cleanup(func() {
			syscall.Kill(pid, syscall.SIGTERM)
			ended(pid)
		})
		var old []string
		return func() error {
				old = childrenOf(pid)
				text, err := masterCommand(socket, "reload")
				if err == nil && !strings.Contains(text, "Success=1") {
					err = fmt.Errorf("the master says %q", text)
				}
				return err
			}, func() {
				for _, c := range old {
					n, _ := strconv.Atoi(c)
					ended(n)
				}
			}
	}
}

// masterCommand sends a command to the master of HAProxy. reload answers when the new worker
// serves.
func masterCommand(socket, command string) (string, error) {
	c, err := new(net.Dialer).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(oldEnds))
	fmt.Fprintln(c, command)
	var text strings.Builder
	for s := bufio.NewScanner(c); s.Scan(); {
		fmt.Fprintln(&text, s.Text())
	}
	return text.String(), nil
}

// startHeadgate starts headgate.
func startHeadgate(t *testing.T, dir string, at peerPlaces) (func() error, func()) {
	g := prepare(t)
	r := startReplaced(t, g, fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  plain: {address: %q, protocol: http}
  secure: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3}
certificates: {main: {cert_file: %q, key_file: %q}}
proxies: {all: {routes: [{servers: [{url: "http://%s"}]}, {path: /ws, servers: [{url: "http://%s"}]}]}}
tcp_proxies: {stream: {address: %q, servers: [{address: %q}]}}
udp_proxies: {datagrams: {address: %q, servers: [{address: %q}]}}
`, at.plain, at.secure, at.secure, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), at.requests, at.upgrades, at.tcp, at.lines, at.udp, at.data))
	return func() error {
		r.upgrade()
		return nil
	}, r.alone
}
