package upstream

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
)

// odd is a server that does what a test wants with each request. It counts the
// connections and the requests.
type odd struct {
	address string
	mu      struct {
		sync.Mutex
		conns, requests int
		bodies          []string
	}
}

// newOdd starts a server that calls answer for each request. It keeps the
// connection while answer returns true.
func newOdd(t *testing.T, answer func(net.Conn, *http.Request) bool) *odd {
	t.Helper()
	return newOddAt(t, "127.0.0.1:0", answer)
}

// newOddAt is newOdd on an address of its own.
func newOddAt(t *testing.T, address string, answer func(net.Conn, *http.Request) bool) *odd {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no %s here: %v", address, err)
	}
	o := &odd{address: ln.Addr().String()}
	testhouse.ServerOn(t, ln, func(c net.Conn) {
		o.mu.Lock()
		o.mu.conns++
		o.mu.Unlock()
		for r := bufio.NewReader(c); ; {
			rq, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(rq.Body)
			o.mu.Lock()
			o.mu.requests++
			o.mu.bodies = append(o.mu.bodies, string(body))
			o.mu.Unlock()
			if !answer(c, rq) {
				return
			}
		}
	})
	return o
}

func (o *odd) seen() (conns, requests int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.conns, o.mu.requests
}

// respondText answers every request with the same text.
func respondText(text string) func(net.Conn, *http.Request) bool {
	return func(c net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	}
}

const (
	fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
)

// withRetry returns a source with a policy, and what was told of its retries.
func withRetry(t *testing.T, r *Retry, servers ...*odd) (*Servers, *[2]int) {
	t.Helper()
	var targets []Target
	for _, o := range servers {
		targets = append(targets, target(o.address, 1))
	}
	told := &[2]int{}
	env := exchange.Env{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Keep: func(_ string, open func() exchange.Kept) exchange.Kept {
		k := open()
		t.Cleanup(k.Retire)
		return k
	}}
	policy := Policy{Retry: r, Retried: func(sent bool) {
		if sent {
			told[0]++
		} else {
			told[1]++
		}
	}}
	return New(targets, settings, policy, env), told
}

func on(words ...Condition) *Retry { return &Retry{Attempts: 2, On: words, Budget: 20} }

func TestConnectionOfADiscardedResponseIsKept(t *testing.T) {
	bad, good := newOdd(t, respondText(busy)), newOdd(t, respondText(fine))
	s, told := withRetry(t, on("503"), bad, good)
	for range 6 {
		ex := exchangetest.New(t)
		equal(t, "body", exchangetest.Run(t, ex, s).Body, "ok")
	}
	conns, requests := bad.seen()
	equal(t, "connections of the bad server", conns, 1)
	equal(t, "retries told", *told, [2]int{requests, 0})
}

// What is tried again takes no turn from the requests that come after it: a server
// that fails gets its share of them and no more.
func TestRetriesTakeNoTurns(t *testing.T) {
	for n := 2; n <= 4; n++ {
		servers := []*odd{newOdd(t, respondText(busy))}
		for len(servers) < n {
			servers = append(servers, newOdd(t, respondText(fine)))
		}
		s, told := withRetry(t, on("503"), servers...)
		for range 10 * n {
			equal(t, "status", exchangetest.Run(t, exchangetest.New(t), s).Status, 200)
		}
		equal(t, "retries", told[0], 10)
	}
}

// A server that comes and goes costs no request.
func TestAServerThatFlapsCostsNoRequest(t *testing.T) {
	n := 0
	var mu sync.Mutex
	flaps := newOdd(t, func(c net.Conn, _ *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 0 {
			return false // without a word
		}
		_, err := io.WriteString(c, fine)
		return err == nil && n%3 != 0
	})
	r := on("reset")
	r.Budget = 100
	s, _ := withRetry(t, r, flaps, newOdd(t, respondText(fine)))
	for range 100 {
		ex := exchangetest.New(t)
		equal(t, "status", exchangetest.Run(t, ex, s).Status, 200)
	}
}

