package ipfilter

import (
	"slices"

	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// Config says which clients are let in, by address. The address is the one
// that client_ip found. Others get 403.
//
// An entry is an address, a network, list:NAME for a list of lists, list:private for
// loopback and private networks, country:DE for a country, country:unknown for addresses
// whose country is not known, or asn:64500 for a network by its number. Countries and
// numbers need a database in geo.
type Config struct {
	// Enabled is whether the filter is active. `enabled: false` on a route overrides the
	// proxy's setting.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Allow are the addresses that are admitted, such as 192.0.2.7, 2001:db8::/32,
	// list:office or country:DE. Empty means all that are not in deny; otherwise others are
	// rejected. A list that is empty or was never loaded admits no client.
	Allow []string `json:"allow,omitempty" label:"true" max:"200000" example:"192.0.2.0/24"`
	// Deny are the addresses that are rejected, even if they are in allow, too. A list that
	// is empty or was never loaded rejects no client.
	Deny []string `json:"deny,omitempty" label:"true" max:"200000" example:"192.0.2.7"`
	// Mode is `enforce`, or `observe` to log clients that would be rejected, with the entry
	// that has them, without rejecting them.
	Mode Mode `json:"mode" label:"true" default:"enforce" enum:"enforce,observe"`
}

// Mode is what to do with clients that are not let in.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Observe Mode = "observe"
)

// Enforces reports whether the filter rejects clients. c may be nil.
func (c *Config) Enforces() bool { return c != nil && c.Enabled && c.Mode != Observe }

// Off reports whether the filter is switched off.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	ipset.CheckEntries(c.Allow, at.Field("allow"))
	ipset.CheckEntries(c.Deny, at.Field("deny"))
	if c.Enabled && len(c.Allow) == 0 && len(c.Deny) == 0 {
		at.Problem("the filter has neither allow nor deny", "add one, or enabled: false")
	}
	c.noteCountries(at.Field("allow"))
	deny, err := ipset.New(slices.DeleteFunc(slices.Clone(c.Deny), ipset.IsReference))
	if err != nil || deny.Len() == 0 {
		return
	}
	for i, text := range c.Allow {
		p, err := ipset.Parse(text)
		if err != nil {
			continue
		}
		if wider, ok := deny.Within(p); ok {
			at.Field("allow").Index(i).Problemf(
				"take one of them out; with an allow list everyone else is refused without deny",
				"%s lies in %v of deny, and deny wins", text, wider)
		}
	}
}

// References returns what the lists refer to.
func (c *Config) References() []ipset.Referrer {
	return []ipset.Referrer{{Field: "allow", Entries: c.Allow}, {Field: "deny", Entries: c.Deny}}
}

// noteCountries notes that private addresses are in no country, where only countries and
// networks by number are let in.
func (c *Config) noteCountries(at schema.Place) {
	for _, text := range c.Allow {
		if !ipset.IsReference(text) || text == ipset.ListReference(ipset.PrivateList) {
			return
		}
	}
	for _, r := range ipset.References(c.Allow) {
		if r.Kind == ipset.ToList {
			return
		}
	}
	if len(c.Allow) > 0 {
		at.Note("private addresses are in no country, so clients of your own network are rejected", "add list:private to allow them")
	}
}
