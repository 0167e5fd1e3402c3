package h1_test

import (
	"strings"
	"testing"
	"time"
)

var noDeadline time.Time

// marked follows every mutated request in the same segment. Only as a request
// of its own, or within a body that it was announced to be, may it reach a
// server.
const marked = "GET /marked HTTP/1.1\r\nHost: marked.test\r\nX-Marked: 1\r\n\r\n"

// bases are requests that are right.
var bases = []string{
	"GET /a?b HTTP/1.1\r\nHost: a.test\r\nX-A: 1\r\n\r\n",
	"HEAD /a HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
	"PUT /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://b.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"POST /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
	"BREW /a HTTP/1.1\r\nHost: a.test\r\n\r\n",
}

// lines are put into heads. Each has fooled some server.
var lines = []string{
	"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Content-Length: 6\r\n", "Content-Length: 05\r\n", "Content-Length: +5\r\n", "Content-Length: -5\r\n",
	"Content-Length: 0x5\r\n", "Content-Length: 5 5\r\n", "Content-Length: 5,5\r\n", "Content-Length: 5, 6\r\n", "Content-Length: 5.0\r\n", "Content-Length: 5e0\r\n",
	"Content-Length: \"5\"\r\n", "Content-Length: 5;q=1\r\n", "Content-Length:\r\n", "Content-Length: \r\n", "Content-Length: 18446744073709551621\r\n",
	"Content-Length : 5\r\n", "Content-Length\t: 5\r\n", " Content-Length: 5\r\n", "\tContent-Length: 5\r\n", "Content-Length:\x0b5\r\n", "Content-Length:\x0c5\r\n", "Content-Length: 5\x00\r\n",
	"Content_Length: 5\r\n", "Content.Length: 5\r\n", "content-length: 5\r\n", "CONTENT-LENGTH:5\r\n", "Content-Length: 5\n", "Content-Length: 5\r", "X: y\nContent-Length: 5\r\n", "X: y\rContent-Length: 5\r\n",
	"Content-\r\nLength: 5\r\n", "Content-Length\r\n: 5\r\n", "Content-Length:\r\n 5\r\n", "\x00Content-Length: 5\r\n", "Content-Length\x00: 5\r\n", "Content-L\xc4\xb1ength: 5\r\n",
	"Transfer-Encoding: chunked\r\n", "transfer-encoding:chunked\r\n", "Transfer-Encoding: Chunked\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunkedx\r\n", "Transfer-Encoding: chunked \r\n",
	"Transfer-Encoding:\tchunked\r\n", "Transfer-Encoding: \x0bchunked\r\n", "Transfer-Encoding: chunked\x0b\r\n", "Transfer-Encoding: \"chunked\"\r\n", "Transfer-Encoding: 'chunked'\r\n", "Transfer-Encoding: chunked;a=b\r\n",
	"Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: identity, chunked\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, chunked\r\n",
	"Transfer-Encoding: chunked,\r\n", "Transfer-Encoding: ,chunked\r\n", "Transfer-Encoding:\r\n", "Transfer-Encoding: \r\n", "Transfer-Encoding\r\n : chunked\r\n", "Transfer-Encoding:\r\n chunked\r\n", "Transfer-Encoding : chunked\r\n",
	" Transfer-Encoding: chunked\r\n", "Transfer_Encoding: chunked\r\n", "Transfer.Encoding: chunked\r\n", "X: y\nTransfer-Encoding: chunked\r\n", "X: y\rTransfer-Encoding: chunked\r\n", "X: y\r\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\n",
	"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "Content-Encoding: chunked\r\n", "TE: chunked\r\n", "TE: trailers\r\n", "Transfer-Encoding: chun\xffked\r\n",
	"Host: b.test\r\n", "Host: a.test\r\n", "host:b.test\r\n", "Host: b.test:80:81\r\n", "Host: b.test/x\r\n", "Host: b@c.test\r\n", "Host:\r\n", "Host : b.test\r\n", "X: y\nHost: b.test\r\n", "Host_: b.test\r\n",
	"Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: content-length\r\n", "Connection: transfer-encoding\r\n", "Connection: host\r\n", "Connection: x-nominated\r\nX-Nominated: 1\r\n", "Connection: x-forwarded-for, via\r\n",
	"Connection: upgrade\r\nUpgrade: websocket\r\n", "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", "Upgrade: websocket\r\n", "Connection: \r\n",
	"Expect: 100-continue\r\n", "Expect: 100-Continue\r\n", "Expect: 100-continue, x\r\n", "Expect: y 100-continue\r\n", "Expect: 100-continue\r\nExpect: 100-continue\r\n",
	"X: " + "\x01" + "\r\n", "X: \x7f\r\n", "X: \x80\xff\r\n", "X: a\x00b\r\n", "X y: z\r\n", ": z\r\n", "X\r\n", "X:\r\n", "X: a\r\n b\r\n", "\r\n", "\n", "\r", "X: \r\n\r\nGET /inner HTTP/1.1\r\nHost: a\r\n\r\n", "(): x\r\n", "X: a\n\n", "X: a\r\n\n",
	"X-HTTP-Method-Override: PUT\r\n", "X-Original-URL: /admin\r\n", "Keep-Alive: timeout=5\r\n", "Proxy-Connection: keep-alive\r\n", "Trailer: Content-Length\r\n",
}

