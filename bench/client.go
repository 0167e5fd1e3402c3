//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// patience is how long anything may take that is not itself being measured.
const patience = 20 * time.Second

// errNoAnswer is returned for a connection that was closed before the first byte
// of an answer.
var errNoAnswer = errors.New("closed without an answer")

// client is one connection that sends requests one after the other. It knows
// only what the upstream and the peers send here: answers with a length.
type client struct {
	conn   net.Conn
	buf    []byte
	served int  // answers so far
	closed bool // the last answer said close
}

// target is where a client connects to.
type target struct {
	address string
	tls     *tls.Config // nil means none is spoken
}

// connect opens a connection, with its handshake done.
func (t target) connect() (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", t.address, patience)
	if err != nil || t.tls == nil {
		return conn, err
	}
	secure := tls.Client(conn, t.tls)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return secure, nil
}

func dial(t target) (*client, error) {
	conn, err := t.connect()
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, buf: make([]byte, 8<<10)}, nil
}

// get returns the request for a path of a host.
func get(path, host string, fields ...string) []byte {
	text := "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n"
	for _, f := range fields {
		text += f + "\r\n"
	}
	return []byte(text + "\r\n")
}

// do sends a request and reads the answer. The body is valid until the next
// call. An answer other than 200 is an error.
func (c *client) do(request []byte) (body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, fmt.Errorf("%w: %v", errNoAnswer, err)
	}
	have := 0
	for {
		n, err := c.conn.Read(c.buf[have:])
		have += n
		if h, ok := parseHead(c.buf[:have]); ok && have >= h.size+h.length {
			return c.answered(h)
		}
		switch {
		case err != nil && have == 0:
			return nil, fmt.Errorf("%w: %v", errNoAnswer, err)
		case err != nil:
			return nil, fmt.Errorf("after %d bytes: %w", have, err)
		case have == len(c.buf):
			return nil, fmt.Errorf("answer longer than %d bytes", have)
		}
	}
}

func (c *client) answered(h head) ([]byte, error) {
	c.served++
	c.closed = h.close
	if h.status != "200" {
		return nil, fmt.Errorf("status %s", h.status)
	}
	return c.buf[h.size : h.size+h.length], nil
}

func (c *client) close() { _ = c.conn.Close() }

// head is what the harness needs of an answer's head.
type head struct {
	status string // three digits
	size   int    // of the head itself, in bytes
	length int    // of the body, in bytes
	close  bool   // the connection ends after this answer
}

// parseHead reads a head, and reports whether it is there whole.
func parseHead(b []byte) (h head, ok bool) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 12 {
		return head{}, false
	}
	h.size = end + 4
	h.status = "200"
	if status := b[9:12]; string(status) != h.status {
		h.status = string(status)
	}
	for line := range bytes.SplitSeq(b[:end], []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			n, err := strconv.Atoi(string(value))
			if err != nil {
				return head{}, false
			}
			h.length = n
		case bytes.EqualFold(name, []byte("Connection")):
			h.close = bytes.EqualFold(value, []byte("close"))
		}
	}
	return h, true
}

// sendRequest sends one request on a connection of its own and returns the body.
func sendRequest(t target, request []byte) (string, error) {
	c, err := dial(t)
	if err != nil {
		return "", err
	}
	defer c.close()
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	body, err := c.do(request)
	return string(body), err
}
