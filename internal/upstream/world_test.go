package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/server/balance"
	"headgate/internal/server/health"
	"headgate/internal/setting/unit"
)

// world is a route between clients and servers that do anything at random: servers that
// answer early, late, twice, by half or not at all, clients that break off and leave, and
// plans that come and go. It knows what each request and each answer is, and so what
// nobody may get.
type world struct {
	t       *testing.T
	servers []*actor
	house   *house

	mu struct {
		sync.Mutex
		wrong  []string
		asked  map[int][]meeting // what each request is met with, attempt by attempt
		seen   map[int]int       // heads of it that servers have taken
		sizes  map[int]int       // of bodies that come whole
		trail  map[int][]string  // where it was taken
		panics int               // that the test made
		broken int               // invariants, as the log tells
	}
}

// meeting is how a server meets an attempt.
type meeting struct {
	how  deed
	size int
}

// deed is what a server does with a request.
type deed int

const (
	whole      deed = iota // a length
	pieced                 // no length, and trailers
	untilClose             // no length, and the end is that of the connection
	early                  // before the body has come, of which the rest is not read
	wordless               // the connection closed without a word
	resetFirst             // and reset
	halfHead
	halfBody
	resetBody
	badChunk
	twice   // a second answer that nobody asked for
	interim // 103 before
	busy503
	silent // no answer, until the connection is closed
	empty204
	lastOne // the connection is said to stay, and closed
	garbage
	refusedStream // HTTP/2: not looked at
	goAway        // HTTP/2: the connection ends behind this one, or before it
	deeds
)

// noise is what bodies are made of.
var noise = func() []byte {
	b, r := make([]byte, 1<<20), rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return b
}()

// contentOf returns the body that something is.
func contentOf(name string, size int) []byte {
	sum := 7
	for i := range len(name) {
		sum = sum*131 + int(name[i])
	}
	from := (sum & 0x7fffffff) % (len(noise) / 2)
	return noise[from : from+size]
}

// fault notes what must not be.
func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.wrong) < 20 {
		w.mu.wrong = append(w.mu.wrong, fmt.Sprintf(format, args...))
	}
}

// meets takes the next attempt of a request to a server and says what is done with it.
func (w *world) meets(id int, where string) (a meeting, attempt int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	attempt = w.mu.seen[id]
	w.mu.seen[id]++
	all := w.mu.asked[id]
	if len(all) == 0 {
		return meeting{whole, 10}, attempt
	}
	w.mu.trail[id] = append(w.mu.trail[id], where)
	return all[min(attempt, len(all)-1)], attempt
}

// unseen takes back that a server has looked at an attempt.
func (w *world) unseen(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.asked[id] = slices.Delete(slices.Clone(w.mu.asked[id]), 0, min(1, len(w.mu.asked[id])))
	w.mu.seen[id]--
}

// panicked counts a panic of the test's own.
func (w *world) panicked() {
	w.mu.Lock()
	w.mu.panics++
	w.mu.Unlock()
	panic("a test broke it")
}

// Handle counts the invariants that were found broken.
func (w *world) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "broken invariant" {
		return nil
	}
	w.mu.Lock()
	w.mu.broken++
	more := w.mu.broken > w.mu.panics
	w.mu.Unlock()
	if more {
		text := ""
		r.Attrs(func(a slog.Attr) bool { text += a.String() + "\n"; return true })
		w.fault("%s: %s", r.Message, text)
	}
	return nil
}

// Enabled is part of slog.Handler.
func (w *world) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs is part of slog.Handler.
func (w *world) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup is part of slog.Handler.
func (w *world) WithGroup(string) slog.Handler { return w }

// house keeps what plans keep, and retires what the next one does not.
type house struct {
	env    exchange.Env
	kept   map[string]exchange.Kept // of the plan that is
	next   map[string]exchange.Kept // of the plan that comes
	all    []exchange.Kept
	source atomic.Pointer[Servers]
}

func newHouse(log *slog.Logger) *house {
	h := &house{kept: map[string]exchange.Kept{}}
	h.env = exchange.Env{Log: log, Clock: time.Now}
	h.env.Keep = func(key string, open func() exchange.Kept) exchange.Kept {
		k := h.next[key]
		if k == nil {
			k = h.kept[key]
		}
		if k == nil {
			k = open()
			h.all = append(h.all, k)
		}
		h.next[key] = k
		return k
	}
	return h
}

// serve makes a plan the one that serves.
func (h *house) serve(targets []Target, settings Settings, policy Policy) {
	h.next = map[string]exchange.Kept{}
	h.source.Store(New(targets, settings, policy, h.env))
	before := h.kept
	h.kept = h.next
	for key, k := range before {
		if h.kept[key] == nil {
			k.Retire()
		}
	}
}

// close retires everything.
func (h *house) close() {
	for _, k := range h.kept {
		k.Retire()
	}
}

