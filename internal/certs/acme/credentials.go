package acme

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"

	"github.com/miekg/dns"
)

// checker is a provider whose credentials can be checked by reading: it reads the zone, or
// the records of a name in it, and changes nothing. Providers that can read nothing, such
// as acme-dns, do not implement it.
type checker interface {
	check(ctx context.Context, zone, name string) error
}

// checkCredentials reads the zones of names from the provider of dns-01, so that
// credentials that are wrong, expired or for another zone do not use up an order. Temporary
// errors, such as an unavailable provider, are warnings.
func (m *Manager) checkCredentials(ctx context.Context, look lookup, e *Config, chosen map[string]Challenge) (warnings []string, err error) {
	asked := map[string]bool{}
	for _, name := range sortedKeys(chosen) {
		if chosen[name] != DNS01 {
			continue
		}
		s, err := newDNSSolver(m, e, look)
		if err != nil {
			return nil, err
		}
		if err := s.locate(ctx, "_acme-challenge."+strings.TrimPrefix(name, "*.")); err != nil {
			return nil, err
		}
		c, ok := s.provider.(checker)
		if !ok || asked[s.zone] {
			continue
		}
		asked[s.zone] = true
		failed := c.check(ctx, s.zone, s.at)
		switch {
		case failed == nil:
		case isRefusal(failed):
			return nil, refusedCredentials(failed, e.DNS, s.zone)
		default:
			warnings = append(warnings, cut(fmt.Sprintf("the credentials of %s could not be tried: %v", e.DNS.Provider, failed)))
		}
	}
	return warnings, nil
}

// errRefused is a permanent error of a provider: something that it needs is missing.
var errRefused = errors.New("it cannot be used")

// isRefusal reports whether an error of a provider is permanent, from its status or its
// text.
func isRefusal(err error) bool {
	if errors.Is(err, errRefused) || containsAny(err.Error(), credentialWords) || containsAny(err.Error(), zoneWords) || containsAny(err.Error(), clockWords) {
		return true
	}
	var s *statusError
	if !errors.As(err, &s) {
		return strings.Contains(err.Error(), "REFUSED")
	}
	switch s.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return false
}

// The checks of providers read the same as a change does, so that no more permissions are
// needed than for the change.

func (c cloudflare) check(ctx context.Context, zone, name string) error {
	_, _, err := c.record(ctx, zone, name, "")
	return err
}

func (p digitalOcean) check(ctx context.Context, zone, name string) error {
	return p.readable(ctx, "/domains/"+url.PathEscape(zone)+"/records?type=TXT&per_page=1&name="+url.QueryEscape(name))
}

func (p hetzner) check(ctx context.Context, zone, _ string) error {
	return p.readable(ctx, "/zones/"+url.PathEscape(zone))
}

func (p vultr) check(ctx context.Context, zone, _ string) error {
	return p.readable(ctx, "/domains/"+url.PathEscape(zone)+"/records?per_page=1")
}

func (p desec) check(ctx context.Context, zone, _ string) error {
	return p.readable(ctx, "/domains/"+url.PathEscape(zone)+"/")
}

func (p gandi) check(ctx context.Context, zone, _ string) error {
	return p.readable(ctx, "/domains/"+url.PathEscape(zone))
}

func (p *ovh) check(ctx context.Context, zone, name string) error {
	return p.request(ctx, http.MethodGet, "/domain/zone/"+url.PathEscape(zone)+"/record?fieldType=TXT&subDomain="+url.QueryEscape(below(name, zone)), nil, nil)
}

func (p porkbun) check(ctx context.Context, zone, name string) error {
	_, err := p.call(ctx, "/dns/retrieveByNameType/"+url.PathEscape(zone)+"/TXT/"+url.PathEscape(below(name, zone)), nil)
	return err
}

func (p ionos) check(ctx context.Context, zone, _ string) error {
	_, err := p.zone(ctx, zone)
	return err
}

func (p linode) check(ctx context.Context, zone, _ string) error {
	_, err := p.records(ctx, zone)
	return err
}

func (p netcup) check(ctx context.Context, zone, _ string) error {
	return p.within(ctx, func(session string) error {
		return p.act(ctx, "infoDnsZone", map[string]any{"apisessionid": session, "domainname": zone}, nil)
	})
}

// check reads what a change would read first, if the API has no better check.
func (w *setWriter) check(ctx context.Context, zone, name string) error {
	if c, ok := w.recordSet.(checker); ok {
		return c.check(ctx, zone, name)
	}
	_, err := w.read(ctx, zone, belowAt(name, zone))
	return err
}

// check sends an update that changes nothing: the server looks at the key and at the zone
// (RFC 2136, section 3).
func (u update) check(ctx context.Context, zone, _ string) error {
	return u.send(ctx, zone, func(*dns.Msg) {})
}

// check knows without asking.
func (duckDNS) check(_ context.Context, _, name string) error {
	if !strings.HasSuffix(name, ".duckdns.org") {
		return fmt.Errorf("%s is not below duckdns.org: %w", name, errRefused)
	}
	return nil
}

// check looks whether there is a command to run.
func (c command) check(context.Context, string, string) error {
	if _, err := exec.LookPath(c.path); err != nil {
		return fmt.Errorf("%w: %w", err, errRefused)
	}
	return nil
}
