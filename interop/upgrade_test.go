package interop

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
)

// echoUpgrades starts a server that switches to a WebSocket whose bytes it sends
// back as they come.
func echoUpgrades(t *testing.T) string {
	t.Helper()
	address := serveStreams(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		rq, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			accepted(rq.Header.Get("Sec-Websocket-Key")))
		io.Copy(c, r)
	})
	return "http://" + address
}

// accepted is the answer to a key (RFC 6455, section 4.2.2).
func accepted(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// upgrade1 opens a WebSocket over HTTP/1.1. Its bytes are those of the stream.
func upgrade1(t *testing.T, address string, _ *tls.Config) io.ReadWriteCloser {
	c, err := webSocket(address)
	if err != nil {
		t.Errorf("WebSocket over HTTP/1.1: %v", err)
	}
	return c
}

// webSocket is upgrade1 for a server that may refuse it.
func webSocket(address string) (io.ReadWriteCloser, error) {
	tcp, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := hurried{tcp}
	fmt.Fprintf(c, "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(c)
	rs, err := http.ReadResponse(r, nil)
	if err == nil && rs.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(rs.Status)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &line{Reader: r, Writer: c, end: c.Close}, nil
}

// upgrade2 opens one over HTTP/2 (RFC 8441).
func upgrade2(t *testing.T, address string, config *tls.Config) io.ReadWriteCloser {
	c, err := webSocket2(context.Background(), address, config)
	if err != nil {
		t.Errorf("WebSocket over HTTP/2: %v", err)
		return nil
	}
	return c
}

// webSocket2 is upgrade2 for a server that may refuse it. The context bounds the opening.
func webSocket2(ctx context.Context, address string, config *tls.Config) (_ io.ReadWriteCloser, err error) {
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp4", address, config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	//lint:ignore SA1019 net/http refuses the field ":protocol"
	cc, err := (&http2.Transport{}).NewClientConn(c)
	if err != nil {
		return nil, err
	}
	body, out := io.Pipe()
	rq, _ := http.NewRequest("CONNECT", "https://"+address+"/ws", body)
	rq.Header[":protocol"] = []string{"websocket"}
	// A context of the request would end the tunnel, too.
	defer context.AfterFunc(ctx, func() { c.Close() })()
	rs, err := cc.RoundTrip(rq)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode != 200 {
		return nil, errors.New(rs.Status)
	}
	return &line{Reader: rs.Body, Writer: out, end: c.Close}, nil
}

// upgrade3 opens one over HTTP/3 (RFC 9220).
func upgrade3(t *testing.T, address string, config *tls.Config) io.ReadWriteCloser {
	c, err := webSocket3(context.Background(), address, config)
	if err != nil {
		t.Errorf("WebSocket over HTTP/3: %v", err)
		return nil
	}
	return c
}

// webSocket3 is upgrade3 for a server that may refuse it. The context bounds the opening.
func webSocket3(ctx context.Context, address string, config *tls.Config) (_ io.ReadWriteCloser, err error) {
	config.NextProtos = []string{http3.NextProtoH3}
	c, err := quic.DialAddr(ctx, address, config, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.CloseWithError(0, "")
		}
	}()
	stream, err := (&http3.Transport{}).NewClientConn(c).OpenRequestStream(ctx)
	if err != nil {
		return nil, err
	}
	rq, _ := http.NewRequest("CONNECT", "https://"+address+"/ws", nil)
	rq.Proto = "websocket"
	if until, ok := ctx.Deadline(); ok {
		stream.SetDeadline(until)
		defer stream.SetDeadline(time.Time{})
	}
	if err := stream.SendRequestHeader(rq); err != nil {
		return nil, err
	}
	rs, err := stream.ReadResponse()
	if err != nil {
		return nil, err
	}
	if rs.StatusCode != 200 {
		return nil, errors.New(rs.Status)
	}
	return &line{Reader: rs.Body, Writer: stream, end: func() error { return c.CloseWithError(0, "") }}, nil
}

// line is both ways of a tunnel.
type line struct {
	io.Reader
	io.Writer
	end func() error
}

// Close ends it.
func (l *line) Close() error { return l.end() }
