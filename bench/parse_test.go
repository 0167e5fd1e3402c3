//go:build linux

package main

import (
	"math"
	"strings"
	"testing"
)

func TestParseWrk(t *testing.T) {
	const out = `Running 1s test @ http://127.0.0.1:8080/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   670.01us  180.90us   4.05ms   93.30%
    Req/Sec    95.66k     3.16k  101.91k    80.00%
  104657 requests in 1.10s, 25.05MB read
  Socket errors: connect 0, read 2, write 1, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:  95171.45
Transfer/sec:     22.78MB
`
	got, err := parseWrk(out)
	if want := (wrkResult{requests: 104657, rate: 95171.45, failed: 12}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{
		"",
		"unable to connect to 127.0.0.1:1 Connection refused\n",
		"  0 requests in 1.00s, 0.00B read\n",
		"  1 requests in 1.00s\n  Socket errors: many\n",
		"  one requests in 1.00s\n",
	} {
		if got, err := parseWrk(bad); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

func TestParentOf(t *testing.T) {
	for _, test := range []struct {
		stat        string
		pid, parent int
		ok          bool
	}{
		{"12 (nginx) S 7 12 12 0 -1", 12, 7, true},
		{"12 (a) b) (c) R 8 1", 12, 8, true},
		{"12 (nginx", 0, 0, false},
		{"12 (nginx) S", 0, 0, false},
		{"x (nginx) S 1", 0, 0, false},
		{"", 0, 0, false},
	} {
		pid, parent, ok := parentOf(test.stat)
		if ok != test.ok || ok && (pid != test.pid || parent != test.parent) {
			t.Errorf("%q: got %d, %d, %v", test.stat, pid, parent, ok)
		}
	}
}

func TestTreeOf(t *testing.T) {
	got := treeOf(10, map[int]int{10: 1, 11: 10, 12: 11, 13: 10, 20: 1, 21: 20})
	want := []int{10, 11, 12, 13}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestResidentOf(t *testing.T) {
	got, err := residentOf("Name:\tx\nVmRSS:\t    5120 kB\nThreads:\t1\n")
	if err != nil || got != 5120<<10 {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := residentOf("Name:\tgone\n"); err != nil || got != 0 {
		t.Errorf("ended: got %d, %v", got, err)
	}
	if _, err := residentOf("VmRSS:\t5 MB\n"); err == nil {
		t.Error("another unit was taken")
	}
}

func TestParseHead(t *testing.T) {
	for _, test := range []struct {
		text string
		want head
		ok   bool
	}{
		{"HTTP/1.1 200 OK\r\ncontent-LENGTH: 3\r\n\r\nabc", head{"200", 38, 3, false}, true},
		{"HTTP/1.1 204 No Content\r\nConnection: Close\r\n\r\n", head{"204", 46, 0, true}, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", head{}, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", head{}, false},
		{"\r\n\r\n", head{}, false},
	} {
		got, ok := parseHead([]byte(test.text))
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%q: got %+v, %v; want %+v, %v", test.text, got, ok, test.want, test.ok)
		}
	}
}

func TestCPUModel(t *testing.T) {
	if got := cpuModel("processor\t: 0\nmodel name\t: A Processor\n"); got != "A Processor" {
		t.Errorf("got %q", got)
	}
	if got := cpuModel("processor\t: 0\n"); got != "unknown processor" {
		t.Errorf("got %q", got)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 3}, 3},
		{[]float64{4, 1, 3, 100}, 3.5},
	} {
		if got := median(test.values); got != test.want {
			t.Errorf("%v: got %v, want %v", test.values, got, test.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("no values: got %v, want NaN", got)
	}
}

func TestQuantile(t *testing.T) {
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, i+1)
	}
	for _, test := range []struct {
		q    float64
		want int
	}{{0, 1}, {0.5, 50}, {0.99, 99}, {0.999, 100}, {1, 100}} {
		if got := quantile(hundred, test.q); got != test.want {
			t.Errorf("%v: got %d, want %d", test.q, got, test.want)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 12: "12", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 0.9: "0.90"} {
		if got := short(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

// TestConfigs holds that each peer is told of every upstream, and of both ports.
func TestConfigs(t *testing.T) {
	s := setup{dir: "/d", address: "127.0.0.1:1111", moving: "127.0.0.1:2222", upstreams: []string{"127.0.0.1:3333", "127.0.0.1:4444"}, generation: 7, proxies: 2}
	for _, p := range []peer{headgatePeer("headgate"), nginxPeer("nginx")} {
		text := p.config(s)
		for _, want := range []string{s.address, s.moving, s.upstreams[0], s.upstreams[1], "/generation", s.host(0), s.host(1), "/static"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s in\n%s", p.name, want, text)
			}
		}
		if one := p.config(setup{address: s.address, upstreams: s.upstreams}); strings.Contains(one, s.host(0)) {
			t.Errorf("%s: a host where any is wanted:\n%s", p.name, one)
		}
	}
}

// TestConfigsWithTLS holds that each peer shows the certificate, and that without
// TLS none of them speaks of it.
func TestConfigsWithTLS(t *testing.T) {
	c := &certificate{file: "/d/cert.pem", key: "/d/key.pem", both: "/d/both.pem"}
	s := setup{address: "127.0.0.1:1111", upstreams: []string{"127.0.0.1:3333"}, tls: true, certificate: c}
	told := map[string]string{
		"headgate": headgateConfig(s), "nginx": nginxConfig(s, nginxModules), "haproxy": haproxyConfig(s),
		"net/http": strings.Join(reverseProxyPeer().argv(s), " "),
	}
	for name, text := range told {
		if !strings.Contains(text, c.both) && !(strings.Contains(text, c.file) && strings.Contains(text, c.key)) {
			t.Errorf("%s: no certificate in\n%s", name, text)
		}
		if name != "net/http" && !strings.Contains(text, "1.3") {
			t.Errorf("%s: no version in\n%s", name, text)
		}
	}
	s.quic = true
	for name, word := range map[string]string{"headgate": "http3", "nginx": "quic", "haproxy": "quic4@"} {
		if text := configOf(t, name, s); !strings.Contains(text, word) || !strings.Contains(text, fixedPath) {
			t.Errorf("%s: no %s or %s in\n%s", name, word, fixedPath, text)
		}
		if plain := told[name]; strings.Contains(plain, word) || strings.Contains(plain, fixedPath) {
			t.Errorf("%s: HTTP/3 where none is wanted:\n%s", name, plain)
		}
	}
	s.tls, s.quic = false, false
	for _, text := range []string{headgateConfig(s), nginxConfig(s, nginxModules), haproxyConfig(s)} {
		if strings.Contains(text, "/d/") || strings.Contains(text, "1.3") {
			t.Errorf("TLS where none is wanted:\n%s", text)
		}
	}
}

// configOf returns the configuration of the peer of a name.
func configOf(t *testing.T, name string, s setup) string {
	t.Helper()
	for _, p := range allPeers(programs{"headgate", "before", "nginx", "haproxy"}) {
		if p.name == name {
			return p.config(s)
		}
	}
	t.Fatalf("no peer named %s", name)
	return ""
}
