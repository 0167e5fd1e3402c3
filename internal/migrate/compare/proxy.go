package compare

import (
	"maps"
	"net"
	"slices"
	"strings"

	"headgate/internal/config"
)

// ProxyOf returns a function that returns which proxy of a configuration serves the
// host of a request, judging by hosts alone; empty if none does.
func ProxyOf(c *config.Config) func(Request) string {
	exact, wildcard := map[string]string{}, map[string]string{}
	type expression struct {
		host  config.VirtualHost
		proxy string
	}
	var expressions []expression
	rest := ""
	for _, name := range slices.Sorted(maps.Keys(c.Proxies)) {
		p := c.Proxies[name]
		if p == nil || !p.Active {
			continue
		}
		hosts, err := p.Hosts()
		if err == nil && len(hosts) == 0 && rest == "" {
			rest = name
		}
		for _, h := range hosts {
			switch h.Class {
			case config.HostRegex:
				expressions = append(expressions, expression{h, name})
			case config.HostWildcard:
				wildcard[h.Name] = name
			default:
				exact[h.Name] = name
			}
		}
	}
	return func(rq Request) string {
		host := strings.ToLower(rq.Host)
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.TrimSuffix(host, ".")
		if name := exact[host]; name != "" {
			return name
		}
		if _, below, ok := strings.Cut(host, "."); ok && wildcard[below] != "" {
			return wildcard[below]
		}
		for _, e := range expressions {
			if e.host.Regex.MatchString(host) {
				return e.proxy
			}
		}
		return rest
	}
}
