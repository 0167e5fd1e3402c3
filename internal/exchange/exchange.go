// Package exchange is the main path: one request, its response, and the steps
// between them. A front reads a head into an Exchange and hands it to a
// Pipeline; filters look at it in a fixed order; a source makes the response;
// the front sends it. pipeline.go is the place to begin reading.
//
// The package knows no protocol, no configuration and no network. Fronts,
// rooms and sources import it and do not know each other.
package exchange

import (
	"errors"
	"net/netip"
	"time"

	"headgate/internal/proto/header"
)

// Exchange is one request and its response. It belongs to one goroutine, the
// one that serves the connection or stream, and is used again for the next
// request there: nothing may keep a pointer to it, nor a string or slice found
// in it, after its pipeline has returned.
type Exchange struct {
	// Conn describes the client's connection. It is constant while the connection is open.
	Conn *Conn
	// Front sends what the pipeline decides. It is never nil.
	Front Front

	// Request is what the client asked, as the front read it and the filters
	// changed it.
	Request Request
	// Response is what will be sent, valid once a source or an Answer made it.
	Response Response

	// Place names the port, proxy and route that took the request. Before the
	// match it names the port only. It is never nil.
	Place *Place
	// ClientIP is the address of the client: the peer's, or the one that a trusted peer
	// reported. It is set before the first filter of a route runs.
	ClientIP netip.Addr
	// Locator says where addresses are; nil without geo databases. The port sets it before
	// the match.
	Locator Locator
	// User is who signed in, or "".
	User string
	// Personal means that the response is for this client only unless it is declared
	// public: the client was authenticated, or the server gets its client certificate.
	Personal bool
	// Gated means that access to the response is restricted, whatever the server declares:
	// it is neither stored nor served from a cache.
	Gated bool
	// SignedIn is the sign-in that admitted the client, nil without one. The exchange ends
	// with it.
	SignedIn SignIn
	// Told is what a trusted proxy reported about the original request.
	Told Forwarded
	// TraceID is the id of the trace that the request belongs to, 32 hexadecimal
	// digits; "" when nothing is traced.
	TraceID string
	// Cookies are values of Set-Cookie that filters of the request want the client
	// to get, whatever makes the response.
	Cookies []string
	// Server is the URL of the server that answered or was tried last, or "".
	Server string
	// Attempts counts the servers that were tried, and ServerStatus is the status of the
	// last that answered, 0 if none did.
	Attempts     int
	ServerStatus int

	// Reason says why the response is ours and not a server's, or why it broke
	// off; None otherwise.
	Reason Reason
	// Cause describes what happened, in one line, for the log only.
	Cause string

	// Observed says that a rate limit which only observes would have refused the
	// request.
	Observed bool
	// Cache is what the route's cache notes.
	Cache Caching
	// Rehearsal means that Explain evaluates the filters without a client. Filters answer
	// as usual and keep no state.
	Rehearsal bool
	// Notes are what filters would have done for a real request.
	Notes []string

	// Limits are the times and sizes that hold for this exchange: the port's,
	// as the filters of the route changed them.
	Limits Limits
	// Times are the times in the access log.
	Times Times
	// Sent counts the body bytes of the response that were handed to the
	// client's connection, Received the body bytes of the request that were
	// read.
	Sent, Received int64

	// TunnelGoesOn means that Send of the front only starts a tunnel, which continues after
	// the pipeline has returned, and that the front calls EndTunnel at its end. This
	// releases the goroutine's deep stack.
	TunnelGoesOn bool

	// Text holds bytes that filters make for this exchange only.
	Text Text

	slots slots // of rooms, for what only they know
	id    requestID
	key   [webSocketKey]byte // of the handshake that an extended CONNECT becomes
	// pipeline is what serves the exchange, nil before.
	pipeline *Pipeline
	// ran is how many filters of the pipeline have seen the request; the
	// response goes back through as many.
	ran int
	// tunnel is the entry of the tunnel while one is open, and goesOn says that it has
	// outlived the pipeline.
	tunnel *tunnel
	goesOn bool
}

// Request is the head of a request and its body.
type Request struct {
	// Method is the method, upper or lower case as received.
	Method string
	// Scheme is "http" or "https": how the client, or the trusted proxy before
	// us, was spoken to.
	Scheme string
	// Host is the authority without user information, as received: it may
	// carry a port and capitals. It is "" only for HTTP/1.0 without a Host.
	Host string
	// Path is the path as the client wrote it until the match; from then on it
	// is the normalised path, which is what was matched. It begins with "/",
	// or is "*" for OPTIONS.
	Path string
	// Query is the query with its "?", never changed, or "" if there is none.
	Query string
	// Target is the path below the server's base path: Path until rewrite changes it. An
	// empty Target is the base path as it is written.
	Target string
	// Proto is the protocol of the client.
	Proto Proto
	// Header holds the fields. Hop-by-hop fields are gone before the first
	// filter; Host is in Request.Host and not in the list.
	Header header.List
	// Length is the number of bytes of the body, 0 without a body, -1 if it is
	// known only at its end.
	Length int64
	// Body is the body, or nil if there is none.
	Body Body
	// Trailer is what the client sent behind the body, filled when Body has
	// returned io.EOF. Servers get RequestTrailer.
	Trailer header.List
	// Upgrade is the protocol that the client wants to change to, such as
	// "websocket", or "".
	Upgrade string
	// Extended means that the client used an extended CONNECT (RFC 8441): see
	// ExtendWebSocket. Its front confirms a tunnel with 200.
	Extended bool
	// AcceptsTrailers means that the client's TE header lists trailers.
	AcceptsTrailers bool
	// Continue says that the client waits for a 100 before it sends its body.
	// The front sends it when the body is first read.
	Continue bool
}

