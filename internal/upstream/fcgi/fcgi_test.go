package fcgi

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// record returns a record as a server sends it.
func record(kind byte, text string, padding int) []byte {
	b := appendHeader(nil, kind, len(text))
	b[6] = byte(padding)
	return append(append(b, text...), make([]byte, padding)...)
}

func end(status byte) []byte {
	return record(typeEnd, "\x00\x00\x00\x00"+string(status)+"\x00\x00\x00", 0)
}

// read gives a response to a reader in pieces, and returns the output.
func read(b []byte, piece int) (out []byte, r *Reader, err error) {
	r = &Reader{}
	var window []byte
	for {
		n, err := r.Next(window)
		window = window[n:]
		if err != nil {
			return out, r, err
		}
		if m := min(r.Output(), len(window)); m > 0 {
			out = append(out, window[:m]...)
			r.Consume(m)
			window = window[m:]
			continue
		}
		if len(b) == 0 {
			return out, r, nil
		}
		m := min(piece, len(b))
		window, b = append(window, b[:m]...), b[m:]
	}
}

func TestRecordsOfAResponse(t *testing.T) {
	many := bytes.Repeat(record(typeStderr, "", 3), maxEmpty+1)
	for _, c := range []struct {
		name     string
		response []byte
		out, err string
		errors   string
		ended    bool
		clean    bool
	}{
		{name: "usual", response: slices.Concat(record(typeStdout, "Status: 200\r\n\r\na", 3), record(typeStderr, "oops", 4), record(typeStdout, "b", 0), record(typeStdout, "", 0), end(0)), out: "Status: 200\r\n\r\nab", errors: "oops", ended: true, clean: true},
		{name: "cut off", response: record(typeStdout, "abc", 0)[:10], out: "ab"},
		{name: "no end", response: record(typeStdout, "abc", 7), out: "abc"},
		{name: "more behind the end", response: slices.Concat(end(0), []byte("x")), ended: true, clean: true},
		{name: "padding of the end is missing", response: record(typeEnd, "\x00\x00\x00\x00\x00\x00\x00\x00", 4)[:17], ended: true},
		{name: "http", response: []byte("HTTP/1.1 200 OK\r\n\r\n"), err: "does not speak FastCGI"},
		{name: "another request", response: []byte{1, 6, 0, 2, 0, 1, 0, 0, 'x'}, err: "request 2"},
		{name: "a type of requests", response: record(typeStdin, "x", 0), err: "type 5"},
		{name: "a long end", response: record(typeEnd, "123456789", 0), err: "9 bytes"},
		{name: "overloaded", response: end(2), err: "overloaded", ended: true, clean: true},
		{name: "unknown role", response: end(3), err: "status 3", ended: true, clean: true},
		{name: "empty records", response: many, err: "without content"},
		{name: "output after its end", response: slices.Concat(record(typeStdout, "", 0), record(typeStdout, "x", 0)), err: "after its end"},
		{name: "endless errors", response: bytes.Repeat(record(typeStderr, strings.Repeat("e", 60000), 0), 20), err: "standard error", errors: strings.Repeat("e", keptErrors)},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			out, r, err := read(c.response, piece)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if string(out) != c.out || !strings.Contains(text, c.err) || (text == "") != (c.err == "") || string(r.Errors()) != c.errors || r.Ended() != c.ended || r.Clean() != c.clean {
				t.Errorf("%s in pieces of %d: %q, %.80q, error %q, ended %v, clean %v; want %q, error %q", c.name, piece, out, r.Errors(), text, r.Ended(), r.Clean(), c.out, c.err)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(slices.Concat(record(typeStdout, "a\n\nb", 3), record(typeStderr, "oops", 4), end(0)), 3)
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, response []byte, piece int) {
		whole, a, errA := read(response, len(response)+1)
		parts, b, errB := read(response, 1+(piece&0xff))
		if (errA == nil) != (errB == nil) || errA == nil && (!bytes.Equal(whole, parts) || a.Ended() != b.Ended() || !bytes.Equal(a.Errors(), b.Errors())) {
			t.Errorf("whole %q, %v; in parts %q, %v", whole, errA, parts, errB)
		}
		if len(whole) > len(response) || len(a.Errors()) > keptErrors {
			t.Errorf("%d bytes of output and %d of errors from %d", len(whole), len(a.Errors()), len(response))
		}
		if n := HeadEnd(whole, 0); n > 0 {
			if head, err := AppendResponseHead(nil, whole[:n]); err == nil && (len(head) > 2*n+len("HTTP/1.1 200 \r\n\r\n") || !bytes.HasPrefix(head, []byte("HTTP/1.1 "))) {
				t.Errorf("%q becomes %q", whole[:n], head)
			}
		}
	})
}

