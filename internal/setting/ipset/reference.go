package ipset

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/schema"
)

// Reference is an entry for addresses that are stored elsewhere: `list:NAME`,
// `country:DE` or `asn:64500`.
type Reference struct {
	// Kind is what is referred to.
	Kind ReferenceKind
	// Name is the name of a list, or the two letters of a country, or "unknown".
	Name string
	// ASN is the number of a network.
	ASN uint32
	// Index is the place of the entry in its list.
	Index int
}

// Referrer is a list of entries in the settings of a feature.
type Referrer struct {
	// Field is the path of the list in the settings.
	Field string
	// Entries are what it has.
	Entries []string
}

// ReferenceKind is what a Reference refers to.
type ReferenceKind uint8

// The kinds of references.
const (
	ToList ReferenceKind = iota
	ToCountry
	ToASN
)

// PrivateList is the name of the list that is part of the program: loopback, private
// and link-local networks.
const PrivateList = "private"

// UnknownCountry matches public addresses of unknown country.
const UnknownCountry = "unknown"

// The prefixes of references.
const (
	prefixList    = "list:"
	prefixCountry = "country:"
	prefixASN     = "asn:"
)

const referenceForm = "write an address, a network, list:NAME, country:DE or asn:64500"

// ListReference returns the entry that refers to a list.
func ListReference(name string) string { return prefixList + name }

// IsReference reports whether an entry is a reference, valid or not.
func IsReference(text string) bool {
	return strings.HasPrefix(text, prefixList) || strings.HasPrefix(text, prefixCountry) || strings.HasPrefix(text, prefixASN)
}

// References returns the references in a list of entries, without those that are not
// valid.
func References(list []string) (out []Reference) {
	for i, text := range list {
		if !IsReference(text) {
			continue
		}
		if r, f := parseReference(text); f == nil {
			r.Index = i
			out = append(out, r)
		}
	}
	return out
}

// CheckEntries is Check for lists that may have references.
func CheckEntries(list []string, at schema.Place) {
	for i, text := range list {
		var f *fault
		if IsReference(text) {
			_, f = parseReference(text)
		} else if _, f = parse(text); f != nil && f.remedy == form {
			f.remedy = referenceForm
		}
		if f != nil {
			at.Index(i).Problem(f.what, f.remedy)
		}
	}
}

func parseReference(text string) (Reference, *fault) {
	kind, name, _ := strings.Cut(text, ":")
	switch kind + ":" {
	case prefixList:
		if name == "" {
			return Reference{}, &fault{fmt.Sprintf("%q names no list", text), "write list:NAME"}
		}
		return Reference{Kind: ToList, Name: name}, nil
	case prefixCountry:
		if name == UnknownCountry {
			return Reference{Kind: ToCountry, Name: name}, nil
		}
		upper := strings.ToUpper(name)
		if len(upper) != 2 || capitalIndex(upper[0]) < 0 || capitalIndex(upper[1]) < 0 {
			return Reference{}, &fault{fmt.Sprintf("%q is not a country", shorten(text)), "write the two letters of ISO 3166, such as country:DE, or country:unknown"}
		}
		return Reference{Kind: ToCountry, Name: upper}, nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToUpper(name), "AS"), 10, 32)
	if err != nil || n == 0 {
		return Reference{}, &fault{fmt.Sprintf("%q is not the number of a network", shorten(text)), "write a number such as asn:64500"}
	}
	return Reference{Kind: ToASN, ASN: uint32(n)}, nil
}

// capitalIndex returns the place of a capital in the alphabet, -1 for anything else.
func capitalIndex(c byte) int {
	if c < 'A' || c > 'Z' {
		return -1
	}
	return int(c - 'A')
}

// private is the list that is part of the program.
var private = func() *Set {
	s, err := New([]string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
		"::1", "fc00::/7", "fe80::/10",
	})
	if err != nil {
		panic(err) // a test reads it
	}
	return s
}()

// Private returns the networks of list:private: loopback, private and link-local ones,
// and those that providers share among their customers.
func Private() *Set { return private }

// Matcher is a compiled list of entries: addresses and networks, and the current
// content of references. It is otherwise immutable. Concurrent calls are allowed. A
// nil Matcher contains nothing.
type Matcher struct {
	set       *Set
	lists     []namedList
	countries *countries // nil without
	asns      []uint32   // sorted
	locator   exchange.Locator
}

type namedList struct {
	name string
	list exchange.AddressList
}

