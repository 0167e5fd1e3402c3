package plan

import (
	"fmt"
	"strconv"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/metrics"
	"headgate/internal/server/balance"
	"headgate/internal/server/target"
	"headgate/internal/upstream"
)

// isSticky reports whether clients of a route keep their server.
func isSticky(r *config.Route) bool { return r.StickyCookie != nil && r.StickyCookie.Enabled }

// affinity returns what a route needs for its sticky cookie; nil without one.
func (c *compiler) affinity(b *body) *upstream.Affinity {
	if !isSticky(b.settings) {
		return nil
	}
	return &upstream.Affinity{Sticky: b.settings.StickyCookie, Key: c.affinityKey(), Proxy: b.proxy.Name, Route: b.path()}
}

// affinityKey returns the key of all sticky cookies. If none was loaded, it is a random
// one.
func (c *compiler) affinityKey() *upstream.AffinityKey {
	if key := c.house.Inputs.AffinityKey(); key != nil {
		return key
	}
	if c.shared.affinityKey == nil {
		c.shared.affinityKey = upstream.NewAffinityKey()
	}
	return c.shared.affinityKey
}

// keptServers is the source of a route, reused while it has not changed. Its pools are
// kept, and retired, separately.
type keptServers struct {
	*upstream.Servers
	counters []retirer
}

// Retire takes the servers' counters off the page.
func (k *keptServers) Retire() {
	for _, c := range k.counters {
		c.Retire()
	}
}

// servers opens the source of a route, or carries it over.
func (c *compiler) servers(b *body) error {
	secure, err := c.secureServers(b)
	if err != nil {
		return err
	}
	key := c.serversKey(b, secure)
	if kept := c.keeper.carry(key); kept != nil {
		b.servers = kept.(*keptServers).Servers
		b.source = b.servers
		return nil
	}
	list, err := targets(b.settings)
	if err != nil {
		return err
	}
	policy := policy(b)
	policy.Affinity = c.affinity(b)
	b.servers = c.env.Keep(string(key), func() exchange.Kept {
		kept := &keptServers{}
		for i, s := range secure {
			list[i].Secure = s
		}
		kept.counters = c.countAttempts(b, list)
		if policy.Retry != nil && c.house.Metrics != nil {
			counter := c.house.Metrics.Retries(b.proxy.Name, b.label)
			kept.counters = append(kept.counters, counter)
			policy.Retried = counter.Count
		}
		kept.Servers = upstream.New(list, c.shared.upstream, policy, c.env)
		c.showServers(b, kept)
		return kept
	}).(*keptServers).Servers
	b.source = b.servers
	return nil
}

// showServers exports the states of a route's servers as metrics.
func (c *compiler) showServers(b *body, kept *keptServers) {
	if c.house.Metrics == nil {
		return
	}
	for i := range kept.List() {
		kept.counters[i].(*metrics.Server).SetStatusSource(kept.Place(i))
	}
	if kept.Bounded() {
		kept.counters = append(kept.counters, c.house.Metrics.Queue(b.proxy.Name, b.label, kept.Waiting))
	}
}

// countAttempts gives the servers of a route their counters, and returns those.
func (c *compiler) countAttempts(b *body, list []upstream.Target) []retirer {
	if c.house.Metrics == nil {
		return nil
	}
	counters := make([]retirer, len(list), len(list)+1)
	for i := range list {
		counter := c.house.Metrics.Server(b.proxy.Name, b.label, list[i].URL)
		counters[i], list[i].Counter = counter, counter
	}
	return counters
}

// source is exchange.Env.Source: a single server that no route has.
func (c *compiler) source(url string) (exchange.Source, error) {
	s := config.Server{URL: url, Weight: 1}
	list, err := targets(&config.Route{Servers: []*config.Server{&s}})
	if err != nil {
		return nil, err
	}
	if t, err := s.Target(); err == nil && t.Scheme == target.HTTPS {
		list[0].Secure = &upstream.Secure{Name: t.Host, Key: t.Host}
	}
	return upstream.New(list, c.shared.upstream, upstream.Policy{Proxy: "alone", Host: upstream.HostField{Upstream: true}}, c.env), nil
}

