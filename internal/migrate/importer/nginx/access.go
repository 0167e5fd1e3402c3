package nginx

import (
	"bufio"
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// access says who is let in.
func (c *content) access() {
	c.filter()
	c.password()
	c.authRequest()
	if d := c.scope.last("satisfy"); d != nil {
		if d.arg(0) == "any" {
			c.t.Say(d, importer.Impossible, "address and password are both asked for here, which is stricter")
			c.t.Check("proxy %s, path %s: satisfy any let in who had the address or the password; both are asked for", c.name, orRoot(c.path))
		} else {
			c.t.Say(d, importer.Same, "")
		}
	}
}

// maxNetworks bounds the networks that a list of allow and deny becomes.
const maxNetworks = 5000

// filter makes an ip_filter of allow and deny, of which the first that has the client
// counts.
func (c *content) filter() {
	var allow, deny, before []netip.Prefix
	closed, open := false, false
	list := c.scope.level("allow", "deny")
	for _, d := range list {
		who := d.arg(0)
		if strings.HasPrefix(who, "unix:") {
			c.t.Say(d, importer.Ignored, "clients come by IP")
			continue
		}
		if who == "all" {
			closed, open = closed || d.name == "deny" && !open, open || d.name == "allow" && !closed
			c.t.Say(d, importer.Same, "")
			continue
		}
		p, ok := network(who)
		if !ok {
			c.t.Say(d, importer.Impossible, "not an address or network")
			continue
		}
		c.t.Say(d, importer.Same, "")
		if closed || open {
			continue
		}
		rest := without([]netip.Prefix{p}, before)
		before = append(before, p)
		if d.name == "allow" {
			allow = append(allow, rest...)
		} else {
			deny = append(deny, rest...)
		}
		if len(allow)+len(deny) > maxNetworks {
			c.t.Check("proxy %s: allow and deny stand for more than %d networks: write ip_filter by hand", c.name, maxNetworks)
			return
		}
	}
	switch {
	case closed && len(allow) > 0:
		c.o.Set("ip_filter", importer.NewObject().Set("allow", networks(allow)).Flow())
	case closed:
		c.o.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
		for _, name := range serving {
			c.o.Remove(name)
		}
	case len(deny) > 0:
		c.o.Set("ip_filter", importer.NewObject().Set("deny", networks(deny)).Flow())
	}
}

// serving are the fields of a route that has servers.
var serving = []string{"servers", "strip_prefix", "load_balancing", "ejection", "sticky_cookie", "timeouts", "retry", "slow_start", "rewrite"}

func network(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(text)
	return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == ""
}

// without returns networks without the addresses of others.
func without(all, others []netip.Prefix) []netip.Prefix {
	for _, o := range others {
		var next []netip.Prefix
		for _, p := range all {
			next = append(next, minus(p, o)...)
		}
		all = next
	}
	return all
}

// minus is a network without another one, as networks.
func minus(p, o netip.Prefix) []netip.Prefix {
	switch {
	case !p.Overlaps(o):
		return []netip.Prefix{p}
	case o.Bits() <= p.Bits():
		return nil
	}
	var out []netip.Prefix
	for bits := p.Bits() + 1; bits <= o.Bits(); bits++ {
		out = append(out, sibling(netip.PrefixFrom(o.Addr(), bits).Masked()))
	}
	return out
}

// sibling is the other half of the network one bit wider.
func sibling(p netip.Prefix) netip.Prefix {
	b := p.Addr().AsSlice()
	bit := p.Bits() - 1
	b[bit/8] ^= 1 << (7 - bit%8)
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, p.Bits())
}

func networks(all []netip.Prefix) (out []string) {
	for _, p := range all {
		if p.IsSingleIP() {
			out = append(out, p.Addr().String())
		} else {
			out = append(out, p.String())
		}
	}
	return out
}

// password makes basic_auth of auth_basic.
func (c *content) password() {
	d := c.scope.last("auth_basic")
	if d == nil {
		return
	}
	if d.arg(0) == "off" {
		c.t.Say(d, importer.Same, "")
		return
	}
	c.t.Say(d, importer.Close, "the challenge names UTF-8, and an address with many wrong passwords gets 429 for a while")
	file := c.scope.last("auth_basic_user_file")
	if file == nil {
		c.t.Say(d, importer.Impossible, "it has no auth_basic_user_file")
		return
	}
	c.users(file, d.arg(0))
}

// shut lets nobody in.
func (c *content) shut() {
	c.o.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
	for _, name := range serving {
		c.o.Remove(name)
	}
}

// users takes the users of a password file.
func (c *content) users(d *directive, realm string) {
	data, err := c.t.read(c.t.path(d.arg(0)))
	if err != nil {
		c.t.Say(d, importer.Impossible, "the file cannot be read: %v; add its users under basic_auth", err)
		c.t.Check("proxy %s: nobody can sign in before basic_auth has users", c.name)
		c.shut()
		return
	}
	auth := importer.NewObject().Set("forward_credentials", true) // as nginx passes them on
	if realm != "" {
		auth.Set("realm", realm)
	}
	left := 0
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, hash, ok := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		hash, _, _ = strings.Cut(hash, ":")
		if !ok || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if !strings.HasPrefix(hash, "$apr1$") && !strings.HasPrefix(hash, "$2") {
			left++
			continue
		}
		auth.Append("users", importer.NewObject().Set("name", name).Set("password_hash", hash).Flow())
	}
	if !auth.Has("users") {
		c.t.Say(d, importer.Impossible, "none of its password hashes can be used; make new ones with headgate hash-password")
		c.shut()
		return
	}
	c.o.Set("basic_auth", auth)
	if left > 0 {
		c.t.Say(d, importer.Close, "%d users have password hashes that are too weak to be taken over; make new ones with headgate hash-password", left)
		return
	}
	c.t.Say(d, importer.Same, "")
}

