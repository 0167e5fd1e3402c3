package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"

	"headgate/internal/proto/http2"
)

// serve plays the server on a connection.
func (a *actor) serve(c net.Conn) {
	a.open.Add(1)
	defer a.open.Add(-1)
	if a.two {
		a.serveTwo(c)
		return
	}
	for r := bufio.NewReader(c); a.serveOne(c, r); {
	}
}

// serveOne plays it for one request of HTTP/1.1, and reports whether the connection goes
// on.
func (a *actor) serveOne(c net.Conn, r *bufio.Reader) bool {
	rq, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	id, _ := strconv.Atoi(strings.TrimPrefix(rq.URL.Path, "/"))
	do, attempt := a.w.meets(id, a.address)
	tag := fmt.Sprintf("%d/%d/%d", id, attempt, do.size)
	body := contentOf(tag, do.size)
	reset := func() bool {
		c.(*net.TCPConn).SetLinger(0)
		return false
	}
	if rq.Header.Get("Upgrade") != "" && do.how != wordless && do.how != silent {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, r)
		return false
	}
	switch do.how {
	case wordless:
		return false
	case resetFirst:
		return reset()
	case halfHead:
		io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Tag: ")
		return false
	case garbage:
		io.WriteString(c, "HTTP/1.1 2x0 OK\r\n\r\n")
		return false
	}
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Tag: %s\r\n", tag)
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	if rq.Method == "HEAD" {
		body = nil
	}
	if do.how == early {
		io.WriteString(c, head+length)
		c.Write(body)
		return false
	}
	if rq.Header.Get("Expect") != "" {
		io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	sent, err := io.ReadAll(rq.Body)
	if err != nil {
		return false
	}
	a.checkBody(id, sent, rq.ContentLength < 0)
	switch do.how {
	case silent:
		io.Copy(io.Discard, r)
		return false
	case busy503:
		_, err = fmt.Fprintf(c, "HTTP/1.1 503 Busy\r\nX-Tag: %d/%d/0\r\nContent-Length: 0\r\n\r\n", id, attempt)
		return err == nil
	case empty204:
		_, err = fmt.Fprintf(c, "HTTP/1.1 204 None\r\nX-Tag: %s\r\n\r\n", tag)
		return err == nil
	case interim:
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
	case untilClose:
		io.WriteString(c, head+"Connection: close\r\n\r\n")
		c.Write(body)
		return false
	case pieced, badChunk:
		io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n")
		if rq.Method == "HEAD" {
			return true
		}
		for n := 0; n < len(body); {
			k := min(len(body)-n, 1+n/2+100)
			fmt.Fprintf(c, "%x\r\n%s\r\n", k, body[n:n+k])
			n += k
		}
		if do.how == badChunk {
			io.WriteString(c, "z\r\n")
			return false
		}
		_, err = io.WriteString(c, "0\r\nX-Sum: 1\r\n\r\n")
		return err == nil
	case halfBody, resetBody:
		io.WriteString(c, head+length)
		c.Write(body[:len(body)/2])
		if do.how == resetBody {
			return reset()
		}
		return false
	case twice:
		c.Write(append(append([]byte(head+length), body...), "HTTP/1.1 200 OK\r\nX-Tag: nobody's\r\nContent-Length: 2\r\n\r\nno"...))
		io.Copy(io.Discard, r)
		return false
	}
	_, err = c.Write(append([]byte(head+length), body...))
	return err == nil && do.how != lastOne
}

// checkBody checks a body that a server took for whole.
func (a *actor) checkBody(id int, sent []byte, some bool) {
	if want := contentOf(fmt.Sprint("body", id), len(sent)); !bytes.Equal(sent, want) {
		a.w.fault("request %d: a server got other bytes", id)
	}
	a.w.mu.Lock()
	size, known := a.w.mu.sizes[id]
	a.w.mu.Unlock()
	if some && (!known || len(sent) != size) {
		a.w.fault("request %d: a server got %d bytes as a whole body, want %d", id, len(sent), size)
	}
}

// call is a stream of HTTP/2 at the server.
type call struct {
	id      int
	method  string
	do      meeting
	attempt int
	body    []byte
	some    bool // it came with a body
}

// serveTwo plays the server on a connection of HTTP/2.
func (a *actor) serveTwo(c net.Conn) {
	b := http2.AppendFrame(nil, 2*http2.SettingSize, http2.FrameSettings, 0, 0)
	b = http2.AppendSetting(b, http2.SettingMaxConcurrentStreams, 3)
	c.Write(http2.AppendSetting(b, http2.SettingInitialWindowSize, 20_000))
	r := bufio.NewReader(c)
	io.CopyN(io.Discard, r, int64(len(http2.Preface)))
	defer part(c, r)
	calls, last := map[uint32]*call{}, uint32(0)
	away := false // it has said that it looks at no more
	var now *call
	decoder := hpack.NewDecoder(http2.InitialTableSize, func(f hpack.HeaderField) {
		switch f.Name {
		case ":path":
			now.id, _ = strconv.Atoi(strings.TrimPrefix(f.Value, "/"))
		case ":method":
			now.method = f.Value
		}
	})
	for head := make([]byte, http2.FrameHeaderSize); ; {
		if _, err := io.ReadFull(r, head); err != nil {
			return
		}
		f := http2.ParseFrame(head)
		p := make([]byte, f.Length)
		if _, err := io.ReadFull(r, p); err != nil {
			return
		}
		s := calls[f.Stream]
		switch f.Type {
		case http2.FrameSettings:
			if !f.Has(http2.FlagAck) {
				c.Write(http2.AppendFrame(nil, 0, http2.FrameSettings, http2.FlagAck, 0))
			}
		case http2.FramePing:
			if !f.Has(http2.FlagAck) {
				c.Write(http2.AppendPing(nil, http2.FlagAck, p))
			}
		case http2.FrameRSTStream:
			delete(calls, f.Stream)
		case http2.FrameHeaders:
			if now = s; now == nil {
				now = &call{some: !f.Has(http2.FlagEndStream)}
			}
			decoder.Write(p)
			decoder.Close()
			if s == nil && !away {
				s = now
				if goesOn := a.handleHead(c, f.Stream, s); !goesOn {
					return
				}
				calls[f.Stream], last = s, f.Stream
			}
		case http2.FrameData:
			if len(p) > 0 {
				c.Write(http2.AppendWindowUpdate(http2.AppendWindowUpdate(nil, 0, int64(len(p))), max(f.Stream, 1), int64(len(p))))
			}
			if s != nil {
				s.body = append(s.body, p...)
			}
		}
		if s != nil && f.Has(http2.FlagEndStream) && (f.Type == http2.FrameData || f.Type == http2.FrameHeaders) {
			delete(calls, f.Stream)
			if s.do.how == early || s.do.how == refusedStream {
				continue
			}
			a.checkBody(s.id, s.body, s.some)
			away = away || s.do.how == goAway
			if !a.answers(c, f.Stream, last, s) {
				return
			}
		}
	}
}

