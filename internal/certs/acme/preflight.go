package acme

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"
	"github.com/miekg/dns"
)

// Ports reports the state of headgate's ports. Its methods must be safe for concurrent use.
type Ports interface {
	// OpenHTTP and OpenHTTPS report whether an http port, or an https port, is open
	// at a number.
	OpenHTTP(number int) bool
	OpenHTTPS(number int) bool
	// Addresses are the addresses of this machine, as far as it knows them.
	Addresses() []netip.Addr
}

// preflight checks the conditions for an order. The error is a *Trouble for an order that
// would certainly fail; warnings are potential problems. chosen is the challenge for each
// name.
func (m *Manager) preflight(ctx context.Context, e *Config, names []string, r *Record, dir protocol.Directory) (chosen map[string]Challenge, warnings []string, err error) {
	if t := m.overBudget(e, names, r); t != nil {
		return nil, nil, t
	}
	if err := checkNames(names); err != nil {
		return nil, nil, err
	}
	chosen = map[string]Challenge{}
	look := newLookup(e.Resolvers)
	for _, name := range names {
		c, t := choose(m.ports, e, name)
		if t != nil {
			return nil, nil, t
		}
		chosen[name] = c
		more, err := m.checkName(ctx, look, e, name, c, dir)
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, more...)
	}
	more, err := m.checkCredentials(ctx, look, e, chosen)
	if err != nil {
		return nil, nil, err
	}
	return chosen, append(warnings, more...), nil
}

// checkNames reports names for which no authority issues a certificate.
func checkNames(names []string) error {
	for _, name := range names {
		if what, remedy := CheckName(name); what != "" {
			return &Trouble{Code: "bad_name", Message: name + ": " + what, Hint: remedy, blocked: true}
		}
	}
	return nil
}

// choose returns the challenge for a name. With auto it is the one that can work:
// dns-01 for wildcards, else http-01, else tls-alpn-01, else dns-01.
func choose(ports Ports, e *Config, name string) (Challenge, *Trouble) {
	_, notName := netip.ParseAddr(name)
	address := notName == nil
	http, https := ports.OpenHTTP(e.HTTPPort), ports.OpenHTTPS(e.HTTPSPort)
	wildcard := strings.HasPrefix(name, "*.")
	switch {
	case wildcard && e.DNS != nil && (e.Challenge == Auto || e.Challenge == DNS01):
		return DNS01, nil
	case wildcard:
		return "", &Trouble{Code: "wildcard_needs_dns", Message: name + ": a wildcard can be had by dns-01 only", Hint: "add dns: {provider: …} to the entry and leave challenge at auto", blocked: true}
	case e.Challenge == DNS01 && address:
		return "", &Trouble{Code: "address_needs_port", Message: name + ": a certificate for an address cannot be had by dns-01", Hint: "write challenge: auto", blocked: true}
	case e.Challenge == DNS01:
		return DNS01, nil
	case e.Challenge != TLSALPN01 && http:
		return HTTP01, nil
	case e.Challenge != HTTP01 && https:
		return TLSALPN01, nil
	case e.Challenge == Auto && e.DNS != nil && !address:
		return DNS01, nil
	}
	return "", portTrouble(e)
}

// portTrouble is the problem that no port is reachable for validation. It ends within
// seconds after the port was opened, such as when another proxy has released it.
func portTrouble(e *Config) *Trouble {
	var missing []string
	if e.Challenge != TLSALPN01 {
		missing = append(missing, fmt.Sprintf("port %d with protocol http (for http-01)", e.HTTPPort))
	}
	if e.Challenge != HTTP01 {
		missing = append(missing, fmt.Sprintf("port %d with protocol https (for tls-alpn-01)", e.HTTPSPort))
	}
	return &Trouble{
		Code:    "port_not_open",
		Message: "the authority connects to the public port 80 or 443, and no port of headgate serves it; required: " + strings.Join(missing, " or "),
		Hint:    "headgate continues when the port opens; if a router forwards the public ports to other ports, set http_port and https_port; or use dns-01",
		blocked: true,
	}
}

