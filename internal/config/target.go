package config

import (
	"errors"
	"fmt"
	"net/netip"

	"headgate/internal/schema"
	"headgate/internal/server/target"
)

// fault is one thing that is wrong with a value.
type fault = target.Fault

func wrong(what, remedy string) *fault { return &fault{What: what, Remedy: remedy} }

// Target parses the server's URL. The URL of a checked configuration never
// gives an error.
func (s *Server) Target() (target.Target, error) {
	t, fault := target.Parse(s.URL)
	if fault != nil {
		return target.Target{}, fmt.Errorf("server %q: %s", s.URL, fault.What)
	}
	return t, nil
}

// namePort is the port of name servers.
const namePort = 53

// nameServer reads the address of a name server, which may have a port.
func nameServer(text string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a, namePort), nil
	}
	ap, err := netip.ParseAddrPort(text)
	if err == nil && ap.Port() == 0 {
		err = errors.New("the port is 0")
	}
	return ap, err
}

// checkResolvers reports invalid addresses of name servers.
func checkResolvers(list []string, at schema.Place) {
	for i, text := range list {
		if _, err := nameServer(text); err != nil {
			at.Index(i).Problemf("write an IP address, like 127.0.0.53 or [::1]:5353", "%q is not the address of a name server", text)
		}
	}
}

// NameServers returns the addresses of Resolvers, without invalid ones, which a check
// reports.
func (u *Upstreams) NameServers() []netip.AddrPort {
	var out []netip.AddrPort
	for _, text := range u.Resolvers {
		if ap, err := nameServer(text); err == nil {
			out = append(out, ap)
		}
	}
	return out
}
