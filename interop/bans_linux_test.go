package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/sys/unix"
)

// Addresses of the network of a test: the machine of headgate, and two clients.
const (
	serverAt = "203.0.113.1"
	badAt    = "203.0.113.9"
	goodAt   = "203.0.113.10"
)

// network is two machines with a cable between them: one for headgate, one for clients.
// Addresses of this machine are never banned, so that bans cannot be tried on loopback.
type network struct {
	t              *testing.T
	server, client string // names of network namespaces
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	ip := needed(t, "ip", "iproute2")
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	n := &network{t: t, server: fmt.Sprintf("hg%ds", os.Getpid()), client: fmt.Sprintf("hg%dc", os.Getpid())}
	do := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, name := range []string{n.server, n.client} {
		do("netns", "add", name)
		t.Cleanup(func() { exec.Command(ip, "netns", "delete", name).Run() })
		do("-n", name, "link", "set", "lo", "up")
	}
	do("-n", n.server, "link", "add", "net0", "type", "veth", "peer", "name", "net0", "netns", n.client)
	for name, addresses := range map[string][]string{n.server: {serverAt}, n.client: {badAt, goodAt}} {
		for _, a := range addresses {
			do("-n", name, "address", "add", a+"/24", "dev", "net0")
		}
		do("-n", name, "link", "set", "net0", "up")
	}
	return n
}

// inside calls f on a thread that is in the namespace of the clients: sockets that f opens
// are there. The thread ends with f.
func inside[T any](n *network, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread is in another namespace
		var r result
		defer func() { done <- r }()
		file, err := os.Open("/run/netns/" + n.client)
		if err != nil {
			r.err = err
			return
		}
		defer file.Close()
		if r.err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); r.err == nil {
			r.v, r.err = f()
		}
	}()
	r := <-done
	return r.v, r.err
}

// dial connects from an address to a port of headgate.
func (n *network) dial(from, port string) (net.Conn, error) {
	return inside(n, func() (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
		return d.Dial("tcp4", net.JoinHostPort(serverAt, port))
	})
}

// client returns a client of HTTP/1.1, or over TLS of HTTP/2, at an address.
func (n *network) http(from string) *http.Client {
	tr := &http.Transport{
		DialContext: func(_ context.Context, _, to string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(to)
			return n.dial(from, port)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}
	n.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// http3 returns a client of HTTP/3 at an address.
func (n *network) http3(from string) *http.Client {
	n.t.Helper()
	socket, err := inside(n, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}) })
	if err != nil {
		n.t.Fatal(err)
	}
	at := &quic.Transport{Conn: socket}
	tr := &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Dial: func(ctx context.Context, to string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
			address, err := net.ResolveUDPAddr("udp4", to)
			if err != nil {
				return nil, err
			}
			return at.DialEarly(ctx, address, tc, qc)
		},
	}
	n.t.Cleanup(func() { tr.Close(); at.Close(); socket.Close() })
	return &http.Client{Transport: tr, Timeout: patience}
}

// statusOf returns the status of a request, or why there is none.
func statusOf(c *http.Client, url string) (int, error) {
	rs, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, rs.Body)
	rs.Body.Close()
	return rs.StatusCode, err
}

// command runs a command of headgate for the gate that runs, and returns what it prints.
func (g *gate) command(args ...string) string {
	g.t.Helper()
	link := filepath.Join(shortDir(g.t), "state")
	if err := os.Symlink(filepath.Join(g.dir, "state"), link); err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.Command(os.Getenv(binaryFolder), args...)
	cmd.Env = append(os.Environ(), "HEADGATE_STATE="+link)
	out, err := cmd.Output()
	if err != nil {
		told := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			told = string(exit.Stderr)
		}
		g.t.Fatalf("headgate %s: %v\n%s%s", strings.Join(args, " "), err, out, told)
	}
	return string(out)
}

