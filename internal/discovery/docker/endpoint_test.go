package docker

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/certs/certstest"
	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/discovery/docker/dockertest"
)

func TestEngineAtATCPAddress(t *testing.T) {
	e := dockertest.NewTCP(t, nil)
	e.Run(web("shop", "10.0.0.2", "headgate.host=shop.example"))
	becomes(t, follow(t, e.Endpoint(), nil), "proxies shop: virtual_hosts=shop.example -> http://10.0.0.2:80")
}

// An engine with TLS is asked when its certificate fits, and when ours is one that it
// takes; otherwise the state says what is wrong.
func TestEngineWithTLS(t *testing.T) {
	dir := t.TempDir()
	authority := certstest.Sign(t, certstest.Authority("engine"), nil)
	engine := certstest.Sign(t, &x509.Certificate{DNSNames: []string{"docker.internal"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, &authority)
	client := certstest.Sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, &authority)
	ca, _ := certstest.Write(t, dir, "ca", authority)
	certFile, keyFile := certstest.Write(t, dir, "client", client)
	trusted := x509.NewCertPool()
	trusted.AddCert(authority.Leaf)
	e := dockertest.NewTCP(t, &tls.Config{Certificates: []tls.Certificate{engine}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted, MinVersion: tls.VersionTLS12})
	e.Run(web("shop", "10.0.0.2", "headgate.host=shop.example"))
	for name, c := range map[string]struct {
		tls  config.DockerTLS
		want string // in the reason; empty for a running source
	}{
		"right":      {config.DockerTLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile}, ""},
		"named":      {config.DockerTLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile, ServerName: "docker.internal"}, ""},
		"other name": {config.DockerTLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile, ServerName: "else.internal"}, "else.internal"},
		"no client":  {config.DockerTLS{CAFile: ca}, "certificate"},
		"untrusted":  {config.DockerTLS{CertFile: certFile, KeyFile: keyFile}, "authority"},
	} {
		t.Run(name, func(t *testing.T) {
			s := follow(t, e.Endpoint(), &config.Docker{TLS: &c.tls})
			if c.want == "" {
				becomes(t, s, "proxies shop: virtual_hosts=shop.example -> http://10.0.0.2:80")
				return
			}
			if got := waitForState(t, s, discovery.Failed); !strings.Contains(got.Reason+got.Hint, c.want) {
				t.Errorf("reason %q, hint %q, want %q in it", got.Reason, got.Hint, c.want)
			}
		})
	}
}

// The page of labels has every label that the reader knows.
func TestThePageOfLabelsHasTheShortOnes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "labels.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range shortLabels {
		if !strings.Contains(string(page), "| `headgate."+name+"` |") {
			t.Errorf("no row for headgate.%s", name)
		}
	}
	for _, name := range append([]string{"port", "network", "scheme", "base_path"}, serverWords...) {
		if !strings.Contains(string(page), "`headgate.http.NAME."+name) {
			t.Errorf("headgate.http.NAME.%s is not told", name)
		}
	}
}
