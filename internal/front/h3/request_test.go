package h3_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Codes of RFC 9114, section 8.1, and RFC 9204, section 8.3.
const (
	codeNone          = 0x100
	codeCreation      = 0x103
	codeCritical      = 0x104
	codeUnexpected    = 0x105
	codeFrame         = 0x106
	codeLoad          = 0x107
	codeID            = 0x108
	codeSettings      = 0x109
	codeMissing       = 0x10a
	codeIncomplete    = 0x10d
	codeMessage       = 0x10e
	codeDecompression = 0x200
	codeEncoder       = 0x201
	codeDecoder       = 0x202
)

func TestMalformedRequestsAreReset(t *testing.T) {
	// The end of a stream may come in a packet of its own. That a body is too short
	// shows to who reads it then.
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		if ex.Request.Body != nil {
			if _, err := io.Copy(io.Discard, ex.Request.Body); err != nil {
				return exchange.Fail(exchange.BadRequest, err.Error())
			}
		}
		return text("x")(ex)
	}, nil)
	c := f.dial()
	without := func(name string) []string {
		var out []string
		for i := 0; i < len(get); i += 2 {
			if get[i] != name {
				out = append(out, get[i], get[i+1])
			}
		}
		return out
	}
	for name, fields := range map[string][]string{
		"no method": without(":method"), "no scheme": without(":scheme"), "no path": without(":path"), "no authority": without(":authority"),
		"empty path":      {":method", "GET", ":scheme", "https", ":authority", "h", ":path", ""},
		"relative path":   {":method", "GET", ":scheme", "https", ":authority", "h", ":path", "a"},
		"newline in path": {":method", "GET", ":scheme", "https", ":authority", "h", ":path", "/a\r\nx: y"},
		"userinfo":        {":method", "GET", ":scheme", "https", ":authority", "u@h", ":path", "/"},
		"other Host":      with("host", "other.example"), "two Hosts": with("host", "h", "host", "h"),
		"twice method": with(":method", "GET"), "pseudo behind": with("x", "y", ":path", "/"), "unknown pseudo": with(":x", "y"),
		"status": with(":status", "200"), "capital": with("X-y", "z"), "empty name": with("", "z"), "colon in name": with("x:y", "z"),
		"newline in value": with("x", "y\r\nz: a"), "zero in value": with("x", "y\x00"), "leading space": with("x", " y"),
		"connection": with("connection", "close"), "transfer-encoding": with("transfer-encoding", "chunked"), "upgrade": with("upgrade", "websocket"),
		"te": with("te", "gzip"), "length without body": with("content-length", "1"), "bad length": with("content-length", "+1"),
		"two lengths": with("content-length", "0", "content-length", "0"), "underscored coding": with("transfer_encoding", "chunked"),
		"CONNECT with a path": {":method", "CONNECT", ":scheme", "https", ":authority", "h", ":path", "/"},
		"protocol with GET":   with(":protocol", "websocket"),
	} {
		t.Run(name, func(t *testing.T) {
			rs := c.await(c.stream(frame(1, section(fields...)), true))
			if rs.reset() != codeMessage {
				t.Errorf("got %+v, want H3_MESSAGE_ERROR", rs)
			}
			if e := f.logged(); e.reason != exchange.BadRequest || e.cause == "" {
				t.Errorf("logged %+v", e)
			}
		})
	}
	if rs := c.await(c.stream(frame(1, section(get...)), true)); rs.status != "200" || rs.body != "x" {
		t.Errorf("the next request got %+v", rs)
	}
}

