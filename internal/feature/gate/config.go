package gate

import (
	"headgate/internal/gate"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// Config lets in only people who have signed in and are in the list. Signing in is
// configured with `sign_in`. Everybody else is sent to the sign-in page, or gets 401 or 403.
//
// Servers learn who signed in from the fields of `sign_in.headers`; what clients send under
// these names is removed on every route of the proxy, also where the gate is off. Responses
// are for one person: they are not stored, and no cache outside may share them.
type Config struct {
	// Enabled is whether people need to sign in. `enabled: false` on a route lets everyone
	// in there.
	Enabled bool `json:"enabled" default:"true"`
	// Allow are the people who are let in: `group:PROVIDER/GROUP` for a group of a provider,
	// `group:NAME` for a group of people kept by headgate, `person:ADDRESS`, `person:NAME` or
	// `person:PROVIDER/ID` for one person, `domain:NAME` for everybody with an e-mail address
	// there, `token:NAME` for an application with a token. Addresses count only if they are
	// verified: see `emails` of the provider.
	Allow []string `json:"allow,omitempty" max:"1000" example:"[group:company/staff, \"person:ann@example.com\"]"`
	// From are clients that need not sign in, by address: addresses, networks, list:NAME,
	// country:DE or asn:64500. Servers learn nothing about who they are.
	From []string `json:"from,omitempty" max:"10000" example:"[list:home]"`
	// BasicTokens is whether a token is accepted as the password of Basic authentication,
	// with any user name: many applications can do nothing else. It excludes basic_auth.
	BasicTokens bool `json:"basic_tokens" default:"false"`
	// Bypass are requests that need no sign-in: anyone can send them. Servers do not learn
	// who sends them.
	Bypass []Bypass `json:"bypass,omitempty" max:"64" object:"bypass" example:"[{paths: [/api/health]}, {preset: app_files}]"`
	// SharedCache is whether responses that a server marks as public are stored and shared
	// as without a gate: everybody who can reach such a cache can read them.
	SharedCache bool `json:"shared_cache" default:"false"`
	// SameSite is the SameSite attribute of the cookie with which browsers come back. With `lax`,
	// pages of other sites cannot show the application in a frame, and their forms arrive without
	// the session. `none` allows both; then only WebSockets and requests that change something
	// from pages of the application's own origin are let in. It applies to all routes of the
	// proxy as soon as one of them has it, because they share the cookie.
	SameSite string `json:"same_site" default:"lax" enum:"lax,none"`
}

// sameSiteNone is the value of SameSite for applications in frames of other sites.
const sameSiteNone = "none"

// Framed reports whether the cookie is sent from frames of other sites.
func (c *Config) Framed() bool { return c.SameSite == sameSiteNone }

// Off reports whether everyone is let in.
func (c *Config) Off() bool { return !c.Enabled }

// References returns what the lists of addresses refer to.
func (c *Config) References() []ipset.Referrer {
	return []ipset.Referrer{{Field: "from", Entries: c.From}}
}

// Check reports what is wrong with the settings at a place.
func (c *Config) Check(at schema.Place) {
	ipset.CheckEntries(c.From, at.Field("from"))
	if c.Enabled && len(c.Allow) == 0 && !at.Field("allow").Reported() {
		at.Field("allow").Problem("the gate rejects everyone, because allow is empty", "add entries, such as group:company/staff, or set enabled: false")
	}
	for i := range c.Bypass {
		c.Bypass[i].check(at.Field("bypass").Index(i))
	}
	seen := map[string]bool{}
	for i, text := range c.Allow {
		if _, err := gate.ParseEntry(text); err != nil {
			at.Field("allow").Index(i).Problem(err.Error(), "write group:PROVIDER/GROUP, person:ADDRESS, domain:NAME or token:NAME")
		} else if seen[text] {
			at.Field("allow").Index(i).Problemf("remove one of them", "duplicate entry %s", text)
		}
		seen[text] = true
	}
}
