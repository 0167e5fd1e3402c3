package upstream

import (
	"strconv"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/balance"
	"headgate/internal/server/health"
)

// Health configures the health checks of a route's servers.
type Health struct {
	// Check configures the health checks; nil means none.
	Check *health.Config
	// Ejection configures when a server that fails requests is ejected.
	Ejection health.Ejection
	// Breaker says when a circuit opens; nil has no circuits.
	Breaker *health.Breaker
}

// addServers adds the run-time state to the servers of a route, and the group that
// chooses among them. State is kept under env by the route's name and the server's
// URL: a change that does not affect those keeps it.
func (s *Servers) addServers(r *room, targets []Target, settings Settings, p *Policy, env exchange.Env) {
	queue := newQueue(targets, p, env)
	r.judge.Ejection, r.judge.SlowStart = p.Health.Ejection, p.SlowStart
	for i := range targets {
		t, srv := &targets[i], s.list[i]
		id := identity(targets, i)
		srv.keepState(t, id, queue, p, env)
		srv.judge = r.judge
		srv.timed = p.Balance.Method == balance.P2CEWMA
		if p.Health.Check != nil {
			srv.check(t, id, settings, p, env)
		}
		r.judge.Servers = append(r.judge.Servers, srv.live)
		r.members[i] = balance.Member{ID: id, Weight: t.Weight, Backup: t.Backup, Gauge: &srv.live.Gauge}
	}
	s.group.Init(r.members, balance.Options{Method: p.Balance.Method, SlowStart: p.SlowStart, Queue: queue, FailClosed: p.FailClosed})
	// Without a breaker too: a request that runs on under an earlier plan finds the circuits
	// of the one that came after it.
	s.allOpen = circuitsOpen
	if p.Health.Breaker != nil {
		wait := int((p.Health.Breaker.OpenTime.D() + time.Second - 1) / time.Second)
		s.allOpen = &exchange.Answer{Reason: exchange.CircuitOpen, RetryAfter: wait, Cause: circuitsOpen.Cause}
	}
}

// identity returns the identity of a server in its route: its URL, and an index if the list
// has it several times.
func identity(targets []Target, i int) string {
	url, n := targets[i].URL, 1
	if member := targets[i].Member; member != "" {
		return url + " at " + member
	}
	for j := range i {
		if targets[j].URL == url {
			n++
		}
	}
	if n > 1 {
		return url + " " + strconv.Itoa(n)
	}
	return url
}

// newQueue returns the queue of a route; nil when no server has a bound.
func newQueue(targets []Target, p *Policy, env exchange.Env) *balance.Queue {
	for i := range targets {
		if targets[i].MaxRequests > 0 {
			of := struct {
				proxy, route string
				length       int
			}{p.Proxy, p.Route, p.QueueLength}
			return exchange.Keep(env, "queue", of, func() *balance.Queue { return balance.NewQueue(of.length) })
		}
	}
	return nil
}

// keepState connects a server with its known state, and its circuit.
func (s *Server) keepState(t *Target, id string, queue *balance.Queue, p *Policy, env exchange.Env) {
	of := place{proxy: p.Proxy, route: p.Route, server: id}
	if t.MaxRequests > 0 {
		of.maxRequests, of.queueLength = t.MaxRequests, p.QueueLength
	}
	name := health.Name{Proxy: p.Proxy, Route: p.Route, Server: t.URL}
	o := health.Options{MaxRequests: t.MaxRequests, Queue: queue, Log: env.Log, Changed: env.Standing}
	holds := env.Holds
	s.live = exchange.Keep(env, "server", of, func() *health.Server { return health.NewServer(name, o).Join(holds) })
	if b := p.Health.Breaker; b != nil {
		of := struct {
			place
			health.Breaker
		}{of, *b}
		s.circuit = exchange.Keep(env, "circuit", of, func() *health.Circuit { return health.NewCircuit(b, s.live) })
	}
}

// place identifies a server, with the limits that its state was made for.
type place struct {
	proxy, route, server     string
	maxRequests, queueLength int // of a server without a bound 0
}

