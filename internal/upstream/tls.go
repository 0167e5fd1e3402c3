package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
)

// TLS are the TLS settings for an https server. Its certificate is verified unless
// insecure_skip_verify is set.
type TLS struct {
	// ServerName is the name that is sent in the handshake and that the server's
	// certificate must have. Absent means the host of the URL.
	ServerName string `json:"server_name,omitempty" label:"true" max:"253" example:"app.internal"`
	// CAFile is a PEM file with the certificate authorities to trust in place of the
	// system's. A relative path is relative to the configuration file.
	CAFile string `json:"ca_file,omitempty" host:"admin" max:"4096" example:"internal-ca.pem"`
	// InsecureSkipVerify disables the verification of the server's certificate. An attacker
	// between headgate and the server can then read and change all traffic; `validate`, the
	// log and the status warn as long as it is set.
	InsecureSkipVerify bool `json:"insecure_skip_verify" label:"true" default:"false"`
	// ClientCertFile is a PEM file with a client certificate, for servers that require one.
	// A relative path is relative to the configuration file. A changed file is used for new
	// connections.
	ClientCertFile string `json:"client_cert_file,omitempty" host:"admin" local:"true" max:"4096" example:"client.pem"`
	// ClientKeyFile is a PEM file with the private key of that certificate.
	ClientKeyFile string `json:"client_key_file,omitempty" host:"admin" local:"true" max:"4096" example:"client.key"`
}

// Secure are TLS settings for a server, with their files loaded.
type Secure struct {
	// Name is sent in the handshake and verified: a host name or an IP address.
	Name string
	// Authorities are the trusted authorities; nil means the system's.
	Authorities *x509.CertPool
	// Unverified disables verification.
	Unverified bool
	// Certificate returns the certificate that is shown to the server; nil shows
	// none. It is called by many goroutines at once.
	Certificate func() *tls.Certificate
	// Key identifies these settings, including the contents of files.
	Key string
}

// sessions is how many TLS sessions are kept for one server.
const sessions = 32

// Config returns the settings as crypto/tls has them, for connections that are not
// of a Pool.
func (s *Secure) Config() *tls.Config { return s.config(func() {}) }

// Fault says in one line why a TLS handshake with a server failed, and what helps.
func Fault(err error) string { return tlsFault(err) }

// config returns the settings in the form of crypto/tls, with these protocols
// above. asked is called when the server requests a certificate.
func (s *Secure) config(asked func(), protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         strings.TrimSuffix(s.Name, "."),
		RootCAs:            s.Authorities,
		InsecureSkipVerify: s.Unverified,
		NextProtos:         protocols,
		ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked()
			if s.Certificate == nil {
				return &tls.Certificate{}, nil // none
			}
			return s.Certificate(), nil
		},
	}
}
