package traefik

import (
	"cmp"
	"fmt"
	"math"
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
