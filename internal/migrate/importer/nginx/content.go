package nginx

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// content makes what answers the requests of a region, and what is done to them.
type content struct {
	*writer
	view     *view
	flow     *flow
	path     string // of the route
	location *location
	byServer bool // the server answers, before a location is chosen

	o     importer.Object
	host  string
	scope scope
}

// outcome returns what becomes of the requests.
func (c *content) outcome() *outcome {
	c.o = importer.NewObject()
	c.scope = slices.Concat(scope(c.flow.holds), c.location.scope(c.around))
	if c.byServer {
		c.scope = slices.Concat(scope(c.flow.holds), c.around)
	}
	ok := false
	switch {
	case c.location != nil && !c.byServer && c.location.internal() && c.location.kind != byName && c.location.path != "":
		c.o.Set("fixed_response", importer.NewObject().Set("status", 404).Flow()) // whatever it does, no client requests it
		ok = true
	case c.flow.answer != nil:
		ok = c.answer(c.flow.answer, c.scope)
	case c.flow.closed:
		c.o.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
		ok = true
	default:
		ok = c.handler()
	}
	if !ok && len(c.flow.redirects) > 0 {
		c.o.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
		ok = true
	}
	if !ok {
		return &outcome{o: c.o}
	}
	if c.location != nil && !c.byServer {
		c.t.routed[c.location.d] = true
	}
	if len(c.flow.redirects) > 0 {
		own := c.o.Objects("redirects")
		c.o.Set("redirects", slices.Concat(c.flow.redirects, own))
	}
	c.features()
	return &outcome{o: c.o, host: c.host, ok: true}
}

// handler is what answers where no rule does.
func (c *content) handler() bool {
	blocks := slices.Clone(c.flow.holds)
	if c.location != nil && !c.location.internal() {
		blocks = append(blocks, c.location.d)
	}
	for _, b := range blocks {
		if passes := b.find("proxy_pass", "grpc_pass"); len(passes) > 0 {
			return c.pass(passes[0], c.location)
		}
		if tries := b.find("try_files"); len(tries) > 0 && c.tryFiles(tries[0]) {
			return true
		}
	}
	if c.location != nil && c.location.internal() && c.location.path != "" {
		c.o.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
		return true
	}
	if d := c.flow.rewrite; d != nil && d.arg(2) != "break" {
		if to := c.led(d.arg(1)); to != nil && to != c.location && rules.Below(c.path, literalPath(d.arg(0))) && len(to.d.find("proxy_pass", "grpc_pass")) > 0 {
			c.scope = to.scope(c.around)
			return c.pass(to.d.find("proxy_pass", "grpc_pass")[0], to)
		}
	}
	if c.location == nil {
		if tries := c.site.s.d.find("try_files"); len(tries) > 0 && c.tryFiles(tries[0]) {
			return true
		}
		return c.files()
	}
	denies := c.location.d.find("deny")
	if len(denies) > 0 && denies[0].arg(0) == "all" && len(c.location.d.find("allow")) == 0 {
		c.o.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
		c.became(denies[0], importer.Same, "fixed_response", "")
		return true
	}
	return c.files()
}

// literalPath is the common start of all paths that an expression matches.
func literalPath(expr string) string {
	re, err := regexp.Compile(strings.TrimPrefix(expr, "^"))
	if err != nil || !strings.HasPrefix(expr, "^") {
		return ""
	}
	literal, _ := re.LiteralPrefix()
	return literal[:max(0, strings.LastIndexByte(literal, '/'))]
}

// tryFiles uses the named location at the end of try_files.
func (c *content) tryFiles(d *directive) bool {
	last := d.arg(len(d.args) - 1)
	l := c.named(last)
	if l == nil {
		return false
	}
	passes := l.d.find("proxy_pass", "grpc_pass")
	c.scope = slices.Concat(scope{l.d}, c.scope)
	ok := false
	if returns := l.d.find("return"); len(returns) > 0 {
		ok = c.answer(returns[0], c.scope)
	} else if len(passes) > 0 {
		ok = c.pass(passes[0], l)
	}
	if !ok {
		return false
	}
	c.t.Became(d, importer.Close, c.answering(), "a route has files or servers: all requests go the way of %s", last)
	c.t.Check("proxy %s, path %s: files that nginx served by try_files are asked of the servers of %s", c.name, orRoot(c.path), last)
	c.t.Became(l.d, importer.Same, c.answering(), "where try_files leads to it")
	c.t.routed[l.d] = true
	return true
}