// checkName looks up what the authority will look up.
func (m *Manager) checkName(ctx context.Context, look lookup, e *Config, name string, c Challenge, dir protocol.Directory) (warnings []string, err error) {
	if _, err := netip.ParseAddr(name); err == nil {
		return nil, nil
	}
	if t := checkCAA(ctx, look, name, dir); t != nil {
		return nil, t
	}
	if c == DNS01 {
		return nil, nil
	}
	v4, v6, err := look.addresses(ctx, name)
	switch {
	case errors.Is(err, errNoName):
		return nil, &Trouble{Code: "name_missing", Message: name + " does not exist in the DNS", Hint: "add an A or AAAA record for this machine", blocked: true}
	case err != nil:
		return []string{fmt.Sprintf("%s could not be looked up from here: %v", name, err)}, nil
	case len(v4)+len(v6) == 0:
		return nil, &Trouble{Code: "address_missing", Message: name + " has no address in the DNS", Hint: "add an A or AAAA record for this machine", blocked: true}
	}
	ours := m.ports.Addresses()
	for kind, found := range map[string][]netip.Addr{"A": v4, "AAAA": v6} {
		foreign := slices.DeleteFunc(slices.Clone(found), func(a netip.Addr) bool { return slices.Contains(ours, a) })
		if len(foreign) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: the %s record is %s, which is not an address of this machine; that is normal behind a router or a CDN", name, kind, join(foreign)))
		}
	}
	slices.Sort(warnings)
	return warnings, nil
}

// checkCAA returns a problem if CAA records forbid the authority. If they cannot be looked
// up, the result is unknown.
func checkCAA(ctx context.Context, look lookup, name string, dir protocol.Directory) *Trouble {
	if dir.Meta == nil || len(dir.Meta.CAAIdentities) == 0 {
		return nil
	}
	records, owner, err := look.caa(ctx, name)
	if err != nil || len(records) == 0 {
		return nil
	}
	if allowed(records, dir.Meta.CAAIdentities, strings.HasPrefix(name, "*.")) {
		return nil
	}
	return &Trouble{
		Code:    "caa_forbids",
		Message: fmt.Sprintf("%s: the CAA records of %s do not allow this authority", name, owner),
		Hint:    fmt.Sprintf(`add to %s the record: 0 issue "%s"`, owner, dir.Meta.CAAIdentities[0]),
		blocked: true,
	}
}

// allowed reports whether CAA records allow an authority (RFC 8659, section 4). Parameters
// such as accounturi are evaluated by the authority.
func allowed(records []*dns.CAA, identities []string, wildcard bool) bool {
	tag := "issue"
	if wildcard && slices.ContainsFunc(records, func(r *dns.CAA) bool { return strings.EqualFold(r.Tag, "issuewild") }) {
		tag = "issuewild"
	}
	restricted := false
	for _, r := range records {
		if !strings.EqualFold(r.Tag, tag) {
			continue
		}
		restricted = true
		who, _, _ := strings.Cut(r.Value, ";")
		if slices.ContainsFunc(identities, func(id string) bool { return strings.EqualFold(id, strings.TrimSpace(who)) }) {
			return true
		}
	}
	return !restricted
}

// overBudget returns a problem if an order would exceed the limits of the authority.
func (m *Manager) overBudget(e *Config, names []string, r *Record) *Trouble {
	server := serverOf(e, r)
	allow := directoryOf(server).limits
	now := m.now()
	failed, issued := r.count(server, now)
	over := func(n, most int) bool { return most > 0 && n >= most }
	switch {
	case over(failed, allow.failures):
		return &Trouble{Code: "budget_failures", Message: fmt.Sprintf("%d orders have failed within an hour, and the authority allows no more", failed), Hint: "headgate continues within the hour", blocked: true, after: 15 * time.Minute}
	case over(issued, allow.duplicates):
		return &Trouble{Code: "budget_duplicates", Message: fmt.Sprintf("%d certificates were issued for the same names within a week, and the authority allows no more", issued), Hint: "headgate continues automatically; find out why the certificates are not kept", blocked: true, after: 6 * time.Hour}
	}
	if allow.domain == 0 || !r.NotAfter.IsZero() {
		return nil
	}
	domain := registered(names[0])
	if n := m.issuedFor(domain, server, now); over(n, allow.domain) {
		return &Trouble{Code: "budget_domain", Message: fmt.Sprintf("%d certificates were issued for names below %s within a week, and the authority allows no more", n, domain), Hint: "headgate continues automatically; a wildcard needs one certificate only", blocked: true, after: 6 * time.Hour}
	}
	return nil
}

func join(addrs []netip.Addr) string {
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return strings.Join(out, ", ")
}
