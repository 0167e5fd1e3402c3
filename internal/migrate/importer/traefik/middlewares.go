package traefik

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/migrate/importer"
)

// middleware adds the effect of a middleware to a route.
func (t *translator) middleware(r *router, name string, depth int) {
	m := t.middlewareNamed(name)
	if !m.is() || depth > maxDepth {
		t.Check("router %s uses the middleware %s, which is not in the files that were given: what it keeps out is let in", r.name, name)
		return
	}
	for _, n := range m.children() {
		if strings.EqualFold(n.name(), "chain") {
			for _, next := range n.get("middlewares").texts() {
				t.middleware(r, next, depth+1)
			}
			t.becameAll(n, importer.Same, t.throughMiddlewares(n.get("middlewares")), "one after another")
			continue
		}
		translate := kindOf(n.name())
		if translate == nil {
			t.sayAll(n, importer.Impossible, "%s", cmp.Or(without[strings.ToLower(n.name())], "headgate has nothing like the middleware "+n.name()))
			t.Check("middleware %s (%s) was left out; router %s uses it", name, n.name(), r.name)
			continue
		}
		translate(t, r, n)
	}
}

func (t *translator) middlewareNamed(name string) *node {
	name, _, _ = strings.Cut(name, "@")
	return t.root.get("http", "middlewares", name)
}

// throughMiddlewares is what the middlewares that a list names became.
func (t *translator) throughMiddlewares(list *node) importer.Field {
	var all []*node
	for _, name := range list.texts() {
		all = append(all, t.middlewareNamed(name))
	}
	return through(all...)
}

// sayMiddlewares adds a verdict to a list of middlewares that were translated.
func (t *translator) sayMiddlewares(list *node) {
	list.leaves(func(leaf *node) {
		acts := false
		for _, name := range leaf.texts() {
			t.middlewareNamed(name).leaves(func(n *node) { acts = acts || n.Verdict() != importer.Ignored })
		}
		if !acts {
			t.AddVerdict(leaf, importer.Ignored, "none of its settings has an effect here")
			return
		}
		t.Became(leaf, importer.Same, t.throughMiddlewares(leaf), "features of the route")
	})
}

// feature adds a feature to a route that it can have once. Of two middlewares with
// different ones the first stays.
func (t *translator) feature(r *router, n *node, name string, o importer.Object) importer.Field {
	if r.route.Has(name) && r.route.Object(name).Key() != o.Key() {
		note := "a route has one " + name + ", and another middleware has set it"
		t.sayAll(n, importer.Impossible, "%s", note)
		n.leaves(func(leaf *node) { t.Amend(leaf, importer.Impossible, note) })
		t.Check("router %s: of two middlewares that set %s the first one counts: %s is left out", r.name, name, n.path)
		return importer.Field{}
	}
	return r.route.Set(name, o).Field(name)
}

// without says why kinds of middlewares are not translated, and what helps.
var without = map[string]string{
	"digestauth":        "digest authentication is not offered: use basic_auth over https",
	"errors":            "pages of a service are not fetched: write them as error_pages",
	"inflightreq":       "requests of one client at once are not counted: set max_connections of the servers, or rate_limit",
	"passtlsclientcert": "set what the server gets of a client's certificate with a header rule; see the guide of client certificates",
	"grpcweb":           "gRPC-Web is not translated to gRPC; it is passed on as it is",
	"plugin":            "plugins of Traefik do not run here",
	"encodedcharacters": "the handling of encoded characters cannot be set for each route",
}

