package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"headgate/internal/setting/unit"
)

// move is a step of a random life.
type move struct {
	Do   deed
	A, B int
	// Rush says that the next move comes before this one has had its effects.
	Rush bool
}

type deed int

const (
	nothing deed = iota
	request
	follow // a request for what the last one was for
	reply1 // the server answers
	reply2
	send // bytes of a body come
	send2
	finish
	spoil
	read
	read2
	leave
	purge
	passTime
	resize
	deeds
)

func (m move) String() string {
	name := [...]string{"nothing", "request", "again", "answer", "answer", "send", "send", "finish", "spoil", "read", "read", "leave", "purge", "pass time", "resize"}[m.Do]
	return fmt.Sprintf("%s %d %d %v", name, m.A, m.B, m.Rush)
}

// TestRandomLives lets clients, a server and an operator do anything in any order. No
// client takes a part for the whole or gets bytes of two versions, nobody gets what was
// taken out before they asked, what the index has can be read and given up, and nothing is
// left when all have gone.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) move {
			return move{
				Do: deed(rapid.IntRange(0, int(deeds)-1).Draw(rt, "do")),
				A:  rapid.IntRange(0, 1<<10).Draw(rt, "a"), B: rapid.IntRange(0, 1<<10).Draw(rt, "b"),
				Rush: rapid.IntRange(0, 5).Draw(rt, "rush") == 0,
			}
		}), 30, 80).Draw(rt, "moves")
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			wrong = w.live(moves)
		})
		if len(wrong) > 0 {
			for i, m := range moves {
				if m.Do != nothing {
					rt.Logf("%d %v", i+1, m)
				}
			}
			rt.Logf("%s", strings.Join(wrong, "\n"))
			rt.Fatal("something was wrong") // the same each time, so that moves are left out
		}
	})
}

// live makes the moves, and ends everything that they began.
func (w *world) live(moves []move) []string {
	last := 0
	for i, m := range moves {
		w.move(m, i, &last)
		if m.Rush {
			continue
		}
		synctest.Wait()
		w.checkCache()
		if len(w.wrong) > 0 {
			w.wrong = append(w.wrong, fmt.Sprintf("after move %d", i+1))
			break
		}
	}
	w.end()
	return w.wrong
}

// The Cache-Control fields of the server.
var lives = []string{
	"max-age=60", "max-age=5", "no-cache", "max-age=5, stale-while-revalidate=20", "max-age=5, stale-if-error=20", "public, max-age=1, must-revalidate",
}

func (w *world) move(m move, at int, last *int) {
	w.mu.Lock()
	questions, flows, clients := slices.Clone(w.questions), slices.Clone(w.flows), w.clients
	w.mu.Unlock()
	clients = slices.DeleteFunc(slices.Clone(clients), (*visitor).over)
	switch m.Do {
	case request, follow:
		if m.Do == request {
			*last = m.A
		}
		w.startRequest(fmt.Sprintf("client of move %d", at+1), *last%len(sizes), m.B)
	case reply1, reply2:
		if len(questions) > 0 {
			q := questions[m.A%len(questions)]
			w.forget(q)
			q.reply <- reply{[...]behaviour{
				asItIs, asItIs, asItIs, chunked, flowing, flowing, flowing, measured, measured, unasked, unchanging, otherTag,
				unavailable, refused, forNobody, newer, missing, panicking,
			}[m.B%18], lives[m.B/18%len(lives)]}
		}
	case send, send2:
		if len(flows) > 0 {
			flows[m.A%len(flows)].send([...]int{1, 100, 5000, 50_000, 1 << 20}[m.B%5])
		}
	case finish, spoil:
		if len(flows) > 0 {
			w.stop(flows[m.A%len(flows)], m.Do == finish, m.B)
		}
	case read, read2, leave:
		if len(clients) > 0 {
			c := clients[m.A%len(clients)]
			n := [...]int{1, 101, 4000, 40_000, 1 << 20, 8 << 20, 8 << 20}[m.B%7]
			if m.Do == leave {
				n = 0
				c.left.Store(true)
			}
			c.do <- n
		}
	case purge:
		w.purge(m.A%len(sizes), m.B)
	case passTime:
		time.Sleep([...]time.Duration{time.Second, 3 * time.Second, 6 * time.Second, 12 * time.Second, 31 * time.Second}[m.A%5])
	case resize:
		w.serveBy([...]unit.Size{48 * unit.KiB, 256 * unit.KiB, unit.MiB}[m.A%3])
	}
}

// startRequest lets a client ask.
func (w *world) startRequest(name string, resource, how int) {
	c := &visitor{w: w, name: name, resource: resource, method: "GET", do: make(chan int, 200), done: make(chan struct{})}
	switch how % 12 {
	case 0:
		c.method = "HEAD"
	case 1:
		c.method = "POST"
	case 2, 3:
		c.fields = append(c.fields, [...]string{"Range: bytes=0-4999", "Range: bytes=5000-9999", "Range: bytes=-700", "Range: bytes=10-"}[how/12%4])
	case 4:
		c.fields = append(c.fields, "Cache-Control: "+[...]string{"no-cache", "max-stale=10", "only-if-cached", "no-store"}[how/12%4])
	case 5:
		c.variant = 1 + how/12%3
		if how/48%8 == 0 {
			c.variant = how / 12 % 100
		}
		if !varies(resource) {
			c.variant = 0
		}
	}
	if c.variant > 0 {
		c.fields = append(c.fields, fmt.Sprintf("X-Variant: %d", c.variant))
	}
	w.mu.Lock()
	c.least = w.resources[resource].least
	w.clients = append(w.clients, c)
	cache := w.cache
	w.mu.Unlock()
	go c.serve(cache)
}

