package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/setting/unit"
)

// world is a cache between clients and a server of which a test moves every step: when
// a request is answered and how, when bytes of a body come, when a client reads or leaves.
// It knows what every version of every resource is, and so what nobody may get.
type world struct {
	t      *testing.T
	env    exchange.Env
	config Config

	mu        sync.Mutex
	cache     *Cache
	store     Store
	resources []resource
	questions []*question // that the server has not answered yet
	flows     []*flow     // bodies that are on their way
	ended     []*flow
	clients   []*visitor
	panics    int // that the server made
	broken    int // invariants, as the log tells
	wrong     []string
}

// resource is something that the server has.
type resource struct {
	size    int
	version int  // now
	least   int  // what a request that begins now must at least get
	lenient bool // it was served with leave to be stale
	spoiled bool // one of its bodies did not come whole
}

// sizes are those of the resources: none, short, several pieces, too large to be stored,
// and larger than what is kept for those who are behind.
var sizes = []int{0, 10, 3000, 20_000, 100_000, 3 << 20}

// varies reports whether a resource has variants.
func varies(resource int) bool { return resource%2 == 1 }

// noise is what bodies are made of.
var noise = func() []byte {
	b, r := make([]byte, 5<<20), rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return b
}()

// content returns a version of a resource, in one of its variants.
func content(resource, version, variant int) []byte {
	from := (resource*7919 + version*104_729 + variant*15_485_863) % (1 << 20)
	return noise[from : from+sizes[resource]]
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, config: *settings(func(c *Config) { c.MemoryLimit, c.MaxEntry = 256*unit.KiB, 64*unit.KiB })}
	for _, n := range sizes {
		w.resources = append(w.resources, resource{size: n})
	}
	w.env = exchangetest.Env(t, time.Now)
	w.env.Scope, w.env.Log = "proxy test", slog.New(brokenInvariants{w})
	w.serveBy(w.config.MemoryLimit)
	return w
}

// serveBy makes a new plan the one that serves.
func (w *world) serveBy(limit unit.Size) {
	w.config.MemoryLimit = limit
	store := Open(&w.config, w.env)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store, w.cache = store, New(&w.config, store, w)
}

// fault notes what must not be.
func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// brokenInvariants counts broken invariants.
type brokenInvariants struct{ w *world }

func (l brokenInvariants) Enabled(context.Context, slog.Level) bool { return true }
func (l brokenInvariants) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l brokenInvariants) WithGroup(string) slog.Handler            { return l }
func (l brokenInvariants) Handle(_ context.Context, r slog.Record) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.broken++
	if l.w.broken > l.w.panics {
		r.Attrs(func(a slog.Attr) bool {
			l.w.wrong = append(l.w.wrong, r.Message+": "+a.String())
			return true
		})
	}
	return nil
}

// question is a request that the server has got.
type question struct {
	method, match, span        string // of its head, as copies
	resource, variant, version int    // version is that of the moment when it came
	reply                      chan reply
}

// reply is what the server does.
type reply struct {
	how behaviour
	cc  string
}

// behaviour is how the server answers.
type behaviour int

const (
	asItIs      behaviour = iota // at once, with a length; 304 and 206 where asked for
	chunked                      // the same without a length
	flowing                      // the same, and the body comes later
	measured                     // flowing with a length
	unasked                      // the whole, whatever was asked for
	unchanging                   // 304, also if nobody asked for one
	otherTag                     // 304 with the tag of something else
	unavailable                  // 503
	refused                      // no answer at all
	forNobody                    // 200 that must not be stored
	newer                        // 200 of a version that is made at this moment
	missing                      // 404
	panicking
	behaviours
)

// Respond waits until the test says what the server answers.
func (w *world) Respond(ex *exchange.Exchange) *exchange.Answer {
	rq := &ex.Request
	q := &question{method: rq.Method, reply: make(chan reply, 1)}
	q.resource, _ = strconv.Atoi(strings.TrimPrefix(rq.Path, "/"))
	if value, _ := rq.Header.Lookup("X-Variant"); value != "" {
		q.variant, _ = strconv.Atoi(value)
	}
	q.match, q.span = strings.Clone(rq.Header.Get(header.IfNoneMatch)), strings.Clone(rq.Header.Get(header.Range))
	w.mu.Lock()
	q.version = w.resources[q.resource].version
	w.questions = append(w.questions, q)
	w.mu.Unlock()
	look := time.NewTicker(time.Second / 3)
	defer look.Stop()
	for {
		select {
		case r := <-q.reply:
			return w.answer(ex, q, r)
		case <-look.C:
			if ex.Front.Gone() {
				w.forget(q)
				return exchange.Fail(exchange.ClientClosed, "the client left")
			}
		}
	}
}