// TestABannedClientIsCutOff has a client banned by a rule that rejects: what it has open
// ends, and nothing new of it gets as far as TLS, while another is served.
func TestABannedClientIsCutOff(t *testing.T) {
	n := newNetwork(t)
	g := prepare(t)
	g.inside = []string{"ip", "netns", "exec", n.server}
	g.start(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  plain: {address: "203.0.113.1:8080", protocol: http}
  tls: {address: "203.0.113.1:8443", protocol: https}
  quic: {address: "203.0.113.1:8443", protocol: http3}
bans:
  scanners:
    when: [{path: [/.env], count: 3}]
    mode: enforce
    answer: reject
proxies:
  p: {routes: [{fixed_response: {status: 204}}]}
`)
	plain, secure := "http://"+serverAt+":8080", "https://"+serverAt+":8443"
	type client struct {
		name  string
		c     *http.Client
		url   string
		fresh func() *http.Client
	}
	clients := func(from string) []client {
		return []client{
			{"http", n.http(from), plain, func() *http.Client { return n.http(from) }},
			{"https", n.http(from), secure, func() *http.Client { return n.http(from) }},
			{"http3", n.http3(from), secure, func() *http.Client { return n.http3(from) }},
		}
	}
	bad, good := clients(badAt), clients(goodAt)
	served := func(c client, on *http.Client, who string) {
		t.Helper()
		if status, err := statusOf(on, c.url); status != 204 || err != nil {
			t.Errorf("%s: the %s client gets %d, %v", c.name, who, status, err)
		}
	}
	for i := range bad {
		served(bad[i], bad[i].c, "bad")
		served(good[i], good[i].c, "good")
	}
	open, err := n.dial(badAt, "8080")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for range 3 {
		if status, err := statusOf(bad[0].c, plain+"/.env"); status != 204 || err != nil {
			t.Fatalf("before the ban: %d, %v", status, err)
		}
	}

	// What it has open ends, also where it never asked for anything.
	open.SetReadDeadline(time.Now().Add(patience))
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an open connection of a banned client: %v, want its end", err)
	}
	refusedEverywhere := func() {
		t.Helper()
		for _, c := range bad {
			// What was open is cut a moment after the ban; until then there is the page.
			if status, err := statusOf(c.c, c.url); err == nil && status != http.StatusForbidden {
				t.Errorf("%s: on a connection from before the ban: status %d", c.name, status)
			}
			if status, err := statusOf(c.fresh(), c.url); err == nil {
				t.Errorf("%s: a banned client gets %d", c.name, status)
			}
		}
	}
	refusedEverywhere()
	if nc, err := n.dial(badAt, "8443"); err == nil {
		if got, _ := tlsAnswer(nc); got > 0 {
			t.Errorf("a banned client reads %d bytes of TLS", got)
		}
	}
	for _, c := range good {
		served(c, c.c, "good")
		served(c, c.fresh(), "good")
	}
	flood(t, n, g.cmd.Process.Pid, func() { served(good[0], good[0].c, "good") })

	var listed []struct {
		Network string `json:"network"`
		Rule    string `json:"rule"`
		Why     string `json:"why"`
		Refused int    `json:"refused"`
	}
	list := func() {
		t.Helper()
		out := g.command("ban", "list", "--output", "json")
		if err := json.Unmarshal([]byte(out), &listed); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
	}
	list()
	if len(listed) != 1 || listed[0].Network != badAt || listed[0].Rule != "scanners" || !strings.Contains(listed[0].Why, "3 × /.env") || listed[0].Refused < 4 {
		t.Errorf("got the bans %+v", listed)
	}

	// A ban survives a crash, once it was written.
	time.Sleep(2 * time.Second) // it is written once a second
	g.kill()
	g.start(string(must(os.ReadFile(g.file))))
	refusedEverywhere()

	g.command("ban", "lift", badAt)
	for _, c := range bad {
		served(c, c.fresh(), "lifted")
	}

	// An operator bans with either answer.
	g.command("ban", "add", badAt)
	for _, c := range bad {
		if status, err := statusOf(c.fresh(), c.url); status != http.StatusForbidden || err != nil {
			t.Errorf("%s: banned by an operator: %d, %v, want 403", c.name, status, err)
		}
	}
	g.command("ban", "add", badAt, "--answer", "reject")
	refusedEverywhere()
	for _, c := range good {
		served(c, c.fresh(), "good")
	}
}

// tlsAnswer sends the beginning of a handshake and counts what comes back.
func tlsAnswer(nc net.Conn) (int64, error) {
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	hello, far := net.Pipe()
	go tls.Client(hello, &tls.Config{InsecureSkipVerify: true}).Handshake()
	p := make([]byte, 4<<10)
	m, _ := far.Read(p)
	far.Close()
	nc.Write(p[:m])
	return io.Copy(io.Discard, nc)
}

// flood has a banned client connect as fast as it can, and calls meanwhile again and again. It
// logs the times of these calls beside those before the flood, and the processor time that
// headgate and the clients used.
func flood(t *testing.T, n *network, headgate int, meanwhile func()) {
	const clients, each, alone = 8, 1000, 1000
	timed := func() time.Duration {
		before := time.Now()
		meanwhile()
		return time.Since(before)
	}
	var before, during []time.Duration
	for range alone {
		before = append(before, timed())
	}
	done := make(chan error, clients)
	start, ours, theirs := time.Now(), processorTime(t, headgate), processorTime(t, os.Getpid())
	for range clients {
		go func() {
			_, err := inside(n, func() (struct{}, error) { return struct{}{}, connectBanned(each) })
			done <- err
		}()
	}
	for left := clients; left > 0; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			left--
		default:
			during = append(during, timed())
		}
	}
	took := time.Since(start)
	ours, theirs = processorTime(t, headgate)-ours, processorTime(t, os.Getpid())-theirs
	t.Logf("%.0f refused connections a second on %d processors; processor time per connection: headgate %v, clients %v", clients*each/took.Seconds(), runtime.NumCPU(), ours/(clients*each), theirs/(clients*each))
	for name, times := range map[string][]time.Duration{"before": before, "during": during} {
		slices.Sort(times)
		t.Logf("another client %s the flood: %d requests, p50 %v, p99 %v", name, len(times), times[len(times)/2], times[len(times)*99/100])
	}
}

// connectBanned connects a number of times, and reports an answer.
func connectBanned(times int) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(badAt)}, Timeout: patience}
	for range times {
		nc, err := d.Dial("tcp4", serverAt+":8443")
		if err != nil {
			continue // its reset came first
		}
		nc.SetDeadline(time.Now().Add(patience))
		nc.Write([]byte{22}) // the kernel hands over a connection with its first byte
		got, err := io.Copy(io.Discard, nc)
		nc.Close()
		if got > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("a banned client reads %d bytes, %v", got, err)
		}
	}
	return nil
}

// processorTime returns the processor time that a process used.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// After the name, which may have spaces, user and system time are the 12th and 13th.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks time.Duration
	for _, text := range fields[11:13] {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * time.Second / 100
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
