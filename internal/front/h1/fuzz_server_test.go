package h1_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// FuzzServer lets a server say anything and close: no panic, no hang, and the
// client gets a response that is right, or can tell that it is not whole. What
// net/http refuses to read is never passed on.
func FuzzServer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "HTTP/1.0 200 OK\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: 1\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 999 \r\n\r\n", "HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nX y: z\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "",
	} {
		f.Add([]byte(s))
	}
	var play atomic.Pointer[[]byte]
	o := newOrigin(f, func(c *peer, _ int) {
		c.SetDeadline(noDeadline)
		for {
			if line, err := c.r.ReadString('\n'); err != nil || line == "\r\n" {
				break
			}
		}
		c.Write(*play.Load())
	})
	p := newProxy(f, o.addr)
	f.Fuzz(func(t *testing.T, said []byte) {
		play.Store(&said)
		nc, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		c := newPeer(t, nc)
		defer c.Close()
		c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		c.CloseWrite()
		got, err := io.ReadAll(c.r)
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Fatalf("no end after %.200q", got)
		}
		compareAnswer(t, said, got)
	})
}

// compareAnswer compares what a server said with what a client got.
func compareAnswer(t *testing.T, said, got []byte) {
	t.Helper()
	std, stdBody, stdErr := finalResponse(said)
	ours, body, bodyErr := finalResponse(got)
	switch {
	case ours == nil:
		t.Fatalf("the client got what is no response\nsaid %q\ngot %q", said, got)
	case ours.Header.Get("Proxy-Status") != "" && ours.StatusCode >= 500:
		return
	case std == nil:
		t.Fatalf("passed on although net/http refuses it\nsaid %q\ngot %q", said, got)
	case std.StatusCode != ours.StatusCode:
		t.Fatalf("status %d, want %d\nsaid %q\ngot %q", ours.StatusCode, std.StatusCode, said, got)
	case stdErr == nil && (body != stdBody || bodyErr != nil), stdErr != nil && bodyErr == nil, !strings.HasPrefix(stdBody, body):
		t.Fatalf("body %q, %v, want %q, %v\nsaid %q\ngot %q", body, bodyErr, stdBody, stdErr, said, got)
	}
}

// finalResponse reads the first response that is not interim.
func finalResponse(b []byte) (*http.Response, string, error) {
	r := bufio.NewReader(bytes.NewReader(b))
	for {
		rs, err := http.ReadResponse(r, &http.Request{Method: "GET"})
		if err != nil {
			return nil, "", err
		}
		if rs.StatusCode >= 200 || rs.StatusCode == 101 {
			body, err := io.ReadAll(rs.Body)
			return rs, string(body), err
		}
	}
}
