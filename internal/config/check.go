package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"headgate/internal/feature/clientip"
	"headgate/internal/matchers"
	"headgate/internal/schema"
	"headgate/internal/server/balance"
	"headgate/internal/server/health"
	"headgate/internal/server/target"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/unit"
	"headgate/internal/upstream"
)

// checkable is implemented by settings of features with constraints that tags cannot
// express.
type checkable interface{ Check(at schema.Place) }

// checker validates one configuration: constraints between its objects, and those of single
// objects that bounds cannot express.
type checker struct {
	c    *Config
	root schema.Place
	// taken are the addresses in use, among the objects that were checked.
	taken []taken
	// sni are the TCP proxies that have names and protocols on a port or an address.
	sni map[string]string
	// pins are the routes with sticky cookies; see sticky.go.
	pins pins
	// carried is whether nothing can have become wrong with proxies but for those whose
	// names are in renewed, sorted.
	carried bool
	renewed []string
}

func newChecker(c *Config, report *schema.Report) *checker {
	ch := &checker{c: c, root: report.Root(), sni: map[string]string{}}
	if c.Admin.Address.IsValid() {
		ch.taken = append(ch.taken, taken{unit.OneAddress(c.Admin.Address), false, "admin", nil, nil})
	}
	return ch
}

func (ch *checker) upstreams(at schema.Place) {
	checkResolvers(ch.c.Upstreams.Resolvers, at.Field("resolvers"))
}

// taken is the address of a listener.
type taken struct {
	address unit.AddressRange
	udp     bool
	by      string
	stream  *TCPProxy // whose it is; nil if not a TCP proxy's
	nodes   []string  // on which it is open; empty is all
}

// port reports a port without an address, or with the address of another port or the admin
// listener.
func (ch *checker) port(p *Port, at schema.Place) {
	if !p.Address.IsValid() {
		at.Field("address").Problem("missing", "add address: 0.0.0.0:80")
		return
	}
	checkTLS(ch.c, p, at)
	checkProxyProtocol(p, at.Field("proxy_protocol"))
	checkNodes(p.Nodes, at.Field("nodes"))
	if p.Active {
		ch.claim(taken{unit.OneAddress(p.Address), p.Protocol == HTTP3, "port " + p.Name, nil, p.Nodes}, at.Field("address"))
	}
}

// checkTLS reports TLS settings that do not fit the port or each other.
func checkTLS(c *Config, p *Port, at schema.Place) {
	tls := at.Field("tls")
	if p.Protocol == HTTP {
		if p.TLS.ClientAuth != ClientAuthOff || p.TLS.ClientCA != "" || p.TLS.DefaultCertificate != "" || p.TLS.ECH != nil {
			tls.Problem("tls is only valid on https and http3 ports", "write protocol: https, or remove tls")
		}
		return
	}
	if p.H2C {
		at.Field("h2c").Problem("h2c is only valid on http ports", "remove it: https ports speak HTTP/2 anyway, http3 ports HTTP/3")
	}
	switch {
	case p.TLS.ClientAuth == ClientAuthOff && p.TLS.ClientCA != "":
		tls.Field("client_ca").Problem("client_ca has no effect while client_auth is off", "write client_auth: required or optional, or remove client_ca")
	case p.TLS.ClientAuth != ClientAuthOff && p.TLS.ClientCA == "":
		tls.Field("client_ca").Problem("missing", "name the PEM file of the authorities that sign clients' certificates")
	}
	checkCertificate(c, p.TLS.DefaultCertificate, tls.Field("default_certificate"))
	checkECH(c, p, tls.Field("ech"))
}

// checkCertificate reports a reference to a certificate that does not exist; "" is no
// reference.
func checkCertificate(c *Config, name string, at schema.Place) {
	if name == "" || c.Certificates[name] != nil || at.Root().Field("certificates").Reported() {
		return
	}
	remedy := "add it under certificates"
	if near := schema.Nearest(name, sortedNames(c.Certificates)); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	at.Problemf(remedy, "there is no certificate %q", name)
}