// firsts replace the first line.
var firsts = []string{
	"GET  /a HTTP/1.1", "GET /a  HTTP/1.1", " GET /a HTTP/1.1", "GET /a HTTP/1.1 ", "GET\t/a HTTP/1.1", "GET /a\tHTTP/1.1", "GET /a", "GET /a HTTP/0.9", "GET /a HTTP/1.2", "GET /a HTTP/2.0", "GET /a HTTP/1.01",
	"GET /a HTTP/1.1\r\n\r\n", "GET /a http/1.1", "GET /a HTTP/11", "GET /a\x00 HTTP/1.1", "GET /a b HTTP/1.1", "GET /\xff HTTP/1.1", "GET /a#b HTTP/1.1", "GET a HTTP/1.1", "GET * HTTP/1.1", "GET ?a HTTP/1.1",
	"CONNECT a.test:80 HTTP/1.1", "CONNECT /a HTTP/1.1", "G\x00T /a HTTP/1.1", "GET/a HTTP/1.1", "\r\nGET /a HTTP/1.1", "\r\n\r\nGET /a HTTP/1.1", "\nGET /a HTTP/1.1", "GET http:///a HTTP/1.1", "GET http://u@b.test/ HTTP/1.1",
	"GET //a HTTP/1.1", "GET /a/../b HTTP/1.1", "GET /%zz HTTP/1.1", "GET /\" HTTP/1.1", "GET https://b.test HTTP/1.1", "GET ftp://b.test/ HTTP/1.1", "GET http://b.test:99999/ HTTP/1.1", "PRI * HTTP/2.0", "get /a HTTP/1.1", "GET /a HTTP/1.1\r", "GET /a HTTP/1.1\n",
}

// bodies replace the body of a chunked request.
var bodies = []string{
	"5\r\nhello\r\n0\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "-1\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n",
	"5;\r\nhello\r\n0\r\n\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n", "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n", "05\r\nhello\r\n00\r\n\r\n", "5\r\nhello\r\n0\r\nX: 1\n\r\n", "5\r\nhello\r\n0\r\n X: 1\r\n\r\n", "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
	"100000005\r\nhello\r\n0\r\n\r\n", "10000000000000005\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\n\n", "5\r\nhello\r\n\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "6\r\nhello\r\n0\r\n\r\n", "4\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0;a\r\n\r\n", "5\r\rhello\r\n0\r\n\r\n", "g\r\n", "5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
}

// mutations calls yield for every mutated request.
func mutations(yield func(string) bool) {
	for _, base := range bases {
		first, rest, _ := strings.Cut(base, "\r\n")
		head, body, _ := strings.Cut(rest, "\r\n\r\n")
		for _, line := range lines {
			if !yield(first+"\r\n"+line+rest) || !yield(first+"\r\n"+head+"\r\n"+line+"\r\n"+body) {
				return
			}
		}
		for _, other := range firsts {
			if !yield(other + "\r\n" + rest) {
				return
			}
		}
		if strings.Contains(head, "chunked") {
			for _, b := range bodies {
				if !yield(first + "\r\n" + head + "\r\n\r\n" + b) {
					return
				}
			}
		}
	}
}

func TestNothingIsSmuggled(t *testing.T) {
	d := newDiffer(t)
	requests, passed := 0, 0
	for text := range mutations {
		requests++
		passed += d.compare(t, text+marked)
		if t.Failed() && requests%50 == 0 {
			break
		}
	}
	t.Logf("%d mutated requests, %d requests passed on", requests, passed)
}

func TestRightRequestsPass(t *testing.T) {
	d := newDiffer(t)
	for _, base := range bases {
		equal(t, base, d.compare(t, base+marked), 2)
		equal(t, base+"thrice", d.compare(t, base+base+base+marked), 4)
	}
}

// FuzzConnection sends any bytes to a connection: no panic, no hang, and the
// server sees only requests, which net/http understands alike.
func FuzzConnection(f *testing.F) {
	for _, base := range bases {
		f.Add([]byte(base + marked))
		for i := 0; i < len(lines); i += 9 {
			first, rest, _ := strings.Cut(base, "\r\n")
			f.Add([]byte(first + "\r\n" + lines[i] + rest + marked))
		}
	}
	for _, b := range bodies {
		f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b + marked))
	}
	d := newDiffer(f)
	f.Fuzz(func(t *testing.T, text []byte) { d.compare(t, string(text)) })
}
