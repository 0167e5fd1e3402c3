package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"headgate/internal/config/decode"
	"headgate/internal/schema"
	"headgate/internal/server/target"
)

// HostClass is how a virtual host is written. A more exact class wins.
type HostClass uint8

// The classes of virtual hosts, the winner first.
const (
	// HostExact is one name, or an IP address.
	HostExact HostClass = iota
	// HostWildcard is *. and a name: any one label before it.
	HostWildcard
	// HostRegex is an RE2 expression.
	HostRegex
)

// VirtualHost is the parsed form of an entry of virtual_hosts.
type VirtualHost struct {
	// Class is how it is written.
	Class HostClass
	// Name is the host in lower case and ASCII form, without a trailing dot; an
	// IPv6 address in brackets. Of a wildcard it is what follows "*.", of an
	// expression its text.
	Name string
	// Regex is the expression, which is matched on a host in the form of Name.
	Regex *regexp.Regexp
}

// String returns the virtual host in its canonical form.
func (h VirtualHost) String() string {
	switch h.Class {
	case HostWildcard:
		return "*." + h.Name
	case HostRegex:
		return "~" + h.Name
	}
	return h.Name
}

// Hosts returns the proxy's virtual hosts in their parsed form. Those of a
// checked configuration never give an error.
func (p *Proxy) Hosts() ([]VirtualHost, error) {
	out := make([]VirtualHost, len(p.VirtualHosts))
	for i, text := range p.VirtualHosts {
		h, f := parseVirtualHost(text)
		if f != nil {
			return nil, fmt.Errorf("virtual host %q: %s", text, f.What)
		}
		out[i] = h
	}
	return out, nil
}

// maxRegex is the longest regular expression, in bytes.
const maxRegex = 1024

func parseVirtualHost(text string) (VirtualHost, *fault) {
	var none VirtualHost
	if expr, ok := strings.CutPrefix(text, "~"); ok {
		return parseHostRegex(expr)
	}
	switch {
	case text == "*" || text == "*.":
		return none, wrong(fmt.Sprintf("%q is not a host name", text), "omit virtual_hosts to match every host")
	case strings.Contains(text, "://"):
		return none, wrong(fmt.Sprintf("%q is a URL, expected a host name", decode.Shorten(text)), "write the host name alone")
	case strings.ContainsAny(text, "/?#@"):
		return none, wrong(fmt.Sprintf("%q is more than a host name", decode.Shorten(text)), "write the host name alone; paths belong to routes")
	case strings.HasPrefix(text, "["):
		a, err := netip.ParseAddr(strings.TrimSuffix(text[1:], "]"))
		if err != nil || !a.Is6() || a.Zone() != "" || !strings.HasSuffix(text, "]") {
			return none, wrong(fmt.Sprintf("%q is not an IPv6 address in brackets", decode.Shorten(text)), "write it as [2001:db8::1], without a port")
		}
		return VirtualHost{Name: "[" + a.String() + "]"}, nil
	case strings.Contains(text, ":"):
		name, _, _ := strings.Cut(text, ":")
		return none, wrong(fmt.Sprintf("%q contains a port", decode.Shorten(text)), fmt.Sprintf("write %q; the proxy's ports are listed in ports", name))
	}
	rest, wild := strings.CutPrefix(text, "*.")
	if strings.Contains(rest, "*") {
		return none, wrong(fmt.Sprintf("%q has * in an invalid place", decode.Shorten(text)), `write "*." before a name to match one label, or a regular expression "~^…$"`)
	}
	name, f := target.Host(rest)
	if f != nil {
		return none, f
	}
	if wild {
		return VirtualHost{Class: HostWildcard, Name: name}, nil
	}
	return VirtualHost{Name: name}, nil
}

func parseHostRegex(expr string) (VirtualHost, *fault) {
	var none VirtualHost
	switch {
	case len(expr) > maxRegex:
		return none, wrong(fmt.Sprintf("the regular expression has %d bytes, more than the maximum of %d", len(expr), maxRegex), "")
	case !strings.HasPrefix(expr, "^") || !strings.HasSuffix(expr, "$"):
		return none, wrong(fmt.Sprintf("the expression %q does not match the whole host", decode.Shorten(expr)), "begin it with ~^ and end it with $")
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return none, wrong("invalid regular expression: "+schema.RegexError(err), "write it in RE2 syntax, without look-around and backreferences")
	}
	return VirtualHost{Class: HostRegex, Name: expr, Regex: re}, nil
}
