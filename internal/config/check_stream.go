package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"headgate/internal/certs"
	"headgate/internal/schema"
	"headgate/internal/server/target"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/unit"
)

// tcpProxy reports problems of a TCP proxy.
func (ch *checker) tcpProxy(p *TCPProxy, at schema.Place) {
	switch {
	case p.Address.IsValid() && p.Port != "":
		at.Field("address").Problem("address cannot be combined with port", "keep the address, or the port")
	case p.Port != "":
		checkOnPort(ch.c, p, at)
		ch.streamNames(p, "port "+p.Port, at)
	case !p.Address.IsValid() && p.ByName() && !at.Field("address").Reported():
		at.Field("port").Problem("missing", "set the https port whose connections the proxy accepts, or an address")
	case !p.Address.IsValid():
		if !at.Field("address").Reported() {
			at.Problem("the proxy has no address", "add address: 0.0.0.0:5432, or port and sni")
		}
	default:
		if p.Active {
			ch.claim(taken{p.Address, false, "TCP proxy " + p.Name, p, p.Nodes}, at.Field("address"))
		}
		ch.streamNames(p, p.Address.String(), at)
	}
	checkProtocols(p.ALPN, at.Field("alpn"))
	checkNodes(p.Nodes, at.Field("nodes"))
	if p.TLS != nil {
		checkStreamTLS(ch.c, p, at.Field("tls"))
	}
	if p.AcceptProxyProtocol != nil {
		ipset.Check(p.AcceptProxyProtocol.Trusted, at.Field("accept_proxy_protocol").Field("trusted"))
	}
	checkStreamFeatures(&p.StreamFeatures, at)
	checkStreamServers(p.Address, p.Servers, at.Field("servers"))
	for i, s := range p.Servers {
		if s.TLS != nil && s.TLS.InsecureSkipVerify {
			at.Field("servers").Index(i).Called("server", s.Address).Field("tls").Field("insecure_skip_verify").Note(notVerified, notVerifiedRemedy)
		}
	}
}

// udpProxy reports problems of a UDP proxy.
func (ch *checker) udpProxy(p *UDPProxy, at schema.Place) {
	checkNodes(p.Nodes, at.Field("nodes"))
	switch {
	case !p.Address.IsValid():
		if !at.Field("address").Reported() {
			at.Field("address").Problem("missing", "add address: 0.0.0.0:53")
		}
	case p.Active:
		ch.claim(taken{p.Address, true, "UDP proxy " + p.Name, nil, p.Nodes}, at.Field("address"))
	}
	checkStreamFeatures(&p.StreamFeatures, at)
	checkStreamServers(p.Address, p.Servers, at.Field("servers"))
	for i, s := range p.Servers {
		if s.TLS != nil {
			at.Field("servers").Index(i).Called("server", s.Address).Field("tls").Problem("tls is not available for UDP servers", "remove it")
		}
	}
}

// checkOnPort reports a proxy on a port that has no TLS, and settings that the port has.
func checkOnPort(c *Config, p *TCPProxy, at schema.Place) {
	port := c.Ports[p.Port]
	switch {
	case port == nil && !at.Root().Field("ports").Reported():
		remedy := "add it under ports"
		if near := schema.Nearest(p.Port, sortedNames(c.Ports)); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		at.Field("port").Problemf(remedy, "there is no port %q", p.Port)
	case port != nil && port.Protocol != HTTPS:
		at.Field("port").Problemf("name an https port, or write address in place of port", "port %s has protocol %s; only TLS clients send a server name", p.Port, port.Protocol)
	}
	if !p.ByName() && !at.Field("sni").Reported() && !at.Field("alpn").Reported() {
		at.Field("sni").Problem("missing", "add the server names that clients send, like sni: [db.example.com]")
	}
	if p.AcceptProxyProtocol != nil {
		at.Field("accept_proxy_protocol").Problemf("remove it", "the proxy_protocol of port %s applies", p.Port)
	}
	if p.MaxConnections != 0 {
		at.Field("max_connections").Problemf("remove it", "limits.max_connections of port %s applies", p.Port)
	}
}

// streamNames reports names that cannot be server names, and those that another proxy has on the
// same port or address for the same protocols.
func (ch *checker) streamNames(p *TCPProxy, on string, at schema.Place) {
	protocols := p.ALPN
	if len(protocols) == 0 {
		protocols = []string{""}
	}
	for i, text := range p.SNI {
		h, f := parseSNI(text)
		if f != nil {
			at.Field("sni").Index(i).Problem(f.What, f.Remedy)
			continue
		}
		for _, protocol := range protocols {
			ch.streamName(p, on, h.String(), protocol, at.Field("sni").Index(i))
		}
	}
	if len(p.SNI) > 0 {
		return
	}
	for i, protocol := range p.ALPN {
		ch.streamName(p, on, "", protocol, at.Field("alpn").Index(i))
	}
}