// check starts the health checks of a server. One check serves all routes with the same
// address and settings. It uses the path of requests, through a pool that keeps no
// connection.
func (s *Server) check(t *Target, id string, settings Settings, p *Policy, env exchange.Env) {
	c := p.Health.Check
	rounds := health.KeepRounds(env)
	alone := *t
	alone.Base, alone.Counter, alone.Weight, alone.MaxRequests, alone.Backup, alone.KeepConnections = "", nil, 1, 0, false, false
	settings.IdleConnections = 0
	of := checked{way: wayTo(t), authority: t.Authority, settings: settings, check: *c}
	check := exchange.Keep(env, "check", of, func() *health.Check {
		source := New([]Target{alone}, settings, Policy{Host: HostField{Upstream: c.Host == "", Fixed: c.Host}, Proxy: "checks"}, env)
		probe := health.Probe{Name: t.URL, Source: source, Connect: source.list[0].pool.try}
		return health.NewCheck(c, probe, rounds, env.Log)
	})
	watch := struct {
		proxy, route, server string
		slowStart            time.Duration
		checked
	}{p.Proxy, p.Route, id, p.SlowStart, of}
	exchange.Keep(env, "watch", watch, func() exchange.Kept { return check.Watch(s.live, watch.slowStart) })
}

// checked is the request of a check and its server, with the settings of its connections.
type checked struct {
	way
	authority string
	settings  Settings
	check     health.Config
}

// way is how connections to a server are established.
type way struct {
	network, address string
	http2            bool
	fastCGI, keeps   bool
	tls              string // the key of how TLS is spoken, "" for none
}

// wayTo returns the way to a server.
func wayTo(t *Target) way {
	w := way{network: t.Network, address: t.Address, http2: t.HTTP2, fastCGI: t.FastCGI, keeps: t.KeepConnections}
	if t.Secure != nil {
		w.tls = "tls " + t.Secure.Key
	}
	return w
}

// try opens a connection, to see whether one comes about.
func (p *Pool) try(timeout time.Duration) error {
	var end time.Time
	if timeout > 0 {
		end = time.Now().Add(timeout)
	}
	nc, err := p.connect(timeout)
	if err != nil {
		return err
	}
	defer nc.Close()
	if p.tls != nil {
		_, err = p.shake(nc, p.multi.tls, end)
	}
	return err
}

// countAttempt counts an attempt of ex: failure is nil when a response head arrived. A client
// that left reveals nothing about the server, nor does the duration of a call that the server
// has canceled. An attempt that failed is over.
func (s *Server) countAttempt(ex *exchange.Exchange, failure *exchange.Error) {
	reason := exchange.None
	if failure == nil {
		s.live.Answered()
	} else {
		defer s.live.Release()
		reason = failure.Reason
		s.live.Failed(s.judge, failure)
	}
	if s.circuit != nil {
		s.tellCircuit(ex, failure)
	}
	if reason == exchange.ClientClosed {
		return
	}
	if s.timed && reason != exchange.UpstreamCanceled {
		s.observe(ex, reason)
	}
	if s.counter != nil {
		s.counter.Tried(reason, time.Duration(ex.Times.Head-ex.Times.Tried))
	}
}

// dropped ends an attempt of ex that panicked, without a result.
func (s *Server) dropped(ex *exchange.Exchange) {
	if s.circuit != nil {
		s.circuit.Undone(ex.Times.Tried)
	}
	s.live.Release()
}

// tellCircuit counts an attempt for the circuit breaker.
func (s *Server) tellCircuit(ex *exchange.Exchange, failure *exchange.Error) {
	switch {
	case failure == nil:
		s.circuit.Answered(ex.Response.Status, ex.Times.Tried, ex.Times.Head)
	case health.Blames(failure.Reason):
		s.circuit.Failed(ex.Times.Tried, exchange.Now())
	default:
		s.circuit.Undone(ex.Times.Tried)
	}
}

// observe records the time of an attempt for load balancing. A failure counts as a slow
// response: a server that fails immediately must not attract requests.
func (s *Server) observe(ex *exchange.Exchange, reason exchange.Reason) {
	const penalty = time.Second
	if reason == exchange.None {
		s.live.Observe(time.Duration(ex.Times.Head-ex.Times.Tried), ex.Times.Head)
		return
	}
	now := exchange.Now()
	s.live.Observe(max(time.Duration(now-ex.Times.Tried), penalty), now)
}

