package http1

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"headgate/internal/proto/header"
)

func TestLinesAreWritten(t *testing.T) {
	var list header.List
	list.Add(header.Host, "a")
	list.AddField("X-Y", "")
	for _, c := range []struct{ got, want string }{
		{string(AppendRequestLine(nil, "GET", "/x?y")), "GET /x?y HTTP/1.1\r\n"},
		{string(AppendStatusLine(nil, 200, "")), "HTTP/1.1 200 OK\r\n"},
		{string(AppendStatusLine(nil, 200, "OK")), "HTTP/1.1 200 OK\r\n"},
		{string(AppendStatusLine(nil, 200, "Fine")), "HTTP/1.1 200 Fine\r\n"},
		{string(AppendStatusLine(nil, 299, "")), "HTTP/1.1 299 \r\n"},
		{string(AppendStatusLine(nil, 999, "Odd")), "HTTP/1.1 999 Odd\r\n"},
		{string(AppendFields(nil, &list)), "Host: a\r\nX-Y: \r\n"},
		{string(AppendContentLength(nil, 10)), "Content-Length: 10\r\n"},
		{string(AppendChunk(nil, []byte("0123456789abcdef"))), "10\r\n0123456789abcdef\r\n"},
		{string(AppendTrailers(nil, &list)), "0\r\nHost: a\r\nX-Y: \r\n\r\n"},
		{string(AppendTrailers(nil, &header.List{})), LastChunk},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestNamesAndValuesAreJudged(t *testing.T) {
	for s, want := range map[string]bool{"X-Y_z.1": true, "": false, "a b": false, "a:": false, "\xff": false} {
		if ValidName(s) != want {
			t.Errorf("name %q: got %v", s, !want)
		}
	}
	for s, want := range map[string]bool{"": true, "a \t\xff": true, "a\r\nb": false, "\x00": false, " a": false, "a\t": false} {
		if ValidValue(s) != want {
			t.Errorf("value %q: got %v", s, !want)
		}
	}
}

func TestDateIsFormattedOnceASecond(t *testing.T) {
	var d Date
	at := time.Date(2025, 1, 17, 9, 30, 0, 0, time.FixedZone("", 3600))
	if got, want := d.At(at), at.UTC().Format(http.TimeFormat); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := d.At(at.Add(time.Second)), "Fri, 17 Jan 2025 08:30:01 GMT"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { d.At(at.Add(time.Second)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				d.At(at.Add(time.Duration(i) * time.Second))
			}
		})
	}
	wg.Wait()
}

func TestNothingIsAllocated(t *testing.T) {
	lim := &Limits{}
	req, resp, d := &RequestHead{}, &ResponseHead{}, &Decoder{}
	browser, bad, server := []byte(browserHead), []byte(get("X : y")), []byte(serverHead)
	nominating := []byte(get("Connection: x-a, x-b", "X-A: 1", "X-B: 2"))
	absolute := []byte(line("GET http://[::1]:80/x HTTP/1.1"))
	body := append(AppendChunk(nil, []byte("hello")), LastChunk...)
	out := make([]byte, 0, 4096)
	for name, f := range map[string]func(){
		"request":  func() { _, _ = ParseRequest(browser, lim, req) },
		"absolute": func() { _, _ = ParseRequest(absolute, lim, req) },
		"refusal":  func() { _, _ = ParseRequest(bad, lim, req) },
		"partial":  func() { _, _ = ParseRequest(browser[:100], lim, req) },
		"response": func() { _, _ = ParseResponse(server, lim, Asked{}, resp) },
		"strip":    func() { _, _ = ParseRequest(nominating, lim, req); StripHopByHop(&req.Fields) },
		"chunked":  func() { d.Reset(lim); _, _, _ = d.Decode(out[:100], body) },
		"scanner":  func() { var s Scanner; s.Ready(browser, lim) },
		"write": func() {
			out = AppendStatusLine(out[:0], 200, "")
			out = AppendFields(out, &resp.Fields)
			out = AppendChunkHeader(out, 1<<20)
		},
	} {
		f()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
