package nginx

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// headers adds header rules to the route.
func (c *content) headers() {
	proxied := c.o.Has("servers")
	if proxied {
		c.requestHeaders()
	}
	// What is hidden is the server's header: one of add_header with its name stays.
	for _, d := range c.scope.level("proxy_hide_header") {
		if proxied {
			c.o.Append("headers", importer.NewObject().Set("direction", "response").Set("operation", "remove").Set("name", d.arg(0)).Flow())
			c.t.Became(d, importer.Same, c.o.LastOf("headers"), "")
		}
	}
	for _, d := range c.scope.level("add_header") {
		c.responseHeader(d)
	}
	for _, d := range c.scope.level("proxy_pass_header") {
		c.t.Became(d, importer.Same, importer.ByItself(), "headers of servers are passed on")
	}
	for _, d := range c.scope.level("more_set_headers", "more_clear_headers", "more_set_input_headers", "more_clear_input_headers") {
		c.moreHeaders(d)
	}
}

// moreHeaders reads the directives of the module headers-more.
func (c *content) moreHeaders(d *directive) {
	direction := "response"
	if strings.Contains(d.name, "input") {
		direction = "request"
	}
	if slices.ContainsFunc(d.args, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		c.lost(d, "a rule acts for every status and type")
		return
	}
	for _, a := range d.args {
		name, value, _ := strings.Cut(a, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if strings.Contains(d.name, "clear") || value == "" {
			if strings.Contains(name, "*") {
				c.lost(d, "a header is removed by its whole name")
				return
			}
			c.o.Append("headers", importer.NewObject().Set("direction", direction).Set("operation", "remove").Set("name", name).Flow())
			c.t.Became(d, importer.Same, c.o.LastOf("headers"), "")
			continue
		}
		c.rule(d, direction, name, c.view.expand(value), "")
	}
}

// requestHeaders makes rules of proxy_set_header.
func (c *content) requestHeaders() {
	for _, d := range c.scope.level("proxy_set_header", "grpc_set_header") {
		name, value := d.arg(0), d.arg(1)
		lower := strings.ToLower(name)
		if lower == "upgrade" || lower == "connection" {
			c.t.Became(d, importer.Same, importer.ByItself(), "upgrades such as WebSocket are passed on by themselves")
			continue
		}
		value = c.view.expand(value)
		switch {
		case lower == "host":
		case c.ofAuth(d):
		case lower == "x-forwarded-for" && (value == "$proxy_add_x_forwarded_for" || value == "$remote_addr"):
			note := "sent by itself: the client's address, as client_ip finds it"
			if value != "$remote_addr" {
				c.t.Became(d, importer.Close, importer.ByItself(), "%s, and nothing of what a client says of itself", note)
			}
			c.t.Became(d, importer.Same, importer.ByItself(), "%s", note)
		case lower == "x-forwarded-proto" && (value == "$scheme" || value == "https" && c.site.secure && !c.site.plain):
			c.t.Became(d, importer.Same, importer.ByItself(), "sent by itself")
		case lower == "x-forwarded-proto" && value == "$http_x_forwarded_proto":
			c.t.Became(d, importer.Close, importer.ByItself(), "sent by itself: the scheme that the client used; what a client says of it counts only from the proxies that client_ip trusts")
		case lower == "x-forwarded-host" && value == "$http_host":
			c.t.Became(d, importer.Same, importer.ByItself(), "sent by itself")
		case lower == "x-forwarded-host" && value == "$host":
			c.t.Became(d, importer.Close, importer.ByItself(), "sent by itself as the client wrote it, with its port")
		case strings.EqualFold(value, "$ssl_early_data"):
			c.o.Append("headers", importer.NewObject().Set("direction", "request").Set("operation", "remove").Set("name", name).Flow())
			c.t.Became(d, importer.Same, c.o.LastOf("headers"), "early data is not accepted, so no request has it")
		case lower == "accept-encoding" && value == "":
			c.t.AddVerdict(d, importer.Ignored, "compression takes care of it")
		case lower == "content-length" || lower == "transfer-encoding" || lower == "te" || lower == "trailer" || lower == "expect":
			c.lost(d, "%s belongs to one connection, and no rule changes it", name)
		case value == "":
			c.o.Append("headers", importer.NewObject().Set("direction", "request").Set("operation", "remove").Set("name", name).Flow())
			c.t.Became(d, importer.Same, c.o.LastOf("headers"), "")
		default:
			c.rule(d, "request", name, value, "")
		}
	}
}

// ofAuth reports whether a header is one that forward_auth copies.
func (c *content) ofAuth(d *directive) bool {
	_, ok := c.authVariables()[strings.TrimPrefix(d.arg(1), "$")]
	return ok && c.o.Has("forward_auth")
}

// hostHeader returns the Host that servers get. nginx by itself sends the name in
// proxy_pass.
func (c *content) hostHeader(name string, pass *directive) string {
	host := "upstream"
	if c.t.upstreams[name] != nil {
		host = name
	}
	for _, d := range c.scope.level("proxy_set_header", "grpc_set_header") {
		if strings.EqualFold(d.arg(0), "host") {
			host = c.hostOf(d, c.view.expand(d.arg(1)), host)
		}
	}
	if strings.HasPrefix(name, "unix:") && host == "upstream" {
		return "localhost"
	}
	return host
}

// hostOf returns the host_header for a value of Host.
func (c *content) hostOf(d *directive, value, own string) string {
	switch value {
	case "$http_host":
		c.t.Became(d, importer.Same, importer.ByItself(), "host_header: preserve")
		return "preserve"
	case "$host", "$host:$server_port", "$host:$proxy_port":
		c.t.Became(d, importer.Close, importer.ByItself(), "host_header: preserve sends it as the client wrote it, with its port")
		return "preserve"
	case "$proxy_host", "$upstream_addr":
		c.t.Became(d, importer.Same, importer.Value("host_header", own), "host_header")
		return own
	}
	if strings.Contains(value, "$") || value == "" {
		c.lost(d, "host_header is preserve, upstream or a fixed value")
		return "preserve"
	}
	c.t.Became(d, importer.Same, importer.Value("host_header", value), "host_header")
	return value
}

// okStatuses are those with which add_header acts without always.
var okStatuses = []string{"200", "201", "204", "206", "301", "302", "303", "304", "307", "308"}

// responseHeader makes a rule of add_header.
func (c *content) responseHeader(d *directive) {
	if strings.EqualFold(d.arg(0), "content-type") && !c.o.Has("servers") {
		c.t.Became(d, importer.Same, importer.Value("content_type", d.arg(1)).Or(c.o.Field("redirects")), "the type of the content")
		return
	}
	note := ""
	if d.arg(2) != "always" {
		if f := c.o.Object("fixed_response"); !f.Empty() && !c.o.Has("redirects") && !slices.Contains(okStatuses, f.Text("status")) {
			c.t.Became(d, importer.Same, c.o.Field("fixed_response"), "it is not for errors")
			return
		}
		note = "sent with every status; nginx leaves it out of errors unless always is there"
	}
	if name, ok := c.authVariables()[strings.TrimPrefix(d.arg(1), "$")]; ok {
		if name == "Set-Cookie" && strings.EqualFold(d.arg(0), name) {
			c.t.Became(d, importer.Same, importer.ByItself(), "the cookies of the auth server's answer go to the client")
			return
		}
		c.lost(d, "headers of the auth server's answer go to servers, not to clients")
		return
	}
	value := c.view.expand(d.arg(1))
	if value == "" { // nginx sends no empty header
		c.byItself(d)
		return
	}
	c.rule(d, "response", d.arg(0), value, note)
}

// rule adds a header rule. add_header adds a field beside those of servers.
func (c *content) rule(d *directive, direction, name, value, note string) bool {
	text, what := variables(requestURIs.Replace(value))
	if what != "" {
		c.lost(d, "%s", what)
		return false
	}
	o := importer.NewObject().Set("direction", direction)
	if d.name == "add_header" && c.o.Has("servers") {
		o.Set("operation", "append")
	}
	c.o.Append("headers", o.Set("name", name).Set("value", text).Flow())
	note = join(note, differences(value))
	c.t.Became(d, verdictOf(note), c.o.LastOf("headers"), "%s", note)
	return true
}

// differences are those between nginx's variables of a text and headgate's.
func differences(value string) string {
	note := hostNoted(value)
	if strings.Contains(requestURIs.Replace(value), "$request_uri") {
		note = join(note, "the path is sent in its normal form: dot segments resolved, // merged")
	}
	if strings.Contains(value, "$http_x_forwarded_") || strings.Contains(value, "$http_forwarded") || strings.Contains(value, "$proxy_add_x_forwarded_for") {
		note = join(note, "the header is as servers get it from headgate: what a client says of itself is not in it")
	}
	return note
}

// hostNoted is the difference of a text with variables.
func hostNoted(value string) string {
	if strings.Contains(value, "$host") || strings.Contains(value, "${host}") {
		return hostNote
	}
	return ""
}
