package spec

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// client2 is a script's client that speaks HTTP/2. It turns the text of a
// request into frames, and the frames of a response into the same text, and
// takes no breach of RFC 9113 from the front.
type client2 struct {
	t      *testing.T
	conn   *tls.Conn
	framer *http2.Framer
	block  bytes.Buffer
	hpack  *hpack.Encoder
	step   int

	stream  uint32        // of the last request
	missing int           // bytes of its body that the script has still to send
	ended   bool          // the response has ended
	queue   []http2.Frame // read while something else was waited for
}

func newClient2(t *testing.T, conn *tls.Conn) *client2 {
	conn.SetDeadline(time.Now().Add(patience))
	c := &client2{t: t, conn: conn, framer: http2.NewFramer(conn, conn)}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.hpack = hpack.NewEncoder(&c.block)
	_, err := io.WriteString(conn, http2.ClientPreface)
	c.must(err)
	c.must(c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}))
	return c
}

func (c *client2) at(step int) { c.step = step }

func (c *client2) Close() { c.conn.Close() }

func (c *client2) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("step %d: client: %v", c.step, err)
	}
}

// send begins a request, or goes on with the body of the last one.
func (c *client2) send(b []byte) {
	c.t.Helper()
	if c.missing > 0 {
		c.missing -= len(b)
		c.must(c.framer.WriteData(c.stream, c.missing == 0, b))
		return
	}
	head, body, _ := bytes.Cut(b, []byte("\r\n\r\n"))
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n"), "\r\n")
	words := strings.Split(lines[0], " ")
	if len(words) != 3 {
		c.t.Fatalf("step %d: %q cannot be said in HTTP/2: the script needs \"only: h1\"", c.step, lines[0])
	}
	fields, authority, length, chunked := streamFields(lines[1:])
	c.block.Reset()
	c.field(":method", words[0])
	c.field(":authority", authority)
	if words[0] != "CONNECT" { // RFC 9113, section 8.5
		c.field(":scheme", "https")
		c.field(":path", words[1])
	}
	for _, f := range fields {
		c.field(f[0], f[1])
	}
	c.stream += 2
	if c.stream == 2 {
		c.stream = 1
	}
	c.ended = false
	c.must(c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: c.stream, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: length == 0 && !chunked,
	}))
	switch {
	case chunked:
		c.sendChunked(body)
	case length > 0:
		if c.missing = length - len(body); len(body) > 0 {
			c.must(c.framer.WriteData(c.stream, c.missing == 0, body))
		}
	}
}

// streamFields takes the lines of a head apart and leaves out what HTTP/2 and
// HTTP/3 do not have.
func streamFields(lines []string) (fields [][2]string, authority string, length int, chunked bool) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		name, value = strings.ToLower(name), strings.TrimSpace(value)
		switch name {
		case "host":
			authority = value
			continue
		case "transfer-encoding":
			chunked = true
			continue
		case "connection", "keep-alive", "proxy-connection", "upgrade":
			continue
		case "content-length":
			length, _ = strconv.Atoi(value)
		}
		fields = append(fields, [2]string{name, value})
	}
	return fields, authority, length, chunked
}

func (c *client2) field(name, value string) {
	c.hpack.WriteField(hpack.HeaderField{Name: name, Value: value})
}

// sendChunked sends a body that the script writes in chunks, and its trailers.
func (c *client2) sendChunked(b []byte) {
	c.t.Helper()
	body, err := chunksOf(b, true)
	c.must(err)
	c.must(c.framer.WriteData(c.stream, len(body.fields) == 0, []byte(body.body)))
	if len(body.fields) == 0 {
		return
	}
	c.block.Reset()
	for _, line := range body.fields {
		name, value, _ := strings.Cut(line, ":")
		c.field(strings.ToLower(name), strings.TrimSpace(value))
	}
	c.must(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: true}))
}