// kindOf returns how a kind of middleware is translated, nil if it cannot be.
func kindOf(name string) func(*translator, *router, *node) {
	switch strings.ToLower(name) {
	case "stripprefix":
		return stripPrefix
	case "stripprefixregex":
		return stripPrefixRegex
	case "addprefix":
		return addPrefix
	case "replacepathregex":
		return replacePathRegex
	case "replacepath":
		return replacePath
	case "redirectscheme":
		return redirectScheme
	case "redirectregex":
		return redirectRegex
	case "headers":
		return headers
	case "basicauth":
		return basicAuth
	case "forwardauth":
		return forwardAuth
	case "ipallowlist", "ipwhitelist":
		return ipAllowList
	case "ratelimit":
		return rateLimit
	case "compress":
		return compress
	case "retry":
		return retry
	case "buffering":
		return buffering
	case "circuitbreaker":
		return circuitBreaker
	case "contenttype":
		return func(t *translator, _ *router, n *node) {
			t.sayAll(n, importer.Ignored, "types are never guessed")
		}
	}
	return nil
}

// stripPrefix is what a route does by itself where the prefix is its path.
func stripPrefix(t *translator, r *router, n *node) {
	list := n.get("prefixes").texts()
	if slices.ContainsFunc(list, func(p string) bool { return strings.TrimSuffix(p, "/") == r.when.path }) {
		r.route.Set("strip_prefix", true)
		t.sayAll(n.get("forceSlash"), importer.Ignored, "a path always starts with a slash")
		t.becameAll(n, importer.Close, importer.ByItself(), "strip_prefix: of whole segments; Traefik removes %s from %sx, too, and does not map Location and cookies back", r.when.path, r.when.path)
		return
	}
	var parts []string
	for _, p := range list {
		parts = append(parts, regexp.QuoteMeta(strings.TrimSuffix(p, "/")))
	}
	if len(parts) == 0 {
		return
	}
	r.route.Set("strip_prefix", false)
	became := t.rewrite(r, "regex", "^(?:"+strings.Join(parts, "|")+")/?").Set("replacement", "/").Field("regex")
	t.sayAll(n.get("forceSlash"), importer.Ignored, "a path always starts with a slash")
	t.becameAll(n, importer.Close, became, "a rewrite by an expression; X-Forwarded-Prefix is not sent")
}

// stripPrefixRegex removes what its first matching expression matches at the
// start of the path.
func stripPrefixRegex(t *translator, r *router, n *node) {
	list := n.get("regex").texts()
	for _, text := range list {
		if _, err := regexp.Compile(text); err != nil || strings.Contains(text, "{") {
			t.sayAll(n, importer.Impossible, "the expression cannot be translated: %s", text)
			t.Check("router %s: write the rewrite of %s by hand", r.name, n.path)
			return
		}
	}
	if len(list) == 0 {
		return
	}
	var parts []string
	for _, text := range list {
		parts = append(parts, strings.TrimPrefix(text, "^"))
	}
	r.route.Set("strip_prefix", false)
	became := t.rewrite(r, "regex", "^(?:"+strings.Join(parts, "|")+")/?").Set("replacement", "/").Field("regex")
	t.becameAll(n, importer.Close, became, "a rewrite by an expression; X-Forwarded-Prefix is not sent")
}

// rewrite sets a field of the route's rewrite and returns it.
func (t *translator) rewrite(r *router, name, value string) importer.Object {
	o := r.route.Object("rewrite")
	if o.Empty() {
		o = importer.NewObject()
		r.route.Set("rewrite", o)
		o = r.route.Object("rewrite")
	}
	if o.Has(name) {
		t.Check("router %s rewrites its path more than once; only the last was translated", r.name)
	}
	return o.Set(name, value)
}

func addPrefix(t *translator, r *router, n *node) {
	became := t.rewrite(r, "add_prefix", n.get("prefix").text()).Field("add_prefix")
	if !r.route.Has("strip_prefix") {
		r.route.Set("strip_prefix", false)
	}
	t.becameAll(n, importer.Same, became, "rewrite.add_prefix")
}

func replacePathRegex(t *translator, r *router, n *node) {
	if _, err := regexp.Compile(n.get("regex").text()); err != nil {
		t.sayAll(n, importer.Impossible, "invalid regular expression: %v", err)
		return
	}
	became := t.rewrite(r, "regex", n.get("regex").text()).Set("replacement", n.get("replacement").text()).Field("regex")
	if !r.route.Has("strip_prefix") {
		r.route.Set("strip_prefix", false)
	}
	t.becameAll(n, importer.Close, became, "rewrite; X-Replaced-Path is not sent")
}

