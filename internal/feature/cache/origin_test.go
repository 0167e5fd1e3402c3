package cache

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
)

// begun is when the tests' clock begins.
var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// origin is a server that the tests play.
type origin struct {
	mu    sync.Mutex
	reply func(ex *exchange.Exchange) *exchange.Answer
	asked []string // heads
}

// Respond answers as the test said.
func (o *origin) Respond(ex *exchange.Exchange) *exchange.Answer {
	o.mu.Lock()
	head := ex.Request.Method + " " + ex.Request.Path + ex.Request.Query + "\n"
	for _, f := range ex.Request.Header.All() {
		head += f.Name + ": " + f.Value + "\n"
	}
	o.asked = append(o.asked, head)
	reply := o.reply
	o.mu.Unlock()
	return reply(ex)
}

// Describe returns "origin".
func (o *origin) Describe() string { return "origin" }

// last returns the head of the last request.
func (o *origin) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[len(o.asked)-1]
}

func (o *origin) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asked)
}

// answer makes a reply of "status|Name: value|...||body". {N} in a value is the
// date N seconds from now. Without a Content-Length line the body has a length;
// "chunked" as a line leaves it open.
func answer(text string, now func() time.Time) func(*exchange.Exchange) *exchange.Answer {
	return func(ex *exchange.Exchange) *exchange.Answer {
		if text == "down" {
			return exchange.Fail(exchange.UpstreamRefused, "down")
		}
		head, body, _ := strings.Cut(text, "||")
		lines := strings.Split(head, "|")
		rs := &ex.Response
		rs.Reset()
		rs.Status, _ = strconv.Atoi(lines[0])
		rs.Length = int64(len(body))
		for _, line := range lines[1:] {
			if line == "chunked" {
				rs.Length = -1
				continue
			}
			name, value, _ := strings.Cut(line, ": ")
			rs.Header.AddField(name, dates(value, now()))
		}
		if ex.Request.Method == "HEAD" || rs.Status == 304 {
			if rs.Status == 304 {
				rs.Length = -1
			}
			body = ""
		}
		rs.Body = exchangetest.Body(body)
		return nil
	}
}

// dates puts dates in the place of {N}.
func dates(s string, now time.Time) string {
	for {
		i, j := strings.IndexByte(s, '{'), strings.IndexByte(s, '}')
		if i < 0 || j < i {
			return s
		}
		n, _ := strconv.Atoi(s[i+1 : j])
		s = s[:i] + now.Add(time.Duration(n)*time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT") + s[j+1:]
	}
}

// stage is a cache, its origin and its clock.
type stage struct {
	t      testing.TB
	mu     sync.Mutex
	now    time.Time
	origin *origin
	cache  *Cache
	env    exchange.Env
}

func (s *stage) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *stage) wait(seconds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(time.Duration(seconds) * time.Second)
}

// settings returns the defaults.
func settings(change ...func(*Config)) *Config {
	c := &Config{Enabled: true, MemoryLimit: 16 * unit.MiB, MaxEntry: unit.MiB}
	for _, f := range change {
		f(c)
	}
	return c
}

func newStage(t testing.TB, c *Config) *stage {
	s := &stage{t: t, now: begun, origin: &origin{}}
	s.env = exchangetest.Env(t, s.clock)
	s.env.Scope = "proxy test"
	store := Open(c, s.env)
	s.cache = New(c, store, s.origin)
	t.Cleanup(func() {
		store.Retire()
		testhouse.Eventually(t, "nothing runs in the background", func() bool { return len(store.background) == 0 })
	})
	return s
}

// request sends "METHOD target|Name: value|..." and returns what the client gets.
func (s *stage) request(request string, options ...exchangetest.Option) *exchangetest.Front {
	front, _ := s.exchange(request, options...)
	return front
}

