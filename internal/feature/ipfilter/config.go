package ipfilter

import (
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// Config says which clients are let in, by address. The address is the one
// that client_ip found. Who may not gets 403.
type Config struct {
	// Enabled is whether the filter acts. `enabled: false` on a route switches
	// off what the proxy would hand down.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Allow are the addresses and networks that are let in, such as 192.0.2.7
	// or 2001:db8::/32. Empty means everyone but who is in deny; otherwise
	// everyone else is refused.
	Allow []string `json:"allow,omitempty" label:"true" max:"200000" example:"192.0.2.0/24"`
	// Deny are the addresses and networks that are refused, even if they are in
	// allow too.
	Deny []string `json:"deny,omitempty" label:"true" max:"200000" example:"192.0.2.7"`
}

// Off reports whether the filter is switched off.
func (c *Config) Off() bool { return !c.Enabled }

// Check tells what is wrong with the settings, which stand at at.
func (c *Config) Check(at schema.Place) {
	ipset.Check(c.Allow, at.Field("allow"))
	ipset.Check(c.Deny, at.Field("deny"))
	if c.Enabled && len(c.Allow) == 0 && len(c.Deny) == 0 {
		at.Problem("the filter has neither allow nor deny", "add one, or enabled: false")
	}
	deny, err := ipset.New(c.Deny)
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