// part waits until the client has read everything: its wait may rest for seconds on an
// edge that told of the last bytes and of the end of the connection.
func part(c net.Conn, r io.Reader) {
	c.Write(http2.AppendPing(nil, 0, []byte("good bye")))
	for head := make([]byte, http2.FrameHeaderSize); ; {
		if _, err := io.ReadFull(r, head); err != nil {
			return
		}
		f := http2.ParseFrame(head)
		if io.CopyN(io.Discard, r, int64(f.Length)); f.Type == http2.FramePing && f.Has(http2.FlagAck) {
			return
		}
	}
}

// handleHead meets the head of a request. It reports whether the connection goes on.
func (a *actor) handleHead(c net.Conn, stream uint32, s *call) bool {
	s.do, s.attempt = a.w.meets(s.id, fmt.Sprint(a.address, " stream ", stream))
	switch s.do.how {
	case refusedStream:
		a.w.unseen(s.id)
		c.Write(http2.AppendRSTStream(nil, stream, http2.RefusedStream))
	case goAway:
		if s.do.size%2 == 0 {
			a.w.unseen(s.id)
			c.Write(http2.AppendGoAway(nil, max(stream, 2)-2, http2.NoError, ""))
			return false
		}
	case wordless:
		return false
	case resetFirst:
		c.(*net.TCPConn).SetLinger(0)
		return false
	case garbage:
		c.Write(http2.AppendFrame(nil, 0, http2.FramePing, 0, 0))
		return false
	case early:
		a.sends(c, stream, s, false)
		c.Write(http2.AppendRSTStream(nil, stream, http2.NoError))
	}
	return true
}

// answers answers a request that has come whole.
func (a *actor) answers(c net.Conn, stream, last uint32, s *call) bool {
	switch s.do.how {
	case silent:
		return true
	case busy503:
		b := appendStatus(nil, stream, "503", fmt.Sprintf("%d/%d/0", s.id, s.attempt), true)
		_, err := c.Write(b)
		return err == nil
	case empty204:
		_, err := c.Write(appendStatus(nil, stream, "204", fmt.Sprintf("%d/%d/%d", s.id, s.attempt, s.do.size), true))
		return err == nil
	case interim:
		c.Write(appendStatus(nil, stream, "103", "", false))
	case goAway:
		c.Write(http2.AppendGoAway(nil, last, http2.NoError, ""))
	case halfHead:
		b := appendStatus(nil, stream, "200", "x", true)
		c.Write(b[:len(b)-2])
		return false
	case badChunk:
		c.Write(append(http2.AppendFrame(nil, 1, http2.FrameData, 0, stream), 'x')) // before the head
		return true
	}
	return a.sends(c, stream, s, s.do.how == pieced)
}

// sends sends 200 and the body, or a part of it.
func (a *actor) sends(c net.Conn, stream uint32, s *call, trailers bool) bool {
	tag := fmt.Sprintf("%d/%d/%d", s.id, s.attempt, s.do.size)
	body := contentOf(tag, s.do.size)
	if s.method == "HEAD" {
		body = nil
	}
	b := appendStatus(nil, stream, "200", tag, false)
	half := s.do.how == halfBody || s.do.how == resetBody
	if half {
		body = body[:len(body)/2]
	}
	for len(body) > 0 {
		n := min(len(body), 1<<14)
		b = append(http2.AppendFrame(b, n, http2.FrameData, 0, stream), body[:n]...)
		body = body[n:]
	}
	switch {
	case s.do.how == resetBody:
		b = http2.AppendRSTStream(b, stream, http2.Cancel)
	case half:
	case trailers:
		b = http2.AppendBlock(b, stream, 0, http2.AppendField(nil, 0, "x-sum", "1"), true)
	default:
		b = http2.AppendFrame(b, 0, http2.FrameData, http2.FlagEndStream, stream)
	}
	if s.do.how == twice {
		b = append(http2.AppendFrame(b, 2, http2.FrameData, http2.FlagEndStream, stream), "no"...)
	}
	_, err := c.Write(b)
	return err == nil && s.do.how != halfBody && s.do.how != lastOne && s.do.how != untilClose
}

// appendStatus appends the head of a response.
func appendStatus(b []byte, stream uint32, status, tag string, end bool) []byte {
	block := http2.AppendNamed(nil, nameStatus, status)
	if tag != "" {
		block = http2.AppendField(block, 0, "x-tag", tag)
	}
	return http2.AppendBlock(b, stream, 0, block, end)
}
