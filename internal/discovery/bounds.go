package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/certs/acme"
	"headgate/internal/config"
	"headgate/internal/schema"
	"headgate/internal/server/safedial"
	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// maxPlaces is how many pairs of a host and a path an object may have.
const maxPlaces = 4096

// outOfBounds reports what the provider's entry, or the safety of the machine, does not
// allow to labels.
func (m *merge) outOfBounds(o *object) bool {
	before := len(m.out.Issues)
	m.beyondProvider(o)
	switch settings := o.Object.(type) {
	case *config.Proxy:
		if len(settings.VirtualHosts) == 0 {
			hint := "name its host by the label headgate.host, or its virtual_hosts"
			if o.Discovered.Written {
				hint = "add virtual_hosts"
			}
			m.issue(o, nil, NoHost, "nothing says which host it is for", hint)
		}
		if len(settings.VirtualHosts)*len(settings.Routes) > maxPlaces {
			m.issue(o, nil, TooMany, fmt.Sprintf("%d hosts with %d routes", len(settings.VirtualHosts), len(settings.Routes)), fmt.Sprintf("keep their product below %d", maxPlaces))
		}
		for _, r := range settings.Routes {
			for _, s := range r.Servers {
				if t, f := target.Parse(s.URL); f == nil {
					m.writtenServer(o, t.Host)
					m.boundServer(o, t.Host, t.Port, false)
				}
			}
		}
	case *config.TCPProxy:
		m.boundStreams(o, settings.Servers, false)
	case *config.UDPProxy:
		m.boundStreams(o, settings.Servers, true)
	}
	return len(m.out.Issues) > before
}

// beyondProvider reports what the provider's entry does not allow to labels, for an object
// or the readable part of it.
func (m *merge) beyondProvider(o *object) {
	switch settings := o.Read().(type) {
	case *config.Proxy:
		m.boundHosts(o, "virtual_hosts")
		m.boundACME(o, settings.ACME)
		m.boundPorts(o, "ports", settings.Ports...)
	case *config.TCPProxy:
		m.boundHosts(o, "sni")
		if settings.Port != "" {
			m.boundPorts(o, "port", settings.Port)
		}
		m.boundListen(o, settings.Address)
		if len(settings.ALPN) > 0 && len(settings.SNI) == 0 { // all clients of a port can offer h2
			m.issue(o, o.label("alpn"), NotForLabels, o.Discovered.Writer()+" cannot set alpn without sni: it would accept clients of other hosts", "add sni")
		}
	case *config.UDPProxy:
		m.boundListen(o, settings.Address)
	}
}

// label returns the label that says a field of an object.
func (o *object) label(field string) *config.Label {
	return o.LabelOf(schema.JoinPath(o.Discovered.Kind, o.Discovered.Name) + "." + field)
}

// boundHosts reports hosts that labels may not use. Expressions are rejected, because their
// hosts cannot be enumerated.
func (m *merge) boundHosts(o *object, field string) {
	allowed := o.provider.Bounds.Hosts
	for _, h := range o.hosts {
		if m.reserved(o, field, h) {
			continue
		}
		switch {
		case h.Class == config.HostRegex:
			m.issue(o, o.label(field), NotForLabels, fmt.Sprintf("%s cannot name hosts by an expression, such as %s", o.Discovered.Writer(), h), `write names, or "*." and a name`)
		case len(allowed) > 0 && !slices.ContainsFunc(allowed, func(bound string) bool { return withinHost(bound, h) }):
			m.issue(o, o.label(field), OutOfBounds, fmt.Sprintf("provider %s does not let %s name the host %s", o.provider.Name, o.Discovered.Writer(), h), "it allows "+some(allowed))
		}
	}
}