func (s *stage) exchange(request string, options ...exchangetest.Option) (*exchangetest.Front, *exchange.Exchange) {
	lines := strings.Split(request, "|")
	method, target, _ := strings.Cut(lines[0], " ")
	fields := lines[1:]
	for i := range fields {
		fields[i] = dates(fields[i], s.clock())
	}
	ex := exchangetest.New(s.t, append([]exchangetest.Option{exchangetest.Head(method, target, fields...)}, options...)...)
	return exchangetest.Run(s.t, ex, s.cache, s.cache.Filter()), ex
}

// turn is one request of a test, and what must come of it.
type turn struct {
	wait  int    // seconds before it
	send  string // "GET /x|Name: value"
	reply string // of the origin, if it is asked; "" is a failure of the test
	// asked says whether the origin must be asked.
	asked bool
	// want is "status|Name: value|!Name||body"; what is not named may be anything.
	// "Name:" alone has to be there.
	want string
	// sent is what the origin must get: "Name: value|!Name".
	sent string
}

// play runs turns on a stage.
func (s *stage) play(t *testing.T, turns []turn) {
	t.Helper()
	for i, tn := range turns {
		s.wait(tn.wait)
		if tn.send == "" {
			tn.send = "GET /"
		}
		before := s.origin.count()
		s.origin.mu.Lock()
		s.origin.reply = answer(tn.reply, s.clock)
		s.origin.mu.Unlock()
		front := s.request(tn.send)
		at := fmt.Sprintf("turn %d (%s)", i+1, tn.send)
		asked := s.origin.count() > before
		if asked != tn.asked {
			t.Fatalf("%s: the origin was asked: %v, want %v; response %d %q", at, asked, tn.asked, front.Status, front.Fields)
		}
		compare(t, at, front, tn.want)
		if asked {
			s.sent(t, at, tn.sent)
		}
	}
}

func (s *stage) sent(t *testing.T, at, want string) {
	t.Helper()
	head := s.origin.asked[len(s.origin.asked)-1]
	for line := range strings.SplitSeq(want, "|") {
		line = dates(line, s.clock())
		if name, ok := strings.CutPrefix(line, "!"); ok {
			if strings.Contains(strings.ToLower(head), "\n"+strings.ToLower(name)+":") {
				t.Fatalf("%s: the origin got %s:\n%s", at, name, head)
			}
		} else if !strings.Contains(head, line) {
			t.Fatalf("%s: the origin did not get %q:\n%s", at, line, head)
		}
	}
}

func compare(t *testing.T, at string, front *exchangetest.Front, want string) {
	t.Helper()
	if want == "" {
		return
	}
	head, body, hasBody := strings.Cut(want, "||")
	lines := strings.Split(head, "|")
	if lines[0] != "" && strconv.Itoa(front.Status) != lines[0] {
		t.Fatalf("%s: status %d, want %s; %q", at, front.Status, lines[0], front.Fields)
	}
	for _, line := range lines[1:] {
		if name, ok := strings.CutPrefix(line, "!"); ok {
			if front.Field(name) != "" {
				t.Fatalf("%s: got %s: %s", at, name, front.Field(name))
			}
			continue
		}
		if name, ok := strings.CutSuffix(line, ":"); ok {
			if front.Field(name) == "" {
				t.Fatalf("%s: no %s in %q", at, name, front.Fields)
			}
			continue
		}
		if !slices.Contains(front.Fields, line) {
			t.Fatalf("%s: no %q in %q", at, line, front.Fields)
		}
	}
	if hasBody && front.Body != body {
		t.Fatalf("%s: body %q, want %q (%v)", at, front.Body, body, front.Err)
	}
}

// pieces is a body that a test feeds.
type pieces struct {
	come   chan string // closed at the end
	rest   string
	broken error // at the end
	closed chan struct{}
	once   sync.Once
}

func newPieces() *pieces { return &pieces{come: make(chan string, 100), closed: make(chan struct{})} }

func (p *pieces) Ready() bool { return p.rest != "" || len(p.come) > 0 }

func (p *pieces) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pieces) Read(b []byte) (int, error) {
	for p.rest == "" {
		s, ok := <-p.come
		if !ok {
			if p.broken != nil {
				return 0, p.broken
			}
			return 0, io.EOF
		}
		p.rest = s
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
