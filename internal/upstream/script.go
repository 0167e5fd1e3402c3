package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/upstream/fcgi"
)

// script is the response of a FastCGI server, and its body. It uses a connection as
// HTTP/1.1 does: one request at a time.
type script struct {
	*conn
	records fcgi.Reader
	text    []byte // of the head: the fields are views into it
	length  int64  // of the body that is left, -1 if it is not known
	bodily  bool   // the response has a body
	over    bool   // the body was read to its end
	err     error  // of a Ready
}

// scriptBuffer is how much is read ahead of a FastCGI server at most, in bytes.
const scriptBuffer = 64 << 10

// runScript is send for FastCGI.
func (c *conn) runScript(ex *exchange.Exchange, srv *Server, host HostField) error {
	block := blocks.Get().(*[]byte)
	*block = fcgi.AppendParams((*block)[:0], ex, hostOf(&ex.Request, srv, host))
	c.nc.SetPending(fcgi.AppendBegin(c.nc.Pending(), c.pool.keepsConn, *block))
	blocks.Put(block)
	x := &script{conn: c, length: -1}
	err := c.sendInput(ex)
	if err != nil && c.used && isEnd(err) {
		return fmt.Errorf("%w: %v", errStale, err)
	}
	if err == nil {
		err = x.readHead(ex)
	}
	if err != nil {
		c.abortUpload()
		x.log()
		return c.explain(err)
	}
	x.respond(ex)
	return nil
}

// sendInput sends a short body along with the parameters if it is available, and else
// starts to stream it. A client that waits for 100 Continue gets it when its body is read.
func (c *conn) sendInput(ex *exchange.Exchange) error {
	body := ex.Request.Body
	if body == nil {
		c.nc.SetPending(fcgi.AppendInputHeader(c.nc.Pending(), 0))
		return nil
	}
	if w, ok := body.(exchange.Whole); ok {
		if all, ok := w.Whole(); ok && len(all) <= copySize {
			b := c.nc.Pending()
			if len(all) > 0 {
				b = append(fcgi.AppendInputHeader(b, len(all)), all...)
			}
			c.nc.SetPending(fcgi.AppendInputHeader(b, 0))
			ex.Received = int64(len(all))
			return nil
		}
	}
	if err := c.nc.Flush(); err != nil {
		return err
	}
	c.upload = startUpload(c.nc, ex, asRecords)
	return nil
}

// readHead reads until the head of the response.
func (x *script) readHead(ex *exchange.Exchange) error {
	wait := headWait{limit: ex.Limits.RequestTimeout, since: x.asked}
	limit := cmp.Or(x.pool.limits.HeadSize, http1.DefaultHeadSize)
	for raw := []byte(nil); ; {
		if err := x.next(); err != nil {
			return err
		}
		out := x.buf.Bytes()[:min(x.records.Output(), x.buf.Len())]
		if len(out) > 0 {
			searched := len(raw)
			raw = append(raw, out...)
			if end := fcgi.HeadEnd(raw, searched); end > 0 {
				x.consumeOutput(end - searched)
				return x.parse(ex, raw[:end])
			}
			x.consumeOutput(len(out))
			if len(raw) > limit {
				return fmt.Errorf("%w: the head of the response is larger than %d bytes", errInvalid, limit)
			}
			continue
		}
		if x.records.Ended() {
			return fmt.Errorf("%w: the script ended without a complete head", errInvalid)
		}
		if !x.buf.Grow(scriptBuffer) {
			return io.ErrShortBuffer
		}
		if err := x.await(ex, &wait); err != nil {
			return err
		}
	}
}

// next uses what was read up to the next output.
func (x *script) next() error {
	n, err := x.records.Next(x.buf.Bytes())
	x.buf.Use(n)
	if err != nil {
		return fmt.Errorf("%w: %v", errInvalid, err)
	}
	return nil
}

// consumeOutput uses n bytes of output that are in the buffer.
func (x *script) consumeOutput(n int) {
	x.buf.Use(n)
	x.records.Consume(n)
}

// parse reads the head that a script wrote.
func (x *script) parse(ex *exchange.Exchange, raw []byte) error {
	text, err := fcgi.AppendResponseHead(nil, raw)
	if err != nil {
		return fmt.Errorf("%w: %v", errInvalid, err)
	}
	x.text = text
	limits := x.pool.limits
	limits.HeadSize = len(text)
	n, err := http1.ParseResponse(text, &limits, http1.Asked{Head: ex.Request.Method == "HEAD"}, &x.head)
	if err == nil && n != len(text) {
		err = fmt.Errorf("%w: the head of the response is incomplete", errInvalid)
	}
	return err
}

