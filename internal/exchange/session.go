package exchange

import "net/netip"

// Session is the record of a connection through a TCP proxy, or of a session
// through a UDP proxy, when it has ended. It takes the place of an Exchange where
// nothing is known of requests.
type Session struct {
	// Protocol is "tcp" or "udp".
	Protocol string
	// Proxy is the name of the TCP or UDP proxy.
	Proxy string
	// Name is the server name of a TLS client; "" if it was not read.
	Name string
	// TLSVersion is the version of TLS that was terminated, 0 if none was; ClientSubject is
	// the subject of the client's verified certificate.
	TLSVersion    uint16
	ClientSubject string
	// Client is the client's address. Peer is the address of the connection: a different
	// one if a proxy in front has reported the client. Local is the address that the client
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

// StreamCounts counts the connections through a TCP proxy, or of
// the sessions through a UDP proxy.
type StreamCounts struct {
	// Open there are now, Accepted there were in all. Max is how many there may be at once;
	// 0 for no limit of the proxy's own.
	Open     int
	Max      int
	Accepted uint64
	// Received and Sent are bytes from and to clients.
	Received, Sent uint64
	// Errors are those that failed, and the attempts at servers that did.
	Errors map[Reason]uint64
}

// StreamFilter is what a feature compiles to for TCP and UDP proxies.
type StreamFilter struct {
	// Name is the feature's word, as that of a Filter.
	Name string
	// Admit looks at the client of a connection, or of the first datagram of a
	// session, before a server is chosen. A non-nil Answer refuses it: only the
	// answer's Reason and Cause count. It is called by many goroutines at once.
	Admit func(client netip.Addr) *Answer
}

// StreamFilters are filters in the order in which they act.
type StreamFilters []StreamFilter

// Admit asks the filters in order. The first answer wins; nil lets the client in.
func (l StreamFilters) Admit(client netip.Addr) *Answer {
	for i := range l {
		if answer := l[i].Admit(client); answer != nil {
			return answer
		}
	}
	return nil
}
