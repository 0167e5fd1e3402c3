package exchange

import "net/netip"

// Passage is what is told of a connection through a TCP proxy, or of a session
// through a UDP proxy, when it has ended. It takes the place of an Exchange where
// nothing is known of requests.
type Passage struct {
	// Protocol is "tcp" or "udp".
	Protocol string
	// Proxy is the name of the TCP or UDP proxy.
	Proxy string
	// Name is what a TLS client has asked for; "" if that was not looked at.
	Name string
	// Client is who came. Peer is who opened the connection: somebody else if a
	// proxy in front has told of the client. Local is where the client has
	// connected to.
	Client, Peer, Local netip.AddrPort
	// Server is the address of the last server that was tried, Attempts how many
	// were.
	Server   string
	Attempts int
	// Reason is why it failed, None if it did not; Cause says more, of an end in
	// order too.
	Reason Reason
	Cause  string
	// Start, Connected and End are moments of Now; Connected is 0 if no server
	// was reached.
	Start, Connected, End int64
	// Sent and Received count bytes to and from the client.
	Sent, Received int64
}

// PassageCounts is what was counted of the connections through a TCP proxy, or of
// the sessions through a UDP proxy.
type PassageCounts struct {
	// Open there are now, Accepted there were in all.
	Open     int
	Accepted uint64
	// Received and Sent are bytes from and to clients.
	Received, Sent uint64
	// Errors are those that failed, and the attempts at servers that did.
	Errors map[Reason]uint64
}
