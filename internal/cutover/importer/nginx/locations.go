package nginx

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/cutover/importer"
)

// location makes routes of the locations of a server.
type location struct {
	t      *translator
	server *server
	proxy  importer.Object
	name   string // of the proxy
	paths  []string
	hosts  []hostOf // the values of host_header that locations want
}

// routes makes a route of every location, and one of what stands in the server.
func (l *location) routes() {
	for _, r := range l.server.d.find("return") {
		l.serverReturn(r)
	}
	for _, r := range l.server.d.find("rewrite") {
		l.redirectRule(l.proxy, r)
	}
	l.nested(l.server.d)
	l.hostHeader()
}

// nested goes through the locations of a block, in which others may stand.
func (l *location) nested(d *directive) {
	for _, c := range d.block {
		if c.name == "location" {
			l.location(c)
			l.nested(c)
		}
	}
}

// serverReturn is a return that takes all requests of a server.
func (l *location) serverReturn(r *directive) {
	route := importer.NewObject().Set("path", "/")
	if isToHTTPS(r) && l.server.plain {
		l.proxy.Set("redirect_http_to_https", true)
		l.t.Say(r, importer.Close, "redirect_http_to_https needs an https port of the same proxy; there is none with these names in the source")
		l.t.Check("proxy %s sends clients to https, where no server has its names", l.name)
		route.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
	} else if !l.answer(route, r, "/") {
		return
	}
	l.add("/", route)
}

// location makes a route of one location.
func (l *location) location(d *directive) {
	modifier, path := "", d.arg(0)
	if len(d.args) > 1 {
		modifier, path = d.arg(0), d.arg(1)
	} else {
		for _, m := range []string{"~*", "~", "^~", "="} {
			if rest, ok := strings.CutPrefix(path, m); ok {
				modifier, path = m, rest
				break
			}
		}
	}
	switch {
	case strings.HasPrefix(path, "@"):
		l.t.Say(d, importer.Impossible, "there are no named locations; error_pages and retry do most of what they are used for")
		return
	case strings.HasPrefix(modifier, "~"):
		l.t.Say(d, importer.Impossible, "routes are prefixes of the path, not expressions; write a route for each prefix, or redirect rules")
		return
	case strings.HasPrefix(path, "/.well-known/acme-challenge"):
		l.t.Say(d, importer.Ignored, "with an acme entry headgate answers these itself; else they go the way of the path /")
		for _, c := range d.block {
			l.t.Say(c, importer.Ignored, "with an acme entry headgate answers these itself")
		}
		return
	case !strings.HasPrefix(path, "/"):
		l.t.Say(d, importer.Impossible, "a path begins with /")
		return
	}
	slash := strings.HasSuffix(path, "/") && path != "/"
	clean := cmp.Or(strings.TrimSuffix(path, "/"), "/")
	route := importer.NewObject().Set("path", clean)
	if !l.source(route, d, path) {
		l.t.Say(d, importer.Impossible, "nothing in it can be taken over")
		return
	}
	l.features(route, d, l.server.d)
	switch {
	case !l.add(clean, route):
		l.t.Say(d, importer.Close, "another location has the path "+clean+" here, since a path stands for whole segments; that one was taken")
		l.t.Check("proxy %s: two locations became the path %s", l.name, clean)
	case modifier == "=":
		l.t.Say(d, importer.Close, "exact match does not exist; the route takes what is below the path, too")
	case clean == "/":
		l.t.Say(d, importer.Same, "")
	case slash:
		l.t.Say(d, importer.Close, "the route takes "+clean+" without the slash, too, where nginx redirects")
	default:
		l.t.Say(d, importer.Close, "a path stands for whole segments: "+clean+"x is not below "+clean)
	}
}

// add adds a route, unless the proxy has one for the path.
func (l *location) add(path string, route importer.Object) bool {
	if slices.Contains(l.paths, path) {
		return false
	}
	l.paths = append(l.paths, path)
	l.proxy.Append("routes", route)
	return true
}

// source gives a route what answers it, and reports whether it could.
func (l *location) source(route importer.Object, d *directive, path string) bool {
	for _, c := range d.block {
		switch c.name {
		case "proxy_pass", "grpc_pass":
			return l.pass(route, c, path)
		case "return":
			return l.answer(route, c, path)
		case "deny":
			if c.arg(0) == "all" && !slices.ContainsFunc(d.block, func(o *directive) bool { return o.name == "allow" }) {
				l.t.Say(c, importer.Same, "")
				route.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
				return true
			}
		}
	}
	return false
}

