package compare

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/feature/clientip"
)

// Resolver looks names up; net.DefaultResolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// maxLookups and lookupTimeout bound CheckCDN.
const (
	maxLookups    = 500
	lookupTimeout = 2 * time.Second
)

// CheckCDN looks up the hosts of active proxies and reports those that are behind a
// CDN that the proxy's client_ip does not name: each line of the access log, each rate
// limit and each address filter would use the address of the CDN in place of the
// client's. Names that cannot be looked up are left out. proxies selects proxies; nil
// selects all.
func CheckCDN(ctx context.Context, c *config.Config, resolver Resolver, proxies map[string]bool) (notes []string) {
	left := maxLookups
	for _, name := range slices.Sorted(maps.Keys(c.Proxies)) {
		p := c.Proxies[name]
		if p == nil || !p.Active || proxies != nil && !proxies[name] {
			continue
		}
		hosts, err := p.Hosts()
		if err != nil {
			continue
		}
		told := map[string]bool{}
		for _, h := range hosts {
			if h.Class == config.HostRegex || h.Class == config.HostWildcard {
				continue
			}
			if left--; left < 0 {
				return append(notes, fmt.Sprintf("only the first %d hosts were looked up to find CDNs", maxLookups))
			}
			cdn := cdnOf(ctx, resolver, h.String())
			if cdn == "" || told[cdn] || believes(p, cdn) {
				continue
			}
			told[cdn] = true
			notes = append(notes, fmt.Sprintf("proxy %s: %s is behind %s, which its client_ip does not name: the log, limits and filters would see the CDN's address; set client_ip: {cdn: [%s]} before you compare", name, h, cdn, cdn))
		}
	}
	return notes
}

func cdnOf(ctx context.Context, resolver Resolver, host string) string {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := resolver.LookupNetIP(ctx, "ip", strings.Trim(host, "[]"))
	if err != nil {
		return ""
	}
	for _, a := range found {
		if cdn := clientip.CDNOf(a); cdn != "" {
			return cdn
		}
	}
	return ""
}

// believes reports whether the proxy, or a route of it, names the CDN. Policies and
// defaults are part of their features already.
func believes(p *config.Proxy, cdn string) bool {
	features := []*config.Features{&p.Features}
	for _, r := range p.Routes {
		features = append(features, &r.Features)
	}
	return slices.ContainsFunc(features, func(f *config.Features) bool {
		return f.ClientIP != nil && slices.Contains(f.ClientIP.CDN, cdn)
	})
}