// policy returns what a route wants of its servers.
func policy(b *body) upstream.Policy {
	r := b.settings
	choice, _, _ := balance.Parse(r.LoadBalancing)
	return upstream.Policy{
		Host: hostField(b.proxy.HostHeader), Retry: r.Retry, Expand: true,
		Proxy: b.proxy.Name, Route: b.label, Balance: choice, SlowStart: r.SlowStart.D(),
		FailClosed: !r.FailOpen, QueueLength: r.Queue.Length, QueueTimeout: r.Queue.Timeout.D(),
		Health: upstream.Health{Check: r.HealthCheck, Ejection: r.Ejection, Breaker: r.CircuitBreaker},
	}
}

// hostField returns which Host servers get.
func hostField(setting string) upstream.HostField {
	switch setting {
	case config.HostPreserve, "":
		return upstream.HostField{}
	case config.HostUpstream:
		return upstream.HostField{Upstream: true}
	}
	return upstream.HostField{Fixed: setting}
}

// targets parses the URLs of a route's servers.
func targets(r *config.Route) ([]upstream.Target, error) {
	out := make([]upstream.Target, len(r.Servers))
	for i, s := range r.Servers {
		t, err := s.Target()
		if err != nil {
			return nil, err
		}
		out[i] = upstream.Target{URL: s.URL, Address: t.Address(), Authority: t.Authority(), Base: t.BasePath,
			Weight: s.Weight, MaxRequests: s.MaxRequests, Backup: s.Backup}
		switch {
		case t.Socket != "":
			out[i].Network = "unix"
		case t.Service != "":
			out[i].Network = "srv"
		}
		out[i].FastCGI = t.Scheme.IsFastCGI()
		out[i].KeepConnections = out[i].FastCGI && r.FastCGI != nil && r.FastCGI.KeepConnections
		out[i].HTTP2 = t.Scheme == target.H2C || t.Scheme == target.UnixH2C
	}
	return out, nil
}

// serversKey names a route's source and everything it depends on. The next call
// overwrites it.
func (c *compiler) serversKey(b *body, secure []*upstream.Secure) []byte {
	key := append(c.shared.keyBuffer[:0], "servers "...)
	for _, s := range []string{b.proxy.Name, b.label, c.shared.settings, b.proxy.HostHeader, b.settings.LoadBalancing} {
		key = append(append(key, s...), '\n')
	}
	for i, s := range b.settings.Servers {
		key = append(append(key, s.URL...), ' ')
		key = append(strconv.AppendInt(key, int64(s.Weight), 10), ' ')
		key = strconv.AppendInt(key, int64(s.MaxRequests), 10)
		if s.Backup {
			key = append(key, " backup"...)
		}
		if s.Group != config.GroupStable {
			key = append(append(key, ' '), s.Group...)
		}
		if f := b.settings.FastCGI; f != nil && f.KeepConnections {
			key = append(key, " kept"...)
		}
		key = append(key, '\n')
		if secure != nil && secure[i] != nil {
			key = append(append(key, secure[i].Key...), '\n')
		}
	}
	for _, n := range []int64{int64(b.settings.SlowStart), int64(b.settings.Queue.Length), int64(b.settings.Queue.Timeout)} {
		key = append(strconv.AppendInt(key, n, 10), ' ')
	}
	if e := b.settings.Ejection; e != c.shared.ejection {
		key = fmt.Appendf(key, "ejection %+v\n", e)
	}
	if h := b.settings.HealthCheck; h != nil {
		key = fmt.Appendf(key, "check %+v\n", *h)
	}
	if b := b.settings.CircuitBreaker; b != nil {
		key = fmt.Appendf(key, "breaker %+v\n", *b)
	}
	if !b.settings.FailOpen {
		key = append(key, "fail closed\n"...)
	}
	if isSticky(b.settings) {
		key = fmt.Appendf(key, "sticky %+v\n", *b.settings.StickyCookie)
	}
	if r := b.settings.Retry; r != nil {
		key = fmt.Appendf(key, "retry %+v\n", *r)
	}
	c.shared.keyBuffer = key
	return key
}
