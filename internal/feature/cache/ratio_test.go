package cache

import (
	"bytes"
	"container/list"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/setting/unit"
)

var trace = flag.Int("trace", 100_000, "requests of the trace that hit ratios are measured on; the objects are a tenth")

// zipf draws numbers below n, the smaller ones more often, by a power law.
type zipf struct {
	sums []float64
	r    *rand.Rand
}

func newZipf(n int, power float64) *zipf {
	z := &zipf{sums: make([]float64, n), r: rand.New(rand.NewPCG(1, 2))}
	sum := 0.0
	for i := range n {
		sum += 1 / math.Pow(float64(i+1), power)
		z.sums[i] = sum
	}
	return z
}

func (z *zipf) draw() int {
	x := z.r.Float64() * z.sums[len(z.sums)-1]
	lo, hi := 0, len(z.sums)-1
	for lo < hi {
		if mid := (lo + hi) / 2; z.sums[mid] < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// lru is a plain cache that gives up what was asked for longest ago.
type lru struct {
	limit, held int64
	order       *list.List
	at          map[int]*list.Element
}

type lruEntry struct {
	key  int
	size int64
}

func (l *lru) request(key int, size int64) bool {
	if e := l.at[key]; e != nil {
		l.order.MoveToFront(e)
		return true
	}
	l.at[key] = l.order.PushFront(lruEntry{key, size})
	for l.held += size; l.held > l.limit; {
		last := l.order.Back()
		old := l.order.Remove(last).(lruEntry)
		delete(l.at, old.key)
		l.held -= old.size
	}
	return false
}

// sizeOf is the body of an object: 100 bytes to 50 kB, most of them short.
func sizeOf(key int) int {
	r := rand.New(rand.NewPCG(uint64(key), 7))
	return int(100 * math.Exp(r.Float64()*r.Float64()*6.2))
}

// TestHitRatioBeatsLRU runs a trace through the cache and through a plain LRU of as
// many bytes, which gets its index for nothing.
func TestHitRatioBeatsLRU(t *testing.T) {
	if scribbles {
		t.Skip("takes long with the race detector, and is one goroutine")
	}
	requests, objects := *trace, *trace/10
	var total int64
	for key := range objects {
		total += int64(sizeOf(key)) + entryCost
	}
	limit := total / 10
	c := settings()
	c.MemoryLimit = unit.Size(limit)
	s := newStage(t, c)
	body := strings.Repeat("x", 64<<10)
	var asked int
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		key, _ := strconv.Atoi(ex.Request.Path[1:])
		rs := &ex.Response
		rs.Reset()
		rs.Status, rs.Length = 200, int64(sizeOf(key))
		rs.Header.AddField("Cache-Control", "max-age=3600")
		rs.Body = exchangetest.Body(body[:rs.Length])
		asked++
		return nil
	}
	z := newZipf(objects, 0.9)
	hits, peak := 0, int64(0)
	one := asker(s)
	for i := range requests {
		key := z.draw()
		if i%10 == 9 {
			key = objects + i // a crawler, which reads everything once
		}
		before := asked
		one("/" + strconv.Itoa(key))
		s.origin.asked = s.origin.asked[:0]
		if asked == before {
			hits++
		}
		peak = max(peak, s.cache.store.bytes())
	}
	plainHits := plainRatio(requests, objects, limit)
	ours, theirs := float64(hits)/float64(requests), float64(plainHits)/float64(requests)
	t.Logf("%d requests, %d objects, %d bytes for %d: hit ratio %.2f %%, LRU %.2f %%; held at most %.3f of the limit",
		requests, objects, limit, total, 100*ours, 100*theirs, float64(peak)/float64(limit))
	if ours <= theirs {
		t.Errorf("hit ratio %.4f, plain LRU %.4f", ours, theirs)
	}
	if peak > limit+4*maxPage {
		t.Errorf("held %d bytes, limit %d", peak, limit)
	}
}

// plainRatio returns the hits of the same trace in a plain LRU.
func plainRatio(requests, objects int, limit int64) (hits int) {
	plain := &lru{limit: limit, order: list.New(), at: map[int]*list.Element{}}
	z := newZipf(objects, 0.9)
	for i := range requests {
		key := z.draw()
		if i%10 == 9 {
			key = objects + i
		}
		if plain.request(key, int64(sizeOf(key))+entryCost) {
			hits++
		}
	}
	return hits
}

// asker returns a function that takes one request through a pipeline.
func asker(s *stage) func(path string) {
	conn, front, place := &exchange.Conn{Scheme: "http", Peer: "192.0.2.1"}, &drain{}, &exchange.Place{Proxy: "p", Route: "/"}
	p := &exchange.Pipeline{Source: s.cache}
	ex := &exchange.Exchange{}
	return func(path string) {
		nextRequest(ex, conn, front, place, path)
		p.Serve(ex)
	}
}

// drain is a front that reads all and keeps nothing.
type drain struct {
	exchangetest.Front
	p [32 << 10]byte
}

func (d *drain) Send(ex *exchange.Exchange) error {
	rs := &ex.Response
	for rs.Body != nil && rs.Text == nil {
		if _, err := rs.Body.Read(d.p[:]); err != nil {
			break
		}
	}
	return nil
}

// TestManyKeysStayBounded asks for a great many different things.
func TestManyKeysStayBounded(t *testing.T) {
	keys := 50_000
	if scribbles {
		keys = 10_000
	}
	if *trace > 500_000 {
		keys = 1_000_000
	}
	c := settings()
	c.MemoryLimit = 8 * unit.MiB
	s := newStage(t, c)
	s.origin.reply = answer("200|Cache-Control: max-age=3600||x", s.clock)
	one := asker(s)
	for i := range keys {
		one("/" + strconv.Itoa(i))
		s.origin.asked = s.origin.asked[:0]
	}
	if held := s.cache.store.bytes(); held > 8<<20+2*maxPage {
		t.Errorf("%d bytes held of %d", held, 8<<20)
	}
	t.Logf("%d keys: %d bytes, %d entries", keys, s.cache.store.bytes(), s.cache.store.entries.Load())
}

// TestMemoryIsWhatItSays fills a cache and looks at what the process has.
func TestMemoryIsWhatItSays(t *testing.T) {
	if runtime.GOOS != "linux" || *trace <= 500_000 {
		t.Skip("measured with -trace 1000000 on Linux")
	}
	for _, size := range []int{100, 1 << 10, 10 << 10, 60 << 10, 300 << 10} {
		const limit = 256 << 20
		c := settings()
		c.MemoryLimit = limit
		s := newStage(t, c)
		s.origin.reply = answer("200|Cache-Control: max-age=3600|Content-Type: text/html||"+strings.Repeat("x", size), s.clock)
		one := asker(s)
		runtime.GC()
		before := resident(t)
		for i := range 3 * limit / (size + entryCost) {
			one("/" + strconv.Itoa(i))
			s.origin.asked = s.origin.asked[:0]
		}
		grown := resident(t) - before
		t.Logf("%6d bytes each: counted %.3f of the limit, resident memory grew by %.3f of it; %d entries",
			size, float64(s.cache.store.bytes())/limit, float64(grown)/limit, s.cache.store.entries.Load())
		s.cache.store.Retire()
		runtime.GC()
	}
}

func resident(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	fmt.Sscan(string(data), &size, &pages)
	return pages * int64(os.Getpagesize())
}

// TestSizesThatChange fills a cache with short entries and then with long ones,
// and back: memory that was cut for the one is there for the other.
func TestSizesThatChange(t *testing.T) {
	c := settings()
	c.MemoryLimit = 8 * unit.MiB
	s := newStage(t, c)
	one := asker(s)
	for round, size := range []int{200, 50_000, 300, 900_000, 5000} {
		s.origin.reply = answer("200|Cache-Control: max-age=3600||"+strings.Repeat("x", size), s.clock)
		for i := range 8 * 2 << 20 / (size + entryCost) {
			one(fmt.Sprintf("/%d/%d", round, i))
			s.origin.asked = s.origin.asked[:0]
		}
		path := fmt.Sprintf("/%d/last", round)
		one(path)
		one(path)
		if n := len(s.origin.asked); n != 1 {
			t.Errorf("%d bytes: the last was fetched %d times", size, n)
		}
		if held := s.cache.store.bytes(); held > 8<<20+2*maxPage {
			t.Errorf("%d bytes: %d held", size, held)
		}
		s.origin.asked = nil
	}
}

// TestEverythingAtOnce lets clients ask, leave, purge and resize at the same time.
// It is for the race detector, which also overwrites memory that is given back:
// a response that is not what it was stored as has been given back too early.
func TestEverythingAtOnce(t *testing.T) {
	c := settings()
	c.MemoryLimit = 2 * unit.MiB
	s := newStage(t, c)
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		key, _ := strconv.Atoi(ex.Request.Path[1:])
		text := strings.Repeat(string(rune('a'+key%26)), 10+key*997%200_000)
		rs := &ex.Response
		rs.Reset()
		rs.Status, rs.Length = 200, int64(len(text))
		if key%3 == 0 {
			rs.Length = -1
		}
		rs.Header.AddField("Cache-Control", "max-age=3600")
		rs.Header.AddField("Key", strconv.Itoa(key))
		rs.Body = exchangetest.Body(text[:len(text)/2], text[len(text)/2:])
		return nil
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			conn, place := &exchange.Conn{Scheme: "http", Peer: "192.0.2.1"}, &exchange.Place{Proxy: "p", Route: "/"}
			ex := &exchange.Exchange{}
			p := &exchange.Pipeline{Source: s.cache}
			for i := range 2000 {
				key := int(r.ExpFloat64() * 30)
				nextRequest(ex, conn, &checking{t: t, key: key, stop: r.IntN(5) == 0}, place, "/"+strconv.Itoa(key))
				p.Serve(ex)
				switch {
				case i%501 == 500:
					Store{store: s.cache.store}.Purge(Purge{All: true})
				case i%97 == 0:
					s.cache.forget("example.com", "/"+strconv.Itoa(key), "")
				case i%733 == 0:
					s.cache.store.resize(uint64(g*10000+i), int64(1+r.IntN(3))<<20)
				}
			}
		})
	}
	wg.Wait()
}

