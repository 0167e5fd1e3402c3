package caddy

import (
	"regexp"
	"slices"
	"strings"
)

// privateRanges is the meaning of private_ranges.
var privateRanges = []string{"192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "::1"}

// matcherSet makes the set of matchers of their lines: all of them have to match.
func matcherSet(lines []*directive) *value {
	var set *value
	for _, d := range lines {
		if set == nil {
			set = object(d)
		}
		matcher(set, d)
	}
	return set
}

// matcher adds a line such as "path /a /b" to a set.
func matcher(set *value, d *directive) {
	words := expanded(d.args())
	switch name := d.name(); name {
	case "host", "path", "method":
		for _, w := range words {
			set.add(d, name, w)
		}
	case "remote_ip", "client_ip":
		for _, w := range words {
			if w == "private_ranges" {
				for _, p := range privateRanges {
					set.at(d, name).add(d, "ranges", p)
				}
			} else if w != "forwarded" {
				set.at(d, name).add(d, "ranges", w)
			}
		}
	case "path_regexp", "vars_regexp":
		group := ""
		if len(words) > 1 {
			group, words = words[0], words[1:]
		}
		if len(words) > 0 {
			set.set(name, object(d).put(d, "name", group).put(d, "pattern", words[0]))
		}
	case "header":
		if len(words) == 0 {
			return
		}
		field := canonical(strings.TrimPrefix(words[0], "!"))
		if strings.HasPrefix(words[0], "!") {
			set.at(d, name).set(field, text(d, ""))
		} else if len(words) > 1 {
			set.at(d, name).add(d, field, words[1])
		} else {
			set.at(d, name).add(d, field, "*")
		}
	case "header_regexp":
		group := ""
		if len(words) > 2 {
			group, words = words[0], words[1:]
		}
		if len(words) == 2 {
			set.at(d, name).set(canonical(words[0]), object(d).put(d, "name", group).put(d, "pattern", words[1]))
		}
	case "query":
		for _, w := range words {
			key, value, _ := strings.Cut(w, "=")
			set.at(d, name).add(d, key, value)
		}
	case "protocol":
		set.put(d, name, strings.Join(words, " "))
	case "not":
		inner := d.block
		if !d.open {
			inner = []*directive{{Origin: d.Origin, words: d.args(), of: d}}
		}
		if none := matcherSet(inner); none != nil {
			if set.fields[name] == nil {
				set.set(name, list(d))
			}
			set.fields[name].list = append(set.fields[name].list, none)
		}
	default: // file, expression, tls, vars, plugins; `…` alone is an expression
		if strings.ContainsAny(name, " {(=") {
			name = "expression"
		}
		set.set(name, text(d, strings.Join(append(words, joined(d.block)...), " ")))
	}
}

func joined(list []*directive) (all []string) {
	for _, d := range list {
		all = append(all, strings.Join(d.words, " "))
	}
	return all
}

// canonical writes the name of a field as Caddy does.
func canonical(name string) string {
	parts := strings.Split(name, "-")
	for i, p := range parts {
		if p != "" {
			parts[i] = strings.ToUpper(p[:1]) + strings.ToLower(p[1:])
		}
	}
	return strings.Join(parts, "-")
}

// matched returns the matchers that a directive has as its first argument, and the
// arguments behind them.
func (b *block) matched(d *directive) (e entry, words []string, ok bool) {
	words = d.args()
	e.by = d
	if len(words) == 0 {
		return e, words, true
	}
	switch first := words[0]; {
	case first == "*":
		return e, words[1:], true
	case strings.HasPrefix(first, "/"):
		e.set, e.path = object(d).add(d, "path", expand(first)), expand(first)
		return e, words[1:], true
	case strings.HasPrefix(first, "@"):
		e.set = b.matchers[first]
		if e.set == nil {
			b.a.t.leaveOut(d, "there is no matcher %s", first)
			return e, nil, false
		}
		if paths := e.set.get("path").texts(); len(paths) == 1 {
			e.path = paths[0]
		}
		return e, words[1:], true
	}
	return e, words, true
}

// shorthands are the placeholders of Caddyfiles, with their meaning.
var shorthands = map[string]string{
	"dir": "http.request.uri.path.dir", "file": "http.request.uri.path.file", "host": "http.request.host", "hostport": "http.request.hostport", "port": "http.request.port",
	"method": "http.request.method", "path": "http.request.uri.path", "query": "http.request.uri.query", "remote": "http.request.remote", "remote_host": "http.request.remote.host",
	"remote_port": "http.request.remote.port", "scheme": "http.request.scheme", "uuid": "http.request.uuid", "uri": "http.request.uri", "tls_cipher": "http.request.tls.cipher_suite",
	"tls_version": "http.request.tls.version", "tls_client_fingerprint": "http.request.tls.client.fingerprint", "tls_client_issuer": "http.request.tls.client.issuer",
	"tls_client_serial": "http.request.tls.client.serial", "tls_client_subject": "http.request.tls.client.subject", "upstream_hostport": "http.reverse_proxy.upstream.hostport",
	"client_ip": "http.vars.client_ip", "orig_uri": "http.request.orig_uri", "orig_path": "http.request.orig_uri.path", "orig_method": "http.request.orig_method", "orig_query": "http.request.orig_uri.query",
}

// families are shorthands with a name behind a dot.
var families = map[string]string{
	"labels": "http.request.host.labels", "header": "http.request.header", "cookie": "http.request.cookie", "query": "http.request.uri.query", "path": "http.request.uri.path",
	"file": "http.request.uri.path.file", "re": "http.regexp", "vars": "http.vars", "rp": "http.reverse_proxy", "resp": "http.intercept", "err": "http.error", "file_match": "http.matchers.file",
}

var placeholder = regexp.MustCompile(`\$?\{([a-z_]+)(?:\.([^{}\s]+))?\}`)

// expand writes the shorthands in a word out.
func expand(word string) string {
	if !strings.Contains(word, "{") {
		return word
	}
	return placeholder.ReplaceAllStringFunc(word, func(p string) string {
		if p[0] == '$' { // of the environment
			return p
		}
		m := placeholder.FindStringSubmatch(p)
		switch long, family := shorthands[m[1]], families[m[1]]; {
		case m[2] == "" && long != "":
			return "{" + long + "}"
		case m[2] != "" && family != "":
			return "{" + family + "." + m[2] + "}"
		}
		return p
	})
}

func expanded(words []string) []string {
	out := slices.Clone(words)
	for i := range out {
		out[i] = expand(out[i])
	}
	return out
}