// next returns the next frame of the response, and does what the frames between
// ask for.
func (c *client2) next() http2.Frame {
	c.t.Helper()
	if len(c.queue) > 0 {
		f := c.queue[0]
		c.queue = c.queue[1:]
		return f
	}
	for {
		f, err := c.framer.ReadFrame()
		c.must(err)
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.must(c.framer.WriteSettingsAck())
			}
		case *http2.GoAwayFrame:
			c.t.Fatalf("step %d: client got GOAWAY %v %q", c.step, f.ErrCode, f.DebugData())
		case *http2.WindowUpdateFrame:
		case *http2.RSTStreamFrame:
			if f.ErrCode != http2.ErrCodeNo || !c.ended {
				c.t.Fatalf("step %d: client got RST_STREAM %v", c.step, f.ErrCode)
			}
		default:
			return f
		}
	}
}

// mustGetResponse reads one response, interim or final.
func (c *client2) mustGetResponse(want string) {
	c.t.Helper()
	got := &response{}
	for !c.ended {
		switch f := c.next().(type) {
		case *http2.MetaHeadersFrame:
			c.ended = f.StreamEnded()
			c.add(got, f)
			if strings.HasPrefix(got.status, "HTTP/1.1 1") {
				matches(c.t, c.step, got, spokenByStream(want))
				return
			}
		case *http2.DataFrame:
			got.body += string(f.Data())
			c.ended = f.StreamEnded()
		case *http2.PingFrame:
		default:
			c.t.Fatalf("step %d: client got a frame %v", c.step, f)
		}
	}
	matches(c.t, c.step, got, spokenByStream(want))
}

// add adds a field section to the response. HTTP/2 has no reason phrase; the
// usual one is put in so that scripts need no other form.
func (c *client2) add(got *response, f *http2.MetaHeadersFrame) {
	c.t.Helper()
	if f.StreamID != c.stream {
		c.t.Fatalf("step %d: client got an answer on stream %d, want %d", c.step, f.StreamID, c.stream)
	}
	if status := f.PseudoValue("status"); got.status == "" {
		n, _ := strconv.Atoi(status)
		got.status = fmt.Sprintf("HTTP/1.1 %s %s", status, http.StatusText(n))
	}
	for _, field := range f.RegularFields() {
		switch field.Name {
		case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
			c.t.Errorf("step %d: client got a field %s, which HTTP/2 does not have (RFC 9113, section 8.2.2)", c.step, field.Name)
		}
		if field.Name != strings.ToLower(field.Name) {
			c.t.Errorf("step %d: client got a field %s, which is not in lower case", c.step, field.Name)
		}
		got.fields = append(got.fields, field.Name+": "+field.Value)
	}
}

// spokenByStream leaves out of a wanted response what only connections of
// HTTP/1.1 have.
func spokenByStream(want string) string {
	head, body, _ := strings.Cut(want, "\n\n")
	var lines []string
	for _, line := range strings.Split(head, "\n") {
		switch name, _, _ := strings.Cut(line, ":"); strings.ToLower(name) {
		case "connection", "transfer-encoding", "upgrade":
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n\n" + body
}

func (c *client2) mustGet([]byte) {
	c.t.Helper()
	c.t.Fatalf("step %d: raw bytes cannot be had over HTTP/2: the script needs \"only: h1\"", c.step)
}

// mustBeClosed holds that the stream has ended. What is refused in HTTP/2 costs
// its stream and not the connection, so that has to answer still.
func (c *client2) mustBeClosed() {
	c.t.Helper()
	if !c.ended {
		c.t.Fatalf("step %d: the stream has not ended", c.step)
	}
	c.must(c.framer.WritePing(false, [8]byte{'s', 'p', 'e', 'c'}))
	for {
		f := c.next()
		if p, ok := f.(*http2.PingFrame); ok && p.IsAck() {
			return
		}
		c.t.Fatalf("step %d: client got %v, want the answer to a PING", c.step, f)
	}
}
