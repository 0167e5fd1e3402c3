package http1

import (
	"strings"
	"testing"
)

// ok makes a response of field lines behind a status line.
func ok(lines ...string) string {
	return "HTTP/1.1 200 OK\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
}

// status makes a response of a status line and field lines.
func status(s string, lines ...string) string {
	return s + "\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
}

var refusedResponses = []struct {
	rule  string
	cases []refused
}{
	{"RFC 9112 4: status line", []refused{
		{BadStatusLine, "\r\n" + ok()},
		{BadStatusLine, " " + ok()},
		{BadStatusLine, "<html>"},
		{BadStatusLine, "ICY 200 OK\r\n\r\n"},
		{BadStatusLine, "HTTP 200 OK\r\n\r\n"},
		{BadStatusLine, "SSH-2.0-OpenSSH_9.2\r\n"},
		{BadStatusLine, "\x15\x03\x01\x00\x02\x02\x46"},
		{BadStatusLine, "http/1.1 200 OK\r\n\r\n"},
		{BadStatusLine, "ICY 200 OK and more\r\n\r\n"},
		{BadVersion, status("HTTP/0.9 200 OK")},
		{BadVersion, status("HTTP/1,1 200 OK")},
		{BadStatusLine, status("HTTP/1.10 200 OK")},
		{VersionUnsupported, status("HTTP/2.0 200 OK")},
		{VersionUnsupported, status("HTTP/2.0 200 OK")},
		{BadStatusLine, status("HTTP/1.1\t200 OK")},
		{BadStatusLine, status("HTTP/1.1200 OK")},
		{BadStatus, status("HTTP/1.1  200 OK")},
		{BadStatus, status("HTTP/1.1 20 OK")},
		{BadStatus, status("HTTP/1.1 2000 OK")},
		{BadStatus, status("HTTP/1.1 099 OK")},
		{BadStatus, status("HTTP/1.1 000 OK")},
		{BadStatus, status("HTTP/1.1 -20 OK")},
		{BadStatus, status("HTTP/1.1 2x0 OK")},
		{BadStatus, status("HTTP/1.1 \xb2\xb00 OK")},
		{BadStatus, status("HTTP/1.1 200OK")},
		{BadStatus, status("HTTP/1.1 200\tOK")},
		{BadStatus, status("HTTP/1.1 OK 200")},
		{BadReason, status("HTTP/1.1 200 O\x00K")},
		{BadReason, status("HTTP/1.1 200 O\x7fK")},
		{BareCR, status("HTTP/1.1 200 O\rK")},
		{BareCR, status("HTTP/1.1 200\rX: y")},
		{BareLF, "HTTP/1.1 200 OK\nServer: x\n\n"},
		{BareLF, "HTTP/1.1 200\n\n"},
	}},
	{"RFC 9112 5: field lines", []refused{
		{BareLF, ok("X: a\nY: b")},
		{BareCR, ok("X: a\rY: b")},
		{ObsFold, ok("X: a", " b")},
		{ObsFold, ok(" X: a")},
		{SpaceBeforeColon, ok("Content-Length : 3")},
		{NoColon, ok("X")},
		{EmptyName, ok(": x")},
		{BadName, ok("X Y: a")},
		{ControlInValue, ok("X: \x00")},
		{LookalikeName, ok("Content_Length: 3")},
		{TooManyOptions, ok("Connection: " + strings.Repeat("a,", 40))},
	}},
	{"RFC 9112 6: framing", []refused{
		{LengthWithCoding, ok("Content-Length: 3", "Transfer-Encoding: chunked")},
		{LengthRepeated, ok("Content-Length: 3", "Content-Length: 3")},
		{LengthRepeated, ok("Content-Length: 3", "Content-Length: 4")},
		{BadLength, ok("Content-Length: 3, 3")},
		{BadLength, ok("Content-Length: -1")},
		{BadLength, ok("Content-Length: +3")},
		{BadLength, ok("Content-Length:")},
		{LengthOverflow, ok("Content-Length: 9223372036854775808")},
		{CodingInOldVersion, status("HTTP/1.0 200 OK", "Transfer-Encoding: chunked")},
		{ChunkedTwice, ok("Transfer-Encoding: chunked, chunked")},
		{ChunkedTwice, ok("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")},
		{CodingNotChunked, ok("Transfer-Encoding: gzip")},
		{CodingUnknown, ok("Transfer-Encoding: gzip, chunked")},
		{CodingUnknown, ok("Transfer-Encoding: identity")},
		{BadCoding, ok("Transfer-Encoding: chunked;x")},
		{BadCoding, ok("Transfer-Encoding:")},
		{ControlInValue, ok("Transfer-Encoding: \x0bchunked")},
		{FramedNoContent, status("HTTP/1.1 204 No Content", "Content-Length: 3")},
		{FramedNoContent, status("HTTP/1.1 204 No Content", "Transfer-Encoding: chunked")},
		{FramedNoContent, status("HTTP/1.1 100 Continue", "Content-Length: 3")},
		{FramedNoContent, status("HTTP/1.1 100 Continue", "Transfer-Encoding: chunked")},
		{FramedNoContent, status("HTTP/1.1 103 Early Hints", "Content-Length: 1")},
		{FramedNoContent, status("HTTP/1.1 101 Switching Protocols", "Transfer-Encoding: chunked",
			"Connection: upgrade", "Upgrade: websocket")},
	}},
	{"RFC 9110 7.8: switching protocols", []refused{
		{SwitchIncomplete, status("HTTP/1.1 101 Switching Protocols")},
		{SwitchIncomplete, status("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket")},
		{SwitchIncomplete, status("HTTP/1.1 101 Switching Protocols", "Connection: upgrade")},
		{SwitchIncomplete, status("HTTP/1.1 101 Switching Protocols", "Connection: upgrade", "Upgrade:")},
		{SwitchNotOffered, status("HTTP/1.1 101 Switching Protocols", "Connection: upgrade", "Upgrade: h2c")},
		{SwitchNotOffered, status("HTTP/1.1 101 Switching Protocols", "Connection: upgrade", "Upgrade: websocket, h2c")},
		{SwitchNotOffered, status("HTTP/1.1 101 Switching Protocols", "Connection: upgrade", "Upgrade: chat/3")},
		{SwitchNotOffered, status("HTTP/1.1 101 Switching Protocols", "Connection: upgrade", "Upgrade: web")},
	}},
}

