package cache

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
)

// TestThousandMissesAreOneRequest asks for one thing a thousand times at once.
func TestThousandMissesAreOneRequest(t *testing.T) {
	s := newStage(t, settings())
	begun := make(chan struct{})
	var asked atomic.Int32
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		asked.Add(1)
		<-begun
		return answer("200|Cache-Control: max-age=60||"+strings.Repeat("x", 5000), s.clock)(ex)
	}
	const clients = 1000
	var wg sync.WaitGroup
	var bad atomic.Int32
	for range clients {
		wg.Go(func() {
			if f := s.request("GET /"); f.Status != 200 || len(f.Body) != 5000 || !strings.Contains(f.Field("Cache-Status"), "fwd=uri-miss") {
				bad.Add(1)
			}
		})
	}
	testhouse.Eventually(t, "all wait for one request", func() bool { return s.waiting() == clients-1 })
	close(begun)
	wg.Wait()
	if asked.Load() != 1 || bad.Load() != 0 {
		t.Errorf("the origin was asked %d times, want 1; %d bad answers", asked.Load(), bad.Load())
	}
}

// waiting returns how many requests wait for others.
func (s *stage) waiting() (n int) {
	for i := range s.cache.store.shards {
		sh := &s.cache.store.shards[i]
		sh.mu.Lock()
		for _, fl := range sh.mu.flights {
			n += int(fl.waiting.Load())
		}
		sh.mu.Unlock()
	}
	return n
}

// streamed makes an origin whose body comes in pieces.
func (s *stage) streamed(fields string) *pieces {
	p := newPieces()
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		if a := answer(fields+"|chunked||", s.clock)(ex); a != nil {
			return a
		}
		ex.Response.Body = p
		return nil
	}
	return p
}

// open begins a request and returns its exchange with a response to read from.
func (s *stage) open(request string) *exchange.Exchange {
	s.t.Helper()
	method, target, _ := strings.Cut(request, " ")
	ex := exchangetest.New(s.t, exchangetest.Head(method, target))
	if a := s.cache.Respond(ex); a != nil {
		s.t.Fatalf("%s: %v", request, a.Reason)
	}
	return ex
}

// readN reads n bytes.
func readN(t *testing.T, ex *exchange.Exchange, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(ex.Response.Body, b); err != nil {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	return string(b)
}

func TestBodyStreamsToAllWhileItComes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := newStage(t, settings())
	p := s.streamed("200|Cache-Control: max-age=60")
	first := s.open("GET /")
	p.come <- "hello "
	if got := readN(t, first, 6); got != "hello " {
		t.Fatalf("first got %q", got)
	}
	second := s.open("GET /")
	if got := readN(t, second, 6); got != "hello " {
		t.Fatalf("second got %q", got)
	}
	// The second reads on by itself; the first, which is slower, loses nothing.
	p.come <- "world"
	if got := readN(t, second, 5); got != "world" {
		t.Fatalf("second got %q", got)
	}
	close(p.come)
	for name, ex := range map[string]*exchange.Exchange{"first": first, "second": second} {
		rest, err := io.ReadAll(ex.Response.Body)
		if err != nil || name == "first" && string(rest) != "world" || name == "second" && len(rest) > 0 {
			t.Errorf("%s got %q, %v", name, rest, err)
		}
		ex.Response.Body.Close()
	}
	if f := s.request("GET /"); f.Body != "hello world" || s.origin.count() != 1 {
		t.Errorf("stored is %q, asked %d times", f.Body, s.origin.count())
	}
}

func TestBrokenBodyIsNeverStored(t *testing.T) {
	s := newStage(t, settings())
	p := s.streamed("200|Cache-Control: max-age=60")
	p.broken = &exchange.Error{Reason: exchange.UpstreamReset, Err: errors.New("reset")}
	first, second := s.open("GET /"), (*exchange.Exchange)(nil)
	p.come <- "hel"
	second = s.open("GET /")
	close(p.come)
	for _, ex := range []*exchange.Exchange{first, second} {
		_, err := io.ReadAll(ex.Response.Body)
		var known *exchange.Error
		if !errors.As(err, &known) || known.Reason != exchange.UpstreamReset {
			t.Errorf("got %v, want upstream_reset", err)
		}
		ex.Response.Body.Close()
	}
	s.origin.reply = answer("200|Cache-Control: max-age=60||whole", s.clock)
	if f := s.request("GET /"); f.Body != "whole" || s.origin.count() != 2 {
		t.Errorf("got %q, asked %d times", f.Body, s.origin.count())
	}
	if n := s.cache.store.entries.Load(); n != 1 {
		t.Errorf("%d entries hold memory, want 1", n)
	}
}

