package resolve

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
)

// maxEndpoints limits the servers of a name. Others are omitted: always the same ones,
// those with the highest addresses.
const maxEndpoints = 256

// Endpoint is one server of a name.
type Endpoint struct {
	// Addresses are its addresses, the preferred one first. A second one is assumed to be
	// the same server with the other version of IP.
	Addresses []netip.AddrPort
	// Weight is its share among those of its priority, 0 to 65535.
	Weight int
	// Priority orders servers: those with a lower one are used first.
	Priority int
}

func (e Endpoint) equal(f Endpoint) bool {
	return e.Weight == f.Weight && e.Priority == f.Priority && slices.Equal(e.Addresses, f.Addresses)
}

// endpoints makes servers of the addresses of a host, in the order in which the system
// would try them. A host with one address of each version of IP is one server. Otherwise
// the servers are the addresses of the version that has more, or else of the preferred one.
// The addresses of the other version are alternatives, for when that version does not work.
func endpoints(addrs []netip.Addr, port uint16) []Endpoint {
	if len(addrs) == 0 {
		return nil
	}
	var four, six []netip.AddrPort
	for _, a := range addrs {
		if a = a.Unmap(); a.Is4() {
			four = append(four, netip.AddrPortFrom(a, port))
		} else {
			six = append(six, netip.AddrPortFrom(a, port))
		}
	}
	four, six = unique(four), unique(six)
	main, other := six, four
	if len(four) > len(six) || len(four) == len(six) && addrs[0].Unmap().Is4() {
		main, other = four, six
	}
	out := make([]Endpoint, min(len(main), maxEndpoints))
	for i := range out {
		out[i] = Endpoint{Addresses: []netip.AddrPort{main[i]}, Weight: 1}
		if len(other) > 0 {
			out[i].Addresses = append(out[i].Addresses, other[i%len(other)])
		}
	}
	return out
}

func unique(list []netip.AddrPort) []netip.AddrPort {
	slices.SortFunc(list, netip.AddrPort.Compare)
	return slices.Compact(list)
}

// byPriority brings servers of different priorities into their order.
func byPriority(list []Endpoint) {
	slices.SortStableFunc(list, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Addresses[0].Compare(b.Addresses[0]))
	})
}

// maxDials is how many addresses one dial tries.
const maxDials = 16

// appendOrder appends the addresses of servers in the order in which they are to
// be tried: ascending priorities, those of one priority in turn, or at random
// when their weights differ (RFC 2782). Each round starts with a different one.
func appendOrder(out []netip.AddrPort, set []Endpoint, turn uint32) []netip.AddrPort {
	for len(set) > 0 && len(out) < maxDials {
		n := 1
		for n < len(set) && set[n].Priority == set[0].Priority {
			n++
		}
		group := set[:n]
		first := draw(group, turn)
		for i := range group {
			for _, a := range group[(first+i)%n].Addresses {
				if len(out) < maxDials {
					out = append(out, a)
				}
			}
		}
		set = set[n:]
	}
	return out
}

// draw returns which of servers of one priority is first.
func draw(group []Endpoint, turn uint32) int {
	total, equal := 0, true
	for i := range group {
		total += group[i].Weight
		equal = equal && group[i].Weight == group[0].Weight
	}
	if equal {
		return int(turn % uint32(len(group)))
	}
	at := rand.IntN(total)
	for i := range group {
		if at -= group[i].Weight; at < 0 {
			return i
		}
	}
	return 0
}
