package unit

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MaxRange is how many ports a range may have.
const MaxRange = 1000

// AddressRange is an IP address with a port number, or with a range of them, written as in
// "0.0.0.0:5432" and "0.0.0.0:5000-5100". The AddrPort is the first; the zero AddressRange is
// not valid.
type AddressRange struct {
	netip.AddrPort
	last uint16 // 0 for one port
}

// OneAddress returns the range of one port.
func OneAddress(a netip.AddrPort) AddressRange { return AddressRange{AddrPort: a} }

// Ports returns how many ports the range has.
func (r AddressRange) Ports() int {
	if r.last == 0 {
		return 1
	}
	return int(r.last-r.Port()) + 1
}

// Last returns the last port.
func (r AddressRange) Last() uint16 { return max(r.last, r.Port()) }

// At returns the i-th address, from 0.
func (r AddressRange) At(i int) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr(), r.Port()+uint16(i))
}

// Has reports whether a port number is one of the range's.
func (r AddressRange) Has(port uint16) bool {
	return r.IsValid() && port >= r.Port() && port <= r.Last()
}

// String returns the range in its written form.
func (r AddressRange) String() string {
	if r.last == 0 {
		return r.AddrPort.String()
	}
	return r.AddrPort.String() + "-" + strconv.Itoa(int(r.last))
}

// MarshalText writes what String returns, and nothing for the zero AddressRange.
func (r AddressRange) MarshalText() ([]byte, error) {
	if !r.IsValid() {
		return nil, nil
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads the written form.
func (r *AddressRange) UnmarshalText(text []byte) error {
	first, last, err := CutRange(string(text))
	if err != nil {
		return err
	}
	a, err := netip.ParseAddrPort(first)
	if err != nil {
		return err
	}
	read, err := NewAddressRange(a, last)
	if err == nil {
		*r = read
	}
	return err
}

// NewAddressRange returns the range from an address to a port number; 0 is a range of one.
func NewAddressRange(a netip.AddrPort, last uint16) (AddressRange, error) {
	if err := checkRange(a.Port(), last); err != nil {
		return AddressRange{}, err
	}
	return AddressRange{a, last}, nil
}

// checkRange reports a range that is empty or too large.
func checkRange(first, last uint16) error {
	switch {
	case last == 0:
		return nil
	case last <= first:
		return fmt.Errorf("the port range %d-%d is not in ascending order", first, last)
	case int(last-first)+1 > MaxRange:
		return fmt.Errorf("the port range %d-%d has %d ports, and at most %d are allowed", first, last, int(last-first)+1, MaxRange)
	}
	return nil
}

// CutRange divides host:first-last into host:first and last; last is 0 if there is no range.
func CutRange(text string) (address string, last uint16, err error) {
	host, ports := text[:strings.LastIndexByte(text, ':')+1], text[strings.LastIndexByte(text, ':')+1:]
	first, end, ok := strings.Cut(ports, "-")
	if !ok || host == "" {
		return text, 0, nil
	}
	n, err := strconv.ParseUint(end, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%q is not a port number", end)
	}
	if number, err := strconv.ParseUint(first, 10, 16); err == nil {
		if err := checkRange(uint16(number), uint16(n)); err != nil {
			return "", 0, err
		}
	}
	return host + first, uint16(n), nil
}
