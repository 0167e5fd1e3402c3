package upstream

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/server/mirror"
)

// Mirror is a source that wraps another one, and sends copies of requests to its own
// servers. Copies are not waited for, and their results are only counted. It is safe for
// concurrent use.
type Mirror struct {
	of       exchange.Source
	to       *Servers
	settings Copies
	state    *MirrorState
}

// Copies says what a Mirror copies.
type Copies struct {
	// Percent is how many of a hundred requests are copied, by chance.
	Percent int
	// MaxBody is the longest body of a request that is copied, in bytes. It is
	// held in memory until the copy is sent.
	MaxBody int
	// MaxRequests is how many copies may be under way. What comes beyond that is not
	// copied: a mirror that is slow must not cost memory.
	MaxRequests int
	// Timeout bounds a copy, from its start to the end of the response.
	Timeout time.Duration
	// Told is called with the result of a copy, possibly concurrently; it may be nil.
	Told func(Copied)
	// Compare compares the responses to copied requests; nil does not.
	Compare *mirror.Report
}

// Copied is how a copy fared.
type Copied uint8

// The results of copies.
const (
	CopySent    Copied = iota // a response came
	CopyFailed                // none came
	CopyDropped               // too many were under way
	CopyTooLong               // the body was too long, or had not come whole
)

// String returns the word of the metric.
func (c Copied) String() string { return [...]string{"sent", "failed", "dropped", "too_long"}[c] }

// MirrorState is what outlives a Mirror: the copies under way.
type MirrorState struct {
	running atomic.Int64
	retired atomic.Bool
}

// Retire ends the copies under way soon.
func (s *MirrorState) Retire() { s.retired.Store(true) }

// NewMirror returns a source that answers by of and copies to the servers of to.
func NewMirror(of exchange.Source, to *Servers, settings Copies, state *MirrorState) *Mirror {
	return &Mirror{of: of, to: to, settings: settings, state: state}
}

// Describe returns "mirror(n) → " and the source that answers.
func (m *Mirror) Describe() string {
	return "mirror(" + strconv.Itoa(len(m.to.list)) + ") → " + m.of.Describe()
}

// Respond answers by the source, and sends a copy of the request.
func (m *Mirror) Respond(ex *exchange.Exchange) *exchange.Answer {
	if !m.selects(ex) {
		return m.of.Respond(ex)
	}
	rq := &ex.Request
	if rq.Body == nil {
		if !m.acquire() {
			return m.of.Respond(ex)
		}
		c := newCopy(ex)
		c.pair = m.startPair(ex)
		pair := c.pair // the goroutine owns c
		go m.run(c)
		return m.respond(ex, pair)
	}
	if rq.Length > int64(m.settings.MaxBody) {
		m.report(CopyTooLong)
		return m.of.Respond(ex)
	}
	// The body is kept as it passes, and copied when all of it has passed. The
	// request may look otherwise by then, so its head is copied now.
	c := newCopy(ex)
	body := newReplay(rq.Body, rq.Length, m.settings.MaxBody)
	rq.Body = body
	c.pair = m.startPair(ex)
	answer := m.respond(ex, c.pair)
	kept, ok := body.all()
	if !ok {
		m.report(CopyTooLong)
		c.drop()
		return answer
	}
	if m.acquire() {
		c.body = append([]byte{}, kept...)
		go m.run(c)
	} else {
		c.drop()
	}
	return answer
}

// selects reports whether a request is copied. An upgrade is not: its request is only
// the start of a conversation.
func (m *Mirror) selects(ex *exchange.Exchange) bool {
	return ex.Request.Upgrade == "" && ex.Request.Method != "CONNECT" && rand.IntN(100) < m.settings.Percent
}

func (m *Mirror) report(c Copied) {
	if m.settings.Told != nil {
		m.settings.Told(c)
	}
}

// acquire reports whether one more copy may be under way.
func (m *Mirror) acquire() bool {
	if m.state.running.Add(1) > int64(m.settings.MaxRequests) {
		m.state.running.Add(-1)
		m.report(CopyDropped)
		return false
	}
	return true
}

