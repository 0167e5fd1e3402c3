package nginx

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// site is the hosts of a server for which its conditions have one value: all of them,
// if none is on the host.
type site struct {
	s      *server
	names  []string // virtual hosts; none is any host
	ports  []string // names of ports
	host   string   // its only host, if conditions match it
	secure bool     // one of its ports is https
	plain  bool     // one of its ports is http
	number string   // of its only port

	toHTTPS  *directive // all that it does is to send clients to https
	plainToo []string   // ports whose clients are sent to https
	gone     []string   // names of which another site sends clients to https
}

// writeServers makes proxies of all servers.
func (t *translator) writeServers() {
	var all []*site
	for _, s := range t.servers {
		all = append(all, t.sitesOf(s)...)
	}
	for _, s := range all {
		s.toHTTPS = t.onlyToHTTPS(s)
	}
	for _, s := range all {
		t.mergePlain(s, all)
	}
	for _, s := range all {
		if s.toHTTPS != nil && len(s.names) > 0 && len(s.gone) == len(s.names) {
			t.leftover(s)
			continue
		}
		s.names = slices.DeleteFunc(slices.Clone(s.names), func(n string) bool { return slices.Contains(s.gone, n) })
		t.write(s)
	}
	t.sayLocations()
	for _, s := range t.servers {
		t.neverHeld(s.d.block)
	}
	t.sayMaps()
}

// sitesOf splits a server if its conditions are on the scheme or the host.
func (t *translator) sitesOf(s *server) (out []*site) {
	whole := &site{s: s, names: s.names, ports: s.ports, secure: s.secure, plain: s.plain}
	if len(s.numbers) == 1 {
		whole.number = s.numbers[0]
	}
	var asked strings.Builder
	texts(s.d.block, &asked)
	text := asked.String()
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		if m := t.maps[found[1]]; m != nil { // what it compares counts, too
			text += " " + m.source
			for _, e := range m.d.block {
				text += " " + e.arg(0)
			}
		}
	}
	parts := []*site{whole}
	if s.secure && s.plain && schemeAsked.MatchString(text) {
		parts = t.bySchemes(s)
	}
	for _, p := range parts {
		if hostAsked.MatchString(text) {
			out = append(out, t.byHosts(p)...)
		} else {
			out = append(out, p)
		}
	}
	return out
}

var (
	schemeAsked = regexp.MustCompile(`\$\{?(scheme|https|server_port)\b`)
	hostAsked   = regexp.MustCompile(`\$\{?(http_)?host\b`)
)

// texts writes what the conditions of a block compare, and what the values that they
// compare are made of.
func texts(block []*directive, b *strings.Builder) {
	for _, d := range block {
		switch d.name {
		case "if", "set", "proxy_pass":
			b.WriteString(strings.Join(d.args, " ") + " ")
		case "return", "proxy_set_header", "add_header", "rewrite":
			for _, a := range d.args { // of maps only
				for _, found := range variable.FindAllString(a, -1) {
					if name := strings.Trim(found, "${}"); ours[name] == "" {
						b.WriteString(found + " ")
					}
				}
			}
		}
		texts(d.block, b)
	}
}

// bySchemes are the two sites of a server that listens with and without TLS.
func (t *translator) bySchemes(s *server) (out []*site) {
	for _, secure := range []bool{false, true} {
		p := &site{s: s, names: s.names, secure: secure, plain: !secure}
		var numbers []string
		for i, name := range s.ports {
			if t.securePort(name) == secure {
				p.ports, numbers = append(p.ports, name), append(numbers, s.numbers[i])
			}
		}
		if len(numbers) == 1 {
			p.number = numbers[0]
		}
		out = append(out, p)
	}
	return out
}

func (t *translator) securePort(name string) bool {
	return !strings.HasPrefix(name, "web") || strings.HasPrefix(name, "websecure")
}