// reserved adds an issue for a host that labels cannot claim, and reports whether it is
// one: a name of the admin listener, whose cookies and credentials a browser would send to
// the container, and names of the client's own machine, such as localhost.
func (m *merge) reserved(o *object, field string, h config.VirtualHost) bool {
	if h.Class == config.HostRegex {
		return false // refused anyway
	}
	for _, admin := range m.owners.documents.Admin.Hosts {
		if m.claimsAdmin(h, admin) {
			m.issue(o, o.label(field), HostTaken, fmt.Sprintf("the host %s is one of the admin listener (admin.hosts: %s)", h, admin), "choose another host")
			return true
		}
	}
	_, err := netip.ParseAddr(strings.Trim(h.Name, "[]"))
	if h.Class == config.HostExact && (err == nil || h.Name == "localhost") && !slices.Contains(o.provider.Bounds.Hosts, h.Name) {
		m.issue(o, o.label(field), OutOfBounds, fmt.Sprintf("%s cannot name the host %s, which is the machine itself for its clients", o.Discovered.Writer(), h),
			fmt.Sprintf("choose a name; an operator can add it to hosts of provider %s", o.provider.Name))
		return true
	}
	return false
}

// claimsAdmin reports whether a host would get requests for a name of the admin listener:
// a wildcard does unless a proxy of the configuration files has the name.
func (m *merge) claimsAdmin(h config.VirtualHost, admin string) bool {
	if h.Class == config.HostExact {
		return h.Name == admin
	}
	_, parent, _ := strings.Cut(admin, ".")
	return parent == h.Name && len(m.owners.hosts[admin]) == 0
}

// withinHost reports whether a bound allows a host: it is the same, or everything below a
// name.
func withinHost(bound string, h config.VirtualHost) bool {
	bound = strings.ToLower(strings.TrimSuffix(bound, "."))
	if h.String() == bound {
		return true
	}
	below, ok := strings.CutPrefix(bound, "*.")
	return ok && strings.HasSuffix(h.Name, "."+below)
}

// boundACME reports an ACME entry that labels may not name.
func (m *merge) boundACME(o *object, name string) {
	allowed := o.provider.Bounds.ACME
	if name != "" && name != acme.None && len(allowed) > 0 && !slices.Contains(allowed, name) {
		m.issue(o, o.label("acme"), OutOfBounds, fmt.Sprintf("provider %s does not let %s name the ACME entry %s", o.provider.Name, o.Discovered.Writer(), name), "it allows "+some(allowed))
	}
}

// boundPorts reports ports that labels may not name.
func (m *merge) boundPorts(o *object, field string, names ...string) {
	allowed := o.provider.Bounds.Ports
	for _, name := range names {
		if len(allowed) > 0 && !slices.Contains(allowed, name) {
			m.issue(o, o.label(field), OutOfBounds, fmt.Sprintf("provider %s does not let %s name the port %s", o.provider.Name, o.Discovered.Writer(), name), "it allows "+some(allowed))
		}
	}
}

// boundListen reports an address on which labels may not listen.
func (m *merge) boundListen(o *object, addresses unit.AddressRange) {
	allowed := o.provider.Bounds.Listen
	a, refused := netip.AddrPort{}, false
	for i := range addresses.Ports() {
		if a = addresses.At(i); addresses.IsValid() && !slices.Contains(allowed, a) {
			refused = true
			break
		}
	}
	if !refused {
		return
	}
	hint := "an operator can add it to listen of the provider"
	if len(allowed) > 0 {
		texts := make([]string, len(allowed))
		for i, a := range allowed {
			texts[i] = a.String()
		}
		hint = "it allows " + some(texts)
	}
	m.issue(o, o.label("address"), OutOfBounds, fmt.Sprintf("provider %s does not let %s listen on %s", o.provider.Name, o.Discovered.Writer(), a), hint)
}

func (m *merge) boundStreams(o *object, servers []*config.StreamServer, udp bool) {
	for _, s := range servers {
		if o.Discovered.Written {
			host, _, _ := net.SplitHostPort(s.Address)
			m.writtenServer(o, strings.ToLower(host))
		}
		var a unit.AddressRange
		if a.UnmarshalText([]byte(s.Address)) != nil {
			continue
		}
		for i := range a.Ports() {
			m.boundServer(o, a.Addr().String(), a.At(i).Port(), udp)
		}
	}
}

