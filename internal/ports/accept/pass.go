package accept

import (
	"errors"
	"net/netip"
	"time"

	"headgate/internal/certs"
	"headgate/internal/metrics"
	"headgate/internal/netconn"
	"headgate/internal/ports/hello"
	"headgate/internal/ports/listen"
	"headgate/internal/stream/tcp"
)

// helloRoom is how much is read at first, in bytes: what browsers say fits in.
const helloRoom = 2 << 10

// stream returns the connection through a TCP proxy of the address, nil if none accepts it.
func (f *fresh) stream() listen.Conn {
	if !f.on.ReadsHello() {
		return f.carry(f.on.Rest(), "")
	}
	proxy, name, _ := f.find()
	if proxy == nil && len(f.early) == 0 {
		proxy = f.on.Rest() // a client that waits for its server to speak
	}
	if proxy == nil {
		f.refused(metrics.RefusedHandshake)
		f.unknownName()
		return nil
	}
	return f.carry(proxy, name)
}

// find reads what a TLS client requests and returns the TCP proxy for it, nil if there is
// none, and the server name. The bytes are kept in f.early: the client is served from
// its first byte on. Clients that send no server name, send something other than a
// ClientHello, or take too long are served as without a name. ok is false for a client that
// sent nothing.
func (f *fresh) find() (proxy *tcp.Proxy, name string, ok bool) {
	if !netconn.Readable(f.nc, handshakeTime) {
		return nil, "", false
	}
	f.nc.SetReadDeadline(time.Now().Add(handshakeTime))
	h, valid := f.readHello()
	f.nc.SetReadDeadline(time.Time{})
	if !valid {
		return f.on.Rest(), "", true
	}
	return f.on.StreamFor(h.Name, h.Protocols), h.Name, true
}

// carry returns the connection through a TCP proxy, after the handshake if the proxy
// terminates TLS; nil if that fails, or was for a challenge.
func (f *fresh) carry(proxy *tcp.Proxy, name string) listen.Conn {
	early := f.early
	if proxy.Secure == nil || proxy.Denies(f.client()) {
		f.early = nil
		return proxy.NewConn(f.nc, early, name)
	}
	secure := f.shake(proxy.Secure)
	if secure == nil {
		return nil
	}
	state := secure.ConnectionState()
	if state.NegotiatedProtocol == certs.ChallengeProtocol {
		secure.Close() // the certificate authority has its proof
		return nil
	}
	return proxy.NewConn(secure, nil, state.ServerName)
}

// client returns the address of the client.
func (f *fresh) client() netip.Addr { return netconn.AddressOf(f.nc.RemoteAddr()).Unmap() }

// alertUnknownName is a fatal alert unrecognized_name, as a record (RFC 8446, section 6;
// RFC 6066, section 3).
var alertUnknownName = []byte{21, 3, 3, 0, 2, 2, 112}

// unknownName ends the connection of a TLS client that no proxy of the address accepts.
func (f *fresh) unknownName() {
	if _, _, err := hello.Parse(f.early); err != nil {
		return // it speaks no TLS
	}
	f.nc.SetDeadline(time.Now().Add(farewellTime))
	if _, err := f.nc.Write(alertUnknownName); err == nil {
		f.farewell()
	}
}

// readHello reads until it is known what a client requests; valid is false if that is no
// ClientHello, or does not come whole. The bytes are kept in f.early. Memory is allocated for bytes that have arrived, not for a length
// that a client announces.
func (f *fresh) readHello() (h hello.Hello, valid bool) {
	b := make([]byte, 0, helloRoom)
	defer func() { f.early = b }()
	for wanted := 1; ; {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, 2*len(b)), b...)
		}
		n, err := f.nc.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if wanted -= n; wanted > 0 && err == nil {
			continue // it cannot be whole yet
		}
		h, more, perr := hello.Parse(b)
		if !errors.Is(perr, hello.ErrMore) {
			return h, perr == nil
		}
		if err != nil {
			return hello.Hello{}, false
		}
		wanted = more
	}
}
