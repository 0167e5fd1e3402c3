package maintenance

import (
	"strings"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/page"
	"headgate/internal/setting/unit"
)

// Config responds to requests with 503 during maintenance, except for clients that may
// bypass it.
type Config struct {
	// Enabled is whether maintenance is on. `enabled: false` ends it and keeps the
	// settings.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// RetryAfter is the value of Retry-After, after which clients should try again.
	RetryAfter unit.Duration `json:"retry_after" label:"true" default:"5m" min:"1s" max:"168h"`
	page.Config
	// Bypass selects the clients that are not affected. Absent means none.
	Bypass Bypass `json:"bypass" label:"true"`
}

// Bypass selects clients: those that match any of these conditions.
type Bypass struct {
	// Addresses are the addresses of clients: addresses, networks, list:NAME, country:DE or
	// asn:64500.
	Addresses []string `json:"addresses,omitempty" label:"true" max:"10000" example:"192.0.2.0/24"`
	// Header is a header with a secret value. It is not forwarded to servers.
	Header *Secret `json:"header,omitempty" label:"true"`
	// Cookie is a cookie with a secret value.
	Cookie *Secret `json:"cookie,omitempty" label:"true"`
}

// Secret is a name with its required value.
type Secret struct {
	// Name is the name of the header or cookie.
	Name string `json:"name" label:"true" required:"true" max:"256" example:"X-Maintenance-Pass"`
	// Value is the secret. Read it from a file: ${file:/run/secrets/pass}.
	Value string `json:"value" label:"true" required:"true" secret:"true" max:"1024" example:"a-long-random-text"`
}

// minSecret is the shortest secret, in bytes.
const minSecret = 8

// References returns what bypass refers to.
func (c *Config) References() []ipset.Referrer {
	return []ipset.Referrer{{Field: "bypass.addresses", Entries: c.Bypass.Addresses}}
}

// Off reports whether the site is open.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	c.CheckPage(at)
	bypass := at.Field("bypass")
	ipset.CheckEntries(c.Bypass.Addresses, bypass.Field("addresses"))
	if s := c.Bypass.Header; s != nil {
		place := bypass.Field("header")
		s.check(place)
		switch id := header.Lookup(s.Name); {
		case id.ClaimsClient():
			place.Field("name").Problem(s.Name+" is removed from requests before maintenance is checked", "write another name, like X-Maintenance-Pass")
		case id.HopByHop() || id == header.Host || id == header.ContentLength:
			place.Field("name").Problem(s.Name+" cannot carry a secret", "write another name, like X-Maintenance-Pass")
		}
	}
	if s := c.Bypass.Cookie; s != nil {
		place := bypass.Field("cookie")
		s.check(place)
		if strings.ContainsAny(s.Value, "; \t,\"\\") {
			place.Field("value").Problem("the value contains a character that is not allowed in a cookie", "write letters and digits")
		}
	}
}

func (s *Secret) check(at schema.Place) {
	if !at.Field("name").Reported() && !http1.ValidName(s.Name) {
		at.Field("name").Problem("invalid name", "write one of letters, digits and hyphens")
	}
	if at.Field("value").Reported() {
		return
	}
	if what, remedy := schema.CheckFieldValue(s.Value); what != "" {
		at.Field("value").Problem(what, remedy)
	} else if len(s.Value) < minSecret {
		at.Field("value").Problem("the secret is easy to guess", "write at least 8 characters")
	}
}
