package review

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/config/document"
	"headgate/internal/feature/redirects"
)

// judgeFields describes what single fields open. Access of proxies is not among them: it
// depends on several fields.
func (r *reviewer) judgeFields() {
	for i := range r.Difference.Objects {
		o := &r.Difference.Objects[i]
		at := Address{o.Kind, o.Name}
		if o.Change == diff.Removed {
			continue
		}
		for j := range o.Fields {
			r.judgeField(at, &o.Fields[j])
		}
		switch o.Kind {
		case "proxies":
			r.judgeServers(at, r.Before.Proxies[o.Name], r.After.Proxies[o.Name])
		case "tcp_proxies":
			r.judgeStream(at, r.Before.TCPProxies[o.Name], r.After.TCPProxies[o.Name])
		case "admin":
			r.judgeAdmin(at)
		}
	}
}

// judgeField describes what one field opens.
func (r *reviewer) judgeField(at Address, f *diff.FieldChange) {
	warn := func(s Severity, code, text, remedy string) { r.warn(at, s, code, f.Path, remedy, "%s", around(f)+text) }
	on, off := string(f.After) == "true", string(f.After) != "true"
	name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
	switch {
	case f.Path == "tls.min_version" && text(f.After) < text(f.Before):
		warn(Warning, "tls_lowered", "older clients may speak TLS "+text(f.After), "")
	case f.Path == "tls.client_auth" && text(f.Before) == string(config.ClientAuthRequired):
		warn(Danger, "access_opened", "clients without a certificate are let in", "")
	case f.Path == "protocol" && text(f.After) == string(config.HTTP):
		warn(Danger, "tls_removed", "clients speak to the port without TLS", "")
	case name == "allow_trace" && on:
		warn(Warning, "trace_allowed", "TRACE requests show clients the request as the server got it", "")
	case name == "ambiguous_paths" && text(f.After) == string(config.AllowAmbiguous):
		warn(Warning, "ambiguous_allowed", "paths that a server may read as another route's are passed on", "")
	case name == "redirect_http_to_https" && off && (f.Change == diff.Removed || string(f.After) == "false"):
		warn(Warning, "http_stays", "clients that come over plain HTTP stay there", "")
	case name == "forward_credentials" && on:
		warn(Warning, "credentials_forwarded", "servers get the names and passwords of users", "")
	case name == "request_body_limit" && (f.Change == diff.Removed || string(f.After) == `"0"`):
		warn(Warning, "limit_removed", "request bodies may have any size that is not limited elsewhere", "")
	case name == "trusted" && (strings.HasSuffix(f.Path, "client_ip.trusted") || strings.Contains(f.Path, "proxy_protocol")):
		if wide := everyAddress(f.After); wide != "" {
			warn(Danger, "everybody_trusted", "every client is trusted about its address, because of "+wide, "name the proxies in front alone")
		}
	}
}

// around returns the description of the parts around a field, ": route /api: ".
func around(f *diff.FieldChange) string {
	if f.Within == "" {
		return ": "
	}
	return ": " + shorten(f.Within) + ": "
}

// everyAddress returns the network of a list that contains every address.
func everyAddress(raw json.RawMessage) string {
	var list []string
	_ = json.Unmarshal(raw, &list)
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil && p.Bits() == 0 {
			return text
		}
	}
	return ""
}

// judgeServers reports servers whose certificates are no longer verified, and routes whose
// servers get no new clients.
func (r *reviewer) judgeServers(at Address, before, after *config.Proxy) {
	var was map[string]bool
	if before != nil {
		was = unchecked(before)
	}
	for _, url := range sortedKeys(unchecked(after)) {
		if !was[url] {
			r.warn(at, Danger, "certificate_unchecked", "", "name its authority with ca_file instead", ": server %s is trusted whatever certificate it presents", shorten(url))
		}
	}
	weightless := func(p *config.Proxy, route *config.Route) bool {
		takes := func(s *config.Server) bool { return s.Weight > 0 && !s.Backup }
		return p != nil && route != nil && p.Active && len(route.Servers) > 0 && !slices.ContainsFunc(route.Servers, takes)
	}
	for _, route := range after.Routes {
		if !weightless(after, route) {
			continue
		}
		if old := sameRoute(before, route); old != nil && weightless(before, old) {
			continue
		}
		r.warn(at, Warning, "no_server", "", "give a server that is no backup a weight", ": route %s has no server with a weight, new clients go to the backups", shorten(route.Path))
	}
}