func replacePath(t *translator, r *router, n *node) {
	became := t.rewrite(r, "regex", "^.*$").Set("replacement", n.get("path").text()).Field("regex")
	r.route.Set("strip_prefix", false)
	t.becameAll(n, importer.Close, became, "rewrite; X-Replaced-Path is not sent")
}

func redirectScheme(t *translator, r *router, n *node) {
	if !strings.EqualFold(n.get("scheme").text(), "https") {
		t.sayAll(n, importer.Impossible, "redirects of the scheme lead to https")
		return
	}
	if r.onPlain() {
		r.toHTTPS = true
	}
	t.becameAll(n, importer.Same, redirectField(r), "redirect_http_to_https: 301 for GET, 308 for others, to the https port")
}

// redirectField is what a redirect to https became: for routers of https ports there is
// nothing to do.
func redirectField(r *router) importer.Field {
	if r.onPlain() {
		return importer.Value("redirect_http_to_https", true)
	}
	return importer.ByItself()
}

// redirectRegex is matched by Traefik on the whole URL; a rule of headgate on the path.
func redirectRegex(t *translator, r *router, n *node) {
	expression, target := n.get("regex").text(), n.get("replacement").text()
	status := 302
	if n.get("permanent").on() {
		status = 301
	}
	found := wholeURL.FindStringSubmatch(expression)
	if found == nil || strings.ContainsAny(found[1], "()") {
		t.sayAll(n, importer.Impossible, "its expression is for the whole URL, and the part for the path cannot be determined")
		t.Check("router %s: write the redirect %q to %q by hand; rules of headgate match the path", r.name, expression, target)
		return
	}
	path := "^" + strings.TrimPrefix(found[2], "^")
	if path == "^" || path == "^(.*)" {
		path = "^/?(.*)"
		if strings.HasPrefix(found[2], "/") {
			path = "^/(.*)"
		}
	}
	rule := importer.NewObject().Set("regex", path).Set("target", braces.ReplaceAllString(target, "$$$1")).Set("status", status)
	r.route.Append("redirects", rule)
	t.becameAll(n, importer.Close, rule.As("redirects"), "the rule is matched on the path, and the host is that of the route, with or without its port; all methods get its status, where Traefik sends 308 or 307 to others than GET")
}

var (
	// wholeURL cuts scheme and host off an expression: (1) the host, (2) the path.
	wholeURL = regexp.MustCompile(`^\^?https?\??(?:\(s\))?://([^/]+)(/.*)$`)
	braces   = regexp.MustCompile(`\$\{([0-9]+)\}`)
)

// headers makes fields rules. An empty value removes a field.
func headers(t *translator, r *router, n *node) {
	for field, direction := range map[string]string{"customRequestHeaders": "request", "customResponseHeaders": "response"} {
		for _, one := range n.get(field).children() {
			rule := importer.NewObject().Set("direction", direction).Set("name", one.name())
			if one.value == "" {
				rule.Set("operation", "remove")
			} else {
				rule.Set("value", strings.ReplaceAll(one.value, "{", "{{"))
			}
			if strings.EqualFold(one.name(), "Host") && direction == "request" {
				r.host = one.value
				t.becameAll(one, importer.Same, importer.Value("host_header", one.value), "host_header of the proxy")
				continue
			}
			r.route.Append("headers", rule.Flow())
			t.becameAll(one, importer.Same, rule.As("headers"), "a header rule")
		}
	}
	for _, s := range securityFields(n) {
		rule := importer.NewObject().Set("direction", "response").Set("name", s.name).Set("value", s.value)
		r.route.Append("headers", rule)
		for _, field := range s.fields {
			t.becameAll(n.get(field), importer.Same, rule.As("headers"), "a header rule")
		}
	}
	for _, name := range []string{"stsSeconds", "stsIncludeSubdomains", "stsPreload", "frameDeny", "contentTypeNosniff", "browserXssFilter"} {
		t.sayAll(n.get(name), importer.Ignored, "it sends nothing")
	}
	if force := n.get("forceSTSHeader"); force.is() {
		t.becameAll(force, importer.Close, through(n.get("stsSeconds")), "the rule is for http too; browsers ignore it there")
	}
	corsOf(t, r, n)
}

