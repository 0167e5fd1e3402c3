package exchange

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"

	"headgate/internal/proto/header"
)

// Clients of HTTP/2 and HTTP/3 open a WebSocket by an extended CONNECT (RFC 8441,
// RFC 9220). Servers get what they know: a GET that wants to upgrade. So all
// features of a route see the same request whatever the client speaks. The key of
// the handshake, which those clients do not send, is made here, and the server's
// answer to it checked here.

// webSocketKey is the size of a Sec-WebSocket-Key.
const webSocketKey = 24

// webSocketVersion is the one version there is (RFC 6455, section 4.1).
const webSocketVersion = "13"

// webSocketSuffix is what a server adds to the key (RFC 6455, section 1.3).
const webSocketSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// ExtendWebSocket makes the request of an extended CONNECT the one that servers
// know.
func (ex *Exchange) ExtendWebSocket() {
	rq := &ex.Request
	rq.Method, rq.Upgrade, rq.Extended = "GET", "websocket", true
	var nonce [16]byte
	rand.Read(nonce[:]) // never fails: crypto/rand ends the process instead
	base64.StdEncoding.Encode(ex.key[:], nonce[:])
	rq.Header.Set(header.SecWebSocketKey, view(ex.key[:]))
	if _, ok := rq.Header.Lookup("Sec-WebSocket-Version"); !ok {
		rq.Header.AddField("Sec-WebSocket-Version", webSocketVersion)
	}
}

// switched evaluates the response to an extended CONNECT: for the client, any 2xx means
// that the tunnel is established.
func (ex *Exchange) switched() *Answer {
	rs := &ex.Response
	switch {
	case !ex.Request.Extended:
		return nil
	case rs.Tunnel == nil && rs.Ours && rs.Status < 300:
		return Fail(MethodUnknown, "WebSocket requested from a route without one")
	case rs.Tunnel == nil && rs.Status < 300:
		return Fail(UpstreamInvalid, "the server answered the handshake of a WebSocket without a switch of protocols")
	case rs.Tunnel == nil:
		return nil
	case rs.Header.Count(header.SecWebSocketAccept) != 1 || rs.Header.Get(header.SecWebSocketAccept) != ex.accept():
		return Fail(UpstreamInvalid, "the server's Sec-WebSocket-Accept does not belong to the key (RFC 6455, section 4.1)")
	}
	rs.Header.Del(header.SecWebSocketAccept)
	rs.Header.Del(header.Upgrade)
	rs.Status, rs.Length = 200, -1
	return nil
}

// accept returns the Sec-WebSocket-Accept that belongs to the key.
func (ex *Exchange) accept() string {
	sum := sha1.Sum(append(append([]byte{}, ex.key[:]...), webSocketSuffix...))
	return base64.StdEncoding.EncodeToString(sum[:])
}
