package exchange

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
)

// Secure notes what a TLS handshake told of the connection.
func (c *Conn) Secure(state *tls.ConnectionState) {
	c.ServerName = state.ServerName
	if len(state.VerifiedChains) == 0 {
		return
	}
	cert := state.PeerCertificates[0]
	c.ClientSubject = cert.Subject.String()
	sum := sha256.Sum256(cert.Raw)
	c.ClientFingerprint = hex.EncodeToString(sum[:])
}
