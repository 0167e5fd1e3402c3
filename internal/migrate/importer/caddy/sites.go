package caddy

import (
	"net"
	"strings"
)

// address is an address of a site: [scheme://][host][:port][/path]. A site without a host has
// the host "", and matches all; the host * is any name of one label.
type address struct{ text, scheme, host, port, path string }

// addressesOf returns the addresses of a site.
func addressesOf(d *directive) (out []address) {
	for _, word := range d.words {
		for text := range strings.SplitSeq(strings.Trim(defaults(word), ","), ",") {
			if text == "" {
				continue
			}
			a := address{text: text}
			scheme, rest, ok := strings.Cut(text, "://")
			if !ok {
				scheme, rest = "", text
			}
			a.scheme = scheme
			rest, a.path, _ = strings.Cut(rest, "/")
			host, port, err := net.SplitHostPort(rest)
			if err != nil {
				host, port = rest, ""
			}
			a.host, a.port = folded(strings.Trim(host, "[]")), port
			out = append(out, a)
		}
	}
	return out
}

// folded returns a host in lower case, unless it names a value of the environment.
func folded(host string) string {
	if strings.Contains(host, "${") {
		return host
	}
	return strings.ToLower(host)
}