// byHosts makes a site of the hosts for which all conditions have the same answers.
func (t *translator) byHosts(p *site) (out []*site) {
	same := map[string]*site{}
	for _, name := range t.hostsOf(p) {
		one := *p
		one.names, one.host = nil, ""
		if name != "" {
			one.names = []string{name}
		}
		if name != "" && name[0] != '~' && name[0] != '*' {
			one.host = name
		}
		key := t.answers(&one)
		if before := same[key]; before != nil && one.host != "" && before.host != "" {
			before.names = append(before.names, name)
			continue
		}
		same[key] = &one
		out = append(out, &one)
	}
	return out
}

// hostsOf are the names of a site, and the hosts in its conditions if these belong to it
// by a wildcard or an expression, or since it has no names.
func (t *translator) hostsOf(p *site) []string {
	names := slices.Clone(p.names)
	add := func(host string) {
		host = strings.ToLower(host)
		if exactHost.MatchString(host) && !slices.Contains(names, host) && belongs(p.names, host) {
			names = append(names, host)
		}
	}
	var visit func(block []*directive)
	visit = func(block []*directive) {
		for _, d := range block {
			if d.name == "if" {
				if name, _, value := ifWords(d); hostAsked.MatchString(name) {
					add(value)
				}
			}
			visit(d.block)
		}
	}
	visit(p.s.d.block)
	for _, m := range t.maps {
		if hostAsked.MatchString(m.source) && len(m.exact) <= maxMapEntries {
			for _, e := range m.exact {
				add(e.name)
			}
		}
	}
	if len(p.names) == 0 {
		names = append(names, "")
	}
	sort.Strings(names[len(p.names):])
	return names
}

var exactHost = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)

// belongs reports whether a host is one of names that are not exact.
func belongs(names []string, host string) bool {
	if len(names) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		if rest, ok := strings.CutPrefix(n, "*."); ok {
			_, parent, _ := strings.Cut(host, ".")
			return parent == rest
		}
		if !strings.HasPrefix(n, "~") {
			return false
		}
		re, err := regexp.Compile(n[1:])
		return err == nil && re.MatchString(host)
	})
}

// answers is a text that is equal for two hosts if every condition on the host has the
// same result.
func (t *translator) answers(p *site) string {
	v := &view{t: t, site: p, vars: map[string]string{}}
	var b strings.Builder
	var visit func(block []*directive)
	visit = func(block []*directive) {
		for _, d := range block {
			if d.name == "if" {
				if name, _, _ := ifWords(d); hostAsked.MatchString(name) {
					c, groups := v.condition(d)
					fmt.Fprintf(&b, "%d %v|", len(c.Any), groups)
				}
			} else if d.name == "set" && hostAsked.MatchString(d.arg(1)) || d.name == "proxy_pass" && hostAsked.MatchString(d.arg(0)) {
				b.WriteString(p.host + "|")
			}
			visit(d.block)
		}
	}
	visit(p.s.d.block)
	names := make([]string, 0, len(t.maps))
	for name, m := range t.maps {
		if hostAsked.MatchString(m.source) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		value, _ := v.mapped(t.maps[name])
		b.WriteString(name + "=" + value + "|")
	}
	return b.String()
}

// onlyToHTTPS returns the return with which a site redirects all clients to https, nil
// if it does anything else. Requests of certificate authorities are not redirected
// here, either.
func (t *translator) onlyToHTTPS(s *site) *directive {
	if s.secure {
		return nil
	}
	v := &view{t: t, site: s, vars: map[string]string{}}
	f := &flow{}
	quiet := *t
	quiet.Translation = importer.NewTranslation("")
	v.t = &quiet
	block := s.s.d.block
	if slices.ContainsFunc(block, func(d *directive) bool { return d.name == "rewrite" }) {
		return nil
	}
	var atoms int
	v.gather(block, func(*rules.Atom) { atoms++ })
	if atoms > 0 {
		return nil
	}
	t.quietly(block, func() { v.run(f, block) })
	if f.answer == nil {
		for _, l := range s.s.d.find("location") {
			path := l.arg(len(l.args) - 1)
			switch {
			case strings.HasPrefix(path, acmePath):
			case path == "/" && len(l.find("return")) == 1 && len(l.find("if")) == 0:
				f.answer = l.find("return")[0]
			default:
				return nil
			}
		}
	}
	if f.answer == nil || !isToHTTPS(f.answer, s) {
		return nil
	}
	return f.answer
}

