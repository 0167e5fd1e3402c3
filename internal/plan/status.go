package plan

import (
	"fmt"
	"slices"
	"time"

	"headgate/internal/server/health"
	"headgate/internal/server/split"
	"headgate/internal/upstream"
)

// ProxyState is the state of a proxy.
type ProxyState struct {
	// Name is the proxy's name.
	Name string `json:"name" required:"true"`
	// VirtualHosts are the virtual hosts of the configuration.
	VirtualHosts []string `json:"virtual_hosts,omitempty"`
	// Origin is where the proxy comes from: "shop.yaml:12:3".
	Origin string `json:"origin,omitempty"`
	// Issues are what needs an operator, such as issues of discovery.
	Issues []string `json:"issues,omitempty"`
	// State is active; degraded when a server takes no requests, or a route fails
	// open or is down; down when clients get an error on every route with servers,
	// which is so unless a server of it is healthy or has answered a request within the
	// last check interval; maintenance when every route is closed for it; or inactive.
	State string `json:"state" required:"true"`
	// Since is when the state of the proxy began.
	Since time.Time `json:"since,omitzero"`
	// Reason is the route that causes the state, or the number of routes that are closed
	// for maintenance.
	Reason string `json:"reason,omitempty"`
	// FailingOpen is the number of routes whose servers are all unhealthy, and one of
	// which responds nevertheless.
	FailingOpen int `json:"failing_open,omitempty"`
	// Down is the number of routes whose clients get 502 or 503.
	Down int `json:"down,omitempty"`
	// Healthy is the number of healthy servers. A server of two routes counts twice.
	Healthy int `json:"healthy" required:"true"`
	// Unknown is the number of servers whose health is not known yet.
	Unknown int `json:"unknown" required:"true"`
	// Total is the number of all servers.
	Total int `json:"total" required:"true"`
	// GateBypasses are the requests that pass the gate of the proxy without a sign-in.
	GateBypasses []string `json:"gate_bypasses,omitempty"`
	// Routes are the routes with servers.
	Routes []RouteState `json:"routes,omitempty"`
}

// RouteState is the state of the servers of a route.
type RouteState struct {
	// Path is the route's path, with its matchers.
	Path string `json:"path" required:"true"`
	Verdict
	// Waiting is how many requests wait for a server.
	Waiting int `json:"waiting" required:"true"`
	// Servers are in the order of the configuration.
	Servers []ServerState `json:"servers" required:"true"`
}

// ServerState is the state of a server.
type ServerState = upstream.Standing

// The states of a proxy, and of a route that fails open.
const (
	RouteFailingOpen = "failing_open"

	ProxyActive      = "active"
	ProxyDegraded    = "degraded"
	ProxyDown        = "down"
	ProxyMaintenance = "maintenance"
	ProxyInactive    = "inactive"
	ProxyElsewhere   = "elsewhere" // a TCP or UDP proxy that only other nodes have
)

// Proxies returns the states of the proxies, by name. With a name it is that one alone,
// with the results of its servers' checks.
func (p *Plan) Proxies(name string) []ProxyState {
	if name != "" {
		return p.proxiesNamed([]string{name}, true)
	}
	return p.ProxiesNamed(p.names)
}

// ProxyNames returns the names of all proxies, sorted. The slice is the plan's own.
func (p *Plan) ProxyNames() []string { return p.names }

// ProxiesNamed returns the states of the proxies with these names, in their order, without
// unknown ones.
func (p *Plan) ProxiesNamed(names []string) []ProxyState { return p.proxiesNamed(names, false) }

func (p *Plan) proxiesNamed(names []string, results bool) []ProxyState {
	out := make([]ProxyState, 0, len(names))
	for _, name := range names {
		if i, ok := slices.BinarySearch(p.names, name); ok {
			out = append(out, p.proxies[i].state(results))
		}
	}
	return out
}

