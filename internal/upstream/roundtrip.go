package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/wire"
)

// continueWait is how long to wait for a server's 100 Continue. Servers that do not
// implement it do not respond (RFC 9110, section 10.1.1). A client need not wait either:
// now and then, at first after continueLook, it is checked whether the body has begun to
// arrive.
const (
	continueWait = time.Second
	continueLook = 5 * time.Millisecond
)

// maxInterim is how many interim responses a server may send before its answer.
const maxInterim = 64

// writeIdle is how long a server may accept no byte of a request.
const writeIdle = 60 * time.Second

// errStale marks the end of a kept connection before the first byte of an
// answer: the server had closed it while it was idle.
var errStale = errors.New("the server had closed the kept connection")

// conn is one HTTP/1.1 connection to a server. It serves one exchange at a
// time and is the body of its response meanwhile.
type conn struct {
	// constant
	nc    *netconn.Conn
	pool  *Pool
	watch func() error // clientLeft

	// owned by the exchange that has the connection, or by the pool
	buf      netconn.Buffer
	head     http1.ResponseHead
	scan     http1.Scanner
	body     wire.Body
	upload   *upload // the request body on its way, or nil
	since    int64   // when the connection came back to the pool
	asked    int64   // start of this try
	answered int64   // when the head of the last response was there
	used     bool    // a response has been read on it before
	looked   bool    // it was idle when it was acquired for this exchange
	doubted  bool    // more may have come behind the response than was seen
	keep     bool    // it may carry another request after this response
	held     bool    // the request has a body that waits for 100 Continue
	ended    bool    // Close was called for this exchange

	front    exchange.Front  // of the exchange
	signedIn exchange.SignIn // the same
	server   *Server         // that the exchange was counted on
	broken   error           // how the server broke the response off, or nil
}

func newConn(nc *netconn.Conn, p *Pool) *conn {
	nc.SetWriteWait(writeIdle)
	c := &conn{nc: nc, pool: p, looked: true}
	c.watch = c.clientLeft
	return c
}

// clientLeft ends a wait for the server when the client has left meanwhile.
func (c *conn) clientLeft() error {
	if c.signedOut() {
		return exchange.ErrSignedOut
	}
	if !c.front.Gone() {
		if f, ok := c.front.(hurrying); ok && f.Hurry() {
			return netconn.ErrSoon
		}
		return nil
	}
	return &exchange.Error{Reason: exchange.ClientClosed, Err: errors.New("the client left before the answer was there")}
}

// signedOut reports whether the sign-in of the client has ended.
func (c *conn) signedOut() bool { return c.signedIn != nil && c.signedIn.Ended() }

// hurrying is a front that may need more frequent calls of Gone.
type hurrying interface{ Hurry() bool }

// roundTrip sends the request of ex and makes the server's answer its response.
// After an error the connection must be closed; after a panic it is.
func (c *conn) roundTrip(ex *exchange.Exchange, srv *Server, host HostField) error {
	returned := false
	defer func() {
		if !returned {
			c.close()
		}
	}()
	err := c.send(ex, srv, host)
	returned = true
	return err
}

// send is roundTrip but for panics.
func (c *conn) send(ex *exchange.Exchange, srv *Server, host HostField) error {
	c.ended, c.keep, c.held, c.upload, c.broken = false, false, false, nil, nil
	c.asked = attemptBegan(ex)
	c.front, c.signedIn, c.server = ex.Front, ex.SignedIn, srv
	c.nc.SetWatch(c.watch)
	if c.pool.fastCGI {
		return c.runScript(ex, srv, host)
	}
	c.nc.SetPending(AppendHead(c.nc.Pending(), ex, srv, host))
	if err := c.sendBody(ex); err != nil {
		if c.used && isEnd(err) {
			err = fmt.Errorf("%w: %v", errStale, err)
		}
		return c.explain(err)
	}
	err := c.readHead(ex)
	if err == nil && c.surplus() && !c.looked {
		err = fmt.Errorf("%w: there is more than one answer", errInvalid)
	}
	if err != nil {
		c.abortUpload()
		return c.explain(err)
	}
	c.respond(ex)
	return nil
}

