package config

import (
	"fmt"

	"headgate/internal/schema"
	"headgate/internal/server/target"
	"headgate/internal/setting/ipset"
)

// tcpProxy reports problems of a TCP proxy.
func (ch *checker) tcpProxy(p *TCPProxy, at schema.Place) {
	switch passes := p.Port != "" || len(p.SNI) > 0; {
	case p.Address.IsValid() && passes:
		at.Field("address").Problem("address cannot be combined with port and sni", "keep the address, or port and sni")
	case passes:
		checkPassthrough(ch.c, p, ch.sni, at)
	case !p.Address.IsValid():
		if !at.Field("address").Reported() {
			at.Problem("the proxy has no address", "add address: 0.0.0.0:5432, or port and sni")
		}
	case p.Active:
		ch.claim(taken{p.Address, false, "TCP proxy " + p.Name}, at.Field("address"))
	}
	if p.AcceptProxyProtocol != nil {
		ipset.Check(p.AcceptProxyProtocol.Trusted, at.Field("accept_proxy_protocol").Field("trusted"))
	}
	checkStreamFeatures(&p.StreamFeatures, at)
	checkStreamServers(p.Servers, at.Field("servers"))
	for i, s := range p.Servers {
		if s.TLS != nil && s.TLS.InsecureSkipVerify {
			at.Field("servers").Index(i).Called("server", s.Address).Field("tls").Field("insecure_skip_verify").Note(notVerified, notVerifiedRemedy)
		}
	}
}

// udpProxy reports problems of a UDP proxy.
func (ch *checker) udpProxy(p *UDPProxy, at schema.Place) {
	switch {
	case !p.Address.IsValid():
		if !at.Field("address").Reported() {
			at.Field("address").Problem("missing", "add address: 0.0.0.0:53")
		}
	case p.Active:
		ch.claim(taken{p.Address, true, "UDP proxy " + p.Name}, at.Field("address"))
	}
	checkStreamFeatures(&p.StreamFeatures, at)
	checkStreamServers(p.Servers, at.Field("servers"))
	for i, s := range p.Servers {
		if s.TLS != nil {
			at.Field("servers").Index(i).Called("server", s.Address).Field("tls").Problem("tls is not available for UDP servers", "remove it")
		}
	}
}

// checkPassthrough reports a proxy for names on a port that has no TLS, or whose names
// another proxy has.
func checkPassthrough(c *Config, p *TCPProxy, names map[string]string, at schema.Place) {
	port := c.Ports[p.Port]
	switch {
	case p.Port == "":
		at.Field("port").Problem("missing", "set the https port whose connections are forwarded, or remove sni")
	case port == nil && !at.Root().Field("ports").Reported():
		remedy := "add it under ports"
		if near := schema.Nearest(p.Port, sortedNames(c.Ports)); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		at.Field("port").Problemf(remedy, "there is no port %q", p.Port)
	case port != nil && port.Protocol != HTTPS:
		at.Field("port").Problemf("name an https port, or write address in place of port and sni", "port %s has protocol %s; only TLS clients send a server name", p.Port, port.Protocol)
	}
	if len(p.SNI) == 0 && !at.Field("sni").Reported() {
		at.Field("sni").Problem("missing", "add the server names that clients send, like sni: [db.example.com]")
	}
	if p.AcceptProxyProtocol != nil {
		at.Field("accept_proxy_protocol").Problemf("remove it", "the proxy_protocol of port %s applies", p.Port)
	}
	if p.MaxConnections != 0 {
		at.Field("max_connections").Problemf("remove it", "limits.max_connections of port %s applies", p.Port)
	}
	for i, text := range p.SNI {
		h, f := parseSNI(text)
		place := at.Field("sni").Index(i)
		if f != nil {
			place.Problem(f.What, f.Remedy)
			continue
		}
		key := p.Port + "\x00" + h.String()
		switch by := names[key]; {
		case by == p.Name:
			place.Problemf("remove one of them", "duplicate entry %s", h)
		case by != "":
			place.Problemf("remove it from one of them", "TCP proxy %s has %s on port %s too", by, h, p.Port)
		case p.Active:
			names[key] = p.Name
		}
	}
}

// checkStreamServers reports servers with invalid addresses, and lists without a server
// that takes clients.
func checkStreamServers(servers []*StreamServer, at schema.Place) {
	weighty := len(servers) == 0
	for i, s := range servers {
		place := at.Index(i).Called("server", s.Address)
		if s.Address != "" {
			if _, f := s.HostPort(); f != nil {
				place.Field("address").Problem(f.What, f.Remedy)
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