// purge takes out a resource, or makes it stale, because there is a newer version.
func (w *world) purge(resource, how int) {
	w.mu.Lock()
	store, res := w.store, &w.resources[resource]
	res.version++
	version, soft := res.version, how%2 == 0
	w.mu.Unlock()
	p := Purge{URL: fmt.Sprintf("http://example.com/%d", resource), Soft: soft}
	if how%4 > 1 {
		p = Purge{Tag: "all", Soft: soft}
	}
	store.Purge(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !soft || !res.lenient {
		res.least = version
	}
}

// send lets so many bytes of the body come, if there is room for them.
func (f *flow) send(n int) {
	n = min(n, len(f.rest))
	if n > 0 && len(f.come) < cap(f.come) {
		f.come <- string(f.rest[:n])
		f.rest = f.rest[n:]
	}
}

// stop ends a body.
func (w *world) stop(f *flow, whole bool, how int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.flows {
		if w.flows[i] == f {
			w.flows = append(w.flows[:i:i], w.flows[i+1:]...)
			break
		}
	}
	f.broken = errBroken
	switch {
	case whole && len(f.come) < cap(f.come):
		if len(f.rest) > 0 {
			f.come <- string(f.rest)
		}
		f.broken = nil
	case how%5 == 0:
		w.panics++
		f.broken = errPanics
		fallthrough
	default:
		w.resources[f.resource].spoiled = true
	}
	close(f.come)
	w.ended = append(w.ended, f)
}

// end lets everything come to its end, and looks at what is left.
func (w *world) end() {
	deadline := time.Now().Add(5 * time.Minute)
	for time.Now().Before(deadline) {
		w.mu.Lock()
		questions, flows := w.questions, w.flows
		w.questions = nil
		w.mu.Unlock()
		for _, q := range questions {
			q.reply <- reply{how: asItIs, cc: lives[0]}
		}
		for _, f := range flows {
			w.stop(f, true, 0)
		}
		for _, c := range w.clients {
			if !c.over() && len(c.do) < cap(c.do) {
				c.do <- 8 << 20
			}
		}
		if time.Sleep(10 * time.Second); w.quiet() {
			break
		}
	}
	for _, c := range w.clients {
		if !c.over() {
			w.fault("%s never gets to its end", c.name)
		}
	}
	synctest.Wait()
	w.checkCache()
	w.remains()
}

// quiet reports whether nobody waits for anything.
func (w *world) quiet() bool {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.questions)+len(w.flows) == 0 && !slices.ContainsFunc(w.clients, func(c *visitor) bool { return !c.over() })
}

func (c *visitor) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// checkCache checks what the cache holds at a moment at which nothing moves.
func (w *world) checkCache() {
	s := w.store.store
	linked := map[*entry]bool{}
	flights := 0
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		flights += len(sh.mu.flights)
		for _, e := range sh.mu.entries {
			n := 0
			for ; e != nil; e = e.next {
				if n++; linked[e] || !e.linked || n > variants {
					w.fault("the index is not in order: %d entries", n)
				}
				linked[e] = true
				w.lookAt(e)
			}
		}
		sh.mu.Unlock()
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	queued := 0
	for place, r := range map[where]*ring{inSmall: &s.queue.mu.small, inMain: &s.queue.mu.main} {
		n, bytes := 0, int64(0)
		for e := r.oldest; e != nil; e = e.queued.behind {
			n, bytes = n+1, bytes+e.size
			if !linked[e] || e.queued.where != place || !e.body.whole.Load() {
				w.fault("the queue has an entry that the index has not, or that is not whole")
			}
		}
		queued += n
		if n != r.entries || bytes != r.bytes {
			w.fault("a queue tells of %d entries with %d bytes, and has %d with %d", r.entries, r.bytes, n, bytes)
		}
	}
	whole := 0
	for e := range linked {
		if e.body.whole.Load() {
			whole++
		}
	}
	if whole != queued {
		w.fault("%d whole entries, of which %d can give way", whole, queued)
	}
	if held := s.entries.Load(); held < int64(len(linked)) {
		w.fault("%d entries in the index, and %d hold memory", len(linked), held)
	}
	w.mu.Lock()
	asked := len(w.questions)
	w.mu.Unlock()
	if flights > asked {
		w.fault("others may wait for %d answers, and the server is asked for %d", flights, asked)
	}
}

// lookAt looks at an entry that the index has.
func (w *world) lookAt(e *entry) {
	b := e.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.whole.Load():
	case b.mu.err != nil, b.mu.passing:
		w.fault("the index has an entry that nobody can read: %v", b.mu.err)
	case b.mu.entry != e, b.mu.source == nil:
		w.fault("the end of a body will not find the entry that the index has")
	}
}

// remains looks at what is left when all have gone.
func (w *world) remains() {
	s := w.store.store
	if held, limit := s.bytes(), max(s.limit.Load(), int64(s.arena.page)); held > limit {
		w.fault("%d bytes are held of %d", held, limit)
	}
	for _, f := range w.ended {
		select {
		case <-f.closed:
		default:
			w.fault("a connection to the server is not given back")
		}
	}
	s.Retire()
	if n, bytes := s.entries.Load(), s.arena.bytes(); n != 0 || bytes != 0 {
		w.fault("%d entries and %d bytes are left", n, bytes)
	}
}
