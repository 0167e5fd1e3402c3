package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"headgate/internal/certs/acme/acmetest"
)

var soakTime = flag.Duration("soak", 0, "how long TestSoak runs; 0 skips it")

// TestSoak runs a headgate with the race detector under clients and servers that behave and
// that do not, over all protocols, while its configuration changes all the time, and checks
// every response. soak_clients_linux_test.go has the clients, soak_servers_linux_test.go the
// servers, soak_changes_linux_test.go the changes, soak_cutover_linux_test.go the cutovers,
// soak_hardship_linux_test.go a full disk and few descriptors.
//
// What has to hold: the bytes of every response that a client read to its end are those that
// the server made for this request; a server that behaves is answered for, under all changes;
// the management API answers no change with 5xx; headgate ends with status 0, and its log has
// no data race, panic or broken invariant.
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("make soak runs it")
	}
	raced := os.Getenv("SOAK_BINARY") // one that was built before
	if raced == "" {
		raced = filepath.Join(t.TempDir(), "headgate")
		build := exec.Command("go", "build", "-race", "-trimpath", "-buildvcs=false", "-tags=netgo,osusergo", "-o", raced, "./cmd/headgate")
		build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=1")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build headgate with the race detector: %v\n%s", err, out)
		}
	}
	t.Setenv(binaryFolder, raced)
	t.Setenv("GORACE", "halt_on_error=0")

	s := &soak{t: t, began: time.Now()}
	s.seen.m = map[string]int{}
	s.servers()
	s.configure()
	var stop context.CancelFunc
	s.ctx, stop = context.WithTimeout(t.Context(), *soakTime)
	defer stop()
	go s.drainNotices()
	s.clients()
	s.changes()
	s.cutovers()
	s.calls()
	s.people()
	s.hostile()
	s.hardships()
	s.running.Wait()
	s.finish()
}

// soak is one run.
type soak struct {
	t     *testing.T
	began time.Time
	ctx   context.Context
	g     *gate
	ca    *acmetest.Authority

	web, secure, quic, second, echo string           // addresses of headgate
	beside, taken                   string           // its address beside another proxy, and that proxy's
	behaves                         http.HandlerFunc // a server that does
	good                            [2]string
	bad, slow, stream, grpc         string // addresses of servers

	state    string // the state directory
	fills    bool   // it has a file system that may be filled
	provider *mockoidc.MockOIDC
	hardship atomic.Pointer[string] // what headgate has too little of, for which failures are excused

	local struct {
		once   sync.Once
		client *http.Client
	}
	running sync.WaitGroup
	seen    struct {
		sync.Mutex
		m      map[string]int
		failed int
	}
}

// configure starts headgate.
func (s *soak) configure() {
	t := s.t
	s.web, s.secure, s.second, s.echo = free(t), free(t), free(t), free(t)
	s.quic, s.beside, s.taken = s.secure, free(t), free(t)
	s.ca = acmetest.Start(t, acmetest.Settings{HTTPPort: portOf(t, s.web), HTTPSPort: portOf(t, s.secure), BadNonces: 20})
	s.identityProvider()
	s.grpc, _ = grpcServer(t, "tcp", "127.0.0.1:0", nil)
	s.g = prepare(t)
	s.smallDisk()
	s.g.start(fmt.Sprintf(`version: 1
admin: {address: ""}
ports:
  web: {address: %q, protocol: http}
  secure: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3}
  second: {address: %q, protocol: http}
  beside: {address: %q, protocol: http}
acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, resolvers: [%q], http_port: %d, https_port: %d}
access_log: {enabled: true, path: %q}
proxies:
  good: {virtual_hosts: [good.test], routes: [{servers: [{url: "http://%s"}, {url: "http://%s"}]}]}
  bad: {virtual_hosts: [bad.test], routes: [{servers: [{url: "http://%s"}], retry: {}}]}
  cached: {virtual_hosts: [cached.test], cache: {default_ttl: 1s, stale_while_revalidate: 2s, stale_if_error: 5s}, routes: [{servers: [{url: "http://%s"}]}]}
  packed: {virtual_hosts: [packed.test], compression: {}, routes: [{servers: [{url: "http://%s"}]}]}
  login: {virtual_hosts: [login.example.com], routes: [{path: /, sign_in: {title: Example}}]}
  gated: {virtual_hosts: [gated.example.com], gate: {allow: ["domain:example.com"]}, routes: [{servers: [{url: "http://%s"}]}]}
  grpc: {virtual_hosts: [grpc.test], routes: [{servers: [{url: "h2c://%s"}]}]}
  signed: {virtual_hosts: [signed.example.com], acme: main, routes: [{servers: [{url: "http://%s"}]}]}
tcp_proxies:
  echo: {address: %q, servers: [{address: %q}]}
`, s.web, s.secure, s.quic, s.second, s.beside, s.ca.Directory, s.ca.CAFile, s.ca.Names, portOf(t, s.web), portOf(t, s.secure),
		filepath.Join(t.TempDir(), "access.log"), s.good[0], s.good[1], s.bad, s.slow, s.good[0], s.good[0], s.grpc, s.good[1], s.echo, s.stream) + s.signInConfig())
}

