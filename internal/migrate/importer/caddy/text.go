package caddy

import (
	"cmp"
	"regexp"
	"strings"
)

// variables are Caddy's placeholders that headgate has a variable for.
var variables = map[string]string{
	"http.request.host": "{host}", "http.request.hostport": "{authority}", "http.request.scheme": "{scheme}", "http.request.method": "{method}", "http.request.orig_method": "{method}",
	"http.request.uri.path": "{path}", "http.request.orig_uri.path": "{path}", "http.request.uri.query": "{query}", "http.request.orig_uri.query": "{query}",
	"http.request.remote.host": "{client_ip}", "http.vars.client_ip": "{client_ip}", "http.request.uuid": "{request_id}", "http.auth.user.id": "{user}",
	"http.request.tls.client.subject": "{client_cert_subject}", "http.request.tls.client.fingerprint": "{client_cert_fingerprint}",
}

// words is how a text is written in headgate's words.
type words struct {
	// changed says that the path is not the one that the client has sent, so that no
	// variable has it.
	changed bool
	// plain says that the text goes where no variables are.
	plain bool
	// required means that an empty value must not replace the value of the
	// environment.
	required bool
	// own has the words for further placeholders.
	own map[string]string
}

var anyPlaceholder = regexp.MustCompile(`\\[{}]|\$?\{[^{}\s]*\}|\{`)

// write writes a text. missing is the placeholder that there is no word for.
func (w words) write(text string) (out, missing string) {
	out = anyPlaceholder.ReplaceAllStringFunc(text, func(p string) string {
		name := strings.Trim(p, "{}")
		switch {
		case p[0] == '\\':
			p = p[1:]
		case p[0] == '$' && strings.HasPrefix(p, "${"):
			if w.required || strings.Contains(p, ":") {
				return p
			}
			return strings.TrimSuffix(p, "}") + ":-}" // of the environment, or nothing
		case p == "{":
		default:
			word, ok := w.word(name)
			if ok {
				return word
			}
			if isKnown(name) {
				missing = cmp.Or(missing, p)
				return p
			}
		}
		if strings.HasPrefix(p, "{") && !w.plain {
			return "{" + p
		}
		return p
	})
	return out, missing
}

func (w words) word(name string) (string, bool) {
	if word, ok := w.own[name]; ok {
		return word, true
	}
	if env, ok := strings.CutPrefix(name, "env."); ok {
		if w.required {
			return "${" + env + "}", true
		}
		return "${" + env + ":-}", true
	}
	if file, ok := strings.CutPrefix(name, "file./"); ok {
		return "${file:/" + file + "}", true
	}
	word, ok := variables[name]
	return word, ok && !w.plain && !(w.changed && strings.HasPrefix(name, "http.request.uri"))
}

// isKnown reports whether Caddy replaces a placeholder; others are literal.
func isKnown(name string) bool {
	for _, family := range []string{"http.", "env.", "file.", "system.", "time.", "args"} {
		if strings.HasPrefix(name, family) {
			return true
		}
	}
	return false
}

// environment matches {$NAME} and {$NAME:default} of Caddyfiles.
var environment = regexp.MustCompile(`\{\$([A-Za-z_][A-Za-z0-9_]*)(?::([^{}\n]*))?\}`)

// fromEnvironment writes a value that a Caddyfile reads from the environment in
// headgate's form. A default of several words is inserted, as they are words of the
// Caddyfile then.
func fromEnvironment(data []byte) []byte {
	return environment.ReplaceAllFunc(data, func(m []byte) []byte {
		part := environment.FindSubmatch(m)
		switch fallback := string(part[2]); {
		case fallback == "":
			return []byte("${" + string(part[1]) + "}")
		case strings.ContainsAny(fallback, " \t\"`"):
			return part[2]
		default:
			return []byte("${" + string(part[1]) + ":-" + fallback + "}")
		}
	})
}

// defaults puts the defaults of the environment in, for what has to be known now.
func defaults(text string) string {
	return withDefault.ReplaceAllString(text, "$1")
}

var withDefault = regexp.MustCompile(`\$\{[A-Za-z0-9_]+:-([^}]*)\}`)
