package exchange

import "net/netip"

// AddressList is a list of addresses and networks whose content may change while it is
// used. Its methods may be called by several goroutines at once.
type AddressList interface {
	// Contains reports whether an address, without a zone and not IPv4-mapped, is in the
	// list. A list that was never loaded contains nothing.
	Contains(netip.Addr) bool
}

// Locator returns where addresses are, from databases that may be replaced while it is
// used. Its methods may be called by several goroutines at once.
type Locator interface {
	// Country returns the two letters of a country in upper case, "unknown" for a public
	// address that the database does not have, and "" for one that is in no country, such
	// as a private one, and while there is no database.
	Country(netip.Addr) string
	// ASN returns the number of the network that announces an address, 0 if it is not known.
	ASN(netip.Addr) uint32
	// Serial changes whenever an answer may.
	Serial() uint64
}

// Addresses resolves references in lists of addresses. The zero value has no lists and no
// databases.
type Addresses struct {
	// List returns the list with a name, nil if there is none; nil has no lists.
	List func(name string) AddressList
	// Locator is nil where the configuration has no geo databases.
	Locator Locator
}

// located is the result of the lookups for the client of an exchange. The memory belongs to
// the connection, so that a client that sends several requests is looked up once; the
// address and the serial identify the result, because a CDN sends requests of many clients
// over one connection.
type located struct {
	country, network look
}

type look struct {
	of      netip.Addr
	serial  uint64
	country string
	asn     uint32
}

var locations = NewSlot[located](false)

// Country returns the country of the client, as Locator does; "" without a Locator.
func (ex *Exchange) Country() string {
	if ex.Locator == nil {
		return ""
	}
	l, serial := &locations.Reuse(ex).country, ex.Locator.Serial()
	if l.of != ex.ClientIP || l.serial != serial {
		*l = look{of: ex.ClientIP, serial: serial, country: ex.Locator.Country(ex.ClientIP)}
	}
	return l.country
}

// ASN returns the number of the network of the client; 0 if it is not known, and without
// a Locator.
func (ex *Exchange) ASN() uint32 {
	if ex.Locator == nil {
		return 0
	}
	l, serial := &locations.Reuse(ex).network, ex.Locator.Serial()
	if l.of != ex.ClientIP || l.serial != serial {
		*l = look{of: ex.ClientIP, serial: serial, asn: ex.Locator.ASN(ex.ClientIP)}
	}
	return l.asn
}