// A head that comes a byte at a time is late as a whole.
func TestAHeadThatDripsIsATimeout(t *testing.T) {
	drips := newOdd(t, func(c net.Conn, _ *http.Request) bool {
		for i := range len(fine) {
			if _, err := io.WriteString(c, fine[i:i+1]); err != nil {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
		return false
	})
	s, _ := withRetry(t, on("timeout"), drips, newOdd(t, respondText(fine)))
	ex := exchangetest.New(t)
	ex.Limits.RequestTimeout = 50 * time.Millisecond
	equal(t, "status", exchangetest.Run(t, ex, s).Status, 200)
	equal(t, "attempts", ex.Attempts, 2)
}

// Servers that speak HTTP/2 are left for others in the same way.
func TestRetriesOverHTTP2(t *testing.T) {
	serve := func(status int) Target {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var p http.Protocols
		p.SetUnencryptedHTTP2(true)
		s := &http.Server{Protocols: &p, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(status)
			w.Write(body)
		})}
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(ln) }()
		t.Cleanup(func() { s.Close(); <-done })
		to := target(ln.Addr().String(), 1)
		to.HTTP2 = true
		return to
	}
	told := 0
	env := exchangetest.Env(t)
	keep := env.Keep
	env.Keep = func(key string, open func() exchange.Kept) exchange.Kept {
		return keep(key, func() exchange.Kept { k := open(); t.Cleanup(k.Retire); return k })
	}
	s := New([]Target{serve(503), serve(200)}, settings, Policy{Retry: on("503"), Retried: func(bool) { told++ }}, env)
	for range 10 {
		for _, option := range []exchangetest.Option{exchangetest.Content("some text"), exchangetest.Chunks("some", " text")} {
			ex := exchangetest.New(t, exchangetest.Head("PUT", "/"), option)
			ex.Limits.ConnectTimeout = 5 * time.Second
			front := exchangetest.Run(t, ex, s)
			equal(t, "status", front.Status, 200)
			equal(t, "body", front.Body, "some text")
		}
	}
	equal(t, "retries", told, 10)
}

// A response that comes slowly is not waited for when nobody wants it.
func TestSlowResponseIsNotWaitedForWhenItIsDiscarded(t *testing.T) {
	slow := newOdd(t, func(c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 503 x\r\nContent-Length: 1000\r\n\r\nb")
		c.Read(make([]byte, 1)) // until it is given up
		return false
	})
	s, _ := withRetry(t, on("503"), slow, newOdd(t, respondText(fine)))
	ex := exchangetest.New(t)
	equal(t, "body", exchangetest.Run(t, ex, s).Body, "ok")
	equal(t, "attempts", ex.Attempts, 2)
}

func TestAServerThatNeverAnswersIsLeftAfterTheTimeout(t *testing.T) {
	mute := newOdd(t, func(c net.Conn, _ *http.Request) bool {
		c.Read(make([]byte, 1))
		return false
	})
	for _, c := range []struct {
		retry    *Retry
		status   int
		attempts int
	}{
		{on("timeout"), 200, 2},
		{on("reset", "502-504"), exchange.UpstreamTimeout.Status(), 1},
	} {
		s, _ := withRetry(t, c.retry, mute, newOdd(t, respondText(fine)))
		ex := exchangetest.New(t)
		ex.Limits.RequestTimeout = 30 * time.Millisecond
		equal(t, "status", exchangetest.Run(t, ex, s).Status, c.status)
		equal(t, "attempts", ex.Attempts, c.attempts)
	}
}

// All attempts together are bounded by the setting attempts, however many servers there are.
func TestAttemptsBoundTheWhole(t *testing.T) {
	mute := func() *odd {
		return newOdd(t, func(c net.Conn, _ *http.Request) bool {
			c.Read(make([]byte, 1))
			return false
		})
	}
	r := on("timeout", "reset")
	r.Attempts = 3
	s, told := withRetry(t, r, mute(), mute(), mute(), mute(), mute())
	ex := exchangetest.New(t)
	ex.Limits.RequestTimeout = 20 * time.Millisecond
	equal(t, "status", exchangetest.Run(t, ex, s).Status, exchange.UpstreamTimeout.Status())
	equal(t, "attempts", ex.Attempts, 3)
	equal(t, "retries told", *told, [2]int{2, 0})
}

// A reset after the head is told to the client, never mended with the body of
// another server.
func TestNothingIsRetriedAfterTheHead(t *testing.T) {
	cut := newOdd(t, func(c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		return false
	})
	good := newOdd(t, respondText(fine))
	s, _ := withRetry(t, on("reset", "timeout", "502-504"), cut, good)
	ex := exchangetest.New(t)
	front := exchangetest.Run(t, ex, s)
	equal(t, "body", front.Body, "half")
	equal(t, "reason", ex.Reason, exchange.UpstreamReset)
	_, requests := good.seen()
	equal(t, "requests of the other server", requests, 0)
}