// securityField is a header that fields of the middleware set.
type securityField struct {
	name, value string
	fields      []string
}

// securityFields are the headers that switches of the middleware set.
func securityFields(n *node) (out []securityField) {
	if seconds := n.get("stsSeconds").number(0); seconds > 0 {
		value := "max-age=" + strconv.Itoa(seconds)
		if n.get("stsIncludeSubdomains").on() {
			value += "; includeSubDomains"
		}
		if n.get("stsPreload").on() {
			value += "; preload"
		}
		out = append(out, securityField{"Strict-Transport-Security", value, []string{"stsSeconds", "stsIncludeSubdomains", "stsPreload"}})
	}
	if frame := n.get("customFrameOptionsValue").text(); frame != "" {
		out = append(out, securityField{"X-Frame-Options", frame, []string{"customFrameOptionsValue", "frameDeny"}})
	} else if n.get("frameDeny").on() {
		out = append(out, securityField{"X-Frame-Options", "DENY", []string{"frameDeny"}})
	}
	if n.get("contentTypeNosniff").on() {
		out = append(out, securityField{"X-Content-Type-Options", "nosniff", []string{"contentTypeNosniff"}})
	}
	if xss := n.get("customBrowserXSSValue").text(); xss != "" {
		out = append(out, securityField{"X-XSS-Protection", xss, []string{"customBrowserXSSValue", "browserXssFilter"}})
	} else if n.get("browserXssFilter").on() {
		out = append(out, securityField{"X-XSS-Protection", "1; mode=block", []string{"browserXssFilter"}})
	}
	for field, name := range map[string]string{"referrerPolicy": "Referrer-Policy", "contentSecurityPolicy": "Content-Security-Policy", "contentSecurityPolicyReportOnly": "Content-Security-Policy-Report-Only", "permissionsPolicy": "Permissions-Policy"} {
		if v := n.get(field).text(); v != "" {
			out = append(out, securityField{name, v, []string{field}})
		}
	}
	slices.SortFunc(out, func(a, b securityField) int { return strings.Compare(a.name, b.name) })
	return out
}

func corsOf(t *translator, r *router, n *node) {
	cors := importer.NewObject()
	for from, to := range map[string]string{"accessControlAllowOriginList": "allow_origins", "accessControlAllowMethods": "allow_methods", "accessControlAllowHeaders": "allow_headers", "accessControlExposeHeaders": "expose_headers"} {
		if list := n.get(from).texts(); len(list) > 0 {
			cors.Set(to, list)
			if n.get("accessControlAllowOriginList").is() {
				t.becameAll(n.get(from), importer.Same, cors.Field(to), "cors.%s", to)
			}
		}
	}
	if cors.Len() > 0 && !cors.Has("allow_origins") { // nothing is allowed
		for _, name := range []string{"accessControlAllowMethods", "accessControlAllowHeaders", "accessControlExposeHeaders", "accessControlAllowCredentials", "accessControlMaxAge", "addVaryHeader"} {
			t.sayAll(n.get(name), importer.Ignored, "without accessControlAllowOriginList there is nothing to allow")
		}
	}
	if !cors.Has("allow_origins") {
		return
	}
	became := importer.ByItself()
	if n.get("accessControlAllowCredentials").on() {
		became = cors.Set("allow_credentials", true).Field("allow_credentials")
	}
	t.becameAll(n.get("accessControlAllowCredentials"), importer.Same, became, "cors.allow_credentials")
	if age := n.get("accessControlMaxAge").number(0); age > 0 {
		cors.Set("max_age", strconv.Itoa(min(age, 86400))+"s")
	}
	t.becameAll(n.get("accessControlMaxAge"), importer.Same, cors.Field("max_age"), "cors.max_age")
	t.becameAll(n.get("addVaryHeader"), importer.Same, importer.ByItself(), "Vary is always set")
	r.route.Set("cors", cors)
}

