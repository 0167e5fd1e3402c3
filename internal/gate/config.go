package gate

import (
	"time"

	"headgate/internal/gate/people"
	"headgate/internal/gate/provider"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Config says how people sign in before they reach applications behind a `gate`. The
// sign-in page is a route with `sign_in: {}`.
type Config struct {
	// Local is whether people who are kept by headgate can sign in, with a passkey, or with a
	// password and a code of an authenticator. They are added in the console or with
	// `headgate person add`, and choose their credentials with an invitation link.
	Local bool `json:"local" default:"false"`
	// Providers are the providers through which people sign in, by name. The name is part
	// of the callback address that is registered at the provider,
	// https://HOST/callback/NAME, and of the groups of the provider, group:NAME/GROUP.
	Providers map[string]*provider.Config `json:"providers,omitempty" max:"16" object:"sign-in provider" example:"{company: {issuer: \"https://id.example.com\", client_id: headgate, client_secret: \"${file:/run/secrets/oidc}\"}}"`
	// Session is how long people stay signed in.
	Session Lifetime `json:"session"`
	// SelfTest is whether headgate requests the sign-in page as a browser does, every 10 minutes
	// and when its address changes: whether its host is in the DNS, whether its certificate is trusted,
	// and whether headgate responds. If it does not, the proxy of the page has an
	// issue that says why. A router may keep machines behind it from reaching its public
	// address: then the test cannot succeed, and false switches it off.
	SelfTest bool `json:"self_test" default:"true"`
	// Headers are the fields that tell servers who signed in.
	Headers Headers `json:"headers"`
}

// Lifetime is how long people stay signed in.
type Lifetime struct {
	// IdleTimeout is how long a session lasts without a request.
	IdleTimeout unit.Duration `json:"idle_timeout" default:"12h" min:"1m" max:"8760h"`
	// MaxAge is how long a session lasts at most.
	MaxAge unit.Duration `json:"max_age" default:"168h" min:"1m" max:"8760h"`
	// Recheck is how often headgate checks with the provider whether a person may stay signed in,
	// and which groups the person has now. If the provider rejects the refresh token, the session
	// ends at once. Some providers issue a refresh token only with the scope `offline_access`:
	// sessions without one, and sessions of people kept by headgate, are not checked.
	//
	// A machine that cannot reach the shared store for longer than this accepts no session that
	// was confirmed earlier, because another machine may have ended it. 0 switches both off.
	Recheck unit.Duration `json:"recheck" default:"1h" max:"8760h"`
	// RecheckGrace is how long a session continues while its provider cannot be reached. It
	// starts when the provider last confirmed the session.
	RecheckGrace unit.Duration `json:"recheck_grace" default:"24h" max:"8760h"`
}

// minRecheck is the shortest time between two checks of a session.
const minRecheck = unit.Duration(time.Minute)

// Headers are the fields that tell servers who signed in. What clients send under these
// names, or under names that a server may read as the same, is removed on every route of a
// proxy that has a gate. An empty name sends none.
type Headers struct {
	// User is the field with the person's unique name.
	User string `json:"user" default:"Remote-User" max:"64"`
	// Email is the field with the e-mail address, if it counts.
	Email string `json:"email" default:"Remote-Email" max:"64"`
	// Name is the field with the name for people to read.
	Name string `json:"name" default:"Remote-Name" max:"64"`
	// Groups is the field with the groups, separated by commas: PROVIDER/GROUP.
	Groups string `json:"groups" default:"Remote-Groups" max:"64"`
}

// Names returns the names that are not empty.
func (h *Headers) Names() []string {
	var out []string
	for _, name := range []string{h.User, h.Email, h.Name, h.Groups} {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// Configured reports whether people can sign in at all.
func (c *Config) Configured() bool { return c.Local || len(c.Providers) > 0 }

// Check reports what is wrong with the settings at a place.
func (c *Config) Check(at schema.Place) {
	for name, p := range c.Providers {
		place := at.Field("providers").Field(name).Called("sign-in provider", name)
		if !validProvider(name) {
			place.Problem("the name cannot be part of an address", "write lower-case letters, digits and hyphens")
		}
		if name == people.Provider {
			place.Problem("the name is reserved for the local people of headgate", "choose another name, such as company")
		}
		p.Check(place)
	}
	if c.Session.IdleTimeout > c.Session.MaxAge {
		at.Field("session").Field("idle_timeout").Problem("idle_timeout is longer than max_age", "write a shorter idle_timeout or a longer max_age")
	}
	if r := c.Session.Recheck; r > 0 && r < minRecheck {
		at.Field("session").Field("recheck").Problemf("write 1m or more, or 0 to switch it off", "%s is too short", r)
	}
	if s := &c.Session; s.Recheck > 0 && s.RecheckGrace < s.Recheck {
		at.Field("session").Field("recheck_grace").Problem("recheck_grace is shorter than recheck, so sessions would end before they are checked", "write a longer recheck_grace")
	}
	c.Headers.check(at.Field("headers"))
}

func (h *Headers) check(at schema.Place) {
	var seen []string
	for _, f := range []struct{ field, name string }{{"user", h.User}, {"email", h.Email}, {"name", h.Name}, {"groups", h.Groups}} {
		if f.name == "" {
			continue
		}
		id := header.Lookup(f.name)
		switch place := at.Field(f.field); {
		case !http1.ValidName(f.name):
			place.Problemf("write a name like Remote-User", "%q is not a header name", f.name)
		case id != header.Other && id != header.XForwardedUser:
			place.Problemf("write a name like Remote-User", "%s has another meaning", f.name)
		}
		for _, other := range seen {
			if header.Twins(other, f.name) {
				at.Field(f.field).Problemf("choose another name", "servers may read %s and %s as the same", f.name, other)
			}
		}
		seen = append(seen, f.name)
	}
}

func validProvider(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 63
}