// authRequest makes forward_auth of auth_request and the location that it asks.
func (c *content) authRequest() {
	d := c.scope.last("auth_request")
	if d == nil {
		return
	}
	if d.arg(0) == "off" {
		c.t.Say(d, importer.Same, "")
		return
	}
	url := c.authURL(d.arg(0))
	if url == "" {
		c.t.Say(d, importer.Impossible, "the location that it asks has no server that can be named; forward_auth names the URL of the auth server")
		c.t.Check("proxy %s, path %s: auth_request %s could not be taken over, and nobody is let in: write forward_auth: {url: …}", c.name, orRoot(c.path), d.arg(0))
		c.shut()
		return
	}
	o := importer.NewObject().Set("url", url)
	var fields []string
	answers := map[string]string{} // by variable
	for _, set := range c.scope.level("auth_request_set") {
		name, ok := strings.CutPrefix(set.arg(1), "$upstream_http_")
		if !ok {
			c.t.Say(set, importer.Impossible, "headers of the answer can be passed on, under their names: response_headers")
			continue
		}
		answers[set.arg(0)] = headerName(name)
		c.t.Say(set, importer.Same, "response_headers, where a header of the request is set to it")
	}
	for _, set := range c.scope.level("proxy_set_header") {
		name := answers[set.arg(1)]
		switch {
		case name == "":
		case strings.EqualFold(name, set.arg(0)):
			fields = append(fields, set.arg(0))
			c.t.Say(set, importer.Same, "response_headers of forward_auth")
		default:
			c.t.Say(set, importer.Impossible, "headers of the auth server's answer keep their names: %s", name)
		}
	}
	if len(fields) > 0 {
		o.Set("response_headers", fields)
	}
	c.o.Set("forward_auth", o)
	c.t.Say(d, importer.Close, "forward_auth asks by GET and tells the URL in X-Forwarded-* and X-Original-URL; an answer that is neither 2xx, 401 nor 403 is what the client gets, where nginx sends 500")
}

// authURL is what auth_request asks, "" if that cannot be named.
func (c *content) authURL(uri string) string {
	l := c.asked(uri)
	if l == nil {
		return ""
	}
	passes := l.d.find("proxy_pass")
	if len(passes) != 1 {
		return ""
	}
	text := c.view.expand(passes[0].arg(0))
	scheme, rest, ok := strings.Cut(text, "://")
	host, base, hasURI := splitPass(rest)
	if !ok || strings.Contains(text, "$") {
		return ""
	}
	path := uri
	if hasURI {
		path = base + strings.TrimPrefix(uri, l.path)
	}
	if up := c.t.upstreams[host]; up != nil {
		servers := up.find("server")
		if len(servers) == 0 {
			return ""
		}
		host = servers[0].arg(0)
	}
	c.t.Say(passes[0], importer.Same, "the url of forward_auth")
	for _, d := range l.d.block {
		if strings.HasPrefix(d.name, "proxy_") && l.internal() {
			c.t.Say(d, importer.Close, "forward_auth sends the request's headers without its body, and X-Forwarded-* and X-Original-URL")
		}
	}
	if l.internal() {
		c.t.Say(l.d, importer.Same, "what forward_auth asks; clients get 404")
	}
	return strings.TrimSuffix(serverURL(scheme, host, "/"), "/") + path
}

// signIn makes a signin_url of an error_page for 401 that sends clients elsewhere.
func (c *content) signIn(d *directive, p page, l *location) bool {
	auth := c.o.Object("forward_auth")
	if auth.Empty() || l == nil || !slices.Contains(p.codes, 401) {
		return false
	}
	returns := l.d.find("return")
	if len(returns) == 0 {
		return false
	}
	code, text := returned(returns[0])
	if !isRedirect(code) {
		return false
	}
	target, _, what := c.view.target(text, false)
	if what != "" {
		c.t.Say(d, importer.Impossible, "%s", what)
		return true
	}
	auth.Set("signin_url", strings.TrimSuffix(target, "?"))
	c.t.Say(d, importer.Close, "signin_url of forward_auth: browsers that open a page are sent there")
	c.t.Say(returns[0], importer.Same, "signin_url")
	c.t.Say(l.d, importer.Same, "signin_url of forward_auth")
	return true
}

// realIP says which proxies in front are believed.
func (c *content) realIP() {
	o := importer.NewObject()
	for _, d := range c.scope.level("set_real_ip_from") {
		if d.arg(0) == "unix:" {
			c.t.Say(d, importer.Ignored, "clients come by IP")
			continue
		}
		if _, ok := network(d.arg(0)); !ok {
			c.t.Say(d, importer.Impossible, "a network is written by its addresses")
			continue
		}
		o.Append("trusted", d.arg(0))
		c.t.Say(d, importer.Same, "")
	}
	header := "X-Real-IP" // what nginx reads by itself
	if d := c.scope.last("real_ip_header"); d != nil {
		header = d.arg(0)
		if strings.EqualFold(header, "proxy_protocol") {
			c.t.Say(d, importer.Close, "proxy_protocol stands at the port")
			return
		}
		c.t.Say(d, importer.Same, "")
	}
	if !o.Has("trusted") {
		return
	}
	if !strings.EqualFold(header, "X-Forwarded-For") {
		o.Set("header", header)
	}
	if d := c.scope.last("real_ip_recursive"); d == nil || d.arg(0) != "on" {
		for _, d := range c.scope.level("set_real_ip_from") {
			c.t.Amend(d, importer.Close, "the right-most address that is not trusted is the client; without real_ip_recursive nginx takes the last one")
		}
	}
	c.o.Set("client_ip", o.Flow())
}
