package api

import (
	"net/http"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/metrics"
	"headgate/internal/operator"
)

// seriesRows are the rows of charts.
func (a *API) seriesRows() []row {
	return []row{
		{method: http.MethodGet, path: "/series", access: viewer, area: areaStatus, ofNode: true, query: seriesQuery, out: of[seriesBody](), handle: a.seriesOf,
			about: "Returns counters over time for charts: for all of HTTP, a proxy, or one of its servers. They start again with the process."},
	}
}

var seriesQuery = []parameter{
	{name: "proxy", about: "The name of a proxy; without it, tcp_proxy and udp_proxy, all of HTTP."},
	{name: "tcp_proxy", about: "The name of a TCP proxy."},
	{name: "udp_proxy", about: "The name of a UDP proxy."},
	{name: "server", about: "The address of one server of the proxy, as configured."},
	{name: "route", about: "A route of the proxy with a cache: the requests that reached its cache, and the hits. Other counts are 0."},
	{name: "step", about: "The time between points: 10s, kept for an hour, or 1m, kept for a day. The default is 10s for a period of at most an hour.", enum: []string{"10s", "1m"}},
	{name: "period", about: "The period until now, such as 15m; the default is 1h."},
}

// seriesBody is what was counted over time.
type seriesBody struct {
	// Step is the number of seconds between points: 10 or 60.
	Step int `json:"step"`
	// Begin is the time of the first point; points have no gaps. It is later than requested
	// if older points are not kept.
	Begin time.Time `json:"begin"`
	// End is the end of the last point.
	End time.Time `json:"end"`
	// Points are the points, the oldest first.
	Points []seriesPoint `json:"points"`
}

// seriesPoint has the counts of one step.
type seriesPoint struct {
	// Time is the beginning of the step.
	Time time.Time `json:"time"`
	// Requests are the requests that ended: those of a proxy, the attempts at a server, the
	// connections or sessions that began at a TCP or UDP proxy.
	Requests int64 `json:"requests"`
	// ClientErrors are those with a status 4xx.
	ClientErrors int64 `json:"errors_4xx"`
	// ServerErrors are those with a status 5xx; at a server, the attempts that gave no
	// response; of a TCP or UDP proxy, what failed.
	ServerErrors int64 `json:"errors_5xx"`
	// CacheHits are requests that were answered from a cache.
	CacheHits int64 `json:"cache_hits"`
	// Received is how many bytes came from clients.
	Received int64 `json:"bytes_received"`
	// Sent is how many bytes went to clients.
	Sent int64 `json:"bytes_sent"`
	// P50 is the median of the durations in milliseconds, exact to a tenth of it. It is
	// absent when nothing ended, and for servers and streams.
	P50 *float64 `json:"p50_ms,omitempty"`
	// P99 is the duration that 99 of 100 requests do not exceed.
	P99 *float64 `json:"p99_ms,omitempty"`
}

// milliseconds returns a duration for a chart, nil for none.
func milliseconds(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}

// seriesOf gives what was counted over time.
func (a *API) seriesOf(c *call) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	scope, err := c.scope(cfg)
	if err != nil {
		return nil, err
	}
	period, err := c.period(metrics.CoarsePeriod)
	if err != nil {
		return nil, err
	}
	step := metrics.FineStep
	if c.text("step") == "1m" || c.text("step") == "" && period > metrics.FinePeriod {
		step = metrics.CoarseStep
	}
	line := a.Control.Series().Find(scope, time.Now().Add(-period), step)
	b := seriesBody{Step: int(line.Step / time.Second), Begin: line.Begin, Points: make([]seriesPoint, len(line.Points))}
	for i, p := range line.Points {
		b.Points[i] = seriesPoint{
			Time: line.Begin.Add(time.Duration(i) * line.Step), Requests: bounded(p.Requests), ClientErrors: bounded(p.ClientErrors), ServerErrors: bounded(p.ServerErrors),
			CacheHits: bounded(p.CacheHits), Received: bounded(p.Received), Sent: bounded(p.Sent), P50: milliseconds(p.P50), P99: milliseconds(p.P99),
		}
	}
	b.End = line.Begin.Add(time.Duration(len(line.Points)) * line.Step)
	return b, nil
}

// scope reads which proxy or server a series is for.
func (c *call) scope(cfg *config.Config) (metrics.Scope, error) {
	scope := metrics.Scope{Server: c.text("server")}
	for _, kind := range []struct{ parameter, name string }{{"proxy", metrics.ScopeHTTP}, {"tcp_proxy", metrics.ScopeTCP}, {"udp_proxy", metrics.ScopeUDP}} {
		name := c.text(kind.parameter)
		switch {
		case name == "":
			continue
		case scope.Proxy != "":
			return scope, refuseParameter("invalid", kind.parameter, "a series is for one proxy", "name one of proxy, tcp_proxy and udp_proxy")
		}
		scope.Kind, scope.Proxy = kind.name, name
		if config.KindOf(kind.name).Find(cfg, name) == nil {
			return scope, refuseParameter(operator.CodeNotFound, kind.parameter, "there is no such proxy", "")
		}
	}
	if route := c.text("route"); route != "" {
		if scope.Kind != metrics.ScopeHTTP || scope.Server != "" {
			return scope, refuseParameter("invalid", "route", "a route belongs to a proxy, and has no server", "name the proxy, and no server")
		}
		return metrics.Scope{Kind: metrics.ScopeCache, Proxy: scope.Proxy, Server: route}, nil
	}
	if scope.Server == "" {
		return scope, nil
	}
	if scope.Proxy == "" {
		return scope, refuseParameter("invalid", "server", "a server belongs to a proxy", "name the proxy too")
	}
	var ok bool
	if scope.Server, ok = countedAs(cfg, scope); !ok {
		return scope, refuseParameter(operator.CodeNotFound, "server", "the proxy has no such server", "")
	}
	return scope, nil
}

// countedAs returns how the metrics call the server of a scope; ok is false if the proxy
// has none of that address.
func countedAs(cfg *config.Config, scope metrics.Scope) (server string, ok bool) {
	var streams []*config.StreamServer
	protocol := ""
	switch scope.Kind {
	case metrics.ScopeHTTP:
		for _, r := range cfg.Proxies[scope.Proxy].Routes {
			if slices.ContainsFunc(r.Servers, func(s *config.Server) bool { return s.URL == scope.Server }) {
				return scope.Server, true
			}
		}
		return "", false
	case metrics.ScopeTCP:
		protocol, streams = "tcp://", cfg.TCPProxies[scope.Proxy].Servers
	case metrics.ScopeUDP:
		protocol, streams = "udp://", cfg.UDPProxies[scope.Proxy].Servers
	}
	for _, s := range streams {
		if address, fault := s.HostPort(); fault == nil && (address == scope.Server || s.Address == scope.Server) {
			return protocol + address, true
		}
	}
	return "", false
}
