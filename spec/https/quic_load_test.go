package https

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"headgate/internal/testhouse"
)

// three asks over HTTP/3, on one connection after the other. What the server has
// said that it did not take is asked again.
func (l *load) three() {
	for l.ctx.Err() == nil {
		ctx, stop := context.WithTimeout(l.ctx, time.Second)
		// Nobody tells a client of QUIC that nobody listens: it gives up by itself.
		qc, err := quic.DialAddr(ctx, l.address.Load().(string), &tls.Config{ServerName: "a.example", InsecureSkipVerify: true, NextProtos: []string{"h3"}}, nil)
		stop()
		if err != nil {
			l.turned.Add(1)
			continue
		}
		l.conns.Add(1)
		l.use3(qc)
		qc.CloseWithError(0x100, "")
	}
}

// use3 asks on a connection until it ends.
func (l *load) use3(qc *quic.Conn) {
	cc := (&http3.Transport{}).NewClientConn(qc)
	rq, _ := http.NewRequestWithContext(l.ctx, http.MethodGet, "https://a.example/", nil)
	for ; ; testhouse.Pause() {
		s, err := cc.OpenRequestStream(l.ctx)
		if err != nil {
			return // before anything was asked
		}
		status, err := ask3(s, rq)
		if notTaken(err) {
			return
		}
		if !l.count(status, err) || err != nil {
			return
		}
	}
}

// notTaken reports whether err says that a request never came to be: the server has
// rejected it, or the client has closed the connection before it was sent. After GOAWAY
// the client closes a connection without requests by itself, and does not see one whose
// stream it opens at that moment. What it waits for an answer to it does see.
func notTaken(err error) bool {
	var e *http3.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.ErrorCode == http3.ErrCodeRequestRejected || e.ErrorCode == http3.ErrCodeNoError && !e.Remote
}

// ask3 sends a request on a stream and reads the response.
func ask3(s *http3.RequestStream, rq *http.Request) (int, error) {
	if err := s.SendRequestHeader(rq); err != nil {
		return 0, err
	}
	s.Close()
	rs, err := s.ReadResponse()
	if err != nil {
		return 0, err
	}
	defer rs.Body.Close()
	_, err = io.Copy(io.Discard, rs.Body)
	return rs.StatusCode, err
}

func TestNothingIsLostOverHTTP3(t *testing.T) {
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "main", a.host([]string{"a.example"}))
	keep(t, h.dir, "other", a.host([]string{"a.example", "b.example"}))
	put(t, h.dir+"/ca.pem", a.pem())
	at := []string{testhouse.Address(t), testhouse.Address(t)}
	text := func(address, certificate, more string) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  quic: {address: %q, protocol: http3, drain_timeout: 10s, tls: {default_certificate: main%s}}
certificates: {main: {cert_file: %s.pem, key_file: %[3]s.key}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: hello}}]}}
`, address, more, certificate)
	}
	h.start(text(at[0], "main", ""))
	l := startLoad(t, at[0], 0, 0, false)
	for range 4 {
		l.running.Go(l.three)
	}
	l.await(t, 50)
	for i := range 20 {
		address, certificate, more := at[i/2%2], "main", ""
		if i%3 == 1 {
			certificate = "other"
		}
		if i%4 == 3 {
			more = ", client_auth: optional, client_ca: ca.pem" // open connections are renewed
		}
		h.apply(text(address, certificate, more))
		l.address.Store(address)
		l.await(t, 30)
	}
	l.end()
	t.Log(l)
	if l.lost.Load() > 0 {
		t.Errorf("requests were lost: %v", l.first.Load())
	}
}
