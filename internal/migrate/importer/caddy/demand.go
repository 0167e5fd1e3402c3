package caddy

import (
	"strings"

	"headgate/internal/migrate/importer"
)

// demandsPerHour is max_per_hour of on_demand: Caddy has no limit of its own, and Let's Encrypt
// allows 100 orders an hour.
const demandsPerHour = 100

// demandNote is what differs from Caddy.
const demandNote = "on_demand: at most 100 orders an hour (max_per_hour), and a handshake waits for at most 9 seconds"

// allowedBy reads the global options about certificates on demand.
func (t *translator) allowedBy(d *directive) {
	for _, o := range d.block {
		at := o
		switch {
		case o.name() == "permission" && o.arg(0) == "http":
			for _, c := range o.block {
				if c.name() == "endpoint" {
					at = c
				}
			}
			if at == o {
				continue
			}
			t.allowing = append(t.allowing, o)
		case o.name() != "ask":
			continue
		}
		t.ask = at.arg(0)
		t.allowing = append(t.allowing, d, at)
	}
}

// demand notes that the certificates of hosts are ordered on demand, by the directive tls of a
// site; "" is every host.
func (t *translator) demand(d *directive, hosts []string) {
	for _, c := range d.block {
		if c.name() != "on_demand" {
			continue
		}
		t.demandBy(c, hosts)
	}
}

// demandPolicy is demand for a policy of a configuration in JSON.
func (t *translator) demandPolicy(p, subjects *value) {
	if p.get("on_demand").text != "true" {
		return
	}
	hosts := []string{""}
	if subjects.is() {
		hosts = subjects.texts()
	}
	t.demandBy(p.get("on_demand"), hosts)
}

func (t *translator) demandBy(by importer.Part, hosts []string) {
	for _, h := range hosts {
		if t.onDemand[folded(h)] = append(t.onDemand[folded(h)], by); h != "" && !strings.HasPrefix(h, "*.") {
			t.AddVerdict(by, importer.Ignored, "a host that is named gets its certificate in advance, and is not asked for")
		}
	}
}

// demanded reports whether hosts of a pattern get certificates on demand here. A named host
// gets its own in advance.
func (t *translator) demanded(h string) bool {
	return len(t.onDemand[h]) > 0 && t.ask != "" && (h == "" || strings.HasPrefix(h, "*.")) && t.demandEntry(h) != ""
}

// demandEntry returns the ACME entry of hosts of a pattern, "" if none is ordered.
func (t *translator) demandEntry(h string) string {
	a, known := t.issued[h]
	switch {
	case known && a == nil, t.noHTTPS || t.noACME:
		return ""
	case !known:
		a = &authority{directoryOf(t.ca), t.email}
	}
	return t.acmeEntry(*a)
}

// setDemand sets on_demand of a proxy for hosts.
func (t *translator) setDemand(o importer.Object, hosts []string) {
	rule := importer.NewObject().Set("ask", t.ask).Set("max_per_hour", demandsPerHour)
	o.Set("on_demand", rule.Flow())
	for _, h := range hosts {
		for _, by := range t.onDemand[h] {
			t.Became(by, importer.Close, rule.Field("max_per_hour"), demandNote)
		}
	}
	for _, part := range t.allowing {
		t.Became(part, importer.Same, rule.Field("ask"), "on_demand of the proxies")
	}
}
