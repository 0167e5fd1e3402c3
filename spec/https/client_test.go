package https

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// client is one connection over TLS.
type client struct {
	*tls.Conn
	r  *bufio.Reader
	h2 *http.ClientConn // nil for HTTP/1.1
}

// dialed is how a client connects.
type dialed struct {
	address string
	name    string // for SNI; "" sends none
	proto   string // of ALPN; "" is http/1.1
	max     uint16 // version of TLS; 0 is the newest
	cert    *tls.Certificate
	cache   tls.ClientSessionCache
}

// dial connects and shakes hands.
func (d dialed) dial() (*client, error) {
	nc, err := net.DialTimeout("tcp4", d.address, patience)
	if err != nil {
		return nil, err
	}
	nc.SetDeadline(time.Now().Add(patience))
	return d.over(nc)
}

// over shakes hands on a connection.
func (d dialed) over(nc net.Conn) (*client, error) {
	if d.proto == "" {
		d.proto = "http/1.1"
	}
	cfg := &tls.Config{ServerName: d.name, InsecureSkipVerify: true, NextProtos: []string{d.proto}, MaxVersion: d.max, ClientSessionCache: d.cache}
	if d.cert != nil {
		// What the server asks for is not looked at: it has to look for itself.
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.cert, nil }
	}
	c := &client{Conn: tls.Client(nc, cfg)}
	if err := c.Handshake(); err != nil {
		nc.Close()
		return nil, fmt.Errorf("handshake: %w", err)
	}
	c.r = bufio.NewReader(c.Conn)
	if got := c.ConnectionState().NegotiatedProtocol; got != d.proto {
		nc.Close()
		return nil, fmt.Errorf("ALPN gave %q, want %q", got, d.proto)
	}
	if d.proto != "h2" {
		return c, nil
	}
	tr := &http.Transport{Protocols: onlyHTTP2(), DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return c.Conn, nil }}
	var err error
	c.h2, err = tr.NewClientConn(context.Background(), "https", "a.example:443")
	return c, err
}

func onlyHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	return p
}

// answer is what a client got for a request.
type answer struct {
	status int
	body   string
	last   bool // the connection ends with it
	header http.Header
}

// get asks for a path of a host.
func (c *client) get(host, path string) (answer, error) {
	rq, err := http.NewRequest(http.MethodGet, "https://"+host+path, nil)
	if err != nil {
		return answer{}, err
	}
	var rs *http.Response
	if c.h2 != nil {
		rs, err = c.h2.RoundTrip(rq)
	} else if err = rq.Write(c.Conn); err == nil {
		rs, err = http.ReadResponse(c.r, rq)
	}
	if err != nil {
		return answer{}, err
	}
	defer rs.Body.Close()
	b, err := io.ReadAll(rs.Body)
	return answer{rs.StatusCode, string(b), rs.Close, rs.Header}, err
}

// must connects or fails the test.
func (d dialed) must(t *testing.T) *client {
	t.Helper()
	c, err := d.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// want asks for a path and fails unless status and body are these.
func (c *client) want(t *testing.T, host, path string, status int, body string) {
	t.Helper()
	got, err := c.get(host, path)
	if err != nil || got.status != status || body != "" && got.body != body {
		t.Errorf("GET https://%s%s: got %d %q, %v; want %d %q", host, path, got.status, got.body, err, status, body)
	}
}