// run sends a copy and reads what comes back, for no longer than the timeout. It
// is a goroutine that ends by itself.
func (m *Mirror) run(c *copied) {
	defer m.state.running.Add(-1)
	defer func() {
		if v := recover(); v != nil {
			exchange.Broken(c.log, v, "copy of a request")
			m.report(CopyFailed)
		}
	}()
	end := exchange.Now() + int64(m.settings.Timeout)
	c.newSubrequest(m.settings.Timeout)
	c.subrequest.WhileWanted(func() bool { return m.state.retired.Load() || exchange.Now() > end })
	outcome := CopySent
	var seen *mirror.Answer
	if c.pair != nil {
		seen = &c.pair.Mirror
		defer seen.End(false)
	}
	began := exchange.Now()
	if c.subrequest.Send(m.to) != nil {
		outcome = CopyFailed
	} else {
		rs := &c.subrequest.Response
		observeHead(seen, rs, began)
		m.discard(rs, end, seen)
	}
	c.subrequest.Close()
	m.report(outcome)
}

// maxDiscarded limits how much of the response to a copy is read, in bytes. A longer body
// is abandoned together with its connection.
const maxDiscarded = mirror.MaxBody

// discard reads a response to its end, so that its connection can be kept, unless
// it is too long or takes too long. seen, which may be nil, gets the body.
func (m *Mirror) discard(rs *exchange.Response, end int64, seen *mirror.Answer) {
	if rs.Body == nil || len(rs.Text) > 0 {
		return
	}
	p := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(p)
	for left := maxDiscarded; left > 0 && exchange.Now() < end && !m.state.retired.Load(); {
		n, err := rs.Body.Read(p[:])
		if seen != nil {
			seen.Write(p[:n])
		}
		if left -= n; err != nil {
			if seen != nil {
				seen.End(err == io.EOF)
			}
			return
		}
	}
}

// copied is a request that was copied: nothing in it belongs to the exchange that
// it was copied from.
type copied struct {
	subrequest exchange.Subrequest
	log        *slog.Logger
	text       []byte // all strings
	method, host, scheme,
	target, query string
	trailers bool
	fields   []header.Field
	body     []byte
	pair     *mirror.Pair // nil if the responses are not compared
}

// newCopy copies the head of a request.
func newCopy(ex *exchange.Exchange) *copied {
	rq := &ex.Request
	size := len(rq.Method) + len(rq.Host) + len(rq.Target) + len(rq.Query)
	all := rq.Header.All()
	for i := range all {
		size += len(all[i].Name) + len(all[i].Value)
	}
	c := &copied{text: make([]byte, 0, size), fields: make([]header.Field, len(all)), trailers: rq.AcceptsTrailers, log: ex.Log()}
	c.method, c.host, c.target, c.query = c.keep(rq.Method), c.keep(rq.Host), c.keep(rq.Target), c.keep(rq.Query)
	c.scheme = "http"
	if rq.Scheme == "https" {
		c.scheme = "https"
	}
	for i := range all {
		c.fields[i] = header.Field{ID: all[i].ID, Name: c.keep(all[i].Name), Value: c.keep(all[i].Value)}
	}
	return c
}

// keep copies a string to the end of the text, which has enough space and is
// never moved.
func (c *copied) keep(s string) string {
	if s == "" {
		return ""
	}
	at := len(c.text)
	c.text = append(c.text, s...)
	return unsafe.String(&c.text[at], len(s))
}

// newSubrequest makes the subrequest of the copy.
func (c *copied) newSubrequest(timeout time.Duration) {
	e := &c.subrequest
	e.Start(c.method, c.target, c.query, timeout)
	rq := &e.Request
	rq.Host, rq.Scheme, rq.AcceptsTrailers = c.host, c.scheme, c.trailers
	for i := range c.fields {
		f := &c.fields[i]
		rq.Header.AddKnown(f.ID, f.Name, f.Value)
	}
	if c.body != nil {
		rq.Length, rq.Body = int64(len(c.body)), &heldBody{all: c.body}
	}
}

// heldBody is a body that is all at hand.
type heldBody struct {
	all []byte
	at  int
}

// Read reads what is left.
func (b *heldBody) Read(p []byte) (int, error) {
	if b.at == len(b.all) {
		return 0, io.EOF
	}
	n := copy(p, b.all[b.at:])
	b.at += n
	return n, nil
}

// Ready reports true: nothing is waited for.
func (b *heldBody) Ready() bool { return true }

// Whole returns the body as long as no part of it was read.
func (b *heldBody) Whole() ([]byte, bool) { return b.all, b.at == 0 }

// Close does nothing.
func (b *heldBody) Close() error { return nil }