// HostName returns the host without its port. An IPv6 address keeps its brackets.
func (rq *Request) HostName() string {
	host := rq.Host
	for i := len(host) - 1; i >= 0 && host[i] != ']'; i-- {
		if host[i] == ':' {
			return host[:i]
		}
	}
	return host
}

// Response is the head of a response and its body.
type Response struct {
	// Status is the status code, 200 to 599, or 101 with a Tunnel; 200 with a
	// Tunnel answers an extended CONNECT.
	Status int
	// Header holds the fields; hop-by-hop and framing fields are not in it.
	Header header.List
	// Length is the number of bytes of the body, -1 if it is known only at its
	// end. For HEAD and 304 it is what Content-Length said, and no body comes.
	Length int64
	// Body is the body. It may be nil when there is nothing to read. The
	// pipeline closes it when the response has been sent.
	Body Body
	// Text is the body when it is short and at hand. Body is nil then, or what
	// holds the memory of Text and is only closed.
	Text []byte
	// Trailer is what the server sent behind the body, filled when Body has
	// returned io.EOF. Clients get ResponseTrailer.
	Trailer header.List
	// Tunnel is the server's side of an upgraded connection, for status 101.
	Tunnel Stream
	// Ours says that the response was made here and not by a server.
	Ours bool
	// Usual says that the body is the usual one of its reason, in the place of
	// which a page may be put.
	Usual bool
	// Makeshift says that the body is not what the features of the route make of it when
	// they have the memory for that: a cache keeps it for moments only.
	Makeshift bool
	// HeadSent says that the head has left: no Answer can replace it.
	HeadSent bool
}

// Conn describes the connection of a request.
type Conn struct {
	// Remote is the peer's address and Local ours.
	Remote, Local netip.AddrPort
	// Peer is Remote's address in text, IPv4-mapped addresses unmapped.
	Peer string
	// Scheme is "http" or "https".
	Scheme string
	// ServerName is the name of the TLS handshake, or "".
	ServerName string
	// ClientSubject is the subject of the certificate that the client showed and
	// that was checked, in the form of RFC 2253, and ClientFingerprint its
	// SHA-256 in hexadecimal; both are "" without one.
	ClientSubject, ClientFingerprint string
	// TLSVersion and TLSCipher are what the handshake chose, as crypto/tls has them; both
	// are 0 without TLS.
	TLSVersion, TLSCipher uint16
	// ECH is whether ServerName was encrypted in the handshake (RFC 9849).
	ECH bool
	// Serial is a number no other connection of this process has.
	Serial uint64

	requests uint32 // begun on the connection
}

// Copy returns what is known of the connection, for a request of our own that an
// exchange on it makes. Other streams may begin meanwhile.
func (c *Conn) Copy() Conn {
	return Conn{
		Remote: c.Remote, Local: c.Local, Peer: c.Peer, Scheme: c.Scheme, ServerName: c.ServerName,
		ClientSubject: c.ClientSubject, ClientFingerprint: c.ClientFingerprint, Serial: c.Serial,
		TLSVersion: c.TLSVersion, TLSCipher: c.TLSCipher, ECH: c.ECH,
	}
}

// Place names where a request went. It is made when a plan is compiled.
type Place struct {
	Port, Proxy, Route string
}

// Forwarded is what a trusted proxy other than a CDN reported about the original request in
// its X-Forwarded headers; "" if it did not. Reports of other peers are never used.
type Forwarded struct {
	// Trusted says that the peer is such a proxy.
	Trusted bool

	Method, Host, URI string
}

// Limits are times and sizes for one exchange. Zero means no limit.
type Limits struct {
	// RequestTimeout is how long an attempt may take until the response head is
	// there.
	RequestTimeout time.Duration
	// ConnectTimeout is how long a connection to a server may take.
	ConnectTimeout time.Duration
	// BodyIdle is how long a body may pause in either direction.
	BodyIdle time.Duration
	// TunnelIdle is how long an upgraded connection may be silent.
	TunnelIdle time.Duration
}

// Times are moments of an exchange by Now; zero if the moment did not come.
type Times struct {
	// Start is when the head was complete.
	Start int64
	// Passed is when the last filter that waited let the exchange go on, zero if none
	// waited.
	Passed int64
	// Tried is when the last attempt at a server began.
	Tried int64
	// Dialed is when the last new connection to a server was started, Connected when it was
	// established; both are zero if a pooled connection was used. Head is when the response
	// head was received, End when the response was written to the client's connection.
	Dialed, Connected, Head, End int64
}

