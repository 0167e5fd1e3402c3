package haproxy

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
	"headgate/internal/proto/header"
)

// heads reads http-response and http-after-response of a section: rules for headers of
// responses, whose conditions are about the port only.
func (t *translator) heads(s *section, acls map[string]condition, f *front) (out []*rule) {
	for _, d := range s.rules("http-response", "http-after-response") {
		words, c := t.splitIf(s, d, acls)
		if len(words) < 2 || !slices.Contains([]string{"set-header", "add-header", "del-header", "replace-header", "replace-value"}, words[1]) {
			continue
		}
		for _, l := range slices.Concat(c.Any...) {
			if l.Kind != rules.TLS && l.Kind != rules.Port && c.Problem == "" {
				c.Problem = "a rule for responses has no condition but the port"
			}
		}
		act, became, note := headerAction("response", words[1], words[2:])
		switch {
		case c.Problem != "":
			t.AddVerdict(d, importer.Impossible, "%s", c.Problem)
			continue
		case act == nil:
			t.AddVerdict(d, importer.Impossible, "%s", note)
			continue
		}
		every := d.name() == "http-after-response"
		if !every {
			note = strings.TrimPrefix(note+"; it acts on headgate's own errors, too", "; ")
		}
		t.ruled(d, note)
		out = append(out, &rule{d: d, when: c, late: true, became: became, act: func(o *outcome) {
			before := len(o.answers)
			act(o)
			if every {
				o.always = append(o.always, o.answers[before:]...)
				o.answers = o.answers[:before]
			}
		}})
	}
	return out
}

func verdictOf(note string) importer.Verdict {
	if note != "" {
		return importer.Close
	}
	return importer.Same
}

// byItself are headers that headgate sends or handles by itself.
var byItself = map[string]string{
	"x-forwarded-for": "sent by itself: the client's address, as client_ip finds it", "x-forwarded-proto": "sent by itself", "x-forwarded-host": "sent by itself",
	"forwarded": "sent by itself; forwarded_style says its form",
}

// framing are headers that no rule may change.
var framing = map[string]bool{"connection": true, "upgrade": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true, "content-length": true}

// headerAction makes a header rule.
func headerAction(direction, name string, args []string) (act func(*outcome), became func(importer.Object) importer.Field, note string) {
	if len(args) == 0 || name != "del-header" && len(args) < 2 {
		return nil, nil, "a header has a name and a value"
	}
	field := args[0]
	if !header.ValidName(field) {
		return nil, nil, field + " is not a header name"
	}
	o := importer.NewObject().Set("direction", direction)
	if direction == "request" && strings.EqualFold(field, "host") {
		if name != "set-header" || strings.Contains(args[1], "%") {
			return nil, nil, "the Host that servers get is a fixed text: host_header of the proxy"
		}
		return func(out *outcome) { out.host = args[1] }, always(importer.Value("host_header", args[1])), ""
	}
	if framing[strings.ToLower(field)] {
		what := "connections and the framing of messages are headgate's own; upgrades such as WebSocket are passed on by themselves"
		if name == "del-header" || strings.EqualFold(field, "connection") || strings.EqualFold(field, "upgrade") {
			return func(*outcome) {}, always(importer.ByItself()), what
		}
		return nil, nil, what
	}
	if what, own := byItself[strings.ToLower(field)]; own && direction == "request" {
		return func(*outcome) {}, always(importer.ByItself()), what
	}
	if what := setHeaderRule(o, name, args); what != "" {
		return nil, nil, what
	}
	if name == "replace-value" {
		note = "the whole header is matched, where HAProxy matches each part between commas"
	}
	return func(out *outcome) {
		if direction == "request" {
			out.requests = append(out.requests, o.Flow())
			return
		}
		out.answers = append(out.answers, o.Flow())
	}, always(o.As("headers")), note
}

