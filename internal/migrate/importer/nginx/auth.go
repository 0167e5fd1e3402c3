package nginx

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// authRequest makes forward_auth of auth_request and its location. If that is not
// possible, no request is allowed.
func (c *content) authRequest() {
	d := c.scope.last("auth_request")
	if d == nil {
		return
	}
	if d.arg(0) == "off" {
		c.byItself(d)
		return
	}
	o := importer.NewObject()
	url := c.authURL(d.arg(0), o)
	if url == "" {
		c.lost(d, "the location of the subrequest has no server whose URL is known; set the URL of the auth server in forward_auth")
		c.t.Check("proxy %s, path %s: auth_request %s could not be translated, and no request is allowed: write forward_auth: {url: …}", c.name, orRoot(c.path), d.arg(0))
		c.shut()
		return
	}
	o.Set("url", url)
	c.o.Set("forward_auth", o)
	c.t.AuthServer(url)
	c.authAnswers(o)
	c.became(d, importer.Close, "forward_auth", "forward_auth sends GET with the URL in X-Forwarded-* and X-Original-URL; an answer that is neither 2xx, 401 nor 403 is what the client gets, where nginx sends 500")
}

// authVariables are the headers of the auth server's answer by the variables that
// auth_request_set sets to them.
func (c *content) authVariables() map[string]string {
	all := map[string]string{}
	for _, set := range c.scope.level("auth_request_set") {
		if name, ok := strings.CutPrefix(set.arg(1), "$upstream_http_"); ok {
			all[strings.TrimPrefix(set.arg(0), "$")] = headerName(name)
		}
	}
	return all
}

// authAnswers has the servers get the headers of the auth server's answer that they got
// from nginx. A header with another name than the answer's is set by a rule.
func (c *content) authAnswers(o importer.Object) {
	for _, set := range c.scope.level("auth_request_set") {
		switch name := strings.TrimPrefix(set.arg(1), "$"); {
		case name == "upstream_http_location":
			c.t.AddVerdict(set, importer.Ignored, "signin_url of forward_auth is where clients sign in, or the auth server's answer is what they get")
		case name == "upstream_http_set_cookie", strings.HasPrefix(name, "upstream_cookie_"):
			c.t.Became(set, importer.Same, importer.ByItself(), "the cookies of the auth server's answer go to the client")
		case name == "upstream_status", !strings.HasPrefix(name, "upstream_http_"):
			c.t.AddVerdict(set, importer.Ignored, "only headers of the answer are passed on: response_headers")
		default:
			c.t.Became(set, importer.Same, importer.Through(c.t.users(strings.TrimPrefix(set.arg(0), "$"))...), "")
		}
	}
	answers := c.authVariables()
	var fields []string
	for _, set := range c.scope.level("proxy_set_header", "grpc_set_header") {
		name, ok := answers[strings.TrimPrefix(set.arg(1), "$")]
		if !ok || name == "Set-Cookie" || name == "Location" {
			continue
		}
		same := strings.EqualFold(name, set.arg(0))
		if same {
			name = set.arg(0)
		}
		if !slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, name) }) {
			fields = append(fields, name)
		}
		o.Set("response_headers", fields)
		if same {
			c.t.Became(set, importer.Same, o.Field("response_headers"), "response_headers of forward_auth")
			continue
		}
		c.o.Append("headers", importer.NewObject().Set("direction", "request").Set("name", set.arg(0)).Set("value", "{header."+name+"}").Flow())
		c.t.Became(set, importer.Close, c.o.LastOf("headers"), "servers get the header of the auth server's answer, %s, too", name)
	}
}

