package acme

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// CheckName returns what is wrong with a name that a certificate is wanted for, and
// what to do; "" when nothing is.
func CheckName(name string) (what, remedy string) {
	if addr, err := netip.ParseAddr(name); err == nil {
		switch {
		case addr.Zone() != "":
			return "an address with a zone", "leave out what follows %"
		case addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || addr.IsMulticast():
			return "no authority gives certificates for " + addr.String(), "use a public address or a name"
		}
		return "", ""
	}
	host, wildcard := strings.CutPrefix(name, "*.")
	ascii, err := idna.Lookup.ToASCII(host)
	switch {
	case strings.Contains(host, "_"):
		return "authorities give no certificates for names with an underscore", "use a hyphen"
	case strings.Contains(host, "*"):
		return "a * can only be the first label", "write *.example.com"
	case err != nil || !isHost(ascii):
		return "not a host name", "write a name such as shop.example.com"
	case !strings.Contains(strings.TrimSuffix(ascii, "."), "."):
		return "authorities give no certificates for names of one label", "use a name below a public domain"
	}
	suffix, icann := publicsuffix.PublicSuffix(ascii)
	if suffix == ascii && (icann || wildcard) {
		return ascii + " is a public suffix, under which anyone can register names", "name a domain below it"
	}
	return "", ""
}

// The bounds of a host name (RFC 1035, section 2.3.4).
const (
	maxHost  = 253
	maxLabel = 63
)

// isHost reports whether a name in ASCII is that of a host: labels of letters, digits and
// hyphens. What brings names into ASCII lets empty and long labels pass.
func isHost(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if len(name) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

// fold brings a name into its one form: lower case, ASCII, without a dot at the end.
func fold(name string) string {
	host, wildcard := strings.CutPrefix(strings.TrimSuffix(name, "."), "*.")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	host = strings.ToLower(host)
	if wildcard {
		return "*." + host
	}
	return host
}

// Group assigns names to certificates. A name that one of the wildcards covers is omitted;
// a wildcard includes its own domain if that is configured, too; every other name gets its
// own certificate, so that a name that fails does not affect others. The result is sorted,
// and so are the names of each, the wildcard first.
func Group(names []string) [][]string {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[fold(n)] = true
	}
	var groups [][]string
	for n := range wanted {
		base, wildcard := strings.CutPrefix(n, "*.")
		switch {
		case wildcard && wanted[base] && !coveredBy(wanted, base):
			groups = append(groups, []string{n, base})
		case wildcard:
			groups = append(groups, []string{n})
		case !wanted["*."+n] && !coveredBy(wanted, n):
			groups = append(groups, []string{n})
		}
	}
	slices.SortFunc(groups, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return groups
}

// coveredBy reports whether a wildcard among names covers a host.
func coveredBy(names map[string]bool, host string) bool {
	_, rest, ok := strings.Cut(host, ".")
	return ok && names["*."+rest]
}

// nameOf returns what a certificate is called in the store. It is a file's name too,
// so the star and the colons of IPv6 have another form.
func nameOf(names []string) string {
	name := names[0]
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		name = "_wildcard." + rest
	}
	return strings.ReplaceAll(name, ":", "_")
}

// Covers reports whether a certificate with some names is good for a host.
func Covers(names []string, host string) bool {
	host = fold(host)
	_, rest, dotted := strings.Cut(host, ".")
	return slices.ContainsFunc(names, func(n string) bool {
		n = fold(n)
		return n == host || dotted && !strings.HasPrefix(host, "*.") && n == "*."+rest
	})
}

// registered returns the registered domain of a name, which authorities count by.
func registered(name string) string {
	name = strings.TrimPrefix(name, "*.")
	if domain, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return domain
	}
	return name
}
