// Package upstream is the source that forwards requests: it selects one of a route's
// servers, sends it the request, and makes its response that of the exchange.
//
// servers.go has the steps of one exchange, choose.go the selection of a server, attempt.go
// one attempt, pool.go the pooled connections, roundtrip.go HTTP/1.1 on one of them
// (package h2 implements HTTP/2), head.go the exact bytes of a request, and forward.go the
// forwarded headers. retry.go decides about retries, sticky.go about affinity, mirror.go
// sends copies; the state of servers is in internal/server/health.
package upstream

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/balance"
	"headgate/internal/server/health"
)

// Servers is the source of a route that has servers. It is safe for use by
// many goroutines at once.
type Servers struct {
	// Fields that every request reads are first: with many routes each request uses a
	// different one, and loads its memory.
	expansion *expansion // nil if no server has a host name
	retry     *retry     // nil without retries
	pins      *pins      // nil without sticky cookies
	list      []*Server
	group     balance.Group
	hashed
	host HostField

	// queueTimeout is how long a request may wait for a server.
	queueTimeout time.Duration
	// allOpen is the answer when the circuits of all servers are open.
	allOpen *exchange.Answer
}

// Policy is what a route wants of its servers, beside their settings.
type Policy struct {
	// Host says which Host they get.
	Host HostField
	// Retry says when a request is sent once more; nil is never.
	Retry *Retry
	// Affinity keeps clients at the server that answered them first; nil does
	// not.
	Affinity *Affinity
	// Expand is whether a name with several addresses is several servers.
	Expand bool
	// Retried is called for each retry: true if it is made, false if the budget rejected
	// it. It is called by many goroutines at once; it may be nil.
	Retried func(sent bool)
	// Proxy and Route are whose servers they are. Their run-time state is kept
	// under these names.
	Proxy, Route string
	// Health is how they are watched.
	Health Health
	// FailClosed is whether no requests are sent while all servers are unhealthy.
	FailClosed bool
	// Balance is how a server is chosen.
	Balance balance.Choice
	// SlowStart is the time in which a server that comes back gets its full share.
	SlowStart time.Duration
	// QueueLength is how many requests may wait when every server has as many as
	// it may, and QueueTimeout how long.
	QueueLength  int
	QueueTimeout time.Duration
}

// Server is one upstream address of a route.
type Server struct {
	// URL is the address as configured, for the log.
	URL string
	// Base is the base path. It starts with "/".
	Base string

	// What every request looks at goes on.
	pool    *Pool
	live    *health.Server
	counter Counter
	// circuit is nil without a breaker.
	circuit *health.Circuit
	timed   bool // the load balancing method uses response times

	// Backup is whether the server is used only when no other can be.
	Backup bool
	// Weight is the server's share against the others. 0 means no requests.
	Weight int
	// Authority is the Host that the server gets if the route says "upstream".
	Authority string

	member string // the address, if the name has several
	judge  *health.Policy
}

// Counter counts attempts at a server.
type Counter interface {
	// Tried is called for each attempt: with exchange.None and the time to the response
	// head, else with the reason why there was none. It is called by many goroutines at
	// once.
	Tried(reason exchange.Reason, firstByte time.Duration)
}

// Target is what a Server is made of: the parsed URL and settings.
type Target struct {
	// URL is the text that is shown.
	URL string
	// Network is "tcp" or "", "unix", or "srv".
	Network string
	// Address is host:port to connect to, where the host may be a name, or the
	// path of a Unix socket, or the name of a service with SRV records.
	Address string
	// Member is the address of one server of a name with several.
	Member string
	// Reach is the resolved Address, if that is known; "" is Address.
	Reach string
	// Secure are the TLS settings; nil means no TLS.
	Secure *Secure
	// HTTP2 is whether a server without TLS is used with HTTP/2, without
	// negotiation. With TLS the server chooses.
	HTTP2 bool
	// FastCGI is whether the server speaks FastCGI, and KeepConnections whether its
	// connections are used for more than one request.
	FastCGI, KeepConnections bool
	// Authority is host:port as a Host field writes it.
	Authority string
	// Base is the base path as written, "/" or "" for none.
	Base string
	// Weight is the share, 0 to 65535.
	Weight int
	// MaxRequests is how many requests may run on the server at once; 0 is no
	// bound.
	MaxRequests int
	// Backup is whether the server is used only when no other can be.
	Backup bool
	// Counter counts the attempts; nil counts nothing.
	Counter Counter
}

