package http1

import (
	"strings"
	"testing"
)

var refusedFraming = []struct {
	rule  string
	cases []refused
}{
	{"RFC 9112 5: field lines", []refused{
		{SpaceBeforeColon, get("X : a")},
		{SpaceBeforeColon, get("X\t: a")},
		{SpaceBeforeColon, get("X  : a")},
		{SpaceBeforeColon, post("Content-Length : 3")},
		{SpaceBeforeColon, post("Transfer-Encoding : chunked")},
		{SpaceBeforeColon, post("Transfer-Encoding\t: chunked")},
		{SpaceBeforeColon, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
		{EmptyName, get(": a")},
		{EmptyName, get(":")},
		{EmptyName, get(":authority: a")},
		{NoColon, get("X")},
		{NoColon, get("Transfer-Encoding")},
		{BadName, get("Transfer-Encoding chunked")},
		{BadName, get("Foo Bar: x")},
		{BadName, get("Foo, Bar: x")},
		{BadName, get("X(a): x")},
		{BadName, get("X[a]: x")},
		{BadName, get("\"X\": x")},
		{BadName, get("X/Y: x")},
		{BadName, get("X@Y: x")},
		{BadName, get("X=Y: x")},
		{BadName, get("{X}: x")},
		{BadName, get("X\\: x")},
		{BadName, get("X;Y: x")},
		{BadName, get("<X>: x")},
		{BadName, get("X?: x")},
		{BadName, get("\x00X: x")},
		{BadName, get("X\x00: x")},
		{BadName, get("\x7fX: x")},
		{BadName, get("\xc3\x9c: x")},
		{BadName, get("\xefTransfer-Encoding: chunked")},
		{BadName, get("Transfer\xadEncoding: chunked")},
		{BadName, get("Transfer-Encoding\xa0: chunked")},
		{BadName, get("Transfer-Encoding\x0b: chunked")},
		{BadName, get("\x0bTransfer-Encoding: chunked")},
		{BadName, get("\xef\xbb\xbfContent-Length: 3")},
		{ObsFold, get("X: a", " b")},
		{ObsFold, get("X: a", "\tb")},
		{ObsFold, get("X: a", " ")},
		{ObsFold, get("Transfer-Encoding:", " chunked")},
		{ObsFold, get("Transfer-Encoding: identity", " , chunked")},
		{ObsFold, get("X: a", " Transfer-Encoding: chunked")},
		{ObsFold, get(" Transfer-Encoding: chunked")},
		{ObsFold, get("Content-Length: 0", " 5")},
		{ControlInValue, get("X: a\x00b")},
		{ControlInValue, get("X: \x01")},
		{ControlInValue, get("X: a\x0b")},
		{ControlInValue, get("X: a\x0c")},
		{ControlInValue, get("X: \x1b[2J")},
		{ControlInValue, get("X: a\x7f")},
		{LookalikeName, get("Content_Length: 3")},
		{LookalikeName, get("content_length: 3")},
		{LookalikeName, get("Transfer_Encoding: chunked")},
		{LookalikeName, get("transfer.encoding: chunked")},
		{LookalikeName, get("Transfer~Encoding: chunked")},
		{LookalikeName, get("Content!Length: 0")},
	}},
	{"RFC 9110 8.6 and RFC 9112 6.3: Content-Length", []refused{
		{BadLength, post("Content-Length:")},
		{BadLength, post("Content-Length: ")},
		{BadLength, post("Content-Length: +3")},
		{BadLength, post("Content-Length: -3")},
		{BadLength, post("Content-Length: -0")},
		{BadLength, post("Content-Length: 0x3")},
		{BadLength, post("Content-Length: 3h")},
		{BadLength, post("Content-Length: a")},
		{BadLength, post("Content-Length: 3 3")},
		{BadLength, post("Content-Length: 3 ,")},
		{BadLength, post("Content-Length: 3,")},
		{BadLength, post("Content-Length: ,3")},
		{BadLength, post("Content-Length: 3, 3")},
		{BadLength, post("Content-Length: 3,3")},
		{BadLength, post("Content-Length: 3, 4")},
		{BadLength, post("Content-Length: 3;a")},
		{BadLength, post("Content-Length: \"3\"")},
		{BadLength, post("Content-Length: 3.0")},
		{BadLength, post("Content-Length: 3e0")},
		{BadLength, post("Content-Length: 1_0")},
		{BadLength, post("Content-Length: 1'000")},
		{BadLength, post("Content-Length: 3\t4")},
		{BadLength, post("Content-Length: 3\xa0")},
		{BadLength, post("Content-Length: \xd9\xa3")},
		{BadLength, post("Content-Length: chunked")},
		{BadLength, post("Content-Length: 99999999999999999999x")},
		{ControlInValue, post("Content-Length: 3\x00")},
		{ControlInValue, post("Content-Length: \x0b3")},
		{LengthOverflow, post("Content-Length: 9223372036854775808")},
		{LengthOverflow, post("Content-Length: 18446744073709551616")},
		{LengthOverflow, post("Content-Length: 18446744073709551619")},
		{LengthOverflow, post("Content-Length: 99999999999999999999999999999999")},
		{LengthRepeated, post("Content-Length: 3", "Content-Length: 3")},
		{LengthRepeated, post("Content-Length: 3", "Content-Length: 4")},
		{LengthRepeated, post("Content-Length: 0", "Content-Length: 44")},
		{LengthRepeated, post("Content-Length: 3", "content-length: 0")},
		{LengthRepeated, post("Content-Length:", "Content-Length: 3")},
		{LengthRepeated, post("Content-Length: 3", "X: y", "CONTENT-LENGTH: 3")},
		{LengthRepeated, "GET / HTTP/1.0\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"},
	}},
	{"RFC 9112 6.1: Transfer-Encoding", []refused{
		{LengthWithCoding, post("Content-Length: 3", "Transfer-Encoding: chunked")},
		{LengthWithCoding, post("Transfer-Encoding: chunked", "Content-Length: 3")},
		{LengthWithCoding, post("Transfer-Encoding: chunked", "Content-Length: 0")},
		{LengthWithCoding, post("Transfer-Encoding: identity", "Content-Length: 3")},
		{LengthWithCoding, post("Transfer-Encoding:", "Content-Length: 3")},
		{LengthWithCoding, post("tRANSFER-eNCODING: x", "cONTENT-lENGTH: x")},
		{LengthWithCoding, "POST / HTTP/1.0\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{CodingInOldVersion, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{CodingInOldVersion, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"},
		{ChunkedTwice, post("Transfer-Encoding: chunked, chunked")},
		{ChunkedTwice, post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")},
		{ChunkedTwice, post("Transfer-Encoding: chunked, identity, chunked")},
		{CodingNotChunked, post("Transfer-Encoding: gzip")},
		{CodingNotChunked, post("Transfer-Encoding: chunked, gzip")},
		{CodingNotChunked, post("Transfer-Encoding: chunked", "Transfer-Encoding: deflate")},
		{CodingUnknown, post("Transfer-Encoding: gzip, chunked")},
		{CodingUnknown, post("Transfer-Encoding: gzip", "Transfer-Encoding: chunked")},
		{CodingUnknown, post("Transfer-Encoding: identity")},
		{CodingUnknown, post("Transfer-Encoding: identity, chunked")},
		{CodingUnknown, post("Transfer-Encoding: chunked, identity")},
		{CodingUnknown, post("Transfer-Encoding: chunked", "Transfer-Encoding: x")},
		{CodingUnknown, post("Transfer-Encoding: x", "Transfer-Encoding: chunked")},
		{CodingUnknown, post("Transfer-Encoding: xchunked")},
		{CodingUnknown, post("Transfer-Encoding: chunkedx")},
		{CodingUnknown, post("Transfer-Encoding: chunk")},
		{CodingUnknown, post("Transfer-Encoding: chunke")},
		{CodingUnknown, post("Transfer-Encoding: cow")},
		{BadCoding, post("Transfer-Encoding:")},
		{BadCoding, post("Transfer-Encoding: ,chunked")},
		{BadCoding, post("Transfer-Encoding: chunked,")},
		{BadCoding, post("Transfer-Encoding: chunked, ,")},
		{BadCoding, post("Transfer-Encoding: chunked;param")},
		{BadCoding, post("Transfer-Encoding: chunked;a=b")},
		{BadCoding, post("Transfer-Encoding: chunked; ")},
		{BadCoding, post("Transfer-Encoding: chunked chunked")},
		{BadCoding, post("Transfer-Encoding: x chunked")},
		{BadCoding, post("Transfer-Encoding: \"chunked\"")},
		{BadCoding, post("Transfer-Encoding: 'chunked' x")},
		{BadCoding, post("Transfer-Encoding: chunked\xff")},
		{BadCoding, post("Transfer-Encoding: \xe2\x80\x8bchunked")},
		{BadCoding, post("Transfer-Encoding: chun\xe2\x84\xaaed")},
		{BadCoding, post("Transfer-Encoding: (x) chunked")},
		{BadCoding, post("Transfer-Encoding: chunked", "Transfer-Encoding:")},
		{BadCoding, post("Transfer-Encoding: chunked:")},
		{BadCoding, post("Transfer-Encoding: : chunked")},
		{BadCoding, post("Transfer-Encoding: chunked=")},
		{BadCoding, post("Transfer-Encoding: [chunked]")},
		{ControlInValue, post("Transfer-Encoding: \x0bchunked")},
		{ControlInValue, post("Transfer-Encoding:\x0cchunked")},
		{ControlInValue, post("Transfer-Encoding: chunked\x00")},
		{ControlInValue, post("Transfer-Encoding: \x00chunked")},
		{ControlInValue, post("Transfer-Encoding: chun\x7fked")},
		{ControlInValue, post("Transfer-Encoding: chunked\x1f")},
	}},
	{"RFC 9110 10.1.1, 7.6.1, 9.3.8: Expect, Connection, TRACE", []refused{
		{BadExpect, post("Expect: 100", "Content-Length: 3")},
		{BadExpect, post("Expect: y 100-continue", "Content-Length: 3")},
		{BadExpect, post("Expect:", "Content-Length: 3")},
		{BadExpect, post("Expect: 100-continue, x", "Content-Length: 3")},
		{BadExpect, post("Expect: 100-continue", "Expect: 100-continue")},
		{BadExpect, post("Expect: 200-ok")},
		{NominatedField, get("Connection: close, Host")},
		{NominatedField, get("Connection: host")},
		{NominatedField, post("Connection: Content-Length", "Content-Length: 3")},
		{NominatedField, post("Connection: keep-alive", "Connection: x,content-length ,y")},
		{TooManyOptions, get("Connection: " + strings.Repeat("a,", maxOptions) + "a")},
		{TooManyOptions, get("Connection: " + strings.Repeat(",", maxOptions))},
		{TraceBody, "TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"},
		{TraceBody, "TRACE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
	}},
}

func TestFramingIsRefused(t *testing.T) {
	checkRequests(t, refusedFraming)
}

// TestEveryBadByteIsRefused puts each byte where it may not be.
func TestEveryBadByteIsRefused(t *testing.T) {
	places := []struct {
		name, before, after string
		allowed             func(c byte) bool
	}{
		{"method", "PO", "ST / HTTP/1.1\r\nHost: a\r\n\r\n", isTchar},
		{"target", "GET /", "a HTTP/1.1\r\nHost: a\r\n\r\n", func(c byte) bool { return c > ' ' && c < 0x7f && c != '#' }},
		{"long target", "GET /12345678", "12345678 HTTP/1.1\r\nHost: a\r\n\r\n", func(c byte) bool { return c > ' ' && c < 0x7f && c != '#' }},
		{"version", "GET / HTTP/1", "1\r\nHost: a\r\n\r\n", func(c byte) bool { return c == '.' }},
		{"behind version", "GET / HTTP/1.1", "\r\nHost: a\r\n\r\n", func(byte) bool { return false }},
		{"host", "GET / HTTP/1.1\r\nHost: a", "b\r\n\r\n", func(c byte) bool { return class[c]&(hostc|delim) != 0 }},
		{"name", "GET / HTTP/1.1\r\nHost: a\r\nX", "y: b\r\n\r\n", func(c byte) bool { return isTchar(c) || c == ':' }},
		{"long name", "GET / HTTP/1.1\r\nHost: a\r\nX-12345678", "12345678: b\r\n\r\n", func(c byte) bool { return isTchar(c) || c == ':' }},
		{"known name", "GET / HTTP/1.1\r\nHost: a\r\nUser", "Agent: b\r\n\r\n", func(c byte) bool { return isTchar(c) || c == ':' }},
		{"value", "GET / HTTP/1.1\r\nHost: a\r\nX: y", "z\r\n\r\n", isValueByte},
		{"long value", "GET / HTTP/1.1\r\nHost: a\r\nX: 12345678", "12345678\r\n\r\n", isValueByte},
		{"length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1", "2\r\n\r\n", func(c byte) bool { return c >= '0' && c <= '9' }},
		{"coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chun", "ked\r\n\r\n", func(byte) bool { return false }},
		{"behind coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", "\r\n\r\n", func(c byte) bool { return c == ' ' || c == '\t' }},
	}
	count := 0
	for _, p := range places {
		for c := range 256 {
			text := p.before + string([]byte{byte(c)}) + p.after
			var req RequestHead
			n, err := ParseRequest([]byte(text), &Limits{StrictTarget: true}, &req)
			if ok := err == nil && n == len(text); ok != p.allowed(byte(c)) {
				t.Errorf("byte %#02x in %s: got %d, %v for %q", c, p.name, n, err, text)
			}
			if err != nil {
				count++
			}
		}
	}
	for c := 0x80; c < 0x100; c++ {
		text := "GET /1234567" + string([]byte{byte(c), byte(c)}) + "a?b HTTP/1.1\r\nHost: a\r\n\r\n"
		var req RequestHead
		if n, err := ParseRequest([]byte(text), &Limits{}, &req); err != nil || n != len(text) || !req.NonASCII || req.Query != "?b" {
			t.Errorf("byte %#02x in a target: got %d, %v, %+v", c, n, err, req)
		}
	}
	for _, text := range []string{"GET http://\u00e9/ HTTP/1.1\r\nHost: \u00e9\r\n\r\n", "GET htt\u00e9://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET \u00e9 HTTP/1.1\r\nHost: a\r\n\r\n", "G\u00c9T / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		var req RequestHead
		if n, err := ParseRequest([]byte(text), &Limits{}, &req); err == nil {
			t.Errorf("%q is not refused: %d", text, n)
		}
	}
	if count < 250 {
		t.Errorf("only %d heads were refused", count)
	}
}

func isTchar(c byte) bool {
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func isValueByte(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f }

func TestLimitsAreKept(t *testing.T) {
	lim := &Limits{HeadSize: 200, Fields: 3, URISize: 50}
	long := strings.Repeat("a", 300)
	for _, c := range []struct {
		text string
		want Error
	}{
		{get("X: a", "Y: b"), none},
		{get("X: a", "Y: b", "Z: c"), TooManyFields},
		{get("X: " + long), HeadTooLarge},
		{get(long + ": a"), HeadTooLarge},
		{get("X: " + long[:150]), none},
		{line("GET /" + long[:49] + " HTTP/1.1"), none},
		{line("GET /" + long[:50] + " HTTP/1.1"), URITooLong},
		{line("GET /" + long + " HTTP/1.1"), URITooLong},
		{"GET /" + long, URITooLong},
		{"GET /" + long[:60], URITooLong},
		{"POST http://" + long + " HTTP/1.1\r\n", URITooLong},
	} {
		var req RequestHead
		n, err := ParseRequest([]byte(c.text), lim, &req)
		if c.want == none && (err != nil || n != len(c.text)) || c.want != none && err != error(c.want) {
			t.Errorf("%q: got %d, %v, want %v", c.text, n, err, c.want)
		}
	}
	exact := get("X: " + strings.Repeat("a", 200-len(get("X: "))))
	var req RequestHead
	if n, err := ParseRequest([]byte(exact+"GET / HTTP/1.1\r\n"), lim, &req); n != 200 || err != nil {
		t.Errorf("a head of exactly the limit: got %d, %v", n, err)
	}
	if n, err := ParseRequest([]byte("\r\n"+exact), lim, &req); err != HeadTooLarge {
		t.Errorf("a head beyond the limit: got %d, %v", n, err)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	seen := map[string]Error{}
	for e := HeadTooLarge; e < errorCount; e++ {
		if e.Error() == "" || !strings.Contains(e.Error(), "RFC ") || e.Status() == 0 {
			t.Errorf("error %d: status %d, %q", e, e.Status(), e)
		}
		if other, ok := seen[e.Error()]; ok {
			t.Errorf("errors %d and %d are told alike", e, other)
		}
		seen[e.Error()] = e
	}
}
