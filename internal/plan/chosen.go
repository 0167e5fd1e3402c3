package plan

import (
	"slices"
	"strings"
	"time"

	"headgate/internal/certs"
	"headgate/internal/config"
)

// Chosen is which certificate the clients of a host get on a port, and why.
type Chosen struct {
	// Port is the port, or the TCP proxy with an address of its own.
	Port string `json:"port"`
	// Name is what the certificate is called, "" for the port's self-signed one.
	Name string `json:"name,omitempty"`
	// From is file, stored, acme or self-signed.
	From string `json:"from"`
	// Why says why it is this one.
	Why string `json:"why"`
	// Names are the hosts that it is for.
	Names []string `json:"names,omitempty"`
	// Issuer is who has signed it.
	Issuer string `json:"issuer,omitempty"`
	// State is valid, expiring, expired or missing.
	State string `json:"state"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after,omitzero"`
}

// Chosen returns which certificate the clients of a host get on each port with TLS, and
// from each TCP proxy that has the name. It uses the lookup of handshakes.
func (p *Plan) Chosen(host string) []Chosen {
	all := []Chosen{}
	for _, port := range p.tcpFirst() {
		if port.tls != nil {
			all = append(all, p.demanded(p.chosenOn(port.Name(), port.tls, host), port.tls, host))
		}
	}
	for _, t := range p.tcpProxies {
		if t.tls != nil && t.Settings.Address.IsValid() && t.named(host) {
			all = append(all, p.chosenOn(t.Settings.Name, t.tls, host))
		}
	}
	return all
}

// named reports whether sni of a TCP proxy has a host.
func (t *TCPProxy) named(host string) bool {
	_, parent, _ := strings.Cut(host, ".")
	names, _ := t.Settings.Names() // were checked
	return slices.ContainsFunc(names, func(n config.VirtualHost) bool {
		return n.Name == host && n.Class == config.HostExact || n.Name == parent && n.Class == config.HostWildcard
	})
}

// demanded adds to what was chosen on a port that the certificate of the host is ordered when a
// client connects.
func (p *Plan) demanded(c Chosen, secure *portTLS, host string) Chosen {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	d := p.OnDemand(c.Port, host)
	if d == nil || secure.set.HasValid(host) {
		return c
	}
	what := " orders one by the acme entry " + d.Entry + " when a client connects"
	switch {
	case d.Settings.Lists(host):
		what += ": its list has the host"
	case d.Settings.Ask != "":
		what += ", if the application at ask allows the host; otherwise the client gets the alert unrecognized_name"
	default:
		what = " orders none, as its list does not have the host: the client gets the alert unrecognized_name"
	}
	return Chosen{Port: c.Port, From: "acme", State: string(certs.Missing), Why: "no valid certificate has the name; on_demand of the proxy " + d.Proxy + what}
}

func (p *Plan) chosenOn(name string, secure *portTLS, host string) Chosen {
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	c := secure.set.Explain(host)
	out := Chosen{Port: name, Name: c.Name, From: c.From, Why: c.Why, State: string(certs.Missing)}
	if c.Leaf != nil {
		out.Names, out.Issuer, out.NotAfter = certs.Hosts(c.Leaf), c.Leaf.Issuer.String(), c.Leaf.NotAfter
		out.State = string(certs.StateAt(c.Leaf.NotBefore, c.Leaf.NotAfter, time.Now()))
	}
	if entry := p.awaits(host); c.Name == "" && entry != "" {
		out.Why += "; the acme entry " + entry + " will get one; for its status, run headgate acme status " + host
	}
	return out
}

// awaits returns the ACME entry that a host gets its certificate from, "" if none is.
func (p *Plan) awaits(host string) string {
	_, rest, _ := strings.Cut(host, ".")
	for e, hosts := range p.config.ACMEHolders() {
		for _, name := range hosts {
			if name == host || name == "*."+rest {
				return e.Name
			}
		}
	}
	return ""
}
