// Package target parses what headgate sends requests to: the URL of a server, of
// an auth service, of whatever else is asked, and the host names in them. It is
// stricter than net/url: nothing in a URL may be without meaning for who is asked.
// Rooms check their settings with it, and plan compiles from the same form.
package target

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"headgate/internal/schema"
)

// Target is the parsed form of a server's URL.
type Target struct {
	// Scheme is "http".
	Scheme string
	// Host is a name in its ASCII form and lower case, or an IP address without
	// brackets.
	Host string
	// Port is the port number, 1 to 65535; the scheme's own when the URL has
	// none.
	Port uint16
	// BasePath is put in front of the path that a route leaves. It begins with
	// a slash; "/" means none.
	BasePath string
}

// Address returns host and port as a dialer wants them, IPv6 in brackets.
func (t Target) Address() string {
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// Authority returns host and port as a Host field has them: IPv6 in brackets,
// and no port when it is the scheme's own.
func (t Target) Authority() string {
	if t.Port != 80 {
		return t.Address()
	}
	if strings.Contains(t.Host, ":") {
		return "[" + t.Host + "]"
	}
	return t.Host
}

// IP returns the address when the host is a literal one, else false.
func (t Target) IP() (netip.Addr, bool) {
	a, err := netip.ParseAddr(t.Host)
	return a, err == nil
}

// Fault is one thing that is wrong with a value of the configuration.
type Fault struct {
	// What is wrong, and Remedy what mends it; Remedy may be "".
	What, Remedy string
}

// Parse takes a URL apart.
func Parse(raw string) (Target, *Fault) {
	const form = "write it as http://<host>:<port><base path>"
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		if strings.HasPrefix(raw, "unix:") {
			return Target{}, &Fault{"scheme unix is not in this version yet", "use http"}
		}
		return Target{}, &Fault{"the URL has no scheme", form}
	}
	switch strings.ToLower(scheme) {
	case "http":
	case "https", "h2c", "unix":
		return Target{}, &Fault{"scheme " + scheme + " is not in this version yet", "use http"}
	default:
		return Target{}, &Fault{fmt.Sprintf("unknown scheme %q", scheme), form}
	}
	authority, path := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if strings.Contains(authority, "@") {
		return Target{}, &Fault{"the URL carries a user name or password", "take it out of the URL"}
	}
	host, port, f := SplitAuthority(authority)
	if f != nil {
		return Target{}, f
	}
	if path[0] == '?' {
		path = "/" + path
	}
	if what, remedy := schema.CheckPath(path); what != "" {
		return Target{}, &Fault{"base path: " + what, remedy}
	}
	return Target{Scheme: "http", Host: host, Port: port, BasePath: path}, nil
}

// SplitAuthority takes host and port apart and brings the host into the form
// that is looked up.
func SplitAuthority(authority string) (host string, port uint16, f *Fault) {
	host, digits := authority, "80"
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", 0, &Fault{"the IPv6 address has no closing bracket", "write it as [2001:db8::1]:8080"}
		}
		host = authority[1:end]
		if tail := authority[end+1:]; tail != "" {
			if tail[0] != ':' {
				return "", 0, &Fault{fmt.Sprintf("%q stands after the address", tail), "write it as [2001:db8::1]:8080"}
			}
			digits = tail[1:]
		}
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is6() {
			return "", 0, &Fault{fmt.Sprintf("%q is not an IPv6 address", host), "write it as [2001:db8::1]:8080"}
		}
		host = a.String()
	} else if i := strings.LastIndexByte(authority, ':'); i >= 0 {
		host, digits = authority[:i], authority[i+1:]
		if strings.Contains(host, ":") {
			return "", 0, &Fault{"an IPv6 address must stand in brackets", "write it as [2001:db8::1]:8080"}
		}
	}
	n, ok := PortNumber(digits)
	if !ok || n == 0 {
		return "", 0, &Fault{fmt.Sprintf("%q is not a port number", digits), "write a number between 1 and 65535"}
	}
	if strings.HasPrefix(authority, "[") {
		return host, n, nil
	}
	host, f = Host(host)
	return host, n, f
}

// PortNumber reads a port number without leading zeros.
func PortNumber(text string) (uint16, bool) {
	if text == "" || len(text) > 5 || text[0] == '0' && text != "0" {
		return 0, false
	}
	n := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + int(text[i]-'0')
	}
	return uint16(n), n <= 65535
}
