package http1

import (
	"fmt"
	"strings"
	"testing"
)

// refused is a message that breaks a rule, and the rule.
type refused struct {
	want Error
	text string
}

// get makes a request of field lines behind a request line and Host.
func get(lines ...string) string {
	return "GET / HTTP/1.1\r\nHost: a.example\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
}

// post is get for a method with a body.
func post(lines ...string) string {
	return "POST" + strings.TrimPrefix(get(lines...), "GET")
}

// line makes a request of a request line.
func line(s string) string { return s + "\r\nHost: a.example\r\n\r\n" }

// host makes a request of a Host value.
func host(s string) string { return "GET / HTTP/1.1\r\nHost: " + s + "\r\n\r\n" }

var refusedRequests = []struct {
	rule  string
	cases []refused
}{
	{"RFC 9112 2.2: one empty line at most, no bare CR or LF", []refused{
		{EmptyLines, "\r\n\r\n" + get()},
		{EmptyLines, "\r\n\n" + get()},
		{BareLF, "\n" + get()},
		{BareCR, "\r" + get()},
		{BareCR, "\rGET / HTTP/1.1\r\n"},
		{BareLF, "GET / HTTP/1.1\nHost: a\n\n"},
		{BareLF, "GET / HTTP/1.1\nHost: a\r\n\r\n"},
		{BareLF, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
		{BareLF, "GET / HTTP/1.1\r\nHost: a\n\n"},
		{BareLF, "GET / HTTP/1.1\r\nHost: a\r\n\n"},
		{BareLF, "GET /\n"},
		{BareLF, "GET\n"},
		{BareLF, get("X: a\nContent-Length: 3")},
		{BareLF, get("X\n: a")},
		{BareLF, get("Transfer-Encoding:\nchunked")},
		{BareCR, get("X: a\rContent-Length: 3")},
		{BareCR, get("X: a\r\rY: b")},
		{BareCR, get("X: a\r")},
		{BareCR, get("X: \r\x00")},
		{BareCR, "GET / HTTP/1.1\rHost: a\r\r"},
		{BareCR, "GET /\rHTTP/1.1\r\nHost: a\r\n\r\n"},
		{BareCR, "GET / HTTP/1.1\r\nHost: a\r\n\rX"},
		{BareCR, get("Transfer-Encoding: chunked\r")},
		{BareCR, get("X\rY: a")},
	}},
	{"RFC 9112 2.1: no white space before the first field, none in the request line but two spaces", []refused{
		{BadMethod, " " + get()},
		{BadMethod, "\t" + get()},
		{BadMethod, "\r\n " + get()},
		{ObsFold, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
		{ObsFold, "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"},
		{ObsFold, "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n"},
		{BadRequestLine, line("GET  / HTTP/1.1")},
		{BadRequestLine, line("GET /  HTTP/1.1")},
		{BadRequestLine, line("GET  HTTP/1.1")},
		{BadRequestLine, line("GET / HTTP/1.1 ")},
		{BadRequestLine, line("GET / HTTP/1.1\t")},
		{BadRequestLine, line("GET / HTTP/1.1 HTTP/1.1")},
		{BadVersion, line("GET / /admin HTTP/1.1")},
		{BadMethod, line("GET\t/ HTTP/1.1")},
		{BadTargetByte, line("GET /\tHTTP/1.1")},
		{BadTargetByte, line("GET /\x0bHTTP/1.1")},
		{BadTargetByte, line("GET /\x0cHTTP/1.1")},
		{BadTargetByte, line("GET /\x85HTTP/1.1")},
		{BadTargetByte, line("GET /\xa0HTTP/1.1")},
		{BadMethod, line("GET\x0b/ HTTP/1.1")},
		{BadMethod, line("GET\x00 / HTTP/1.1")},
	}},
	{"RFC 9112 2.3: version", []refused{
		{BadVersion, line("GET / http/1.1")},
		{BadVersion, line("GET / Http/1.1")},
		{BadVersion, line("GET / HTTP/1.10")},
		{BadVersion, line("GET / HTTP/1.01")},
		{BadVersion, line("GET / HTTP/01.1")},
		{BadVersion, line("GET / HTTP/1,1")},
		{BadVersion, line("GET / HTTP/1 1")},
		{BadVersion, line("GET / HTTP/1.")},
		{BadVersion, line("GET / HTTP/.1")},
		{BadVersion, line("GET / HTTP/1.x")},
		{BadVersion, line("GET / HTTP/+1.1")},
		{BadVersion, line("GET / HTTP/-1.1")},
		{BadVersion, line("GET / HTTP 1.1")},
		{BadVersion, line("GET / HTTPS/1.1")},
		{BadVersion, line("GET / ICY/1.1")},
		{BadVersion, line("GET / HTTP/1.1\x00")},
		{BadVersion, line("GET / HTTP/0.9")},
		{BadVersion, line("GET / HTTP/0.0")},
		{BadVersion, line("GET / ")},
		{BadVersion, line("GET / HTTP/\x31\x2e\xb1")},
		{BadRequestLine, line("GET /")},
		{BadRequestLine, "GET /\r\n"},
		{BadMethod, line("GET")},
		{VersionUnsupported, line("GET / HTTP/2.0")},
		{VersionUnsupported, line("GET / HTTP/3.0")},
		{VersionUnsupported, line("GET / HTTP/4.1")},
		{VersionUnsupported, line("GET / HTTP/9.9")},
		{VersionUnsupported, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	}},
	{"RFC 9112 3.1: method", []refused{
		{BadMethod, line("G@T / HTTP/1.1")},
		{BadMethod, line("GET: / HTTP/1.1")},
		{BadMethod, line("(GET) / HTTP/1.1")},
		{BadMethod, line("\"GET\" / HTTP/1.1")},
		{BadMethod, line("GE\xcc\x81T / HTTP/1.1")},
		{BadMethod, line("G,T / HTTP/1.1")},
		{BadMethod, line("G/T / HTTP/1.1")},
		{BadMethod, line(" / HTTP/1.1")},
		{BadMethod, line("/ HTTP/1.1")},
		{BadMethod, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{MethodTooLong, line(strings.Repeat("A", 33) + " / HTTP/1.1")},
		{MethodTooLong, strings.Repeat("A", 33)},
		{ConnectRefused, line("CONNECT a.example:443 HTTP/1.1")},
		{ConnectRefused, line("CONNECT / HTTP/1.1")},
		{ConnectRefused, line("CONNECT http://a.example/ HTTP/1.1")},
		{ConnectRefused, line("CONNECT [::1]:22 HTTP/1.1")},
	}},
	{"RFC 9112 3.2: target", []refused{
		{BadTargetForm, line("GET a.example:80 HTTP/1.1")},
		{BadTargetForm, line("GET index.html HTTP/1.1")},
		{BadTargetForm, line("GET ?q HTTP/1.1")},
		{BadTargetForm, line("GET @evil/ HTTP/1.1")},
		{BadTargetForm, line("GET \\\\evil\\x HTTP/1.1")},
		{BadTargetForm, line("GET *x HTTP/1.1")},
		{BadTargetForm, line("OPTIONS ** HTTP/1.1")},
		{BadTargetForm, line("OPTIONS */ HTTP/1.1")},
		{BadTargetForm, line("GET http:/a.example/ HTTP/1.1")},
		{BadTargetForm, line("GET http:a.example HTTP/1.1")},
		{BadTargetForm, line("GET ://a.example/ HTTP/1.1")},
		{BadTargetForm, line("GET javascript:alert(1) HTTP/1.1")},
		{AsteriskMethod, line("GET * HTTP/1.1")},
		{AsteriskMethod, line("POST * HTTP/1.1")},
		{AsteriskMethod, line("options * HTTP/1.1")},
		{BadScheme, line("GET ftp://a.example/ HTTP/1.1")},
		{BadScheme, line("GET ws://a.example/ HTTP/1.1")},
		{BadScheme, line("GET file:///etc/passwd HTTP/1.1")},
		{BadScheme, line("GET httpx://a.example/ HTTP/1.1")},
		{BadTargetByte, line("GET /#frag HTTP/1.1")},
		{BadTargetByte, line("GET /?q#frag HTTP/1.1")},
		{BadTargetByte, line("GET http://a.example/#x HTTP/1.1")},
		{BadTargetByte, line("GET /\x00 HTTP/1.1")},
		{BadTargetByte, line("GET /\x1f HTTP/1.1")},
		{BadTargetByte, line("GET /\x7f HTTP/1.1")},
		{BadTargetByte, line("GET /\xc3\xa9 HTTP/1.1")},
		{BadTargetByte, line("GET /\xff HTTP/1.1")},
		{BadAuthority, line("GET http:///x HTTP/1.1")},
		{BadAuthority, line("GET http://?x HTTP/1.1")},
		{BadAuthority, line("GET http:// HTTP/1.1")},
		{BadAuthority, line("GET http://a.example:x/ HTTP/1.1")},
		{BadAuthority, line("GET http://a.example:99999/ HTTP/1.1")},
		{BadAuthority, line("GET http://a,b/ HTTP/1.1")},
		{BadAuthority, line("GET http://a.example\\b/ HTTP/1.1")},
		{BadAuthority, line("GET http://[::1/ HTTP/1.1")},
		{Userinfo, line("GET http://u@a.example/ HTTP/1.1")},
		{Userinfo, line("GET http://u:p@a.example/ HTTP/1.1")},
		{Userinfo, line("GET http://a.example:80@evil/ HTTP/1.1")},
		{BadHost, "GET http://a.example/ HTTP/1.1\r\nHost: b c\r\n\r\n"},
		{HostMissing, "GET http://a.example/ HTTP/1.1\r\n\r\n"},
	}},
	{"RFC 9112 3.2 and RFC 9110 7.2: Host", []refused{
		{HostMissing, "GET / HTTP/1.1\r\n\r\n"},
		{HostMissing, "GET / HTTP/1.1\r\nX-Host: a\r\n\r\n"},
		{HostRepeated, get("Host: a.example")},
		{HostRepeated, get("Host: b.example")},
		{HostRepeated, get("host: b.example")},
		{HostRepeated, get("HOST:")},
		{HostRepeated, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b\r\n\r\n"},
		{HostRepeated, "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"},
		{BadHost, "GET / HTTP/1.0\r\nHost:\r\n\r\n"},
		{BadHost, host("")},
		{BadHost, host(" ")},
		{BadHost, host("a b")},
		{BadHost, host("a\tb")},
		{BadHost, host("a, b")},
		{BadHost, host("a,b")},
		{BadHost, host("a/b")},
		{BadHost, host("/")},
		{BadHost, host("http://a")},
		{BadHost, host("a\\b")},
		{BadHost, host("a?b")},
		{BadHost, host("a#b")},
		{BadHost, host("a%00")},
		{BadHost, host("a%")},
		{BadHost, host("a%6")},
		{BadHost, host("a%6g")},
		{BadHost, host("a%2Fb")},
		{BadHost, host("a%3A80")},
		{BadHost, host("a%40b")},
		{BadHost, host("a%2Cb")},
		{BadHost, host("a%3Bb")},
		{BadHost, host("a%25b")},
		{BadHost, host("a%20b")},
		{BadHost, host("a%0D%0Ab")},
		{BadHost, host("a%C3%A9")},
		{BadHost, host("%2Ea")},
		{BadHost, host("a.%2eb")},
		{BadHost, host("%5B::1%5D")},
		{BadHost, host("a!,b")},
		{BadHost, host("a::")},
		{BadHost, host("a:00")},
		{BadHost, host("a:0065536")},
		{BadHost, host("a:00000000000000080")},
		{BadHost, host("a:%380")},
		{BadHost, host("\"a\"")},
		{BadHost, host("<a>")},
		{BadHost, host("a|b")},
		{BadHost, host("a\xc3\xa9")},
		{BadHost, host("\xe3\x80\x82a")},
		{BadHost, host(".")},
		{BadHost, host("..")},
		{BadHost, host(".a")},
		{BadHost, host("a..b")},
		{BadHost, host("a..")},
		{BadHost, host(":")},
		{BadHost, host(":80")},
		{BadHost, host("a:0")},
		{BadHost, host("a:65536")},
		{BadHost, host("a:100000")},
		{BadHost, host("a:-1")},
		{BadHost, host("a:+80")},
		{BadHost, host("a:8 0")},
		{BadHost, host("a: 80")},
		{BadHost, host("a :80")},
		{BadHost, host("a:80:80")},
		{BadHost, host("a:http")},
		{BadHost, host("a:80/x")},
		{BadHost, host("a:80,b")},
		{BadHost, host("::1")},
		{BadHost, host("[::1")},
		{BadHost, host("::1]")},
		{BadHost, host("[]")},
		{BadHost, host("[a]")},
		{BadHost, host("[1.2.3.4]")},
		{BadHost, host("[::1]x")},
		{BadHost, host("[::1]80")},
		{BadHost, host("[::1]:x")},
		{BadHost, host("[::1%25eth0]")},
		{BadHost, host("[fe80::1%eth0]")},
		{BadHost, host("[v1.a]")},
		{BadHost, host("[::1][::1]")},
		{BadHost, host("[::g]")},
		{BadHost, host("[1:2:3:4:5:6:7:8:9]")},
		{BadHost, host(strings.Repeat("a", 256))},
		{Userinfo, host("u@a")},
		{Userinfo, host("u:p@a")},
		{Userinfo, host("a:80@b")},
		{Userinfo, host("@a")},
		{Userinfo, host("[::1]@a")},
	}},
}

func TestRequestsAreRefused(t *testing.T) {
	checkRequests(t, refusedRequests)
}

func checkRequests(t *testing.T, tables []struct {
	rule  string
	cases []refused
}) {
	for _, table := range tables {
		t.Run(table.rule, func(t *testing.T) {
			for _, c := range table.cases {
				checkRefused(t, c)
			}
		})
	}
}

// checkRefused refuses a request whole, and piece by piece.
func checkRefused(t *testing.T, c refused) {
	t.Helper()
	var req RequestHead
	n, err := ParseRequest([]byte(c.text), &Limits{StrictTarget: true}, &req)
	if n != 0 || err != error(c.want) {
		t.Errorf("%q\n got %d, %v\nwant %v", c.text, n, err, c.want)
	}
	if _, e := inPieces([]byte(c.text), 1, &Limits{StrictTarget: true}); e == none {
		t.Errorf("%q is not refused byte by byte", c.text)
	}
	if s := c.want.Status(); s < 400 || s > 505 {
		t.Errorf("%v has status %d", c.want, s)
	}
}

// inPieces does what a front does with a request that comes in pieces: the
// parser is tried once, and again when the scanner says so. It returns the size
// of the head, or the error. A head that is not there whole is none of both.
func inPieces(text []byte, size int, lim *Limits) (int, Error) {
	var req RequestHead
	var s Scanner
	for have := min(size, len(text)); ; have = min(have+size, len(text)) {
		if have <= size || s.Ready(text[:have], lim) {
			n, err := ParseRequest(text[:have], lim, &req)
			if err != nil {
				return 0, err.(Error)
			}
			if n > 0 {
				return n, none
			}
			if have > size {
				panic(fmt.Sprintf("ready, but no verdict on %q", text[:have]))
			}
		}
		if have == len(text) {
			n, err := ParseRequest(text, lim, &req)
			if err != nil {
				return n, err.(Error)
			}
			return n, none
		}
	}
}