func basicAuth(t *translator, r *router, n *node) {
	auth, users := importer.NewObject(), []importer.Object{}
	if realm := n.get("realm").text(); realm != "" {
		auth.Set("realm", realm)
	}
	for _, text := range n.get("users").texts() {
		name, hash, _ := strings.Cut(strings.ReplaceAll(text, "$$", "$"), ":")
		if !strings.HasPrefix(hash, "$2") && !strings.HasPrefix(hash, "$apr1$") && !strings.HasPrefix(hash, "$argon2id$") {
			t.Check("router %s: the password of user %q is hashed with something that headgate does not check: make a new one by headgate hash-password", r.name, name)
			hash = ""
		}
		users = append(users, importer.NewObject().Set("name", name).Set("password_hash", hash))
	}
	if file := n.get("usersFile"); file.is() {
		t.sayAll(file, importer.Impossible, "give the users of %s as basic_auth.users", file.text())
		t.Check("router %s: put the users of %s into basic_auth.users", r.name, file.text())
	}
	if field := n.get("headerField"); field.is() {
		rule := importer.NewObject().Set("direction", "request").Set("name", field.text()).Set("value", "{user}").Flow()
		r.route.Append("headers", rule)
		t.becameAll(field, importer.Close, rule.As("headers"), "a header rule with {user}")
	}
	if !n.get("removeHeader").on() {
		auth.Set("forward_credentials", true)
	}
	if !n.get("realm").is() {
		auth.Set("realm", "traefik")
	}
	t.becameAll(n, importer.Close, t.feature(r, n, "basic_auth", auth.Set("users", users)), "basic_auth: the challenge names UTF-8, and an address with many wrong passwords gets 429 for a while")
}

func forwardAuth(t *translator, r *router, n *node) {
	auth := importer.NewObject().Set("url", n.get("address").text())
	if list := n.get("authResponseHeaders").texts(); len(list) > 0 {
		auth.Set("response_headers", list)
	}
	trust := importer.ByItself()
	if n.get("trustForwardHeader").on() {
		trust = auth.Set("trust_forward_header", true).Field("trust_forward_header")
	}
	t.feature(r, n, "forward_auth", auth)
	t.AuthServer(n.get("address").text())
	t.becameAll(n.get("address"), importer.Same, auth.Field("url"), "forward_auth.url")
	t.becameAll(n.get("trustForwardHeader"), importer.Same, trust, "trust_forward_header")
	t.becameAll(n.get("authResponseHeaders"), importer.Same, auth.Field("response_headers"), "response_headers")
	for _, name := range []string{"authResponseHeadersRegex", "authRequestHeaders", "tls", "addAuthCookiesToResponse", "forwardBody", "headerField", "preserveLocationHeader", "preserveRequestMethod", "maxBodySize"} {
		if v := n.get(name); v.is() {
			t.sayAll(v, importer.Impossible, "it is left out: all headers of the client are sent, named ones of the answer are copied")
		}
	}
}

func ipAllowList(t *translator, r *router, n *node) {
	t.allow(r, n.get("sourceRange").texts())
	t.becameAll(n.get("sourceRange"), importer.Same, r.route.Field("ip_filter"), "ip_filter")
	if s := n.get("ipStrategy"); s.is() {
		t.sayAll(s, importer.Impossible, "client_ip says which proxies in front are trusted")
		t.Check("router %s reads the client's address from a header (ipStrategy): name the proxies in front in client_ip", r.name)
	}
	t.becameAll(n.get("rejectStatusCode"), importer.Close, r.route.Field("ip_filter"), "refused clients get 403")
}

