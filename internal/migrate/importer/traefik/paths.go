package traefik

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

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
