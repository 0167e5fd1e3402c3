package compare

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
)

// ParseSide reads the addresses of a side: HOST:PORT is for http,
// https://HOST:PORT for https, and an address without a port means 80 and 443.
func ParseSide(addresses []string) (Side, error) {
	var s Side
	for _, text := range addresses {
		scheme, at, ok := strings.Cut(text, "://")
		if !ok {
			scheme, at = "", text
		}
		at = strings.TrimSuffix(at, "/")
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			host, port = strings.Trim(at, "[]"), ""
		}
		number, bad := strconv.ParseUint(port, 10, 16)
		if host == "" || strings.ContainsAny(host, "/@ ") || port != "" && (bad != nil || number == 0) || scheme != "" && scheme != "http" && scheme != "https" {
			return s, fmt.Errorf("invalid address %q, want one like 127.0.0.1:80 or https://127.0.0.1:443", text)
		}
		if scheme == "http" || scheme == "" {
			s.HTTP = net.JoinHostPort(host, orPort(port, "80"))
		}
		if scheme == "https" || scheme == "" && port == "" {
			s.HTTPS = net.JoinHostPort(host, orPort(port, "443"))
		}
	}
	return s, nil
}

func orPort(port, otherwise string) string {
	if port == "" {
		return otherwise
	}
	return port
}

// SideOfPorts returns the first http and https port of a configuration, on loopback
// where they listen on all addresses. It is the zero Side if there is neither.
func SideOfPorts(c *config.Config) Side {
	var s Side
	for _, name := range slices.Sorted(maps.Keys(c.Ports)) {
		p := c.Ports[name]
		if !p.Active {
			continue
		}
		at := p.Address
		if at.Addr().IsUnspecified() {
			at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
		}
		switch {
		case p.Protocol == config.HTTP && s.HTTP == "":
			s.HTTP = at.String()
		case p.Protocol == config.HTTPS && s.HTTPS == "":
			s.HTTPS = at.String()
		}
	}
	return s
}
