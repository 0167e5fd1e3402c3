package importer

import (
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// AllAddresses are the networks of all clients.
func AllAddresses() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}

// Without returns networks without the addresses of others.
func Without(all, others []netip.Prefix) []netip.Prefix {
	others = slices.SortedFunc(slices.Values(others), netip.Prefix.Compare)
	var out []netip.Prefix
	for _, p := range all {
		var near []netip.Prefix // in the order of addresses
		for _, o := range others {
			if o.Overlaps(p) {
				near = append(near, o.Masked())
			}
		}
		out = append(out, minus(p, near)...)
	}
	return out
}

// minus is a network without others that overlap it, in the order of addresses.
func minus(p netip.Prefix, others []netip.Prefix) []netip.Prefix {
	switch {
	case len(others) == 0:
		return []netip.Prefix{p}
	case slices.ContainsFunc(others, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() }):
		return nil
	}
	low, high := halves(p)
	i := slices.IndexFunc(others, high.Overlaps)
	if i < 0 {
		i = len(others)
	}
	return append(minus(low, others[:i]), minus(high, others[i:])...)
}

// halves are the two networks that a network is made of.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	low = netip.PrefixFrom(p.Addr(), p.Bits()+1).Masked()
	return low, sibling(low)
}

// Last returns the last address of a network.
func Last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Cover is networks to which others are added.
type Cover struct {
	table bart.Lite
	all   []netip.Prefix
}

// All returns the networks that were added.
func (c *Cover) All() []netip.Prefix { return c.all }

// Has reports whether a network was added as it is.
func (c *Cover) Has(p netip.Prefix) bool { return c.table.Get(p) }

// Add adds a network, and returns what of it was not covered before.
func (c *Cover) Add(p netip.Prefix) []netip.Prefix {
	rest := []netip.Prefix{p}
	if c.table.OverlapsPrefix(p) {
		rest = Without(rest, c.all)
	}
	c.table.Insert(p)
	c.all = append(c.all, p)
	return rest
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
