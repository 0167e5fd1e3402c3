package interop

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
)

// unspecified is this machine, as an address that is not one of it for commands: they trust any
// certificate on loopback addresses.
const unspecified = "0.0.0.0"

// TestAgentsVerifyHeadgate starts agents as the output of agent invite says. They report to the
// headgate with the fingerprint or with a certificate of a trusted authority, also after the
// certificate was replaced, and to no other.
func TestAgentsVerifyHeadgate(t *testing.T) {
	port := lasting(t)
	config := fmt.Sprintf("version: 1\nadmin: {address: %q}\ndiscovery: {agent: {web7: {address: 127.0.0.1}}}\n", unspecified+":"+port)
	g := start(t, config)
	a := invited(t, g, port)
	if !slices.Contains(a.flags, "--fingerprint") {
		t.Fatalf("agent invite prints no fingerprint: %q", a.flags)
	}
	a.reports("headgate accepts the reports")
	wrong := slices.Clone(a.flags)
	wrong[slices.Index(wrong, "--fingerprint")+1] = strings.TrimSuffix(strings.Repeat("AB:", 32), ":")
	(&invitedAgent{t: t, flags: wrong}).reports("neither the certificate")
	at := slices.Index(a.flags, "--fingerprint")
	(&invitedAgent{t: t, flags: slices.Delete(slices.Clone(a.flags), at, at+2)}).reports("headgate status")

	// With a certificate of an authority that the system trusts, no fingerprint is needed.
	ca := certstest.Sign(t, certstest.Authority("an authority"), nil)
	trusted := g.put("ca.pem", string(certstest.PEM(ca)))
	sign := func() {
		template := &x509.Certificate{DNSNames: []string{"proxy.example.com"}, KeyUsage: x509.KeyUsageDigitalSignature}
		template.IPAddresses, template.NotBefore, template.NotAfter = []net.IP{net.ParseIP(unspecified)}, time.Now().Add(-time.Hour), time.Now().Add(90*24*time.Hour)
		one := certstest.Sign(t, template, &ca)
		g.put("key.pem", string(certstest.KeyPEM(t, one)))
		g.put("cert.pem", string(certstest.PEM(one)))
	}
	sign()
	config = strings.Replace(config, "}\n", ", certificate: main}\ncertificates: {main: {cert_file: cert.pem, key_file: key.pem}}\n", 1)
	g.apply(config)
	b := invited(t, g, port)
	if slices.Contains(b.flags, "--fingerprint") {
		t.Errorf("with a certificate, agent invite prints a fingerprint: %q", b.flags)
	}
	b.trusts = trusted
	b.reports("headgate accepts the reports")
	first := leafAt(t, port)
	sign()
	g.apply(config + "# again\n")
	for until := time.Now().Add(patience); leafAt(t, port).Equal(first); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the certificate is not replaced")
		}
	}
	b.reports("headgate accepts the reports")
}

// leafAt returns the certificate of the admin listener.
func leafAt(t *testing.T, port string) *x509.Certificate {
	t.Helper()
	c, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0]
}

// invitedAgent is an agent of a machine without containers.
type invitedAgent struct {
	t      *testing.T
	flags  []string
	trusts string // a file with authorities
}

// invited returns the agent that agent invite describes, with its token, and with unspecified in
// place of the address of this machine.
func invited(t *testing.T, g *gate, port string) *invitedAgent {
	t.Helper()
	place := []string{"--config", g.file, "--state", filepath.Join(g.dir, "state")}
	exec.Command(os.Getenv(binaryFolder), append([]string{"token", "revoke", "web7"}, place...)...).Run() // there may be none
	cmd := exec.Command(os.Getenv(binaryFolder), append([]string{"agent", "invite", "web7"}, place...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	token, err := cmd.Output()
	if err != nil {
		t.Fatalf("agent invite: %v\n%s", err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	words := strings.Fields(lines[len(lines)-1])
	to, file := slices.Index(words, "--to")+1, slices.Index(words, "--token-file")+1
	if len(words) < 2 || words[0] != "headgate" || to == 0 || file == 0 || !strings.HasPrefix(words[to], "https://") || !strings.HasSuffix(words[to], ":"+port) {
		t.Fatalf("agent invite prints no command for port %s:\n%s", port, errs.String())
	}
	words[to] = "https://" + unspecified + ":" + port
	words[file] = g.put("agent.token", string(token))
	return &invitedAgent{t: t, flags: append(words[1:], "--endpoint", "unix://"+filepath.Join(g.dir, "no.sock"))}
}

// reports runs the agent until it logs a text.
func (a *invitedAgent) reports(want string) {
	a.t.Helper()
	cmd := exec.Command(os.Getenv(binaryFolder), a.flags...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+a.trusts)
	log := &record{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}()
	for until := time.Now().Add(patience); !strings.Contains(log.String(), want); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			a.t.Fatalf("%q: no %q in the log of the agent:\n%s", a.flags, want, log)
		}
	}
}
