//go:build linux

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

func TestFrame(t *testing.T) {
	sent := frame{kind: frameHeaders, flags: flagEndStream, stream: 7, payload: []byte("abc")}
	wire := sent.append(nil)
	if want := "\x00\x00\x03\x01\x01\x00\x00\x00\x07abc"; string(wire) != want {
		t.Errorf("got %q, want %q", wire, want)
	}
	wire[5] |= 0x80 // the reserved bit means nothing (RFC 9113, section 4.1)
	got, err := readFrame(bytes.NewReader(wire))
	if err != nil || got.kind != sent.kind || got.flags != sent.flags || got.stream != 7 || string(got.payload) != "abc" {
		t.Errorf("got %+v, %v; want %+v", got, err, sent)
	}
	for _, bad := range []string{"", "\x00\x00\x03\x01\x01\x00\x00", "\x00\x00\x03\x00\x00\x00\x00\x00\x01ab", "\xff\x00\x00\x00\x00\x00\x00\x00\x01"} {
		if got, err := readFrame(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

func TestFrameContent(t *testing.T) {
	for _, test := range []struct {
		f    frame
		want string
		ok   bool
	}{
		{frame{kind: frameData, payload: []byte("abc")}, "abc", true},
		{frame{kind: frameData, flags: flagPadded, payload: []byte("\x02abc..")}, "abc", true},
		{frame{kind: frameHeaders, flags: flagPadded | flagPriority, payload: []byte("\x01.....abc.")}, "abc", true},
		{frame{kind: frameData, flags: flagPadded, payload: []byte("\x04abc")}, "", false},
		{frame{kind: frameData, flags: flagPadded}, "", false},
		{frame{kind: frameHeaders, flags: flagPriority, payload: []byte("....")}, "", false},
	} {
		got, err := test.f.content()
		if (err == nil) != test.ok || string(got) != test.want {
			t.Errorf("%+v: got %q, %v; want %q, %v", test.f, got, err, test.want, test.ok)
		}
	}
}

// script is a connection on which the peer's part is already written.
type script struct {
	io.Reader
	bytes.Buffer
}

// Read reads the peer's part.
func (s *script) Read(p []byte) (int, error) { return s.Reader.Read(p) }

func TestReadH2(t *testing.T) {
	var block bytes.Buffer
	if err := hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"}); err != nil {
		t.Fatal(err)
	}
	head := frame{kind: frameHeaders, flags: flagEndHeaders, stream: 1, payload: block.Bytes()}
	last := frame{kind: frameData, flags: flagEndStream, stream: 1, payload: []byte("cd")}
	play := func(frames ...frame) (*script, string, string, error) {
		var wire []byte
		for _, f := range frames {
			wire = f.append(wire)
		}
		s := &script{Reader: bytes.NewReader(wire)}
		status, body, err := readH2(s)
		return s, status, string(body), err
	}

	s, status, body, err := play(frame{kind: frameSettings}, frame{kind: frameSettings, flags: flagAck}, head,
		frame{kind: frameData, stream: 1, payload: []byte("ab")}, last)
	if err != nil || status != "200" || body != "abcd" {
		t.Errorf("got %q, %q, %v", status, body, err)
	}
	if want := string(frame{kind: frameSettings, flags: flagAck}.append(nil)); s.Buffer.String() != want {
		t.Errorf("sent %q, want one acknowledgement", s.Buffer.String())
	}
	for _, bad := range []frame{
		{kind: frameReset, stream: 1, payload: []byte{0, 0, 0, 7}},
		{kind: frameGoAway, payload: make([]byte, 8)},
		{kind: frameHeaders, stream: 1, payload: block.Bytes()},
		{kind: frameHeaders, flags: flagEndHeaders, stream: 1, payload: []byte{0xff, 0xff}},
		{kind: frameData, flags: flagPadded, stream: 1},
	} {
		if _, status, body, err := play(bad, last); err == nil {
			t.Errorf("%+v: got %q, %q, want an error", bad, status, body)
		}
	}
}

// TestAskH2 asks net/http, which knows HTTP/2 better than this harness.
func TestAskH2(t *testing.T) {
	c, err := makeCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := setup{tls: true, certificate: c}
	serve := func(body string) net.Conn {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 || r.Host != s.host(0) {
				t.Errorf("got %s for %q", r.Proto, r.Host)
			}
			_, _ = io.WriteString(w, body)
		}))
		server.TLS = c.server(t)
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		to := s
		to.address = server.Listener.Addr().String()
		conn, err := to.target(h2, nil).connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	if err := askH2(serve(hundredBytes), s.host(0)); err != nil {
		t.Error(err)
	}
	if err := askH2(serve("another"), s.host(0)); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("got %v, want the body in the error", err)
	}
}
