package review

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/diff"
)

// anyHost is the key of proxies without virtual hosts.
const anyHost = ""

// claims are the active proxies of a configuration that name certain hosts, by host.
// Hosts are in the form of keyOf.
type claims struct {
	byHost   map[string][]*config.Proxy
	patterns []patternClaim
}

// patternClaim is an expression with its proxy.
type patternClaim struct {
	text  string
	regex *regexp.Regexp // nil until it is needed
	proxy *config.Proxy
}

// keyOf returns a virtual host in its one form. Most are written in it.
func keyOf(text string) string {
	if isKey(text) {
		return text
	}
	hosts, err := (&config.Proxy{VirtualHosts: []string{text}}).Hosts()
	if err != nil {
		return text
	}
	return hosts[0].String()
}

// isKey reports whether a host is in its one form without a doubt.
func isKey(text string) bool {
	for i := range len(text) {
		if c := text[i]; !(c >= 'a' && c <= 'z' || c == '.' || c == '-' || c >= '0' && c <= '9' || c == '*') {
			return false
		}
	}
	return text != "" && text[len(text)-1] != '.'
}

// claimsOf collects the proxies of a configuration that name one of the hosts.
func claimsOf(c *config.Config, hosts map[string]bool) *claims {
	out := &claims{byHost: map[string][]*config.Proxy{}}
	for _, p := range c.Proxies {
		if !p.Active {
			continue
		}
		if len(p.VirtualHosts) == 0 {
			out.byHost[anyHost] = append(out.byHost[anyHost], p)
		}
		for _, text := range p.VirtualHosts {
			key := keyOf(text)
			if hosts[key] {
				out.byHost[key] = append(out.byHost[key], p)
			}
			if strings.HasPrefix(key, "~") {
				out.patterns = append(out.patterns, patternClaim{text: key, proxy: p})
			}
		}
	}
	for _, list := range out.byHost {
		slices.SortFunc(list, byName)
	}
	slices.SortFunc(out.patterns, func(a, b patternClaim) int { return byName(a.proxy, b.proxy) })
	return out
}

func byName(a, b *config.Proxy) int { return strings.Compare(a.Name, b.Name) }

// taker is who takes the requests of a host for a path.
type taker struct {
	proxy *config.Proxy
	route *config.Route
	// via is the host by which it does: the host itself, "*.example.com", an
	// expression, or anyHost.
	via string
}

// ownerOf returns which route gets the requests of a host for a path on one of these ports;
// the proxy is nil if there is none. The best class of host that matches decides alone, as
// for requests.
func (c *claims) ownerOf(host, path string, ports []string) taker {
	exact := host != anyHost && !strings.HasPrefix(host, "*.") && !strings.HasPrefix(host, "~")
	for _, via := range viaOf(host) {
		if via == anyHost && exact && len(c.patterns) > 0 { // expressions come after names and wildcards
			if t, named := c.byPattern(host, path, ports); named {
				return t
			}
		}
		if claim, named := best(c.byHost[via], path, ports); named {
			return taker{claim.proxy, claim.route, via}
		}
	}
	return taker{}
}

// viaOf returns the hosts by which requests of a host can be taken, the best first.
func viaOf(host string) []string {
	switch _, parent, dotted := strings.Cut(host, "."); {
	case host == anyHost:
		return []string{anyHost}
	case strings.HasPrefix(host, "*."), strings.HasPrefix(host, "~"), !dotted || parent == "":
		return []string{host, anyHost}
	default:
		return []string{host, "*." + parent, anyHost}
	}
}

// byPattern is take for expressions.
func (c *claims) byPattern(host, path string, ports []string) (taker, bool) {
	var matching []*config.Proxy
	via := ""
	for i := range c.patterns {
		p := &c.patterns[i]
		if p.regex == nil {
			p.regex, _ = regexp.Compile(p.text[1:])
		}
		if p.regex != nil && p.regex.MatchString(host) {
			matching, via = append(matching, p.proxy), p.text
		}
	}
	claim, named := best(matching, path, ports)
	return taker{claim.proxy, claim.route, via}, named
}

// best returns the longest route of proxies for a path, and whether one of them is
// on these ports at all.
func best(proxies []*config.Proxy, path string, ports []string) (t taker, named bool) {
	for _, p := range proxies {
		if !share(p.Ports, ports) {
			continue
		}
		named = true
		if r := longest(p, path, nil); r != nil && (t.route == nil || len(r.Prefix()) > len(t.route.Prefix())) {
			t.proxy, t.route = p, r
		}
	}
	return t, named
}

