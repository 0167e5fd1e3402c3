package h1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/testhouse"
	"headgate/internal/upstream"
)

// TestRandomLives lets clients send requests behind each other in pieces of any size, read
// at any pace and leave at any moment, while requests and responses begin, go on and break
// off in every way. A client gets what its requests stand for, in full or with an end that
// it can tell from one, and nothing is left when all have gone.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 100, lead)
}

// lead leads one life.
func lead(t *testing.T, seed uint64) {
	w := &testhouse.World{}
	p := newProxy(t, "", func(p *proxy, _ *upstream.Settings) { p.pipe.Source, p.pipe.Log = w, w.Log() })
	c := &liver{World: w, peer: p.client(), random: rand.New(rand.NewPCG(seed, 1))}
	testhouse.Eventually(t, "the connection is served", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.mu.conns) > 0
	})
	c.live(p)
	p.wait()
	if used := p.front.Clients.Used(); used != 0 {
		w.Fault("%d bytes of memory are not given back", used)
	}
	w.Report(t, c.told)
}

// liver is a client of a random life.
type liver struct {
	*testhouse.World
	*peer
	random *rand.Rand
	told   []string // what it did

	asked  []*ask
	bytes  []byte // all that it sends
	leaves int    // after so many bytes of that it leaves, if it is not negative
	how    leaving
	bad    bool // the last request breaks a rule
	tail   bool // of the connection, the last response is the end

	writing sync.WaitGroup
	refused bool // a write has heard of the end; it is for after writing
}

// leaving is how a client leaves.
type leaving int

const (
	closes leaving = iota
	resets
	ends // its side
	leavings
)

// ask is a request.
type ask struct {
	script  testhouse.Script
	method  string
	minor   int
	waits   bool // for 100 (Continue), and then sends what is in body
	closing bool
}

func (c *liver) note(format string, args ...any) {
	c.told = append(c.told, fmt.Sprintf(format, args...))
}

// live leads the life.
func (c *liver) live(p *proxy) {
	for range 1 + c.random.IntN(6) {
		if c.addRequest(); c.tail {
			break
		}
	}
	if !c.tail && c.random.IntN(6) == 0 {
		c.offend()
	}
	c.leaves = -1
	if c.random.IntN(3) == 0 {
		c.leaves, c.how = c.random.IntN(len(c.bytes)+1), leaving(c.random.IntN(int(leavings)))
		c.note("leaves after %d of %d bytes, %d", c.leaves, len(c.bytes), c.how)
	}
	drains := c.random.IntN(10) == 0
	defer c.writing.Wait()
	r := rand.New(rand.NewPCG(c.random.Uint64(), 2))
	c.writing.Go(func() { c.write(r, p, drains) })
	c.readResponses(drains)
	c.End()
	c.Close() // what it still sends is not wanted
}

// addRequest adds a request.
func (c *liver) addRequest() {
	a := &ask{script: testhouse.ScriptOf(c.random.Uint64N(testhouse.Scripts)), minor: 1}
	a.method = []string{"GET", "GET", "HEAD", "POST", "POST", "PUT"}[c.random.IntN(6)]
	if c.random.IntN(6) == 0 {
		a.minor = 0
	}
	head := fmt.Sprintf("%s /%d HTTP/1.%d\r\nHost: a\r\n", a.method, a.script.Seed, a.minor)
	switch c.random.IntN(8) {
	case 0:
		head += "Connection: close\r\n"
		a.closing = true
	case 1:
		head += "Connection: keep-alive\r\n"
	default:
		a.closing = a.minor == 0
	}
	var body []byte
	if a.method == "POST" || a.method == "PUT" {
		body = make([]byte, testhouse.UploadSize(a.script.Seed, []int{0, 1, 30, 400, 1500}[c.random.IntN(5)]))
		testhouse.Octets(body, a.script.Seed+1, 0)
		if c.random.IntN(6) == 0 && a.minor == 1 {
			head += "Expect: 100-continue\r\n"
			a.waits = true // but sends without it
		}
		if a.minor == 1 && c.random.IntN(2) == 0 {
			head, body = head+"Transfer-Encoding: chunked\r\n", c.chunks(body)
		} else {
			head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
		}
	}
	c.note("%s HTTP/1.%d, %d bytes of body, closing %v, %+v", a.method, a.minor, len(body), a.closing, a.script)
	c.bytes = append(append(c.bytes, head+"\r\n"...), body...)
	c.asked = append(c.asked, a)
	c.tail = a.closing
}

// chunks puts a body into chunks of any size, with extensions and trailers.
func (c *liver) chunks(body []byte) []byte {
	var b bytes.Buffer
	for len(body) > 0 {
		n := 1 + c.random.IntN(len(body))
		if c.random.IntN(2) == 0 {
			n = min(n, 1+c.random.IntN(3000))
		}
		fmt.Fprintf(&b, []string{"%x\r\n", "%X\r\n", "%x;a=b\r\n", "00%x ; a=\"b;\\\"c\" ; d\r\n"}[c.random.IntN(4)], n)
		b.Write(body[:n])
		b.WriteString("\r\n")
		body = body[n:]
	}
	b.WriteString([]string{"0\r\n\r\n", "0\r\nSum: 1\r\n\r\n", "000;x\r\nSum: 1\r\nX-Other: 2\r\n\r\n"}[c.random.IntN(3)])
	return b.Bytes()
}

