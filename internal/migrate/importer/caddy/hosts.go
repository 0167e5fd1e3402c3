package caddy

import (
	"net"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// The bounds of how many proxies a site may become, and of how many directives are read
// for all of them.
const (
	maxHostGroups = 500
	maxHostWork   = 2_000_000
)

// hostMatcher is a named matcher that asks for hosts.
type hostMatcher struct {
	name  string
	hosts []string
	rest  *directive // what it asks for besides
}

// hostGroup are hosts of a site for which the same matchers hold.
type hostGroup struct {
	addresses []string
	holds     []bool // by matcher
}

// byHosts makes a site, such as *.example.com, whose directives are chosen by hosts, a
// site for each group of hosts for which the same directives count: what Caddy chooses by
// a matcher, headgate chooses by the virtual hosts of proxies. It reports whether it did.
func (t *translator) byHosts(d *directive) bool {
	all := hostMatchersOf(d)
	groups := hostGroupsOf(d, all)
	if len(all) == 0 || len(groups) > maxHostGroups || len(groups)*count(d.block) > maxHostWork {
		return false
	}
	done := map[*directive]bool{}
	for _, g := range groups {
		s := &site{d: &directive{Origin: d.Origin, words: g.addresses, block: d.block, open: true}, matchers: map[string]*directive{}, never: map[string]bool{}}
		for i, m := range all {
			s.matchers[m.name], s.never[m.name] = m.rest, !g.holds[i]
		}
		t.one(s)
		settled(d.block, done)
		for _, c := range d.block {
			undo(c)
		}
	}
	for c := range done {
		c.Settle()
	}
	t.outside(d, all, groups)
	return true
}

// count counts directives and those in their blocks.
func count(list []*directive) int {
	n := len(list)
	for _, d := range list {
		n += count(d.block)
	}
	return n
}

// outside tells what is for hosts that the site has not.
func (t *translator) outside(d *directive, all []hostMatcher, groups []hostGroup) {
	for i, m := range all {
		if slices.ContainsFunc(groups, func(g hostGroup) bool { return g.holds[i] }) {
			continue
		}
		for _, c := range d.block {
			if c.arg(0) == m.name {
				t.sayAll(c, importer.Ignored, "the site has no address that takes the hosts of "+m.name)
			}
		}
	}
}

// settled notes which directives have a verdict or need none.
func settled(list []*directive, into map[*directive]bool) {
	for _, d := range list {
		if d.Settled() {
			into[d] = true
		}
		settled(d.block, into)
	}
}

// hostMatchersOf returns the matchers of a site that ask for hosts by name.
func hostMatchersOf(d *directive) (out []hostMatcher) {
	for _, c := range d.block {
		if !strings.HasPrefix(c.name(), "@") {
			continue
		}
		list := c.block
		if !c.open {
			list = []*directive{{Origin: c.Origin, words: c.args()}}
		}
		m := hostMatcher{name: c.name(), rest: &directive{Origin: c.Origin, words: c.words[:1], open: true}}
		for _, one := range list {
			if one.name() != "host" {
				m.rest.block = append(m.rest.block, one)
				continue
			}
			for _, h := range one.args() {
				m.hosts = append(m.hosts, folded(h))
			}
		}
		if len(m.hosts) > 0 && !slices.ContainsFunc(m.hosts, isPattern) {
			out = append(out, m)
		}
	}
	return out
}

// isPattern reports whether a host of a matcher is more than a name, *. and a name, or
// one with a value of the environment in it.
func isPattern(host string) bool {
	return strings.ContainsAny(strings.TrimPrefix(host, "*."), "*/") || strings.Contains(strings.ReplaceAll(host, "{$", ""), "{")
}

// folded returns a host in lower case, unless it names a value of the environment.
func folded(host string) string {
	if strings.Contains(host, "{$") {
		return host
	}
	return strings.ToLower(host)
}

// hostGroupsOf divides the hosts of a site's addresses, and those below them that matchers
// name, by which matchers hold. The order is that of the site, then that of the matchers.
func hostGroupsOf(d *directive, all []hostMatcher) []hostGroup {
	var groups []hostGroup
	at := map[string]int{}
	seen := map[string]bool{}
	add := func(host string) {
		addresses := addressesFor(d, host)
		if seen[host] || len(addresses) == 0 || len(groups) > maxHostGroups {
			return
		}
		seen[host] = true
		holds := make([]bool, len(all))
		key := make([]byte, len(all))
		for i, m := range all {
			if holds[i] = slices.ContainsFunc(m.hosts, func(of string) bool { return covers(of, host) }); holds[i] {
				key[i] = 1
			}
		}
		n, known := at[string(key)]
		if !known {
			n = len(groups)
			at[string(key)] = n
			groups = append(groups, hostGroup{holds: holds})
		}
		groups[n].addresses = append(groups[n].addresses, addresses...)
	}
	for _, address := range addressesOf(d) {
		add(address.host)
	}
	for _, m := range all {
		for _, host := range m.hosts {
			add(host)
		}
	}
	return groups
}

// covers reports whether a host of Caddy takes another: itself, and with *. every name
// one label below it.
func covers(of, host string) bool {
	if of == host || of == "" {
		return true
	}
	below, ok := strings.CutPrefix(of, "*")
	_, rest, found := strings.Cut(host, ".")
	return ok && found && "."+rest == below && !strings.HasPrefix(host, "*")
}

// addressesFor returns the addresses of a site that take a host, with that host.
func addressesFor(d *directive, host string) (out []string) {
	for _, a := range addressesOf(d) {
		if covers(a.host, host) {
			a.host = host
			out = append(out, a.String())
		}
	}
	return out
}

// address is an address of a site: [scheme://][host][:port][/path]. The host of any is "".
type address struct{ text, scheme, host, port, path string }

func (a address) String() string {
	host := a.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.scheme != "" {
		host = a.scheme + "://" + host
	}
	if a.port != "" {
		host += ":" + a.port
	}
	if a.path != "" {
		host += "/" + a.path
	}
	return host
}

// addressesOf returns the addresses of a site.
func addressesOf(d *directive) (out []address) {
	for _, word := range d.words {
		for _, text := range strings.Split(strings.Trim(word, ","), ",") {
			if text == "" {
				continue
			}
			a := address{text: text}
			scheme, rest, ok := strings.Cut(text, "://")
			if !ok {
				scheme, rest = "", text
			}
			a.scheme = scheme
			rest, a.path, _ = strings.Cut(rest, "/")
			host, port, err := net.SplitHostPort(rest)
			if err != nil {
				host, port = rest, ""
			}
			if a.host, a.port = folded(strings.Trim(host, "[]")), port; a.host == "*" {
				a.host = ""
			}
			out = append(out, a)
		}
	}
	return out
}

// counts returns the directives of a block that count for the hosts of a site: those
// whose matcher never holds are left out, and so are those that come after one of their
// kind which takes every request of these hosts.
func (s *site) counts(list []*directive) []*directive {
	if len(s.never) == 0 {
		return list
	}
	first := map[string]*directive{}
	whole := func(d *directive) bool {
		m := s.matchers[d.arg(0)]
		_, byHost := s.never[d.arg(0)]
		return byHost && m != nil && len(m.block) == 0
	}
	var out []*directive
	for _, d := range list {
		if s.never[d.arg(0)] {
			continue
		}
		if whole(d) && first[d.name()] == nil && slices.Contains(answering, d.name()) {
			first[d.name()] = d
		}
		out = append(out, d)
	}
	return slices.DeleteFunc(out, func(d *directive) bool {
		f := first[d.name()]
		return f != nil && f != d && (whole(d) || everything(d))
	})
}

// answering are the directives of which only one is for a request.
var answering = []string{"handle", "reverse_proxy", "respond", "redir", "abort", "error", "php_fastcgi", "file_server"}

// everything reports whether a directive has no matcher.
func everything(d *directive) bool {
	first := d.arg(0)
	return !strings.HasPrefix(first, "@") && !(strings.HasPrefix(first, "/") && (len(d.args()) > 1 || d.open))
}
