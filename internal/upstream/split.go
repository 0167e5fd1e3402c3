package upstream

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/balance"
	"headgate/internal/server/split"
	"headgate/internal/setting/unit"
)

// SplitCookie is the name of the cookie that keeps a browser in its group. It is not
// forwarded to servers.
const SplitCookie = "headgate_split"

// splitAge is how long browsers keep the cookie.
const splitAge = unit.Duration(30 * 24 * time.Hour)

// Split is the source of a route with two groups of servers. It is safe for use by many
// goroutines at once.
//
// A client has a point from 0 to 99, and belongs to the candidate while that is below its
// percentage. The point is a hash, or it is drawn for a cookie, whose value is an
// authentication code that cannot be made for another point. It is the same on all routes
// of a proxy and on all machines.
type Split struct {
	hashed
	stable, candidate *Servers
	live              *split.Live
	seed              uint64 // of the proxy, so that not the same clients are first everywhere
	start             int    // the first share, for a plan that serves nothing
	sticky            bool
	cookie            sticky
	points            *pins // the cookies of the points; nil without
}

// SplitPolicy is what a route wants of its split.
type SplitPolicy struct {
	// Proxy is the name of the proxy.
	Proxy string
	// Sticky is whether clients keep their point. Key is what they are told apart by, by
	// nothing for the cookie.
	Sticky bool
	Key    balance.Choice
	// AffinityKey makes the values of cookies.
	AffinityKey *AffinityKey
	// Start is the first percentage of the candidate.
	Start int
	// Live is the run-time side.
	Live *split.Live
}

// Assignment is the group of a request.
type Assignment struct {
	// Group is where it goes.
	Group split.Group
	// By is what decided.
	By SplitBy

	point uint32
}

// SplitBy is what decides about the group of a request.
type SplitBy uint8

// What decides: a new draw for each request, a draw for a client without the cookie, the
// cookie, or the hash of the key.
const (
	SplitByChance SplitBy = iota
	SplitByNewCookie
	SplitByCookie
	SplitByKey
)

// assignments and splitCookies are where the group and the cookie are noted. A request that
// a cache makes of its own is for the same client.
var (
	assignments  = exchange.NewSlot[Assignment](true)
	splitCookies = exchange.NewSlot[affinity](true)
)

// NewSplit returns the source for both groups. The candidate must not fail open.
func NewSplit(stable, candidate *Servers, p SplitPolicy) *Split {
	s := &Split{stable: stable, candidate: candidate, live: p.Live, start: p.Start, sticky: p.Sticky, hashed: hashedBy(p.Key)}
	s.seed = balance.HashText("split " + p.Proxy)
	s.cookie = sticky{name: SplitCookie, slot: splitCookies}
	if s.sticky && s.by == balance.ByNothing {
		a := Affinity{Sticky: &Sticky{Name: SplitCookie, SameSite: SameSiteLax, MaxAge: splitAge}, Key: p.AffinityKey, Proxy: p.Proxy, Route: "split"}
		names := make([]string, split.Points)
		for i := range names {
			names[i] = strconv.Itoa(i)
		}
		s.points = a.pins(names, "/")
	}
	return s
}

// Filter returns the filter that decides about the group of a request, in front of a cache,
// which must not mix the responses of both.
func (s *Split) Filter() exchange.Filter {
	f := exchange.Filter{Name: "split", Request: s.request}
	if s.points != nil {
		f.Response = s.cookie.response
	}
	return f
}

func (s *Split) request(ex *exchange.Exchange) *exchange.Answer {
	a := assignments.Reuse(ex)
	if s.points != nil {
		s.cookie.request(ex)
	}
	a.point, a.By = s.point(ex)
	a.Group = s.live.Of(a.point)
	return nil
}

// point returns the point of a client.
func (s *Split) point(ex *exchange.Exchange) (uint32, SplitBy) {
	switch {
	case !s.sticky:
		return rand.Uint32N(split.Points), SplitByChance
	case s.points == nil:
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], s.key(ex)^s.seed)
		return uint32(balance.HashText(b[:]) % split.Points), SplitByKey
	}
	c := splitCookies.Get(ex)
	if c == nil {
		c = splitCookies.Reuse(ex)
		*c = affinity{}
	} else if at := s.points.find(c.token); at >= 0 {
		c.cookie = ""
		return uint32(at), SplitByCookie
	}
	point := rand.Uint32N(split.Points)
	c.cookie = s.points.of(ex, int(point))
	return point, SplitByNewCookie
}

