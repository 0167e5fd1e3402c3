package nginx

import (
	"bufio"
	"bytes"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/cutover/importer"
)

// inheritedNames are directives that hold in the blocks below, and are looked at there.
var inheritedNames = []string{
	"client_max_body_size", "proxy_read_timeout", "proxy_connect_timeout", "proxy_send_timeout", "proxy_set_header", "add_header", "more_set_headers",
	"gzip", "gzip_types", "gzip_min_length", "allow", "deny", "auth_basic", "auth_basic_user_file", "auth_request", "limit_req", "proxy_cache", "proxy_cache_valid",
	"proxy_cache_path", "proxy_hide_header", "proxy_pass_header", "set_real_ip_from", "real_ip_header", "keepalive_timeout", "error_page", "access_log",
	"ssl_certificate", "ssl_certificate_key", "ssl_protocols", "grpc_read_timeout", "brotli", "zstd",
}

func inherited(d *directive) bool { return slices.Contains(inheritedNames, d.name) }

// features gives a proxy or a route the features that a block says. Those of a server
// come from the http block, too; a location's own replace them.
func (l *location) features(o importer.Object, d, around *directive) {
	at := func(name string) []*directive {
		if around == nil {
			return l.t.effective(d, name)
		}
		return d.find(name)
	}
	l.limits(o, at)
	l.access(o, at)
	l.headers(o, d, around)
	l.content(o, at, around == nil)
	if around != nil {
		for _, c := range d.find("rewrite") {
			l.redirectRule(o, c)
		}
		for _, c := range d.block {
			if c.name != "location" {
				l.t.known(c)
			}
		}
	}
}

// limits are sizes and times.
func (l *location) limits(o importer.Object, at func(string) []*directive) {
	for _, c := range at("client_max_body_size") {
		size, ok := size(c.arg(0))
		if !ok {
			l.t.Say(c, importer.Impossible, "not a size")
			continue
		}
		o.Set("request_body_limit", size)
		l.t.Say(c, importer.Close, "a request that is refused or redirected by another rule is not measured first")
	}
	if !o.Has("request_body_limit") && !o.Has("path") {
		o.Set("request_body_limit", "1MiB") // what nginx allows by itself
	}
	for _, name := range []string{"proxy_read_timeout", "grpc_read_timeout"} {
		for _, c := range at(name) {
			if d, ok := duration(c.arg(0)); ok {
				o.Set("request_timeout", d)
				l.t.Say(c, importer.Close, "until the response head; bodies have an idle time-out of 60s (upstreams: {body_idle_timeout: …})")
			} else {
				l.t.Say(c, importer.Impossible, "not a time")
			}
		}
	}
	for _, c := range at("proxy_connect_timeout") {
		if d, ok := duration(c.arg(0)); ok && o.Has("path") {
			o.Set("timeouts", importer.NewObject().Set("connect", d).Flow())
			l.t.Say(c, importer.Same, "")
		} else {
			l.t.Say(c, importer.Close, "timeouts: {connect: …} stands at each route; 5s is the default")
		}
	}
	for _, c := range at("proxy_send_timeout") {
		l.t.Say(c, importer.Ignored, "request bodies have the idle time-out of the port")
	}
	for _, c := range at("keepalive_timeout") {
		l.t.Say(c, importer.Close, "keep_alive_timeout stands in the limits of a port; 120s is the default")
	}
	for _, c := range at("limit_req") {
		l.rate(o, c)
	}
}

// rate makes a rate limit of limit_req and its zone.
func (l *location) rate(o importer.Object, d *directive) {
	name, burst := "", 0
	for _, a := range d.args {
		if v, ok := strings.CutPrefix(a, "zone="); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(a, "burst="); ok {
			burst, _ = strconv.Atoi(v)
		}
	}
	zone := l.t.zones[name]
	if zone == nil {
		l.t.Say(d, importer.Impossible, "there is no zone of this name")
		return
	}
	requests, period, ok := rateOf(zone)
	if !ok {
		l.t.Say(d, importer.Impossible, "the zone has no rate that can be read")
		return
	}
	limit := importer.NewObject().Set("requests", requests).Set("period", period).Set("burst", burst+1)
	switch key := zone.arg(0); {
	case key == "$binary_remote_addr" || key == "$remote_addr":
	case strings.HasPrefix(key, "$http_"):
		limit.Set("key", "header:"+strings.ReplaceAll(strings.TrimPrefix(key, "$http_"), "_", "-"))
	case strings.HasPrefix(key, "$cookie_"):
		limit.Set("key", "cookie:"+strings.TrimPrefix(key, "$cookie_"))
	default:
		l.t.Say(d, importer.Impossible, "clients are told apart by address, header, cookie or user, not by "+key)
		return
	}
	o.Set("rate_limit", limit.Flow())
	l.t.Say(d, importer.Close, "who is over the limit gets 429 at once; nginx delays requests unless nodelay is there, and answers 503")
}

