package recent

import (
	"bytes"
	"container/heap"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/exchange"
)

// MaxPage is how many requests a query returns at most.
const MaxPage = 1000

// Query selects requests. An empty field matches all.
type Query struct {
	// Host is the host, without regard to case; with a leading "*." all below it.
	Host string
	// Proxy is the name of the proxy, and Server the URL or address of the server.
	Proxy, Server string
	// StatusFrom and StatusTo bound the status, both inclusive; 0 and 0 want all,
	// connections and sessions too.
	StatusFrom, StatusTo int
	// Reason is the word of the reason; "any" is every request that has one.
	Reason string
	// Client is an address or a network; the zero Prefix wants all.
	Client netip.Prefix
	// Country is the country of the client, as Request has it, without regard to case.
	Country string
	// ASN is the number of the client's network.
	ASN uint32
	// Method is the method.
	Method string
	// Path is a prefix of the path.
	Path string
	// SlowerThan is the least duration.
	SlowerThan time.Duration
	// ID is the request id.
	ID string
	// Text is contained in host, path, query, server, user, agent, referer or
	// cause, ignoring the case of ASCII letters.
	Text string
	// Since and Until bound the moment at which the request ended; the zero time is
	// no bound.
	Since, Until time.Time
}

// Cursor is the place of a request in a list; the zero Cursor is the newest end.
type Cursor struct {
	// End is when the request ended, in nanoseconds of the process's clock.
	End int64
	// Number distinguishes requests that ended at the same time.
	Number uint64
}

// before reports whether c is older than d.
func (c Cursor) before(d Cursor) bool {
	if c.End != d.End {
		return c.End < d.End
	}
	return c.Number < d.Number
}

// Page is the newest requests of a query. Next is where older ones go on, the
// zero Cursor if there are none.
type Page struct {
	Requests []Request
	Next     Cursor
}

// Find returns the newest n requests of a query, newest first, that are older than
// a cursor. It returns at most MaxPage.
func (r *Ring) Find(q Query, after Cursor, n int) Page {
	wall := wallClock()
	return r.find(newMatcher(q, wall), after, min(max(n, 1), MaxPage), wall)
}

// recorded is the maximum time from the end of a request until it is recorded.
const recorded = 100 * time.Millisecond

// Until returns the position from which Tail returns the requests that end from now on.
func Until() int64 { return exchange.Now() - int64(recorded) }

// Tail returns the newest n requests of a query, newest first, that ended after a position that
// Until or an earlier Tail returned, and the position for the next Tail: each request is returned
// once. It returns at most MaxPage requests; Next of the page is set if there were more. If the
// position is in the future, because another process returned it, there are no requests.
func (r *Ring) Tail(q Query, from int64, n int) (p Page, until int64) {
	wall := wallClock()
	m := newMatcher(q, wall)
	until = Until()
	if from >= until {
		return Page{}, until
	}
	m.since, m.until = max(m.since, from+1), until
	return r.find(m, Cursor{}, min(max(n, 1), MaxPage), wall), until
}

// find returns the newest n requests that a matcher selects and that are older than a cursor.
func (r *Ring) find(m *matcher, after Cursor, n int, wall int64) Page {
	parts := r.hold(0)
	defer r.release(parts)
	slices.SortFunc(parts, func(a, b part) int { return int(int64(b.order) - int64(a.order)) })

	var best newest
	for _, p := range parts {
		for rest := p.buf; len(rest) > 0; {
			var v view
			v, rest = next(rest)
			at := Cursor{v.end(), v.number()}
			switch {
			case after != (Cursor{}) && !at.before(after),
				len(best) > n && at.before(best[0].at),
				!m.matches(v):
				continue
			}
			heap.Push(&best, found{at, v})
			if len(best) > n+1 {
				heap.Pop(&best)
			}
		}
	}
	return best.page(n, wall)
}

// found is a record that matches; newest is a heap of them, oldest on top.
type found struct {
	at Cursor
	v  view
}

type newest []found