func TestHeadsOfScripts(t *testing.T) {
	for _, c := range []struct{ head, want string }{
		{"Content-Type: text/html\r\n\r\n", "200 \r\nContent-Type: text/html\r\n\r\n"},
		{"A: b\nC: d\n\n", "200 \r\nA: b\r\nC: d\r\n\r\n"},
		{"Status: 404 Not Found\r\nA: b\r\n\r\n", "404 \r\nA: b\r\n\r\n"},
		{"status:503\n\n", "503 \r\n\r\n"},
		{"Location: /x\r\n\r\n", "302 \r\nLocation: /x\r\n\r\n"},
		{"Status: 301\nLocation: https://x/\n\n", "301 \r\nLocation: https://x/\r\n\r\n"},
		{"Transfer-Encoding: chunked\r\nConnection: close\r\nA: b\r\n\r\n", "200 \r\nA: b\r\n\r\n"},
		{"\r\n", "200 \r\n\r\n"},
		{"Status: 100\n\n", ""}, {"Status: 600\n\n", ""}, {"Status: 2000\n\n", ""}, {"Status: x\n\n", ""}, {"Status: 200\nStatus: 200\n\n", ""}, {"Status: -20\n\n", ""},
	} {
		for cut := range len(c.head) {
			if HeadEnd([]byte(c.head[:cut]), 0) != 0 {
				t.Errorf("%q has an end", c.head[:cut])
			}
			if n := HeadEnd([]byte(c.head+"body\n\n"), cut); n != len(c.head) {
				t.Errorf("%q searched from %d ends at %d", c.head, cut, n)
			}
		}
		got, err := AppendResponseHead(nil, []byte(c.head))
		if (err != nil) != (c.want == "") || err == nil && string(got) != "HTTP/1.1 "+c.want {
			t.Errorf("%q: %q, %v, want %q", c.head, got, err, c.want)
		}
	}
}

// paramsOf returns the parameters of an exchange.
func paramsOf(t *testing.T, ex *exchange.Exchange, host string) map[string]string {
	t.Helper()
	pairs, ok := Pairs(AppendParams(nil, ex, host))
	if !ok {
		t.Fatal("the parameters are incomplete")
	}
	out := map[string]string{}
	for _, p := range pairs {
		if _, twice := out[p[0]]; twice {
			t.Errorf("%s is there twice", p[0])
		}
		out[p[0]] = p[1]
	}
	return out
}

func TestParametersOfARequest(t *testing.T) {
	long := strings.Repeat("v", 300)
	ex := exchangetest.New(t, exchangetest.Head("POST", "/index.php/a%20b?x=1&y", "Content-Type: text/plain", "Cookie: a=1", "X-A: 1", "x-a: 2", "cookie: b=2",
		"Proxy: http://evil", "X_User: evil", "X-User: me", "X.User: evil", "Content_Length: 7", "X-Long: "+long), exchangetest.Content("12345"), exchangetest.Secure(), exchangetest.From("2001:db8::7"))
	ex.User = "anna"
	Scripts.Put(ex, Script{Filename: "/srv/www/index.php", Root: "/srv/www", Name: "/index.php", PathInfo: "/a b", Params: []Param{{"APP_ENV", "test"}, {"HTTPS", "off"}}})
	got := paramsOf(t, ex, "shop.example.com:8443")
	for name, want := range map[string]string{
		"SCRIPT_FILENAME": "/srv/www/index.php", "SCRIPT_NAME": "/index.php", "PATH_INFO": "/a b", "DOCUMENT_ROOT": "/srv/www", "DOCUMENT_URI": "/index.php/a b",
		"REQUEST_URI": "/index.php/a%20b?x=1&y", "QUERY_STRING": "x=1&y", "REQUEST_METHOD": "POST", "REMOTE_ADDR": "2001:db8::7", "REMOTE_USER": "anna",
		"SERVER_NAME": "shop.example.com", "SERVER_PORT": "8443", "SERVER_PROTOCOL": "HTTP/1.1", "GATEWAY_INTERFACE": "CGI/1.1", "REDIRECT_STATUS": "200",
		"CONTENT_LENGTH": "5", "CONTENT_TYPE": "text/plain", "HTTPS": "off", "APP_ENV": "test", "HTTP_HOST": "shop.example.com:8443", "HTTP_COOKIE": "a=1; b=2",
		"HTTP_X_A": "1, 2", "HTTP_X_USER": "me", "HTTP_X_LONG": long,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"HTTP_PROXY", "HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"} {
		if value, ok := got[name]; ok {
			t.Errorf("%s is %q", name, value)
		}
	}
	plain := paramsOf(t, exchangetest.New(t, func(ex *exchange.Exchange) { ex.ClientIP = netip.Addr{} }), "example.com")
	for name, want := range map[string]string{"SERVER_PORT": "80", "QUERY_STRING": "", "REMOTE_ADDR": "192.0.2.1", "SCRIPT_FILENAME": "/"} {
		if plain[name] != want {
			t.Errorf("%s is %q, want %q", name, plain[name], want)
		}
	}
	if _, ok := plain["HTTPS"]; ok {
		t.Error("HTTPS is set over http")
	}
}

func TestParametersOfAnySizeAreSentInRecords(t *testing.T) {
	params := appendPair(nil, "BIG", strings.Repeat("b", 200000))
	b := AppendBegin(nil, true, params)
	if want := []byte{1, typeBegin, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0}; !bytes.HasPrefix(b, want) {
		t.Fatalf("% x", b[:16])
	}
	var sent []byte
	for b = b[16:]; len(b) > 0; {
		n := int(b[4])<<8 | int(b[5])
		if b[1] != typeParams || len(b) < 8+n {
			t.Fatalf("% x", b[:8])
		}
		sent, b = append(sent, b[8:8+n]...), b[8+n:]
		if n == 0 && len(b) > 0 {
			t.Errorf("%d bytes follow the end", len(b))
		}
	}
	if !bytes.Equal(sent, params) {
		t.Errorf("%d bytes were sent, want %d", len(sent), len(params))
	}
	if _, ok := Pairs(params[:100]); ok {
		t.Error("incomplete parameters are read")
	}
}
