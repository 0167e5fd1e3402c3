package plan

import (
	"strings"
	"time"

	"headgate/internal/certs"
	"headgate/internal/config"
)

// Chosen is which certificate the clients of a host get on a port, and why.
type Chosen struct {
	// Port is the port.
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

// Chosen returns which certificate the clients of a host get on each port with TLS. It
// asks what handshakes ask.
func (p *Plan) Chosen(host string) []Chosen {
	all := []Chosen{}
	for _, port := range p.tcpFirst() {
		if port.tls != nil {
			all = append(all, p.chosenOn(port, host))
		}
	}
	return all
}

func (p *Plan) chosenOn(port *Port, host string) Chosen {
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	c := port.tls.set.Explain(host)
	out := Chosen{Port: port.Name(), Name: c.Name, From: c.From, Why: c.Why, State: string(certs.Missing)}
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
	for _, proxy := range p.config.Proxies {
		e := p.config.ACMEEntry(proxy)
		if e == nil || !proxy.Active {
			continue
		}
		for _, name := range config.ACMEHosts(proxy) {
			if name == host || name == "*."+rest {
				return e.Name
			}
		}
	}
	return ""
}