// plan puts another plan in force: other servers, bounds and rules.
func (w *world) plan(r *rand.Rand) {
	var targets []Target
	for i, a := range w.servers {
		if len(targets) > 0 && r.IntN(4) == 0 {
			continue
		}
		t := target(a.address, 1+r.IntN(2))
		t.HTTP2 = a.two
		t.Backup = i > 0 && r.IntN(6) == 0
		if r.IntN(2) == 0 {
			t.MaxRequests = 2 + 2*r.IntN(2)
		}
		targets = append(targets, t)
	}
	settings := Settings{IdleTimeout: time.Minute, IdleConnections: [...]int{0, 2, 100}[r.IntN(3)], BodyIdle: time.Minute, ContinueWait: 5 * time.Millisecond}
	policy := Policy{Proxy: "site", Route: "/", QueueLength: 50, QueueTimeout: 10 * time.Second}
	policy.Balance.Method = [...]balance.Method{balance.RoundRobin, balance.LeastConnections, balance.P2CEWMA, balance.Random, balance.First}[r.IntN(5)]
	if r.IntN(4) > 0 {
		policy.Retry = &Retry{Attempts: 2 + r.IntN(2), On: []Condition{OnReset, OnTimeout, "502-504"}, Budget: 100}
	}
	if r.IntN(2) == 0 {
		policy.Health.Ejection = health.Ejection{Enabled: true, Failures: 2, Time: unit.Duration(5 * time.Millisecond), MaxTime: unit.Duration(5 * time.Millisecond), MaxPercent: 50}
	}
	if r.IntN(3) == 0 {
		policy.Health.Breaker = &health.Breaker{ErrorPercent: 50, Window: unit.Duration(time.Second), MinRequests: 4, Status: "500-599", OpenTime: unit.Duration(5 * time.Millisecond), Probes: 2}
	}
	w.house.serve(targets, settings, policy)
}

// hold drains, disables or lets back a server.
func (w *world) hold(r *rand.Rand) {
	s := w.house.source.Load()
	if len(s.list) < 2 {
		return
	}
	s.list[0].live.Hold(exchange.Held{Hold: [...]exchange.Hold{exchange.NotHeld, exchange.HeldDraining, exchange.HeldDisabled}[r.IntN(3)]})
}

// visitor is a client and its request.
type visitor struct {
	w       *world
	id      int
	r       *rand.Rand
	method  string
	size    int // of its body
	upgrade bool
	body    *givenBody

	left   atomic.Bool
	stays  int // so many bytes it reads before it leaves; -1 is all
	panics bool
	sent   int // responses
}

// visit makes a request at random, and what servers are to do with it.
func (w *world) visit(id int, r *rand.Rand) *visitor {
	v := &visitor{w: w, id: id, r: r, stays: -1}
	v.method = [...]string{"GET", "GET", "HEAD", "PUT", "PUT", "POST", "POST", "DELETE"}[r.IntN(8)]
	var all []meeting
	for range 4 {
		a := meeting{deed(r.IntN(int(deeds))), [...]int{0, 5, 3000, 40_000}[r.IntN(4)]}
		if r.IntN(3) == 0 {
			a.how = whole
		}
		if a.how == twice {
			a.size = min(a.size, 3000) // so that both come at once: see lookAfter
		}
		all = append(all, a)
	}
	w.mu.Lock()
	w.mu.asked[id] = all
	w.mu.Unlock()
	switch r.IntN(12) {
	case 0:
		v.stays = r.IntN(5000)
	case 1:
		v.panics = true
	case 2:
		time.AfterFunc(time.Duration(r.IntN(20_000))*time.Microsecond, func() { v.left.Store(true) })
	case 3:
		v.upgrade, v.method = true, "GET"
	}
	return v
}

// serve takes the request to its end.
func (v *visitor) serve() {
	ex := exchangetest.New(v.w.t, exchangetest.Head(v.method, "/"+strconv.Itoa(v.id)))
	ex.Front = v
	rq := &ex.Request
	if v.upgrade {
		rq.Upgrade = "echo"
	}
	if (v.method == "PUT" || v.method == "POST") && v.r.IntN(5) > 0 {
		v.size = [...]int{0, 9, 5000, 40_000, 200_000}[v.r.IntN(5)]
		v.body = newGivenBody(v, contentOf(fmt.Sprint("body", v.id), v.size))
		rq.Body, rq.Length = v.body, int64(v.size)
		if v.body.cut < 0 {
			v.w.mu.Lock()
			v.w.mu.sizes[v.id] = v.size
			v.w.mu.Unlock()
		}
		if v.r.IntN(2) == 0 || v.size == 0 {
			rq.Length = -1
		} else if v.body.cut < 0 && v.size < 10_000 && v.r.IntN(2) == 0 {
			rq.Body = wholeBody{v.body}
		}
		rq.Continue = v.r.IntN(4) == 0
	}
	ex.Limits.ConnectTimeout, ex.Limits.RequestTimeout = 10*time.Second, 30*time.Millisecond
	told := 0
	p := &exchange.Pipeline{Source: v.w.house.source.Load(), Log: v.w.house.env.Log, Done: []func(*exchange.Exchange){func(*exchange.Exchange) { told++ }}}
	p.Serve(ex)
	if v.body != nil {
		v.body.Close()
	}
	if told != 1 || v.sent > 1 {
		v.w.fault("request %d: %d outcomes, %d responses", v.id, told, v.sent)
	}
	v.w.mu.Lock()
	seen := v.w.mu.seen[v.id]
	v.w.mu.Unlock()
	if v.method == "POST" && seen > 1 {
		v.w.fault("request %d: a POST was taken by servers %d times: %v, %q, %v %q", v.id, seen, v.w.mu.asked[v.id], v.w.mu.trail[v.id], ex.Reason, ex.Cause)
	}
}