// Describe returns "world".
func (w *world) Describe() string { return "world" }

func (w *world) forget(q *question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.questions {
		if w.questions[i] == q {
			w.questions = append(w.questions[:i], w.questions[i+1:]...)
			return
		}
	}
}

func (w *world) answer(ex *exchange.Exchange, q *question, r reply) *exchange.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	rs, res := &ex.Response, &w.resources[q.resource]
	rs.Reset()
	tag := tagOf(q.resource, q.version, q.variant)
	plain := func(status int, body string) {
		rs.Status, rs.Length, rs.Body = status, int64(len(body)), exchangetest.Body(body)
	}
	switch r.how {
	case panicking:
		w.panics++
		panic("the test says so")
	case refused:
		return exchange.Fail(exchange.UpstreamRefused, "the test says so")
	case unavailable:
		plain(503, "later")
		return nil
	case missing:
		plain(404, "none")
		rs.Header.Add(header.CacheControl, "max-age=20")
		return nil
	case newer:
		res.version++
		q.version = res.version
		tag = tagOf(q.resource, q.version, q.variant)
	case forNobody:
		r.cc = "no-store"
	case otherTag:
		plain(304, "")
		rs.Length = -1
		rs.Header.Add(header.ETag, `"other"`)
		return nil
	case unchanging:
		if q.match == "" || q.match == tag {
			q.match, q.span = tag, ""
		}
	}
	if q.method == "POST" {
		res.version++
		plain(200, "done")
		rs.Header.Add(header.ETag, tagOf(q.resource, res.version, 0))
		return nil
	}
	rs.Header.Add(header.ETag, tag)
	rs.Header.Add(header.CacheControl, r.cc)
	rs.Header.Add(header.CacheTag, "all")
	if varies(q.resource) {
		rs.Header.Add(header.Vary, "X-Variant")
	}
	res.lenient = res.lenient || strings.Contains(r.cc, "stale")
	if q.match == tag && r.how != unasked && r.how != newer && r.how != forNobody {
		rs.Status, rs.Length, rs.Body = 304, -1, exchangetest.Body()
		return nil
	}
	w.whole(rs, q, r.how)
	return nil
}

// whole makes the response the resource, or the part of it that was asked for.
func (w *world) whole(rs *exchange.Response, q *question, how behaviour) {
	body := content(q.resource, q.version, q.variant)
	rs.Status = 200
	if q.span != "" && how != unasked && how != newer {
		if first, last, ok, valid := parseRange(q.span, int64(len(body))); ok && valid {
			rs.Status = 206
			rs.Header.Add(header.ContentRange, fmt.Sprintf("bytes %d-%d/%d", first, last, len(body)))
			body = body[first : last+1]
		}
	}
	rs.Length = int64(len(body))
	switch {
	case q.method == "HEAD":
		rs.Body = exchangetest.Body()
	case how == flowing, how == measured, how == unasked:
		f := &flow{resource: q.resource, rest: body, pieces: newPieces()}
		w.flows = append(w.flows, f)
		rs.Body = f
	default:
		rs.Body = exchangetest.Body(string(body))
	}
	if how == chunked || how == flowing {
		rs.Length = -1
	}
}

func tagOf(resource, version, variant int) string {
	return fmt.Sprintf(`"%d-%d-%d"`, resource, version, variant)
}

// flow is a body of which a test sends piece by piece.
type flow struct {
	*pieces
	resource int
	rest     []byte
}

// Read reads on, or panics where the test says so.
func (f *flow) Read(b []byte) (int, error) {
	n, err := f.pieces.Read(b)
	if err == errPanics {
		panic("the test says so")
	}
	return n, err
}

var (
	errBroken = &exchange.Error{Reason: exchange.UpstreamReset, Err: errors.New("the test says so")}
	errPanics = errors.New("panic")
)

// visitor is a client.
type visitor struct {
	w        *world
	name     string
	resource int
	variant  int
	least    int // the version that it must at least get
	made     int // the version that its POST made
	method   string
	fields   []string
	do       chan int // so many bytes to read, 0 to leave
	left     atomic.Bool
	done     chan struct{}
}

