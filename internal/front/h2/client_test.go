package h2_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// client returns a real client that speaks only HTTP/2.
func (p *proxy) client() *http.Client {
	protocols := new(http.Protocols)
	if p.tls == nil {
		protocols.SetUnencryptedHTTP2(true)
	} else {
		protocols.SetHTTP2(true)
	}
	tr := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: p.tls != nil}
	p.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

func (p *proxy) url(path string) string { return p.front.Scheme + "://" + p.addr + path }

// both runs a test over plain TCP and over TLS.
func both(t *testing.T, test func(t *testing.T, options ...option)) {
	t.Run("h2c", func(t *testing.T) { test(t) })
	t.Run("tls", func(t *testing.T) { test(t, overTLS) })
}

// serverOf starts an upstream.
func serverOf(t testing.TB, handler http.HandlerFunc) string {
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func TestGetReachesTheServer(t *testing.T) {
	both(t, func(t *testing.T, options ...option) {
		addr := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
			if len(r.TransferEncoding) > 0 {
				t.Errorf("a request without a body has the transfer coding %v", r.TransferEncoding)
			}
			w.Header().Set("X-Path", r.URL.RequestURI())
			fmt.Fprint(w, "hello")
		})
		p := newProxy(t, addr, options...)
		cl := p.client()
		for range 3 {
			rs, err := cl.Get(p.url("/a/b?c=d"))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(rs.Body)
			if err != nil || string(b) != "hello" || rs.ProtoMajor != 2 || rs.Header.Get("X-Path") != "/a/b?c=d" {
				t.Fatalf("got %q, %v, %v", b, err, rs)
			}
			if e := p.logged(); e.status != 200 || e.sent != 5 || e.reason != exchangeNone {
				t.Fatalf("got %+v", e)
			}
		}
	})
}

func TestBodiesStreamBothWays(t *testing.T) {
	both(t, func(t *testing.T, options ...option) {
		addr := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			io.Copy(w, r.Body)
		})
		p := newProxy(t, addr, options...)
		want := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
		for _, known := range []bool{true, false} {
			var body io.Reader = bytes.NewReader(want)
			if !known {
				body = struct{ io.Reader }{body}
			}
			rs, err := p.client().Post(p.url("/"), "text/plain", body)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(rs.Body)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("got %d bytes, want %d; %v; log %+v", len(got), len(want), err, p.logged())
			}
		}
	})
}