// Gone reports whether the client has left.
func (v *visitor) Gone() bool { return v.left.Load() }

// Inform is part of exchange.Front.
func (v *visitor) Inform(*exchange.Exchange, int, *header.List) error {
	if v.panics {
		v.panics = false
		v.w.panicked()
	}
	return nil
}

// Abort is part of exchange.Front.
func (v *visitor) Abort(*exchange.Exchange) {}

// Send reads the response and looks at what comes.
func (v *visitor) Send(ex *exchange.Exchange) error {
	rs := &ex.Response
	rs.HeadSent = true
	v.sent++
	if rs.Tunnel != nil {
		return v.talk(rs.Tunnel)
	}
	if rs.Ours {
		return nil
	}
	tag, _ := rs.Header.Lookup("X-Tag")
	tag = strings.Clone(tag)
	var id, attempt, size int
	if _, err := fmt.Sscanf(tag, "%d/%d/%d", &id, &attempt, &size); err != nil || id != v.id {
		v.w.fault("request %d: got %d of %q", v.id, rs.Status, tag)
		return nil
	}
	want := contentOf(tag, size)
	got := 0
	if v.panics {
		v.panics = false
		v.w.panicked()
	}
	buf := make([]byte, 1+v.r.IntN(20_000))
	for rs.Body != nil {
		n, err := rs.Body.Read(buf)
		if got+n > len(want) || !bytes.Equal(buf[:n], want[got:got+n]) {
			v.w.fault("request %d: %d bytes behind %d are none of %q", v.id, n, got, tag)
			return nil
		}
		got += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if v.stays >= 0 && got > v.stays {
			return errors.New("the client left")
		}
	}
	if v.method == "HEAD" || rs.Status == 204 {
		want = nil
	}
	if got != len(want) || rs.Length >= 0 && v.method != "HEAD" && rs.Length != int64(len(want)) {
		v.w.fault("request %d: %d bytes of %q as a whole, with a length of %d", v.id, got, tag, rs.Length)
	}
	return nil
}

// talk speaks with an echo behind an upgrade.
func (v *visitor) talk(s exchange.Stream) error {
	defer s.Close()
	s.SetIdle(10 * time.Second)
	text := fmt.Appendf(nil, "hello %d", v.id)
	if _, err := s.Write(text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	for n := 0; n < len(got); {
		k, err := s.Read(got[n:])
		if n += k; err != nil {
			return err
		}
	}
	if !bytes.Equal(got, text) {
		v.w.fault("request %d: the tunnel brought %q", v.id, got)
	}
	return nil
}

// givenBody is the body of a request, which comes in pieces, breaks off or panics.
type givenBody struct {
	v      *visitor
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	rest   []byte
	pauses int // pieces that are waited for
	cut    int // pieces until it breaks off; -1 never
	panics bool
}

func newGivenBody(v *visitor, all []byte) *givenBody {
	b := &givenBody{v: v, closed: make(chan struct{}), rest: all, pauses: v.r.IntN(4), cut: -1}
	switch v.r.IntN(10) {
	case 0:
		b.cut = v.r.IntN(3)
	case 1:
		b.cut, b.panics = v.r.IntN(3), true
	}
	return b
}

// Read gives a piece.
func (b *givenBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.closed:
		return 0, errors.New("the body was given up")
	default:
	}
	switch {
	case b.cut == 0 && b.panics:
		b.panics = false
		b.v.w.panicked()
	case b.cut == 0:
		return 0, &exchange.Error{Reason: exchange.ClientClosed, Err: io.ErrUnexpectedEOF}
	case b.cut > 0:
		b.cut--
	}
	if b.pauses > 0 {
		b.pauses--
		select {
		case <-b.closed:
			return 0, errors.New("the body was given up")
		case <-time.After(time.Millisecond):
		}
	}
	n := copy(p[:min(len(p), 7000)], b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 && b.cut < 0 {
		return n, io.EOF
	}
	if n == 0 {
		b.cut = 0
		return 0, &exchange.Error{Reason: exchange.ClientClosed, Err: io.ErrUnexpectedEOF}
	}
	return n, nil
}

// Ready reports whether a Read does not wait.
func (b *givenBody) Ready() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return b.pauses == 0
}

// Close gives it up.
func (b *givenBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// wholeBody is one that is all there.
type wholeBody struct{ *givenBody }

// Whole returns it.
func (b wholeBody) Whole() ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := contentOf(fmt.Sprint("body", b.v.id), b.v.size)
	return all, len(b.rest) == len(all)
}

// actor is a server.
type actor struct {
	w       *world
	address string
	two     bool // it speaks HTTP/2
	open    atomic.Int32
}
