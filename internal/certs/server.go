package certs

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Policy is how TLS is spoken on a port, but for its certificates.
type Policy struct {
	// MinVersion is the oldest version, tls.VersionTLS12 or later.
	MinVersion uint16
	// ClientAuth and ClientCAs configure client certificates and their authorities.
	ClientAuth tls.ClientAuthType
	ClientCAs  *x509.CertPool
	// NextProtos are the protocols above TLS, the preferred first.
	NextProtos []string
	// Challenge returns the certificate for a tls-alpn-01 handshake with a name (RFC 8737),
	// nil if there is no such challenge. It may be nil.
	Challenge func(name string) *tls.Certificate
	// Demand is called for a handshake with a name that no valid certificate has, before one
	// is selected. It may wait until there is one. An error ends the handshake: with the alert
	// unrecognized_name if it wraps ErrNoCertificate. It may be nil.
	Demand func(hello *tls.ClientHelloInfo) error
	// ECH returns the keys of Encrypted Client Hello for a handshake (RFC 9849), not nil. With
	// it, the names of all other functions are those of the encrypted ClientHello if one of the
	// keys decrypts it. It may be nil.
	ECH func(hello *tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error)
}

// ChallengeProtocol is the ALPN protocol of tls-alpn-01. No other data is exchanged on that
// connection.
const ChallengeProtocol = "acme-tls/1"

// Authorities returns the certificates of authorities that the data of a PEM file
// hold. The error names the file.
func Authorities(file string, data []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("read %s: it holds no certificate in PEM form", file)
	}
	return pool, nil
}

// suites are the ciphers of TLS 1.2: those with forward secrecy and authenticated
// encryption, which are also all that HTTP/2 allows (RFC 9113, section 9.2.2). TLS
// 1.3 has no others.
var suites = [...]uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// ErrNoCertificate is the error of a handshake with a name that gets no certificate.
var ErrNoCertificate = errors.New("no certificate")

// NewConfig returns the TLS settings of a port that chooses from set. tickets
// are the session tickets of all ports with the same client authentication.
func NewConfig(p Policy, set *Set, tickets *Tickets) *tls.Config {
	cfg := &tls.Config{
		MinVersion: p.MinVersion,
		// A copy, as the settings may be changed by who has them.
		CipherSuites: slices.Clone(suites[:]),
		ClientAuth:   p.ClientAuth,
		ClientCAs:    p.ClientCAs,
		NextProtos:   p.NextProtos,

		GetEncryptedClientHelloKeys: p.ECH,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if p.Demand != nil && hello.ServerName != "" && !set.HasValid(hello.ServerName) {
				if err := p.Demand(hello); errors.Is(err, ErrNoCertificate) {
					return nil, nil // crypto/tls sends unrecognized_name (RFC 6066, section 3)
				} else if err != nil {
					return nil, err
				}
			}
			local := ""
			switch addr := hello.Conn.LocalAddr().(type) {
			case *net.TCPAddr:
				local = addr.IP.String()
			case *net.UDPAddr:
				local = addr.IP.String()
			}
			cert := set.Choose(hello.ServerName, local)
			if cert == nil {
				return nil, ErrNoCertificate
			}
			return cert, nil
		},
	}
	if p.Challenge != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if len(hello.SupportedProtos) != 1 || hello.SupportedProtos[0] != ChallengeProtocol {
				return nil, nil // as usual
			}
			return challengeConfig(p.Challenge(strings.ToLower(hello.ServerName)))
		}
	}
	tickets.add(cfg)
	return cfg
}

// challengeConfig answers tls-alpn-01 with a certificate. The authority shows none
// itself, whatever clients have to.
func challengeConfig(cert *tls.Certificate) (*tls.Config, error) {
	if cert == nil {
		return nil, ErrNoCertificate
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{ChallengeProtocol}, Certificates: []tls.Certificate{*cert}, SessionTicketsDisabled: true}, nil
}

// How often the key of session tickets changes, and how many old keys still
// open tickets: a ticket is good for between one and two days.
const (
	ticketRotation = 12 * time.Hour
	ticketKeys     = 4
)

// Tickets are the keys of session tickets (RFC 8446, section 4.6.1), shared by
// the configurations of ports so that a change of the configuration does not
// cost clients their sessions. Keys are made here, or of the seeds of several machines, kept in memory only, and
// replaced, so what they open is bounded in time.
type Tickets struct {
	shared *SharedTickets // constant; has the keys of several machines, nil for keys of this one

	mu struct {
		sync.Mutex
		keys    [][32]byte // the newest first
		configs map[*tls.Config]struct{}
		timer   *time.Timer
		retired bool
	}
}

// NewTickets returns tickets with a new key. Begin begins its rotation, Retire ends
// it.
func NewTickets() *Tickets {
	t := &Tickets{}
	t.mu.configs = map[*tls.Config]struct{}{}
	t.renewLocked()
	return t
}

// NewTicketsOf returns tickets with the keys of another process, the newest first, so that
// what those have encrypted can be read; with a new key if there is none.
func NewTicketsOf(keys [][32]byte) *Tickets {
	t := NewTickets()
	if len(keys) > 0 {
		t.mu.keys = keys[:min(len(keys), ticketKeys)]
	}
	return t
}

// Keys returns the keys, the newest first.
func (t *Tickets) Keys() [][32]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.mu.keys)
}

// Start starts the rotation.
func (t *Tickets) Start() {
	if t.shared != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mu.retired {
		t.mu.timer = time.AfterFunc(ticketRotation, t.rotate)
	}
}

// rotate puts a new key in front, now and whenever it is time.
func (t *Tickets) rotate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.retired {
		return
	}
	t.renewLocked()
	t.mu.timer = time.AfterFunc(ticketRotation, t.rotate)
}

// renewLocked puts a new key in front and gives all configurations the keys.
func (t *Tickets) renewLocked() {
	var key [32]byte
	rand.Read(key[:]) // never fails: crypto/rand ends the process instead
	t.mu.keys = append([][32]byte{key}, t.mu.keys...)
	t.mu.keys = t.mu.keys[:min(len(t.mu.keys), ticketKeys)]
	for cfg := range t.mu.configs {
		cfg.SetSessionTicketKeys(t.mu.keys)
	}
}

func (t *Tickets) add(cfg *tls.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cfg.SetSessionTicketKeys(t.mu.keys)
	t.mu.configs[cfg] = struct{}{}
}

// Forget ends the rotation for a configuration that is no longer used.
func (t *Tickets) Forget(cfg *tls.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.configs, cfg)
}

// Retire ends the rotation.
func (t *Tickets) Retire() {
	if t.shared != nil {
		t.shared.forget(t) // before its lock: Set holds both in this order
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.retired = true
	if t.mu.timer != nil {
		t.mu.timer.Stop()
	}
}
