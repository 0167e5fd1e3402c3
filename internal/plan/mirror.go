package plan

import (
	"encoding/json"
	"errors"
	"fmt"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/server/mirror"
	"headgate/internal/upstream"
)

// keptMirror is what outlives a plan of a mirror: its servers and the copies under
// way.
type keptMirror struct {
	upstream.MirrorState
	to      *upstream.Servers
	told    func(upstream.Copied)
	counter retirer
	report  mirror.Report
}

// Retire ends the copies and takes their numbers off the page.
func (k *keptMirror) Retire() {
	k.MirrorState.Retire()
	if k.counter != nil {
		k.counter.Retire()
	}
}

// mirror puts a mirror around the source of a route, if it has one.
func (c *compiler) mirror(b *body) error {
	m := b.settings.Mirror
	if m == nil || !m.Enabled || m.Percent == 0 || b.servers == nil {
		return nil
	}
	kept, err := c.keptMirror(b, m)
	if err != nil {
		return err
	}
	copies := upstream.Copies{Percent: m.Percent, MaxBody: int(m.MaxBody), MaxRequests: m.MaxRequests, Timeout: m.Timeout.D(), Told: kept.told}
	if m.Compare {
		copies.Compare, b.compared = &kept.report, &kept.report
	}
	b.source = upstream.NewMirror(b.source, kept.to, copies, &kept.MirrorState)
	return nil
}

// MirrorReport is the comparison of mirrored responses of a route.
type MirrorReport struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy" required:"true"`
	// Route is the route with its matchers.
	Route string `json:"route" required:"true"`
	mirror.State
}

// MirrorReports returns the comparisons of all routes whose mirror has one, by proxy.
func (p *Plan) MirrorReports() (all []MirrorReport) {
	for _, proxy := range p.proxies {
		for _, b := range proxy.bodies {
			if b.compared != nil {
				all = append(all, MirrorReport{b.proxy.Name, b.label, b.compared.State()})
			}
		}
	}
	return all
}

// keptMirror opens the servers of a mirror, or carries them over.
func (c *compiler) keptMirror(b *body, m *config.Mirror) (*keptMirror, error) {
	// The servers are compiled as a route's would be.
	as := &body{proxy: b.proxy, settings: &config.Route{Servers: m.Servers}, prefix: b.prefix}
	secure, err := c.secureServers(as)
	if err != nil {
		if fault := (*serverFault)(nil); errors.As(err, &fault) {
			err = fmt.Errorf("mirror: server %s: tls.%s: %v", m.Servers[fault.server].URL, fault.field, err)
		}
		return nil, err
	}
	text, err := json.Marshal(m.Servers)
	if err != nil {
		return nil, err
	}
	list, err := targets(as.settings)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("mirror %s\n%s\n%s\n%s\n%s\n", b.proxy.Name, b.prefix, c.shared.settings, b.proxy.HostHeader, text)
	for _, s := range secure {
		if s != nil {
			key += s.Key + "\n"
		}
	}
	return c.env.Keep(key, func() exchange.Kept {
		k := &keptMirror{}
		for i, s := range secure {
			list[i].Secure = s
		}
		if c.house.Metrics != nil {
			counter := c.house.Metrics.Mirror(b.proxy.Name, b.label)
			k.counter, k.told = counter, func(result upstream.Copied) { counter.Count(uint8(result)) }
		}
		policy := upstream.Policy{Host: hostField(b.proxy.HostHeader), Proxy: b.proxy.Name, Route: "mirror of " + b.label, Expand: true}
		k.to = upstream.New(list, c.shared.upstream, policy, c.env)
		return k
	}).(*keptMirror), nil
}