// Settings hold for the connections to all servers. Zero times mean no limit.
type Settings struct {
	// IdleTimeout is how long an unused connection is kept, IdleConnections how
	// many are kept for one address.
	IdleTimeout     time.Duration
	IdleConnections int
	// BodyIdle is the longest pause in a response body.
	BodyIdle time.Duration
	// HeadSize is the largest response head, in bytes.
	HeadSize int
	// ResolveInterval is how long the addresses of a name are cached at most, Resolvers the
	// name servers; the default is the system's.
	ResolveInterval time.Duration
	Resolvers       []netip.AddrPort
	// ContinueWait is how long a body that waits for 100 Continue waits for a
	// server that does not send it; 0 is a second.
	ContinueWait time.Duration
}

// HostField says which Host a server gets.
type HostField struct {
	// Upstream is true for the authority of the server's URL; Fixed, if it is
	// not "", is sent as it is. Otherwise servers get what the client sent.
	Upstream bool
	Fixed    string
}

// New returns the source for the servers of a route. Their connections and their
// run-time state are kept under env, so that a change which leaves a server alone
// leaves those alone too.
func New(targets []Target, settings Settings, policy Policy, env exchange.Env) *Servers {
	var own map[string]exchange.Kept
	if policy.Expand && slices.ContainsFunc(targets, Target.named) {
		own = map[string]exchange.Kept{}
		env = noting(env, own)
	}
	r := newRoom(len(targets))
	s := r.servers
	s.host, s.retry, s.queueTimeout = policy.Host, newRetry(policy.Retry, policy.Retried), policy.QueueTimeout
	s.hashed = hashedBy(policy.Balance)
	for i := range targets {
		r.list[i].init(&targets[i], settings, env)
		s.list = append(s.list, &r.list[i])
	}
	s.addServers(r, targets, settings, &policy, env)
	s.pins = newPins(policy.Affinity, s.list)
	if own != nil {
		s.expand(targets, settings, policy, env, own)
	}
	return s
}

// room is the memory of the servers of a route, and of the balancer for them. Most routes
// have one server: then all of it is one allocation, so that a request finds it together.
type room struct {
	servers *Servers
	list    []Server
	members []balance.Member
	judge   *health.Policy
}

func newRoom(n int) *room {
	if n > 1 {
		return &room{&Servers{list: make([]*Server, 0, n)}, make([]Server, n), make([]balance.Member, n), &health.Policy{}}
	}
	one := &struct {
		Servers
		list    [1]*Server
		server  [1]Server
		members [1]balance.Member
		judge   health.Policy
		judged  [1]*health.Server
	}{}
	one.Servers.list, one.judge.Servers = one.list[:0], one.judged[:0]
	return &room{&one.Servers, one.server[:n], one.members[:n], &one.judge}
}

// init makes the server of a target.
func (s *Server) init(t *Target, settings Settings, env exchange.Env) {
	*s = Server{URL: t.URL, Authority: t.Authority, Base: t.Base, Weight: t.Weight, Backup: t.Backup, member: t.Member, counter: t.Counter}
	if s.Base == "" {
		s.Base = "/"
	}
	of := struct {
		way
		reach string
		Settings
	}{wayTo(t), t.Reach, settings}
	log := env.Log
	s.pool = exchange.Keep(env, "pool", of, func() *Pool { return newPool(t, settings, log) })
}

// base returns the base path without a final slash.
func (s *Server) base() string {
	if n := len(s.Base) - 1; s.Base[n] == '/' {
		return s.Base[:n]
	}
	return s.Base
}

// known returns what identifies a server in its route.
func (s *Server) known() string {
	if s.member == "" {
		return s.URL
	}
	return s.URL + " " + s.member
}

// List returns the servers in the order of the configuration.
func (s *Servers) List() []*Server { return s.list }

// Host returns which Host the servers get.
func (s *Servers) Host() HostField { return s.host }