// checkProxyProtocol reports invalid peers, and a port whose protocol has no connections.
func checkProxyProtocol(p *Port, at schema.Place) {
	if p.ProxyProtocol == nil {
		return
	}
	ipset.Check(p.ProxyProtocol.Trusted, at.Field("trusted"))
	if p.Protocol == HTTP3 {
		at.Problem("proxy_protocol is not available on http3 ports, which use UDP", "remove it")
	}
}

// claim adds an address to those in use, or reports which object has it.
func (ch *checker) claim(want taken, at schema.Place) {
	for _, t := range ch.taken {
		if t.udp != want.udp || t.address.Port() > want.address.Last() || want.address.Port() > t.address.Last() || apart(t.nodes, want.nodes) {
			continue
		}
		switch {
		case t.address == want.address && sharesAddress(t.stream, want.stream, at):
			continue // with all others that have it
		case t.address == want.address:
			at.Problemf("give one of them another address, or active: false", "%s listens on %v too", t.by, t.address)
			return
		case t.address.Addr() == want.address.Addr():
			at.Problemf("give one of them other port numbers, or active: false", "%v and %v of %s overlap", want.address, t.address, t.by)
			return
		case covers(t.address.Addr(), want.address.Addr()) || covers(want.address.Addr(), t.address.Addr()):
			at.Problemf("give one of them another port number, or active: false", "%v and %v of %s overlap", want.address, t.address, t.by)
			return
		}
	}
	ch.taken = append(ch.taken, want)
}

// covers reports whether a socket on the address a takes b's connections too.
// The unspecified IPv6 address takes IPv4 as well.
func covers(a, b netip.Addr) bool {
	return a.IsUnspecified() && (a.Is6() || b.Is4())
}

func (ch *checker) proxy(p *Proxy, at schema.Place) {
	c := ch.c
	checkHosts(p, at.Field("virtual_hosts"))
	checkNames(p.Ports, c.Ports, "port", "ports", at.Field("ports"))
	checkACME(c, p, at.Field("acme"))
	checkOnDemand(c, p, at.Field("on_demand"))
	if what, remedy := checkHostHeader(p.HostHeader); what != "" {
		at.Field("host_header").Problem(what, remedy)
	}
	w := p.Written() // problems of a policy are reported at the policy
	checkNames(w.Use, c.Policies, "policy", "policies", at.Field("use"))
	ch.features(&w.Features, at)
	checkFetched(c, w.ClientIP, at)
	checkToHTTPS(c, p, at)
	noteOpenPasswords(c, p, at)
	noteUnknownUsers(p, at)
	if len(p.Routes) == 0 {
		at.Field("routes").Problem("the proxy has no route", "add a route with servers or a fixed_response")
	}
	seen := make(map[string][]int, len(p.Routes))
	for i, r := range w.Routes {
		place := at.Field("routes").Index(i).Called("route", r.Label())
		if what, remedy := checkPattern(r.Path); what != "" {
			place.Field("path").Problem(what, remedy)
		} else if what, remedy := schema.CheckPath(r.Path); what != "" {
			place.Field("path").Problem(what, remedy)
		} else {
			checkTwice(w.Routes, i, seen[r.Prefix()], place)
			seen[r.Prefix()] = append(seen[r.Prefix()], i)
		}
		checkNames(r.Use, c.Policies, "policy", "policies", place.Field("use"))
		checkFetched(c, r.ClientIP, place)
		ch.route(r, place)
		noteRoute(r, place)
		if r.AmbiguousPaths == AllowAmbiguous {
			noteAmbiguous(p, p.Routes[i], place.Field("ambiguous_paths"))
		}
	}
}