// sameRoute returns the route of a proxy with the same path and matchers, nil if there is none.
func sameRoute(p *config.Proxy, like *config.Route) *config.Route {
	if p == nil {
		return nil
	}
	for _, r := range p.Routes {
		if labelOf(r) == labelOf(like) {
			return r
		}
	}
	return nil
}

// unchecked returns the servers of a proxy whose certificates are not checked.
func unchecked(p *config.Proxy) map[string]bool {
	out := map[string]bool{}
	for _, route := range p.Routes {
		servers := route.Servers
		if route.Mirror != nil {
			servers = slices.Concat(servers, route.Mirror.Servers)
		}
		for _, s := range servers {
			if s.TLS != nil && s.TLS.InsecureSkipVerify {
				out[s.URL] = true
			}
		}
	}
	return out
}

// judgeStream is judgeServers for TCP proxies.
func (r *reviewer) judgeStream(at Address, before, after *config.TCPProxy) {
	unchecked := func(s *config.StreamServer) bool { return s.TLS != nil && s.TLS.InsecureSkipVerify }
	for _, s := range after.Servers {
		same := func(o *config.StreamServer) bool { return o.Address == s.Address && unchecked(o) }
		if unchecked(s) && (before == nil || !slices.ContainsFunc(before.Servers, same)) {
			r.warn(at, Danger, "certificate_unchecked", "", "name its authority with ca_file instead", ": server %s is trusted whatever certificate it presents", shorten(s.Address))
		}
	}
}

// judgeAdmin reports an admin listener that other machines can reach, and passkeys that can no
// longer be used.
func (r *reviewer) judgeAdmin(at Address) {
	r.judgePasskeys(at)
	before, after := r.Before.Admin.Address, r.After.Admin.Address
	switch {
	case !after.IsValid() && before.IsValid():
		r.warn(at, Warning, "admin_closed", "address", "", ": metrics, status and the API are answered nowhere")
	case after.IsValid() && !after.Addr().IsLoopback() && (!before.IsValid() || before.Addr().IsLoopback()):
		// there it requires TLS and a sign-in
		r.warn(at, Warning, "admin_opened", "address", "restrict access with a firewall", ": other machines can reach it at %v, with TLS and a sign-in", after)
	}
}

// judgePasskeys reports the passkeys of users at host names that the console loses.
func (r *reviewer) judgePasskeys(at Address) {
	if r.Running == nil || r.Running.Passkeys == nil {
		return
	}
	lost := 0
	for _, host := range r.Before.Admin.Hosts {
		if !slices.Contains(r.After.Admin.Hosts, host) {
			lost += r.Running.Passkeys(host)
		}
	}
	if lost > 0 {
		r.warn(at, Warning, "passkeys_end", "hosts", "keep the host until their users have added passkeys at another one", ": %s can no longer be used; their users sign in with password and code", counted(lost, "passkey of a user", "passkeys of users"))
	}
}

// judgeRules reports changed redirect rules that can never match.
func (r *reviewer) judgeRules() {
	for _, o := range r.Difference.Objects {
		if o.Change == diff.Removed {
			continue
		}
		at := Address{o.Kind, o.Name}
		if o.Change == diff.Changed && !slices.ContainsFunc(o.Fields, func(f diff.FieldChange) bool {
			return strings.Contains(f.Path, "redirects") || strings.HasPrefix(f.Path, "routes") || f.Path == "virtual_hosts"
		}) {
			continue
		}
		switch o.Kind {
		case "proxies":
			p := r.After.Proxies[o.Name].Written()
			r.deadRules(at, "", p.Redirects)
			for _, route := range p.Routes {
				r.deadRules(at, route.Prefix(), route.Redirects)
			}
			r.deadHosts(at, p)
		case "policies":
			r.deadRules(at, "", r.After.Policies[o.Name].Redirects)
		case "defaults":
			r.deadRules(at, "", r.After.Defaults.Redirects)
		}
	}
}

