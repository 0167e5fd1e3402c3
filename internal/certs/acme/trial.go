package acme

import (
	"context"
	"fmt"
	"strings"
)

// Trial is the result of a test of the credentials of a DNS provider.
type Trial struct {
	// Zone is the zone that holds the record, and Record the name of the record; empty if
	// they were not determined.
	Zone, Record string
	// Checked is whether the provider was queried. Some have no request that only reads.
	Checked bool
	// Trouble is why the credentials cannot be used, nil if nothing is known against them.
	Trouble *Trouble
	// Warning is why the credentials could not be tested, such as a provider that does not
	// respond.
	Warning string
}

// TestDNS tests the credentials of a DNS provider for the record of a host, as an order
// does before it is placed. It only reads. Commands are not run.
func TestDNS(ctx context.Context, d *DNS, resolvers []string, host string) Trial {
	s, err := newDNSSolver(&Manager{}, &Config{DNS: d}, newLookup(resolvers))
	if err != nil {
		return Trial{Trouble: troubleOf(err)}
	}
	if err := s.locate(ctx, "_acme-challenge."+strings.TrimPrefix(host, "*.")); err != nil {
		return Trial{Record: s.at, Trouble: troubleOf(err)}
	}
	out := Trial{Zone: s.zone, Record: s.at}
	c, ok := s.provider.(checker)
	if !ok || d.Provider == execProvider {
		return out
	}
	out.Checked = true
	switch failed := c.check(ctx, s.zone, s.at); {
	case failed == nil:
	case isRefusal(failed):
		out.Trouble = refusedCredentials(failed, d, s.zone)
	default:
		out.Warning = cut(fmt.Sprintf("%s: %v", d.Provider, failed))
	}
	return out
}

// refusedCredentials returns the trouble of credentials that a provider has rejected.
func refusedCredentials(failed error, d *DNS, zone string) *Trouble {
	return &Trouble{Code: "dns_credentials", Message: cut(fmt.Sprintf("%s: %v", d.Provider, failed)), Hint: hintFor(failed, d, zone), blocked: true}
}
