package nginx

import (
	"fmt"
	"strings"
)

// ours are the variables of nginx that headgate has by another name.
var ours = map[string]string{
	"remote_addr": "{client_ip}", "realip_remote_addr": "{client_ip}", "host": "{host}", "http_host": "{authority}", "scheme": "{scheme}",
	"request_method": "{method}", "uri": "{path}", "document_uri": "{path}", "args": "{query}", "query_string": "{query}",
	"request_id": "{request_id}", "remote_user": "{user}", "ssl_client_s_dn": "{client_cert_subject}",
	"request_uri": "{request_uri}", "server_port": "{server_port}", "content_type": "{header.Content-Type}", "ssl_client_fingerprint": "{client_cert_fingerprint}",
	"proxy_add_x_forwarded_for": "{header.X-Forwarded-For}",
}

// variableOf returns headgate's variable for one of nginx, "" if there is none.
func variableOf(name string) string {
	if value, ok := ours[name]; ok {
		return value
	}
	if field, ok := strings.CutPrefix(name, "http_"); ok && field != "" && !unmatched[strings.ToLower(headerName(field))] && field != "upgrade" {
		return "{header." + headerName(field) + "}"
	}
	return ""
}

// variables writes a text with the variables of headgate. What says which is not
// there.
func variables(text string) (out, what string) {
	out, what = eachVariable(strings.ReplaceAll(strings.ReplaceAll(text, "{", "{{"), "${{", "${"), func(name, _ string) (string, string) {
		if value := variableOf(name); value != "" {
			return value, ""
		}
		return "", fmt.Sprintf("there is no variable like $%s; there are %s", name, "{client_ip}, {host}, {authority}, {scheme}, {method}, {path}, {query}, {request_uri}, {port}, {server_port}, {request_id}, {user}, {header.NAME}")
	})
	return out, what
}

// eachVariable puts what value returns in the place of every variable of a text. It
// stops where value says what is wrong.
func eachVariable(text string, value func(name, written string) (out, what string)) (out, what string) {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 {
			b.WriteString(text)
			return b.String(), ""
		}
		b.WriteString(text[:i])
		rest := text[i+1:]
		braced := strings.HasPrefix(rest, "{")
		rest = strings.TrimPrefix(rest, "{")
		n := 0
		for n < len(rest) && (rest[n] == '_' || rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= 'A' && rest[n] <= 'Z' || rest[n] >= '0' && rest[n] <= '9') {
			n++
			if n == 1 && rest[0] >= '0' && rest[0] <= '9' {
				break // a group has one digit
			}
		}
		name, after := rest[:n], rest[n:]
		if braced {
			after = strings.TrimPrefix(after, "}")
		}
		one, what := value(name, text[i:len(text)-len(after)])
		if what != "" {
			return "", what
		}
		b.WriteString(one)
		text = after
	}
}

// expand puts the values of variables that the source itself sets into a text: of set, of
// maps, of groups and of the server. Those of the request stay.
func (v *view) expand(text string) string { return v.expandBut(text, false) }

// expandBut leaves groups alone, where they are those of the directive's own expression.
func (v *view) expandBut(text string, groups bool) string {
	return v.replace(text, func(name string) (string, bool) {
		if groups && len(name) == 1 && name[0] >= '0' && name[0] <= '9' {
			return "", false
		}
		if value, ok := v.vars[name]; ok {
			return value, true
		}
		if m := v.t.maps[name]; m != nil {
			return v.mapped(m)
		}
		switch {
		case name == "server_name":
			return v.site.s.firstName, true
		case v.t.set[name]:
			return "", true
		}
		return "", false
	})
}

// expandAll also puts in what is the same for all requests of the site.
func (v *view) expandAll(text string) string {
	return v.replace(v.expand(text), func(name string) (string, bool) {
		s, ok := v.ofSite(name)
		return s.value, ok && s.constant
	})
}

func (v *view) replace(text string, value func(name string) (string, bool)) string {
	if !strings.Contains(text, "$") {
		return text
	}
	out, _ := eachVariable(text, func(name, written string) (string, string) {
		if s, ok := value(name); ok {
			return s, ""
		}
		return written, ""
	})
	return out
}
