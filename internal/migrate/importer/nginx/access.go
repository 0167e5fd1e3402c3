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
			c.lost(d, "address and password are both required here, which is stricter")
			c.t.Check("proxy %s, path %s: satisfy any accepted the address or the password; headgate requires both", c.name, orRoot(c.path))
		} else {
			c.byItself(d)
		}
	}
}

// maxNetworks bounds the networks that a list of allow and deny becomes.
const maxNetworks = 100_000

// filter makes an ip_filter of allow and deny, and of the conditions that refuse clients by
// their addresses.
func (c *content) filter() {
	f, k := c.t.listed(c.scope.level("allow", "deny")), c.flow.kept
	if f.tooMany {
		c.t.Check("proxy %s: allow and deny result in more than %d networks: write ip_filter by hand", c.name, maxNetworks)
		return
	}
	allow, deny, limited := f.allow, f.deny, f.closed || k.limited
	if k.limited && f.closed {
		allow = importer.Prefixes(importer.Common(importer.Networks(f.allow), importer.Networks(k.allow)))
	} else if k.limited {
		allow = k.allow
	}
	if len(k.lines) > 0 {
		deny = slices.Concat(deny, importer.Without(k.deny, deny))
		allow = importer.Without(allow, deny)
	}
	became := importer.ByItself() // all clients are let in
	switch {
	case limited && len(allow) == 0:
		c.shut()
		became = c.o.Field("fixed_response")
	case limited:
		became = c.o.Set("ip_filter", importer.NewObject().Set("allow", importer.Networks(allow)).Flow()).Field("ip_filter")
	case len(deny) > 0:
		became = c.o.Set("ip_filter", importer.NewObject().Set("deny", importer.Networks(deny)).Flow()).Field("ip_filter")
	}
	for _, d := range f.taken {
		c.t.Became(d, importer.Same, became, "")
	}
	for _, d := range k.lines {
		c.t.Became(d, verdictOf(k.note), became, "%s", k.note)
	}
}

// clients are those that allow and deny name, of which the first that has a client counts.
type clients struct {
	allow, deny []netip.Prefix
	closed      bool // all others are denied
	tooMany     bool
	taken       []*directive
}

// listed reads allow and deny in their order.
func (t *translator) listed(list []*directive) (f clients) {
	var before importer.Cover
	files := map[string][]netip.Prefix{}
	defer func() { t.togetherIn(files) }()
	open := false
	for _, d := range list {
		who := d.arg(0)
		if strings.HasPrefix(who, "unix:") {
			t.AddVerdict(d, importer.Ignored, "clients come by IP")
			continue
		}
		if who == "all" {
			f.closed, open = f.closed || d.name == "deny" && !open, open || d.name == "allow" && !f.closed
			f.taken = append(f.taken, d)
			continue
		}
		p, ok := network(who)
		if !ok {
			t.AddVerdict(d, importer.Impossible, "not an address or network")
			continue
		}
		f.taken = append(f.taken, d)
		if f.closed || open {
			continue
		}
		rest := before.Add(p)
		t.together(d, rest, files)
		if d.name == "allow" {
			f.allow = append(f.allow, rest...)
		} else {
			f.deny = append(f.deny, rest...)
		}
		if f.tooMany = len(f.allow)+len(f.deny) > maxNetworks; f.tooMany {
			return f
		}
	}
	return f
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

// password makes basic_auth of auth_basic.
func (c *content) password() {
	d := c.scope.last("auth_basic")
	if d == nil {
		return
	}
	if d.arg(0) == "off" {
		c.byItself(d)
		return
	}
	file := c.scope.last("auth_basic_user_file")
	if file == nil {
		c.lost(d, "it has no auth_basic_user_file: clients get 403, as from nginx")
		c.shut()
		return
	}
	c.users(file, d.arg(0))
	if c.o.Has("basic_auth") {
		c.t.Became(d, importer.Close, c.o.Field("basic_auth"), "the challenge names UTF-8, and an address with many wrong passwords gets 429 for a while")
	}
	c.lost(d, "none of its users can sign in: clients get 403")
}

// shut rejects all requests.
func (c *content) shut() {
	c.o.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
	for _, name := range serving {
		c.o.Remove(name)
	}
}

// users translates the users of a password file.
func (c *content) users(d *directive, realm string) {
	data, err := c.t.read(c.t.path(d.arg(0)))
	if err != nil {
		c.lost(d, "the file cannot be read: %v; add its users under basic_auth", err)
		c.t.Check("proxy %s: no user can sign in until basic_auth has users", c.name)
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
		c.lost(d, "none of its password hashes can be used; make new ones with headgate hash-password")
		c.shut()
		return
	}
	c.o.Set("basic_auth", auth)
	if left > 0 {
		c.t.Became(d, importer.Close, c.o.Field("basic_auth"), "%d users have password hashes that are too weak to be taken over; make new ones with headgate hash-password", left)
		return
	}
	c.t.Became(d, importer.Same, c.o.Field("basic_auth"), "")
}

// realIP translates the trusted proxies in front.
func (c *content) realIP() {
	o := importer.NewObject()
	var taken []*directive
	for _, d := range c.scope.level("set_real_ip_from") {
		if d.arg(0) == "unix:" {
			c.t.AddVerdict(d, importer.Ignored, "clients come by IP")
			continue
		}
		if _, ok := network(d.arg(0)); !ok {
			c.lost(d, "a network is written by its addresses")
			continue
		}
		o.Append("trusted", d.arg(0))
		taken = append(taken, d)
	}
	header := "X-Real-IP" // what nginx reads by itself
	if d := c.scope.last("real_ip_header"); d != nil {
		header = d.arg(0)
		if strings.EqualFold(header, "proxy_protocol") {
			c.lost(d, "name the load balancers at the port: proxy_protocol: {trusted: […]}")
			return
		}
		taken = append(taken, d)
	}
	if !o.Has("trusted") {
		return
	}
	if !strings.EqualFold(header, "X-Forwarded-For") {
		o.Set("header", header)
	}
	c.o.Set("client_ip", o.Flow())
	for _, d := range taken {
		c.became(d, importer.Same, "client_ip", "")
	}
	if d := c.scope.last("real_ip_recursive"); d == nil || d.arg(0) != "on" {
		for _, d := range c.scope.level("set_real_ip_from") {
			c.t.Amend(d, importer.Close, "the right-most address that is not trusted is the client; without real_ip_recursive nginx uses the last one")
		}
	}
}
