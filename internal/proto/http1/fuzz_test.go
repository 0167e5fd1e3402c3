package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"headgate/internal/proto/header"
)

// FuzzRequest holds what must be true of every request: net/http accepts what we
// accept and reads it alike, pieces give the same as the whole, and what was
// accepted is the same when it is written and read again.
func FuzzRequest(f *testing.F) {
	for _, table := range [...]string{browserHead, shortHead, line("GET http://u@b:80/x?y HTTP/1.0")} {
		f.Add([]byte(table), uint8(3))
	}
	for _, tables := range [...][]struct {
		rule  string
		cases []refused
	}{refusedRequests, refusedFraming} {
		for _, table := range tables {
			for _, c := range table.cases[:min(12, len(table.cases))] {
				f.Add([]byte(c.text), uint8(1))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		var req RequestHead
		wholeAndInPieces(t, text, int(size)+1, &Limits{HeadSize: 64, Fields: 3, URISize: 20}, &req)
		n := wholeAndInPieces(t, text, int(size)+1, &Limits{}, &req)
		if n == 0 {
			return
		}
		compareRequest(t, text, &req)
		if req.Minor == 0 {
			return // written as HTTP/1.1 it means something else
		}
		again := AppendRequestLine(nil, req.Method, req.Target)
		again = append(AppendFields(again, &req.Fields), CRLF...)
		var second RequestHead
		if m, err := ParseRequest(again, &Limits{HeadSize: 64 << 10}, &second); m != len(again) || err != nil {
			t.Fatalf("written again: %d, %v\n%q", m, err, again)
		}
		sameRequest(t, &req, &second)
	})
}

// wholeAndInPieces parses a request both ways, which must come to the same.
func wholeAndInPieces(t *testing.T, text []byte, size int, lim *Limits, req *RequestHead) int {
	t.Helper()
	n, err := ParseRequest(text, lim, req)
	pieces, e := inPieces(text, size, lim)
	if pieces != n || (err == nil) != (e == none) {
		t.Fatalf("limits %+v: whole: %d, %v; by %d: %d, %v", lim, n, err, size, pieces, e)
	}
	return n
}

// sameRequest compares a request with what was written of it.
func sameRequest(t *testing.T, a, b *RequestHead) {
	t.Helper()
	if len(a.Fields.All()) != len(b.Fields.All()) {
		t.Fatalf("fields %v and %v", a.Fields.All(), b.Fields.All())
	}
	for i, f := range a.Fields.All() {
		if f != b.Fields.All()[i] {
			t.Fatalf("field %v and %v", f, b.Fields.All()[i])
		}
	}
	x, y := *a, *b
	x.Fields, y.Fields = header.List{}, header.List{}
	if x.Target != y.Target || x.Path != y.Path || x.Query != y.Query || x.Authority != y.Authority ||
		x.Framing != y.Framing || x.ContentLength != y.ContentLength || x.KeepAlive != y.KeepAlive ||
		x.Upgrade != y.Upgrade || x.ExpectContinue != y.ExpectContinue || x.Underscore != y.Underscore {
		t.Fatalf("got %+v, then %+v", x, y)
	}
}

// compareRequest asks net/http about a request that we accept.
func compareRequest(t *testing.T, text []byte, req *RequestHead) {
	t.Helper()
	if _, err := url.ParseRequestURI(req.Target); err != nil {
		return // what a URI may hold beyond its bytes is for the path normaliser
	}
	std, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte(CRLF)))))
	if err != nil {
		t.Fatalf("net/http refuses: %v\n%q", err, text)
	}
	if std.Method != req.Method || std.RequestURI != req.Target || min(std.ProtoMinor, 1) != int(req.Minor) {
		t.Fatalf("net/http reads %s %s HTTP/1.%d", std.Method, std.RequestURI, std.ProtoMinor)
	}
	if req.Authority != "" && std.Host != req.Authority {
		t.Fatalf("net/http reads host %q, we %q", std.Host, req.Authority)
	}
	if chunked := len(std.TransferEncoding) > 0; chunked != (req.Framing == Chunked) || std.ContentLength != req.ContentLength {
		t.Fatalf("net/http reads length %d, %v, we %d", std.ContentLength, std.TransferEncoding, req.ContentLength)
	}
	if std.Close == req.KeepAlive {
		t.Fatalf("net/http reads close %v, we keep-alive %v", std.Close, req.KeepAlive)
	}
	compareFields(t, std.Header, &req.Fields)
}

