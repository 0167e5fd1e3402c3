package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// seen is what a source saw of a request.
type seen struct {
	method, host, path, query, body string
	length                          int64
	bodiless                        bool
	fields                          []string
	trailer                         []string
}

// recorder answers 200 and tells what it saw.
func recorder(got chan<- seen) option {
	return source(func(ex *exchange.Exchange) *exchange.Answer {
		rq := &ex.Request
		s := seen{method: rq.Method, host: rq.Host, path: rq.Path, query: rq.Query, length: rq.Length, bodiless: rq.Body == nil}
		for _, f := range rq.Header.All() {
			if f.ID != header.Via && !f.ID.ClaimsClient() {
				s.fields = append(s.fields, f.Name+": "+f.Value)
			}
		}
		if rq.Body != nil {
			b, err := io.ReadAll(reader{rq.Body})
			if s.body = string(b); err != nil {
				s.body += " " + err.Error()
			}
		}
		for _, f := range rq.Trailer.All() {
			s.trailer = append(s.trailer, f.Name+": "+f.Value)
		}
		got <- s
		ex.Response.Status = 200
		return nil
	})
}

type reader struct{ exchange.Body }

func TestRequestsAreUnderstood(t *testing.T) {
	head := func(more ...string) []string { return append(bytesFields(get), more...) }
	tests := []struct {
		name   string
		fields []string
		want   seen
	}{
		{"plain", head(), seen{method: "GET", host: "example.com", path: "/", bodiless: true}},
		{"query", []string{":method", "GET", ":path", "/a?b?c", ":scheme", "https", ":authority", "h:8080"},
			seen{method: "GET", host: "h:8080", path: "/a", query: "?b?c", bodiless: true}},
		{"Host only", []string{":method", "GET", ":path", "/", ":scheme", "http", "host", "h"},
			seen{method: "GET", host: "h", path: "/", bodiless: true}},
		{"Host as :authority", head("host", "EXAMPLE.com:80"), seen{method: "GET", host: "example.com", path: "/", bodiless: true}},
		{"cookie crumbs", head("cookie", "a=b", "x-y", "z", "cookie", "c=d", "cookie", "e=f"),
			seen{method: "GET", host: "example.com", path: "/", bodiless: true, fields: []string{"cookie: a=b; c=d; e=f", "x-y: z"}}},
		{"hop by hop", head("te", "trailers", "proxy-authorization", "x", "trailer", "y"),
			seen{method: "GET", host: "example.com", path: "/", bodiless: true}},
		{"asterisk", []string{":method", "OPTIONS", ":path", "*", ":scheme", "http", ":authority", "h"},
			seen{method: "OPTIONS", host: "h", path: "*", bodiless: true}},
		{"obs-text", head("x-y", "\xe9"), seen{method: "GET", host: "example.com", path: "/", bodiless: true, fields: []string{"x-y: \xe9"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan seen, 1)
			p := newProxy(t, "", recorder(got))
			c := p.dial()
			c.request(1, true, tt.fields...)
			c.flush()
			if rs := c.await(1); rs.status != "200" {
				t.Fatalf("got %+v", rs)
			}
			if s := <-got; fmt.Sprint(s) != fmt.Sprint(tt.want) {
				t.Errorf("got %+v, want %+v", s, tt.want)
			}
		})
	}
}

// malformed holds requests that break RFC 9113, section 8, by what is wrong with
// them.
func malformed() map[string][]string {
	head := func(more ...string) []string { return append(bytesFields(get), more...) }
	return map[string][]string{
		"no method":             {":scheme", "http", ":authority", "h", ":path", "/"},
		"no scheme":             {":method", "GET", ":authority", "h", ":path", "/"},
		"no path":               {":method", "GET", ":scheme", "http", ":authority", "h"},
		"empty path":            {":method", "GET", ":scheme", "http", ":authority", "h", ":path", ""},
		"relative path":         {":method", "GET", ":scheme", "http", ":authority", "h", ":path", "a"},
		"absolute path":         {":method", "GET", ":scheme", "http", ":authority", "h", ":path", "http://h/"},
		"space in path":         {":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/a b"},
		"fragment in path":      {":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/a#b"},
		"newline in path":       {":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/a\r\nx: y"},
		"asterisk with GET":     {":method", "GET", ":scheme", "http", ":authority", "h", ":path", "*"},
		"space in method":       {":method", "GET /x HTTP/1.1\r\n", ":scheme", "http", ":authority", "h", ":path", "/"},
		"unknown scheme":        {":method", "GET", ":scheme", "ftp", ":authority", "h", ":path", "/"},
		"no authority":          {":method", "GET", ":scheme", "http", ":path", "/"},
		"empty authority":       {":method", "GET", ":scheme", "http", ":authority", "", ":path", "/"},
		"userinfo":              {":method", "GET", ":scheme", "http", ":authority", "u@h", ":path", "/"},
		"path in authority":     {":method", "GET", ":scheme", "http", ":authority", "h/x", ":path", "/"},
		"other Host":            head("host", "other.example"),
		"two Hosts":             head("host", "example.com", "host", "example.com"),
		"twice method":          head(":method", "GET"),
		"pseudo behind":         head("x", "y", ":path", "/"),
		"unknown pseudo":        head(":protocol", "websocket"),
		"status":                head(":status", "200"),
		"capital":               head("X-y", "z"),
		"space in name":         head("x y", "z"),
		"colon in name":         head("x:y", "z"),
		"empty name":            head("", "z"),
		"newline in value":      head("x", "y\r\nz: a"),
		"zero in value":         head("x", "y\x00"),
		"leading space":         head("x", " y"),
		"trailing tab":          head("x", "y\t"),
		"connection":            head("connection", "close"),
		"keep-alive":            head("keep-alive", "1"),
		"proxy-connection":      head("proxy-connection", "close"),
		"transfer-encoding":     head("transfer-encoding", "chunked"),
		"upgrade":               head("upgrade", "websocket"),
		"te":                    head("te", "gzip"),
		"length without body":   head("content-length", "1"),
		"bad length":            head("content-length", "+1"),
		"two lengths":           head("content-length", "0", "content-length", "0"),
		"huge length":           head("content-length", "99999999999999999999"),
		"underscored length":    head("content_length", "1"),
		"underscored coding":    head("transfer_encoding", "chunked"),
		"CONNECT with a path":   {":method", "CONNECT", ":scheme", "http", ":authority", "h", ":path", "/"},
		"CONNECT without where": {":method", "CONNECT"},
	}
}

