package importer

import "net/netip"

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