// checkTwice reports a route that matches the same requests as an earlier one with the same
// path.
func checkTwice(routes []*Route, i int, earlier []int, at schema.Place) {
	r := routes[i]
	for _, first := range earlier {
		before := routes[first]
		switch {
		case before.Matchers.Count() != r.Matchers.Count() || !matchers.Overlap(before.Matchers, r.Matchers) || covered(routes, before, r):
			continue
		case r.Matchers == nil:
			at.Field("path").Problemf("remove one of them, choose another path, or give one of them matchers", "duplicate path, routes[%d] has it too", first)
		default:
			at.Field("matchers").Problemf("add a matcher to one of them, let them require different values of the same header or parameter, or add a route with the matchers of both",
				"a request can match routes[%d], %s, too, which has the same path and as many matchers", first, before.Label())
		}
		return
	}
}

// covered reports whether another route with the same path takes the requests that two
// would take.
func covered(routes []*Route, a, b *Route) bool {
	return slices.ContainsFunc(routes, func(r *Route) bool {
		return r.Matchers.Count() > a.Matchers.Count() && r.Prefix() == a.Prefix() && matchers.Covers(r.Matchers, a.Matchers, b.Matchers)
	})
}

// checkPattern reports a path that is written as a pattern. In a path ^, * and $ are
// ordinary characters, which are hardly ever intended at these positions.
func checkPattern(path string) (what, remedy string) {
	literal, glob := strings.CutSuffix(path, "*")
	expression := strings.ContainsAny(path, "^|") || strings.HasPrefix(path, "~") || strings.HasSuffix(path, "$") ||
		strings.Contains(path, ".*") || strings.Contains(path, ".+") || strings.Contains(path, "(?")
	switch {
	case expression:
		literal = strings.TrimLeft(path, "/~*^ =")
		literal = literal[:max(0, len(literal)-len(strings.TrimLeft(literal, "/_-"+letters)))]
		what = fmt.Sprintf("path %q is an expression, and a path is a prefix of whole segments", path)
		remedy = fmt.Sprintf("write %q; rewrite takes an expression to change what a server gets, and virtual_hosts take expressions of hosts", "/"+strings.Trim(literal, "/"))
	case glob && (literal == "" || strings.HasSuffix(literal, "/")):
		what = fmt.Sprintf("path %q has a wildcard, and a path is a prefix of whole segments", path)
		remedy = fmt.Sprintf("write %q, which also matches everything below it", "/"+strings.Trim(literal, "/"))
	}
	return what, remedy
}

// letters are the characters of a path that mean nothing in an expression.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// checkFetched reports a CDN whose networks would never be downloaded.
func checkFetched(c *Config, settings *clientip.Config, at schema.Place) {
	if settings == nil || c.CDNNetworks.Enabled {
		return
	}
	for i, name := range settings.CDN {
		if clientip.Fetched(name) {
			at.Field("client_ip").Field("cdn").Index(i).Problemf("write cdn_networks: {enabled: true}, or name the addresses of its servers under trusted",
				"the networks of %s change every day and cdn_networks does not fetch them", name)
		}
	}
}

func checkHosts(p *Proxy, at schema.Place) {
	seen := make(map[string]bool, len(p.VirtualHosts))
	for i, text := range p.VirtualHosts {
		h, f := parseVirtualHost(text)
		switch {
		case f != nil:
			at.Index(i).Problem(f.What, f.Remedy)
		case seen[h.String()]:
			at.Index(i).Problemf("remove one of them", "duplicate entry %s", h)
		}
		seen[h.String()] = true
	}
}

// checkNames reports names of ports or policies that are duplicates, or that are not in
// section.
func checkNames[T any](names []string, known map[string]T, object, section string, at schema.Place) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			at.Index(i).Problemf("remove one of them", "duplicate %s %s", object, name)
			continue
		}
		if _, ok := known[name]; ok || at.Root().Field(section).Reported() {
			continue
		}
		all := sortedNames(known)
		remedy := "add it under " + section
		if near := schema.Nearest(name, all); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		} else if len(all) > 0 {
			remedy = "known are " + strings.Join(all[:min(len(all), 10)], ", ")
		}
		at.Index(i).Problemf(remedy, "there is no %s %q", object, name)
	}
}

