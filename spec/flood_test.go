package spec

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/setting/password"
)

// A thousand wrong passwords a second keep nobody else out: requests that need no
// password and those of a user who signed in before are all served, and a user who
// was not seen before still gets in. Times are told and not judged.
func TestFloodOfWrongPasswords(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	hash, err := password.Argon2id("secret")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, fmt.Sprintf(`version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
admin: {address: ""}
access_log: {enabled: false}
proxies:
  p:
    client_ip: {trusted: [127.0.0.1]}
    basic_auth: {users: [{name: ada, password_hash: %q}, {name: bob, password_hash: %q}]}
    routes:
      - {fixed_response: {status: 200, body: in}}
      - {path: /open, basic_auth: {enabled: false}, fixed_response: {status: 200, body: open}}
`, hash, hash), transports[0])
	f := &flood{t: t, url: "http://" + s.addr, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	defer f.client.CloseIdleConnections()
	if status := f.request(t.Context(), "/", "ada:secret", "192.0.2.1"); status != 200 {
		t.Fatalf("ada gets %d", status)
	}
	f.phase("before", nil)
	f.phase("one flooder", func(int) string { return "198.51.100.9" })
	f.phase("5000 flooders", func(i int) string { return fmt.Sprintf("10.%d.%d.1", i%20, i/20%250) })
	if status := f.request(t.Context(), "/", "bob:secret", "192.0.2.2"); status != 200 {
		t.Errorf("somebody new after the flood gets %d", status)
	}
}

// flood sends wrong passwords beside the requests of others.
type flood struct {
	t      *testing.T
	url    string
	client *http.Client
}

// request sends a request with a name and password from an address.
func (f *flood) request(ctx context.Context, path, pair, from string) int {
	r, _ := http.NewRequestWithContext(ctx, "GET", f.url+path, nil)
	r.Header.Set("X-Forwarded-For", from)
	if pair != "" {
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	answer, err := f.client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// phase sends normal requests for a second, and beside them a thousand wrong
// passwords from the addresses of from, if it is not nil.
func (f *flood) phase(name string, from func(int) string) {
	f.t.Helper()
	const rate, workers = 1000, 64
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	var statuses [600]atomic.Int64
	var flooding sync.WaitGroup
	if from != nil {
		work := make(chan int, rate)
		for range workers {
			flooding.Go(func() {
				for i := range work {
					statuses[f.request(ctx, "/", fmt.Sprintf("ada:guess%d", i), from(i))].Add(1)
				}
			})
		}
		flooding.Go(func() {
			defer close(work)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ; {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				for range rate / 100 {
					select {
					case work <- i:
						i++
					default: // all workers wait for an answer
					}
				}
			}
		})
	}
	var took []time.Duration
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		for path, pair := range map[string]string{"/open": "", "/": "ada:secret"} {
			begin := time.Now()
			if status := f.request(f.t.Context(), path, pair, "192.0.2.1"); status != 200 {
				f.t.Errorf("%s: a normal request for %s gets %d", name, path, status)
			}
			took = append(took, time.Since(begin))
		}
	}
	stop()
	flooding.Wait()
	slices.Sort(took)
	f.t.Logf("%s: %d normal requests, p50 %v, p99 %v, slowest %v; wrong passwords: 401 %d, 429 %d, none %d", name, len(took),
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], statuses[401].Load(), statuses[429].Load(), statuses[0].Load())
	if statuses[200].Load() > 0 {
		f.t.Errorf("%s: a wrong password got in", name)
	}
}