// surplus reports whether there is unread data after the response whose head was read. On a
// connection that was not checked before, the response may be data that the server sent
// unasked, followed by the real one.
func (c *conn) surplus() bool {
	switch c.head.Framing {
	case http1.NoBody:
		return c.buf.Len() > 0 && c.head.Status != 101
	case http1.Length:
		return int64(c.buf.Len()) > c.head.ContentLength
	}
	return false
}

// attemptBegan returns the start of an attempt. For the first one on a kept
// connection that is when its server was chosen, and the clock need not be read
// again.
func attemptBegan(ex *exchange.Exchange) int64 {
	if ex.Attempts == 1 && ex.Times.Connected == 0 {
		return ex.Times.Tried
	}
	return exchange.Now()
}

// sendBody sends the request body along with the head if it is available, and else starts
// to stream it. A body that the client holds back until 100 Continue waits; readHead starts
// it.
func (c *conn) sendBody(ex *exchange.Exchange) error {
	body := ex.Request.Body
	if body == nil {
		return nil
	}
	if ex.Request.Continue && !body.Ready() {
		c.held = true
		return nil
	}
	if w, ok := body.(exchange.Whole); ok {
		if all, ok := w.Whole(); ok {
			_, err := c.nc.Write(all)
			ex.Received = int64(len(all))
			return err
		}
	}
	if err := c.nc.Flush(); err != nil {
		return err
	}
	c.upload = startUpload(c.nc, ex, framingOf(ex))
	return nil
}

// readHead reads until the head of the final response.
func (c *conn) readHead(ex *exchange.Exchange) error {
	asked := http1.Asked{Head: ex.Request.Method == "HEAD", Upgrade: ex.Request.Upgrade}
	wait := headWait{limit: ex.Limits.RequestTimeout, since: c.asked}
	for interim := 0; ; interim++ {
		if err := c.parseHead(ex, asked, &wait); err != nil {
			return err
		}
		if !c.head.Interim() {
			return nil
		}
		if interim == maxInterim {
			return fmt.Errorf("%w: more than %d interim responses", errInvalid, maxInterim)
		}
		if err := c.interim(ex); err != nil {
			return err
		}
	}
}

// interim handles a 1xx response: 100 lets a body go that waits for it, others
// are passed on (RFC 9110, section 15.2).
func (c *conn) interim(ex *exchange.Exchange) error {
	if c.head.Status == 100 {
		c.beginHeldUpload(ex)
		return nil
	}
	http1.StripHopByHop(&c.head.Fields)
	if err := ex.Inform(c.head.Status, &c.head.Fields); err != nil {
		return &exchange.Error{Reason: exchange.ClientClosed, Err: err}
	}
	return nil
}

// beginHeldUpload starts the body of a request that waits for 100-continue.
func (c *conn) beginHeldUpload(ex *exchange.Exchange) {
	if c.held {
		c.held = false
		c.upload = startUpload(c.nc, ex, framingOf(ex))
	}
}

// parseHead reads until one whole head is in c.head, and uses it up.
func (c *conn) parseHead(ex *exchange.Exchange, asked http1.Asked, wait *headWait) error {
	c.scan = http1.Scanner{}
	for tried := false; ; {
		// Most heads arrive whole: the scanner is only used for the others.
		if b := c.buf.Bytes(); len(b) > 0 && (!tried || c.scan.Ready(b, &c.pool.limits)) {
			tried = true
			n, err := http1.ParseResponse(b, &c.pool.limits, asked, &c.head)
			if err != nil {
				return err
			}
			if n > 0 {
				c.buf.Use(n)
				return nil
			}
		}
		if !c.buf.Grow(math.MaxInt) {
			return io.ErrShortBuffer
		}
		if err := c.await(ex, wait); err != nil {
			return err
		}
	}
}

