package plan

import (
	"fmt"
	"time"

	"headgate/internal/server/health"
	"headgate/internal/upstream"
)

// ProxyState is how a proxy stands.
type ProxyState struct {
	// Name is the proxy's name, VirtualHosts those of the configuration.
	Name         string   `json:"name"`
	VirtualHosts []string `json:"virtual_hosts,omitempty"`
	// Origin is where the proxy comes from: "shop.yaml:12:3".
	Origin string `json:"origin,omitempty"`
	// State is active; degraded when a server takes no requests; down when a route
	// has no server that does; maintenance when every route is closed for it; or
	// inactive.
	State string `json:"state"`
	// Since is when the first server went that makes the proxy degraded, or the last
	// that makes it down. Reason says which, or how many routes are closed for
	// maintenance.
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Healthy counts the servers that are known to be well, Unknown those of which
	// nothing is known yet, Total all. A server of two routes counts twice.
	Healthy int `json:"healthy"`
	Unknown int `json:"unknown"`
	Total   int `json:"total"`
	// Routes are the routes with servers.
	Routes []RouteState `json:"routes,omitempty"`
}

// RouteState is how the servers of a route stand.
type RouteState struct {
	Path string `json:"path"`
	// Waiting is how many requests wait for a server.
	Waiting int `json:"waiting"`
	// Servers are in the order of the configuration.
	Servers []ServerState `json:"servers"`
}

// ServerState is how a server stands.
type ServerState = upstream.Standing

// The states of a proxy.
const (
	ProxyActive      = "active"
	ProxyDegraded    = "degraded"
	ProxyDown        = "down"
	ProxyMaintenance = "maintenance"
	ProxyInactive    = "inactive"
)

// Proxies returns how the proxies stand, by name. With a name it is that one alone,
// with the results of its servers' checks.
func (p *Plan) Proxies(name string) []ProxyState {
	return p.proxiesOf(func(of string) bool { return name == "" || of == name }, name != "")
}

// ProxiesNamed returns how those proxies stand whose names are keys of the map.
func (p *Plan) ProxiesNamed(names map[string]bool) []ProxyState {
	return p.proxiesOf(func(of string) bool { return names[of] }, false)
}

func (p *Plan) proxiesOf(want func(name string) bool, results bool) []ProxyState {
	out := []ProxyState{}
	for i := range p.proxies {
		if compiled := p.proxies[i]; want(compiled.settings.Name) {
			out = append(out, compiled.state(results))
		}
	}
	return out
}

func (c *proxy) state(results bool) ProxyState {
	s := ProxyState{Name: c.settings.Name, VirtualHosts: c.settings.VirtualHosts, State: ProxyActive}
	if !c.settings.Active {
		s.State = ProxyInactive
	}
	closed := 0
	for _, b := range c.bodies {
		if b.closed {
			closed++
		}
		if b.servers == nil {
			continue
		}
		r := RouteState{Path: b.path(), Waiting: b.servers.Waiting(), Servers: b.servers.Standing(results)}
		s.judge(&r)
		s.Routes = append(s.Routes, r)
	}
	s.close(closed, len(c.bodies))
	return s
}

// close adds to the state that some of the routes are closed for maintenance. While
// all are, that is how the proxy stands, whatever its servers do.
func (s *ProxyState) close(closed, routes int) {
	switch {
	case closed == 0:
	case closed == routes:
		s.State, s.Since, s.Reason = ProxyMaintenance, time.Time{}, "closed for maintenance"
	case s.Reason == "":
		s.Reason = fmt.Sprintf("%d of %d routes are closed for maintenance", closed, routes)
	}
}

// judge adds to the state what the servers of a route make of it.
func (s *ProxyState) judge(r *RouteState) {
	usable, clients := 0, 0
	var first, last *ServerState // to go, of those that take no requests
	for i := range r.Servers {
		srv := &r.Servers[i]
		s.Total++
		switch srv.State {
		case health.Healthy, health.SlowStart:
			s.Healthy++
		case health.Unknown:
			s.Unknown++
		}
		if srv.Weight == 0 {
			continue
		}
		clients++
		if srv.Usable() {
			usable++
			continue
		}
		if first == nil || srv.Since.Before(first.Since) {
			first = srv
		}
		if last == nil || srv.Since.After(last.Since) {
			last = srv
		}
	}
	switch {
	case first == nil:
	case usable == 0:
		if s.State != ProxyDown {
			s.State, s.Since = ProxyDown, last.Since
			s.Reason = fmt.Sprintf("route %s: none of %d servers takes requests", r.Path, clients)
		}
	case s.State == ProxyActive:
		s.State, s.Since = ProxyDegraded, first.Since
		s.Reason = fmt.Sprintf("route %s: %d of %d servers take no requests; %s is %s: %s", r.Path, clients-usable, clients, first.URL, first.Word(), first.Reason)
	}
}
