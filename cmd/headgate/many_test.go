package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/acme"
	"headgate/internal/certs/certstest"
	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/testhouse"
)

// manyCertificates is how many certificates are kept when headgate starts.
var manyCertificates = flag.Int("certificates", 300, "start with so many stored certificates; the goal is set for 10000")

// TestStartWithManyCertificates starts with certificates by ACME of earlier runs, all of
// them wanted still, and counts the handshakes that get the right one. It tells how long
// the start took and what a certificate takes of memory.
func TestStartWithManyCertificates(t *testing.T) {
	n := *manyCertificates
	at := testhouse.Addresses(t, 3)
	web, secure, admin := at[0], at[1], at[2]
	dir := t.TempDir()
	authority := certstest.Sign(t, certstest.Authority("many"), nil)
	keepMany(t, filepath.Join(dir, "state"), n, &authority)
	config := func(acme string) string {
		return fmt.Sprintf("version: 1\nadmin: {address: %q}\nports: {web: {address: %q, protocol: http}, websecure: {address: %q, protocol: https}}\n%sproxies: {all: {routes: [{fixed_response: {status: 204}}]}}\n", admin, web, secure, acme)
	}
	began := time.Now()
	run := startMany(t, dir, config(wantMany(n)))
	issuer := func(name string) (string, error) {
		c, err := tls.Dial("tcp", secure, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			return "", err
		}
		defer c.Close()
		leaf := c.ConnectionState().PeerCertificates[0]
		return leaf.Issuer.CommonName, leaf.VerifyHostname(name)
	}
	testhouse.Eventually(t, "the port serves", func() bool { _, err := issuer(hostOf(n / 2)); return err == nil })
	t.Logf("%d certificates: the first handshake was done %v after the start", n, time.Since(began).Round(time.Millisecond))
	before := heapOf(t, admin)
	for i := range n {
		if got, err := issuer(hostOf(i)); err != nil || got != "many" {
			t.Fatalf("%s got a certificate of %q, %v", hostOf(i), got, err)
		}
	}
	t.Logf("heap in use: %.1f MB after the start, %.1f MB after a handshake for each", before/1e6, heapOf(t, admin)/1e6)
	run.end()
	run = startMany(t, dir, config(""))
	testhouse.Eventually(t, "the port serves", func() bool { _, err := issuer(hostOf(0)); return err == nil })
	t.Logf("heap in use: %.1f MB with none of them wanted", heapOf(t, admin)/1e6)
	run.end()
}

// manyRun is a headgate that runs.
type manyRun struct {
	t   *testing.T
	cmd *exec.Cmd
	log testhouse.Log
}

// startMany runs this binary as headgate over a folder with its state.
func startMany(t *testing.T, dir, config string) *manyRun {
	t.Helper()
	file := filepath.Join(dir, "headgate.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &manyRun{t: t, cmd: exec.Command("headgate", "run", "--config", file, "--state", filepath.Join(dir, "state"))}
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	return p
}

// end stops headgate and waits for its end.
func (p *manyRun) end() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatal(err)
	}
}

// hostOf returns the host of a certificate.
func hostOf(i int) string { return fmt.Sprintf("h%05d.example.com", i) }

// wantMany returns ACME entries that want all certificates. The authority cannot be reached.
func wantMany(n int) string {
	var b strings.Builder
	b.WriteString("acme:\n")
	for e := 0; e*1000 < n; e++ {
		fmt.Fprintf(&b, "  e%d: {directory: \"https://127.0.0.1:1/dir\", domains: [", e)
		for i := e * 1000; i < min(n, (e+1)*1000); i++ {
			b.WriteString(hostOf(i) + ", ")
		}
		b.WriteString("]}\n")
	}
	return b.String()
}

// keepMany writes certificates into a state directory, with the records of their orders.
// They share one key and one chain but for the name.
func keepMany(t *testing.T, dir string, n int, authority *tls.Certificate) {
	t.Helper()
	s, err := local.Open(local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now().UTC().Truncate(time.Second)
	const perChange = 30
	for i := 0; i < n; i += perChange {
		var c store.Change
		for k := i; k < min(n, i+perChange); k++ {
			name := hostOf(k)
			leaf := certstest.Sign(t, &x509.Certificate{DNSNames: []string{name}}, authority)
			r := &acme.Record{
				Name: name, Names: []string{name}, Has: []string{name}, Entry: fmt.Sprintf("e%d", k/1000), State: acme.Valid, Since: now,
				NotBefore: leaf.Leaf.NotBefore, NotAfter: leaf.Leaf.NotAfter, Directory: "https://127.0.0.1:1/dir", NextTry: now.Add(6 * time.Hour),
				Renewal: &acme.Renewal{At: leaf.Leaf.NotAfter.Add(-30 * 24 * time.Hour), AskAgain: now.Add(6 * time.Hour)},
			}
			for range 3 {
				a := &acme.Attempt{Directory: r.Directory, Began: leaf.Leaf.NotBefore, Ended: leaf.Leaf.NotBefore.Add(time.Minute), Issued: true}
				for range 8 {
					a.Steps = append(a.Steps, acme.Step{At: now, State: acme.Pending, Text: "answer to http-01 in place, the authority has seen that " + name + " is ours"})
				}
				r.Timeline = append(r.Timeline, a)
			}
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			c.Put = append(c.Put,
				store.Entry{Key: store.PrefixOrder + name, Value: data},
				store.Entry{Key: store.PrefixCertificate + name, Value: append(certstest.PEM(leaf), certstest.KeyPEM(t, leaf)...)})
		}
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// heapOf returns how many bytes of its heap a headgate uses.
func heapOf(t *testing.T, admin string) (bytes float64) {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if text, ok := strings.CutPrefix(line, "go_memstats_heap_alloc_bytes "); ok {
			if bytes, err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bytes
}
