package exchange

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/netip"
)

// NewConn returns what is known of a client's connection: its addresses and,
// for a *tls.Conn after its handshake, what that told. serial must be unique.
func NewConn(nc net.Conn, scheme string, serial uint64) Conn {
	remote := addrOf(nc.RemoteAddr())
	c := Conn{Remote: remote, Local: addrOf(nc.LocalAddr()), Peer: remote.Addr().String(), Scheme: scheme, Serial: serial}
	if secure, ok := nc.(*tls.Conn); ok {
		state := secure.ConnectionState()
		c.secure(&state)
	}
	return c
}

// addrOf returns an address in the form in which it is compared and shown.
func addrOf(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		ap := tcp.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return netip.AddrPort{}
}

// secure notes what a TLS handshake told of the connection.
func (c *Conn) secure(state *tls.ConnectionState) {
	c.ServerName = state.ServerName
	if len(state.VerifiedChains) == 0 {
		return
	}
	cert := state.PeerCertificates[0]
	c.ClientSubject = cert.Subject.String()
	sum := sha256.Sum256(cert.Raw)
	c.ClientFingerprint = hex.EncodeToString(sum[:])
}
