package config

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

// Target parses the server's URL. The URL of a checked configuration never
// gives an error.
func (s *Server) Target() (Target, error) {
	t, fault := parseTarget(s.URL)
	if fault != nil {
		return Target{}, fmt.Errorf("server %q: %s", s.URL, fault.what)
	}
	return t, nil
}

// fault is one thing that is wrong with a value, and what mends it.
type fault struct{ what, remedy string }

// parseTarget takes a server's URL apart. It is stricter than net/url: nothing
// in it may be without meaning for a server.
func parseTarget(raw string) (Target, *fault) {
	const form = "write it as http://<host>:<port><base path>"
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		if strings.HasPrefix(raw, "unix:") {
			return Target{}, &fault{"scheme unix is not in this version yet", "use http"}
		}
		return Target{}, &fault{"the URL has no scheme", form}
	}
	switch strings.ToLower(scheme) {
	case "http":
	case "https", "h2c", "unix":
		return Target{}, &fault{"scheme " + scheme + " is not in this version yet", "use http"}
	default:
		return Target{}, &fault{fmt.Sprintf("unknown scheme %q", scheme), form}
	}
	authority, path := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if strings.Contains(authority, "@") {
		return Target{}, &fault{"the URL carries a user name or password", "take it out of the URL"}
	}
	host, port, f := splitAuthority(authority)
	if f != nil {
		return Target{}, f
	}
	if path[0] == '?' {
		path = "/" + path
	}
	if what, remedy := schema.CheckPath(path); what != "" {
		return Target{}, &fault{"base path: " + what, remedy}
	}
	return Target{Scheme: "http", Host: host, Port: port, BasePath: path}, nil
}

// splitAuthority takes host and port apart and brings the host into the form
// that is looked up.
func splitAuthority(authority string) (host string, port uint16, f *fault) {
	host, digits := authority, "80"
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", 0, &fault{"the IPv6 address has no closing bracket", "write it as [2001:db8::1]:8080"}
		}
		host = authority[1:end]
		if tail := authority[end+1:]; tail != "" {
			if tail[0] != ':' {
				return "", 0, &fault{fmt.Sprintf("%q stands after the address", tail), "write it as [2001:db8::1]:8080"}
			}
			digits = tail[1:]
		}
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is6() {
			return "", 0, &fault{fmt.Sprintf("%q is not an IPv6 address", host), "write it as [2001:db8::1]:8080"}
		}
		host = a.String()
	} else if i := strings.LastIndexByte(authority, ':'); i >= 0 {
		host, digits = authority[:i], authority[i+1:]
		if strings.Contains(host, ":") {
			return "", 0, &fault{"an IPv6 address must stand in brackets", "write it as [2001:db8::1]:8080"}
		}
	}
	n, ok := portNumber(digits)
	if !ok || n == 0 {
		return "", 0, &fault{fmt.Sprintf("%q is not a port number", shorten(digits)), "write a number between 1 and 65535"}
	}
	if strings.HasPrefix(authority, "[") {
		return host, n, nil
	}
	host, f = asciiHost(host)
	return host, n, f
}