// compareFields compares our fields with those of net/http, which takes out the
// ones it has read.
func compareFields(t *testing.T, std http.Header, list *header.List) {
	t.Helper()
	ours := http.Header{}
	for _, f := range list.All() {
		switch f.ID {
		case header.Host, header.TransferEncoding, header.ContentLength, header.Trailer, header.Pragma, header.CacheControl:
			continue
		}
		key := textproto.CanonicalMIMEHeaderKey(f.Name)
		ours[key] = append(ours[key], f.Value)
	}
	for _, k := range [...]string{"Content-Length", "Pragma", "Cache-Control", "Trailer"} {
		std.Del(k)
	}
	if len(std) != len(ours) {
		t.Fatalf("net/http reads %q, we %q", std, ours)
	}
	for k, v := range ours {
		if strings.Join(std[k], "\n") != strings.Join(v, "\n") {
			t.Fatalf("%s: net/http reads %q, we %q", k, std[k], v)
		}
	}
}

// FuzzResponse is FuzzRequest for responses.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(serverHead), false, false)
	for _, table := range refusedResponses {
		for _, c := range table.cases {
			f.Add([]byte(c.text), false, true)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, head, upgrade bool) {
		asked := Asked{Head: head}
		if upgrade {
			asked.Upgrade = "websocket"
		}
		var resp, part, second ResponseHead
		n, err := ParseResponse(text, &Limits{}, asked, &resp)
		for i := range min(len(text), 300) {
			m, e := ParseResponse(text[:i], &Limits{}, asked, &part)
			if m != 0 && m != n || e != nil && err == nil {
				t.Fatalf("whole: %d, %v; first %d bytes: %d, %v", n, err, i, m, e)
			}
		}
		if n == 0 {
			return
		}
		again := AppendStatusLine(nil, resp.Status, resp.Reason)
		again = append(AppendFields(again, &resp.Fields), CRLF...)
		m, err := ParseResponse(again, &Limits{HeadSize: 64 << 10}, asked, &second)
		if m != len(again) || err != nil {
			t.Fatalf("written again: %d, %v\n%q", m, err, again)
		}
		if resp.Minor == 1 && (resp.Framing != second.Framing || resp.ContentLength != second.ContentLength ||
			resp.KeepAlive != second.KeepAlive || resp.Fields.Len() != second.Fields.Len()) {
			t.Fatalf("got %+v, then %+v", resp, second)
		}
		compareResponse(t, text, asked, &resp)
	})
}

// compareResponse asks net/http about a response that we accept.
func compareResponse(t *testing.T, text []byte, asked Asked, resp *ResponseHead) {
	t.Helper()
	method := "GET"
	if asked.Head {
		method = "HEAD"
	}
	std, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("net/http refuses: %v\n%q", err, text)
	}
	if std.StatusCode != resp.Status || min(std.ProtoMinor, 1) != int(resp.Minor) {
		t.Fatalf("net/http reads HTTP/1.%d %d", std.ProtoMinor, std.StatusCode)
	}
	if chunked := len(std.TransferEncoding) > 0; !asked.Head && resp.Status != 304 && chunked != (resp.Framing == Chunked) {
		t.Fatalf("net/http reads %v, we %v", std.TransferEncoding, resp.Framing)
	}
	if (resp.Framing == Length || resp.Framing == UntilClose) && std.ContentLength != resp.ContentLength {
		t.Fatalf("net/http reads length %d, we %d", std.ContentLength, resp.ContentLength)
	}
	if resp.KeepAlive && std.Close {
		t.Fatalf("net/http closes, we keep")
	}
	if resp.Status >= 200 && resp.Status != 204 {
		compareFields(t, std.Header, &resp.Fields)
	}
}

// FuzzChunked holds that a chunked body is read alike in pieces and whole, and
// that net/http reads the same data from what we accept.
func FuzzChunked(f *testing.F) {
	f.Add([]byte("5;a=\"b\\\"\"\r\nhello\r\n0\r\nX: y\r\n\r\nrest"), uint8(2))
	for _, c := range refusedChunks {
		f.Add([]byte(c.text), uint8(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		data, used, d, err := decode(string(text), len(text)+1)
		data2, used2, d2, err2 := decode(string(text), int(size)+1)
		if data != data2 || d.Done() != d2.Done() || err != err2 || err == nil && used != used2 {
			t.Fatalf("whole: %q, %d, %v; by %d: %q, %d, %v", data, used, err, int(size)+1, data2, used2, err2)
		}
		if !d.Done() {
			return
		}
		std, stdErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(text)))
		if stdErr != nil || string(std) != data {
			t.Fatalf("net/http reads %q, %v; we %q", std, stdErr, data)
		}
		again := AppendTrailers(AppendChunk(nil, []byte(data)), &d.Trailers)
		if data3, used3, d3, err3 := decode(string(again), len(again)); data3 != data || used3 != len(again) || !d3.Done() {
			t.Fatalf("written again: %q, %d, %v", data3, used3, err3)
		}
	})
}
