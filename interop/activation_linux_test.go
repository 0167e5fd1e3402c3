package interop

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"
)

// TestSocketActivation holds that ports and the admin listener have the sockets that a
// service manager has opened for them, by name, also after an upgrade. The manager keeps
// its descriptors, so nothing else could open the addresses.
func TestSocketActivation(t *testing.T) {
	web, admin, elsewhere := listenTCP(t), listenTCP(t), listenTCP(t)
	packets, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	id := newIdentity(t, "one.example")
	g := prepare(t)
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	r := prepareReplaced(t, g, fmt.Sprintf(`
version: 1
admin: {address: %q}
access_log: {enabled: false}
ports:
  web: {address: %q, protocol: http}
  quic: {address: %q, protocol: http3}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: here}}]}}
`, admin.Addr(), web.Addr(), packets.LocalAddr()))
	udp, err := packets.File()
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	files := []*os.File{udp}
	for _, l := range []*net.TCPListener{web, admin, elsewhere} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	// LISTEN_PID is the number of the process itself, which a shell knows.
	r.cmd = exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, r.binary, "run", "--config", r.file, "--state", filepath.Join(r.dir, "state"))
	r.cmd.ExtraFiles = files
	r.cmd.Env = append(os.Environ(), "LISTEN_FDS=4", "LISTEN_FDNAMES=quic:web:admin:nobody")
	r.launch()

	check := func() {
		t.Helper()
		client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		for _, url := range []string{"http://" + web.Addr().String() + "/", "http://" + admin.Addr().String() + "/readyz"} {
			rs, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			rs.Body.Close()
			if rs.StatusCode != 200 {
				t.Errorf("%s: %s", url, rs.Status)
			}
		}
		tr := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer tr.Close()
		rs, err := (&http.Client{Timeout: patience, Transport: tr}).Get("https://" + packets.LocalAddr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
	}
	check()
	if log := r.logged(); !strings.Contains(log, "a socket of the service manager is not used") || !strings.Contains(log, "name=nobody") {
		t.Errorf("nothing was logged of the socket that no port has:\n%s", log)
	}
	r.upgrade()
	check()
	r.alone()
}

// listenTCP returns a listener on a free address.
func listenTCP(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
