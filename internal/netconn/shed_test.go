package netconn

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"strings"
	"testing"
	"unsafe"

	"headgate/internal/certs/certstest"
	"headgate/internal/testhouse"
)

// shaken returns both ends of a TLS connection after its handshake.
func shaken(t *testing.T) (server, client *tls.Conn) {
	t.Helper()
	near, far := testhouse.Pair(t)
	server = tls.Server(NewLazy(near), &tls.Config{Certificates: []tls.Certificate{certstest.Sign(t, &x509.Certificate{DNSNames: []string{"a.test"}}, nil)}})
	client = tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() { done <- client.Handshake() }()
	if err := server.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return server, client
}

// keptBy returns how much memory a TLS connection has for what it reads, in bytes.
func keptBy(c *tls.Conn) (n int) {
	for _, at := range []uintptr{kept.raw, kept.hand} {
		n += (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), at)).Cap()
	}
	return n
}

func TestShedForgetsWhatWasRead(t *testing.T) {
	server, client := shaken(t)
	if held := keptBy(server); held == 0 {
		t.Fatal("TLS holds no memory of the handshake: shed.go looks in the wrong place, or is needed no more")
	}
	Shed(server)
	if held := keptBy(server); held != 0 {
		t.Errorf("it holds %d bytes after the handshake", held)
	}
	p := make([]byte, 32<<10)
	for range 3 {
		go client.Write([]byte(strings.Repeat("x", len(p))))
		if _, err := io.ReadFull(server, p); err != nil {
			t.Fatal(err)
		}
		Shed(server)
		if held := keptBy(server); held != 0 {
			t.Errorf("it holds %d bytes after an upload", held)
		}
	}
}

func TestShedLosesNothing(t *testing.T) {
	server, client := shaken(t)
	Shed(server)
	text := strings.Repeat("0123456789", 3000) // two records, of which one may lie unread
	go io.WriteString(client, text)
	var got strings.Builder
	p := make([]byte, 700)
	for got.Len() < len(text) {
		n, err := server.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(p[:n])
		Shed(server)
	}
	if got.String() != text {
		t.Error("what came is not what was sent")
	}
}