// checkHostHeader reports problems of a fixed Host.
func checkHostHeader(value string) (what, remedy string) {
	const words = "write preserve, upstream or a host name"
	switch value {
	case HostPreserve, HostUpstream:
		return "", ""
	case "":
		return "the value is empty", words
	}
	if _, _, f := target.SplitAuthority(value); f != nil {
		return f.What, words
	}
	// A name of one label that is a typing error away is no host name.
	for _, word := range []string{HostPreserve, HostUpstream} {
		if schema.Nearest(value, []string{word}) != "" && value[:2] == word[:2] && len(value)-len(word) <= 1 && len(word)-len(value) <= 1 {
			return fmt.Sprintf("unknown value %q", value), fmt.Sprintf("did you mean %q?", word)
		}
	}
	return "", ""
}

// features validates each feature that is set.
func (ch *checker) features(f *Features, at schema.Place) {
	if f.Gate != nil {
		ch.gateEntries(f.Gate, at.Field("gate"))
	}
	noteRules(f.Headers, at)
	ch.noteSecrets(f.Headers, at)
	checkEach(reflect.ValueOf(f).Elem(), model().features.Fields, at)
}

// checkStreamFeatures does so for those of a TCP or UDP proxy.
func checkStreamFeatures(f *StreamFeatures, at schema.Place) {
	checkEach(reflect.ValueOf(f).Elem(), model().streamFeatures.Fields, at)
}

func checkEach(v reflect.Value, fields []*schema.Field, at schema.Place) {
	for _, field := range fields {
		setting := v.FieldByIndex(field.Index)
		if setting.IsNil() {
			continue
		}
		if c, ok := setting.Interface().(checkable); ok {
			c.Check(at.Field(field.Name))
		}
	}
}

func (ch *checker) route(r *Route, at schema.Place) {
	servers, fixed := at.Field("servers"), at.Field("fixed_response")
	switch {
	case r.SignIn != nil && (len(r.Servers) > 0 || r.FixedResponse != nil || r.Files != nil):
		at.Field("sign_in").Problem("sign_in cannot be combined with servers, fixed_response or files", "keep one of them")
	case r.Files != nil && (len(r.Servers) > 0 || r.FixedResponse != nil):
		at.Field("files").Problem("files cannot be combined with servers or fixed_response", "keep one of them")
	case r.Files != nil:
		r.Files.Check(at.Field("files"))
	case r.SignIn != nil:
		r.SignIn.Check(at.Field("sign_in"))
	case len(r.Servers) > 0 && r.FixedResponse != nil:
		fixed.Problem("fixed_response cannot be combined with servers", "keep one of servers and fixed_response")
	case r.Split != nil && len(r.Servers) == 0:
		at.Field("split").Problem("split needs servers", "remove split, or add servers")
	case r.FixedResponse != nil:
		r.FixedResponse.Check(fixed)
	case len(r.Servers) > 0:
		checkServers(r.Servers, servers)
		checkSplit(r, at)
		if _, what, remedy := balance.Parse(r.LoadBalancing); what != "" {
			at.Field("load_balancing").Problem(what, remedy)
		}
		checkHealth(r, at)
	case !servers.Reported() && !fixed.Reported() && !at.Field("sign_in").Reported() && !at.Field("files").Reported():
		at.Problem("the route has no servers, fixed_response or files", "add servers, fixed_response with a status, or files with a root")
	}
	checkFastCGI(r, at)
	if r.Matchers != nil {
		r.Matchers.Check(at.Field("matchers"))
	}
	if r.StickyCookie != nil {
		r.StickyCookie.Check(r.Path, at.Field("sticky_cookie"))
	}
	if r.Mirror != nil {
		r.Mirror.Check(at.Field("mirror"))
	}
	if r.Retry != nil {
		r.Retry.Check(at.Field("retry"))
	}
	ch.features(&r.Features, at)
}