func TestMalformedRequestsAreReset(t *testing.T) {
	p := newProxy(t, "", text("x"))
	for name, fields := range malformed() {
		t.Run(name, func(t *testing.T) {
			c := p.dial()
			c.request(1, true, fields...)
			c.request(3, true, get...)
			c.flush()
			if rs := c.await(1); !rs.gone || rs.reset != http2.ErrCodeProtocol {
				t.Errorf("got %+v", rs)
			}
			if e := p.logged(); e.reason != exchange.BadRequest || e.cause == "" {
				t.Errorf("logged %+v", e)
			}
			if rs := c.await(3); rs.status != "200" {
				t.Errorf("the next request got %+v", rs)
			}
			p.logged()
		})
	}
}

func TestRefusedRequestsAreAnswered(t *testing.T) {
	long := strings.Repeat("a", 20<<10)
	tests := []struct {
		name, status string
		fields       []string
	}{
		{"CONNECT", "501", []string{":method", "CONNECT", ":authority", "h:443"}},
		{"long method", "501", []string{":method", long[:40], ":scheme", "http", ":authority", "h", ":path", "/"}},
		{"long path", "414", []string{":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/" + long}},
		{"large head", "431", append(bytesFields(get), "a", long, "b", long)},
		{"many fields", "431", append(bytesFields(get), slices.Repeat([]string{"a", "b"}, 201)...)},
		{"expectation", "400", append(bytesFields(get), "expect", "x")},
	}
	p := newProxy(t, "", text("x"))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := p.dial()
			block := c.block(tt.fields...)
			first := block[:min(len(block), 16<<10)]
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first, EndStream: true, EndHeaders: len(first) == len(block)})
			for block = block[len(first):]; len(block) > 0; {
				n := min(len(block), 16<<10)
				c.WriteContinuation(1, n == len(block), block[:n])
				block = block[n:]
			}
			c.flush()
			if rs := c.await(1); rs.status != tt.status {
				t.Errorf("got %+v", rs)
			}
			c.request(3, true, get...)
			c.flush()
			if rs := c.await(3); rs.status != "200" {
				t.Errorf("the next request got %+v", rs)
			}
		})
	}
}

func TestBodiesAndTrailers(t *testing.T) {
	got := make(chan seen, 1)
	p := newProxy(t, "", recorder(got))
	c := p.dial()
	send := func(id uint32, fields []string, trailer []string, pieces ...string) {
		c.request(id, false, fields...)
		for i, piece := range pieces {
			c.WriteDataPadded(id, trailer == nil && i == len(pieces)-1, []byte(piece), make([]byte, i))
		}
		if trailer != nil {
			c.request(id, true, trailer...)
		}
		c.flush()
	}
	send(1, append(bytesFields(post), "content-length", "6"), nil, "abc", "def")
	if s := <-got; s.length != 6 || s.body != "abcdef" {
		t.Errorf("got %+v", s)
	}
	send(3, post, []string{"x-sum", "1", "content-length", "5", "x_forwarded_for", "1"}, "abc")
	if s := <-got; s.length != -1 || s.body != "abc" || fmt.Sprint(s.trailer) != "[x-sum: 1]" {
		t.Errorf("got %+v", s)
	}
	send(5, append(bytesFields(post), "content-length", "0"), nil, "")
	if s := <-got; s.length != 0 || !s.bodiless {
		t.Errorf("got %+v", s)
	}
	// What differs from Content-Length is malformed, on either side.
	for i, pieces := range [][]string{{"ab"}, {"abcd"}, {"ab", "cd"}} {
		id := uint32(7 + 2*i)
		send(id, append(bytesFields(post), "content-length", "3"), nil, pieces...)
		if rs := c.await(id); rs.reset != http2.ErrCodeProtocol {
			t.Errorf("got %+v", rs)
		}
	}
}