func TestShortBodyIsNeverStored(t *testing.T) {
	s := newStage(t, settings())
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		answer("200|Cache-Control: max-age=60||12345", s.clock)(ex)
		ex.Response.Length = 10
		return nil
	}
	if f := s.request("GET /"); f.Err == nil {
		t.Errorf("got %q without an error", f.Body)
	}
	s.request("GET /")
	if s.origin.count() != 2 {
		t.Errorf("asked %d times, want 2", s.origin.count())
	}
}

func TestBodyGoesOnWhenItsClientLeaves(t *testing.T) {
	s := newStage(t, settings())
	p := s.streamed("200|Cache-Control: max-age=60")
	first := s.open("GET /")
	p.come <- "hello "
	readN(t, first, 6)
	first.Response.Body.Close()
	p.come <- "world"
	close(p.come)
	<-p.closed
	testhouse.Eventually(t, "the new body is served", func() bool { return s.request("GET /").Body == "hello world" })
	if s.origin.count() != 1 {
		t.Errorf("asked %d times, want 1", s.origin.count())
	}
}

func TestBodyThatGrowsTooLargePassesThrough(t *testing.T) {
	s := newStage(t, settings(ofSize(64*unit.KiB)))
	p := s.streamed("200|Cache-Control: max-age=60")
	ex := s.open("GET /")
	piece := strings.Repeat("0123456789abcdef", 4096)
	go func() {
		for range 64 {
			p.come <- piece
		}
		close(p.come)
	}()
	got, err := io.ReadAll(ex.Response.Body)
	if err != nil || string(got) != strings.Repeat(piece, 64) {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, 64*len(piece))
	}
	ex.Response.Body.Close()
	if n := s.cache.store.entries.Load(); n != 0 {
		t.Errorf("%d entries hold memory, want none", n)
	}
	s.origin.reply = answer("200||x", s.clock)
	if s.request("GET /"); s.origin.count() != 2 {
		t.Errorf("asked %d times, want 2", s.origin.count())
	}
}

// TestTooLargeForTwo passes a body through to a fast client and to a slow one.
func TestTooLargeForTwo(t *testing.T) {
	s := newStage(t, settings(ofSize(16*unit.KiB)))
	p := s.streamed("200|Cache-Control: max-age=60")
	fast, slow := s.open("GET /"), s.open("GET /")
	var want strings.Builder
	for i := range 300 {
		want.WriteString(strings.Repeat(string(rune('a'+i%26)), 1000))
	}
	go func() {
		for text := want.String(); text != ""; text = text[1000:] {
			p.come <- text[:1000]
		}
		close(p.come)
	}()
	if got := readN(t, slow, 10); got != want.String()[:10] {
		t.Fatalf("slow got %q", got)
	}
	for name, ex := range map[string]*exchange.Exchange{"fast": fast, "slow": slow} {
		rest, err := io.ReadAll(ex.Response.Body)
		if text := want.String(); err != nil || name == "fast" && string(rest) != text || name == "slow" && string(rest) != text[10:] {
			t.Errorf("%s got %d bytes of %d, %v", name, len(rest), want.Len(), err)
		}
		ex.Response.Body.Close()
	}
}

// TestReloadsAreOneRequest collapses requests that want an answer of their own time.
func TestReloadsAreOneRequest(t *testing.T) {
	s := newStage(t, settings())
	s.origin.reply = answer("200|Cache-Control: max-age=60||old", s.clock)
	s.request("GET /")
	begun := make(chan struct{})
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		<-begun
		return answer("200|Cache-Control: max-age=60||new", s.clock)(ex)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if f := s.request("GET /|Cache-Control: no-cache"); f.Body != "new" {
				t.Errorf("got %q", f.Body)
			}
		})
	}
	testhouse.Eventually(t, "all wait for one request", func() bool { return s.waiting() == 19 })
	close(begun)
	wg.Wait()
	if s.origin.count() != 2 {
		t.Errorf("asked %d times, want 2", s.origin.count())
	}
}

// TestEndlessBodyIsGivenUp reads on for nobody only for a while.
func TestEndlessBodyIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, settings())
		p := s.streamed("200|Cache-Control: max-age=60")
		first := s.open("GET /")
		p.come <- "x"
		readN(t, first, 1)
		first.Response.Body.Close()
		for ended := false; !ended; {
			select {
			case <-p.closed:
				ended = true
			case <-time.After(time.Second):
				p.come <- "x"
			}
		}
	})
}