// deadRules reports the rules of a list that can never match: because an earlier one
// matches everything, or because no path of the route has the required beginning.
func (r *reviewer) deadRules(at Address, prefix string, rules redirects.Config) {
	on := ": redirect rule "
	if prefix != "" {
		on = ": route " + shorten(prefix) + ", redirect rule "
	}
	var all string // the first rule that takes every path
	seen := map[string]bool{}
	for i := range rules {
		text := rules[i].Regex
		begins, anchored := anchoredText(text)
		switch {
		case all != "":
			r.warn(at, Warning, "never_matches", "", "move it before that rule, or remove it", "%s can never match: rule %s before it takes every path", on+shorten(text), shorten(all))
		case seen[text]:
			r.warn(at, Warning, "never_matches", "", "remove one of them", "%s can never match: it is listed twice", on+shorten(text))
		case anchored && !strings.HasPrefix(begins, "/") && begins != "":
			r.warn(at, Warning, "never_matches", "", "begin it with ^/", "%s can never match: paths begin with /", on+shorten(text))
		case anchored && prefix != "" && !strings.HasPrefix(begins, prefix) && !strings.HasPrefix(prefix, begins):
			r.warn(at, Warning, "never_matches", "", "paths are matched as clients send them, with the route's path", "%s can never match: the route takes paths below %s only", on+shorten(text), shorten(prefix))
		}
		seen[text] = true
		if all == "" && takesAll(text, prefix) {
			all = text
		}
	}
}

// anchoredText returns the text that a match has to begin with, if the expression
// begins at the begin of a path.
func anchoredText(expr string) (string, bool) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", false
	}
	re = re.Simplify()
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return "", false
	}
	if len(re.Sub) > 1 && re.Sub[1].Op == syntax.OpLiteral && re.Sub[1].Flags&syntax.FoldCase == 0 {
		return string(re.Sub[1].Rune), true
	}
	return "", true
}

// takesAll reports whether an expression matches every path of a route.
func takesAll(expr, prefix string) bool {
	switch expr {
	case "", "^", "/", "^/", ".*", "^.*", "^.*$", "^/.*", "^/.*$", "(.*)", "^(.*)$", "^/(.*)", "^/(.*)$":
		return true
	}
	begins, anchored := anchoredText(expr)
	return anchored && prefix != "" && begins != "" && strings.HasPrefix(prefix, begins) && expr == "^"+regexp.QuoteMeta(begins)
}

// deadHosts reports virtual hosts that no request can have: hosts are compared in lower
// case.
func (r *reviewer) deadHosts(at Address, p *config.Proxy) {
	for _, h := range p.VirtualHosts {
		expr, ok := strings.CutPrefix(h, "~")
		if !ok {
			continue
		}
		if re, err := syntax.Parse(expr, syntax.Perl); err == nil && needsCapital(re) {
			r.warn(at, Warning, "never_matches", "virtual_hosts", "write it in lower case", ": host %s can never match: hosts are compared in lower case", shorten(h))
		}
	}
}

// needsCapital reports whether every match of an expression contains a capital letter.
func needsCapital(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return re.Flags&syntax.FoldCase == 0 && slices.ContainsFunc(re.Rune, func(c rune) bool { return c >= 'A' && c <= 'Z' })
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		return slices.ContainsFunc(re.Sub, needsCapital)
	}
	return false
}

// addressOf returns the object that a path leads to, and the rest of it.
func addressOf(path string) (Address, string) {
	kind, rest := document.CutStep(path)
	k := config.KindOf(kind.Name)
	if k == nil || k.Single {
		return Address{Kind: kind.Name}, rest
	}
	name, rest := document.CutStep(rest)
	return Address{k.Name, name.Name}, rest
}
