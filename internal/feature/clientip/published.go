package clientip

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"headgate/internal/setting/ipset"
)

// list is the networks of a CDN, as published on a day.
type list struct {
	networks []netip.Prefix
	date     time.Time
}

// set returns the list as a set.
func (l *list) set() *ipset.Set {
	texts := make([]string, len(l.networks))
	for i, p := range l.networks {
		texts[i] = p.String()
	}
	set, err := ipset.New(texts)
	if err != nil {
		panic(err) // what was parsed is written as it is read
	}
	return set
}

// written finds the day on which a list was published, or fetched.
var written = regexp.MustCompile(`(?m)^#.*(\d{4}-\d\d-\d\d)`)

// parseList reads a list in the form in which it is kept: a network a line, and
// lines of words that begin with #, one of them with a date.
func parseList(text []byte) (*list, error) {
	l := &list{}
	if day := written.FindSubmatch(text); day != nil {
		l.date, _ = time.Parse(time.DateOnly, string(day[1]))
	}
	entries, err := lines(text)
	if err != nil {
		return nil, err
	}
	l.networks, err = parseEntries(entries)
	return l, err
}

func parseEntries(entries []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(entries))
	for i, text := range entries {
		p, err := ipset.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%.64q: %v", text, err)
		}
		out[i] = p
	}
	return out, nil
}

// lines reads entries that stand one a line.
func lines(text []byte) ([]string, error) {
	var out []string
	scan := bufio.NewScanner(bytes.NewReader(text))
	for scan.Scan() {
		if line := strings.TrimSpace(scan.Text()); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out, scan.Err()
}

// fastlyList reads what Fastly publishes.
func fastlyList(text []byte) ([]string, error) {
	var all struct {
		Addresses []string `json:"addresses"`
		IPv6      []string `json:"ipv6_addresses"`
	}
	err := json.Unmarshal(text, &all)
	return append(all.Addresses, all.IPv6...), err
}

// cloudfrontList reads the networks that face origins from what Amazon publishes.
func cloudfrontList(text []byte) ([]string, error) {
	var all struct {
		Prefixes []struct {
			Network string `json:"ip_prefix"`
			Service string `json:"service"`
		} `json:"prefixes"`
		IPv6 []struct {
			Network string `json:"ipv6_prefix"`
			Service string `json:"service"`
		} `json:"ipv6_prefixes"`
	}
	const service = "CLOUDFRONT_ORIGIN_FACING"
	err := json.Unmarshal(text, &all)
	var out []string
	for _, p := range all.Prefixes {
		if p.Service == service {
			out = append(out, p.Network)
		}
	}
	for _, p := range all.IPv6 {
		if p.Service == service {
			out = append(out, p.Network)
		}
	}
	return out, err
}

// jsonList reads a list of texts.
func jsonList(text []byte) (out []string, err error) {
	err = json.Unmarshal(text, &out)
	return out, err
}

// The bounds of a list that is fetched. What is wider than a CDN's networks are
// would let strangers claim any address.
const (
	maxNetworks = 20_000
	widest4     = 11 // Akamai has 23.192.0.0/11
	widest6     = 20
	// maxGrowth is how many times the addresses of the list in the program a
	// list may have, and maxAlone how many one without such a list.
	maxGrowth = 8
	maxAlone  = 1 << 18
)

// special are networks that are no CDN's.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/8"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// checkFetched says why a list cannot be the networks of a CDN of which floor is
// what the program knows; floor may be empty.
func checkFetched(networks, floor []netip.Prefix) error {
	switch {
	case len(networks) == 0:
		return errors.New("the list is empty")
	case len(networks) > maxNetworks:
		return fmt.Errorf("the list has more than %d networks", maxNetworks)
	}
	for _, p := range networks {
		if p.Addr().Is4() && p.Bits() < widest4 || p.Addr().Is6() && p.Bits() < widest6 {
			return fmt.Errorf("%v is wider than any network of a CDN", p)
		}
		for _, s := range special {
			if s.Overlaps(p) {
				return fmt.Errorf("%v is not on the internet", p)
			}
		}
	}
	limit := float64(maxAlone)
	if len(floor) > 0 {
		limit = maxGrowth * addresses(floor)
	}
	if n := addresses(networks); n > limit {
		return fmt.Errorf("the list has %.0f IPv4 addresses, more than %.0f", n, limit)
	}
	set := (&list{networks: networks}).set()
	same := 0
	for _, p := range floor {
		if _, ok := set.Within(p); ok {
			same++
		}
	}
	if 2*same < len(floor) {
		return fmt.Errorf("the list has %d of the %d networks that the program knows", same, len(floor))
	}
	return nil
}

// addresses returns how many IPv4 addresses networks have.
func addresses(networks []netip.Prefix) (n float64) {
	for _, p := range networks {
		if p.Addr().Is4() {
			n += float64(uint64(1) << (32 - p.Bits()))
		}
	}
	return n
}
