package decode

import (
	"fmt"
	"net/netip"
	"strings"

	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// fault is one thing that is wrong with a value.
type fault = target.Fault

func wrong(what, remedy string) *fault { return &fault{What: what, Remedy: remedy} }

// parseAddress reads ip:port, IPv6 in brackets. An empty text is the zero
// address, which is not valid.
func parseAddress(text string) (netip.AddrPort, *fault) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	a, err := netip.ParseAddrPort(text)
	if err == nil {
		return checkAddress(text, a)
	}
	zero := netip.AddrPort{}
	i := strings.LastIndexByte(text, ':')
	if n, ok := target.PortNumber(text); ok && n > 0 {
		return zero, wrong(fmt.Sprintf("address %q has no IP address", text), fmt.Sprintf("write %q for IPv4 or %q for every address", "0.0.0.0:"+text, "[::]:"+text))
	}
	if i < 0 {
		return zero, wrong(fmt.Sprintf("address %q has no port", Shorten(text)), fmt.Sprintf("write it as <ip>:<port>, like %q", "0.0.0.0:8080"))
	}
	host, port := text[:i], text[i+1:]
	if n, ok := target.PortNumber(port); !ok || n == 0 {
		if _, err := netip.ParseAddr(text); err == nil {
			return zero, wrong(fmt.Sprintf("IPv6 address %q has no brackets and no port", text), fmt.Sprintf("write it as %q", "["+text+"]:8080"))
		}
		return zero, wrong(fmt.Sprintf("%q is not a port number", Shorten(port)), "write a number between 1 and 65535")
	}
	switch {
	case host == "" || host == "*":
		return zero, wrong(fmt.Sprintf("address %q has no IP address", text), fmt.Sprintf("write %q for IPv4 or %q for every address", "0.0.0.0:"+port, "[::]:"+port))
	case host == "localhost":
		return zero, wrong(fmt.Sprintf("address %q has a name, expected an IP address", text), fmt.Sprintf("write %q", "127.0.0.1:"+port))
	case strings.Contains(host, ":") && !strings.HasPrefix(host, "["):
		if _, err := netip.ParseAddr(host); err == nil {
			return zero, wrong(fmt.Sprintf("IPv6 address %q has no brackets", host), fmt.Sprintf("write it as %q", "["+host+"]:"+port))
		}
	}
	return zero, wrong(fmt.Sprintf("%q is not an IP address", Shorten(strings.Trim(host, "[]"))), fmt.Sprintf("write it as <ip>:<port>, like %q", "0.0.0.0:"+port))
}

// checkAddress rejects addresses that can be read and not listened on.
func checkAddress(text string, a netip.AddrPort) (netip.AddrPort, *fault) {
	switch {
	case a.Port() == 0:
		return netip.AddrPort{}, wrong("headgate cannot listen on port 0", "write a number between 1 and 65535")
	case a.Addr().Is4In6():
		return netip.AddrPort{}, wrong(fmt.Sprintf("address %q is an IPv4-mapped IPv6 address", text), fmt.Sprintf("write it as %q", netip.AddrPortFrom(a.Addr().Unmap(), a.Port())))
	case a.Addr().IsMulticast():
		return netip.AddrPort{}, wrong(fmt.Sprintf("address %q is a multicast address", text), "write an address of this machine")
	}
	return a, nil
}

// parseAddressRange reads ip:port, or ip:first-last. An empty text is the zero range, which is
// not valid.
func parseAddressRange(text string) (unit.AddressRange, *fault) {
	const remedy = "write the first and the last port, like 0.0.0.0:5000-5100"
	first, last, err := unit.CutRange(text)
	if err != nil {
		return unit.AddressRange{}, wrong(err.Error(), remedy)
	}
	a, f := parseAddress(first)
	if f != nil || !a.IsValid() {
		return unit.AddressRange{}, f
	}
	r, err := unit.NewAddressRange(a, last)
	if err != nil {
		return unit.AddressRange{}, wrong(err.Error(), remedy)
	}
	return r, nil
}
