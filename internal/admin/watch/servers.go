package watch

import (
	"maps"
	"slices"

	"headgate/internal/control"
	"headgate/internal/event"
	"headgate/internal/plan"
	"headgate/internal/server/health"
)

// maxSingle limits the TCP and UDP proxies that are checked one by one; more are checked
// together.
const maxSingle = 16

// proxy is the last reported state of a proxy: the servers that get no requests, by route
// and server, and the state of the proxy.
type proxy struct {
	out  map[serverKey]health.State
	well proxyHealth
}

// proxyHealth is the state of a proxy.
type proxyHealth uint8

const (
	well     proxyHealth = iota
	degraded             // some of what it needs is away
	down                 // no server takes requests
)

type serverKey struct{ route, server string }

// proxyStatus is the current state of a proxy.
type proxyStatus struct {
	kind, name     string
	servers        []server
	well           proxyHealth
	reason         string
	healthy, total int
}

type server struct {
	serverKey
	health.Status
}

// checkServers compares the state of the servers of the noted proxies with what was
// reported last. It skips all others: after a start, the first results of the servers of
// ten thousand proxies arrive one after the other.
func (w *Watch) checkServers(noted map[string]bool) {
	p := w.house.Plan()
	if len(noted) == 0 || p == nil {
		return
	}
	names := slices.Sorted(maps.Keys(noted))
	proxies := p.ProxiesNamed(names)
	for i := range proxies {
		w.reportServers(proxies[i].Name, ofProxy(&proxies[i]))
	}
	if len(names) > maxSingle {
		names = []string{""} // all
	}
	for _, name := range names {
		for _, s := range w.house.Streams(name) {
			if noted[s.Name] {
				w.reportServers(s.Protocol+" "+s.Name, ofStream(&s))
			}
		}
	}
}

func ofProxy(p *plan.ProxyState) proxyStatus {
	s := proxyStatus{kind: "proxies", name: p.Name, reason: p.Reason, healthy: p.Healthy, total: p.Total}
	switch {
	case p.State == plan.ProxyInactive, p.State == plan.ProxyMaintenance:
	case p.State == plan.ProxyDown:
		s.well = down
	case p.State == plan.ProxyDegraded:
		s.well = degraded
	}
	for _, r := range p.Routes {
		for _, one := range r.Servers {
			s.servers = append(s.servers, server{serverKey{r.Path, one.URL}, one.Status})
		}
	}
	return s
}

func ofStream(p *control.StreamState) proxyStatus {
	s := proxyStatus{kind: p.Protocol + "_proxies", name: p.Name, reason: p.Reason, healthy: p.Healthy, total: len(p.Servers)}
	switch p.State {
	case plan.ProxyDown:
		s.well = down
	case plan.RouteFailingOpen, plan.ProxyDegraded:
		s.well = degraded
	}
	for _, one := range p.Servers {
		s.servers = append(s.servers, server{serverKey{"", one.Address}, one.Status})
	}
	return s
}

// reportServers sends the events for changed servers of a proxy. The key distinguishes
// proxies of one name.
func (w *Watch) reportServers(key string, now proxyStatus) {
	was := w.proxies[key]
	if was == nil {
		was = &proxy{}
	}
	is := &proxy{out: map[serverKey]health.State{}, well: now.well}
	for _, s := range now.servers {
		before, wasOut := was.out[s.serverKey]
		about := event.Server{Kind: now.kind, Proxy: now.name, Route: s.route, Server: s.server, Reason: s.State.String(), Cause: s.Reason}
		switch s.State {
		case health.Unhealthy, health.Ejected:
			is.out[s.serverKey] = s.State
			if wasOut && before == s.State {
				continue
			}
			if s.LastError != "" {
				about.Cause = s.LastError
			}
			if s.State == health.Ejected {
				w.events.Send(event.ServerEjected{Server: about})
			} else {
				w.events.Send(event.ServerUnhealthy{Server: about})
			}
		default:
			if wasOut {
				w.events.Send(event.ServerHealthy{Server: about})
			}
		}
	}
	if is.well != was.well {
		w.reportProxy(&now)
	}
	if w.proxies[key] = is; len(is.out) == 0 && is.well == well {
		delete(w.proxies, key)
	}
}

// reportProxy sends the event for the state of a proxy.
func (w *Watch) reportProxy(now *proxyStatus) {
	about := event.Proxy{Proxy: now.name, Healthy: now.healthy, Total: now.total}
	switch now.well {
	case down:
		w.events.Send(event.ProxyDown{Proxy: about})
	case degraded:
		w.events.Send(event.ProxyDegraded{Proxy: about, Reason: now.reason})
	default:
		w.events.Send(event.ProxyRecovered{Proxy: about})
	}
}

// forgetServers drops the state of proxies that no longer exist, and checks the others that
// have one: their servers may no longer exist.
func (w *Watch) forgetServers(p *plan.Plan) {
	if p == nil || len(w.proxies) == 0 {
		return
	}
	found := map[string]bool{}
	report := func(key string, now func() proxyStatus) {
		if found[key] = true; w.proxies[key] != nil {
			w.reportServers(key, now())
		}
	}
	for _, s := range p.Proxies("") {
		report(s.Name, func() proxyStatus { return ofProxy(&s) })
	}
	for _, s := range w.house.Streams("") {
		report(s.Protocol+" "+s.Name, func() proxyStatus { return ofStream(&s) })
	}
	maps.DeleteFunc(w.proxies, func(key string, _ *proxy) bool { return !found[key] })
}