// countries are a set of countries: one bit for each pair of letters.
type countries struct {
	pairs   [(26*26 + 63) / 64]uint64
	unknown bool
}

func (c *countries) add(name string) {
	if name == UnknownCountry {
		c.unknown = true
		return
	}
	n := capitalIndex(name[0])*26 + capitalIndex(name[1])
	c.pairs[n/64] |= 1 << (n % 64)
}

func (c *countries) has(name string) bool {
	switch len(name) {
	case 0:
		return false
	case 2:
		a, b := capitalIndex(name[0]), capitalIndex(name[1])
		if a < 0 || b < 0 {
			return false
		}
		n := a*26 + b
		return c.pairs[n/64]>>(n%64)&1 == 1
	}
	return c.unknown
}

// Compile returns the matcher of a list that was checked. The error names the first entry
// that cannot be used, which may be a list or database that from does not have.
func Compile(list []string, from exchange.Addresses) (*Matcher, error) {
	literal, refs := list, References(list)
	if len(refs) > 0 {
		literal = slices.DeleteFunc(slices.Clone(list), IsReference)
	}
	set, err := New(literal)
	if err != nil {
		return nil, err
	}
	m := &Matcher{set: set, locator: from.Locator}
	for _, r := range refs {
		if err := m.add(r, from); err != nil {
			return nil, err
		}
	}
	slices.Sort(m.asns)
	return m, nil
}

func (m *Matcher) add(r Reference, from exchange.Addresses) error {
	switch r.Kind {
	case ToCountry:
		if m.countries == nil {
			m.countries = &countries{}
		}
		m.countries.add(r.Name)
	case ToASN:
		m.asns = append(m.asns, r.ASN)
	case ToList:
		var list exchange.AddressList
		if r.Name == PrivateList {
			list = private
		} else if from.List != nil {
			list = from.List(r.Name)
		}
		if list == nil {
			return fmt.Errorf("there is no list %q", r.Name)
		}
		m.lists = append(m.lists, namedList{r.Name, list})
	}
	return nil
}

// Contains reports whether an address is in the list. A zone is ignored.
func (m *Matcher) Contains(a netip.Addr) bool {
	if m == nil {
		return false
	}
	a = Plain(a)
	if m.listed(a) {
		return true
	}
	return m.locator != nil && (m.countries != nil && m.countries.has(m.locator.Country(a)) || len(m.asns) > 0 && m.numbered(m.locator.ASN(a)))
}

// Has is Contains for the client of an exchange, whose country and network are looked up
// once.
func (m *Matcher) Has(ex *exchange.Exchange) bool {
	if m == nil {
		return false
	}
	if m.listed(ex.ClientIP) {
		return true
	}
	return m.countries != nil && m.countries.has(ex.Country()) || len(m.asns) > 0 && m.numbered(ex.ASN())
}

func (m *Matcher) listed(a netip.Addr) bool {
	if m.set.has(a) {
		return true
	}
	for i := range m.lists {
		if m.lists[i].list.Contains(a) {
			return true
		}
	}
	return false
}

func (m *Matcher) numbered(asn uint32) bool {
	_, found := slices.BinarySearch(m.asns, asn)
	return found
}

// Why returns the entry that an address is in, as the settings have it: a network,
// list:NAME, country:DE or asn:64500; "" if it is in none.
func (m *Matcher) Why(a netip.Addr) string {
	if m == nil {
		return ""
	}
	a = Plain(a)
	if p, ok := m.set.Within(netip.PrefixFrom(a, a.BitLen())); ok {
		if p.IsSingleIP() {
			return p.Addr().String()
		}
		return p.String()
	}
	for _, l := range m.lists {
		if l.list.Contains(a) {
			return prefixList + l.name
		}
	}
	if m.locator == nil {
		return ""
	}
	if c := m.locator.Country(a); m.countries != nil && m.countries.has(c) {
		return prefixCountry + c
	}
	if n := m.locator.ASN(a); len(m.asns) > 0 && m.numbered(n) {
		return fmt.Sprint(prefixASN, n)
	}
	return ""
}

// Set returns the addresses and networks of the list, without the content of references.
func (m *Matcher) Set() *Set {
	if m == nil {
		return nil
	}
	return m.set
}

// Refers reports whether the list has references, so that what it contains can change.
func (m *Matcher) Refers() bool {
	return m != nil && (len(m.lists) > 0 || m.countries != nil || len(m.asns) > 0)
}

// Located reports whether the list has countries or networks by number.
func (m *Matcher) Located() bool { return m != nil && (m.countries != nil || len(m.asns) > 0) }