// costly is a body that is always at hand, never ends, and costs time.
type costly struct {
	reads  atomic.Int64
	broken atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *costly) Ready() bool { return true }

func (c *costly) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *costly) Read(p []byte) (int, error) {
	c.reads.Add(1)
	time.Sleep(10 * time.Millisecond)
	p = p[:min(len(p), 512)]
	clear(p)
	if c.broken.Load() {
		return len(p), io.EOF
	}
	return len(p), nil
}

// TestEndlessWorkIsGivenUp reads a body that is always at hand, such as one that is
// compressed, for nobody only for as long as it costs little: when its client has
// left, and when it is fetched anew in the background.
func TestEndlessWorkIsGivenUp(t *testing.T) {
	const most = int64(busy/(10*time.Millisecond)) + atOnce/512 + 20
	for _, refreshed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, settings())
			s.origin.reply = answer("200|Cache-Control: max-age=1, stale-while-revalidate=60||one", s.clock)
			if refreshed {
				s.request("GET /")
				s.wait(2)
			}
			c := &costly{closed: make(chan struct{})}
			s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
				answer("200|Cache-Control: max-age=60|chunked||", s.clock)(ex)
				ex.Response.Body = c
				return nil
			}
			first := s.open("GET /")
			before := c.reads.Load()
			if first.Response.Body != nil {
				first.Response.Body.Close()
			}
			select {
			case <-c.closed:
			case <-time.After(time.Hour):
				c.broken.Store(true)
			}
			if n := c.reads.Load() - before; n > most {
				t.Errorf("refreshed %v: read %d times for nobody, want at most %d", refreshed, n, most)
			}
		})
	}
}

// TestHeadDoesNotWaitForAFastBody sends the head of a long body that is at hand
// before all of it is read.
func TestHeadDoesNotWaitForAFastBody(t *testing.T) {
	s := newStage(t, settings(ofSize(8*unit.MiB)))
	p := s.streamed("200|Cache-Control: max-age=60")
	for range 90 {
		p.come <- strings.Repeat("x", 16<<10)
	}
	ex := s.open("GET /")
	if n := len(p.come); n < 80 {
		t.Errorf("%d pieces are left, want nearly all", n)
	}
	close(p.come)
	if b, err := io.ReadAll(ex.Response.Body); len(b) != 90*16<<10 || err != nil {
		t.Errorf("got %d bytes, %v", len(b), err)
	}
	ex.Response.Body.Close()
}

// TestUncacheableIsNotSerialised lets nobody wait for the answers to a request that
// could not be stored.
func TestUncacheableIsNotSerialised(t *testing.T) {
	s := newStage(t, settings())
	s.origin.reply = answer("200|Cache-Control: private||x", s.clock)
	s.request("GET /")
	var running atomic.Int32
	all := make(chan struct{})
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		if running.Add(1) == 10 {
			close(all)
		}
		<-all // none can go on before all are here
		return answer("200|Cache-Control: private||x", s.clock)(ex)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { s.request("GET /") })
	}
	wg.Wait()
}

func TestWaitersShareAFailure(t *testing.T) {
	s := newStage(t, settings())
	begun := make(chan struct{})
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		<-begun
		return exchange.Fail(exchange.UpstreamTimeout, "late")
	}
	var wg sync.WaitGroup
	var bad atomic.Int32
	for range 20 {
		wg.Go(func() {
			if s.request("GET /").Status != 504 {
				bad.Add(1)
			}
		})
	}
	testhouse.Eventually(t, "all wait for one request", func() bool { return s.waiting() == 19 })
	close(begun)
	wg.Wait()
	if s.origin.count() != 1 || bad.Load() > 0 {
		t.Errorf("asked %d times, %d without 504", s.origin.count(), bad.Load())
	}
}

// TestStaleWhileRevalidate answers at once with what is stale, and fetches it anew
// once in the background.
func TestStaleWhileRevalidate(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := newStage(t, settings())
	s.origin.reply = answer(`200|Cache-Control: max-age=10, stale-while-revalidate=60|ETag: "a"||one`, s.clock)
	s.request("GET /")
	s.wait(15)
	begun := make(chan struct{})
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		<-begun
		return answer(`200|Cache-Control: max-age=10, stale-while-revalidate=60|ETag: "b"||two`, s.clock)(ex)
	}
	for range 10 {
		f, ex := s.exchange("GET /")
		if f.Body != "one" || f.Field("Cache-Status") != "headgate; hit; ttl=-5" || ex.Cache.Use != exchange.CacheStale {
			t.Fatalf("got %q %q %v", f.Body, f.Fields, ex.Cache.Use)
		}
	}
	close(begun)
	testhouse.Eventually(t, "the new body is served", func() bool { return s.request("GET /").Body == "two" })
	if s.origin.count() != 2 {
		t.Errorf("asked %d times, want 2", s.origin.count())
	}
	s.wait(71)
	s.origin.reply = answer(`200|Cache-Control: max-age=10||three`, s.clock)
	if f := s.request("GET /"); f.Body != "three" {
		t.Errorf("after its time: got %q", f.Body)
	}
}