// serve takes the client's request to its end.
func (c *visitor) serve(cache *Cache) {
	defer close(c.done)
	ex := exchangetest.New(c.w.t, exchangetest.Head(c.method, "/"+strconv.Itoa(c.resource), c.fields...))
	ex.Front = c
	p := &exchange.Pipeline{Filters: []exchange.Filter{cache.Filter()}, Source: cache, Log: c.w.env.Log}
	p.Serve(ex)
	if c.method == "POST" && ex.Response.Status == 200 {
		c.w.mu.Lock()
		res := &c.w.resources[c.resource]
		res.least = max(res.least, c.made)
		c.w.mu.Unlock()
	}
}

// Gone reports whether the client has left.
func (c *visitor) Gone() bool { return c.left.Load() }

// Inform is part of exchange.Front.
func (c *visitor) Inform(*exchange.Exchange, int, *header.List) error { return nil }

// Abort is part of exchange.Front.
func (c *visitor) Abort(*exchange.Exchange) {}

// Send reads as the test says, and looks at what comes.
func (c *visitor) Send(ex *exchange.Exchange) error {
	rs := &ex.Response
	rs.HeadSent = true
	want, whole := c.expect(ex)
	var got int
	take := func(b []byte) {
		if len(b) > 0 && want == nil || got+len(b) > len(want) || string(b) != string(want[got:got+len(b)]) {
			c.w.fault("%s: %d bytes that are no part of %d %q", c.name, len(b), rs.Status, rs.Header.Get(header.ETag))
		}
		got += len(b)
	}
	buf := make([]byte, 64<<10)
	for n := range c.do {
		switch {
		case n == 0:
			return errors.New("the client left")
		case rs.Text != nil:
			take(rs.Text)
		}
		for n > 0 && rs.Text == nil && rs.Body != nil && c.method != "HEAD" && rs.Status != 304 {
			mem := buf[:0]
			var err error
			if v, ok := rs.Body.(interface{ View() ([]byte, error) }); ok && n%2 == 0 {
				mem, err = v.View()
			}
			if len(mem) == 0 && err == nil {
				var k int
				k, err = rs.Body.Read(buf[:min(n, len(buf))])
				mem = buf[:k]
			}
			take(mem)
			n -= len(mem)
			if err == io.EOF {
				break
			} else if err != nil {
				c.brokeOff(err)
				return err
			}
		}
		if n > 0 || rs.Text != nil {
			break
		}
	}
	if whole && got != len(want) {
		c.w.fault("%s: a whole response of %d bytes, want %d", c.name, got, len(want))
	}
	return nil
}

// expect returns what the body has to be, and whether all of it has to come.
func (c *visitor) expect(ex *exchange.Exchange) (want []byte, whole bool) {
	rs := &ex.Response
	var resource, version, variant int
	_, err := fmt.Sscanf(rs.Header.Get(header.ETag), `"%d-%d-%d"`, &resource, &version, &variant)
	switch {
	case rs.Status == 500 && c.w.panicked(), rs.Ours:
		return rs.Text, false
	case c.method == "HEAD" && rs.Status != 200, rs.Status == 304, rs.Status == 416:
		return nil, false
	case rs.Status == 404:
		return []byte("none"), true
	case rs.Status == 503:
		return []byte("later"), true
	case rs.Status == 200 && c.method == "POST":
		_, _ = fmt.Sscanf(rs.Header.Get(header.ETag), `"%d-%d-%d"`, &resource, &c.made, &variant)
		return []byte("done"), true
	case err != nil || resource != c.resource || variant != c.variant:
		c.w.fault("%s: got %d %q", c.name, rs.Status, rs.Header.Get(header.ETag))
		return nil, false
	case version < c.least:
		c.w.fault("%s: got version %d after it was known that there is %d (%s)", c.name, version, c.least, rs.Header.Get(header.CacheStatus))
	}
	want = content(resource, version, variant)
	if rs.Status == 206 {
		p, _ := parseContentRange(rs.Header.Get(header.ContentRange))
		want = want[p.first : p.last+1]
	}
	if c.method == "HEAD" {
		return nil, false
	}
	if rs.Length >= 0 && rs.Length != int64(len(want)) {
		c.w.fault("%s: a length of %d, want %d", c.name, rs.Length, len(want))
	}
	return want, true
}

func (w *world) panicked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.panics > 0
}

// brokeOff notes a response that the client did not get whole without a reason.
func (c *visitor) brokeOff(err error) {
	c.w.mu.Lock()
	spoiled := c.w.resources[c.resource].spoiled
	c.w.mu.Unlock()
	if !spoiled && !errors.Is(err, errBehind) {
		c.w.fault("%s: broke off with %v", c.name, err)
	}
}