// Describe returns "upstream(n)".
func (s *Servers) Describe() string { return "upstream(" + strconv.Itoa(len(s.list)) + ")" }

// Respond sends the request to a server and makes its answer the response. A
// server that cannot be reached is left for another one; a kept connection that
// turns out to be closed is replaced by a new one. What else is sent again is in
// retry.go.
func (s *Servers) Respond(ex *exchange.Exchange) *exchange.Answer {
	answer, _ := s.respond(ex)
	return answer
}

// respond is Respond. It also reports whether the request may have reached a server; if not,
// it can be sent to other ones.
func (s *Servers) respond(ex *exchange.Exchange) (answer *exchange.Answer, reached bool) {
	if s.expansion != nil {
		s = s.current(ex.Times.Start)
	}
	if s.retry != nil {
		s.retry.countRequest(ex)
	}
	var held *Server // whose slot is released here after a panic
	defer func() {
		if held != nil {
			held.dropped(ex)
		}
	}()
	var tried tried
	srv, at, none := s.first(ex)
	if srv == nil {
		return none, false
	}
	held = srv
	for sent := 0; ; {
		tried.Add(at)
		ex.Server = srv.URL
		ex.Attempts++
		failure := s.attempt(ex, srv)
		held = nil
		srv.countAttempt(ex, failure)
		if failure == nil {
			ex.ServerStatus = ex.Response.Status
		}
		if failure == nil && s.pins != nil {
			s.pins.served(ex, at)
		}
		if failure == nil && !s.retry.answers(ex.Response.Status) {
			return nil, true
		}
		if srv, at = s.next(ex, failure, tried, &sent); srv == nil {
			return answerOf(failure), sent > 0
		}
		held = srv
		if !connectFailed(failure) {
			s.again(ex)
		}
	}
}

// first returns the server that ex is sent to first: the one with affinity to
// its client, while that accepts requests.
func (s *Servers) first(ex *exchange.Exchange) (*Server, int, *exchange.Answer) {
	if at := s.Pinned(ex); at >= 0 {
		if srv, ok := s.claim(ex, at, tried{}); ok {
			return srv, at, nil
		}
	}
	return s.choose(ex, tried{})
}

// next returns the server for ex after a failed attempt, nil if the result is final.
func (s *Servers) next(ex *exchange.Exchange, failure *exchange.Error, tried tried, sent *int) (*Server, int) {
	if connectFailed(failure) {
		if late(ex, *sent) {
			return nil, 0
		}
		srv, at, _ := s.choose(ex, tried)
		return srv, at
	}
	*sent++
	if s.retry == nil || ex.Attempts >= len(s.list) || !s.retry.again(ex, failure, *sent) {
		return nil, 0
	}
	patience := s.queueTimeout
	if failure == nil {
		patience = 0 // the response holds a place: two that wait for each other's would wait in vain
	}
	srv, at, _ := s.chooseWithin(ex, tried, patience)
	if srv == nil {
		s.retry.budget.giveBack(exchange.Now())
	}
	return srv, at
}

// again readies ex for a server that gets what another one has seen.
func (s *Servers) again(ex *exchange.Exchange) {
	s.retry.report(true)
	untell(ex)
	discard(ex)
	afresh(ex) // the body is no longer read
}

// answerOf returns the answer for the last attempt, nil if that has a response.
func answerOf(failure *exchange.Error) *exchange.Answer {
	if failure == nil {
		return nil
	}
	if failure.Err == nil {
		return exchange.Fail(failure.Reason, "")
	}
	return exchange.Fail(failure.Reason, failure.Err.Error()) // the reason is recorded separately
}

// late reports whether the time of a request is used up by servers that could not
// be reached: the request timeout, on top of one for each attempt that was sent, whose
// number has a bound of its own.
func late(ex *exchange.Exchange, sent int) bool {
	limit := int64(ex.Limits.RequestTimeout)
	return limit > 0 && exchange.Now()-ex.Times.Start > limit*int64(sent+1)
}

// connectFailed reports whether an attempt failed, and no byte of the request can have been
// read.
func connectFailed(e *exchange.Error) bool {
	return e != nil && errors.Is(e.Err, errDial)
}
