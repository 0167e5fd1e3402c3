package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/internal/config"
)

// outline says what an object is, for one that comes or goes: ": it speaks http at
// :80".
func (r *reviewer) outline(c *config.Config, at Address) string {
	switch at.Kind {
	case "ports":
		p := c.Ports[at.Name]
		text := fmt.Sprintf(": it speaks %s at %v", p.Protocol, p.Address)
		if !p.Active {
			text += ", and is switched off"
		}
		return text
	case "proxies":
		return proxyOutline(c.Proxies[at.Name])
	case "tcp_proxies":
		p := c.TCPProxies[at.Name]
		from := fmt.Sprint("at ", p.Address)
		if p.Port != "" {
			from = "on port " + p.Port
		}
		if p.ByName() {
			from = "for " + listed(shortened(slices.Concat(p.SNI, p.ALPN))) + " " + from
		}
		return fmt.Sprintf(": it takes connections %s for %s", from, counted(len(p.Servers), "server", "servers"))
	case "udp_proxies":
		p := c.UDPProxies[at.Name]
		return fmt.Sprintf(": it takes datagrams at %v for %s", p.Address, counted(len(p.Servers), "server", "servers"))
	}
	return ""
}

func proxyOutline(p *config.Proxy) string {
	hosts := "every host that no other proxy names"
	if len(p.VirtualHosts) > 0 {
		hosts = listed(shortened(p.VirtualHosts))
	}
	text := fmt.Sprintf(": it answers %s on %s", hosts, counted(len(p.Routes), "route", "routes"))
	if n := len(p.Routes); n > 0 && n <= maxNames {
		paths := make([]string, n)
		for i, route := range p.Routes {
			paths[i] = shorten(route.Path)
		}
		slices.Sort(paths)
		text = fmt.Sprintf(": it answers %s on %s", hosts, joined(paths))
	}
	if len(p.Ports) > 0 {
		text += " of port " + listed(p.Ports)
	}
	if !p.Active {
		text += ", and is switched off"
	}
	return text
}

// judgePorts reports what drains, and which clients will get a self-signed certificate.
func (r *reviewer) judgePorts() {
	for _, o := range r.Difference.Objects {
		at := Address{o.Kind, o.Name}
		switch o.Kind {
		case "ports":
			before, after := r.Before.Ports[o.Name], r.After.Ports[o.Name]
			if after != nil && after.Active && after.Protocol != config.HTTP && len(r.After.Certificates) == 0 && !r.hasACME() && (before == nil || !before.Active || before.Protocol == config.HTTP) && r.Running == nil {
				r.warn(at, Warning, "no_certificate", "", "add one under certificates, or an acme entry", " has no certificate: its clients get a self-signed one")
			}
			if before == nil || !before.Active {
				continue
			}
			if r.stillOpen(before) {
				continue // renamed, or taken by another: its socket stays
			}
			switch moved := after != nil && after.Active && before.Address != after.Address; {
			case after == nil || !after.Active:
				r.warn(at, Warning, "port_closed", "", "", ": headgate no longer listens at %v for %s", before.Address, r.onPort(o.Name))
				r.drain(at, fmt.Sprint(before.DrainTimeout))
			case moved:
				r.warn(at, Info, "port_moved", "", "", ": %s on it", r.answerOn(o.Name))
				r.drain(at, fmt.Sprint(before.DrainTimeout))
			}
		case "tcp_proxies":
			before, after := r.Before.TCPProxies[o.Name], r.After.TCPProxies[o.Name]
			if before != nil && before.Active && (after == nil || !after.Active || before.Address != after.Address) {
				r.drain(at, fmt.Sprint(before.DrainTimeout))
			}
		case "udp_proxies":
			before, after := r.Before.UDPProxies[o.Name], r.After.UDPProxies[o.Name]
			if before != nil && before.Active && (after == nil || !after.Active || before.Address != after.Address) {
				r.drain(at, "0s")
			}
		}
	}
	r.judgeCertificates()
	r.judgeOperator()
}

