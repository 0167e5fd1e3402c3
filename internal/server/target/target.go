// Package target parses the targets of requests: the URL of a server, of an auth server and
// the like, and the host names in them. It is stricter than net/url: every part of a URL
// must have a meaning. Features validate their settings with it, and plan compiles from the
// same form.
package target

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"headgate/internal/schema"
)

// Target is the parsed form of a server's URL.
type Target struct {
	// Scheme is how the server is spoken to.
	Scheme Scheme
	// Host is a name in its ASCII form and lower case, or an IP address without
	// brackets; "" for a Unix socket.
	Host string
	// Port is the port number, 1 to 65535; the scheme's own when the URL has
	// none, and 0 for a Unix socket.
	Port uint16
	// Service is the name of a service whose SRV records say host and port, such
	// as _http._tcp.example.com, or ""; Host is the part behind its labels then.
	Service string
	// Socket is the path of a Unix socket, or "".
	Socket string
	// BasePath is added in front of the path of the request. It starts with a
	// slash; "/" means none.
	BasePath string
}

// Scheme is the protocol of a server, as in its URL.
type Scheme string

// The schemes.
const (
	// HTTP is HTTP/1.1, HTTPS TLS with HTTP/2 or HTTP/1.1 as the server prefers.
	HTTP  Scheme = "http"
	HTTPS Scheme = "https"
	// H2C is HTTP/2 without TLS and without negotiation.
	H2C Scheme = "h2c"
	// Unix is HTTP/1.1 and UnixH2C HTTP/2 over a Unix socket.
	Unix    Scheme = "unix"
	UnixH2C Scheme = "unix+h2c"
	// FastCGI is FastCGI, and UnixFastCGI the same over a Unix socket.
	FastCGI     Scheme = "fcgi"
	UnixFastCGI Scheme = "fcgi+unix"
)

// port returns the number of the port when a URL has none.
func (s Scheme) port() uint16 {
	switch s {
	case HTTPS:
		return 443
	case FastCGI:
		return 9000
	}
	return 80
}

// IsFastCGI reports whether servers speak FastCGI.
func (s Scheme) IsFastCGI() bool { return s == FastCGI || s == UnixFastCGI }

