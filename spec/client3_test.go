package spec

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// client3 is a script's client that speaks HTTP/3 as client2 speaks HTTP/2: it
// makes frames of a request's text, and text of a response's frames, and takes no
// breach of RFC 9114 from the front.
type client3 struct {
	t    *testing.T
	conn *quic.Conn
	step int

	stream  *quic.Stream // of the last request
	r       quicvarint.Reader
	missing int  // bytes of its body that the script has still to send
	ended   bool // the response has ended
}

// Types of frames (RFC 9114, section 7.2).
const (
	frameData3    = 0x0
	frameHeaders3 = 0x1
)

// newClient3 connects and sends SETTINGS.
func newClient3(t *testing.T, address string) *client3 {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	c := &client3{t: t}
	var err error
	c.conn, err = quic.DialAddr(ctx, address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, nil)
	c.must(err)
	control, err := c.conn.OpenUniStream()
	c.must(err)
	_, err = control.Write([]byte{0x00, 0x04, 0x00}) // a control stream, SETTINGS without any
	c.must(err)
	return c
}

func (c *client3) at(step int) { c.step = step }

func (c *client3) Close() { c.conn.CloseWithError(0x100, "") }

func (c *client3) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("step %d: client: %v", c.step, err)
	}
}

// frame sends a frame, and the end of the stream if nothing follows.
func (c *client3) frame(kind uint64, payload []byte, end bool) {
	c.t.Helper()
	b := quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload)))
	_, err := c.stream.Write(append(b, payload...))
	if stopped := (*quic.StreamError)(nil); errors.As(err, &stopped) && stopped.Remote {
		return // the server wants no more: its answer tells why
	}
	c.must(err)
	if end {
		_ = c.stream.Close() // fails only when the server wants no more
	}
}

// section encodes fields.
func (c *client3) section(fields [][2]string) []byte {
	var b bytes.Buffer
	e := qpack.NewEncoder(&b)
	for _, f := range fields {
		c.must(e.WriteField(qpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	return b.Bytes()
}

// send begins a request, or goes on with the body of the last one.
func (c *client3) send(b []byte) {
	c.t.Helper()
	if c.missing > 0 {
		c.missing -= len(b)
		c.frame(frameData3, b, c.missing == 0)
		return
	}
	head, body, _ := bytes.Cut(b, []byte("\r\n\r\n"))
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n"), "\r\n")
	words := strings.Split(lines[0], " ")
	if len(words) != 3 {
		c.t.Fatalf("step %d: %q cannot be said in HTTP/3: the script needs \"only: h1\"", c.step, lines[0])
	}
	fields, authority, length, chunked := streamFields(lines[1:])
	all := [][2]string{{":method", words[0]}, {":authority", authority}}
	if words[0] != "CONNECT" { // RFC 9114, section 4.4
		all = append(all, [2]string{":scheme", "https"}, [2]string{":path", words[1]})
	}
	var err error
	c.stream, err = c.conn.OpenStream()
	c.must(err)
	c.stream.SetDeadline(time.Now().Add(patience))
	c.r, c.ended = quicvarint.NewReader(c.stream), false
	c.frame(frameHeaders3, c.section(append(all, fields...)), length == 0 && !chunked)
	switch {
	case chunked:
		c.sendChunked(body)
	case length > 0:
		if c.missing = length - len(body); len(body) > 0 {
			c.frame(frameData3, body, c.missing == 0)
		}
	}
}

// sendChunked sends a body that the script writes in chunks, and its trailers.
func (c *client3) sendChunked(b []byte) {
	c.t.Helper()
	body, err := chunksOf(b, true)
	c.must(err)
	c.frame(frameData3, []byte(body.body), len(body.fields) == 0)
	if len(body.fields) == 0 {
		return
	}
	var fields [][2]string
	for _, line := range body.fields {
		name, value, _ := strings.Cut(line, ":")
		fields = append(fields, [2]string{strings.ToLower(name), strings.TrimSpace(value)})
	}
	c.frame(frameHeaders3, c.section(fields), true)
}

// next returns the next frame of the response; io.EOF says that it has ended.
func (c *client3) next() (kind uint64, payload []byte, err error) {
	if kind, err = quicvarint.Read(c.r); err != nil {
		return 0, nil, err
	}
	length, err := quicvarint.Read(c.r)
	if err == nil {
		payload = make([]byte, length)
		_, err = io.ReadFull(c.r, payload)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return kind, payload, err
}

// mustGetResponse reads one response, interim or final.
func (c *client3) mustGetResponse(want string) {
	c.t.Helper()
	got := &response{}
	for {
		kind, payload, err := c.next()
		if err == io.EOF {
			c.ended = true
			break
		}
		c.must(err)
		switch kind {
		case frameHeaders3:
			c.add(got, payload)
			if strings.HasPrefix(got.status, "HTTP/1.1 1") {
				matches(c.t, c.step, got, spokenByStream(want))
				return
			}
		case frameData3:
			got.body += string(payload)
		default:
			c.t.Fatalf("step %d: client got a frame of type %#x", c.step, kind)
		}
	}
	matches(c.t, c.step, got, spokenByStream(want))
}

// add adds a field section to the response.
func (c *client3) add(got *response, section []byte) {
	c.t.Helper()
	next := qpack.NewDecoder().Decode(section)
	for {
		field, err := next()
		if err == io.EOF {
			return
		}
		c.must(err)
		switch {
		case field.Name == ":status" && got.status == "":
			n, _ := strconv.Atoi(field.Value)
			got.status = fmt.Sprintf("HTTP/1.1 %s %s", field.Value, http.StatusText(n))
			continue
		case field.Name != strings.ToLower(field.Name), strings.HasPrefix(field.Name, ":"):
			c.t.Errorf("step %d: client got a field %s, which HTTP/3 does not have (RFC 9114, section 4.3)", c.step, field.Name)
		}
		switch field.Name {
		case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
			c.t.Errorf("step %d: client got a field %s, which HTTP/3 does not have (RFC 9114, section 4.2)", c.step, field.Name)
		}
		got.fields = append(got.fields, field.Name+": "+field.Value)
	}
}

func (c *client3) mustGet([]byte) {
	c.t.Helper()
	c.t.Fatalf("step %d: raw bytes cannot be had over HTTP/3: the script needs \"only: h1\"", c.step)
}

// mustBeClosed holds that the stream has ended. What is refused costs its stream
// and not the connection.
func (c *client3) mustBeClosed() {
	c.t.Helper()
	if !c.ended {
		var reset *quic.StreamError
		if _, _, err := c.next(); err != io.EOF && !errors.As(err, &reset) {
			c.t.Fatalf("step %d: the stream has not ended: %v", c.step, err)
		}
	}
	if err := c.conn.Context().Err(); err != nil {
		c.t.Fatalf("step %d: the connection has ended: %v", c.step, context.Cause(c.conn.Context()))
	}
}
