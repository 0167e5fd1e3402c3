package exchange

import "time"

// Port is a port as a front sees it: how long its clients may take, how much
// they may send, and where their exchanges go. It is compiled with a plan and
// immutable; a front asks for the current one at each request. A time of zero
// means no limit.
type Port struct {
	// Place has the port's name, and none of a proxy or route.
	Place *Place
	// HeadTimeout is how long a request head may take, from its first byte or
	// from the connection's begin.
	HeadTimeout time.Duration
	// KeepAlive is how long a connection may wait for its next request; zero
	// closes it after each response.
	KeepAlive time.Duration
	// WriteIdle is how long a client may take no byte of a response.
	WriteIdle time.Duration
	// HeadSize, HeadFields and URISize bound a request head: bytes, fields, and
	// bytes of the target.
	HeadSize, HeadFields, URISize int
	// StrictTarget refuses targets with octets that are not ASCII.
	StrictTarget bool
	// Streams is how many requests a client may have under way on one connection
	// of HTTP/2 or HTTP/3.
	Streams int
	// MaxMemory bounds what the requests of all clients may hold in memory, and MaxClientMemory those of one address, in bytes; 0 is no bound.
	MaxMemory, MaxClientMemory int64
	// Limits are what an exchange begins with.
	Limits Limits
	// Serve takes an exchange whose head was read to its end.
	Serve func(*Exchange)
	// Refuse answers a request that is not valid and takes the exchange to its
	// end.
	Refuse func(*Exchange, *Answer)
}
