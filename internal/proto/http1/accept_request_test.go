package http1

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/proto/header"
)

func TestRequestsAreAccepted(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{get(), "GET / |a.example|a.example| keep none 0"},
		{"\r\n" + get(), "GET / |a.example|a.example| keep none 0"},
		{line("GET /?a=?b HTTP/1.1"), "GET / ?a=?b|a.example|a.example| keep none 0"},
		{line("GET /a? HTTP/1.1"), "GET /a ?|a.example|a.example| keep none 0"},
		{line("GET //a\\b%zz{}|^`\"<> HTTP/1.1"), "GET //a\\b%zz{}|^`\"<> |a.example|a.example| keep none 0"},
		{line("OPTIONS * HTTP/1.1"), "OPTIONS * |a.example|a.example| keep none 0"},
		{line("OPTIONS http://b:81 HTTP/1.1"), "OPTIONS * |b:81|b|81 keep none 0"},
		{line("OPTIONS http://b:81? HTTP/1.1"), "OPTIONS / ?|b:81|b|81 keep none 0"},
		{line("GET http://b HTTP/1.1"), "GET / |b|b| keep none 0"},
		{line("GET HTTPS://B:81/x?y HTTP/1.1"), "GET /x ?y|B:81|B|81 keep none 0"},
		{line("GET http://b?http://c/ HTTP/1.1"), "GET / ?http://c/|b|b| keep none 0"},
		{line("GET http://[::1]:8/ HTTP/1.1"), "GET / |[::1]:8|[::1]|8 keep none 0"},
		{line("PURGE /x HTTP/1.1"), "PURGE /x |a.example|a.example| keep none 0"},
		{line("get /x HTTP/1.1"), "get /x |a.example|a.example| keep none 0"},
		{line("M-SEARCH /x HTTP/1.1"), "M-SEARCH /x |a.example|a.example| keep none 0"},
		{host("1.2.3.4:65535"), "GET / |1.2.3.4:65535|1.2.3.4|65535 keep none 0"},
		{host("[2001:DB8::1]"), "GET / |[2001:DB8::1]|[2001:DB8::1]| keep none 0"},
		{host("[::ffff:1.2.3.4]:1"), "GET / |[::ffff:1.2.3.4]:1|[::ffff:1.2.3.4]|1 keep none 0"},
		{host("\ta_b-c.~d. \t"), "GET / |a_b-c.~d.|a_b-c.~d.| keep none 0"},
		{host("a.test:"), "GET / |a.test:|a.test| keep none 0"},
		{host("a.test:0080"), "GET / |a.test:0080|a.test|0080 keep none 0"},
		{host("[::1]:"), "GET / |[::1]:|[::1]| keep none 0"},
		{host("a!b$c&d'e(f)g*h+i;j=k:8"), "GET / |a!b$c&d'e(f)g*h+i;j=k:8|a!b$c&d'e(f)g*h+i;j=k|8 keep none 0"},
		{host("%61%2Etest"), "GET / |%61%2Etest|%61%2Etest| keep none 0"},
		{"GET http://a%2Db:/x HTTP/1.1\r\nHost: b\r\n\r\n", "GET /x |a%2Db:|a%2Db| keep none 0"},
		{"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "GET / |a|a| keep none 0"},
		{"POST / HTTP/1.9\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "POST / |a|a| keep chunked -1"},
		{"GET / HTTP/1.0\r\n\r\n", "GET / ||| close none 0"},
		{"GET http://b/ HTTP/1.0\r\n\r\n", "GET / |b|b| close none 0"},
		{"GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", "GET / |a|a| keep none 0"},
		{"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", "GET / ||| close none 0"},
		{get("Connection: close"), "GET / |a.example|a.example| close none 0"},
		{get("Connection: x", "connection: , CLOSE ,"), "GET / |a.example|a.example| close none 0"},
		{get("Connection: closed"), "GET / |a.example|a.example| keep none 0"},
		{post("Content-Length: 3"), "POST / |a.example|a.example| keep length 3"},
		{post("Content-Length: 0"), "POST / |a.example|a.example| keep none 0"},
		{post("Content-Length: 000"), "POST / |a.example|a.example| keep none 0"},
		{post("Content-Length: 0010"), "POST / |a.example|a.example| keep length 10"},
		{post("Content-Length:9223372036854775807"), "POST / |a.example|a.example| keep length 9223372036854775807"},
		{post("Transfer-Encoding: chunked"), "POST / |a.example|a.example| keep chunked -1"},
		{post("transfer-encoding:\t CHUNKED \t"), "POST / |a.example|a.example| keep chunked -1"},
		{get("X:", "Y: \t ", "Z: \xff\xc3\xa9\ta:b"), "GET / |a.example|a.example| keep none 0"},
	} {
		req, err := parse(t, c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		keep := "close"
		if req.KeepAlive {
			keep = "keep"
		}
		got := fmt.Sprintf("%s %s %s|%s|%s|%s %s %s %d", req.Method, req.Path, req.Query, req.Authority, req.Host,
			req.Port, keep, req.Framing, req.ContentLength)
		if got != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
		}
		if req.Fields.Has(header.Host) && req.Fields.Get(header.Host) != req.Authority {
			t.Errorf("%q: Host is %q", c.text, req.Fields.Get(header.Host))
		}
		if v := req.Fields.Get(header.ContentLength); len(v) > 1 && v[0] == '0' {
			t.Errorf("%q: Content-Length is %q", c.text, v)
		}
	}
}

func TestWholeOrInPiecesIsTheSame(t *testing.T) {
	for _, text := range []string{browserHead, shortHead, "\r\n" + get("X: a"), line("OPTIONS http://b HTTP/1.1")} {
		for i := range len(text) {
			var req RequestHead
			if n, err := ParseRequest([]byte(text[:i]), &Limits{}, &req); n != 0 || err != nil {
				t.Errorf("%d bytes of %q: got %d, %v", i, text, n, err)
			}
		}
		for size := 1; size <= len(text); size++ {
			if n, e := inPieces([]byte(text+"GET"), size, &Limits{}); n != len(text) || e != none {
				t.Errorf("%q by %d: got %d, %v", text, size, n, e)
			}
		}
	}
}

func TestScannerDoesNotWaitForABadHead(t *testing.T) {
	for _, c := range []struct {
		text string
		at   int // bytes after which it is ready
	}{
		{"GET / HTTP/1.1\nHost: a\n\n", 15},
		{"GET / HTTP/1.1\r\nX: a\nY: b\r\n\r\n", 21},
		{"GET / HTTP/1.1\r\nX: a\rY: b\r\n\r\n", 22},
		{"\r\n\r\nGET", 4},
		{"\n", 1},
		{shortHead, len(shortHead)},
		{strings.Repeat("a", 80), 60},
	} {
		var s Scanner
		at := 0
		for ; at <= len(c.text) && !s.Ready([]byte(c.text[:at]), &Limits{HeadSize: 60}); at++ {
		}
		if at != c.at {
			t.Errorf("%q: ready after %d, want %d", c.text, at, c.at)
		}
	}
}

func TestUpgradeIsSeen(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{get("Connection: Upgrade", "Upgrade: websocket"), "websocket"},
		{get("Connection: keep-alive, upgrade", "Upgrade: foo/2, bar"), "foo/2, bar"},
		{get("Upgrade: websocket"), ""},
		{get("Connection: Upgrade"), ""},
		{get("Connection: Upgrade", "Upgrade:"), ""},
		{get("Connection: Upgrade", "Upgrade: a b"), ""},
		{get("Connection: Upgrade", "Upgrade: a/"), ""},
		{get("Connection: Upgrade", "Upgrade: websocket", "Upgrade: x"), ""},
		{get("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMA"), ""},
		{get("Connection: Upgrade", "Upgrade: websocket, H2C"), ""},
		{get("Connection: Upgrade", "Upgrade: HTTP/2.0"), ""},
		{get("Connection: Upgrade", "Upgrade: TLS/1.0"), ""},
		{post("Connection: Upgrade", "Upgrade: websocket", "Content-Length: 1"), ""},
		{post("Connection: Upgrade", "Upgrade: websocket", "Transfer-Encoding: chunked"), ""},
		{"GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", ""},
	} {
		if req, err := parse(t, c.text); err != nil || req.Upgrade != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.text, req.Upgrade, err, c.want)
		}
	}
}

