//go:build linux

package main

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// server returns what a server speaks TLS with.
func (c *certificate) server(t *testing.T) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.file, c.key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(c.both, c.both); err != nil {
		t.Errorf("both in one file: %v", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// serveTLS serves the plain answer and returns a running peer as far as its
// clients can see.
func serveTLS(t *testing.T, c *certificate) *running {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, hundredBytes)
	}))
	server.TLS = c.server(t)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return &running{setup: setup{address: server.Listener.Addr().String(), tls: true, certificate: c}}
}

// TestShaker holds that handshakes are full ones, or resumed ones, as wanted, and
// that it is noticed when they are not.
func TestShaker(t *testing.T) {
	c, err := makeCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := serveTLS(t, c)
	for _, resume := range []bool{false, true} {
		s, err := newShaker(r, resume)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := s.shake(resume); err != nil {
				t.Errorf("resume %v: %v", resume, err)
			}
		}
		if err := s.shake(!resume); err == nil {
			t.Errorf("resume %v: the other kind of handshake was taken", resume)
		}
	}
}

func TestAnotherCertificate(t *testing.T) {
	shown, err := makeCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := makeCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := serveTLS(t, shown)
	r.setup.certificate = wanted
	if _, err := newShaker(r, false); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want to hear of the certificate", err)
	}
}

// TestConnectPlain holds that a plain connection comes without a handshake.
func TestConnectPlain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := setup{address: l.Addr().String()}
	conn, err := s.target(h1, nil).connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, ok := conn.(*net.TCPConn); !ok {
		t.Errorf("got a %T", conn)
	}
}
