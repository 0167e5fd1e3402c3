package nginx

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/migrate/importer"
)

// features adds the features in its blocks to the route.
func (c *content) features() {
	if !c.byServer {
		c.bodyLimit()
	}
	if c.flow.answer == nil && !c.flow.closed {
		c.times()
		c.rates()
		c.access()
		c.caching()
		c.retries()
		c.redirects()
		c.mirror()
	}
	c.realIP()
	c.headers()
	c.compression()
	c.errorPages()
	c.t.sayLogs(c.scope)
}

// bodyLimit sets how large bodies may be. nginx allows 1 MiB by itself.
func (c *content) bodyLimit() {
	d := c.scope.last("client_max_body_size")
	if d == nil {
		c.o.Set("request_body_limit", "1MiB")
		return
	}
	text, ok := size(d.arg(0))
	if !ok {
		c.lost(d, "not a size")
		return
	}
	c.o.Set("request_body_limit", text)
	c.became(d, importer.Close, "request_body_limit", "a request that is refused or redirected by another rule is not measured first")
}

// maxConnect is the longest time for a connection to a server that a document may have.
const maxConnect = 10 * time.Minute

// times are those towards servers.
func (c *content) times() {
	if c.o.Has("fastcgi") {
		return // its location has others
	}
	for _, d := range c.scope.level("proxy_read_timeout", "grpc_read_timeout") {
		c.readTimeout(d)
	}
	for _, d := range c.scope.level("proxy_connect_timeout", "grpc_connect_timeout") {
		c.connectTimeout(d)
	}
	for _, d := range c.scope.level("proxy_send_timeout", "grpc_send_timeout") {
		c.t.AddVerdict(d, importer.Ignored, "request bodies have the idle time-out of the port")
	}
	for _, d := range c.scope.level("keepalive_timeout") {
		c.t.AddVerdict(d, importer.Ignored, "keep_alive_timeout is set in the limits of a port; the default is 120s")
	}
}

// readTimeout is the time for a response.
func (c *content) readTimeout(d *directive) {
	v, ok := duration(d.arg(0))
	if !ok {
		c.lost(d, "not a time")
		return
	}
	c.o.Set("request_timeout", v)
	c.became(d, importer.Close, "request_timeout", "until the response head; bodies have an idle time-out of 60s (upstreams: {body_idle_timeout: …})")
}

// connectTimeout is the time for a connection to a server.
func (c *content) connectTimeout(d *directive) {
	v, ok := duration(d.arg(0))
	if !ok {
		c.lost(d, "not a time")
		return
	}
	verdict, note := importer.Same, "timeouts: {connect}"
	if t, err := time.ParseDuration(v); err == nil && t > maxConnect {
		v, verdict, note = "10m", importer.Close, "timeouts: {connect}, which is 10m at most"
	}
	if c.o.Has("servers") {
		c.o.Set("timeouts", importer.NewObject().Set("connect", v).Flow())
		c.became(d, verdict, "timeouts", note)
	}
}

// rates makes a rate limit of limit_req and its zone.
func (c *content) rates() {
	taken := false
	for _, d := range c.scope.level("limit_req") {
		name, burst, nodelay := "", 0, false
		for _, a := range d.args {
			if v, ok := strings.CutPrefix(a, "zone="); ok {
				name = v
			}
			if v, ok := strings.CutPrefix(a, "burst="); ok {
				burst, _ = strconv.Atoi(v)
			}
			nodelay = nodelay || a == "nodelay"
		}
		zone := c.t.zones[name]
		if zone == nil {
			c.lost(d, "there is no zone of this name")
			continue
		}
		requests, period, ok := rateOf(zone)
		if !ok {
			c.lost(d, "the zone has no rate that can be read")
			continue
		}
		limit := importer.NewObject().Set("requests", requests).Set("period", period).Set("burst", burst+1)
		switch key := zone.arg(0); {
		case taken:
			c.lost(d, "a route has one limit; this is another")
			continue
		case key == "$binary_remote_addr" || key == "$remote_addr":
		case c.t.addressedBy(strings.Trim(key, "${}")) != nil:
			if what := c.exempt(limit, key); what != "" {
				c.lost(d, "%s", what)
				continue
			}
		case strings.HasPrefix(key, "$http_"):
			limit.Set("key", "header:"+headerName(strings.TrimPrefix(key, "$http_")))
		case strings.HasPrefix(key, "$cookie_"):
			limit.Set("key", "cookie:"+strings.TrimPrefix(key, "$cookie_"))
		case key == "$remote_user":
			limit.Set("key", "user")
		default:
			c.lost(d, "clients are distinguished by address, header, cookie or user, not by %s", key)
			continue
		}
		taken = true
		c.o.Set("rate_limit", limit.Flow())
		note := "responses include the limit (RateLimit, Retry-After), and locations with one zone share it only where all of them have it"
		if status := c.scope.last("limit_req_status"); status == nil || status.arg(0) != "429" {
			note = "who is over the limit gets 429, not " + cmp.Or(statusOf(status), "503") + "; " + note
		}
		if !nodelay && burst > 0 {
			note = "requests of a burst are passed on at once, where nginx delays them unless nodelay is there; " + note
		}
		c.became(d, importer.Close, "rate_limit", note)
		if status := c.scope.last("limit_req_status"); status != nil && status.arg(0) == "429" {
			c.became(status, importer.Same, "rate_limit", "")
		}
	}
}