func zoneName(d *directive) string {
	for _, a := range d.args {
		if v, ok := strings.CutPrefix(a, "zone="); ok {
			name, _, _ := strings.Cut(v, ":")
			return name
		}
	}
	return ""
}

func rateOf(zone *directive) (requests int, period string, ok bool) {
	for _, a := range zone.args {
		if v, found := strings.CutPrefix(a, "rate="); found {
			n, unit, _ := strings.Cut(v, "r/")
			requests, err := strconv.Atoi(n)
			period := map[string]string{"s": "1s", "m": "1m"}[unit]
			return requests, period, err == nil && period != "" && requests > 0
		}
	}
	return 0, "", false
}

// access says who is let in.
func (l *location) access(o importer.Object, at func(string) []*directive) {
	filter := importer.NewObject()
	denies := at("deny")
	closed := slices.ContainsFunc(denies, func(d *directive) bool { return d.arg(0) == "all" })
	for _, c := range slices.Concat(at("allow"), denies) {
		who := c.arg(0)
		switch {
		case c.name == "allow" && !closed:
			l.t.Say(c, importer.Ignored, "without deny all everybody is let in anyway")
		case o.Object("fixed_response").Len() > 0 && c.Settled():
		case who == "all" && c.name == "deny":
			l.t.Say(c, importer.Same, "a list of allow denies all others")
		case who == "all":
			l.t.Say(c, importer.Same, "")
		case strings.HasPrefix(who, "unix:"):
			l.t.Say(c, importer.Ignored, "clients come by IP")
		default:
			filter.Append(c.name, who)
			l.t.Say(c, importer.Close, "deny wins over allow here, whatever their order")
		}
	}
	if filter.Len() > 0 {
		o.Set("ip_filter", filter.Flow())
	}
	realm := ""
	for _, c := range at("auth_basic") {
		realm = c.arg(0)
		if realm == "off" {
			o.Set("basic_auth", importer.NewObject().Set("enabled", false).Flow())
			l.t.Say(c, importer.Same, "")
		}
		l.t.Say(c, importer.Close, "the challenge names UTF-8, and an address with many wrong passwords gets 429 for a while")
	}
	for _, c := range at("auth_basic_user_file") {
		if realm != "off" {
			l.users(o, c, realm)
		}
	}
	for _, c := range at("auth_request") {
		if c.arg(0) == "off" {
			o.Set("forward_auth", importer.NewObject().Set("enabled", false).Flow())
			l.t.Say(c, importer.Same, "")
			continue
		}
		l.t.Say(c, importer.Impossible, "forward_auth names the URL of the auth server itself; nginx asks a location: take its proxy_pass")
		l.t.Check("proxy %s: auth_request %s becomes forward_auth: {url: …} by hand", l.name, c.arg(0))
	}
	l.realIP(o, at)
}

// realIP says which proxies in front are believed.
func (l *location) realIP(o importer.Object, at func(string) []*directive) {
	client := importer.NewObject()
	for _, c := range at("set_real_ip_from") {
		if c.arg(0) == "unix:" {
			l.t.Say(c, importer.Ignored, "clients come by IP")
			continue
		}
		client.Append("trusted", c.arg(0))
		l.t.Say(c, importer.Same, "")
	}
	for _, c := range at("real_ip_header") {
		switch h := c.arg(0); {
		case strings.EqualFold(h, "X-Forwarded-For"):
			l.t.Say(c, importer.Same, "")
		case strings.EqualFold(h, "proxy_protocol"):
			l.t.Say(c, importer.Close, "proxy_protocol stands at the port")
		default:
			client.Set("header", h)
			l.t.Say(c, importer.Same, "")
		}
	}
	if client.Has("trusted") {
		o.Set("client_ip", client.Flow())
	}
}

