// Package ipset reads lists of addresses and networks from settings and reports whether
// an address is in one. A lookup in a list of a hundred thousand entries costs as much
// as in one of ten: the set is a hash table of single IPv4 addresses, and a trie over
// the other prefixes.
//
// IPv4-mapped IPv6 addresses (::ffff:192.0.2.1) are equal to their IPv4
// addresses, in a list and in a lookup. The package resolves no names.
package ipset

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gaissmai/bart"

	"headgate/internal/schema"
)

// Set is a set of addresses. It is immutable after New and may be used by
// several goroutines at once. A nil Set is empty; others come from New, Of or With.
type Set struct {
	hosts hosts      // single IPv4 addresses
	table *bart.Lite // networks, and single IPv6 addresses
	size  int
}

// New returns the set of the addresses and networks in a list. The error is
// that of the first entry that Check would report.
func New(list []string) (*Set, error) {
	networks := make([]netip.Prefix, len(list))
	for i, text := range list {
		p, f := parse(text)
		if f != nil {
			return nil, fmt.Errorf("%s; %s", f.what, f.remedy)
		}
		networks[i] = p
	}
	return Of(networks), nil
}

// Of returns the set of some networks, which are masked and not IPv4-mapped.
func Of(networks []netip.Prefix) *Set {
	table, n := &bart.Lite{}, 0
	for _, p := range networks {
		if isHost(p) {
			n++
		} else {
			table.Insert(p)
		}
	}
	return newSet(table, hostsOf(n, func(yield func(uint32) bool) {
		for _, p := range networks {
			if isHost(p) && !yield(number(p.Addr())) {
				return
			}
		}
	}))
}

func newSet(table *bart.Lite, h hosts) *Set {
	return &Set{hosts: h, table: table, size: table.Size() + h.count}
}

// With returns the set with some networks added and others removed. It shares memory
// with s, which stays as it is; s may be nil.
func (s *Set) With(add, remove []netip.Prefix) *Set {
	if s == nil {
		s = Of(nil)
	}
	table, n := s.table, s.hosts.count
	gone := map[uint32]bool{}
	for _, p := range remove {
		if isHost(p) {
			gone[number(p.Addr())] = true
		} else {
			table = table.DeletePersist(p)
		}
	}
	for _, p := range add {
		if isHost(p) {
			n++
		} else {
			table = table.InsertPersist(p)
		}
	}
	if n == s.hosts.count && len(gone) == 0 {
		return newSet(table, s.hosts)
	}
	return newSet(table, hostsOf(n, func(yield func(uint32) bool) {
		for a := range s.hosts.all {
			if !gone[a] && !yield(a) {
				return
			}
		}
		for _, p := range add {
			if isHost(p) && !yield(number(p.Addr())) {
				return
			}
		}
	}))
}

// Overlaps reports whether a network and an entry of the set have an address in common.
// It looks at all entries that are single addresses, unless the network is one.
func (s *Set) Overlaps(p netip.Prefix) bool {
	if s == nil {
		return false
	}
	if _, inside := s.Within(p); inside {
		return true
	}
	for range s.table.Subnets(p) {
		return true
	}
	if p.Addr().Is4() && !isHost(p) {
		for a := range s.hosts.all {
			if p.Contains(host(a).Addr()) {
				return true
			}
		}
	}
	return false
}

// Contains reports whether an address is in the set. A zone is ignored.
func (s *Set) Contains(a netip.Addr) bool {
	return s != nil && s.has(Plain(a))
}

// has is Contains for a plain address.
func (s *Set) has(a netip.Addr) bool {
	return a.Is4() && s.hosts.has(number(a)) || s.table.Contains(a)
}

// Len returns the number of different entries.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.size
}

// Networks returns the entries of the set, in no order.
func (s *Set) Networks() []netip.Prefix {
	if s == nil {
		return nil
	}
	out := make([]netip.Prefix, 0, s.size)
	for p := range s.all {
		out = append(out, p)
	}
	return out
}

// all yields the entries, in no order.
func (s *Set) all(yield func(netip.Prefix) bool) {
	for a := range s.hosts.all {
		if !yield(host(a)) {
			return
		}
	}
	for p := range s.table.All() {
		if !yield(p) {
			return
		}
	}
}

// Within returns the smallest entry of the set that a network lies in, if there is one.
func (s *Set) Within(p netip.Prefix) (netip.Prefix, bool) {
	if s == nil {
		return netip.Prefix{}, false
	}
	if isHost(p) && s.hosts.has(number(p.Addr())) {
		return p, true
	}
	return s.table.LookupPrefixLPM(p)
}