func (c *proxy) state(results bool) ProxyState {
	s := ProxyState{Name: c.settings.Name, VirtualHosts: c.settings.VirtualHosts, GateBypasses: c.settings.GateBypasses(), State: ProxyActive}
	if !c.settings.Active {
		s.State = ProxyInactive
	}
	closed, routes := 0, 0
	for _, b := range c.bodies {
		if b.reserved {
			continue
		}
		routes++
		if b.closed {
			closed++
		}
		if b.settings.Unserved || b.settings.Withheld {
			why := noContainer
			if b.settings.Withheld {
				why = withheld
			}
			s.Routes = append(s.Routes, RouteState{Path: b.label, Verdict: Verdict{State: ProxyDown, Reason: why}, Servers: []ServerState{}})
			s.Down++
		}
		if b.servers == nil {
			continue
		}
		r := RouteState{Path: b.label, Waiting: b.servers.Waiting(), Servers: b.servers.Standing(results)}
		s.count(&r, !b.settings.FailOpen)
		if b.split != nil {
			s.addCandidate(&r, b, results)
		}
		s.Routes = append(s.Routes, r)
	}
	if c.settings.Active {
		s.sum()
	}
	s.close(closed, routes)
	return s
}

// close adds to the state that some of the routes are closed for maintenance. If all are,
// that is the state of the proxy, whatever the state of its servers.
func (s *ProxyState) close(closed, routes int) {
	switch {
	case closed == 0:
	case closed == routes:
		s.State, s.Since, s.Reason = ProxyMaintenance, time.Time{}, "closed for maintenance"
	case s.Reason == "":
		verb := "are"
		if closed == 1 {
			verb = "is"
		}
		s.Reason = fmt.Sprintf("%d of %d routes %s closed for maintenance", closed, routes, verb)
	}
}

// count adds the servers of a route, and judges it.
func (s *ProxyState) count(r *RouteState, failClosed bool) {
	all := make([]judged, len(r.Servers))
	for i := range r.Servers {
		srv := &r.Servers[i]
		all[i] = judged{srv.URL, srv.Weight, srv.Word(), &srv.Status}
		s.Total++
		switch srv.State {
		case health.Healthy, health.SlowStart:
			s.Healthy++
		case health.Unknown:
			s.Unknown++
		}
	}
	r.Verdict = evaluate(all, failClosed)
	switch r.State {
	case RouteFailingOpen:
		s.FailingOpen++
	case ProxyDown:
		s.Down++
	}
}

// addCandidate adds the candidate servers of a split. If none of them is healthy, the stable
// ones get their requests.
func (s *ProxyState) addCandidate(r *RouteState, b *body, results bool) {
	candidate := RouteState{Servers: b.split.Servers(split.Candidate).Standing(results)}
	stands := *s
	stands.count(&candidate, true)
	s.Total, s.Healthy, s.Unknown = stands.Total, stands.Healthy, stands.Unknown
	if candidate.State == ProxyDown && r.State == ProxyActive && b.split.Live().Share() > 0 {
		r.Verdict = Verdict{State: ProxyDegraded, Since: candidate.Since, Reason: "the candidate is down: the stable servers get its requests"}
	}
	for i := range r.Servers {
		r.Servers[i].Group = split.Stable.String()
	}
	for i := range candidate.Servers {
		candidate.Servers[i].Group = split.Candidate.String()
	}
	r.Servers = append(r.Servers, candidate.Servers...)
}

// sum makes the state of the whole out of those of the routes: it is that of the worst,
// but down only when no route is left.
func (s *ProxyState) sum() {
	var worst *RouteState
	for i := range s.Routes {
		if r := &s.Routes[i]; worst == nil || r.badness() > worst.badness() {
			worst = r
		}
	}
	if worst == nil || worst.State == ProxyActive {
		return
	}
	s.State, s.Since, s.Reason = ProxyDegraded, worst.Since, "route "+worst.Path+": "+worst.Reason
	switch n := len(s.Routes); {
	case s.Down == n:
		s.State = ProxyDown
	case s.Down > 0 && n > 1:
		s.Reason = fmt.Sprintf("%d of %d routes are down; %s", s.Down, n, s.Reason)
	case s.FailingOpen > 0:
		s.Reason = "failing open; " + s.Reason
	}
}

// badness orders the states of routes.
func (r *RouteState) badness() int {
	return slices.Index([]string{ProxyActive, ProxyDegraded, RouteFailingOpen, ProxyDown}, r.State)
}