// exempt leaves those clients out of a limit for whose addresses the key is empty.
func (c *content) exempt(limit importer.Object, key string) (what string) {
	a := c.t.addressedBy(strings.Trim(key, "${}"))
	if a.why != "" {
		return a.why
	}
	var networks []netip.Prefix
	for _, p := range a.parts {
		switch {
		case p.value == "":
			networks = append(networks, p.networks...)
		case !slices.Contains(clientVariables, p.value):
			return "clients are distinguished by address, header, cookie or user, not by " + key
		}
	}
	if len(networks) > 0 {
		c.t.Together(strings.Trim(key, "${}"), "", networks)
		limit.Set("exempt", importer.Networks(networks))
	}
	return ""
}

func statusOf(d *directive) string {
	if d == nil {
		return ""
	}
	return d.arg(0)
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

// caching makes a cache of proxy_cache and its companions.
func (c *content) caching() {
	d := c.scope.last("proxy_cache")
	if d == nil || d.arg(0) == "off" {
		if d != nil {
			c.byItself(d)
		}
		return
	}
	if !c.o.Has("servers") {
		return
	}
	o := importer.NewObject().Set("enabled", true)
	c.o.Set("cache", o.Flow())
	c.became(d, importer.Close, "cache", "the cache is in memory and keeps to what servers say")
	for _, valid := range c.scope.level("proxy_cache_valid") {
		codes := valid.args[:max(0, len(valid.args)-1)]
		v, ok := duration(valid.arg(len(valid.args) - 1))
		switch {
		case ok && (len(codes) == 0 || slices.Contains(codes, "200") || slices.Contains(codes, "any")):
			o.Set("default_ttl", v)
			c.t.Became(valid, importer.Close, o.Field("default_ttl"), "default_ttl: for responses that say nothing themselves, whatever their status")
		default:
			c.lost(valid, "there is one default_ttl, and it is that of 200")
		}
	}
	for _, stale := range c.scope.level("proxy_cache_use_stale") {
		if slices.ContainsFunc(stale.args, func(a string) bool { return a == "error" || a == "timeout" || strings.HasPrefix(a, "http_5") }) {
			o.Set("stale_if_error", "365d")
		}
		if background := c.scope.last("proxy_cache_background_update"); slices.Contains(stale.args, "updating") && background != nil && background.arg(0) == "on" {
			o.Set("stale_while_revalidate", "365d")
		}
		if !o.Has("stale_if_error") && !o.Has("stale_while_revalidate") {
			c.t.AddVerdict(stale, importer.Ignored, "the cache serves nothing stale by itself")
			continue
		}
		c.t.Became(stale, importer.Close, o.Field("stale_if_error").Or(o.Field("stale_while_revalidate")), "stale_if_error, and stale_while_revalidate with background updates, for a year; for all failures of servers alike")
	}
	c.cacheKey(o)
	for _, name := range []string{"proxy_no_cache", "proxy_cache_bypass"} {
		for _, one := range c.scope.level(name) {
			c.withoutCache(o, one)
		}
	}
}

// withoutCache switches the cache off where a variable is there.
func (c *content) withoutCache(o importer.Object, d *directive) {
	problem := ""
	for _, a := range d.args {
		on := c.view.present(a)
		if on.Problem != "" {
			problem = on.Problem
		} else if on.Within(c.view.region) {
			o.Set("enabled", false)
		}
	}
	switch {
	case problem != "":
		c.lost(d, "%s", problem)
	case d.name == "proxy_cache_bypass":
		c.became(d, importer.Close, "cache", "such requests go to a route without a cache: their responses are not stored either")
	default:
		c.became(d, importer.Close, "cache", "such requests go to a route without a cache: they are not answered from it either")
	}
}

// cacheKey looks at the key, which is the URL here.
func (c *content) cacheKey(o importer.Object) {
	for _, d := range c.scope.level("proxy_cache_key") {
		key := strings.NewReplacer("$scheme", "", "$proxy_host", "", "$http_host", "", "$host", "", "$request_method", "", "GET", "", "|", "").Replace(strings.Join(d.args, ""))
		switch key {
		case "$request_uri", "$uri$is_args$args", "$uri?$args", "$uri$args":
			c.became(d, importer.Same, "cache", "the key is the whole URL")
		case "$uri":
			o.Set("ignore_query", []string{"*"})
			c.t.Became(d, importer.Close, o.Field("ignore_query"), "ignore_query: servers do not get the query either when a response is fetched to be stored")
		default:
			c.became(d, importer.Close, "cache", "the key is the whole URL, and what a response names in Vary")
		}
	}
}

// retries says what is sent to another server.
func (c *content) retries() {
	if !c.o.Has("servers") {
		return
	}
	var on []string
	o := importer.NewObject()
	for _, d := range c.scope.level("proxy_next_upstream") {
		for _, a := range d.args {
			switch a {
			case "error":
				on = append(on, "reset")
			case "timeout":
				on = append(on, "timeout")
			case "http_502", "http_503", "http_504":
				on = append(on, a[len("http_"):])
			case "off":
				o.Set("attempts", 1)
			}
		}
		if len(on) > 0 {
			o.Set("on", on)
		}
		c.t.Became(d, importer.Close, o.Field("on").Or(o.Field("attempts")).Or(importer.ByItself()), "only idempotent requests are sent again, and of statuses 502, 503 and 504 count; a server that cannot be connected to is always left for another")
	}
	for _, d := range c.scope.level("proxy_next_upstream_tries") {
		if n, ok := number(d.arg(0)); ok && n > 0 && !o.Has("attempts") {
			o.Set("attempts", min(n, 10))
		}
		if !o.Has("attempts") {
			c.lost(d, "attempts are bounded: retry: {attempts}")
			continue
		}
		c.t.Became(d, importer.Close, o.Field("attempts"), "attempts; servers that could not be connected to do not count")
	}
	if o.Len() > 0 {
		c.o.Set("retry", o.Flow())
	}
}

// mirror copies requests to the servers of the location that mirror names.
func (c *content) mirror() {
	for _, d := range c.scope.level("mirror") {
		if d.arg(0) == "off" {
			c.byItself(d)
			continue
		}
		l := c.internalLocation(d.arg(0))
		if l == nil || !c.o.Has("servers") || c.o.Has("mirror") {
			c.lost(d, "a mirror names servers, one for each route: mirror: {servers: …}")
			continue
		}
		part := *c
		part.o, part.location, part.path = importer.NewObject(), l, l.clean()
		for _, pass := range l.d.find("proxy_pass") {
			if part.pass(pass, l) {
				c.o.Set("mirror", importer.NewObject().Set("servers", part.o.Objects("servers")))
				c.became(d, importer.Close, "mirror", "copies are those of requests as the route's servers get them, of bodies up to 64 KiB, and at most 64 at once")
				c.became(l.d, importer.Same, "mirror", "its servers get the copies")
				c.t.routed[l.d] = true
			}
		}
		c.lost(d, "the servers of the mirror cannot be named")
	}
}

// internalLocation is the location for a subrequest of nginx with a path.
func (c *content) internalLocation(uri string) *location {
	l, _ := find(c.locations, uri, func(*location) {})
	every(c.locations, func(e *location) {
		if e.kind == byExact && e.path == uri {
			l = e
		}
	})
	return l
}

// redirects says how Location and cookies of servers are changed.
func (c *content) redirects() {
	for _, d := range c.scope.level("proxy_redirect") {
		from, to := d.arg(0), c.view.expand(d.arg(1))
		switch {
		case from == "default":
			c.t.Became(d, importer.Close, importer.ByItself(), "Location is mapped back by itself where paths differ, and for servers that name themselves")
		case from == "off":
			if r := c.o.Object("rewrite"); !r.Empty() {
				r.Set("rewrite_response", false)
			} else if c.o.Has("servers") {
				c.o.Set("rewrite", importer.NewObject().Set("rewrite_response", false).Flow())
			}
			if !c.o.Has("rewrite") {
				continue
			}
			c.became(d, importer.Close, "rewrite", "rewrite_response: false leaves cookies alone, too")
		default:
			c.replaceLocation(d, from, to)
		}
	}
}

// replaceLocation makes a header rule of proxy_redirect.
func (c *content) replaceLocation(d *directive, from, to string) {
	fold, isExpr := strings.CutPrefix(from, "~*")
	expr := "(?i)" + fold
	if !isExpr {
		expr, isExpr = strings.CutPrefix(from, "~")
	}
	if !isExpr {
		expr = "^" + quote(c.view.expandAll(from))
	}
	marked := to
	if isExpr {
		marked = group.ReplaceAllString(to, "\x00$1")
	}
	value, what := variables(marked)
	if what == "" {
		what = checkRegex(expr)
	}
	if what == "" && strings.Contains(expr, "$") && !isExpr {
		what = "the address is made of variables"
	}
	if what != "" {
		c.lost(d, "%s", what)
		return
	}
	value = strings.ReplaceAll(strings.ReplaceAll(value, "$", "$$"), "\x00", "$")
	c.o.Append("headers", importer.NewObject().Set("direction", "response").Set("operation", "replace").Set("name", "Location").Set("regex", expr).Set("value", value).Flow())
	note := ""
	if strings.HasPrefix(to, "/") {
		note = "Location is relative; nginx writes scheme, host and port in front"
	}
	c.t.Became(d, verdictOf(note), c.o.LastOf("headers"), "%s", note)
}

// compression makes compression of gzip, brotli and zstd.
func (c *content) compression() {
	var on, off []*directive
	for _, name := range []string{"gzip", "brotli", "zstd"} {
		if d := c.scope.last(name); d != nil && d.arg(0) == "on" {
			on = append(on, d)
		} else if d != nil {
			off = append(off, d)
		}
	}
	if len(on) == 0 {
		for _, d := range off {
			c.byItself(d)
		}
		return
	}
	o := importer.NewObject().Set("enabled", true)
	c.o.Set("compression", o.Flow())
	for _, d := range on {
		c.became(d, importer.Close, "compression", "clients get zstd, br or gzip, as they prefer")
	}
	for _, d := range off {
		c.lost(d, "with another form switched on, clients get zstd, br or gzip, as they prefer")
	}
	if d := c.scope.last("gzip_min_length"); d != nil {
		if n, err := strconv.Atoi(d.arg(0)); err == nil && n <= 1<<20 {
			o.Set("min_size", strconv.Itoa(n)+"B")
			c.t.Became(d, importer.Same, o.Field("min_size"), "")
		} else {
			c.lost(d, "min_size is at most 1MiB")
		}
	}
	for _, d := range c.scope.level("gzip_types") {
		c.became(d, importer.Close, "compression", "the usual types are compressed: text, scripts, JSON, XML, SVG, fonts; compression: {types: […]} names others")
	}
}

// sayLogs adds verdicts to access logs.
func (t *translator) sayLogs(s scope) {
	for _, d := range s.level("access_log") {
		if d.arg(0) == "off" && len(s) > 0 && slices.Contains(s[0].block, d) {
			t.AddVerdict(d, importer.Impossible, "a proxy has a log or none: access_log: {enabled: false}")
			continue
		}
		t.AddVerdict(d, importer.Ignored, "there is one access log for all: access_log: {path: …, format: combined}")
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
func duration(text string) (string, bool) { return importer.Duration(text, "s") }
