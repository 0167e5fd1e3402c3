package exchange

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/netip"
)

// NewConn returns the description of a client's connection: its addresses and, for a
// *tls.Conn after its handshake, the TLS parameters. serial must be unique.
func NewConn(nc net.Conn, scheme string, serial uint64) Conn {
	remote, local := addrsOf(nc)
	c := Conn{Remote: remote, Local: local, Peer: remote.Addr().String(), Scheme: scheme, Serial: serial}
	if secure, ok := nc.(*tls.Conn); ok {
		state := secure.ConnectionState()
		c.secure(&state)
	}
	return c
}

// NewSecureConn returns the description of a client's connection whose TLS is not a
// net.Conn, such as that of QUIC: its addresses and the TLS parameters. serial must be
// unique.
func NewSecureConn(remoteAddr, localAddr net.Addr, state *tls.ConnectionState, serial uint64) Conn {
	remote := addrOf(remoteAddr)
	c := Conn{Remote: remote, Local: addrOf(localAddr), Peer: remote.Addr().String(), Scheme: "https", Serial: serial}
	c.secure(state)
	return c
}

// addrsOf returns the addresses of the two ends of a connection.
func addrsOf(nc net.Conn) (remote, local netip.AddrPort) {
	if known, ok := nc.(interface {
		AddrPorts() (remote, local netip.AddrPort)
	}); ok {
		return known.AddrPorts()
	}
	return addrOf(nc.RemoteAddr()), addrOf(nc.LocalAddr())
}

// addrOf returns an address in the form in which it is compared and shown.
func addrOf(a net.Addr) netip.AddrPort {
	if known, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		ap := known.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return netip.AddrPort{}
}

// secure records the parameters of a TLS handshake.
func (c *Conn) secure(state *tls.ConnectionState) {
	c.ServerName, c.TLSVersion, c.TLSCipher = state.ServerName, state.Version, state.CipherSuite
	c.ECH = state.ECHAccepted
	if len(state.VerifiedChains) == 0 {
		return
	}
	cert := state.PeerCertificates[0]
	c.ClientSubject = cert.Subject.String()
	sum := sha256.Sum256(cert.Raw)
	c.ClientFingerprint = hex.EncodeToString(sum[:])
}