// writtenServer reports a server that a document may not name.
func (m *merge) writtenServer(o *object, host string) {
	if !o.Discovered.Written {
		return
	}
	if host == "" {
		m.issue(o, nil, OutOfBounds, "the document cannot name a Unix socket as a server", "write the proxy in the configuration")
		return
	}
	allowed := o.provider.Bounds.Servers
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	switch {
	case err == nil && safedial.Check(a) != nil:
		m.issue(o, nil, OutOfBounds, fmt.Sprintf("the server %s is link-local, or of a cloud metadata service", a), "name another server")
	case slices.ContainsFunc(allowed, func(bound string) bool { return withinServer(bound, host, a) }):
	case len(allowed) > 0:
		m.issue(o, nil, OutOfBounds, fmt.Sprintf("provider %s does not let the document name the server %s", o.provider.Name, host), "it allows "+some(allowed))
	case err != nil:
		m.issue(o, nil, OutOfBounds, fmt.Sprintf("the server %s is a name, which can resolve to any address", host), "write its address, or add the name to servers of provider "+o.provider.Name)
	case a.Unmap().IsLoopback():
		m.issue(o, nil, OutOfBounds, fmt.Sprintf("the server %s is this machine", a), "add it to servers of provider "+o.provider.Name)
	}
}

// withinServer reports whether an element of servers allows a host, which is the address a or
// a name.
func withinServer(bound, host string, a netip.Addr) bool {
	if a.IsValid() {
		p, err := netip.ParsePrefix(bound)
		if one, e := netip.ParseAddr(bound); e == nil {
			p, err = netip.PrefixFrom(one, one.BitLen()), nil
		}
		return err == nil && p.Contains(a.Unmap())
	}
	bound = strings.ToLower(bound)
	below, ok := strings.CutPrefix(bound, "*.")
	return bound == "*" || bound == host || ok && strings.HasSuffix(host, "."+below)
}

// boundServer reports a server that would be headgate itself: its admin listener, or a
// port with access control.
func (m *merge) boundServer(o *object, host string, port uint16, udp bool) {
	a, err := netip.ParseAddr(host)
	shared := err != nil || a.IsLoopback() || a.IsUnspecified()
	for i := range o.Discovered.Servers {
		s := &o.Discovered.Servers[i]
		shared = shared || s.Shared && strings.Contains(s.Address, host)
	}
	by := m.sockets.at(port, udp)
	if err != nil && o.Discovered.Written && by != adminSocket {
		return // a name that the provider's entry allows, most likely of another machine
	}
	if shared && by != "" {
		m.issue(o, nil, OwnSocket, fmt.Sprintf("the server %s is %s of headgate itself", netip.AddrPortFrom(a, port), by), "name another port of the container")
	}
}

// adminSocket is the admin listener among the sockets.
const adminSocket = "the admin listener"

// sockets are what headgate listens on, by number: labels on the machine's own address
// must not lead there.
type sockets struct{ tcp, udp map[uint16]string }

func socketsOf(c *config.Config) sockets {
	s := sockets{map[uint16]string{}, map[uint16]string{}}
	for name, p := range c.Discovery.Providers() {
		for _, a := range p.Bounds().Listen {
			s.tcp[a.Port()], s.udp[a.Port()] = "an address of provider "+name, "an address of provider "+name
		}
	}
	for name, p := range c.UDPProxies {
		for i := range p.Address.Ports() {
			s.udp[p.Address.At(i).Port()] = "UDP proxy " + name
		}
	}
	for name, p := range c.TCPProxies {
		for i := range p.Address.Ports() {
			if p.Address.IsValid() {
				s.tcp[p.Address.At(i).Port()] = "TCP proxy " + name
			}
		}
	}
	for name, p := range c.Ports {
		if p.Protocol == config.HTTP3 {
			s.udp[p.Address.Port()] = "port " + name
		} else {
			s.tcp[p.Address.Port()] = "port " + name
		}
	}
	if c.Admin.Address.IsValid() {
		s.tcp[c.Admin.Address.Port()] = adminSocket
	}
	return s
}

func (s sockets) at(port uint16, udp bool) string {
	if udp {
		return s.udp[port]
	}
	return s.tcp[port]
}

// some returns the beginning of a list.
func some(list []string) string {
	const limit = 10
	out := strings.Join(list[:min(len(list), limit)], ", ")
	if len(list) > limit {
		out += fmt.Sprintf(" and %d more", len(list)-limit)
	}
	return out
}