// Len, Less, Swap, Push and Pop make it a heap.
func (h newest) Len() int           { return len(h) }
func (h newest) Less(i, j int) bool { return h[i].at.before(h[j].at) }
func (h newest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push appends a record.
func (h *newest) Push(x any) { *h = append(*h, x.(found)) }

// Pop removes the last record.
func (h *newest) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// page returns the n newest, and where the next page starts.
func (h newest) page(n int, wall int64) Page {
	slices.SortFunc(h, func(a, b found) int {
		if b.at.before(a.at) {
			return -1
		}
		return 1
	})
	p := Page{Requests: make([]Request, 0, min(n, len(h)))}
	for i, f := range h {
		if i == n {
			p.Next = h[n-1].at
			break
		}
		p.Requests = append(p.Requests, f.v.read(wall))
	}
	return p
}

// wallClock returns the Unix time, in nanoseconds, of moment 0.
func wallClock() int64 { return time.Now().UnixNano() - exchange.Now() }

// matcher is a query made ready.
type matcher struct {
	q            Query
	host, suffix []byte
	text         []byte
	since, until int64
}

func newMatcher(q Query, wall int64) *matcher {
	m := &matcher{q: q, text: bytes.ToLower([]byte(q.Text))}
	if below, ok := strings.CutPrefix(q.Host, "*"); ok {
		m.suffix = bytes.ToLower([]byte(below))
	} else {
		m.host = bytes.ToLower([]byte(q.Host))
	}
	if !q.Since.IsZero() {
		m.since = q.Since.UnixNano() - wall
	}
	if !q.Until.IsZero() {
		m.until = q.Until.UnixNano() - wall
	}
	return m
}

// matches reports whether a record is selected. The cheapest checks come first.
func (m *matcher) matches(v view) bool {
	q := &m.q
	switch {
	case q.StatusFrom > 0 && v.status() < q.StatusFrom, q.StatusTo > 0 && (v.isSession() || v.status() > q.StatusTo):
		return false
	case q.SlowerThan > 0 && v.end()-v.start() < int64(q.SlowerThan):
		return false
	case m.since != 0 && v.end() < m.since, m.until != 0 && v.end() > m.until:
		return false
	case q.Reason == "any" && v.reason() == "", q.Reason != "" && q.Reason != "any" && v.reason() != q.Reason:
		return false
	case q.Client.IsValid() && !q.Client.Contains(v.client()):
		return false
	case q.ASN != 0 && v.asn() != q.ASN, q.Country != "" && !strings.EqualFold(string(v.text(textCountry)), q.Country):
		return false
	case !is(v, textProxy, q.Proxy), !is(v, textServer, q.Server), !is(v, textMethod, q.Method):
		return false
	case q.Path != "" && !bytes.HasPrefix(v.text(textPath), []byte(q.Path)):
		return false
	case !m.hostMatches(v), !m.textMatches(v):
		return false
	case q.ID != "" && (v.isSession() || v.id() != q.ID):
		return false
	}
	return true
}

func is(v view, text int, want string) bool { return want == "" || string(v.text(text)) == want }

// hostMatches compares hosts without their ports.
func (m *matcher) hostMatches(v view) bool {
	if m.host == nil && m.suffix == nil || len(m.host)+len(m.suffix) == 0 {
		return true
	}
	host := v.text(textHost)
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	if m.suffix != nil {
		return len(host) > len(m.suffix) && bytes.EqualFold(host[len(host)-len(m.suffix):], m.suffix)
	}
	return bytes.EqualFold(host, m.host)
}

// textMatches looks for the text in what people read of a record.
func (m *matcher) textMatches(v view) bool {
	if len(m.text) == 0 {
		return true
	}
	for _, text := range [...]int{textHost, textPath, textQuery, textServer, textUser, textAgent, textReferer, textCause} {
		if containsFold(v.text(text), m.text) {
			return true
		}
	}
	return false
}

// containsFold reports whether s contains lower, which is in lower case, in
// any case.
func containsFold(s, lower []byte) bool {
	for i := 0; i+len(lower) <= len(s); i++ {
		j := 0
		for ; j < len(lower); j++ {
			c := s[i+j]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			if c != lower[j] {
				break
			}
		}
		if j == len(lower) {
			return true
		}
	}
	return false
}
