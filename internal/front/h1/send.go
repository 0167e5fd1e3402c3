package h1

import (
	"errors"
	"io"
	"sync"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// copySize is the size of the pieces in which a long body is copied, in bytes.
const copySize = 32 << 10

// roomLeast is the free space, in bytes, behind a head that makes it
// worthwhile to read the body there.
const roomLeast = 512

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// date makes the Date of responses that have none.
var date http1.Date

// splicer is a body that can move itself inside the kernel.
type splicer interface {
	Splice(*netconn.Conn) (n int64, ok bool, err error)
}

// framing is how the end of a response is signalled.
type framing uint8

const (
	noBody framing = iota // by the request's method or the status
	length
	chunked
	untilClose
)

// Send writes the response of ex: its head, its body as it comes, and its
// trailers; or joins the tunnel of an upgrade.
func (c *Conn) Send(ex *exchange.Exchange) error {
	w, rs := c.work, &ex.Response
	c.sending.Lock()
	c.sending.begun = true
	c.sending.Unlock()

	if rs.Tunnel != nil {
		return c.sendTunnel(ex)
	}
	how := c.frame(w, ex)
	if ex.Reason.Closes() || c.draining.Load() || !w.body.readable() {
		w.keepAlive = false
	}
	c.nc.SetPending(c.appendHead(c.nc.Pending(), w, ex, how))
	rs.HeadSent = true
	err := c.sendBody(ex, how)
	if err != nil || how == untilClose {
		w.keepAlive = false
	}
	if err != nil {
		return c.breakOff(how, err)
	}
	return nil
}

// frame selects how the end of the response is signalled (RFC 9112, section 6).
func (c *Conn) frame(w *work, ex *exchange.Exchange) framing {
	rs := &ex.Response
	switch {
	case ex.Request.Method == "HEAD" || rs.Status == 204 || rs.Status == 304:
		return noBody
	case rs.Length >= 0:
		return length
	case ex.Request.Proto == exchange.HTTP10:
		return untilClose
	}
	return chunked
}

// appendHead appends the status line and the fields.
func (c *Conn) appendHead(b []byte, w *work, ex *exchange.Exchange, how framing) []byte {
	rs := &ex.Response
	b = http1.AppendStatusLine(b, rs.Status, "")
	for i := range rs.Header.All() {
		f := &rs.Header.All()[i]
		if f.ID == header.ContentLength || f.ID == header.TransferEncoding {
			continue
		}
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	if !rs.Header.Has(header.Date) {
		b = append(b, "Date: "...)
		b = append(b, date.At(time.Now())...)
		b = append(b, "\r\n"...)
	}
	switch {
	case how == chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case how == length, how == noBody && rs.Length >= 0 && rs.Status != 204:
		b = http1.AppendContentLength(b, rs.Length)
	}
	switch {
	case !w.keepAlive || how == untilClose:
		b = append(b, "Connection: close\r\n"...)
	case ex.Request.Proto == exchange.HTTP10:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	return append(b, "\r\n"...)
}

// sendBody writes the body behind the head.
func (c *Conn) sendBody(ex *exchange.Exchange, how framing) error {
	rs := &ex.Response
	switch {
	case how == noBody:
		return nil
	case rs.Text != nil:
		return c.sendText(ex, how)
	case rs.Body == nil || rs.Length == 0:
		if how == chunked {
			c.nc.SetPending(append(c.nc.Pending(), http1.LastChunk...))
		}
		return nil
	case how == chunked:
		return c.sendChunked(ex)
	}
	return c.sendPlain(ex)
}

func (c *Conn) sendText(ex *exchange.Exchange, how framing) error {
	rs := &ex.Response
	ex.Sent = int64(len(rs.Text))
	if how == chunked {
		c.nc.SetPending(append(http1.AppendChunk(c.nc.Pending(), rs.Text), http1.LastChunk...))
		return nil
	}
	_, err := c.nc.Write(rs.Text)
	return err
}

// sendPlain copies a body without a coding. A short one that is at hand goes
// into the same write as the head; a long one goes through splice if it can.
func (c *Conn) sendPlain(ex *exchange.Exchange) error {
	body := ex.Response.Body
	done, err := c.sendViews(ex)
	if !done && err == nil {
		done, err = c.sendFirst(ex)
	}
	if done || err != nil {
		return err
	}
	long, _ := body.(splicer)
	p := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(p)
	for {
		if long != nil {
			n, spliced, err := long.Splice(c.nc)
			ex.Sent += n
			if spliced {
				return err
			}
		}
		if !body.Ready() {
			if err := c.nc.Flush(); err != nil {
				return err
			}
		}
		if ex.Sent > slowSent {
			c.hold()
		}
		n, err := body.Read(p[:])
		ex.Sent += int64(n)
		if n > 0 {
			if _, werr := c.nc.Write(p[:n]); werr != nil {
				return werr
			}
		}
		if err != nil {
			return c.endOfBody(ex, err)
		}
	}
}

// sendViews sends what lies in memory already, without a copy. It reports whether
// that was all.
func (c *Conn) sendViews(ex *exchange.Exchange) (done bool, err error) {
	body, ok := ex.Response.Body.(exchange.Views)
	for ok {
		p, err := body.View()
		if len(p) > 0 {
			ex.Sent += int64(len(p))
			if _, err := c.nc.Write(p); err != nil {
				return false, err
			}
		}
		if err != nil {
			return true, c.endOfBody(ex, err)
		}
		ok = len(p) > 0
	}
	return false, nil
}

// sendFirst reads what is at hand of a body into the memory behind the head. It
// reports whether that was all.
func (c *Conn) sendFirst(ex *exchange.Exchange) (done bool, err error) {
	body := ex.Response.Body
	for {
		if !body.Ready() {
			return false, c.nc.Flush()
		}
		b := c.nc.Pending()
		room := b[len(b):cap(b)]
		if len(room) < roomLeast {
			return false, nil
		}
		n, err := body.Read(room)
		c.nc.SetPending(b[:len(b)+n])
		ex.Sent += int64(n)
		if err != nil {
			return true, c.endOfBody(ex, err)
		}
	}
}

// endOfBody judges what ended a body with a known length or none.
func (c *Conn) endOfBody(ex *exchange.Exchange, err error) error {
	if err != io.EOF {
		return err
	}
	if want := ex.Response.Length; want >= 0 && ex.Sent != want {
		return &exchange.Error{Reason: exchange.UpstreamReset, Err: io.ErrUnexpectedEOF}
	}
	return nil
}

// sendChunked copies a body of unknown length in the chunked coding.
func (c *Conn) sendChunked(ex *exchange.Exchange) error {
	body := ex.Response.Body
	p := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(p)
	for {
		if !body.Ready() {
			if err := c.nc.Flush(); err != nil {
				return err
			}
		}
		if ex.Sent > slowSent {
			c.hold()
		}
		n, err := body.Read(p[:])
		ex.Sent += int64(n)
		if n > 0 {
			c.nc.SetPending(http1.AppendChunkHeader(c.nc.Pending(), int64(n)))
			if _, werr := c.nc.Write(p[:n]); werr != nil {
				return werr
			}
			c.nc.SetPending(append(c.nc.Pending(), http1.CRLF...))
		}
		if err == io.EOF {
			c.nc.SetPending(http1.AppendTrailers(c.nc.Pending(), ex.ResponseTrailer()))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// breakOff makes sure that the client notices that the response is not whole:
// what came is sent, and a body that ends with the connection ends with a reset
// instead of an orderly close. It returns the error with its reason.
func (c *Conn) breakOff(how framing, err error) error {
	var known *exchange.Error
	if errors.As(err, &known) {
		c.nc.Flush()
	}
	if how == untilClose {
		c.reset()
	}
	if known == nil && errors.Is(err, netconn.ErrTimeout) {
		return &exchange.Error{Reason: exchange.ClientTimeout, Err: errors.New("the client did not read the response in time")}
	}
	return err
}

// Abort ends the connection so that the client can detect that the response is incomplete.
func (c *Conn) Abort(*exchange.Exchange) {
	if c.work != nil {
		c.work.keepAlive = false
	}
	c.reset()
}

// Inform sends an interim response to clients that can read one (RFC 9110,
// section 15.2).
func (c *Conn) Inform(ex *exchange.Exchange, status int, fields *header.List) error {
	if ex.Request.Proto == exchange.HTTP10 {
		return nil
	}
	return c.interim(func(b []byte) []byte {
		b = http1.AppendStatusLine(b, status, "")
		b = http1.AppendFields(b, fields)
		return append(b, "\r\n"...)
	})
}

// letGo sends 100 (Continue).
func (c *Conn) letGo() error {
	return c.interim(func(b []byte) []byte { return append(b, continueLine...) })
}

// interim sends what write appends unless the final response has begun.
func (c *Conn) interim(write func([]byte) []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.sending.begun {
		return nil
	}
	c.nc.SetPending(write(c.nc.Pending()))
	return c.nc.Flush()
}