// Assigned returns the group of a request that the filter has seen.
func (s *Split) Assigned(ex *exchange.Exchange) Assignment {
	if a := assignments.Get(ex); a != nil {
		return *a
	}
	return Assignment{}
}

// Partition returns what distinguishes the responses for a request from those of the other
// group, and of a candidate before the last start, for a cache.
func (s *Split) Partition(ex *exchange.Exchange) uint32 {
	if s.Assigned(ex).Group == split.Candidate {
		return s.live.Epoch() + 1
	}
	return 0
}

// Live returns the run-time side.
func (s *Split) Live() *split.Live { return s.live }

// SplitDecision is the group of a request, for people.
type SplitDecision struct {
	// Group is stable or candidate.
	Group string `json:"group" required:"true"`
	// Share is the candidate's percentage.
	Share int `json:"share" required:"true"`
	// Why is what decides.
	Why string `json:"why" required:"true"`
	// Certain is false if another request like this one may go to the other group.
	Certain bool `json:"certain" required:"true"`
}

// Decided returns the group of a request that the filter has seen.
func (s *Split) Decided(ex *exchange.Exchange) SplitDecision {
	a, share := s.Assigned(ex), s.live.Share()
	if !s.live.Started() {
		if share = s.start; int(a.point) < share {
			a.Group = split.Candidate
		}
	}
	d := SplitDecision{Group: a.Group.String(), Share: share, Certain: true}
	switch {
	case share == 0:
		d.Why = "its share of 0%"
	case share == split.Points:
		d.Why = "its share of 100%"
	case a.By == SplitByCookie:
		d.Why = "the cookie " + SplitCookie
	case a.By == SplitByKey:
		d.Why = "the hash of " + s.keyText()
	case a.By == SplitByNewCookie:
		d.Why, d.Certain = "chance: the request has no valid cookie "+SplitCookie, false
	default:
		d.Why, d.Certain = "chance, for each request", false
	}
	return d
}

// keyText names what clients are told apart by.
func (s *Split) keyText() string {
	switch s.by {
	case balance.ByHeader:
		return "header " + s.name
	case balance.ByCookie:
		return "cookie " + s.name
	}
	return "the client's address"
}

// Servers returns the servers of a group.
func (s *Split) Servers(g split.Group) *Servers {
	if g == split.Candidate {
		return s.candidate
	}
	return s.stable
}

// List returns the servers of both groups, the stable ones first.
func (s *Split) List() []*Server { return slices.Concat(s.stable.list, s.candidate.list) }

// Describe returns "split(stable n, candidate m)".
func (s *Split) Describe() string {
	return "split(" + strconv.Itoa(len(s.stable.list)) + ", " + strconv.Itoa(len(s.candidate.list)) + ")"
}

// Respond sends the request to a server of its group. A request that no candidate server
// accepts, or none could be reached for, goes to the stable servers.
func (s *Split) Respond(ex *exchange.Exchange) *exchange.Answer {
	began := exchange.Now()
	if s.Assigned(ex).Group == split.Candidate {
		answer, reached := s.candidate.respond(ex)
		if answer == nil || reached || answer.Reason == exchange.ClientClosed {
			s.count(ex, split.Candidate, answer, began)
			return answer
		}
		if ex.Attempts > 0 { // else health says enough
			s.live.Observe(split.Candidate, true, 0)
		}
		untell(ex)
		began = exchange.Now()
	}
	answer := s.stable.Respond(ex)
	s.count(ex, split.Stable, answer, began)
	return answer
}

// count counts the result of a request, except if it says nothing about the servers.
func (s *Split) count(ex *exchange.Exchange, g split.Group, answer *exchange.Answer, began int64) {
	failed := answer != nil || ex.Response.Status >= 500
	if answer != nil && answer.Reason.Status() < 500 {
		return // the client left, or sent something wrong
	}
	s.live.Observe(g, failed, time.Duration(exchange.Now()-began))
}
