package control

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// https makes the ports of a configuration speak TLS.
func https(text string) string {
	return strings.ReplaceAll(text, "protocol: http,", "protocol: https,")
}

// shake makes a TLS connection of a client's.
func shake(c *client) error {
	secure := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err := secure.Handshake(); err != nil {
		return err
	}
	c.Conn, c.r = secure, bufio.NewReader(secure)
	return nil
}

func TestAPortChangesItsProtocolOnItsSocket(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]+" drain_timeout: 5s"))
	p, _ := h.port("a", at[0])
	open, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if got, err := open.get("/"); got != 201 || err != nil {
		t.Fatalf("got %d and %v", got, err)
	}
	h.apply(https(document(202, "a "+at[0]+" drain_timeout: 5s")))
	secure, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	if err := shake(secure); err != nil {
		t.Fatal(err)
	}
	if got, err := secure.get("/"); got != 202 || err != nil {
		t.Errorf("with TLS: got %d and %v, want 202", got, err)
	}
	if _, err := io.Copy(io.Discard, open); err != nil {
		t.Errorf("a connection without TLS did not end in order: %v", err)
	}
	if now, _ := h.port("a", at[0]); !now.Since.Equal(p.Since) || now.Protocol != "https" {
		t.Errorf("got %+v, want the same socket with https", now)
	} else if len(now.SelfSigned) != 1 || now.SelfSigned[0] != "*" {
		t.Errorf("got hosts %q with a self-signed certificate, want all", now.SelfSigned)
	}
	h.apply(document(203, "a "+at[0]))
	expectStatus(t, at[0], 203)
}

func TestWhoWaitsForAPortThatMovesIsServedWithTLS(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	server := startSlow(t)
	on := func(address string) string {
		return https(through(server.url, "a "+address+" drain_timeout: 5s, limits: {max_connections: 1}")) +
			"  quick: {virtual_hosts: [quick.test], routes: [{fixed_response: {status: 204}}]}\n"
	}
	h := start(t, on(at[0]))
	come := func() *client {
		c, err := connect(at[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	busy := come() // with a request under way, so that it makes no room
	if err := shake(busy); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(busy, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
	<-server.arrived
	waiting := []*client{come(), come(), come(), come()}
	h.apply(on(at[1]))
	for i, c := range waiting {
		if err := shake(c); err != nil {
			t.Errorf("client %d in the queue: %v", i, err)
			continue
		}
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: quick.test\r\n\r\n")
		if got, err := c.answer(); got != 204 || err != nil {
			t.Errorf("client %d in the queue: got %d and %v, want 204", i, got, err)
		}
	}
	close(server.release)
	if got, err := busy.answer(); got != 200 || err != nil {
		t.Errorf("a request under way got %d and %v", got, err)
	}
}

func TestASilentClientDoesNotHoldUpADrain(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	h := start(t, https(document(201, "a "+at[0]+" drain_timeout: 30s")))
	silent, err := net.Dial("tcp", at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	testhouse.Eventually(t, "it is connected", func() bool {
		p, _ := h.port("a", at[0])
		return p.Connections == 1
	})
	began := time.Now()
	h.finish()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestWhoHasABusyAddressIsNamed(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	pid := occupy(t, at[1])
	h := start(t, document(201, "a "+at[0]))
	err := h.try(document(202, "a "+at[1]))
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("got %v", err)
	}
	if owner := ownerWords(t, pid); !strings.Contains(err.Error(), owner) || strings.Count(err.Error(), at[1]) != 1 {
		t.Errorf("got %s, want %s once and that %s", err, at[1], owner)
	}
}