func TestRefusedRequestsAreAnswered(t *testing.T) {
	f := newFront(t, text("x"), func(p *exchange.Port) { p.HeadTimeout = 200 * time.Millisecond })
	c := f.dial()
	long := strings.Repeat("a", 20<<10)
	for _, tt := range []struct {
		name, status string
		fields       []string
	}{
		{"a long path", "414", []string{":method", "GET", ":scheme", "https", ":authority", "h", ":path", "/" + long}},
		{"large fields", "431", with("x", long, "y", long)},
		{"many fields", "431", append(with(), slices.Repeat([]string{"a", "b"}, 201)...)},
		{"CONNECT", "501", []string{":method", "CONNECT", ":authority", "h:443"}},
		{"a long method", "501", []string{":method", strings.Repeat("A", 33), ":scheme", "https", ":authority", "h", ":path", "/"}},
		{"an expectation", "400", with("expect", "tea")},
	} {
		if rs := c.await(c.stream(frame(1, section(tt.fields...)), true)); rs.status != tt.status || rs.err != nil {
			t.Errorf("%s: got %+v, want %s", tt.name, rs, tt.status)
		}
	}
	// A head far beyond the bound is not read.
	if rs := c.await(c.stream(frame(1, make([]byte, 100<<10))[:1000], false)); rs.status != "431" {
		t.Errorf("a huge head: got %+v", rs)
	}
	// A QPACK bomb: a few bytes that stand for many, over and over.
	bomb := append([]byte{0, 0}, slices.Repeat([]byte{0xc0 | 0x3f, 22}, 20_000)...)
	if rs := c.await(c.stream(frame(1, bomb), true)); rs.status != "431" {
		t.Errorf("a bomb: got %+v", rs)
	}
	for _, b := range [][]byte{{1}, frame(1, section(get...))[:5]} {
		if rs := c.await(c.stream(b, false)); rs.status != "408" {
			t.Errorf("%d bytes of a head: got %+v, want 408", len(b), rs)
		}
	}
}

func TestBodiesAreFound(t *testing.T) {
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		var b []byte
		for ex.Request.Body != nil {
			var p [10]byte
			n, err := ex.Request.Body.Read(p[:])
			b = append(b, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				return exchange.Fail(err.(*exchange.Error).Reason, err.Error())
			}
		}
		for _, field := range ex.Request.Trailer.All() {
			b = fmt.Appendf(b, " %s=%s", field.Name, field.Value)
		}
		return text(fmt.Sprintf("%v %d %s", ex.Request.Body == nil, ex.Request.Length, b))(ex)
	}, nil)
	post := []string{":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/"}
	head := func(fields []string, more ...string) []byte {
		return frame(1, section(append(append([]string{}, fields...), more...)...))
	}
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	data := func(s string) []byte { return frame(0, []byte(s)) }
	for _, tt := range []struct {
		name   string
		pieces [][]byte // each is a write of its own
		want   string
	}{
		{"none", [][]byte{head(get)}, "true 0 "},
		{"none, the end comes late", [][]byte{head(get), {}}, "true 0 "},
		{"none, of POST, the end comes late", [][]byte{head(post), {}}, "true 0 "},
		{"none, but empty frames", [][]byte{join(head(post), data(""), data("")), data("")}, "true 0 "},
		{"none, but an unknown frame", [][]byte{join(head(get), frame(0x21, []byte("grease")))}, "true 0 "},
		{"said to be empty", [][]byte{head(post, "content-length", "0")}, "true 0 "},
		{"of a length", [][]byte{join(head(post, "content-length", "5"), data("he"), data("llo"))}, "false 5 hello"},
		{"of no length", [][]byte{head(post), data("hello"), data(" world")}, "false -1 hello world"},
		{"of GET", [][]byte{head(get), data("hello")}, "false -1 hello"},
		{"frames in pieces", [][]byte{head(post)[:3], head(post)[3:], data("hello")[:1], data("hello")[1:4], data("hello")[4:]}, "false -1 hello"},
		{"with trailers", [][]byte{join(head(post), data("x")), frame(1, section("x-sum", "1", "content-length", "9"))}, "false -1 x x-sum=1"},
		{"unknown frames all around", [][]byte{join(frame(0x21, []byte("a")), head(post), frame(0x40, nil), data("x"), frame(0x21, make([]byte, 9000)), data("y"))}, "false -1 xy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.dial()
			s := c.stream(tt.pieces[0], len(tt.pieces) == 1)
			for i, p := range tt.pieces[1:] {
				c.apart(func() {
					s.Write(p)
					if i == len(tt.pieces)-2 {
						s.Close()
					}
				})
			}
			if rs := c.await(s); rs.body != tt.want {
				t.Errorf("got %+v, want %q", rs, tt.want)
			}
		})
	}
}