// pass gives a route the servers of proxy_pass.
func (l *location) pass(route importer.Object, d *directive, path string) bool {
	text := d.arg(0)
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case strings.Contains(text, "$"):
		l.t.Say(d, importer.Impossible, "the server is made of variables; name the servers")
		l.t.Check("proxy %s, path %s: proxy_pass %s has variables", l.name, path, text)
		return false
	case !ok:
		l.t.Say(d, importer.Impossible, "the address has no scheme")
		return false
	}
	host, uri, hasURI := rest, "", false
	if sock, after, unix := strings.Cut(strings.TrimPrefix(rest, "unix:"), ":"); strings.HasPrefix(rest, "unix:") {
		host = "unix:" + sock
		uri, hasURI = after, unix && after != ""
	} else if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, uri, hasURI = rest[:i], rest[i:], true
	}
	if d.name == "grpc_pass" {
		scheme = map[string]string{"grpc": "h2c", "grpcs": "https"}[scheme]
	}
	if !hasURI {
		route.Set("strip_prefix", false)
	}
	if path == "/" && !hasURI {
		route.Remove("strip_prefix")
	}
	note, verdict := "", importer.Same
	if !hasURI {
		verdict, note = importer.Close, "the path is sent in its normal form, as it was matched: dot segments resolved, // merged; nginx sends it as it came"
	}
	if hasURI && strings.HasSuffix(path, "/") != strings.HasSuffix(uri, "/") && path != "/" {
		verdict, note = importer.Close, "nginx joins the texts as they are; here the paths are joined by whole segments"
	}
	l.servers(route, scheme, host, uri)
	l.t.Say(d, verdict, note)
	return true
}

// servers gives a route the servers of an upstream block, or the one that is named.
func (l *location) servers(route importer.Object, scheme, host, uri string) {
	up := l.t.upstreams[host]
	if up == nil {
		route.Append("servers", importer.NewObject().Set("url", serverURL(scheme, host, uri)).Flow())
		return
	}
	for _, c := range up.block {
		switch c.name {
		case "server":
			l.upstreamServer(route, c, scheme, uri)
		case "least_conn":
			route.Set("load_balancing", "least_connections")
			l.t.Say(c, importer.Same, "")
		case "ip_hash":
			route.Set("load_balancing", "client_ip_hash")
			l.t.Say(c, importer.Same, "")
		case "hash":
			l.hash(route, c)
		case "random":
			route.Set("load_balancing", "random")
			l.t.Say(c, importer.Same, "")
		case "sticky":
			route.Set("sticky_cookie", importer.NewObject().Set("enabled", true).Set("name", cmp.Or(c.arg(1), "headgate_affinity")).Flow())
			l.t.Say(c, importer.Close, "the cookie has another value")
		default:
			l.t.known(c)
		}
	}
}

func (l *location) hash(route importer.Object, d *directive) {
	switch {
	case d.arg(0) == "$remote_addr" || d.arg(0) == "$binary_remote_addr":
		route.Set("load_balancing", "client_ip_hash")
	case d.arg(0) == "$uri" || d.arg(0) == "$request_uri":
		route.Set("load_balancing", "hash:path")
	case strings.HasPrefix(d.arg(0), "$http_"):
		route.Set("load_balancing", "hash:header:"+strings.ReplaceAll(strings.TrimPrefix(d.arg(0), "$http_"), "_", "-"))
	case strings.HasPrefix(d.arg(0), "$cookie_"):
		route.Set("load_balancing", "hash:cookie:"+strings.TrimPrefix(d.arg(0), "$cookie_"))
	default:
		l.t.Say(d, importer.Impossible, "hashes are of the client's address, the path, a header or a cookie")
		return
	}
	l.t.Say(d, importer.Same, "")
}

// upstreamServer adds one server of an upstream block.
func (l *location) upstreamServer(route importer.Object, d *directive, scheme, uri string) {
	o := importer.NewObject().Set("url", serverURL(scheme, d.arg(0), uri)).Flow()
	verdict, note := importer.Same, ""
	for _, option := range d.args[min(1, len(d.args)):] {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "weight":
			if n, err := strconv.Atoi(value); err == nil && n <= 65535 {
				o.Set("weight", n)
			}
		case "backup":
			o.Set("backup", true)
		case "down":
			o.Set("weight", 0)
			verdict, note = importer.Close, "weight 0: the server gets no new clients"
		case "max_conns":
			if n, err := strconv.Atoi(value); err == nil {
				o.Set("max_requests", n)
			}
		case "max_fails", "fail_timeout":
			verdict, note = importer.Close, "servers that fail are ejected by themselves: ejection says after how many failures and for how long"
		case "resolve":
		default:
			verdict, note = importer.Close, "the option "+option+" is left out"
		}
	}
	route.Append("servers", o)
	l.t.Say(d, verdict, note)
}

