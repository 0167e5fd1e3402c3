package importer

import (
	"net/netip"
	"slices"
)

// AllAddresses are the networks of all clients.
func AllAddresses() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}

// Without returns networks without the addresses of others.
func Without(all, others []netip.Prefix) []netip.Prefix {
	for _, o := range others {
		var next []netip.Prefix
		for _, p := range all {
			next = append(next, minus(p, o)...)
		}
		all = next
	}
	return all
}

// minus is a network without another one, as networks.
func minus(p, o netip.Prefix) []netip.Prefix {
	switch {
	case !p.Overlaps(o):
		return []netip.Prefix{p}
	case o.Bits() <= p.Bits():
		return nil
	}
	var out []netip.Prefix
	for bits := p.Bits() + 1; bits <= o.Bits(); bits++ {
		out = append(out, sibling(netip.PrefixFrom(o.Addr(), bits).Masked()))
	}
	return out
}

// IPFilter returns the ip_filter that lets in clients of some networks, without a field
// where these are all addresses. It has whichever list is the shorter one.
func IPFilter(allowed []netip.Prefix) Object {
	denied := Without(AllAddresses(), allowed)
	switch f := NewObject().Flow(); {
	case len(denied) == 0:
		return f
	case len(allowed) > 0 && len(allowed) < len(denied):
		return f.Set("allow", Networks(allowed))
	default:
		return f.Set("deny", Networks(denied))
	}
}

// sibling is the other half of the network one bit wider.
func sibling(p netip.Prefix) netip.Prefix {
	b := p.Addr().AsSlice()
	bit := p.Bits() - 1
	b[bit/8] ^= 1 << (7 - bit%8)
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, p.Bits())
}

// Networks writes networks as ip_filter has them: one address without its length.
func Networks(all []netip.Prefix) (out []string) {
	for _, p := range all {
		if p.IsSingleIP() {
			out = append(out, p.Addr().String())
		} else {
			out = append(out, p.String())
		}
	}
	return out
}

// Common returns the networks that are in both lists. Of two networks that overlap, one is
// within the other.
func Common(a, b []string) (both []string) {
	for _, p := range Prefixes(a) {
		for _, q := range Prefixes(b) {
			if !p.Overlaps(q) {
				continue
			}
			if q.Bits() < p.Bits() {
				q = p
			}
			if text := Networks([]netip.Prefix{q})[0]; !slices.Contains(both, text) {
				both = append(both, text)
			}
		}
	}
	return both
}

// Prefixes reads networks, and addresses as networks of one.
func Prefixes(texts []string) (all []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p)
		} else if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return all
}