// setHeaderRule sets the operation, the name and the value of a header rule. It returns why
// there can be none.
func setHeaderRule(o importer.Object, name string, args []string) (what string) {
	field := args[0]
	switch name {
	case "del-header":
		if slices.Contains(args, "-m") {
			return "a header is removed by its whole name"
		}
		o.Set("operation", "remove").Set("name", field)
	case "replace-header", "replace-value":
		if len(args) < 3 {
			return "a replacement has an expression and a text"
		}
		if what := checkRegex(args[1]); what != "" {
			return what
		}
		value, what := format(args[2], false)
		if what != "" {
			return what
		}
		o.Set("operation", "replace").Set("name", field).Set("regex", whole(args[1])).Set("value", groups(value))
	default:
		value, what := format(args[1], false)
		if what != "" {
			return what
		}
		if name == "add-header" {
			o.Set("operation", "append")
		}
		o.Set("name", field).Set("value", strings.TrimSpace(value)) // who reads a header does not see spaces around it
	}
	return ""
}

// always returns what a rule becomes wherever it acts.
func always(f importer.Field) func(importer.Object) importer.Field {
	return func(importer.Object) importer.Field { return f }
}

// fields returns what a rule becomes that sets one of these fields of a route.
func fields(names ...string) func(importer.Object) importer.Field {
	return func(route importer.Object) (f importer.Field) {
		for _, name := range names {
			f = f.Or(route.Field(name))
		}
		return f
	}
}

// ours are the samples that headgate has a variable for.
var ours = map[string]string{
	"src": "{client_ip}", "hdr(host)": "{authority}", "hdr(host),host_only": "{host}", "hdr(host),field(1,:)": "{host}", "base,host_only": "{host}", "path": "{path}", "query": "{query}",
	"method": "{method}", "unique-id": "{request_id}", "uuid": "{request_id}", "uuid()": "{request_id}", "ssl_fc,iif(https,http)": "{scheme}", "ssl_c_s_dn": "{client_cert_subject}",
	"status": "{status}", "url": "{uri}", "pathq": "{uri}", "capture.req.uri": "{uri}", "http_auth_user": "{user}", "be_name": "{route}", "fe_name": "{proxy}",
}

// short are the variables of logs.
var short = map[string]string{"ci": "{client_ip}", "HM": "{method}", "HP": "{path}", "HQ": "{query}", "ID": "{request_id}", "ST": "{status}", "%": "%"}

// format translates a log-format text. With uri, {uri} may represent path and query. What
// is why that is not possible.
func format(text string, uri bool) (out, what string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '{' && !strings.HasPrefix(text[max(0, i-1):], "${"):
			b.WriteString("{{")
		case text[i] != '%' || i+1 >= len(text):
			b.WriteByte(text[i])
		case text[i+1] == '[':
			end := strings.IndexByte(text[i:], ']')
			if end < 0 {
				return "", "a %[ is not closed"
			}
			name := strings.ReplaceAll(text[i+2:i+end], " ", "")
			value, ok := ours[strings.Replace(name, "req.", "", 1)]
			if !ok || value == "{uri}" && !uri {
				return "", "there is no variable like %[" + name + "]; there are {client_ip}, {host}, {authority}, {scheme}, {method}, {path}, {query}, {request_id}, {user}"
			}
			b.WriteString(value)
			i += end
		default:
			n := i + 1
			for n < len(text) && n < i+3 && (text[n] >= 'A' && text[n] <= 'Z' || text[n] >= 'a' && text[n] <= 'z') {
				n++
			}
			if text[i+1] == '%' {
				n = i + 2
			}
			value, ok := short[text[i+1:n]]
			if !ok {
				return "", "there is no variable like %" + text[i+1:n]
			}
			b.WriteString(value)
			i = n - 1
		}
	}
	return b.String(), ""
}

// literalText is a text without variables.
func literalText(text string) string { return strings.ReplaceAll(text, "{", "{{") }
