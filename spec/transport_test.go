package spec

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"
)

// transport is a way on which a client speaks to headgate.
type transport struct {
	name     string
	secure   bool   // over TLS
	http2    bool   // HTTP/2
	http3    bool   // HTTP/3; without either HTTP/1.1
	protocol string // of the port
	version  string // as Via writes it
}

// transports are the ways over which every script runs that does not say
// otherwise.
var transports = []transport{
	{name: "h1", protocol: "http", version: "1.1"},
	{name: "h1+tls", secure: true, protocol: "https", version: "1.1"},
	{name: "h2", secure: true, http2: true, protocol: "https", version: "2.0"},
	{name: "h3", secure: true, http3: true, protocol: "http3", version: "3.0"},
}

// scheme is what the client writes in front of a URL.
func (tr transport) scheme() string {
	if tr.secure {
		return "https"
	}
	return "http"
}

// streams reports whether requests come as streams of one connection.
func (tr transport) streams() bool { return tr.http2 || tr.http3 }

// runs reports whether a script is for this way.
func (tr transport) runs(s script) bool {
	switch s.only {
	case "":
		return true
	case "h1":
		return !tr.streams()
	case "streams":
		return tr.streams()
	case "tls":
		return tr.secure
	case "plain":
		return !tr.secure
	}
	return false
}

// client is the client of a script.
type client interface {
	// at tells which step of the script is played, for failures.
	at(step int)
	// send sends a request, or more of the one that was begun.
	send(b []byte)
	// mustGet reads exactly want.
	mustGet(want []byte)
	// mustGetResponse reads one response and compares what the script names.
	mustGetResponse(want string)
	// mustBeClosed waits for the end of what the last request was sent on.
	mustBeClosed()
	// Close ends the connection.
	Close()
}

// dial connects the script's client.
func (s *stage) dial() client {
	s.t.Helper()
	if s.way.http3 {
		c := newClient3(s.t, s.addr)
		s.t.Cleanup(c.Close)
		return c
	}
	c, err := net.Dial("tcp4", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	if !s.way.secure {
		return newPeer(s.t, "client", c)
	}
	protocol := "http/1.1"
	if s.way.http2 {
		protocol = "h2"
	}
	secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err := secure.Handshake(); err != nil {
		s.t.Fatalf("handshake: %v", err)
	}
	if got := secure.ConnectionState().NegotiatedProtocol; got != protocol {
		s.t.Fatalf("ALPN: got %q, want %q", got, protocol)
	}
	if s.way.http2 {
		return newClient2(s.t, secure)
	}
	return newPeer(s.t, "client", secure)
}

// TestEveryTransportHasScripts shows how many scripts run on each way. A script
// that is for one way only must have a reason, so most run on all.
func TestEveryTransportHasScripts(t *testing.T) {
	scripts := load(t)
	for _, tr := range transports {
		n := 0
		for _, s := range scripts {
			if tr.runs(s) {
				n++
			}
		}
		t.Logf("%-7s %d of %d scripts", tr.name, n, len(scripts))
		if n*4 < len(scripts)*3 {
			t.Errorf("%s: %d of %d scripts run, want at least three quarters", tr.name, n, len(scripts))
		}
	}
	for _, s := range scripts {
		if !slices.ContainsFunc(transports, func(tr transport) bool { return tr.runs(s) }) {
			t.Errorf("%s: \"only: %s\" is no transport; they are h1, streams, tls and plain", s.name, s.only)
		}
	}
}

// onPort makes the ports of a configuration speak what the transport needs.
func (tr transport) onPort(config string) string {
	if tr.http3 {
		config = strings.ReplaceAll(config, "protocol: https}", "protocol: http3}")
	}
	return strings.ReplaceAll(config, "protocol: http}", "protocol: "+tr.protocol+"}")
}
