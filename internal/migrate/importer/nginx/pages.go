package nginx

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// maxPage is the largest page of an error.
const maxPage = 64 << 10

// errorPages makes pages of error_page.
func (c *content) errorPages() {
	intercept := c.scope.last("proxy_intercept_errors")
	servers := intercept != nil && intercept.arg(0) == "on"
	for _, d := range c.scope.level("error_page") {
		p := errorPage(d)
		switch {
		case strings.HasPrefix(p.uri, "@"):
			c.namedPage(d, p)
			continue
		case slices.Contains(p.codes, 401) && c.o.Has("forward_auth") && !d.Settled() && c.signIn(d, p, nil):
			continue
		case strings.Contains(p.uri, "://") || strings.Contains(p.uri, "$"):
			if !d.Settled() {
				c.lost(d, "a page has a body or a file of its own; clients are not sent elsewhere")
			}
			continue
		}
		o, what := c.pageOf(p.uri)
		if what != "" {
			c.lost(d, "%s", what)
			continue
		}
		var codes []string
		for _, code := range p.codes {
			if code >= 400 && code <= 599 {
				codes = append(codes, strconv.Itoa(code))
			}
		}
		if len(codes) == 0 {
			c.lost(d, "pages are for statuses from 400 to 599")
			continue
		}
		o = importer.NewObject().Set("status", codes).Merge(o)
		if servers || !c.o.Has("servers") {
			o.Set("upstream", true)
		}
		if p.status >= 200 && p.status <= 599 {
			o.Set("send_status", p.status)
		}
		c.o.Append("error_pages", o.Flow())
		c.t.Became(d, importer.Close, c.o.LastOf("error_pages"), "clients that accept JSON get JSON")
		if intercept != nil {
			c.t.Became(intercept, importer.Same, c.o.LastOf("error_pages"), "error_pages: {upstream}")
		}
	}
}

// namedPage handles an error_page that leads to a named location.
func (c *content) namedPage(d *directive, p page) {
	l := c.named(p.uri)
	switch {
	case d.Settled() || c.signIn(d, p, l):
	case l == nil:
		c.lost(d, "there is no location %s", p.uri)
	case c.o.Has("servers") && !slices.ContainsFunc(p.codes, func(n int) bool { return n != 502 && n != 503 && n != 504 }) && c.fallback(l):
		c.t.Became(d, importer.Close, c.o.LastOf("servers"), "the servers of %s are backups: they are used when no other accepts a connection, not for the responses of servers", p.uri)
		c.t.Became(l.d, importer.Close, c.o.LastOf("servers"), "its servers are backups of the routes that lead to it")
	default:
		c.lost(d, "error_pages have a body or a file of their own; the location %s is not used", p.uri)
	}
}

// fallback adds the servers of a named location as backups.
func (c *content) fallback(l *location) bool {
	passes := l.d.find("proxy_pass")
	if len(passes) != 1 {
		return false
	}
	text := c.view.expand(passes[0].arg(0))
	scheme, rest, ok := strings.Cut(text, "://")
	host, uri, hasURI := splitPass(rest)
	if !ok || hasURI || strings.Contains(text, "$") {
		return false
	}
	part := *c
	part.o = importer.NewObject()
	part.servers(scheme, host, uri)
	for _, s := range part.o.Objects("servers") {
		c.o.Append("servers", s.Set("backup", true))
	}
	c.t.Became(passes[0], importer.Close, c.o.LastOf("servers"), "servers with backup: true")
	c.t.routed[l.d] = true
	return true
}

// pageOf returns the body of a page that a path has.
func (c *content) pageOf(uri string) (o importer.Object, what string) {
	l := c.internalLocation(uri)
	s := l.scope(c.around)
	if l != nil {
		for _, d := range l.d.find("return") {
			if code, text := returned(d); !isRedirect(code) && text != "" {
				body, what := variables(c.view.expand(text))
				o = importer.NewObject().Set("body", body)
				c.t.Became(d, importer.Same, o.Field("body"), "the page of error_page")
				c.t.Became(l.d, importer.Same, o.Field("body"), "the page of error_page")
				return o, what
			}
		}
		if len(l.d.find("proxy_pass")) > 0 {
			return o, "a page has a body or a file of its own; it is not requested from a server"
		}
	}
	name := ""
	for _, b := range s {
		if alias := b.find("alias"); len(alias) > 0 {
			name = alias[0].arg(0) + strings.TrimPrefix(uri, locationPath(l))
			break
		}
		if root := b.find("root"); len(root) > 0 {
			name = path.Join(root[0].arg(0), uri)
			break
		}
	}
	if name == "" {
		return o, "the page has no root; name its file in error_pages"
	}
	name = c.t.path(name)
	data, err := c.t.read(name)
	if err != nil || len(data) > maxPage {
		c.t.Check("proxy %s: the page %s of error_page cannot be read here: name it in error_pages", c.name, name)
		return o, "the page " + name + " cannot be read here, or is larger than 64 KiB; name it in error_pages"
	}
	o = importer.NewObject().Set("file", name)
	if l != nil && l.kind == byExact {
		c.t.Became(l.d, importer.Same, o.Field("file"), "the file is a page of error_pages")
		ignoreAll(c.t, l.d.block, "the file is a page of error_pages")
	}
	return o, ""
}