// streamName adds one name with one protocol to those in use, or reports which proxy has it.
func (ch *checker) streamName(p *TCPProxy, on, name, protocol string, at schema.Place) {
	what := name
	switch {
	case name == "":
		what = protocol
	case protocol != "":
		what = name + " with " + protocol
	}
	key := strings.Join([]string{on, name, protocol}, "\x00")
	switch by := ch.sni[key]; {
	case by == p.Name:
		if !at.Reported() {
			at.Problemf("remove one of them", "duplicate entry %s", what)
		}
	case by != "" && !apart(p.Nodes, ch.c.TCPProxies[by].Nodes):
		at.Problemf("remove it from one of them", "TCP proxy %s has %s on %s too", by, what, on)
	case p.Active:
		ch.sni[key] = p.Name
	}
}

// sharesAddress reports whether two TCP proxies can have the same address, and otherwise
// what is wrong with the second.
func sharesAddress(first, second *TCPProxy, at schema.Place) bool {
	switch {
	case first == nil || second == nil:
		return false
	case !first.ByName() && !second.ByName():
		at.Problemf("give one of them another address, sni or alpn, or active: false", "TCP proxy %s accepts all connections to %v too", first.Name, first.Address)
	case first.MaxConnections != second.MaxConnections:
		at.Problemf("set the same max_connections for both: it is a limit of the address", "TCP proxy %s has the same address with a different max_connections", first.Name)
	case !reflect.DeepEqual(first.AcceptProxyProtocol, second.AcceptProxyProtocol):
		at.Problemf("set the same accept_proxy_protocol for both: the header comes before the server name", "TCP proxy %s has the same address with a different accept_proxy_protocol", first.Name)
	}
	return true
}

// checkStreamTLS reports settings that do not fit each other.
func checkStreamTLS(c *Config, p *TCPProxy, at schema.Place) {
	switch t := p.TLS; {
	case t.ClientAuth == ClientAuthOff && t.ClientCA != "":
		at.Field("client_ca").Problem("client_ca has no effect while client_auth is off", "write client_auth: required or optional, or remove client_ca")
	case t.ClientAuth != ClientAuthOff && t.ClientCA == "":
		at.Field("client_ca").Problem("missing", "name the PEM file of the authorities that sign clients' certificates")
	}
	checkProtocols(p.TLS.ALPN, at.Field("alpn"))
	for i, protocol := range p.TLS.ALPN {
		if len(p.ALPN) > 0 && !slices.Contains(p.ALPN, protocol) {
			at.Field("alpn").Index(i).Problemf("add it to the proxy's alpn, or remove it", "no client can use %s, because the proxy accepts only clients that offer %s", protocol, strings.Join(p.ALPN, " or "))
		}
	}
	checkCertificate(c, p.TLS.DefaultCertificate, at.Field("default_certificate"))
	checkStreamACME(c, p, at.Field("acme"))
}

// maxProtocol is the longest name of an application protocol, in bytes (RFC 7301, section
// 3.1).
const maxProtocol = 255

// checkProtocols reports what cannot be the names of application protocols.
func checkProtocols(protocols []string, at schema.Place) {
	for i, protocol := range protocols {
		switch place := at.Index(i); {
		case protocol == "" || len(protocol) > maxProtocol:
			place.Problemf("write a name like mqtt or postgresql", "a protocol name has 1 to %d bytes", maxProtocol)
		case protocol == certs.ChallengeProtocol:
			place.Problem(protocol+" is reserved for the ACME challenges that headgate answers", "remove it")
		case slices.Contains(protocols[:i], protocol):
			place.Problemf("remove one of them", "duplicate entry %s", protocol)
		}
	}
}

// checkStreamServers reports servers with invalid addresses, and lists without a server
// that takes clients.
func checkStreamServers(address unit.AddressRange, servers []*StreamServer, at schema.Place) {
	weighty := len(servers) == 0
	for i, s := range servers {
		place := at.Index(i).Called("server", s.Address)
		if s.Address != "" {
			if _, f := s.HostPort(); f != nil {
				place.Field("address").Problem(f.What, f.Remedy)
			} else if n := s.Ports(); n > 1 && n != address.Ports() {
				place.Field("address").Problemf("give both the same number of ports, or the server one port", "the server has %d ports, and the proxy %d", n, address.Ports())
			}
		}
		if s.TLS != nil {
			checkServerTLS(s.TLS, target.HTTPS, place.Field("tls"))
		}
		weighty = weighty || s.Weight > 0 || place.Field("weight").Reported()
	}
	if !weighty {
		at.Problem("every server has weight 0", "give one a weight of at least 1")
	}
}