// headWait is the time until the response head must be there.
type headWait struct {
	limit time.Duration // 0 is no limit
	since int64         // start of that time
	asked bool          // the head was sent

	// of a body that waits for 100 Continue
	held int64         // until when it does
	look time.Duration // after which the next look at the client is due
}

// untilLook returns when a wait for the server's 100 has to look whether the client
// sends its body unasked.
func (w *headWait) untilLook(limit time.Duration) int64 {
	now := exchange.Now()
	if w.held == 0 {
		w.held, w.look = now+int64(cmp.Or(limit, continueWait)), continueLook
	}
	next := now + int64(w.look)
	w.look *= 2
	return min(next, w.held)
}

// release reports whether to send a body that waits for 100 Continue: the
// client did not wait, or the server has had its time.
func (w *headWait) release(ex *exchange.Exchange) bool {
	return exchange.Now() >= w.held || ex.Request.Body.Ready()
}

// until returns the deadline of the next bytes; 0 means none. The time of an
// upload does not count: it is limited by its own idle time.
func (w *headWait) until(u *upload) int64 {
	if w.limit <= 0 {
		return 0
	}
	if u != nil {
		if u.running() {
			w.since = exchange.Now()
		}
		w.since = max(w.since, u.finishedAt())
	}
	return w.since + int64(w.limit)
}

// await waits for more bytes of the response head.
func (c *conn) await(ex *exchange.Exchange, w *headWait) error {
	for {
		until := w.until(c.upload)
		if c.held {
			until = w.untilLook(c.pool.settings.ContinueWait)
		}
		if c.nc.SetReadUntil(until); until == 0 {
			c.nc.SetReadWait(0)
		}
		switch err := w.read(c); {
		case err == nil:
			return nil
		case errors.Is(err, netconn.ErrTimeout) && c.held:
			if w.release(ex) {
				c.beginHeldUpload(ex)
			}
		case errors.Is(err, netconn.ErrTimeout) && w.goesOn(c.upload):
		case errors.Is(err, netconn.ErrKicked) && c.upload != nil:
			if err := c.upload.wait(); err != nil {
				return err
			}
		default:
			if c.used && c.buf.Len() == 0 && c.upload == nil && isEnd(err) {
				return fmt.Errorf("%w: %v", errStale, err)
			}
			return err
		}
	}
}

// read sends the head and waits, the first time; later it only reads. While a
// body is on its way, that other goroutine does the sending.
func (w *headWait) read(c *conn) error {
	if w.asked || c.upload != nil {
		return c.nc.Fill(&c.buf)
	}
	w.asked = true
	return c.nc.RoundTrip(&c.buf)
}

// goesOn reports whether a wait that timed out continues because an upload
// took its time.
func (w *headWait) goesOn(u *upload) bool {
	return u != nil && (u.running() || exchange.Now()-u.finishedAt() < int64(w.limit))
}

// respond makes the head that was read the response of ex.
func (c *conn) respond(ex *exchange.Exchange) {
	c.answered = exchange.Now()
	ex.Times.Head = c.answered
	rs := &ex.Response
	rs.Reset()
	rs.Status = c.head.Status
	rs.Length = c.head.ContentLength
	if c.head.Framing == http1.NoBody && (ex.Request.Method == "HEAD" || rs.Status == 304) {
		rs.Length = announced(&c.head.Fields)
	}
	rs.Header, c.head.Fields = c.head.Fields, rs.Header
	http1.StripHopByHop(&rs.Header)
	rs.Header.Del(header.ContentLength)
	c.used, c.looked = true, true
	c.buf.Hold()
	c.nc.SetReadWait(c.pool.settings.BodyIdle)
	if rs.Status == 101 {
		c.nc.SetWatch(nil)
		c.head.Fields = header.List{}
		rs.Header.Set(header.Upgrade, c.head.Upgrade)
		t := &tunnel{nc: c.nc, buf: c.buf, upload: c.upload, server: c.server}
		c.buf, c.upload = netconn.Buffer{}, nil
		rs.Tunnel, rs.Body = t, (*parting)(t)
		return
	}
	c.keep = c.head.KeepAlive
	c.body.Reset(c.nc, &c.buf, c.head.Framing, c.head.ContentLength, &c.pool.limits, &rs.Trailer)
	c.body.Sole()
	rs.Body = c
}

