package control

import (
	"encoding/base64"
	"fmt"
	"time"

	"headgate/internal/certs/acme"
	"headgate/internal/certs/ech"
	"headgate/internal/plan"
)

// maxECHRecords is how many records are shown of a port.
const maxECHRecords = 1000

// ECHState is the Encrypted Client Hello of a port, with what makes clients use it.
type ECHState struct {
	// Port is the name of the port.
	Port string `json:"port" required:"true"`
	// PublicName is the name that clients show.
	PublicName string `json:"public_name" required:"true"`
	// DNS is the ACME entry whose DNS provider writes the records; absent if you copy them.
	DNS string `json:"dns,omitempty"`
	// ConfigList is the published ECHConfigList in base64, as `curl --ech ecl:…` takes it;
	// absent while there is no key.
	ConfigList string `json:"config_list,omitempty"`
	// Keys are the keys of the public name, the newest first.
	Keys []ECHKey `json:"keys" required:"true"`
	// Records are the HTTPS records of the hosts of the port, at most 1000. The status has
	// none.
	Records []ECHRecord `json:"records,omitempty"`
	// More is the number of other hosts.
	More int `json:"more,omitempty"`
	// Issues are reasons why the names of hosts are not hidden, or not from everyone.
	Issues []string `json:"issues,omitempty"`
}

// ECHKey is a key of Encrypted Client Hello, without what is secret.
type ECHKey struct {
	// ID is the number in what clients send; no other key of the public name has it.
	ID int `json:"id" required:"true"`
	// Use is announced for a new key that is published soon, published for the one in the
	// records, or accepted for a former one that clients may still have.
	Use ech.Use `json:"use" required:"true" enum:"announced,published,accepted"`
	// Made is when the key was made.
	Made time.Time `json:"made" required:"true"`
	// Until is when it is no longer accepted.
	Until time.Time `json:"until" required:"true"`
}

// ECHRecord is an HTTPS record (RFC 9460) of a host.
type ECHRecord struct {
	// Host is the host, or a wildcard.
	Host string `json:"host" required:"true"`
	// Name is the name of the record: the host, with the number of the port in front if it is
	// not 443.
	Name string `json:"name" required:"true"`
	// Value is the data of the record, as zone files have it.
	Value string `json:"value" required:"true"`
	// Line is the whole record, as zone files have it.
	Line string `json:"line" required:"true"`
	// State is whether the record is in the DNS, on ports with tls.ech.dns: published;
	// waiting until it is written or visible; failed if it could not be written; skipped if
	// the name cannot have it, such as one with a CNAME.
	State acme.PublishState `json:"state,omitempty" enum:"published,waiting,failed,skipped"`
	// Note is why the record is not in the DNS, and what to do.
	Note string `json:"note,omitempty"`
	// NextTry is when the record is checked again.
	NextTry time.Time `json:"next_try,omitzero"`
}

// ECH returns the active ports with Encrypted Client Hello, by name.
func (c *Control) ECH() []ECHState { return c.echStates(true) }

// echStates is ECH, without records if they are not needed: there may be many.
func (c *Control) echStates(records bool) (out []ECHState) {
	p := c.current.Load()
	if p == nil {
		return out
	}
	now := time.Now()
	for _, h := range p.Hidden() {
		ring := c.ech.ring(h.PublicName)
		s := echStateOf(&h, ring, now)
		if issue := c.echRecords.issue(h.Port); issue != "" {
			s.Issues = append(s.Issues, issue)
		}
		if records {
			s.addRecords(&h, ring.Published(), c.echRecords)
		}
		out = append(out, s)
	}
	return out
}

// echStateOf describes a port with its keys.
func echStateOf(h *plan.Hidden, r *ech.Ring, now time.Time) ECHState {
	s := ECHState{Port: h.Port, PublicName: h.PublicName, DNS: h.DNS, Keys: []ECHKey{}}
	keys, list := r.Keys(), r.Published()
	for i, k := range keys {
		s.Keys = append(s.Keys, ECHKey{ID: int(k.ID()), Use: keys.Use(i, now), Made: k.Made, Until: k.Made.Add(ech.Retention)})
	}
	if list == nil {
		s.Issues = append(s.Issues, "there is no key yet: no name is hidden")
	} else {
		s.ConfigList = base64.StdEncoding.EncodeToString(list)
	}
	if !h.Covered {
		s.Issues = append(s.Issues, "no certificate has the public name "+h.PublicName+": clients with an outdated key cannot connect")
	}
	if h.Beside != "" {
		s.Issues = append(s.Issues, "port "+h.Beside+" has the same number and not this public name: clients that use HTTP/3 show the name")
	}
	return s
}

// addRecords adds the records of the hosts; there are none without keys.
func (s *ECHState) addRecords(h *plan.Hidden, list []byte, published *echRecords) {
	for _, host := range h.Hosts() {
		name := ech.Owner(host.Name, h.Number)
		switch {
		case name == "":
			s.Issues = append(s.Issues, fmt.Sprintf("%s has no record, since the number of the port is %d: name each host in virtual_hosts, or use 443", host.Name, h.Number))
		case len(s.Records) == maxECHRecords:
			s.More++
		case list != nil:
			value := ech.Value(ech.Target(host.Name, name), host.Protocols, list)
			record := ECHRecord{Host: host.Name, Name: name, Value: value, Line: ech.Line(name, value)}
			if s.DNS != "" {
				published.describe(s.Port, &record)
			}
			s.Records = append(s.Records, record)
		}
	}
}
