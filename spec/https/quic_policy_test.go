package https

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"headgate/internal/testhouse"
)

// dial3 connects over QUIC. What is wrong with a client's certificate is told when it
// asks, as TLS 1.3 does.
func (d dialed) dial3(t *testing.T) *quic.Conn {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	cfg := &tls.Config{ServerName: d.name, InsecureSkipVerify: true, NextProtos: []string{"h3"}, ClientSessionCache: d.cache}
	if d.cert != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.cert, nil }
	}
	qc, err := quic.DialAddrEarly(ctx, d.address, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { qc.CloseWithError(0x100, "") })
	return qc
}

// get3 asks for a host and returns status and body.
func get3(t *testing.T, qc *quic.Conn, host string) (int, string, error) {
	t.Helper()
	rq, _ := http.NewRequest(http.MethodGet, "https://"+host+"/", nil)
	rs, err := (&http3.Transport{}).NewClientConn(qc).RoundTrip(rq)
	if err != nil {
		return 0, "", err
	}
	defer rs.Body.Close()
	b, err := io.ReadAll(rs.Body)
	return rs.StatusCode, string(b), err
}

func TestAnHTTP3PortHasThePoliciesOfHTTPS(t *testing.T) {
	t.Parallel()
	h, a, strangers := newHouse(t), newAuthority(t, "test authority"), newAuthority(t, "other authority")
	keep(t, h.dir, "a", a.host([]string{"a.example"}))
	keep(t, h.dir, "b", a.host([]string{"b.example"}))
	put(t, h.dir+"/ca.pem", a.pem())
	at := []string{testhouse.Address(t), testhouse.Address(t)}
	text := func(body string) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  open: {address: %q, protocol: http3}
  shut: {address: %q, protocol: http3, tls: {client_auth: required, client_ca: ca.pem}}
certificates: {a: {cert_file: a.pem, key_file: a.key}, b: {cert_file: b.pem, key_file: b.key}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: "%s {client_cert_subject}"}}]}}
`, at[0], at[1], body)
	}
	h.start(text("one"))
	open := dialed{address: at[0], name: "a.example", cache: tls.NewLRUClientSessionCache(4)}

	qc := open.dial3(t)
	if status, body, err := get3(t, qc, "a.example"); status != 200 || body != "one " {
		t.Errorf("got %d %q, %v", status, body, err)
	}
	if got := qc.ConnectionState().TLS.PeerCertificates[0].DNSNames[0]; got != "a.example" {
		t.Errorf("got the certificate of %s", got)
	}
	qc = open.dial3(t)
	if status, _, err := get3(t, qc, "b.example"); status != 421 {
		t.Errorf("another host: got %d, %v, want 421", status, err)
	}

	// A session is resumed, over a change too, and never with early data.
	h.apply(text("two"))
	qc = open.dial3(t)
	if status, body, err := get3(t, qc, "a.example"); status != 200 || body != "two " {
		t.Errorf("after a change: got %d %q, %v", status, body, err)
	}
	if state := qc.ConnectionState(); !state.TLS.DidResume || state.Used0RTT {
		t.Errorf("resumed: %v, early data: %v", state.TLS.DidResume, state.Used0RTT)
	}

	shut := dialed{address: at[1], name: "a.example"}
	good, bad := a.person("user"), strangers.person("user")
	for name, cert := range map[string]*tls.Certificate{"none": {}, "a stranger's": &bad} {
		shut.cert = cert
		ctx, stop := context.WithTimeout(context.Background(), patience)
		if qc, err := quic.DialAddr(ctx, shut.address, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true, NextProtos: []string{"h3"},
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }}, nil); err == nil {
			if status, _, err := get3(t, qc, "a.example"); err == nil {
				t.Errorf("with the certificate of %s: got %d", name, status)
			}
		}
		stop()
	}
	shut.cert = &good
	if status, body, err := get3(t, shut.dial3(t), "a.example"); status != 200 || body != "two CN=user" {
		t.Errorf("with a certificate: got %d %q, %v", status, body, err)
	}
}
