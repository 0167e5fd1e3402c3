package nginx

import (
	"fmt"
	"strings"

	"headgate/internal/cutover/importer"
)

// headers gives a proxy or a route its header rules. In nginx a block that has any of
// its own has none of those around it, so each takes what holds in it.
func (l *location) headers(o importer.Object, d, around *directive) {
	level := func(name string) []*directive {
		for _, b := range []*directive{d, around, l.t.http} {
			if b != nil {
				if found := b.find(name); len(found) > 0 {
					return found
				}
			}
		}
		return nil
	}
	proxied := o.Has("servers")
	if proxied {
		host, pass := defaultHost(d, l.t.upstreams)
		l.requestHeaders(o, level("proxy_set_header"), host, pass)
	}
	if around != nil || len(d.find("location")) == 0 {
		for _, c := range level("add_header") {
			l.responseHeader(o, c)
		}
	}
	for _, c := range level("proxy_hide_header") {
		if proxied || around == nil && len(d.find("location")) == 0 {
			o.Append("headers", importer.NewObject().Set("direction", "response").Set("operation", "remove").Set("name", c.arg(0)).Flow())
		}
		l.t.Say(c, importer.Same, "")
	}
	for _, c := range level("proxy_pass_header") {
		l.t.Say(c, importer.Same, "fields of servers are passed on")
	}
}

// requestHeaders makes rules of proxy_set_header. host is what nginx sends by itself.
func (l *location) requestHeaders(o importer.Object, list []*directive, host string, pass *directive) {
	for _, c := range list {
		name, value := c.arg(0), c.arg(1)
		switch lower := strings.ToLower(name); {
		case lower == "host":
			host = l.host(c, value)
		case lower == "upgrade" || lower == "connection":
			l.t.Say(c, importer.Same, "upgrades such as WebSocket are passed on by themselves")
		case lower == "x-forwarded-for" && (value == "$proxy_add_x_forwarded_for" || value == "$remote_addr"):
			l.t.Say(c, importer.Same, "sent by itself: the client's address, as client_ip finds it")
		case lower == "x-forwarded-proto" && (value == "$scheme" || value == "https" || value == "$http_x_forwarded_proto"):
			l.t.Say(c, importer.Same, "sent by itself")
		case lower == "x-forwarded-host" && (value == "$host" || value == "$http_host"):
			l.t.Say(c, importer.Same, "sent by itself")
		case lower == "accept-encoding" && value == "":
			l.t.Say(c, importer.Ignored, "compression takes care of it")
		case value == "":
			o.Append("headers", importer.NewObject().Set("direction", "request").Set("operation", "remove").Set("name", name).Flow())
			l.t.Say(c, importer.Same, "")
		default:
			l.rule(o, c, "request", name, value)
		}
	}
	l.hosts = append(l.hosts, hostOf{host, pass})
}

// hostOf is the Host that a location sends.
type hostOf struct {
	value string
	pass  *directive
}

// defaultHost returns the Host that nginx sends where nobody says another: the name
// in proxy_pass.
func defaultHost(d *directive, upstreams map[string]*directive) (string, *directive) {
	for _, c := range d.block {
		if c.name == "proxy_pass" || c.name == "grpc_pass" {
			_, rest, _ := strings.Cut(c.arg(0), "://")
			name, _, _ := strings.Cut(rest, "/")
			if upstreams[name] != nil {
				return name, c
			}
			return "upstream", c
		}
	}
	return "upstream", nil
}

// host returns the host_header that a value of Host stands for.
func (l *location) host(d *directive, value string) string {
	switch value {
	case "$http_host":
		l.t.Say(d, importer.Same, "host_header: preserve")
		return "preserve"
	case "$host", "$host:$server_port", "$host:$proxy_port":
		l.t.Say(d, importer.Close, "host_header: preserve sends it as the client wrote it, with its port")
		return "preserve"
	case "$proxy_host", "$upstream_addr":
		l.t.Say(d, importer.Same, "host_header: upstream")
		return "upstream"
	}
	if strings.Contains(value, "$") {
		l.t.Say(d, importer.Impossible, "host_header is preserve, upstream or a fixed value")
		return "preserve"
	}
	l.t.Say(d, importer.Same, "host_header")
	return value
}

// responseHeader makes a rule of add_header.
func (l *location) responseHeader(o importer.Object, d *directive) {
	note := ""
	if d.arg(2) != "always" {
		note = "sent with every status; nginx leaves it out of errors unless always is there"
	}
	if l.rule(o, d, "response", d.arg(0), d.arg(1)) && note != "" {
		// The verdict was given: the first one stands.
		l.t.Amend(d, importer.Close, note)
	}
}

// rule adds a header rule that sets a field.
func (l *location) rule(o importer.Object, d *directive, direction, name, value string) bool {
	text, what := variables(value)
	if what != "" {
		l.t.Say(d, importer.Impossible, what)
		return false
	}
	o.Append("headers", importer.NewObject().Set("direction", direction).Set("name", name).Set("value", text).Flow())
	l.t.sayValue(d, value)
	return true
}

// sayValue gives a directive the verdict of a text with variables.
func (t *translator) sayValue(d *directive, value string) {
	if strings.Contains(value, "$host") || strings.Contains(value, "${host}") {
		t.Say(d, importer.Close, "{host} is in the letters that the client used; nginx writes small ones")
		return
	}
	t.Say(d, importer.Same, "")
}

// ours are the variables of nginx that headgate has by another name.
var ours = map[string]string{
	"remote_addr": "{client_ip}", "realip_remote_addr": "{client_ip}", "host": "{host}", "http_host": "{authority}", "scheme": "{scheme}",
	"request_method": "{method}", "uri": "{path}", "document_uri": "{path}", "args": "{query}", "query_string": "{query}",
	"request_id": "{request_id}", "remote_user": "{user}", "ssl_client_s_dn": "{client_cert_subject}",
}

// variables writes a text with the variables of headgate. What says which is not
// there.
func variables(text string) (out, what string) {
	text = strings.ReplaceAll(text, "{", "{{")
	text = strings.ReplaceAll(text, "${{", "${")
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 {
			return out + text, ""
		}
		out += text[:i]
		rest := text[i+1:]
		braced := strings.HasPrefix(rest, "{")
		rest = strings.TrimPrefix(rest, "{")
		n := 0
		for n < len(rest) && (rest[n] == '_' || rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= '0' && rest[n] <= '9') {
			n++
		}
		name := rest[:n]
		value, ok := ours[name]
		if !ok {
			return "", fmt.Sprintf("there is no variable like $%s; there are %s", name, "{client_ip}, {host}, {authority}, {scheme}, {method}, {path}, {query}, {request_id}, {user}")
		}
		out += value
		text = rest[n:]
		if braced {
			text = strings.TrimPrefix(text, "}")
		}
	}
}