// released ends the exchange on the server that choose acquired. It is called once for
// each: by tell after a failed attempt, and by the owner of the response when that is
// closed; broke is called instead if the server's response was incomplete.
func (s *Server) released() {
	s.live.Ended()
	s.live.Release()
}

// broke is released for a response that the server broke off.
func (s *Server) broke(err error) {
	s.live.Broke(s.judge, classify(err))
	s.live.Release()
}

// Standing is the status of a server, for people.
type Standing struct {
	// URL is the server's address.
	URL string `json:"url" required:"true"`
	// Weight is its share of the requests.
	Weight int `json:"weight" required:"true"`
	// Address is the address if the URL's name has several, or "".
	Address string `json:"address,omitempty"`
	// Backup is whether it is used only if no other server is available.
	Backup bool `json:"backup,omitempty"`
	// Group is stable or candidate on a route with a split, or "".
	Group string `json:"group,omitempty"`
	health.Status
}

// Word returns the state in a word, the circuit's when that is what keeps requests
// from the server.
func (s *Standing) Word() string {
	switch {
	case s.State == health.Unhealthy || s.State == health.Ejected:
	case s.Circuit == health.CircuitOpen, s.Circuit == health.CircuitHalfOpen:
		return "circuit_" + s.Circuit
	}
	return s.State.String()
}

// Standing returns the states of the servers, in the order of the configuration, with the
// results of their checks if results is true.
func (s *Servers) Standing(results bool) []Standing {
	s = s.current(exchange.Now())
	out := make([]Standing, len(s.list))
	for i, srv := range s.list {
		out[i] = srv.standing(results)
	}
	return out
}

func (s *Server) standing(results bool) Standing {
	out := Standing{URL: s.URL, Address: s.member, Weight: s.Weight, Backup: s.Backup, Status: s.live.Status(results)}
	if s.circuit != nil {
		out.Circuit, out.Opened = s.circuit.State(), s.circuit.Opened()
	}
	if s.Weight == 0 && out.Hold == "" && (out.State == health.Unknown || out.State == health.Healthy || out.State == health.SlowStart) {
		out.State, out.Reason = health.Draining, "its weight is 0"
	}
	return out
}

// Standing returns the state of the server.
func (s *Server) Standing() Standing { return s.standing(false) }

// Likely returns the place of the server that ex would be sent to, -1 when that
// depends on whose turn it is, what runs, or chance. Nothing is counted.
func (s *Servers) Likely(ex *exchange.Exchange) int {
	method := s.group.Method()
	if s.Pinned(ex) >= 0 || s.expansion != nil || method != balance.Hash && method != balance.First {
		return -1
	}
	ask := balance.Ask{Now: ex.Times.Start}
	if s.by != balance.ByNothing {
		ask.Key = s.key(ex)
	}
	at, _ := s.group.Likely(&ask)
	return at
}

// Place is a server of the configuration, for the metrics.
type Place struct {
	servers *Servers
	at      int
}

// Place returns the server at place i of the configuration.
func (s *Servers) Place(i int) Place { return Place{s, i} }

// Now returns the state of the server. For a name with several addresses it has the sum of
// their active requests, and the state of the best one.
func (p Place) Now() health.Status {
	srv := p.servers.list[p.at]
	m := p.servers.current(exchange.Now())
	if m == p.servers {
		return srv.standing(false).Status
	}
	var sum health.Status
	best := true
	for _, member := range m.list {
		if member.URL != srv.URL {
			continue
		}
		now := member.standing(false)
		if best || sum.State != health.Healthy && now.State == health.Healthy {
			sum.State, sum.Circuit, best = now.State, now.Circuit, false
		}
		sum.Active += now.Active
		sum.Ejections += now.Ejections
		sum.Opened += now.Opened
		sum.Passed += now.Passed
		sum.Failed += now.Failed
	}
	return sum
}

// Bounded reports whether requests may have to wait for a server.
func (s *Servers) Bounded() bool { return s.group.Bounded() }

// Waiting returns how many requests wait for a server.
func (s *Servers) Waiting() int { return s.current(exchange.Now()).group.Waiting() }