// respond makes the head that was read the response of ex.
func (x *script) respond(ex *exchange.Exchange) {
	c := x.conn
	c.answered = exchange.Now()
	ex.Times.Head = c.answered
	rs := &ex.Response
	rs.Reset()
	rs.Status, rs.Length = c.head.Status, -1
	switch c.head.Framing {
	case http1.NoBody:
		if ex.Request.Method == "HEAD" || rs.Status == 304 {
			rs.Length = announced(&c.head.Fields)
		}
	case http1.Length:
		rs.Length, x.length, x.bodily = c.head.ContentLength, c.head.ContentLength, true
	default:
		x.bodily = true
	}
	rs.Header, c.head.Fields = c.head.Fields, rs.Header
	http1.StripHopByHop(&rs.Header)
	rs.Header.Del(header.ContentLength)
	c.used, c.looked = true, true
	c.nc.SetReadWait(c.pool.settings.BodyIdle)
	rs.Body = x
}

// Read reads the body of the response.
func (x *script) Read(p []byte) (int, error) {
	if x.signedOut() {
		x.broken = exchange.ErrSignedOut
		return 0, x.broken
	}
	n, err := x.readBody(p)
	if err != nil && err != io.EOF {
		x.broken = x.explain(err)
		return n, x.broken
	}
	return n, err
}

func (x *script) readBody(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		ready, err := x.step()
		if err != nil {
			return 0, err
		}
		if ready {
			return x.readOutput(p)
		}
		if x.buf.Len() == 0 && x.records.Output() > 0 {
			n, err := x.nc.Read(p[:min(len(p), x.records.Output())])
			x.records.Consume(n)
			n, counted := x.count(n)
			return n, errors.Join(cutOff(err), counted)
		}
		if !x.buf.Grow(scriptBuffer) {
			return 0, io.ErrShortBuffer
		}
		if err := x.nc.Fill(&x.buf); err != nil {
			return 0, cutOff(err)
		}
	}
}

// readOutput reads output that is in the buffer, or the end.
func (x *script) readOutput(p []byte) (int, error) {
	if x.over {
		return 0, io.EOF
	}
	n := copy(p, x.buf.Bytes()[:min(x.records.Output(), x.buf.Len())])
	x.consumeOutput(n)
	return x.count(n)
}

// step uses records that have arrived, and reports whether there is output in the buffer or
// the response has ended. A body that the response cannot have, as after HEAD, is dropped.
func (x *script) step() (ready bool, err error) {
	if x.err != nil || x.over {
		return true, x.err
	}
	for {
		if err := x.next(); err != nil {
			return false, err
		}
		n := min(x.records.Output(), x.buf.Len())
		switch {
		case n > 0 && x.bodily:
			return true, nil
		case n > 0:
			x.consumeOutput(n)
		case x.records.Ended():
			if x.length > 0 {
				return false, fmt.Errorf("%w: the body ended %d bytes before its Content-Length", errInvalid, x.length)
			}
			x.over = true
			return true, nil
		default:
			return false, nil
		}
	}
}

// count counts bytes of the body against its Content-Length, and returns how many belong to
// it.
func (x *script) count(n int) (int, error) {
	switch {
	case x.length < 0:
		return n, nil
	case int64(n) > x.length:
		n, x.length = int(x.length), 0
		return n, fmt.Errorf("%w: the body is longer than its Content-Length", errInvalid)
	}
	x.length -= int64(n)
	return n, nil
}

// cutOff turns the end of a connection into the end of a response that is not whole.
func cutOff(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Ready reports whether Read would not wait.
func (x *script) Ready() bool {
	ready, err := x.step()
	if ready || err != nil {
		x.err = err
		return true
	}
	if !x.buf.Grow(scriptBuffer) {
		return true
	}
	if got, err := x.nc.TryFill(&x.buf); err != nil || !got {
		x.err = cutOff(err)
		return err != nil
	}
	ready, x.err = x.step()
	return ready || x.err != nil
}

// Splice moves nothing: records have to be separated.
func (x *script) Splice(*netconn.Conn) (int64, bool, error) { return 0, false, nil }

// Close ends the exchange on this connection: it goes back to the pool if connections are
// kept and the response was read to its end, and is closed otherwise. Closing it makes the
// server stop a script whose client has left.
func (x *script) Close() error {
	c := x.conn
	if c.ended {
		return nil
	}
	c.ended = true
	if c.broken != nil {
		defer c.server.broke(c.broken)
	} else {
		defer c.server.released()
	}
	x.log()
	if !x.over && c.broken == nil {
		x.step() // the end may have arrived with the last of the body
	}
	whole := c.pool.keepsConn && x.over && x.err == nil && x.records.Clean() && c.buf.Len() == 0 && c.broken == nil
	if c.upload != nil {
		whole = whole && c.upload.settled(settleTime) && c.upload.wait() == nil
		c.abortUpload()
	}
	if !whole {
		c.close()
		return nil
	}
	c.buf.Drop()
	c.front, c.signedIn = nil, nil
	c.doubted = true
	c.pool.put(c, exchange.Now())
	return nil
}

// log logs what the script wrote to its standard error, once.
func (x *script) log() {
	text := strings.TrimSpace(string(x.records.Errors()))
	if text == "" || x.pool.log == nil {
		return
	}
	x.pool.log.Warn("FastCGI server wrote to standard error", "server", x.server.URL, "stderr", text)
}
