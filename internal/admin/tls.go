package admin

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"

	"headgate/internal/certs"
	"headgate/internal/plan"
)

// secret is how a listener speaks TLS now. A change of the configuration swaps it;
// connections go on with what they began with.
type secret struct{ now atomic.Pointer[tls.Config] }

// config returns the TLS configuration of the server, which uses the current settings in
// every handshake, or those of the group, which may be nil.
func (s *secret) config(group Group) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(client *tls.ClientHelloInfo) (*tls.Config, error) {
			if group != nil {
				if c := group.Config(client); c != nil {
					return c, nil
				}
			}
			return s.now.Load(), nil
		},
	}
}

// grouped passes requests on connections of the group, which may be nil, to it.
func grouped(group Group, next http.Handler) http.Handler {
	if group == nil {
		return next
	}
	return unless(func(rq *http.Request) bool { return rq.TLS != nil && group.Serves(rq.TLS) }, group, next)
}

// secureLocked applies the settings of the configuration. It logs the fingerprint of a
// self-signed certificate once, for comparison with what the browser shows.
func (s *Server) secureLocked() {
	l, t := s.mu.open, s.mu.tls
	if l == nil || l.secret == nil || t == nil {
		return
	}
	l.secret.now.Store(t.Config)
	if !t.SelfSigned {
		s.mu.logged = ""
		return
	}
	if shown := certs.Fingerprint(t.Default.Certificate[0]); shown != s.mu.logged {
		s.mu.logged = shown
		s.log.Info("admin listener has a self-signed certificate", "address", l.socket.Addr().String(), "sha256_fingerprint", shown, "sha256_public_key", certs.KeyFingerprint(t.Default.Leaf),
			"hint", "compare the fingerprint with the one that the browser shows, or name a certificate with admin.certificate")
	}
}

// URL returns where the listener is for people, such as https://192.0.2.1:9080, "" when
// it is off. Own is an address of this machine for a listener at all of them; the zero
// address leaves it to localhost.
func (s *Server) URL(own netip.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.open == nil {
		return ""
	}
	at, err := netip.ParseAddrPort(s.mu.open.socket.Addr().String())
	if err != nil {
		return ""
	}
	scheme, host := "http", at.String()
	if s.mu.open.secret != nil {
		scheme = "https"
	}
	if at.Addr().IsUnspecified() {
		host = fmt.Sprintf("localhost:%d", at.Port())
		if own.IsValid() {
			host = netip.AddrPortFrom(own, at.Port()).String()
		}
	}
	return scheme + "://" + host
}

// TLS is how the listener speaks TLS now, nil if it does not.
func (s *Server) TLS() *plan.AdminTLS {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.open == nil || s.mu.open.secret == nil {
		return nil
	}
	return s.mu.tls
}
