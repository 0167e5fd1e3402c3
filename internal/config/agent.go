package config

import (
	"net/netip"

	"headgate/internal/schema"
	"headgate/internal/server/safedial"
)

// Agent is another machine whose containers are published. Its agent is trusted less than
// operators: it can only report for this entry, and all servers are on the machine itself.
type Agent struct {
	// Address is the address at which the published ports of the machine are reached. Absent
	// means the address from which the agent connects, unless that is this machine.
	Address netip.Addr `json:"address,omitzero" example:"10.0.0.7"`
	// Ports names the ports for proxies of containers; a label can select some of them.
	// Absent means all.
	Ports []string `json:"ports,omitempty" max:"1000" example:"[web, websecure]"`
	// Hosts are the virtual hosts that labels may name: names, and `*.` and a name for
	// everything below it. Absent means any that the configuration files leave free, but
	// neither `localhost` nor an IP address; names in `admin.hosts` are never theirs.
	Hosts []string `json:"hosts,omitempty" max:"1000" example:"[\"*.apps.example.com\"]"`
	// ACME are the ACME entries that labels may name; `[none]` lets them name none.
	// Absent means all of them.
	ACME []string `json:"acme,omitempty" max:"100" example:"[main]"`
	// Listen are the addresses on which TCP and UDP proxies of labels may listen.
	// Absent means none: then they can only have names on an https port.
	Listen []netip.AddrPort `json:"listen,omitempty" max:"1000" example:"[\"0.0.0.0:5432\"]"`
}

// Via is ViaAgent.
func (*Agent) Via() Via { return ViaAgent }

// Location is the address, if the entry has one.
func (a *Agent) Location() string {
	if a.Address.IsValid() {
		return a.Address.String()
	}
	return ""
}

// OnNodes is nil: an agent is used by the node that it reports to.
func (*Agent) OnNodes() []string { return nil }

// Bounds are those of the labels.
func (a *Agent) Bounds() Bounds {
	return Bounds{Ports: a.Ports, Hosts: a.Hosts, ACME: a.ACME, Listen: a.Listen}
}

// SameSource reports whether another entry is the same machine.
func (a *Agent) SameSource(other Provider) bool {
	o, ok := other.(*Agent)
	return ok && a.Address == o.Address
}

func (ch *checker) agent(a *Agent, at schema.Place) {
	if a.Address.IsValid() && safedial.Check(a.Address) != nil {
		at.Field("address").Problemf("write the address of the machine", "%s is link-local, or of a cloud metadata service", a.Address)
	}
	ch.bounds(a, at)
}