// drainNotices reads what headgate tells the service manager of each change.
func (s *soak) drainNotices() {
	p := make([]byte, 1<<12)
	for {
		if _, err := s.g.told.Read(p); err != nil {
			return
		}
	}
}

// each has n goroutines do something again and again until the end.
func (s *soak) each(n int, do func(r *rand.Rand)) {
	for i := range n {
		s.running.Go(func() {
			for r := rand.New(rand.NewPCG(uint64(s.began.UnixNano()), uint64(i))); s.ctx.Err() == nil; {
				do(r)
			}
		})
	}
}

// pause waits for up to d.
func (s *soak) pause(r *rand.Rand, d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(rand.N(d)):
	}
}

// saw counts what happened.
func (s *soak) saw(what string) {
	s.seen.Lock()
	defer s.seen.Unlock()
	s.seen.m[what]++
}

// wrong reports what must not happen.
func (s *soak) wrong(format string, args ...any) {
	if s.ctx.Err() != nil {
		return // what ends with the soak
	}
	if what := s.hardship.Load(); what != nil {
		s.saw("failed with " + *what)
		return
	}
	s.t.Helper()
	s.never(format, args...)
}

// never reports what must not happen in any hardship either: bytes of another response.
func (s *soak) never(format string, args ...any) {
	s.seen.Lock()
	s.seen.failed++
	many := s.seen.failed > 20
	s.seen.Unlock()
	s.t.Helper()
	if !many {
		s.t.Errorf("after %s: %s", time.Since(s.began).Round(time.Millisecond), fmt.Sprintf(format, args...))
	}
}

// finish ends headgate and reads its log.
func (s *soak) finish() {
	s.t.Helper()
	if got := issuer(s.t, s.secure, "signed.example.com"); !strings.Contains(got, "Pebble") {
		s.t.Errorf("signed.example.com has a certificate of %q", got)
	}
	s.g.stop()
	for line := range strings.Lines(s.g.log.String()) {
		for _, mark := range []string{"DATA RACE", "panic:", "fatal error:", "stack="} {
			if strings.Contains(line, mark) {
				s.t.Errorf("the log of headgate: %s", line)
			}
		}
	}
	var all []string
	for what, n := range s.seen.m {
		all = append(all, fmt.Sprintf("%8d %s", n, what))
	}
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(a[9:], b[9:]) })
	s.t.Logf("in %s:\n%s", time.Since(s.began).Round(time.Second), strings.Join(all, "\n"))
	for _, what := range []string{"http/1.1 good", "http/2 good", "http/3 good", "http/1.1 cached", "stream", "gRPC call", "gRPC duplex", "signed in by OIDC", "beside good", "cutover"} {
		if s.seen.m[what] == 0 {
			s.t.Errorf("no response of the kind %q was checked", what)
		}
	}
	if s.t.Failed() && os.Getenv("SOAK_LOG") != "" {
		os.WriteFile(os.Getenv("SOAK_LOG"), []byte(s.g.log.String()), 0o600)
	}
}

// content is the body of a path /SEED/SIZE.
func content(path string) []byte {
	var seed, size int
	if n, err := fmt.Sscanf(path, "/%d/%d", &seed, &size); n != 2 || err != nil || size > 8<<20 {
		return []byte("no such content")
	}
	b := make([]byte, size)
	r := rand.NewPCG(uint64(seed), 1)
	for i := range b {
		b[i] = 'a' + byte(r.Uint64()%26)
	}
	return b
}

// api sends a request by the admin socket. A status of 500 or more is wrong.
func (s *soak) api(method, path string, in any) (status int, out []byte) {
	var body io.Reader
	kind := "application/json"
	switch in := in.(type) {
	case nil:
	case []byte:
		body, kind = bytes.NewReader(in), "application/octet-stream"
	default:
		data, err := json.Marshal(in)
		if err != nil {
			s.t.Fatal(err)
		}
		body = bytes.NewReader(data)
	}
	rq, err := http.NewRequestWithContext(s.t.Context(), method, "http://headgate/api/v1"+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	rq.Header.Set("Content-Type", kind)
	rq.Header.Set("If-Match", "*")
	rs, err := s.admin().Do(rq)
	if err != nil {
		s.wrong("%s %s: %v", method, path, err)
		return 0, nil
	}
	defer rs.Body.Close()
	out, err = io.ReadAll(rs.Body)
	if err != nil || rs.StatusCode >= 500 {
		s.wrong("%s %s: %d %.300s, %v", method, path, rs.StatusCode, out, err)
	}
	route, _, _ := strings.Cut(path, "?")
	s.saw(fmt.Sprintf("change %s %s %d", method, strings.TrimRight(route, "0123456789"), rs.StatusCode))
	return rs.StatusCode, out
}

// admin returns a client of the admin socket.
func (s *soak) admin() *http.Client {
	s.local.once.Do(func() {
		link := filepath.Join(shortDir(s.t), "state")
		if err := os.Symlink(filepath.Join(s.g.dir, "state"), link); err != nil {
			s.t.Fatal(err)
		}
		s.local.client = &http.Client{Timeout: patience, Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(link, "admin.sock"))
			}}}
	})
	return s.local.client
}