// stillOpen reports whether some port listens where one did.
func (r *reviewer) stillOpen(was *config.Port) bool {
	for _, p := range r.After.Ports {
		if p.Active && p.Address == was.Address && (p.Protocol == config.HTTP3) == (was.Protocol == config.HTTP3) {
			return true
		}
	}
	return false
}

// hasACME reports whether certificates come by themselves.
func (r *reviewer) hasACME() bool { return len(r.After.ACME) > 0 }

// onPort says how many proxies a port was for.
func (r *reviewer) onPort(name string) string { return counted(r.countOn(name), "proxy", "proxies") }

func (r *reviewer) answerOn(name string) string {
	return counted(r.countOn(name), "proxy answers", "proxies answer")
}

// countOn counts the active proxies on a port.
func (r *reviewer) countOn(name string) int {
	n := 0
	for _, p := range r.Before.Proxies {
		if p.Active && (len(p.Ports) == 0 || slices.Contains(p.Ports, name)) {
			n++
		}
	}
	return n
}

// drain says how many connections an object had that drain.
func (r *reviewer) drain(at Address, within string) {
	if r.Running == nil || r.Running.Connections[at] == 0 {
		return
	}
	n := r.Running.Connections[at]
	r.drains += n
	if within == "0s" {
		r.addSentence(at, Sentence{Severity: Warning, Code: "connections_end", Text: ": " + counted(n, "open session ends", "open sessions end")})
		return
	}
	r.addSentence(at, Sentence{Severity: Info, Code: "connections_drain", Text: ": " + counted(n, "open connection", "open connections") + " will drain, and what is left after " + within + " is cut"})
}

// judgeCertificates reports hosts whose clients will get a self-signed certificate. Only
// the compiled configuration has them.
func (r *reviewer) judgeCertificates() {
	if r.Running == nil {
		return
	}
	for _, port := range slices.Sorted(maps.Keys(r.Running.SelfSigned)) {
		hosts := missing(r.Running.SelfSigned[port], r.Running.SelfSignedBefore[port])
		if len(hosts) == 0 || r.After.Ports[port] == nil {
			continue
		}
		if i := slices.Index(hosts, "*"); i >= 0 {
			hosts[i] = "hosts that no certificate has"
		}
		r.warn(Address{"ports", port}, Warning, "no_certificate", "", "add a certificate for it, or have the proxy use an acme entry",
			": clients of %s get a self-signed certificate", listed(hosts))
	}
}

// judgeOperator warns of proxies that will refuse the address that the change comes from.
func (r *reviewer) judgeOperator() {
	if r.Running == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Running.Refusing)) {
		if routes := missing(r.Running.Refusing[name], r.Running.RefusingBefore[name]); len(routes) > 0 {
			r.warn(Address{"proxies", name}, Warning, "operator_refused", "ip_filter", "add the address, or a list that has it, to allow",
				": ip_filter refuses %v, the address that this change comes from, at %s", r.Running.Operator, listed(shortened(routes)))
		}
	}
}

// takeNotes makes warnings of the notes about objects that the change touches.
func (r *reviewer) takeNotes() {
	ports := len(r.Difference.Of("ports")) > 0
	for _, n := range r.Notes {
		at, path := addressOf(n.Field)
		if strings.HasSuffix(path, "insecure_skip_verify") || at.Kind == "admin" && path == "address" {
			continue // judged by what changed
		}
		_, said := r.objects[at]
		if k := config.KindOf(at.Kind); k == nil || !said && !(at.Kind == "proxies" && (ports || r.touched[at.Name])) {
			continue
		}
		text := ": "
		if within := strings.TrimPrefix(n.Object, r.object(at).Title+", "); within != r.object(at).Title && within != "" {
			text += shorten(within) + ": "
		}
		r.addSentence(at, Sentence{Severity: Warning, Code: Note, Path: path, Text: text + n.What, Remedy: n.Remedy})
	}
}