// users takes the users of a password file.
func (l *location) users(o importer.Object, d *directive, realm string) {
	data, err := l.t.read(l.t.path(d.arg(0)))
	if err != nil {
		l.t.Say(d, importer.Impossible, "the file cannot be read: %v; add its users under basic_auth", err)
		l.t.Check("proxy %s: nobody can sign in before basic_auth has users", l.name)
		o.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
		o.Remove("servers")
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
		l.t.Say(d, importer.Impossible, "none of its password hashes can be used; make new ones with headgate hash-password")
		o.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
		o.Remove("servers")
		return
	}
	o.Set("basic_auth", auth)
	if left > 0 {
		l.t.Say(d, importer.Close, "%d users have password hashes that are too weak to be taken over; make new ones with headgate hash-password", left)
		return
	}
	l.t.Say(d, importer.Same, "")
}

// content is what becomes of bodies.
func (l *location) content(o importer.Object, at func(string) []*directive, isServer bool) {
	compress := false
	for _, name := range []string{"gzip", "brotli", "zstd"} {
		for _, c := range at(name) {
			compress = compress || c.arg(0) == "on"
			l.t.Say(c, importer.Close, "clients get zstd, br or gzip, as they prefer")
		}
	}
	settings := importer.NewObject()
	for _, c := range at("gzip_min_length") {
		if n, err := strconv.Atoi(c.arg(0)); err == nil {
			settings.Set("min_size", strconv.Itoa(n)+"B")
		}
		l.t.Say(c, importer.Same, "")
	}
	for _, c := range at("gzip_types") {
		l.t.Say(c, importer.Close, "the usual types are compressed: text, scripts, JSON, XML, SVG, fonts; compression: {types: […]} names others")
	}
	if compress {
		o.Set("compression", settings.Flow())
	}
	for _, c := range at("proxy_cache") {
		if c.arg(0) == "off" {
			o.Set("cache", importer.NewObject().Set("enabled", false).Flow())
			l.t.Say(c, importer.Same, "")
			continue
		}
		o.Set("cache", importer.NewObject().Set("enabled", true).Flow())
		l.t.Say(c, importer.Close, "the cache is in memory and keeps to what servers say")
	}
	for _, c := range at("proxy_cache_valid") {
		if d, ok := duration(c.arg(len(c.args) - 1)); ok && o.Object("cache").Len() > 0 {
			o.Object("cache").Set("default_ttl", d)
			l.t.Say(c, importer.Close, "default_ttl: for responses that say nothing themselves, whatever their status")
		} else {
			l.t.Say(c, importer.Ignored, "there is no cache here")
		}
	}
	for _, c := range at("proxy_cache_path") {
		l.t.Say(c, importer.Close, "the cache is in memory: cache: {memory_limit: …}")
	}
	for _, c := range at("error_page") {
		l.t.Say(c, importer.Impossible, "error_pages have a body or a file of their own; nginx asks a location")
	}
	for _, c := range at("access_log") {
		if c.arg(0) == "off" && isServer {
			o.Set("access_log", importer.NewObject().Set("enabled", false).Flow())
			l.t.Say(c, importer.Same, "")
			continue
		}
		l.t.Say(c, importer.Close, "there is one access log for all: access_log: {path: …, format: combined}")
	}
}

// size returns a size as headgate writes it.
func size(text string) (string, bool) {
	n := strings.ToLower(text)
	unit := "B"
	for suffix, u := range map[string]string{"k": "KiB", "m": "MiB", "g": "GiB"} {
		if rest, ok := strings.CutSuffix(n, suffix); ok {
			n, unit = rest, u
		}
	}
	v, err := strconv.ParseUint(n, 10, 40)
	return strconv.FormatUint(v, 10) + unit, err == nil
}

// duration returns a time as headgate writes it.
func duration(text string) (string, bool) {
	unit := strings.TrimLeft(text, "0123456789")
	n, err := strconv.ParseUint(strings.TrimSuffix(text, unit), 10, 31)
	if err != nil {
		return "", false
	}
	switch unit {
	case "":
		return strconv.FormatUint(n, 10) + "s", true
	case "ms", "s", "m", "h":
		return strconv.FormatUint(n, 10) + unit, true
	case "d":
		return strconv.FormatUint(n*24, 10) + "h", true
	}
	return "", false
}