// quietly calls f and reverts which directives have verdicts.
func (t *translator) quietly(block []*directive, f func()) {
	settled := map[*directive]bool{}
	var visit func([]*directive, func(*directive))
	visit = func(list []*directive, each func(*directive)) {
		for _, d := range list {
			each(d)
			visit(d.block, each)
		}
	}
	visit(block, func(d *directive) { settled[d] = d.Settled() })
	f()
	visit(block, func(d *directive) {
		if !settled[d] && d.Settled() {
			d.Origin = importer.Origin{File: d.File, Line: d.Line}
		}
	})
}

// acmePath is the prefix of requests of certificate authorities.
const acmePath = "/.well-known/acme-challenge"

// isToHTTPS reports whether a return sends clients to the same URL by https.
func isToHTTPS(d *directive, s *site) bool {
	code, url := returned(d)
	host, ok := strings.CutPrefix(url, "https://")
	host, okay := strings.CutSuffix(host, "$request_uri")
	if !ok || !okay || !isRedirect(code) || code == 303 {
		return false
	}
	return host == "$host" || host == "$http_host" || len(s.names) == 1 && (host == "$server_name" && s.s.firstName == s.names[0] || host == s.names[0])
}

// mergePlain adds the ports at which other sites redirect all of its hosts to it to a
// site with https.
func (t *translator) mergePlain(s *site, all []*site) {
	if !s.secure || s.plain || len(s.names) == 0 {
		return
	}
	var from []*site
	for _, name := range s.names {
		i := slices.IndexFunc(all, func(o *site) bool { return o.toHTTPS != nil && slices.Contains(o.names, name) })
		if i < 0 || len(from) > 0 && !slices.Equal(from[0].ports, all[i].ports) {
			return
		}
		from = append(from, all[i])
	}
	for i, o := range from {
		o.gone = append(o.gone, s.names[i])
		t.Became(o.toHTTPS, importer.Close, importer.Value("redirect_http_to_https", true), "redirect_http_to_https of the proxy with these hosts: GET and HEAD get 301, other methods 308, the port of the https port is written, and requests of certificate authorities are not redirected; rules for headers of the proxy hold for the redirect, too")
	}
	s.plainToo = from[0].ports
}

// leftover adds a verdict to the other directives of a server that was
// merged.
func (t *translator) leftover(s *site) {
	merged := importer.Value("redirect_http_to_https", true)
	t.Became(s.s.d, importer.Same, merged, "")
	for _, d := range s.s.d.find("server_name") {
		t.Became(d, importer.Same, merged, "")
	}
	var visit func(block []*directive)
	visit = func(block []*directive) {
		for _, d := range block {
			if d.name == "if" && !d.Settled() {
				t.Became(d, importer.Same, importer.Value("redirect_http_to_https", true), "by the host")
				t.held[d] = true
			}
			if !d.Settled() {
				t.known(d)
			}
			t.AddVerdict(d, importer.Ignored, "the server only sends clients to https")
			visit(d.block)
		}
	}
	visit(s.s.d.block)
}

// neverHeld reports conditions that no request meets.
func (t *translator) neverHeld(block []*directive) {
	for _, d := range block {
		if d.name == "if" && !t.held[d] && d.Settled() && d.Verdict() != importer.Impossible {
			t.Amend(d, importer.Ignored, "no request that comes here meets the condition")
			ignoreAll(t, d.block, "no request that comes here meets the condition")
		}
		t.neverHeld(d.block)
	}
}

func ignoreAll(t *translator, block []*directive, note string) {
	for _, d := range block {
		t.AddVerdict(d, importer.Ignored, "%s", note)
		ignoreAll(t, d.block, note)
	}
}

// proxyName returns a name for the proxy of a site.
func (t *translator) proxyName(s *site) string {
	name := "default"
	for _, n := range s.names {
		if !strings.HasPrefix(n, "~") {
			name = strings.NewReplacer("*.", "wildcard-", ".", "-").Replace(n)
			break
		}
	}
	return importer.Unused(t.Proxies, name, "default")
}