func TestBrokenBodiesAreReset(t *testing.T) {
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		var p [100]byte
		for {
			if _, err := ex.Request.Body.Read(p[:]); err != nil {
				return exchange.Fail(exchange.BadRequest, err.Error())
			}
		}
	}, nil)
	post := []string{":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/"}
	head := frame(1, section(append(append([]string{}, post...), "content-length", "5")...))
	for name, tail := range map[string][]byte{
		"short": frame(0, []byte("1234")), "long": frame(0, []byte("123456")), "trailers too early": frame(1, section("x", "y")),
		"a pseudo-header field in trailers": slices.Concat(frame(0, []byte("12345")), frame(1, section(":path", "/"))),
	} {
		c := f.dial()
		if rs := c.await(c.stream(slices.Concat(head, tail), true)); rs.reset() != codeMessage {
			t.Errorf("%s: got %+v, want H3_MESSAGE_ERROR", name, rs)
		}
	}
}

func TestInterimAndTrailers(t *testing.T) {
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		var hints header.List
		hints.AddField("Link", "</a>")
		if err := ex.Front.Inform(ex, 103, &hints); err != nil {
			t.Error(err)
		}
		var p [10]byte
		n, _ := ex.Request.Body.Read(p[:])
		rs := &ex.Response
		rs.Status, rs.Length = 200, -1
		rs.Body = &chunks{list: []string{string(p[:n]), "b"}, ex: ex}
		return nil
	}, nil)
	c := f.dial()
	s := c.stream(frame(1, section(":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/", "expect", "100-continue", "content-length", "1")), false)
	s.Write(frame(0, []byte("a")))
	s.Close()
	rs := c.await(s)
	if fmt.Sprint(rs.interim) != "[103 100]" || rs.status != "200" || rs.body != "ab" || len(rs.trailer) != 1 || rs.trailer[0].Name != "x-sum" {
		t.Errorf("got %+v", rs)
	}
}

// A call of gRPC without a message has a body whenever its end comes: servers tell
// it from none at all.
func TestACallOfGRPCHasABody(t *testing.T) {
	f := newFront(t, text("x"), nil)
	call := frame(1, section(":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/", "content-type", "application/grpc"))
	for name, end := range map[string]func(c *raw) *quic.Stream{
		"with the head": func(c *raw) *quic.Stream { return c.stream(call, true) },
		"by no data":    func(c *raw) *quic.Stream { return c.stream(append(slices.Clip(call), frame(0, nil)...), true) },
		"late":          func(c *raw) *quic.Stream { s := c.stream(call, false); c.apart(func() { s.Close() }); return s },
	} {
		c := f.dial()
		if rs := c.await(end(c)); rs.status != "200" {
			t.Errorf("%s: got %+v", name, rs)
		}
		if e := f.logged(); e.ex.bodiless {
			t.Errorf("%s: the request has no body", name)
		}
	}
}

// A client need not wait to be told to send its body: that it has come is seen
// before anyone reads it.
func TestABodyThatNobodyWaitsWithIsSeen(t *testing.T) {
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		for until := time.Now().Add(patience); !ex.Request.Body.Ready(); {
			if time.Now().After(until) {
				return exchange.Fail(exchange.RequestTimeout, "the body is not seen")
			}
		}
		p, err := io.ReadAll(ex.Request.Body)
		if err != nil {
			t.Error(err)
		}
		return text(string(p))(ex)
	}, nil)
	c := f.dial()
	s := c.stream(frame(1, section(":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/", "expect", "100-continue")), false)
	c.apart(func() { s.Write(frame(0, []byte("unasked"))); s.Close() })
	if rs := c.await(s); rs.status != "200" || rs.body != "unasked" {
		t.Errorf("got %+v", rs)
	}
}

// chunks is a body in pieces, with a trailer.
type chunks struct {
	list []string
	ex   *exchange.Exchange
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.list) == 0 {
		c.ex.Response.Trailer.AddField("X-Sum", "1")
		return 0, io.EOF
	}
	n := copy(p, c.list[0])
	c.list = c.list[1:]
	return n, nil
}

func (c *chunks) Ready() bool  { return false }
func (c *chunks) Close() error { return nil }