func rateLimit(t *translator, r *router, n *node) {
	average, period := n.get("average").number(0), time.Second
	if text := n.get("period").text(); text != "" {
		if p, err := time.ParseDuration(duration(text)); err == nil && p > 0 {
			period = p
		}
	}
	if average <= 0 {
		t.sayAll(n, importer.Ignored, "an average of 0 limits nothing")
		return
	}
	for period < time.Second { // the shortest period is a second
		average, period = int(math.Ceil(float64(average)*float64(time.Second)/float64(period))), time.Second
	}
	limit := importer.NewObject().Set("requests", average).Set("period", period.String()).Set("burst", max(n.get("burst").number(1), 1))
	if name := n.get("sourceCriterion", "requestHeaderName").text(); name != "" {
		limit.Set("key", "header:"+name)
	}
	became := t.feature(r, n, "rate_limit", limit)
	t.sayAll(n.get("redis"), importer.Impossible, "each headgate counts by itself")
	t.sourceCriterion(r, n.get("sourceCriterion"), limit)
	for _, name := range []string{"average", "period", "burst"} {
		t.becameAll(n.get(name), importer.Same, became, "rate_limit")
	}
}

// sourceCriterion adds a verdict to what distinguishes clients.
func (t *translator) sourceCriterion(r *router, n *node, limit importer.Object) {
	if limit.Has("key") {
		t.becameAll(n, importer.Same, limit.Field("key"), "rate_limit.key")
		return
	}
	if n.is() {
		t.Check("router %s: requests are counted by the client's address, which client_ip finds, and not by sourceCriterion", r.name)
	}
	t.sayAll(n, importer.Impossible, "requests are counted by the client's address, which client_ip finds, or by a header")
}

// allow lets in clients of some networks. What several middlewares let in is what their
// networks have in common.
func (t *translator) allow(r *router, networks []string) {
	f := importer.NewObject()
	if before := r.route.Object("ip_filter"); before.Len() > 0 {
		if networks = importer.Common(before.Texts("allow"), networks); len(networks) == 0 {
			r.route.Set("ip_filter", f.Set("deny", importer.Networks(importer.AllAddresses())))
			return
		}
	}
	r.route.Set("ip_filter", f.Set("allow", networks))
}

func compress(t *translator, r *router, n *node) {
	c := importer.NewObject().Set("enabled", true)
	if size := n.get("minResponseBodyBytes").number(0); size > 0 {
		c.Set("min_size", fmt.Sprintf("%dB", size))
	}
	became := t.feature(r, n, "compression", c.Flow())
	t.becameAll(n.get("minResponseBodyBytes"), importer.Same, c.Field("min_size"), "compression.min_size")
	t.becameAll(n, importer.Close, became, "compression chooses among zstd, br and gzip by the type of the content")
}

func retry(t *translator, r *router, n *node) {
	became := t.feature(r, n, "retry", importer.NewObject().Set("attempts", min(max(n.get("attempts").number(2), 1), 10)).Flow())
	t.becameAll(n, importer.Close, became, "only what is idempotent or was not sent yet is sent again")
}

func buffering(t *translator, r *router, n *node) {
	if size := n.get("maxRequestBodyBytes").number(0); size > 0 {
		became := r.route.Set("request_body_limit", fmt.Sprintf("%dB", size)).Field("request_body_limit")
		t.becameAll(n.get("maxRequestBodyBytes"), importer.Same, became, "request_body_limit")
	}
	t.sayAll(n, importer.Ignored, "nothing is buffered")
}

func circuitBreaker(t *translator, r *router, n *node) {
	became := t.feature(r, n, "circuit_breaker", importer.NewObject().Set("error_percent", 50).Flow())
	t.becameAll(n, importer.Close, became, "circuit_breaker opens by the share of errors, 50 % here")
	t.Check("router %s has a circuit breaker by an expression: set circuit_breaker.error_percent", r.name)
}
