package geotest

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// ReadCSV reads lines of the form START,END,COUNTRY, with the first and the last address of a
// range, and returns the networks of the ranges with country_code as data. An error names
// the line.
func ReadCSV(r io.Reader) ([]Network, error) {
	var out []Network
	countries := map[string]map[string]any{} // the data of equal countries is shared
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text := lines.Text()
		start, rest, _ := strings.Cut(text, ",")
		end, country, ok := strings.Cut(rest, ",")
		from, err := netip.ParseAddr(start)
		to, err2 := netip.ParseAddr(end)
		if !ok || err != nil || err2 != nil || from.BitLen() != to.BitLen() || to.Less(from) || len(country) != 2 {
			return nil, fmt.Errorf("line %d: %q is not START,END,COUNTRY", number, text)
		}
		data := countries[country]
		if data == nil {
			data = map[string]any{"country_code": country}
			countries[country] = data
		}
		for _, p := range between(from, to) {
			out = append(out, Network{p, data})
		}
	}
	return out, lines.Err()
}

// between returns the fewest networks that have the addresses from one to another, and no
// others.
func between(from, to netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for {
		best := netip.PrefixFrom(from, from.BitLen())
		for best.Bits() > 0 {
			wider := netip.PrefixFrom(from, best.Bits()-1)
			if wider.Masked().Addr() != from || to.Less(last(wider)) {
				break
			}
			best = wider
		}
		out = append(out, best)
		end := last(best)
		if end == to {
			return out
		}
		from = end.Next()
	}
}

// last returns the last address of a network.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