// authURL is the URL of auth_request, "" if it is unknown. auth is the
// forward_auth that it is for.
func (c *content) authURL(uri string, auth importer.Object) string {
	l := c.internalLocation(uri)
	if l == nil {
		return ""
	}
	v, f := c.inside(l)
	passes := l.d.find("proxy_pass")
	if len(passes) != 1 || f.over() {
		return ""
	}
	text := v.expand(passes[0].arg(0))
	for _, whole := range []string{"$request_uri", "$is_args$args", "?$args", "?$query_string"} { // of the request, which the auth server gets in its headers
		text = strings.TrimSuffix(text, whole)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	host, base, hasURI := splitPass(rest)
	if !ok || strings.Contains(text, "$") {
		return ""
	}
	path := uri
	if f.rewrite != nil {
		if path = f.rewrite.arg(1); strings.Contains(path, "$") || !slices.Contains(takesAll, f.rewrite.arg(0)) {
			return ""
		}
		c.t.Became(f.rewrite, importer.Same, auth.As("forward_auth"), "the url of forward_auth")
	} else if hasURI {
		path = base + strings.TrimPrefix(uri, l.path)
	}
	if up := c.t.upstreams[host]; up != nil {
		servers := up.find("server")
		if len(servers) == 0 {
			return ""
		}
		host = servers[0].arg(0)
		c.t.Became(servers[0], importer.Close, auth.As("forward_auth"), "the url of forward_auth names one server")
		c.t.Became(up, importer.Close, auth.As("forward_auth"), "the url of forward_auth names one server")
	}
	c.sayAuth(l, passes[0], auth)
	// Authelia has an endpoint for nginx, which says in Location where clients sign in, and
	// one for proxies that pass its answers on.
	if before, ok := strings.CutSuffix(path, "/api/authz/auth-request"); ok {
		path = before + "/api/authz/forward-auth"
	}
	return strings.TrimSuffix(serverURL(scheme, host, "/"), "/") + path
}

// sayAuth adds verdicts to the location of an auth server.
func (c *content) sayAuth(l *location, pass *directive, auth importer.Object) {
	became := auth.As("forward_auth")
	c.t.Became(pass, importer.Same, became, "the url of forward_auth")
	for _, d := range l.d.block {
		switch {
		case d.name == "proxy_set_header" && !knownToAuthServer(d):
			c.t.AddVerdict(d, importer.Impossible, "forward_auth sends the headers of the request, X-Forwarded-* and X-Original-URL, and none of its own")
			c.t.Check("%s:%d: the auth server does not get %s: set it there", d.File, d.Line, d.Text())
		case strings.HasPrefix(d.name, "proxy_") && l.internal():
			c.t.Became(d, importer.Close, became, "forward_auth sends the request's headers without its body, and X-Forwarded-* and X-Original-URL")
		}
	}
	if l.internal() {
		c.t.Became(l.d, verdictOf(l.segments()), became, "%s", join("used by forward_auth; clients get 404", l.segments()))
	}
}

// knownToAuthServer reports whether an auth server gets the value of a proxy_set_header without
// a setting.
func knownToAuthServer(d *directive) bool {
	name, value := strings.ToLower(d.arg(0)), d.arg(1)
	for _, prefix := range []string{"x-forwarded-", "x-original-", "x-real-ip", "x-auth-request-redirect", "host", "content-", "connection", "upgrade", "transfer-encoding", "early-data", "accept-encoding"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	own := strings.EqualFold(strings.TrimPrefix(value, "$http_"), strings.ReplaceAll(name, "-", "_"))
	return value == "" || strings.HasPrefix(value, "$http_") && own
}

// inside runs the directives of a location for subrequests of nginx, without adding
// verdicts: set is evaluated.
func (c *content) inside(l *location) (*view, *flow) {
	v, f := *c.view, &flow{}
	v.vars = map[string]string{}
	for name, value := range c.view.vars {
		v.vars[name] = value
	}
	v.run(f, l.d.block)
	return &v, f
}

// signIn makes a signin_url of an error_page for 401 that sends clients elsewhere: by a
// named location, or by a URL. It reports whether the error_page is for that.
func (c *content) signIn(d *directive, p page, l *location) bool {
	auth := c.o.Object("forward_auth")
	if auth.Empty() || !slices.Contains(p.codes, 401) {
		return false
	}
	v, text := c.view, p.uri
	if l != nil {
		inner, f := c.insideSignIn(l)
		if f.answer == nil {
			return false
		}
		var code int
		if code, text = returned(f.answer); !isRedirect(code) {
			return false
		}
		v = inner
	}
	for name, field := range c.authVariables() {
		if field == "Location" && (text == "$"+name || text == "${"+name+"}") {
			text = v.vars[name] // what the source says for an answer without one
		}
	}
	url, what := variables(requestURIs.Replace(v.expand(text)))
	note := "signin_url of forward_auth: browsers that open a page are sent there"
	switch {
	case what != "":
		c.lost(d, "%s", what)
		return true
	case url == "" && strings.HasSuffix(auth.Text("url"), "/forward-auth"):
		note = "the auth server itself sends clients to where they sign in"
	case url == "":
		c.lost(d, "clients are sent to a fixed place to sign in: signin_url of forward_auth")
		c.t.Check("proxy %s, path %s: the auth server said where clients sign in; name it in signin_url of forward_auth", c.name, orRoot(c.path))
		return true
	default:
		auth.Set("signin_url", url)
	}
	became := c.o.Field("forward_auth")
	c.t.Became(d, importer.Close, became, "%s", note)
	if l != nil {
		c.t.Became(l.d, importer.Same, became, "%s", note)
		c.signsIn(l.d.block, became)
		c.t.routed[l.d] = true
	}
	return true
}

// signsIn adds verdicts to the directives of a location to which error_page leads.
func (c *content) signsIn(block []*directive, became importer.Field) {
	for _, d := range block {
		switch d.name {
		case "set", "set_escape_uri", "if", "return":
			c.t.Became(d, importer.Same, became, "signin_url of forward_auth")
		default:
			c.t.AddVerdict(d, importer.Ignored, "signin_url of forward_auth does it")
		}
		c.signsIn(d.block, became)
	}
}

// insideSignIn runs a location to which error_page leads. What an auth server says is
// not known: as if it said nothing.
func (c *content) insideSignIn(l *location) (*view, *flow) {
	part := *c
	v := *c.view
	v.vars = map[string]string{}
	for name, value := range c.view.vars {
		v.vars[name] = value
	}
	for _, set := range slices.Concat(c.scope.level("auth_request_set"), l.d.find("auth_request_set")) {
		v.vars[strings.TrimPrefix(set.arg(0), "$")] = ""
	}
	part.view = &v
	return part.inside(l)
}
