package plan

import (
	"reflect"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/upstream"
)

// effective returns the features that act on a route. Most routes have none of
// their own, and then they are those of the route before.
func (c *compiler) effective(b *body) config.Features {
	own := !reflect.ValueOf(&b.settings.Features).Elem().IsZero()
	if own {
		return b.proxy.Effective(b.settings)
	}
	if c.shared.inherits != b.proxy {
		c.shared.inherits, c.shared.inherited = b.proxy, b.proxy.Effective(b.settings)
	}
	return c.shared.inherited
}

// rooms puts around the source of a route, and in front of it, what its settings ask
// for, in the order of the tables.
func (c *compiler) rooms(b *body) error {
	f := c.effective(b)
	if b.reserved || b.settings.SignIn != nil {
		f.Gate = nil // people have to get there to sign in
	}
	if !b.reserved {
		b.gate = c.gate(b, &f)
	}
	b.redirects, b.closed = f.Redirects, f.Maintenance != nil
	for _, table := range [][]room{c.shared.sources, c.shared.filters} {
		for i := range table {
			r := &table[i]
			if r.of&served != 0 && b.servers == nil {
				continue // it gets no requests
			}
			if b.reserved && !slices.Contains(beforeReserved, r.name) {
				continue
			}
			if err := r.add(c, b, &f); err != nil {
				return err
			}
		}
	}
	return nil
}

// scopeOf names whose settings those of a route are: its own, or its proxy's.
func scopeOf(b *body, own bool) string {
	scope := "proxy " + b.proxy.Name
	if own {
		scope += ", route " + b.label
	}
	return scope
}

// owner returns the place of the route, or of the proxy that it has a setting
// from.
func (c *compiler) owner(b *body, own bool) schema.Place {
	if own {
		return place(c.report, b.proxy, b.number)
	}
	return c.report.Root().Field("proxies").Field(b.proxy.Name).Called("proxy", b.proxy.Name)
}

// sticky adds what keeps clients at their server.
func (c *compiler) sticky(b *body, _ *config.Features) error {
	if isSticky(b.settings) {
		c.shared.lists.add(c.affinity(b).Filter())
	}
	return nil
}

// tracing adds what gives requests their trace, if the configuration wants that.
func (c *compiler) tracing(_ *body, _ *config.Features) error {
	if c.tracer == nil {
		return nil
	}
	filter, err := c.once(memoKey{"tracing", c.tracer}, func() (exchange.Filter, error) { return c.tracer.Filter(), nil })
	if err == nil {
		c.shared.lists.share(filter)
	}
	return err
}

// forwarding is how a proxy wants the forwarded fields.
type forwarding struct {
	style config.ForwardedStyle
	via   config.ViaStyle
}

// forwarded adds the forwarded fields. Proxies that want the same share the filter.
func (c *compiler) forwarded(b *body, _ *config.Features) error {
	want := forwarding{b.proxy.ForwardedStyle, b.proxy.ViaStyle}
	filter, err := c.once(memoKey{"forwarded", want}, func() (exchange.Filter, error) {
		style := upstream.Compat
		switch want.style {
		case config.ForwardedRFC7239:
			style = upstream.RFC7239
		case config.ForwardedOff:
			style = upstream.Off
		}
		return upstream.Forward(style, want.via == config.ViaRFC9110), nil
	})
	if err == nil {
		c.shared.lists.share(filter)
	}
	return err
}

// securePorts returns the numbers of the https ports of a proxy, by the names of its
// http ports, but for those that are the usual one. Proxies on the same ports share
// them.
func (c *compiler) securePorts(p *config.Proxy) map[string]int {
	key := strings.Join(p.Ports, "\n")
	numbers, known := c.shared.securePorts[key]
	if known {
		return numbers
	}
	numbers = map[string]int{}
	for _, port := range c.plan.ports {
		if port.Protocol() != config.HTTP {
			continue
		}
		if n := c.config.SecurePort(p, port.settings); n != config.UsualHTTPS {
			numbers[port.Name()] = n
		}
	}
	c.shared.securePorts[key] = numbers
	return numbers
}

// onPort reports whether a proxy is on a port.
func onPort(p *config.Proxy, port *Port) bool {
	return len(p.Ports) == 0 || slices.Contains(p.Ports, port.Name())
}