// What was dropped, as nobody wants the body any more, is missing: who is reading still does
// not take what came before for all.
func TestABodyThatIsGivenUpDoesNotEndAsIfItWereWhole(t *testing.T) {
	here, ended := make(chan struct{}), make(chan error, 1)
	p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
		body, b := ex.Request.Body, make([]byte, 64<<10)
		body.Read(b[:1]) // of the first piece
		<-here
		body.Close()
		var err error
		for err == nil {
			_, err = body.Read(b)
		}
		ended <- err
		ex.Response.Status = 200
		return nil
	}))
	c := p.dial()
	c.request(1, false, post...)
	for i := range 3 {
		c.WriteData(1, i == 2, make([]byte, 16<<10))
	}
	c.WritePing(false, [8]byte{1})
	c.flush()
	if f, err := c.next(); err != nil || f.Header().Type != http2.FramePing {
		t.Fatalf("got %v, %v", f, err)
	}
	close(here)
	if err := <-ended; err == io.EOF {
		t.Error("the body ended as if it were whole")
	}
}

func TestClientThatExpects100(t *testing.T) {
	got := make(chan seen, 1)
	p := newProxy(t, "", recorder(got))
	c := p.dial()
	c.request(1, false, append(bytesFields(post), "expect", "100-continue", "content-length", "3")...)
	c.flush()
	f, err := c.next()
	if m, ok := f.(*http2.MetaHeadersFrame); !ok || m.PseudoValue("status") != "100" {
		t.Fatalf("got %v, %v", f, err)
	}
	c.WriteData(1, true, []byte("abc"))
	c.flush()
	if rs := c.await(1); rs.status != "200" || (<-got).body != "abc" {
		t.Errorf("got %+v", rs)
	}
}

func TestResponsesAreWhole(t *testing.T) {
	addr := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hints":
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			w.WriteHeader(200)
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			w.Write([]byte("abc"))
			w.(http.Flusher).Flush()
			w.Header().Set("X-Sum", "7")
		case "/none":
			w.WriteHeader(204)
		case "/same":
			w.Header().Set("ETag", `"x"`)
			w.WriteHeader(304)
		case "/broken":
			w.Header().Set("Content-Length", "10")
			w.Write([]byte("abc"))
		case "/large":
			w.Header().Set("X-Large", strings.Repeat("v", 40<<10))
			w.Write(bytes.Repeat([]byte("x"), 100<<10))
		default:
			w.Write([]byte("abc"))
		}
	})
	p := newProxy(t, addr)
	ask := func(method, path string) *response {
		c := p.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		c.MaxHeaderListSize = 1 << 20
		c.WriteWindowUpdate(0, 1<<20)
		c.request(1, true, ":method", method, ":scheme", "http", ":authority", "h", ":path", path)
		c.flush()
		return c.await(1)
	}
	if rs := ask("GET", "/hints"); fmt.Sprint(rs.interim) != "[103]" || rs.status != "200" {
		t.Errorf("got %+v", rs)
	}
	if rs := ask("GET", "/trailer"); string(rs.body) != "abc" || len(rs.trailer) != 1 || rs.trailer[0].Name != "x-sum" {
		t.Errorf("got %+v", rs)
	}
	if rs := ask("HEAD", "/x"); len(rs.body) > 0 || rs.field("content-length") != "3" || rs.field("date") == "" {
		t.Errorf("got %+v", rs)
	}
	if rs := ask("GET", "/none"); rs.status != "204" || rs.field("content-length") != "" {
		t.Errorf("got %+v", rs)
	}
	if rs := ask("GET", "/same"); rs.status != "304" || rs.field("etag") != `"x"` {
		t.Errorf("got %+v", rs)
	}
	if rs := ask("GET", "/broken"); rs.reset != http2.ErrCodeInternal {
		t.Errorf("got %+v", rs)
	}
	if rs := ask("GET", "/large"); len(rs.body) != 100<<10 || len(rs.field("x-large")) != 40<<10 {
		t.Errorf("got %d bytes and %d of field", len(rs.body), len(rs.field("x-large")))
	}
}

func TestEarlyAnswerEndsTheRequest(t *testing.T) {
	p := newProxy(t, "", text("early"))
	c := p.dial()
	c.request(1, false, post...)
	c.WriteData(1, false, make([]byte, 10000))
	c.flush()
	rs := c.await(1)
	if rs.status != "200" || string(rs.body) != "early" {
		t.Fatalf("got %+v", rs)
	}
	f, err := c.next()
	if r, ok := f.(*http2.RSTStreamFrame); !ok || r.ErrCode != http2.ErrCodeNo {
		t.Fatalf("got %v, %v", f, err)
	}
	// What was under way is ignored.
	c.WriteData(1, false, make([]byte, 10000))
	c.request(3, true, get...)
	c.flush()
	if rs := c.await(3); rs.status != "200" {
		t.Fatalf("got %+v", rs)
	}
}