// Covered returns how many entries lie within another entry of the set, the
// first of them and the entry around it.
func (s *Set) Covered() (n int, first, wider netip.Prefix) {
	if s == nil {
		return 0, first, wider
	}
	for p := range s.all {
		for around := range s.table.Supernets(p) {
			if around == p {
				continue
			}
			if n++; n == 1 || p.Addr().Less(first.Addr()) {
				first, wider = p, around
			}
			break
		}
	}
	return n, first, wider
}

// Plain returns an address without its zone, an IPv4-mapped one as IPv4.
func Plain(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	return a.Unmap().WithZone("")
}

// Parse reads an entry of a list: an address, which is a network of one, or a
// network in the form address/length.
func Parse(text string) (netip.Prefix, error) {
	p, f := parse(text)
	if f != nil {
		return p, fmt.Errorf("%s; %s", f.what, f.remedy)
	}
	return p, nil
}

// Check reports what is wrong with the entries of the list at at: entries that
// are no address and no network, ranges, inverted or not, and networks with host
// bits set. Entries that overlap, or are listed twice, are no mistake.
func Check(list []string, at schema.Place) {
	for i, text := range list {
		if _, f := parse(text); f != nil {
			at.Index(i).Problem(f.what, f.remedy)
		}
	}
}

// fault is what is wrong with an entry, and how to fix it.
type fault struct{ what, remedy string }

const form = "write an address like 192.0.2.7 or a network like 192.0.2.0/24 or 2001:db8::/32"

func parse(text string) (netip.Prefix, *fault) {
	switch {
	case text == "":
		return netip.Prefix{}, &fault{"the entry is empty", form}
	case strings.Contains(text, "/"):
		return parseNetwork(text)
	}
	if first, last, ok := strings.Cut(text, "-"); ok {
		if f := rangeFault(strings.TrimSpace(first), strings.TrimSpace(last), text); f != nil {
			return netip.Prefix{}, f
		}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, addressFault(text)
	}
	if a.Zone() != "" {
		return netip.Prefix{}, &fault{fmt.Sprintf("%q has a zone", text), fmt.Sprintf("write %q, without the zone", a.WithZone(""))}
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// addressFault says why a text is no address.
func addressFault(text string) *fault {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return &fault{fmt.Sprintf("%q has a port", text), fmt.Sprintf("write %q", ap.Addr())}
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil {
			return &fault{fmt.Sprintf("%q has brackets", text), fmt.Sprintf("write %q", a)}
		}
	}
	return &fault{fmt.Sprintf("%q is not an address", shorten(text)), form}
}

func parseNetwork(text string) (netip.Prefix, *fault) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		address, length, _ := strings.Cut(text, "/")
		a, err := netip.ParseAddr(address)
		switch {
		case err != nil:
			return p, &fault{fmt.Sprintf("%q is not a network", shorten(text)), form}
		case a.Zone() != "":
			return p, &fault{fmt.Sprintf("%q has a zone", text), "remove %" + a.Zone()}
		}
		return p, &fault{fmt.Sprintf("invalid prefix length %q", shorten(length)), fmt.Sprintf("write a length between 0 and %d", a.BitLen())}
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return p, &fault{fmt.Sprintf("%q covers more than the IPv4-mapped addresses", text), "write the IPv4 network, such as 192.0.2.0/24, and the IPv6 one"}
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return p, &fault{
			fmt.Sprintf("%q: host bits are set", text),
			fmt.Sprintf("write %v for the network, or %v for the address", p.Masked(), p.Addr()),
		}
	}
	return p, nil
}

// rangeFault says what to write in place of a range, if a text is one.
func rangeFault(first, last, text string) *fault {
	a, err := netip.ParseAddr(first)
	b, err2 := netip.ParseAddr(last)
	if err != nil || err2 != nil || a.Zone() != "" || b.Zone() != "" {
		return nil
	}
	a, b = a.Unmap(), b.Unmap()
	switch {
	case a.BitLen() != b.BitLen():
		return &fault{fmt.Sprintf("the range %q mixes IPv4 and IPv6", text), form}
	case b.Less(a):
		return &fault{fmt.Sprintf("the range %q is inverted: it ends before it starts", text), "write " + networks(b, a)}
	}
	return &fault{fmt.Sprintf("%q is a range; lists hold addresses and networks", text), "write " + networks(a, b)}
}

func shorten(text string) string {
	if len(text) > 64 {
		return text[:61] + "..."
	}
	return text
}