// checking is a client that looks at every byte, or leaves half way.
type checking struct {
	exchangetest.Front
	t    *testing.T
	key  int
	stop bool
}

func (c *checking) Send(ex *exchange.Exchange) error {
	rs := &ex.Response
	if got, _ := rs.Header.Lookup("Key"); got != strconv.Itoa(c.key) {
		c.t.Errorf("key %d: got the head of %q", c.key, got)
	}
	want := byte('a' + c.key%26)
	seen := make([]byte, 8<<10)
	// The race detector looks at a whole copy at once, and at single bytes one by one.
	look := func(p []byte) {
		for len(p) > 0 {
			n := copy(seen, p)
			if bytes.Count(seen[:n], []byte{want}) != n {
				c.t.Errorf("key %d: got %q in the body, want %q only", c.key, seen[:min(n, 40)], want)
				return
			}
			p = p[n:]
		}
	}
	if rs.Text != nil {
		look(rs.Text)
		return nil
	}
	p, n := make([]byte, 8<<10), 0
	for {
		k, err := rs.Body.Read(p)
		look(p[:k])
		if n += k; err != nil || c.stop {
			if want := 10 + c.key*997%200_000; !c.stop && n != want {
				c.t.Errorf("key %d: %d bytes, %v; want %d", c.key, n, err, want)
			}
			return nil
		}
	}
}
