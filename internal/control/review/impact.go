package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/internal/config"
)

// touch finds the proxies that act otherwise: those that changed, and those whose
// policies or defaults did.
func (r *reviewer) touch() {
	policies, defaults := map[string]bool{}, false
	for _, o := range r.Difference.Objects {
		switch o.Kind {
		case "proxies":
			r.touched[o.Name] = true
		case "policies":
			policies[o.Name] = true
		case "defaults":
			defaults = true
		}
	}
	if len(policies) == 0 && !defaults {
		return
	}
	uses := func(use []string) bool {
		return slices.ContainsFunc(use, func(name string) bool { return policies[name] })
	}
	users := map[string]int{}
	for name, p := range r.After.Proxies {
		w := p.Written()
		if !defaults && !uses(w.Use) && !slices.ContainsFunc(w.Routes, func(route *config.Route) bool { return uses(route.Use) }) {
			continue
		}
		r.touched[name] = true
		for policy := range policies {
			if slices.Contains(w.Use, policy) || slices.ContainsFunc(w.Routes, func(route *config.Route) bool { return slices.Contains(route.Use, policy) }) {
				users[policy]++
			}
		}
	}
	r.tellUsers(users, defaults)
}

// tellUsers says how many proxies have the policies and defaults that changed.
func (r *reviewer) tellUsers(users map[string]int, defaults bool) {
	const many = 10 // from here on a change of something shared wants a second look
	tell := func(at Address, n int) {
		severity := Info
		if n >= many {
			severity = Warning
		}
		r.warn(at, severity, "shared", "", "", ": %s it", counted(n, "proxy uses", "proxies use"))
	}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		if users[name] > 0 {
			tell(Address{"policies", name}, users[name])
		}
	}
	if n := len(r.After.Proxies); defaults && n > 0 {
		tell(Address{Kind: "defaults"}, n)
	}
}

// impact counts what is affected.
func (r *reviewer) impact() Impact {
	i := Impact{Proxies: len(r.touched), NeedPassword: len(r.needs), NeedNoPassword: len(r.frees)}
	hosts := map[string]bool{}
	for name := range r.touched {
		for _, c := range []*config.Config{r.Before, r.After} {
			if p := c.Proxies[name]; p != nil {
				for _, h := range p.VirtualHosts {
					hosts[h] = true
				}
			}
		}
	}
	if i.Hosts = len(hosts); r.Running != nil {
		i.Connections = &r.drains
	}
	return i
}

// addHosts adds the hosts of a proxy.
func (r *reviewer) addHosts(o *Object) {
	if o.Kind != "proxies" {
		return
	}
	hosts := map[string]bool{}
	for _, c := range []*config.Config{r.Before, r.After} {
		if p := c.Proxies[o.Name]; p != nil {
			for _, h := range p.VirtualHosts {
				hosts[h] = true
			}
		}
	}
	o.HostCount = len(hosts)
	sorted := slices.Sorted(maps.Keys(hosts))
	o.Hosts = sorted[:min(len(sorted), 2*maxNames)]
}

// summary is the change in one line.
func (r *reviewer) summary(i Impact) string {
	if r.Difference.Empty() {
		return "nothing changes"
	}
	var changes []string
	for _, k := range config.Kinds() {
		switch n := len(r.Difference.Of(k.Name)); {
		case n == 0:
		case k.Single:
			changes = append(changes, k.Noun)
		default:
			changes = append(changes, counted(n, k.Noun, plural(k.Noun)))
		}
	}
	verb := " change"
	if len(r.Difference.Objects) == 1 && !strings.HasSuffix(changes[0], "s") {
		verb = " changes"
	}
	out := []string{joined(changes) + verb}
	if i.Hosts > 0 {
		out = append(out, counted(i.Hosts, "host is affected", "hosts are affected"))
	} else if i.Proxies > 0 {
		out = append(out, counted(i.Proxies, "proxy is affected", "proxies are affected"))
	}
	if i.NeedPassword > 0 {
		out = append(out, counted(i.NeedPassword, "host now needs a password", "hosts now need a password"))
	}
	if i.NeedNoPassword > 0 {
		out = append(out, counted(i.NeedNoPassword, "host no longer needs a password", "hosts no longer need a password"))
	}
	if i.Connections != nil && *i.Connections > 0 {
		out = append(out, counted(*i.Connections, "connection will drain", "connections will drain"))
	}
	return strings.Join(out, "; ")
}

// counted returns a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// plural returns the plural of a noun of the table of kinds, or of an element.
func plural(noun string) string {
	switch {
	case strings.HasSuffix(noun, "xy"), strings.HasSuffix(noun, "cy"), strings.HasSuffix(noun, "ry"):
		return noun[:len(noun)-1] + "ies"
	}
	return noun + "s"
}

// joined joins words to a list: "a, b and c".
func joined(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// listed joins the first names of a list, and says how many more there are.
func listed(names []string) string {
	if n := len(names) - maxNames; n > 1 {
		return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return joined(names)
}