// named returns a location by its name, @fallback, or nil.
func (c *content) named(name string) (found *location) {
	if strings.HasPrefix(name, "@") {
		every(c.locations, func(l *location) {
			if l.kind == byName && l.path == name {
				found = l
			}
		})
	}
	return found
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// answer makes the answer of a return.
func (c *content) answer(d *directive, s scope) bool {
	code, text := returned(d)
	if pages := c.jump(code, s); pages != nil {
		return c.jumpTo(d, pages)
	}
	switch {
	case code == 444:
		c.o.Set("fixed_response", importer.NewObject().Set("status", 403).Flow())
		c.became(d, importer.Close, "fixed_response", "connections are not closed without an answer; 403 is sent")
	case isRedirect(code) && text != "":
		groups := c.location != nil && c.location.kind == byExpr && !c.byServer
		target, note, what := c.view.target(text, groups)
		if what != "" {
			c.lost(d, "%s", what)
			return false
		}
		expr := "^"
		if groups {
			expr = c.location.path
		}
		c.o.Append("redirects", redirect(expr, target, code))
		c.o.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
		c.t.Became(d, verdictOf(note), c.o.LastOf("redirects"), "%s", note)
	case code < 200 || code > 599:
		c.lost(d, "not a status that is sent")
		return false
	default:
		o := importer.NewObject().Set("status", code)
		text = c.view.expand(text)
		if text != "" {
			body, what := variables(text)
			if what != "" {
				c.lost(d, "%s", what)
				return false
			}
			o.Set("body", body)
			if typ := c.contentType(s); typ != "" {
				o.Set("content_type", typ)
			}
		}
		c.o.Set("fixed_response", o.Flow())
		note := hostNoted(text)
		if text != "" {
			note = join(note, "every path gets the same type; nginx derives it from the extension of a path such as /x.html")
		}
		c.became(d, verdictOf(note), "fixed_response", note)
	}
	return true
}

// contentType is the type of the text of a return, "" for headgate's own.
func (c *content) contentType(s scope) string {
	for _, d := range s.level("add_header") {
		if strings.EqualFold(d.arg(0), "content-type") {
			return d.arg(1)
		}
	}
	if d := s.last("default_type"); d != nil && d.arg(0) != "" {
		c.t.Became(d, importer.Same, importer.Value("content_type", d.arg(0)), "the type of what return sends")
		return d.arg(0)
	}
	return ""
}

// jump returns the error_page by which a status leads to a named location.
func (c *content) jump(code int, s scope) *directive {
	for _, d := range s.level("error_page") {
		if p := errorPage(d); slices.Contains(p.codes, code) && c.named(p.uri) != nil {
			return d
		}
	}
	return nil
}

// jumpTo answers as the named location of an error_page does.
func (c *content) jumpTo(d, page *directive) bool {
	p := errorPage(page)
	l := c.named(p.uri)
	c.scope = slices.Concat(scope{l.d}, c.scope)
	ok := false
	if returns := l.d.find("return"); len(returns) > 0 {
		ok = c.answer(returns[0], scope{l.d})
	} else if passes := l.d.find("proxy_pass", "grpc_pass"); len(passes) > 0 {
		ok = c.pass(passes[0], l)
	}
	if !ok {
		c.lost(d, "what %s does cannot be translated", p.uri)
		return false
	}
	note := ""
	if !p.other {
		note = "the answer has the status of the servers, where nginx keeps " + d.arg(0)
	}
	c.t.Became(d, verdictOf(note), c.answering(), "%s", note)
	c.t.Became(page, importer.Same, c.answering(), "the route answers as %s does", p.uri)
	c.t.Became(l.d, importer.Same, c.answering(), "where error_page leads to it")
	c.t.routed[l.d] = true
	return true
}

// pass adds the servers of proxy_pass to the route. l is the location of the directive.
func (c *content) pass(d *directive, l *location) bool {
	text := c.view.expand(d.arg(0))
	for _, whole := range []string{"$request_uri", "$uri$is_args$args", "$uri"} {
		if rest, ok := strings.CutSuffix(text, whole); ok && strings.Count(strings.TrimPrefix(rest, "://"), "/") == 2 {
			text = rest
			break
		}
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok && d.name == "grpc_pass" {
		scheme, rest, ok = "grpc", text, true
	}
	groups := l != nil && l.kind == byExpr && group.MatchString(text)
	switch {
	case strings.Contains(text, "$") && !groups:
		c.lost(d, "the server is made of variables; name the servers")
		c.t.Check("proxy %s, path %s: proxy_pass %s has variables", c.name, orRoot(c.path), d.arg(0))
		return false
	case !ok:
		c.lost(d, "the address has no scheme")
		return false
	}
	host, uri, hasURI := splitPass(rest)
	if strings.Contains(uri, "?") && !groups {
		c.lost(d, "the query is sent as it came, and a server's URL has none")
		c.t.Check("proxy %s, path %s: write the route to %s by hand: headgate sends the query as it came", c.name, orRoot(c.path), d.arg(0))
		return false
	}
	if d.name == "grpc_pass" {
		scheme = map[string]string{"grpc": "h2c", "grpcs": "https"}[scheme]
	}
	verdict, note := importer.Same, ""
	if !hasURI {
		verdict, note = importer.Close, "the path is sent in its normal form, as it was matched: dot segments resolved, // merged; nginx sends it as it came"
	}
	base := ""
	switch {
	case groups:
		if base = ""; !c.rewriteGroups(d, l, strings.TrimSuffix(strings.TrimSuffix(uri, "$is_args$args"), "?$args")) {
			return false
		}
	case c.flow.rewrite != nil:
		if !c.rewrite(d, l, uri, hasURI) {
			c.lost(d, "the rewrite before it cannot be translated, so the route answers 404")
			c.t.Check("proxy %s, path %s: write the route to %s by hand, its rewrite cannot be translated", c.name, orRoot(c.path), d.arg(0))
			return false
		}
	case !hasURI:
		if c.path != "" {
			c.o.Set("strip_prefix", false)
		}
	case l == nil || l.clean() != c.path:
		c.o.Set("strip_prefix", false).Set("rewrite", importer.NewObject().Set("regex", "^"+quote(locationPath(l))).Set("replacement", strings.ReplaceAll(uri, "$", "$$")).Flow())
	default:
		base = uri
		if strings.HasSuffix(l.path, "/") != strings.HasSuffix(uri, "/") && l.path != "/" {
			verdict, note = importer.Close, "nginx joins the texts as they are; here the paths are joined by whole segments"
		}
	}
	c.servers(scheme, host, base)
	if scheme == "https" {
		if left := c.verification(strings.TrimSuffix(d.name, "_pass")); left != "" {
			verdict, note = importer.Close, join(note, left)
		}
	}
	c.host = c.hostHeader(host, d)
	c.became(d, verdict, "servers", note)
	return true
}

// verification adds the checks of nginx for certificates of servers to the route, which are
// none by default. Kind is proxy or grpc.
func (c *content) verification(kind string) (note string) {
	fixed := func(name string) *directive {
		if d := c.scope.last(kind + "_ssl_" + name); d != nil && !strings.Contains(d.arg(0), "$") {
			return d
		}
		return nil
	}
	tls := importer.NewObject().Flow()
	if cert, key := fixed("certificate"), fixed("certificate_key"); cert != nil && key != nil {
		tls.Set("client_cert_file", c.t.path(cert.arg(0))).Set("client_key_file", c.t.path(key.arg(0)))
		c.t.Became(cert, importer.Same, tls.Field("client_cert_file"), "tls.client_cert_file of the server")
		c.t.Became(key, importer.Same, tls.Field("client_key_file"), "tls.client_key_file of the server")
	}
	verify := fixed("verify")
	if verify == nil || verify.arg(0) != "on" {
		tls.Set("insecure_skip_verify", true)
		note = "the server's certificate is not verified, as in nginx: name its authority by tls.ca_file of the server instead"
	} else {
		if d := fixed("trusted_certificate"); d != nil {
			tls.Set("ca_file", c.t.path(d.arg(0)))
			c.t.Became(d, importer.Same, tls.Field("ca_file"), "tls.ca_file of the server")
		}
		if d := fixed("name"); d != nil {
			tls.Set("server_name", d.arg(0))
			c.t.Became(d, importer.Same, tls.Field("server_name"), "tls.server_name of the server")
		}
	}
	if tls.Len() > 0 {
		for _, s := range c.o.Objects("servers") {
			s.Set("tls", tls)
		}
	}
	if verify != nil {
		c.t.Became(verify, importer.Same, c.o.Field("servers"), "tls of the server")
	}
	return note
}

func locationPath(l *location) string {
	if l == nil {
		return "/"
	}
	return l.path
}

// splitPass cuts the address of proxy_pass behind its scheme.
func splitPass(rest string) (host, uri string, hasURI bool) {
	if sock, after, unix := strings.Cut(strings.TrimPrefix(rest, "unix:"), ":"); strings.HasPrefix(rest, "unix:") {
		return "unix:" + sock, after, unix && after != ""
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[:i], rest[i:], true
	}
	return rest, "", false
}

// rewriteGroups rewrites the path by the groups of a location's expression.
func (c *content) rewriteGroups(d *directive, l *location, uri string) bool {
	if len(l.prefixes) == 0 || strings.Contains(group.ReplaceAllString(uri, ""), "$") || strings.Contains(uri, "?") {
		c.lost(d, "the server is made of variables; name the servers, and the path as rewrite")
		return false
	}
	c.o.Set("strip_prefix", false).Set("rewrite", importer.NewObject().Set("regex", l.path).Set("replacement", group.ReplaceAllString(uri, "$${$1}")).Flow())
	return true
}

// rewrite makes the route's rewrite of the directive. It acts on the whole path.
func (c *content) rewrite(pass *directive, l *location, uri string, hasURI bool) bool {
	d := c.flow.rewrite
	expr, to, flag := d.arg(0), c.view.expandBut(d.arg(1), true), d.arg(2)
	to, drops := strings.CutSuffix(to, "?")
	if strings.Contains(to, "?") || strings.Contains(group.ReplaceAllString(to, ""), "$") {
		c.lost(d, "a rewrite changes the path alone, by the groups of its expression")
		return false
	}
	note := "the path that a server gets is rewritten, and brought into its normal form"
	if all, ok := rules.Prefixes(expr); ok {
		for _, p := range all {
			note = join(note, p.Note)
		}
	}
	if drops {
		note = join(note, "the query is kept")
	}
	whole := false
	if all, ok := rules.Prefixes(expr); ok {
		whole = slices.ContainsFunc(all, func(p rules.Prefix) bool { return rules.Below(c.path, p.Path) })
	}
	target := c.led(d.arg(1))
	stays := flag == "break" || target == nil || target == c.location
	switch {
	case stays && hasURI && !whole && locationPath(l) != uri:
		note = join(note, "a path that the expression does not match is sent as it is, where nginx puts "+uri+" in front")
	case !stays && target != l && !slices.Contains(c.site.s.d.block, d):
		// The location that nginx uses then answers.
		if passes := target.d.find("proxy_pass", "grpc_pass"); len(passes) > 0 && passes[0] != pass {
			_, rest, _ := strings.Cut(c.view.expand(passes[0].arg(0)), "://")
			_, uri, hasURI = splitPass(rest)
			c.scope = target.scope(c.around)
			if hasURI {
				to = uri + strings.TrimPrefix(to, target.path)
			}
		}
	case !stays && hasURI:
		to = uri + strings.TrimPrefix(to, locationPath(l))
	}
	if c.path != "" {
		c.o.Set("strip_prefix", false)
	}
	c.o.Set("rewrite", importer.NewObject().Set("regex", expr).Set("replacement", group.ReplaceAllString(to, "$${$1}")).Flow())
	c.became(d, importer.Close, "rewrite", note)
	return true
}

// became gives a directive a verdict with the field of the route that it became.
func (c *content) became(d *directive, v importer.Verdict, field, note string) {
	c.t.Became(d, v, c.o.Field(field), "%s", note)
}

// byItself gives a directive for what headgate does in any case its verdict.
func (c *content) byItself(d *directive) { c.t.Became(d, importer.Same, importer.ByItself(), "") }

// lost says that a directive is not possible at this route. One that other routes have is
// close: it does not hold everywhere.
func (c *content) lost(d *directive, note string, args ...any) {
	note = fmt.Sprintf(note, args...)
	if v := d.Verdict(); d.Settled() && (v == importer.Same || v == importer.Close) {
		c.t.Amend(d, importer.Close, "not at path "+orRoot(c.path)+": "+note)
		return
	}
	c.t.AddVerdict(d, importer.Impossible, "%s", note)
}

// answering is the field by which the route answers.
func (c *content) answering() importer.Field {
	for _, name := range []string{"servers", "files", "redirects"} {
		if c.o.Has(name) {
			return c.o.Field(name)
		}
	}
	return c.o.Field("fixed_response")
}

// page is an error_page.
type page struct {
	codes  []int
	other  bool // = or =CODE: another status is sent
	status int  // of =CODE
	uri    string
}

func errorPage(d *directive) (p page) {
	for i, a := range d.args {
		switch n, ok := number(a); {
		case ok:
			p.codes = append(p.codes, n)
		case strings.HasPrefix(a, "="):
			p.other = true
			p.status, _ = number(a[1:])
		case i == len(d.args)-1:
			p.uri = a
		}
	}
	return p
}

func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil
}