// Address returns host and port as a dialer wants them, IPv6 in brackets, or the
// path of the Unix socket, or the name of the service.
func (t Target) Address() string {
	switch {
	case t.Socket != "":
		return t.Socket
	case t.Service != "":
		return t.Service
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// Authority returns host and port as a Host field has them: IPv6 in brackets,
// and no port when it is the scheme's own. For a Unix socket it is localhost.
func (t Target) Authority() string {
	switch {
	case t.Socket != "":
		return "localhost"
	case t.Service != "":
		return t.Host
	case t.Port != t.Scheme.port():
		return t.Address()
	case strings.Contains(t.Host, ":"):
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
	// What is wrong, and Remedy how to fix it; Remedy may be "".
	What, Remedy string
}

// Parse parses a URL.
func Parse(raw string) (Target, *Fault) {
	const form = "write it as http://<host>:<port><base path>, with https, h2c or fcgi in place of http, or as unix:<path of the socket>"
	if before, rest, found := strings.Cut(raw, ":"); found {
		switch scheme := Scheme(strings.ToLower(before)); scheme {
		case Unix, UnixH2C, UnixFastCGI:
			return parseUnix(scheme, rest)
		}
	}
	before, rest, found := strings.Cut(raw, "://")
	if !found {
		return Target{}, &Fault{"the URL has no scheme", form}
	}
	lower, isService := strings.CutPrefix(strings.ToLower(before), "srv+")
	scheme := Scheme(lower)
	switch scheme {
	case HTTP, HTTPS, H2C, FastCGI:
	default:
		return Target{}, &Fault{fmt.Sprintf("unknown scheme %q", before), form}
	}
	authority, path := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if strings.Contains(authority, "@") {
		return Target{}, &Fault{"the URL contains a user name or password", "remove it from the URL"}
	}
	if isService {
		return parseService(scheme, authority, path)
	}
	host, port, f := splitAuthority(authority, scheme.port())
	if f != nil {
		return Target{}, f
	}
	if path[0] == '?' {
		path = "/" + path
	}
	if f := checkBase(scheme, path); f != nil {
		return Target{}, f
	}
	return Target{Scheme: scheme, Host: host, Port: port, BasePath: path}, nil
}

// parseService makes a target of the name of a service (RFC 2782).
func parseService(scheme Scheme, name, path string) (Target, *Fault) {
	const form = "write it like srv+http://_http._tcp.example.com"
	if strings.ContainsAny(name, ":[]") {
		return Target{}, &Fault{"a srv URL has no port: the SRV records contain it", form}
	}
	service, f := Host(name)
	if f != nil {
		return Target{}, f
	}
	labels := strings.SplitN(service, ".", 3)
	if len(labels) < 3 || labels[0][0] != '_' || labels[1][0] != '_' {
		return Target{}, &Fault{fmt.Sprintf("%q is not the name of a service", name), form}
	}
	if f := checkBase(scheme, path); f != nil {
		return Target{}, f
	}
	return Target{Scheme: scheme, Host: labels[2], Service: service, BasePath: path}, nil
}

func checkBase(scheme Scheme, path string) *Fault {
	if scheme.IsFastCGI() && path != "/" {
		return &Fault{"a FastCGI server has no base path", "remove the path from the URL, and name the folder of the scripts in fastcgi.root of the route"}
	}
	if what, remedy := schema.CheckPath(path); what != "" {
		return &Fault{"base path: " + what, remedy}
	}
	return nil
}

// maxSocket is the maximum length of the path of a Unix socket on all
// systems, in bytes.
const maxSocket = 103

// parseUnix splits what follows "unix:": the path of the socket, and the base
// path after another colon. Two additional slashes, as in URLs, are allowed.
func parseUnix(scheme Scheme, rest string) (Target, *Fault) {
	const form = "write it as unix:/run/app.sock, or unix:/run/app.sock:/base/path"
	if strings.HasPrefix(rest, "///") {
		rest = rest[2:]
	}
	socket, base, _ := strings.Cut(rest, ":")
	if base == "" {
		base = "/"
	}
	switch {
	case socket == "" || socket[0] != '/' || strings.HasPrefix(socket, "//") || strings.HasSuffix(socket, "/"):
		return Target{}, &Fault{"the path of the Unix socket is not absolute, or is a directory", form}
	case strings.ContainsFunc(socket, unicode.IsControl):
		return Target{}, &Fault{"the path of the Unix socket contains control characters", form}
	case len(socket) > maxSocket:
		return Target{}, &Fault{fmt.Sprintf("the path of the Unix socket is longer than %d bytes", maxSocket), "have the server make it in a folder with a shorter name"}
	}
	if f := checkBase(scheme, base); f != nil {
		return Target{}, f
	}
	return Target{Scheme: scheme, Socket: socket, BasePath: base}, nil
}

// SplitAuthority splits host and port and normalizes the host. The port of an authority
// without one is 80.
func SplitAuthority(authority string) (host string, port uint16, f *Fault) {
	return splitAuthority(authority, 80)
}

// splitAuthority is SplitAuthority with the port of an authority that has none.
func splitAuthority(authority string, own uint16) (host string, port uint16, f *Fault) {
	host, digits := authority, strconv.Itoa(int(own))
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", 0, &Fault{"the IPv6 address has no closing bracket", "write it as [2001:db8::1]:8080"}
		}
		host = authority[1:end]
		if tail := authority[end+1:]; tail != "" {
			if tail[0] != ':' {
				return "", 0, &Fault{fmt.Sprintf("unexpected %q after the address", tail), "write it as [2001:db8::1]:8080"}
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
			return "", 0, &Fault{"an IPv6 address must be in brackets", "write it as [2001:db8::1]:8080"}
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
