package acme

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/internal/setting/unit"
)

// The key that the name server of tests knows.
const (
	updateKey    = "update"
	updateSecret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MTI="
)

// nameServer starts Knot DNS with the zone example.com, which takes updates that are
// signed, and returns its address.
func nameServer(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("knotd")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/knotd")
	}
	if err != nil {
		if os.Getenv("HEADGATE_TOOLS") == "required" {
			t.Fatal("knotd is missing: install Debian's knot")
		}
		t.Skip("knotd is missing: Debian has it in knot, and make test installs it as root")
	}
	for range 5 {
		if at := startKnot(t, path); at != "" {
			return at
		}
	}
	t.Fatal("the name server found no port")
	return ""
}

// startKnot starts the server at a port that was free, and returns "" if another has
// taken it since.
func startKnot(t *testing.T, path string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	dir := t.TempDir()
	ours := filepath.Base(filepath.Dir(dir)) + filepath.Base(dir)
	for name, text := range map[string]string{
		"knot.conf": fmt.Sprintf(`server:
    listen: 127.0.0.1@%d
    rundir: %q
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: %q
    journal-db-max-size: 16M
key:
  - id: %s
    algorithm: hmac-sha256
    secret: %s
acl:
  - id: update
    key: %s
    action: update
template:
  - id: default
    storage: %q
    file: "%%s.zone"
zone:
  - domain: example.com
    acl: update
log:
  - target: stderr
    any: info
`, port, dir, dir, updateKey, updateSecret, updateKey, dir),
		"example.com.zone": "example.com. 60 SOA ns.example.com. ops.example.com. 1 3600 600 86400 60\nexample.com. 60 NS ns.example.com.\nns.example.com. 60 A 127.0.0.1\nours.example.com. 60 TXT \"" + ours + "\"\n" +
			"_acme-challenge.shop.example.com. 60 CNAME shop.dns.example.com.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "-c", filepath.Join(dir, "knot.conf"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	stop := func() { cancel(); <-ended }
	look := lookup{servers: []string{at}, named: true}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		select {
		case <-ended:
			t.Logf("knotd has ended: %s", &said)
			cancel()
			return ""
		default:
		}
		if seen, err := look.seen(t.Context(), at, "ours.example.com", ours); err == nil && seen {
			t.Cleanup(stop)
			return at
		}
	}
	stop()
	t.Logf("knotd does not answer: %s", &said)
	return ""
}

// TestRecordsAreWrittenToARealNameServer writes two values for one name, as a wildcard
// and its domain need, where a CNAME record leads, and takes both back.
func TestRecordsAreWrittenToARealNameServer(t *testing.T) {
	t.Parallel()
	at := nameServer(t)
	look := newLookup([]string{at})
	settings := &DNS{
		Provider: "rfc2136", Propagation: unit.Duration(time.Minute),
		Credentials: map[string]string{"server": at, "tsig_name": updateKey, "tsig_secret": updateSecret},
	}
	var solvers []*dnsSolver
	for _, value := range []string{"v1", "v2"} {
		p, err := newProvider(settings)
		if err != nil {
			t.Fatal(err)
		}
		s := &dnsSolver{settings: settings, provider: p, look: look, name: "_acme-challenge.shop.example.com", value: value}
		solvers = append(solvers, s)
		if err := p.(checker).check(t.Context(), "example.com", "shop.dns.example.com"); err != nil {
			t.Errorf("good credentials are refused: %v", err)
		}
		if err := s.present(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.zone != "example.com" || s.at != "shop.dns.example.com" {
			t.Errorf("written to zone %q at %q, want example.com and shop.dns.example.com", s.zone, s.at)
		}
	}
	want := map[string]bool{"v1": true, "v2": true}
	for _, s := range solvers {
		for value, there := range want {
			seen, err := look.seen(t.Context(), at, "shop.dns.example.com", value)
			if err != nil || seen != there {
				t.Errorf("%s is there: %v (%v), want %v", value, seen, err, there)
			}
		}
		for range 2 { // twice does no harm
			if err := s.provider.cleanUp(t.Context(), s.zone, s.at, s.value); err != nil {
				t.Fatal(err)
			}
		}
		want[s.value] = false
	}
	for value := range want {
		if seen, err := look.seen(t.Context(), at, "shop.dns.example.com", value); err != nil || seen {
			t.Errorf("%s was left (%v)", value, err)
		}
	}
}

// TestARealNameServersRefusalSaysWhatToDo asks it with keys and for zones that it does
// not take.
func TestARealNameServersRefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	at := nameServer(t)
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 32))
	for _, test := range []struct{ name, key, secret, zone, want string }{
		{"a wrong secret", updateKey, other, "example.com", "the credentials are wrong"},
		{"an unknown key", "nobody", updateSecret, "example.com", "the credentials are wrong"},
		{"another zone", updateKey, updateSecret, "example.org", "has no zone example.org"},
		{"no key", "", "", "example.com", "zone example.com"},
	} {
		d := &DNS{Provider: "rfc2136", Zone: test.zone, Credentials: map[string]string{"server": at, "tsig_name": test.key, "tsig_secret": test.secret}}
		p, err := newProvider(d)
		if err != nil {
			t.Fatal(err)
		}
		s := &dnsSolver{settings: d, provider: p, look: newLookup([]string{at}), name: "_acme-challenge." + test.zone, value: "v1"}
		err = p.present(t.Context(), test.zone, s.name, s.value)
		if err == nil {
			t.Errorf("%s: the server took it", test.name)
			continue
		}
		t.Logf("%s: %v", test.name, err)
		if err := p.(checker).check(t.Context(), test.zone, s.name); test.key != "" && !isRefusal(err) {
			t.Errorf("%s: the check says %v, want a refusal", test.name, err)
		}
		if got := hintFor(err, d, test.zone); !strings.Contains(got, test.want) {
			t.Errorf("%s: %v has the hint %q, want %q", test.name, err, got, test.want)
		}
		if strings.Contains(err.Error(), other) || test.secret != "" && strings.Contains(err.Error(), test.secret) {
			t.Errorf("%s: the secret is told: %v", test.name, err)
		}
	}
	if _, err := newProvider(&DNS{Provider: "rfc2136", Credentials: map[string]string{"server": at, "tsig_name": "k", "tsig_secret": "not base64!"}}); err == nil || strings.Contains(err.Error(), "not base64!") {
		t.Errorf("got the error %v for a secret that is not base64", err)
	}
}
