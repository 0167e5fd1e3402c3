package review

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"headgate/internal/config/diff"
	"headgate/internal/feature/headers"
	"headgate/internal/schema"
)

// The words for names of fields that their parts do not make.
var (
	plainNames = map[string]string{
		"basic_auth": "basic auth", "client_ip": "client IP settings", "redirects": "redirect rules",
		"redirect_http_to_https": "redirect from HTTP to HTTPS", "h2c": "HTTP/2 without TLS",
		"headers": "header rules", "use": "policies", "sni": "TLS names (SNI)",
		"insecure_skip_verify": "trust in any certificate", "on": "conditions", "cdn": "CDNs",
		"regex": "expression", "eab": "external account", "ignore_query": "ignored query parameters",
		"rise": "checks until healthy", "fall": "failed checks until unhealthy",
		"exempt": "exempt clients", "default": "part as the default entry",
		"upstream": "handling of responses of servers",
		"backup":   "part as a backup",
	}
	acronyms = map[string]string{
		"tls": "TLS", "url": "URL", "uri": "URI", "http": "HTTP", "https": "HTTPS", "ttl": "TTL", "ca": "CA",
		"ip": "IP", "cdn": "CDN", "acme": "ACME", "eab": "EAB", "dns": "DNS", "sni": "SNI", "hmac": "HMAC", "id": "ID",
	}
	uncounted = map[string]bool{
		"basic auth": true, "forward auth": true, "compression": true, "maintenance": true, "TLS": true, "slow start": true,
	}
)

// plain returns the words for the name of a field.
func plain(name string) string {
	if words := plainNames[name]; words != "" {
		return words
	}
	words := strings.Split(name, "_")
	for i, w := range words {
		if full := acronyms[w]; full != "" {
			words[i] = full
		}
	}
	return strings.Join(words, " ")
}

// plainOf returns the words for a field. A list of matchers is called by what it has in it.
func plainOf(f *schema.Field) string {
	if strings.HasSuffix(f.Called, " matcher") {
		return f.Called + "s"
	}
	if f.Name == "headers" && f.Called == "" {
		return f.Name
	}
	return plain(f.Name)
}

// maxText is how much of a text is shown, in bytes.
const maxText = 80

// shorten makes a text fit on a line: without control characters and with limited length.
func shorten(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError || !unicode.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// shortened shortens texts.
func shortened(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = shorten(open(text))
	}
	return out
}

// open takes off a URL what may be secret: the user and the query.
func open(text string) string {
	if !strings.Contains(text, "://") || !strings.ContainsAny(text, "@?") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "a URL"
	}
	hasMore := u.User != nil || u.RawQuery != ""
	u.User, u.RawQuery = nil, ""
	if hasMore {
		return u.String() + "…"
	}
	return u.String()
}

// text returns a JSON string, "" if it is none.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// hidden reports whether no value of a field is shown.
func hidden(field *schema.Field, f *diff.FieldChange) bool {
	if field.Secret || f.Secret && f.Before == nil && f.After == nil {
		return true
	}
	// The value of a rule for a header that carries credentials.
	i := strings.LastIndex(f.Within, "header rule ")
	return i >= 0 && (field.Name == "value" || field.Name == "regex") && headers.Credentials(f.Within[i+len("header rule "):])
}

// isSwitch reports whether a field is on or off and nothing else.
func isSwitch(f *schema.Field) bool {
	return f.Type.Kind == schema.Scalar && f.Type.Go.Name() == "Switch"
}

// value returns a value in words. Of an object it names what is not its default, but
// not the field that it is called by.
func value(f *schema.Field, t *schema.Type, raw json.RawMessage, calledBy string) string {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case t == nil:
		return plainValue(raw)
	}
	switch t.Kind {
	case schema.Struct:
		return objectValue(t.Object, raw, calledBy)
	case schema.List:
		return listValue(f, t, raw)
	case schema.Map:
		var m map[string]json.RawMessage
		_ = json.Unmarshal(raw, &m)
		return counted(len(m), "value", "values")
	}
	return plainValue(raw)
}

// plainValue returns a value that is neither an object nor a list.
func plainValue(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return shorten(open(v))
	case bool:
		if v {
			return "on"
		}
		return "off"
	}
	return string(raw)
}

// listValue names the first elements of a list.
func listValue(f *schema.Field, t *schema.Type, raw json.RawMessage) string {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil || len(elements) == 0 {
		return "none"
	}
	names := make([]string, 0, min(len(elements), maxNames+1))
	for _, e := range elements {
		if t.Elem.Kind == schema.Struct {
			noun := "element"
			if f != nil && f.Called != "" {
				noun = f.Called
			}
			var fields map[string]json.RawMessage
			if f == nil || f.CalledBy == "" || json.Unmarshal(e, &fields) != nil || len(elements) > maxNames {
				return counted(len(elements), noun, plural(noun))
			}
			name := value(nil, nil, fields[f.CalledBy], "")
			if name == "" {
				return counted(len(elements), noun, plural(noun))
			}
			names = append(names, noun+" "+name)
			continue
		}
		names = append(names, value(nil, t.Elem, e, ""))
	}
	return listed(names)
}

// maxDetails is how many fields of an object are named.
const maxDetails = 6

// objectValue names the fields of an object.
func objectValue(o *schema.Object, raw json.RawMessage, calledBy string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	credentials := headers.Credentials(text(fields["name"])) && o.Field("value") != nil && o.Field("direction") != nil
	var out []string
	for _, f := range o.Fields {
		v, ok := fields[f.Name]
		if f.Name == "weight" && !ok {
			v, ok = json.RawMessage(f.Default), true // of a server people want to know it
		}
		if !ok || f.Name == calledBy {
			continue
		}
		if len(out) == maxDetails {
			out = append(out, "and more")
			break
		}
		switch {
		case f.Name == "enabled":
			out = append(out, "switched "+value(nil, nil, v, ""))
		case string(v) == `""`:
		case f.Secret || credentials && (f.Name == "value" || f.Name == "regex"):
			out = append(out, "its own "+plain(f.Name))
		case f.Name == "backup":
			out = append(out, "as a backup")
		case f.Type.Kind == schema.Bool || isSwitch(f):
			out = append(out, plain(f.Name)+" "+value(nil, nil, v, ""))
		case f.Type.Kind == schema.Struct:
			if inner := objectValue(f.Type.Object, v, ""); inner != "" {
				out = append(out, plain(f.Name)+" ("+inner+")")
			} else {
				out = append(out, plain(f.Name))
			}
		case f.Type.Kind == schema.List && f.Type.Elem.Kind == schema.Struct:
			out = append(out, value(f, f.Type, v, ""))
		default:
			out = append(out, plainOf(f)+" "+value(f, f.Type, v, ""))
		}
	}
	return strings.Join(out, ", ")
}
