package h2_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// raw is a client that sends what a test wants, frame by frame.
type raw struct {
	*http2.Framer
	t   testing.TB
	nc  net.Conn
	out bytes.Buffer
	enc *hpack.Encoder
	mem bytes.Buffer
}

// dial connects and sends the preface and an empty SETTINGS; the server's are
// acknowledged.
func (p *proxy) dial(settings ...http2.Setting) *raw {
	p.t.Helper()
	c := p.connect()
	c.send([]byte(http2.ClientPreface))
	c.WriteSettings(settings...)
	c.WriteSettingsAck()
	c.flush()
	return c
}

// connect connects and sends nothing.
func (p *proxy) connect() *raw {
	p.t.Helper()
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	if p.tls != nil {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	}
	c := &raw{t: p.t, nc: nc}
	c.Framer = http2.NewFramer(&c.out, nc)
	c.AllowIllegalWrites = true
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.enc = hpack.NewEncoder(&c.mem)
	return c
}

func (c *raw) send(p []byte) { c.out.Write(p) }

// flush sends what was written. A server that has closed is no error here.
func (c *raw) flush() {
	c.nc.Write(c.out.Bytes())
	c.out.Reset()
}

// block encodes fields, given as name, value, name, value.
func (c *raw) block(fields ...string) []byte {
	c.mem.Reset()
	for i := 0; i < len(fields); i += 2 {
		c.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(c.mem.Bytes())
}

// get is the head of a simple request.
var get = []string{":method", "GET", ":scheme", "http", ":authority", "example.com", ":path", "/"}

// post is the head of a request with a body.
var post = []string{":method", "POST", ":scheme", "http", ":authority", "example.com", ":path", "/"}

// request writes HEADERS.
func (c *raw) request(id uint32, end bool, fields ...string) {
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(fields...), EndStream: end, EndHeaders: true})
}

// next reads the next frame that is not about settings or windows.
func (c *raw) next() (http2.Frame, error) {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch f.(type) {
		case *http2.SettingsFrame, *http2.WindowUpdateFrame:
			continue
		}
		return f, nil
	}
}

// response is what came on one stream.
type response struct {
	status  string
	fields  []hpack.HeaderField
	interim []string
	body    []byte
	trailer []hpack.HeaderField
	reset   http2.ErrCode
	gone    bool // reset is valid
}

// await reads until the stream has ended.
func (c *raw) await(id uint32) *response {
	c.t.Helper()
	rs := &response{}
	for {
		f, err := c.next()
		if err != nil {
			c.t.Fatalf("stream %d: %v; so far %+v", id, err, rs)
		}
		if g, ok := f.(*http2.GoAwayFrame); ok && g.ErrCode != http2.ErrCodeNo {
			c.t.Fatalf("stream %d: GOAWAY %v %s", id, g.ErrCode, g.DebugData())
		}
		if f.Header().StreamID == id && rs.add(f) {
			return rs
		}
	}
}

// add adds a frame and reports whether it was the last.
func (rs *response) add(f http2.Frame) bool {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		status := f.PseudoValue("status")
		switch {
		case strings.HasPrefix(status, "1"):
			rs.interim = append(rs.interim, status)
			return false
		case status == "":
			rs.trailer = f.RegularFields()
		default:
			rs.status, rs.fields = status, f.RegularFields()
		}
		return f.StreamEnded()
	case *http2.DataFrame:
		rs.body = append(rs.body, f.Data()...)
		return f.StreamEnded()
	case *http2.RSTStreamFrame:
		rs.reset, rs.gone = f.ErrCode, true
		return true
	}
	return false
}

func (rs *response) field(name string) string {
	for _, f := range rs.fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// pong sends a PING and waits for the answer. No GOAWAY may come before.
func (c *raw) pong() {
	c.t.Helper()
	c.WritePing(false, [8]byte{1})
	c.flush()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			c.t.Fatalf("GOAWAY of stream %d came first", g.LastStreamID)
		}
		if f.Header().Type == http2.FramePing {
			return
		}
	}
}

// goAway reads until the connection ends and returns the error code it was told.
func (c *raw) goAway() http2.ErrCode {
	c.t.Helper()
	told := false
	var code http2.ErrCode
	for {
		f, err := c.ReadFrame()
		switch {
		case err != nil && told:
			return code
		case err == io.EOF || err != nil && !errors.Is(err, errTimeout(err)):
			c.t.Fatalf("the connection ended without GOAWAY: %v", err)
		case err != nil:
			c.t.Fatal("the connection did not end")
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			told, code = true, g.ErrCode
		}
	}
}

// errTimeout returns err if it is a time-out.
func errTimeout(err error) error {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return err
	}
	return io.ErrNoProgress
}
