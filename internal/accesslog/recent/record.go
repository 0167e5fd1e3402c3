package recent

import (
	"encoding/binary"
	"net/netip"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// How much of each text is kept, in bytes. What is longer is cut.
const (
	maxShort = 255
	maxPath  = 1024
	maxQuery = 512
	maxAgent = 160
	maxRefer = 160
	maxCause = 300
	maxRoute = 300
	// maxCountry is enough for "unknown".
	maxCountry = 8
)

// The places of a record's fixed part. All numbers are little endian.
const (
	atLength   = 0  // uint16, of the whole record
	atStatus   = 2  // uint16
	atReason   = 4  // uint8
	atProto    = 5  // uint8: a exchange.Proto, tcp or udp
	atFlags    = 6  // uint8
	atAttempts = 7  // uint8
	atStart    = 8  // int64, a moment of exchange.Now
	atEnd      = 16 // int64, the same
	atNumber   = 24 // uint64, of the request id
	atClient   = 32 // 16 bytes
	atConnect  = 48 // uint32, microseconds; 0 if there was no new connection
	atHead     = 52 // uint32, microseconds from the try to the response head
	atSent     = 56 // int64
	atReceived = 64 // int64
	atASN      = 72 // uint32, the number of the client's network; 0 if it is not known
	atTexts    = 76 // uint16 for each text
	fixed      = atTexts + 2*texts
)

// The texts of a record, in order.
const (
	textMethod = iota
	textHost
	textPath
	textQuery
	textPort
	textProxy
	textRoute
	textServer
	textUser
	textCache
	textAgent
	textReferer
	textCause
	textCountry
	textID // that of a trusted peer; empty for one that the number makes
	texts
)

// maxRecord is the length of the longest record.
const maxRecord = fixed + 7*maxShort + maxPath + maxQuery + maxRoute + maxAgent + maxRefer + maxCause + maxCountry + exchange.MaxID

// Protocols beside those of exchanges.
const (
	protoTCP = 200
	protoUDP = 201
)

// Flags.
const (
	flagTLS    = 1 << iota // the scheme is https
	flagClient             // the client's address is known
	flagECH                // the host was encrypted in the TLS handshake
)

// limits are the bounds of the texts.
var limits = [texts]int{
	maxShort, maxShort, maxPath, maxQuery, maxShort, maxShort, maxRoute, maxShort, maxShort, maxShort, maxAgent, maxRefer, maxCause, maxCountry, exchange.MaxID,
}

// appendExchange appends a record. There is space for the longest.
func appendExchange(b []byte, ex *exchange.Exchange, status int, end int64) []byte {
	at := len(b)
	b = b[:at+fixed]
	f := b[at : at+fixed : at+fixed]
	le := binary.LittleEndian
	rq, t := &ex.Request, &ex.Times
	le.PutUint16(f[atStatus:], uint16(status))
	f[atReason], f[atProto], f[atAttempts] = byte(ex.Reason), byte(rq.Proto), byte(min(ex.Attempts, 255))
	f[atFlags] = 0
	if rq.Scheme == "https" {
		f[atFlags] = flagTLS
	}
	if ex.Conn.ECH {
		f[atFlags] |= flagECH
	}
	client := ex.ClientIP
	if !client.IsValid() {
		client = ex.Conn.Remote.Addr()
	}
	putClient(f, client)
	le.PutUint64(f[atStart:], uint64(t.Start))
	le.PutUint64(f[atEnd:], uint64(end))
	le.PutUint64(f[atNumber:], ex.Number())
	asked := max(t.Start, t.Tried)
	connect := uint32(0)
	if t.Dialed > 0 && t.Connected > 0 {
		connect, asked = micros(t.Connected-t.Dialed), max(asked, t.Connected)
	}
	head := uint32(0)
	if t.Head > 0 {
		head = micros(t.Head - asked)
	}
	le.PutUint32(f[atConnect:], connect)
	le.PutUint32(f[atHead:], head)
	le.PutUint64(f[atSent:], uint64(ex.Sent))
	le.PutUint64(f[atReceived:], uint64(ex.Received))
	le.PutUint32(f[atASN:], ex.ASN())

	b = put(b, f, textMethod, rq.Method)
	b = put(b, f, textHost, rq.Host)
	b = put(b, f, textPath, rq.Path)
	query := rq.Query
	if query != "" {
		query = query[1:]
	}
	b = put(b, f, textQuery, query)
	b = put(b, f, textPort, ex.Place.Port)
	b = put(b, f, textProxy, ex.Place.Proxy)
	b = put(b, f, textRoute, ex.Place.Route)
	b = put(b, f, textServer, ex.Server)
	b = put(b, f, textUser, ex.User)
	b = put(b, f, textCache, ex.Cache.Use.String())
	b = put(b, f, textAgent, rq.Header.Get(header.UserAgent))
	b = put(b, f, textReferer, rq.Header.Get(header.Referer))
	b = put(b, f, textCause, ex.Cause)
	b = put(b, f, textCountry, ex.Country())
	b = put(b, f, textID, ex.AdoptedID())
	le.PutUint16(f[atLength:], uint16(len(b)-at))
	return b
}

// appendSession appends a record of a session: its name is in place of the
// host.
func appendSession(b []byte, p *exchange.Session) []byte {
	at := len(b)
	b = b[:at+fixed]
	f := b[at : at+fixed : at+fixed]
	clear(f)
	le := binary.LittleEndian
	f[atReason], f[atProto], f[atAttempts] = byte(p.Reason), protoTCP, byte(min(p.Attempts, 255))
	if p.Protocol == "udp" {
		f[atProto] = protoUDP
	}
	putClient(f, p.Client.Addr())
	le.PutUint64(f[atStart:], uint64(p.Start))
	le.PutUint64(f[atEnd:], uint64(p.End))
	if p.Connected > 0 {
		le.PutUint32(f[atConnect:], micros(p.Connected-p.Start))
	}
	le.PutUint64(f[atSent:], uint64(p.Sent))
	le.PutUint64(f[atReceived:], uint64(p.Received))
	b = put(b, f, textHost, p.Name)
	b = put(b, f, textProxy, p.Proxy)
	b = put(b, f, textServer, p.Server)
	b = put(b, f, textCause, p.Cause)
	le.PutUint16(f[atLength:], uint16(len(b)-at))
	return b
}

// put appends a text and notes its length in the fixed part.
func put(b, f []byte, text int, s string) []byte {
	if len(s) > limits[text] {
		s = s[:limits[text]]
	}
	binary.LittleEndian.PutUint16(f[atTexts+2*text:], uint16(len(s)))
	return append(b, s...)
}

func putClient(f []byte, a netip.Addr) {
	if !a.IsValid() {
		return
	}
	f[atFlags] |= flagClient
	*(*[16]byte)(f[atClient:]) = a.As16()
}

// micros returns nanoseconds as microseconds, at least one and at most what fits.
func micros(nanos int64) uint32 { return uint32(min(max(nanos/1000, 1), 1<<32-1)) }

// view is a record where it lies.
type view []byte

// next returns the first record of b and what follows it. A part ends with a
// whole record.
func next(b []byte) (v view, rest []byte) {
	n := binary.LittleEndian.Uint16(b)
	return view(b[:n:n]), b[n:]
}

func (v view) end() int64        { return int64(binary.LittleEndian.Uint64(v[atEnd:])) }
func (v view) start() int64      { return int64(binary.LittleEndian.Uint64(v[atStart:])) }
func (v view) number() uint64    { return binary.LittleEndian.Uint64(v[atNumber:]) }
func (v view) status() int       { return int(binary.LittleEndian.Uint16(v[atStatus:])) }
func (v view) asn() uint32       { return binary.LittleEndian.Uint32(v[atASN:]) }
func (v view) reason() string    { return exchange.Reason(v[atReason]).String() }
func (v view) is(flag byte) bool { return v[atFlags]&flag != 0 }

// isSession reports whether v records a connection or session, not a request.
func (v view) isSession() bool { return v[atProto] >= protoTCP }

func (v view) client() netip.Addr {
	if !v.is(flagClient) {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(v[atClient : atClient+16])).Unmap()
}

// id returns the request id.
func (v view) id() string {
	if adopted := v.text(textID); len(adopted) > 0 {
		return string(adopted)
	}
	return exchange.IDOf(v.number())
}

// text returns one text of the record.
func (v view) text(text int) []byte {
	at := fixed
	for i := range text {
		at += v.length(i)
	}
	return v[at : at+v.length(text)]
}

func (v view) length(text int) int {
	return int(binary.LittleEndian.Uint16(v[atTexts+2*text:]))
}

// Request is one recent request, connection or session, as people see it. Fields
// that do not apply are empty.
type Request struct {
	// Time is when the head of the request was complete, or the connection begun.
	Time time.Time `json:"time"`
	// ID is the request id; "" for connections and sessions.
	ID string `json:"request_id,omitempty"`
	// Protocol is what the client speaks: "HTTP/1.1", "tcp", …
	Protocol string `json:"proto"`
	// Client is the client's address.
	Client string `json:"client_ip,omitempty"`
	// Country is the country of the client, unknown if the database does not have it; absent
	// without a database, and for connections and sessions.
	Country string `json:"country,omitempty"`
	// ASN is the number of the network of the client; absent if it is not known.
	ASN int `json:"asn,omitempty"`
	// Method is that of the request.
	Method string `json:"method,omitempty"`
	// Scheme is http or https.
	Scheme string `json:"scheme,omitempty"`
	// ECH is whether the client's TLS handshake hid the host (Encrypted Client Hello).
	ECH bool `json:"ech,omitempty"`
	// Host is the requested host; for a connection, the server name in TLS.
	Host string `json:"host,omitempty"`
	// Path is the path, and Query what follows it without its question mark.
	Path string `json:"path,omitempty"`
	// Query is what follows the path, without its question mark.
	Query string `json:"query,omitempty"`
	// Status is the status of the response; 0 for connections and sessions.
	Status int `json:"status,omitempty"`
	// Reason is why a response is our own, or why it broke off.
	Reason string `json:"reason,omitempty"`
	// Cause says more, in one line.
	Cause string `json:"cause,omitempty"`
	// Port is the name of the port.
	Port string `json:"port,omitempty"`
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy,omitempty"`
	// Route is the path of the route.
	Route string `json:"route,omitempty"`
	// Server is the server that answered or was tried last.
	Server string `json:"server,omitempty"`
	// Attempts is how many servers were tried.
	Attempts int `json:"attempts,omitempty"`
	// Cache is what the cache made of the request.
	Cache string `json:"cache,omitempty"`
	// User is who signed in at the proxy.
	User string `json:"user,omitempty"`
	// UserAgent is the client's field of that name.
	UserAgent string `json:"user_agent,omitempty"`
	// Referer is the client's field of that name.
	Referer string `json:"referer,omitempty"`
	// Sent is how many bytes of body the client got.
	Sent int64 `json:"bytes_sent"`
	// Received is how many bytes of body came from the client.
	Received int64 `json:"bytes_received"`
	// Duration is the total duration, in milliseconds.
	Duration float64 `json:"duration_ms"`
	// Connect is the time to connect to the server, in milliseconds.
	Connect float64 `json:"connect_ms,omitempty"`
	// Head is the time until the server's response head, in milliseconds.
	Head float64 `json:"upstream_head_ms,omitempty"`
}

// read copies a record; wall is the Unix time in nanoseconds of moment 0.
func (v view) read(wall int64) Request {
	text := func(i int) string { return string(v.text(i)) }
	le := binary.LittleEndian
	q := Request{
		Time:   time.Unix(0, wall+v.start()).UTC().Truncate(time.Millisecond),
		Method: text(textMethod), Host: text(textHost), Path: text(textPath), Query: text(textQuery),
		Status: v.status(), Reason: v.reason(), Cause: text(textCause),
		Port: text(textPort), Proxy: text(textProxy), Route: text(textRoute), Server: text(textServer),
		Attempts: int(v[atAttempts]), Cache: text(textCache), User: text(textUser), ECH: v.is(flagECH),
		UserAgent: text(textAgent), Referer: text(textReferer), Country: text(textCountry), ASN: int(v.asn()),
		Sent: int64(le.Uint64(v[atSent:])), Received: int64(le.Uint64(v[atReceived:])),
		Duration: float64(max(0, v.end()-v.start())/1000) / 1000,
		Connect:  float64(le.Uint32(v[atConnect:])) / 1000,
		Head:     float64(le.Uint32(v[atHead:])) / 1000,
	}
	if a := v.client(); a.IsValid() {
		q.Client = a.String()
	}
	switch v[atProto] {
	case protoTCP:
		q.Protocol = "tcp"
	case protoUDP:
		q.Protocol = "udp"
	default:
		q.Protocol, q.ID = exchange.Proto(v[atProto]).String(), v.id()
		q.Scheme = "http"
		if v.is(flagTLS) {
			q.Scheme = "https"
		}
	}
	return q
}

// Cut reports whether a part of the target of a request was too long to be kept whole.
func Cut(q *Request) bool {
	return len(q.Path) >= maxPath || len(q.Query) >= maxQuery || len(q.Host) >= maxShort || len(q.Method) >= maxShort
}