func TestResponsesAreRefused(t *testing.T) {
	for _, table := range refusedResponses {
		t.Run(table.rule, func(t *testing.T) {
			for _, c := range table.cases {
				var resp ResponseHead
				n, err := ParseResponse([]byte(c.text), &Limits{}, Asked{Upgrade: "websocket, chat/2"}, &resp)
				if n != 0 || err != error(c.want) {
					t.Errorf("%q\n got %d, %v\nwant %v", c.text, n, err, c.want)
				}
			}
		})
	}
	text := status("HTTP/1.1 101 Switching Protocols", "Connection: upgrade", "Upgrade: websocket")
	var resp ResponseHead
	if _, err := ParseResponse([]byte(text), &Limits{}, Asked{}, &resp); err != SwitchNotAsked {
		t.Errorf("101 not asked for: got %v", err)
	}
	text = ok("X: " + strings.Repeat("a", 300))
	for i := range len(text) {
		_, err := ParseResponse([]byte(text[:i]), &Limits{HeadSize: 200}, Asked{}, &resp)
		if (err == HeadTooLarge) != (i >= 200) {
			t.Errorf("%d bytes with a limit of 200: got %v", i, err)
		}
	}
}

func TestResponsesAreAccepted(t *testing.T) {
	for _, c := range []struct {
		text      string
		asked     Asked
		status    int
		framing   Framing
		length    int64
		keepAlive bool
	}{
		{ok("Content-Length: 3"), Asked{}, 200, Length, 3, true},
		{ok("Content-Length: 0"), Asked{}, 200, NoBody, 0, true},
		{ok("Content-Length: 3", "Connection: close"), Asked{}, 200, Length, 3, false},
		{ok("Transfer-Encoding: chunked"), Asked{}, 200, Chunked, -1, true},
		{ok("Transfer-Encoding: Chunked"), Asked{}, 200, Chunked, -1, true},
		{ok(), Asked{}, 200, UntilClose, -1, false},
		{ok("Connection: keep-alive"), Asked{}, 200, UntilClose, -1, false},
		{ok("Content-Length: 3"), Asked{Head: true}, 200, NoBody, 0, true},
		{ok("Transfer-Encoding: chunked"), Asked{Head: true}, 200, NoBody, 0, true},
		{ok(), Asked{Head: true}, 200, NoBody, 0, true},
		{status("HTTP/1.1 304 Not Modified", "Content-Length: 3"), Asked{}, 304, NoBody, 0, true},
		{status("HTTP/1.1 304 Not Modified"), Asked{}, 304, NoBody, 0, true},
		{status("HTTP/1.1 204 No Content"), Asked{}, 204, NoBody, 0, true},
		{status("HTTP/1.1 204 No Content", "Content-Length: 0"), Asked{}, 204, NoBody, 0, true},
		{status("HTTP/1.1 100 Continue"), Asked{}, 100, NoBody, 0, true},
		{status("HTTP/1.1 103 Early Hints", "Link: </a>"), Asked{}, 103, NoBody, 0, true},
		{status("HTTP/1.1 205 Reset Content"), Asked{}, 205, UntilClose, -1, false},
		{status("HTTP/1.1 999 Odd", "Content-Length: 1"), Asked{}, 999, Length, 1, true},
		{status("HTTP/1.1 200", "Content-Length: 1"), Asked{}, 200, Length, 1, true},
		{status("HTTP/1.1 200 ", "Content-Length: 1"), Asked{}, 200, Length, 1, true},
		{status("HTTP/1.1 200 Tr\xe8s bien\t!", "Content-Length: 1"), Asked{}, 200, Length, 1, true},
		{status("HTTP/1.0 200 OK", "Content-Length: 3"), Asked{}, 200, Length, 3, false},
		{status("HTTP/1.0 200 OK", "Content-Length: 3", "Connection: Keep-Alive"), Asked{}, 200, Length, 3, true},
		{status("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"),
			Asked{Upgrade: "websocket, chat/2"}, 101, NoBody, 0, false},
		{status("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: WebSocket"), Asked{Upgrade: "chat, websocket"}, 101, NoBody, 0, false},
		{status("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: chat/2"), Asked{Upgrade: "chat"}, 101, NoBody, 0, false},
		{status("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: chat"), Asked{Upgrade: "chat/2"}, 101, NoBody, 0, false},
	} {
		for i := range len(c.text) + 1 {
			var resp ResponseHead
			n, err := ParseResponse([]byte(c.text[:i]), &Limits{}, c.asked, &resp)
			if i < len(c.text) {
				if n != 0 || err != nil {
					t.Errorf("%d bytes of %q: got %d, %v", i, c.text, n, err)
				}
				continue
			}
			if n != i || err != nil || resp.Status != c.status || resp.Framing != c.framing ||
				resp.ContentLength != c.length || resp.KeepAlive != c.keepAlive {
				t.Errorf("%q %+v\n got %d, %v, %+v", c.text, c.asked, n, err, resp)
			}
			if resp.Status == 204 && resp.Fields.Len() != 0 {
				t.Errorf("%q: Content-Length is kept", c.text)
			}
		}
	}
}