// checkFastCGI reports a route whose servers and settings do not agree on FastCGI.
func checkFastCGI(r *Route, at schema.Place) {
	spoken := 0
	for i, s := range r.Servers {
		t, f := target.Parse(s.URL)
		if f != nil {
			return // reported
		}
		if !t.Scheme.IsFastCGI() {
			continue
		}
		spoken++
		if r.FastCGI != nil && r.FastCGI.KeepConnections && s.MaxRequests == 0 {
			at.Field("servers").Index(i).Called("server", s.URL).Field("max_requests").Problem("fastcgi.keep_connections needs a limit of requests", "set it to at most the process limit of php-fpm (pm.max_children)")
		}
	}
	switch {
	case r.FastCGI == nil && spoken > 0:
		at.Field("fastcgi").Problem("FastCGI servers need the folder of their scripts", "add fastcgi with a root")
	case r.FastCGI == nil:
	case spoken == 0 && len(r.Servers) == 0:
		at.Field("fastcgi").Problem("fastcgi applies only to routes with servers", "add a server with a URL like fcgi://127.0.0.1:9000, or use files")
	case spoken < len(r.Servers):
		at.Field("fastcgi").Problem("not all servers of the route speak FastCGI", "write fcgi:// or fcgi+unix: in their URLs, or remove fastcgi")
	default:
		r.FastCGI.Check(at.Field("fastcgi"))
	}
}

// checkHealth reports problems of the health checks of a route.
func checkHealth(r *Route, at schema.Place) {
	r.Ejection.Check(at.Field("ejection"))
	if r.HealthCheck != nil {
		r.HealthCheck.Check(at.Field("health_check"))
		checkGRPC(r, at)
	}
	if r.CircuitBreaker != nil {
		r.CircuitBreaker.Check(at.Field("circuit_breaker"))
	}
}

// checkGRPC reports servers that are not reached with HTTP/2, which gRPC checks need.
func checkGRPC(r *Route, at schema.Place) {
	if r.HealthCheck.Type != health.GRPC {
		return
	}
	for i, s := range r.Servers {
		if t, f := target.Parse(s.URL); f == nil && (t.Scheme == target.HTTP || t.Scheme == target.Unix || t.Scheme.IsFastCGI()) {
			at.Field("servers").Index(i).Called("server", s.URL).Field("url").Problem("gRPC health checks need HTTP/2", "write h2c:// or https://")
			return
		}
	}
}

func checkServers(servers []*Server, at schema.Place) {
	weighty := false
	for i, s := range servers {
		place := at.Index(i).Called("server", s.URL)
		to, f := target.Parse(s.URL)
		if f != nil {
			place.Field("url").Problem(f.What, f.Remedy)
		} else if s.TLS != nil {
			checkServerTLS(s.TLS, to.Scheme, place.Field("tls"))
		}
		weighty = weighty || s.Weight > 0 || place.Field("weight").Reported()
	}
	if !weighty {
		at.Problem("every server has weight 0", "give one a weight of at least 1")
	}
}

// checkServerTLS reports TLS settings that do not fit the server or each other.
func checkServerTLS(s *upstream.TLS, scheme target.Scheme, at schema.Place) {
	switch {
	case scheme != target.HTTPS:
		at.Problemf("write https in the URL, or remove tls", "tls is only valid for https servers, this one has scheme %s", scheme)
	case s.ClientCertFile != "" && s.ClientKeyFile == "":
		at.Field("client_cert_file").Problem("the certificate has no key", "add client_key_file")
	case s.ClientCertFile == "" && s.ClientKeyFile != "":
		at.Field("client_key_file").Problem("the key has no certificate", "add client_cert_file")
	case s.InsecureSkipVerify && s.CAFile != "":
		at.Field("insecure_skip_verify").Problem("ca_file has no effect with insecure_skip_verify", "remove one of the two")
	}
	if s.ServerName == "" {
		return
	}
	if _, err := netip.ParseAddr(s.ServerName); err == nil {
		return
	}
	if _, f := target.Host(s.ServerName); f != nil {
		at.Field("server_name").Problem(f.What, f.Remedy)
	}
}