// offend adds what is no request.
func (c *liver) offend() {
	c.note("offend")
	c.bad = true
	c.bytes = append(c.bytes, []string{
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "GARBAGE\r\n\r\n", "\x16\x03\x01", "GET / HTTP/3.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n x: y\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
	}[c.random.IntN(7)]...)
}

// write sends all in pieces, until it leaves.
func (c *liver) write(r *rand.Rand, p *proxy, drains bool) {
	b := c.bytes
	if c.leaves >= 0 {
		b = b[:c.leaves]
	}
	drainAt := -1
	if drains {
		drainAt = r.IntN(len(b) + 1)
	}
	for sent := 0; len(b) > 0; {
		n := min(len(b), 1+r.IntN([]int{3, 100, 5000, 100_000}[r.IntN(4)]))
		if _, err := c.TCPConn.Write(b[:n]); err != nil {
			c.refused = true // the rest is not wanted
			return
		}
		b, sent = b[n:], sent+n
		if drainAt >= 0 && sent >= drainAt {
			drainAt = -1
			p.conn().Drain()
		}
		if c.Next(); r.IntN(8) == 0 {
			testhouse.Pause()
		}
	}
	c.End()
	switch {
	case c.leaves < 0:
	case c.how == closes:
		c.Close()
	case c.how == resets:
		c.reset()
	case c.how == ends:
		c.CloseWrite()
	}
}

// readResponses reads the responses, and looks at them.
func (c *liver) readResponses(drains bool) {
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	slow := bufio.NewReaderSize(&slowly{c.peer, rand.New(rand.NewPCG(c.random.Uint64(), 3))}, 16)
	for i, a := range c.asked {
		got, seed, last, err := c.response(slow, a)
		clean := a.script.Clean(a.method == "HEAD")
		broke := !clean
		if s := &a.script; s.Ends == s.Size && s.Length > 0 && (s.How == testhouse.Breaks || s.How == testhouse.Panics) {
			a.script.How = testhouse.Whole // it has come before it broke off
		}
		if e := a.script.Check(&got, a.method == "HEAD"); e != nil && !(c.leaves >= 0 && got.Status == "400") {
			c.Fault("response %d: %v, script %+v", i, e, a.script)
		}
		if strings.HasPrefix(got.Status, "2") && seed != strconv.FormatUint(a.script.Seed, 10) {
			c.Fault("response %d: got that to %q, want %d", i, seed, a.script.Seed)
		}
		for _, later := range c.asked[i+1:] { // whose end may be a reset, which takes this one away too
			clean = clean && later.script.Clean(later.method == "HEAD")
		}
		if err != nil && c.leaves < 0 && !drains && clean {
			c.Fault("response %d: %v, script %+v", i, err, a.script)
		}
		if err != nil || last || broke {
			return
		}
	}
	if c.bad && c.leaves < 0 && !drains {
		got, _, _, err := c.response(slow, &ask{method: "GET", minor: 1})
		if err != nil || got.Status[0] != '4' && got.Status[0] != '5' {
			c.Fault("the request that breaks a rule got %q, %v", got.Status, err)
		}
	}
}

// slowly reads at any pace.
type slowly struct {
	from   *peer
	random *rand.Rand
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.random.IntN(50) == 0 {
		testhouse.Pause()
	}
	return s.from.TCPConn.Read(p)
}

// response reads one. last says that the connection ends with it.
func (c *liver) response(from *bufio.Reader, a *ask) (got testhouse.Got, seed string, last bool, err error) {
	for {
		rs, err := http.ReadResponse(from, &http.Request{Method: a.method})
		if err != nil {
			return got, "", true, err
		}
		if rs.StatusCode < 200 {
			if a.minor == 0 {
				c.Fault("an interim response for HTTP/1.0")
			}
			continue
		}
		got.Status, seed = strconv.Itoa(rs.StatusCode), rs.Header.Get("Seed")
		got.Body, err = io.ReadAll(rs.Body)
		got.Ended, got.Sum = err == nil, rs.Trailer.Get("Sum")
		if rs.ContentLength < 0 && len(rs.TransferEncoding) == 0 {
			// A socket tells of a reset once: to who writes, if that is sooner.
			c.writing.Wait()
			got.Ended = got.Ended && !c.refused
		}
		if a.minor == 0 && rs.ContentLength < 0 && len(rs.TransferEncoding) > 0 {
			c.Fault("chunks for HTTP/1.0")
		}
		if len(rs.TransferEncoding) == 0 {
			got.Sum = strconv.Itoa(a.script.Size) // there is no place for it
		}
		return got, seed, rs.Close, err
	}
}