func TestInvalidatedWhileItIsFetched(t *testing.T) {
	s := newStage(t, settings())
	begun := make(chan struct{})
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		if ex.Request.Method == "POST" {
			return answer("200||", s.clock)(ex)
		}
		<-begun
		return answer("200|Cache-Control: max-age=60||old", s.clock)(ex)
	}
	done := make(chan string)
	go func() { done <- s.request("GET /").Body }()
	testhouse.Eventually(t, "the origin is asked", func() bool { return s.origin.count() == 1 })
	s.request("POST /")
	close(begun)
	if got := <-done; got != "old" {
		t.Errorf("got %q", got)
	}
	s.origin.reply = answer("200|Cache-Control: max-age=60||new", s.clock)
	if f := s.request("GET /"); f.Body != "new" {
		t.Errorf("got %q, want what the POST left", f.Body)
	}
}

// TestInvalidatedWhileItIsValidated does not put back what a POST took out.
func TestInvalidatedWhileItIsValidated(t *testing.T) {
	s := newStage(t, settings())
	s.origin.reply = answer(`200|Cache-Control: no-cache|ETag: "a"||old`, s.clock)
	s.request("GET /")
	begun := make(chan struct{})
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		if ex.Request.Method == "POST" {
			return answer("200||", s.clock)(ex)
		}
		<-begun
		return answer("304|Cache-Control: max-age=60", s.clock)(ex)
	}
	done := make(chan string)
	go func() { done <- s.request("GET /").Body }()
	testhouse.Eventually(t, "the origin is asked", func() bool { return s.origin.count() == 2 })
	s.request("POST /")
	close(begun)
	if got := <-done; got != "old" {
		t.Errorf("got %q", got)
	}
	s.origin.reply = answer("200|Cache-Control: max-age=60||new", s.clock)
	if f := s.request("GET /"); f.Body != "new" {
		t.Errorf("got %q, want what the POST left", f.Body)
	}
	s.request("GET /") // nobody waits for what had to be validated: this one is stored
	if f := s.request("GET /"); f.Body != "new" || s.origin.count() != 5 {
		t.Errorf("got %q, asked %d times, want 5", f.Body, s.origin.count())
	}
}

func TestPersonalAnswersAreNotShared(t *testing.T) {
	personal := func(ex *exchange.Exchange) { ex.Personal = true }
	s := newStage(t, settings())
	s.origin.reply = answer("200|Cache-Control: max-age=60||mine", s.clock)
	s.request("GET /a", personal)
	s.origin.reply = answer("200|Cache-Control: max-age=60||yours", s.clock)
	if f := s.request("GET /a"); f.Body != "yours" {
		t.Errorf("got %q", f.Body)
	}
	s.origin.reply = answer("200|Cache-Control: max-age=60, public||all", s.clock)
	s.request("GET /b", personal)
	if f := s.request("GET /b"); f.Body != "all" || s.origin.count() != 3 {
		t.Errorf("got %q", f.Body)
	}
}

func TestKeysCannotBePoisoned(t *testing.T) {
	s := newStage(t, settings())
	n := 0
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		n++
		return answer("200|Cache-Control: max-age=60||"+strings.Repeat("x", n), s.clock)(ex)
	}
	route := func(name string) exchangetest.Option {
		return func(ex *exchange.Exchange) { ex.Place = &exchange.Place{Port: "web", Proxy: "site", Route: name} }
	}
	for i, o := range [][]exchangetest.Option{
		{}, {exchangetest.Host("EXAMPLE.com")}, {exchangetest.Host("example.com:81")}, {exchangetest.Host("example.com.")},
		{exchangetest.Secure()}, {route("/x")}, {exchangetest.Host("example.com:80")},
	} {
		if f := s.request("GET /", o...); len(f.Body) != i+1 {
			t.Errorf("%d: got the answer to request %d", i+1, len(f.Body))
		}
	}
}
