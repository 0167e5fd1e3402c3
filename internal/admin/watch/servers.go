package watch

import (
	"maps"
	"slices"

	"headgate/internal/control"
	"headgate/internal/event"
	"headgate/internal/plan"
	"headgate/internal/server/health"
)

// maxSingle is how many TCP and UDP proxies are looked at one by one; more are looked at
// together.
const maxSingle = 16

// proxy is what was told of a proxy last: the servers of it that get no requests, by
// route and server, and how it stands as a whole.
type proxy struct {
	out  map[serverKey]health.State
	well proxyHealth
}

// proxyHealth is how a proxy stands as a whole.
type proxyHealth uint8

const (
	well     proxyHealth = iota
	degraded             // some of what it needs is away
	down                 // no server takes requests
)

type serverKey struct{ route, server string }

// standing is how a proxy stands now.
type standing struct {
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

// lookAtServers compares how the servers of proxies stand with what was told last. It
// looks at no others: after a start every server of ten thousand proxies is heard of for
// the first time, one after the other.
func (w *Watch) lookAtServers(noted map[string]bool) {
	p := w.house.Plan()
	if len(noted) == 0 || p == nil {
		return
	}
	names := slices.Sorted(maps.Keys(noted))
	proxies := p.ProxiesNamed(names)
	for i := range proxies {
		w.tellServers(proxies[i].Name, ofProxy(&proxies[i]))
	}
	if len(names) > maxSingle {
		names = []string{""} // all
	}
	for _, name := range names {
		for _, s := range w.house.Streams(name) {
			if noted[s.Name] {
				w.tellServers(s.Protocol+" "+s.Name, ofStream(&s))
			}
		}
	}
}

func ofProxy(p *plan.ProxyState) standing {
	s := standing{kind: "proxies", name: p.Name, reason: p.Reason, healthy: p.Healthy, total: p.Total}
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

func ofStream(p *control.StreamState) standing {
	s := standing{kind: p.Protocol + "_proxies", name: p.Name, reason: p.Reason, healthy: p.Healthy, total: len(p.Servers)}
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

// tellServers tells what is new of a proxy. Its key tells it from others of its name.
func (w *Watch) tellServers(key string, now standing) {
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
		w.tellProxy(&now)
	}
	if w.proxies[key] = is; len(is.out) == 0 && is.well == well {
		delete(w.proxies, key)
	}
}

// tellProxy tells how a proxy stands as a whole.
func (w *Watch) tellProxy(now *standing) {
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

// forgetServers forgets what was told of proxies that are gone, and looks again at
// the others of which something was told: their servers may be gone.
func (w *Watch) forgetServers(p *plan.Plan) {
	if p == nil || len(w.proxies) == 0 {
		return
	}
	found := map[string]bool{}
	tell := func(key string, now func() standing) {
		if found[key] = true; w.proxies[key] != nil {
			w.tellServers(key, now())
		}
	}
	for _, s := range p.Proxies("") {
		tell(s.Name, func() standing { return ofProxy(&s) })
	}
	for _, s := range w.house.Streams("") {
		tell(s.Protocol+" "+s.Name, func() standing { return ofStream(&s) })
	}
	maps.DeleteFunc(w.proxies, func(key string, _ *proxy) bool { return !found[key] })
}