// announced returns the length that a response without a body names, or -1.
func announced(list *header.List) int64 {
	text := list.Get(header.ContentLength)
	if text == "" {
		return -1
	}
	var n int64
	for i := 0; i < len(text); i++ {
		n = n*10 + int64(text[i]-'0')
	}
	return n
}

// Read reads the body of the response.
func (c *conn) Read(p []byte) (int, error) {
	if c.signedOut() {
		c.broken = exchange.ErrSignedOut
		return 0, c.broken
	}
	n, err := c.body.Read(p)
	if err == io.EOF && c.wasReset() {
		err = syscall.ECONNRESET
	}
	if err != nil && err != io.EOF {
		err = c.explain(err)
		c.broken = err
	}
	return n, err
}

// wasReset reports whether the end of a body that is delimited by the end of the connection
// was a reset. A socket reports a reset once: when the upload has got it, a read returns an
// orderly end.
func (c *conn) wasReset() bool {
	return c.head.Framing == http1.UntilClose && c.upload != nil && c.upload.metReset()
}

// Ready reports whether Read would not wait.
func (c *conn) Ready() bool { return c.body.Ready() }

// Splice moves the rest of the body to dst inside the kernel; see wire.Body.
func (c *conn) Splice(dst *netconn.Conn) (int64, bool, error) {
	n, ok, err := c.body.Splice(dst)
	if err == nil && ok && c.wasReset() {
		err = syscall.ECONNRESET
	}
	if err == nil {
		return n, ok, nil
	}
	if w := (*netconn.WriteError)(nil); !errors.As(err, &w) {
		err = c.explain(err)
		c.broken = err
	}
	return n, ok, err
}

// Close ends the exchange on this connection: it goes back to the pool if the
// response was read to its end and nothing is left over, and is closed
// otherwise. Views into the response die.
func (c *conn) Close() error {
	if c.ended {
		return nil
	}
	c.ended = true
	if c.broken != nil {
		defer c.server.broke(c.broken)
	} else {
		defer c.server.released()
	}
	followed, sure := c.body.Followed()
	whole := c.keep && c.body.Done() && !followed
	if c.upload != nil {
		whole = whole && c.upload.settled(settleTime) && c.upload.wait() == nil
		c.abortUpload()
	} else if c.held {
		// the server has the head of a body that never came
		whole = false
	}
	if !whole {
		c.close()
		return nil
	}
	rest, all := c.nc.Rest()
	if rest {
		c.close()
		return nil
	}
	c.buf.Free()
	c.buf.Drop()
	c.front, c.signedIn = nil, nil
	since := c.restsSince()
	if c.pool.tls != nil {
		sure = all // how TLS reads off the socket counts, and not how its records are read
	}
	c.doubted = !sure || since-c.answered >= lookAfter
	c.pool.put(c, since)
	return nil
}

// short is the longest body that has passed as soon as its head was there, as
// far as a connection's rest is concerned, in bytes.
const short = 4 << 10

// restsSince returns about when the server had nothing more to say. For short
// responses that is when the head came, and the clock need not be read again.
func (c *conn) restsSince() int64 {
	if c.head.Framing != http1.Chunked && c.head.ContentLength <= short && c.upload == nil {
		return c.answered
	}
	return exchange.Now()
}

// close closes the connection for good.
func (c *conn) close() {
	c.nc.Close()
	c.abortUpload()
	c.buf.Free()
	c.buf.Drop()
}

func (c *conn) abortUpload() {
	if c.upload != nil {
		c.upload.abort()
		c.upload = nil
	}
}