// serverURL returns the URL of a server.
func serverURL(scheme, host, base string) string {
	if sock, ok := strings.CutPrefix(host, "unix:"); ok {
		return "unix:" + sock
	}
	if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
		host += map[string]string{"https": ":443"}[scheme]
		if scheme != "https" {
			host += ":80"
		}
	}
	return scheme + "://" + host + cmp.Or(base, "/")
}

// answer gives a route the answer of a return.
func (l *location) answer(route importer.Object, d *directive, path string) bool {
	code, err := strconv.Atoi(d.arg(0))
	if err != nil && len(d.args) == 1 {
		code = 302
	}
	text := d.arg(len(d.args) - 1)
	if len(d.args) == 1 && err == nil {
		text = ""
	}
	switch {
	case code == 444:
		route.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
		l.t.Say(d, importer.Close, "connections are not closed without an answer; 403 is sent")
	case code >= 301 && code <= 308 && text != "":
		target, what := target(text)
		if what != "" {
			l.t.Say(d, importer.Impossible, what)
			return false
		}
		rule := importer.NewObject().Set("regex", "^(.*)$").Set("target", target).Set("status", code).Flow()
		route.Append("redirects", rule)
		route.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
		if strings.Contains(text, "$request_uri") || !strings.Contains(text, "$") && !strings.Contains(text, "?") {
			l.t.Say(d, importer.Close, "the query of the request is kept")
		} else {
			l.t.Say(d, importer.Same, "")
		}
	default:
		o := importer.NewObject().Set("status", code)
		if text != "" {
			body, what := variables(text)
			if what != "" {
				l.t.Say(d, importer.Impossible, what)
				return false
			}
			o.Set("body", body)
		}
		route.Set("fixed_response", o.Flow())
		l.t.sayValue(d, text)
	}
	return true
}

// target returns the target of a redirect rule whose expression is ^(.*)$.
func target(text string) (out, what string) {
	text = strings.NewReplacer("$request_uri", "$1", "${request_uri}", "$1", "$uri$is_args$args", "$1", "$uri", "$1").Replace(text)
	hold := strings.ReplaceAll(text, "$1", "\x00")
	out, what = variables(hold)
	return strings.ReplaceAll(out, "\x00", "$1"), what
}

// redirectRule makes a redirect or a rewrite of the directive rewrite.
func (l *location) redirectRule(o importer.Object, d *directive) {
	regex, replacement, flag := d.arg(0), d.arg(1), d.arg(2)
	if what := checkRegex(regex); what != "" {
		l.t.Say(d, importer.Impossible, what)
		return
	}
	status := map[string]int{"permanent": 301, "redirect": 302}[flag]
	if status == 0 && (strings.HasPrefix(replacement, "http://") || strings.HasPrefix(replacement, "https://")) {
		status = 302
	}
	hold := group.ReplaceAllString(replacement, "\x00$1")
	text, what := variables(hold)
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\x00", "$"), "?")
	switch {
	case what != "":
		l.t.Say(d, importer.Impossible, what)
	case status != 0:
		o.Append("redirects", importer.NewObject().Set("regex", regex).Set("target", text).Set("status", status).Flow())
		if strings.HasPrefix(text, "/") {
			l.t.Say(d, importer.Close, "Location is relative; nginx writes scheme, host and port in front")
		}
		l.t.sayValue(d, replacement)
	case o.Has("rewrite"):
		l.t.Say(d, importer.Impossible, "a route has one rewrite; this is another")
	default:
		o.Set("rewrite", importer.NewObject().Set("regex", regex).Set("replacement", text).Flow())
		l.t.Say(d, importer.Close, "the path that a server gets is rewritten; no other location is chosen by it")
	}
}

var group = regexp.MustCompile(`\$([0-9])`)

// checkRegex returns why an expression cannot be used, "" if it can.
func checkRegex(expr string) string {
	if _, err := regexp.Compile(expr); err != nil {
		return fmt.Sprintf("the expression cannot be used here, since RE2 has no look-arounds and back-references: %v", err)
	}
	return ""
}

// hostHeader sets the Host that servers get, which is one for the whole proxy: that of
// most locations.
func (l *location) hostHeader() {
	count := map[string]int{}
	best := "preserve"
	for _, h := range l.hosts {
		if count[h.value]++; count[h.value] > count[best] {
			best = h.value
		}
	}
	if best != "preserve" {
		l.proxy.Set("host_header", best)
	}
	for _, h := range l.hosts {
		if h.value != best {
			l.t.Amend(h.pass, importer.Close, "the server gets another Host: a proxy has one host_header, here "+best+", and this location wants "+h.value)
			l.t.Check("proxy %s: its locations send different Host fields; host_header %s was taken", l.name, best)
		}
	}
}