func TestExpectIsSeen(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{post("Expect: 100-continue", "Content-Length: 3"), true},
		{post("expect: 100-Continue", "Transfer-Encoding: chunked"), true},
		{post("Expect: 100-continue"), false},
		{post("Expect: 100-continue", "Content-Length: 0"), false},
		{"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", false},
	} {
		if req, err := parse(t, c.text); err != nil || req.ExpectContinue != c.want {
			t.Errorf("%q: got %v, %v", c.text, req.ExpectContinue, err)
		}
	}
}

func TestUnderscoresAreSeen(t *testing.T) {
	for text, want := range map[string]bool{
		get("X_Y: a"): true, get("X-Y: _"): false, get("X_Real_IP: a"): true, get("_: a"): true, get("X.Y: a"): false,
	} {
		if req, err := parse(t, text); err != nil || req.Underscore != want {
			t.Errorf("%q: got %v, %v", text, req.Underscore, err)
		}
	}
}

func TestHopByHopFieldsAreStripped(t *testing.T) {
	req, err := parse(t, get("Connection: close, X-Gone , ,Cookie, x-forwarded-for,,TE", "Connection: x-too",
		"x-gone: 1", "X-TOO: 2", "Cookie: 3", "X-Forwarded-For: 4", "TE: trailers", "Keep-Alive: 5", "Upgrade: a",
		"Proxy-Connection: 6", "X-Stays: 7", "Trailer: X"))
	if err != nil {
		t.Fatal(err)
	}
	StripHopByHop(&req.Fields)
	var names []string
	for _, f := range req.Fields.All() {
		names = append(names, f.Name)
	}
	if got, want := strings.Join(names, " "), "Host Cookie X-Forwarded-For X-Stays"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHeadHoldsNothingOfTheOneBefore(t *testing.T) {
	var req RequestHead
	if _, err := ParseRequest([]byte(post("Transfer-Encoding: chunked", "Expect: 100-continue")), &Limits{}, &req); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseRequest([]byte(shortHead), &Limits{}, &req); err != nil {
		t.Fatal(err)
	}
	if req.Framing != NoBody || req.ContentLength != 0 || req.ExpectContinue || req.Fields.Len() != 1 {
		t.Errorf("got %+v", req)
	}
}