func TestBudgetStopsRetriesInAnOutage(t *testing.T) {
	bad1, bad2 := newOdd(t, respondText(busy)), newOdd(t, respondText(busy))
	r := on("503")
	r.Budget = 0
	s, told := withRetry(t, r, bad1, bad2)
	const requests = 60
	for range requests {
		equal(t, "status", exchangetest.Run(t, exchangetest.New(t), s).Status, 503)
	}
	_, n1 := bad1.seen()
	_, n2 := bad2.seen()
	equal(t, "retries told", told[0]+told[1], requests)
	equal(t, "requests of the servers", n1+n2, requests+told[0])
	if told[0] < freeRetries || told[0] > 2*freeRetries { // a slow machine may see another second
		t.Errorf("%d retries, want about %d", told[0], freeRetries)
	}
}

func TestBodyReachesTheSecondServer(t *testing.T) {
	for _, option := range []exchangetest.Option{exchangetest.Content("some text"), exchangetest.Chunks("some", " ", "text")} {
		bad, good := newOdd(t, respondText(busy)), newOdd(t, respondText(fine))
		s, _ := withRetry(t, on("503"), bad, good)
		ex := exchangetest.New(t, exchangetest.Head("PUT", "/"), option)
		equal(t, "status", exchangetest.Run(t, ex, s).Status, 200)
		good.mu.Lock()
		equal(t, "bodies", good.mu.bodies[0], "some text")
		good.mu.Unlock()
		equal(t, "bytes received", ex.Received, 9)
	}
}

// Two requests that each have an answer of a server, and would like to ask the other's, do
// not wait for each other: what came stands.
func TestRetriesDoNotWaitForEachOther(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	var came atomic.Int32
	meets := func(c net.Conn, _ *http.Request) bool {
		if came.Add(1) <= 2 {
			both.Done()
			both.Wait()
		}
		_, err := io.WriteString(c, busy)
		return err == nil
	}
	one, other := target(newOdd(t, meets).address, 1), target(newOdd(t, meets).address, 1)
	one.MaxRequests, other.MaxRequests = 1, 1
	s := newServersWith(t, Policy{Retry: on("503"), QueueLength: 10, QueueTimeout: time.Hour}, one, other)
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- exchangetest.Run(t, exchangetest.New(t), s).Status }()
	}
	for range 2 {
		select {
		case status := <-done:
			equal(t, "status", status, 503)
		case <-time.After(testhouse.Patience):
			t.Fatal("they wait for each other")
		}
	}
}

// The bytes of a body that was kept for a retry were received, also when there is none.
func TestABodyThatIsNotSentAgainWasReceived(t *testing.T) {
	for name, says := range map[string]func(net.Conn, *http.Request) bool{"status": respondText(busy), "reset": func(net.Conn, *http.Request) bool { return false }} {
		s, _ := withRetry(t, on("503", "reset"), newOdd(t, says), newOdd(t, says))
		for s.retry.budget.spend(exchange.Now()) {
		}
		s.retry.budget.share = 0
		ex := exchangetest.New(t, exchangetest.Head("PUT", "/"), exchangetest.Content("some text"))
		exchangetest.Run(t, ex, s)
		equal(t, name+": attempts", ex.Attempts, 1)
		equal(t, name+": bytes received", ex.Received, 9)
	}
}

// The client has left: nobody is asked any more.
func TestNothingIsRetriedForNobody(t *testing.T) {
	good := newOdd(t, respondText(fine))
	s, _ := withRetry(t, on("503"), newOdd(t, respondText(busy)), good)
	ex := exchangetest.New(t)
	ex.Front.(*exchangetest.Front).Left = true
	s.Respond(ex)
	if ex.Response.Body != nil {
		ex.Response.Body.Close()
	}
	_, requests := good.seen()
	equal(t, "requests of the other server", requests, 0)
}

func TestARequestIsCountedWithoutAllocation(t *testing.T) {
	s, _ := withRetry(t, on("reset", "502-504"), newOdd(t, respondText(fine)))
	ex := exchangetest.New(t)
	if n := testing.AllocsPerRun(1000, func() { s.retry.countRequest(ex) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