// share reports whether two lists of ports have one in common; none is all.
func share(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// maxLooks limits the work for hosts, in routes.
const maxLooks = 4 << 20

// fate is how requests for a path of some hosts are handled after the change.
type fate struct {
	code        string
	from, to    string // proxies
	toVia       string
	path        string
	wholeHost   bool
	lessSecured bool
}

// judgeHosts reports hosts and paths that no proxy serves any more, and those that move to
// another proxy.
func (r *reviewer) judgeHosts() {
	changed := map[string]bool{}
	hosts := map[string]bool{anyHost: true}
	for _, o := range r.Difference.Of("proxies") {
		if o.Change == diff.Changed && !slices.ContainsFunc(o.Fields, movesRequests) {
			continue
		}
		changed[o.Name] = true
		for _, p := range []*config.Proxy{r.Before.Proxies[o.Name], r.After.Proxies[o.Name]} {
			for _, h := range hostsOf(p) {
				for _, via := range viaOf(keyOf(h)) {
					hosts[via] = true
				}
			}
		}
	}
	if len(changed) == 0 {
		return
	}
	j := hostJudge{r: r, before: claimsOf(r.Before, hosts), after: claimsOf(r.After, hosts), seen: map[string]bool{}, fates: map[fate][]string{}}
	for _, name := range sortedKeys(changed) {
		j.compareOwners(r.Before.Proxies[name], r.After.Proxies[name])
	}
	j.addSentences()
}

// movesRequests reports whether a field has a say in which requests a proxy takes.
func movesRequests(f diff.FieldChange) bool {
	name, rest, _ := strings.Cut(f.Path, ".")
	switch name {
	case "virtual_hosts", "ports", "active":
		return true
	}
	return strings.HasPrefix(name, "routes") && (rest == "" || rest == "path")
}

// hostsOf returns the virtual hosts of a proxy, anyHost if it has none; nil is none.
func hostsOf(p *config.Proxy) []string {
	switch {
	case p == nil || !p.Active:
		return nil
	case len(p.VirtualHosts) == 0:
		return []string{anyHost}
	}
	return p.VirtualHosts
}

// hostJudge compares who takes requests.
type hostJudge struct {
	r             *reviewer
	before, after *claims
	seen          map[string]bool
	looks         int
	fates         map[fate][]string // with the hosts
}

// compareOwners compares who takes the requests of a proxy's hosts and paths.
func (j *hostJudge) compareOwners(before, after *config.Proxy) {
	paths, hosts := map[string]bool{"": true}, map[string]bool{} // a name without the path / takes it from a wildcard
	var ports []string
	for _, p := range []*config.Proxy{before, after} {
		if p == nil {
			continue
		}
		ports = p.Ports
		for _, route := range p.Routes {
			paths[route.Prefix()] = true
		}
		for _, h := range hostsOf(p) {
			hosts[keyOf(h)] = true
		}
	}
	for _, host := range sortedKeys(hosts) {
		for _, path := range sortedKeys(paths) {
			j.looks += len(j.before.byHost[host]) + len(j.after.byHost[host]) + 1
			if at := host + " " + path + " " + strings.Join(ports, ","); j.looks < maxLooks && !j.seen[at] {
				j.seen[at] = true
				j.compare(host, path, ports)
			}
		}
	}
}

// compare compares who took the requests of a host for a path with who takes them.
func (j *hostJudge) compare(host, path string, ports []string) {
	was, is := j.before.ownerOf(host, path, ports), j.after.ownerOf(host, path, ports)
	if was.proxy == nil || is.proxy != nil && is.proxy.Name == was.proxy.Name {
		return
	}
	f := fate{from: was.proxy.Name, path: path}
	switch gone := len(j.after.byHost[host]) == 0; {
	case is.proxy == nil && gone:
		f.code, f.path, f.wholeHost = "host_lost", "", true
	case is.proxy == nil:
		f.code = "path_lost"
	default:
		f.code, f.to, f.toVia = "taken_over", is.proxy.Name, is.via
		if f.toVia == host {
			f.toVia = ""
		} else if f.toVia == anyHost {
			f.toVia = "*"
		}
		a, b := accessOf(was.proxy, was.route), accessOf(is.proxy, is.route)
		f.lessSecured = (a.basic != nil || a.forward != nil) && b.basic == nil && b.forward == nil || a.filter != nil && b.filter == nil
	}
	if list := j.fates[f]; len(list) == 0 || list[len(list)-1] != host {
		j.fates[f] = append(list, host)
	}
}

// addSentences adds the sentences about hosts.
func (j *hostJudge) addSentences() {
	keys := slices.SortedFunc(maps.Keys(j.fates), func(a, b fate) int {
		return strings.Compare(a.from+" "+a.to+" "+a.path+" "+a.code+a.toVia, b.from+" "+b.to+" "+b.path+" "+b.code+b.toVia)
	})
	for _, f := range keys {
		names := make([]string, 0, len(j.fates[f]))
		for _, h := range j.fates[f] {
			if h == anyHost {
				h = "every host that no proxy names"
			}
			names = append(names, shorten(h))
		}
		on := listed(names)
		if f.path != "" {
			on = shown(f.path) + " of " + on
		}
		gets := " gets 404 from now on"
		if f.path == "" && len(names) > 1 {
			gets = " get 404 from now on"
		}
		switch f.code {
		case "taken_over":
			severity, end := Warning, ""
			if f.lessSecured {
				severity, end = Danger, ", which lets in more clients"
			}
			if f.toVia == "*" {
				end = ", which takes every host that no other proxy names" + end
			} else if f.toVia != "" {
				end = " by its host " + shorten(f.toVia) + end
			}
			j.r.warn(j.owner(f), severity, f.code, "", "", ": requests for %s go to proxy %s%s; proxy %s had them", on, f.to, end, f.from)
		default:
			j.r.warn(Address{"proxies", f.from}, Warning, f.code, "", "", ": %s%s", on, gets)
		}
	}
}

// owner is the object at which a moved host is reported: the proxy that gets it, if the
// change affects it, else the previous one.
func (j *hostJudge) owner(f fate) Address {
	if at := (Address{"proxies", f.to}); j.r.objects[at] != nil {
		return at
	}
	return Address{"proxies", f.from}
}

// sortedKeys returns the keys of a set, sorted.
func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