// SignIn is a sign-in that may end before an exchange does. It can be compared.
type SignIn interface {
	// Ended reports whether it has ended. It is called from any goroutine.
	Ended() bool
}

// Proto is the protocol a request came by.
type Proto uint8

// The protocols of clients.
const (
	HTTP10 Proto = iota + 1
	HTTP11
	HTTP2
	HTTP3
)

// String returns the name as HTTP writes it, such as "HTTP/1.1".
func (p Proto) String() string {
	switch p {
	case HTTP10:
		return "HTTP/1.0"
	case HTTP11:
		return "HTTP/1.1"
	case HTTP2:
		return "HTTP/2.0"
	case HTTP3:
		return "HTTP/3.0"
	}
	return ""
}

// Body is a message body that is pulled. Its creator limits how long Read may wait.
type Body interface {
	// Read reads at least one byte, or returns io.EOF at the end, or an error:
	// an *Error when a reason is known. It may return bytes and io.EOF at once.
	Read(p []byte) (int, error)
	// Ready reports whether Read would return without waiting for the network.
	// A caller that gets false hands on what it has before it reads.
	Ready() bool
	// Close gives up what was not read and releases what the body holds. It
	// may be called more than once.
	Close() error
}

// Whole is what a Body can do whose bytes are all at hand already.
type Whole interface {
	// Whole returns all bytes of the body that were not read yet, and true if
	// no other will come and there are no trailers. The bytes live as long as
	// the exchange.
	Whole() ([]byte, bool)
}

// Stream is one side of an upgraded connection.
type Stream interface {
	// Read and Write work as of net.Conn, bounded by the idle time.
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
	// CloseWrite signals the end of the data to the peer.
	CloseWrite() error
	// SetIdle sets how long Read and Write may wait; 0 is for ever.
	SetIdle(d time.Duration)
	// Close ends both directions for who has seen nothing move for long. Where
	// something is under way still it does what Abort does.
	Close() error
	// Abort is Close in the middle of a stream: the peer can detect that the data is
	// incomplete, unless CloseWrite was called.
	Abort() error
}

// Front is the side of the client, as far as the pipeline needs it.
type Front interface {
	// Send sends the response head, body and trailers of ex, and relays the tunnel if there
	// is one, or starts it: see TunnelGoesOn. It sets ex.Sent and Response.HeadSent. The
	// error is why the response is incomplete for the client.
	Send(ex *Exchange) error
	// Inform sends an interim response (1xx but 100 and 101). It does nothing
	// for clients that cannot read one.
	Inform(ex *Exchange, status int, fields *header.List) error
	// Abort ends the response so that the client can detect that it is incomplete.
	Abort(ex *Exchange)
	// Gone reports whether the client has disconnected. A source checks it now and then
	// while it waits.
	Gone() bool
}

// Reset empties the response but keeps the memory of its lists.
func (rs *Response) Reset() {
	h, t := rs.Header, rs.Trailer
	h.Reset()
	t.Reset()
	*rs = Response{Header: h, Trailer: t}
}

// GRPC reports whether a media type is one of gRPC or gRPC-Web.
func GRPC(kind string) bool {
	const prefix = "application/grpc"
	return len(kind) >= len(prefix) && header.EqualFold(kind[:len(prefix)], prefix)
}

// GRPC reports whether the request is a call of gRPC or gRPC-Web.
func (rq *Request) GRPC() bool { return GRPC(rq.Header.Get(header.ContentType)) }

// Note records what a filter would have done, or could not know, in a rehearsal.
func (ex *Exchange) Note(text string) {
	if ex.Rehearsal {
		ex.Notes = append(ex.Notes, text)
	}
}

// SignedOut reports whether the sign-in has ended by which the client was let in.
func (ex *Exchange) SignedOut() bool { return ex.SignedIn != nil && ex.SignedIn.Ended() }

// Left reports whether the response is no longer needed: the client has disconnected, or
// its sign-in has ended. A source calls it now and then while it waits.
func (ex *Exchange) Left() bool { return ex.SignedOut() || ex.Front.Gone() }

// ErrSignedOut ends an exchange whose sign-in has ended.
var ErrSignedOut = &Error{Reason: ClientClosed, Err: errors.New("the client's sign-in has ended")}

// Reset makes ex ready for the next request on conn. It keeps the memory of its
// lists.
func (ex *Exchange) Reset(conn *Conn, front Front) {
	rq, rs := &ex.Request, &ex.Response
	rqh, rqt, rsh, rst := rq.Header, rq.Trailer, rs.Header, rs.Trailer
	rqh.Reset()
	rqt.Reset()
	rsh.Reset()
	rst.Reset()
	text := ex.Text
	text.reset()
	conn.requests++
	slots := ex.slots
	slots.reset()
	*ex = Exchange{Conn: conn, Front: front, Text: text, slots: slots, id: requestID{request: conn.requests}}
	rq.Header, rq.Trailer, rs.Header, rs.Trailer = rqh, rqt, rsh, rst
}
