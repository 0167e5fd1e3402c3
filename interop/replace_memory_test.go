//go:build linux

package interop

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// serversOf is what the status shows of the servers of a proxy.
type serversOf struct {
	Proxies []struct {
		Name   string `json:"name"`
		Routes []struct {
			Servers []struct {
				URL   string    `json:"url"`
				State string    `json:"state"`
				Since time.Time `json:"since"`
			} `json:"servers"`
		} `json:"routes"`
	} `json:"proxies"`
}

// TestMemoryGoesToTheNewProcess holds that a new process has what the old one had in memory
// only: who is over a rate limit, how often a ban rule has counted a client, which server is
// unhealthy and since when, the recent requests and the counters. What ends in the old process later comes as well.
func TestMemoryGoesToTheNewProcess(t *testing.T) {
	plain, dead := free(t), free(t)
	r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {plain: {address: %q, protocol: http}}
bans: {scanners: {when: [{path: [/.env], count: 3}], mode: enforce}}
proxies:
  all:
    client_ip: {trusted: [127.0.0.1]}
    routes:
      - {path: /.env, fixed_response: {status: 404}}
      - {servers: [{url: %q}, {url: "http://%s"}], health_check: {path: /, interval: 1s, unhealthy_interval: 1s, status: 200-499}}
      - {path: /limited, rate_limit: {requests: 3, period: 1h}, fixed_response: {status: 204}}
      - {path: /ws, servers: [{url: %q}]}
`, plain, echoRequests(t), dead, echoUpgrades(t)))
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	status := func(path string) int {
		t.Helper()
		rs, err := client.Get("http://" + plain + path)
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
		return rs.StatusCode
	}
	scan := func() int {
		t.Helper()
		rq, err := http.NewRequest(http.MethodGet, "http://"+plain+"/.env", nil)
		if err != nil {
			t.Fatal(err)
		}
		rq.Header.Set("X-Forwarded-For", "203.0.113.9") // those of this machine are never banned
		rs, err := client.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
		return rs.StatusCode
	}
	for range 2 {
		if got := scan(); got != 404 {
			t.Fatalf("a scan gets %d", got)
		}
	}
	for i, want := range []int{204, 204, 204, 429} {
		if got := status("/limited/before"); got != want {
			t.Fatalf("request %d: %d, want %d", i+1, got, want)
		}
	}
	unhealthy := func() (since time.Time, ok bool) {
		var s serversOf
		if r.status("", &s) != nil || len(s.Proxies) != 1 {
			return since, false
		}
		for _, server := range s.Proxies[0].Routes[0].Servers {
			if strings.HasSuffix(server.URL, dead) {
				return server.Since, server.State == "unhealthy"
			}
		}
		return since, false
	}
	var since time.Time
	eventually(t, "the dead server is unhealthy", func() (ok bool) {
		since, ok = unhealthy()
		return ok
	})
	ws := upgrade1(t, plain, nil)
	if _, err := lines(ws)([]byte("hello")); err != nil {
		t.Fatal(err)
	}

	r.upgrade()
	if now, ok := unhealthy(); !ok || !now.Equal(since) {
		t.Errorf("the dead server: unhealthy %v since %v, want since %v", ok, now, since)
	}
	if got := status("/limited/after"); got != 429 {
		t.Errorf("the client that is over the limit gets %d", got)
	}
	if got := scan(); got != 404 {
		t.Errorf("the third scan gets %d, it is the one that bans", got)
	}
	if got := scan(); got != 403 {
		t.Errorf("after two scans before the upgrade and one after it, the client gets %d", got)
	}
	paths := func() (all []string) {
		var page struct {
			Items []struct {
				Path string `json:"path"`
			} `json:"items"`
		}
		if err := r.api("/logs/access?limit=100", &page); err != nil {
			return nil
		}
		for _, q := range page.Items {
			all = append(all, q.Path)
		}
		return all
	}
	if got := paths(); !slices.Contains(got, "/limited/before") {
		t.Errorf("the recent requests are %q", got)
	}
	if slices.Contains(paths(), "/ws") {
		t.Error("the tunnel of the old process has ended")
	}
	ws.Close()
	eventually(t, "the tunnel that ended in the old process is among the recent requests", func() bool { return slices.Contains(paths(), "/ws") })
	r.alone()
	page, err := r.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`headgate_requests_total{port="plain",proxy="all",reason="",route="/ws",status_class="1xx"} 1`, // counted when the old process drained
		`headgate_requests_total{port="plain",proxy="all",reason="",route="/limited",status_class="2xx"} 3`,
		`headgate_requests_total{port="plain",proxy="all",reason="rate_limited",route="/limited",status_class="4xx"} 2`,
	} {
		if !strings.Contains(string(page), line+"\n") {
			t.Errorf("%s is missing in the metrics", line)
		}
	}
}
