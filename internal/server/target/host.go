package target

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Host returns a host name in the form in which it is compared and looked
// up: lower case, IDNA in its ASCII form, without a trailing dot. A name may
// hold underscores, which container names do; it may be an IPv4 address.
func Host(name string) (string, *Fault) {
	const form = "write a host name like shop.example.com"
	trimmed := strings.TrimSuffix(name, ".")
	if trimmed == "" {
		return "", &Fault{"the host name is empty", form}
	}
	ascii := strings.ToLower(trimmed)
	if !plainName(ascii) {
		var ok bool
		if ascii, ok = idnaName(trimmed); !ok {
			return "", &Fault{fmt.Sprintf("host name %q has no ASCII form", name), form}
		}
	}
	if len(ascii) > 253 {
		return "", &Fault{fmt.Sprintf("host name %q is longer than 253 characters", name), form}
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if f := checkLabel(name, label); f != nil {
			return "", f
		}
	}
	last := ascii[strings.LastIndexByte(ascii, '.')+1:]
	if last[0] >= '0' && last[0] <= '9' && strings.Trim(last, "0123456789") == "" {
		if _, err := netip.ParseAddr(ascii); err != nil {
			return "", &Fault{fmt.Sprintf("%q is neither a host name nor an IPv4 address", name), form}
		}
	}
	return ascii, nil
}

// idnaName returns the ASCII form of an internationalised name. It is one that
// has itself as its ASCII form.
func idnaName(name string) (string, bool) {
	profile := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.Transitional(false))
	ascii, err := profile.ToASCII(name)
	if err != nil || !utf8.ValidString(name) {
		return "", false
	}
	again, err := profile.ToASCII(ascii)
	return ascii, err == nil && again == ascii
}

// plainName reports whether a lower-case name needs no IDNA work.
func plainName(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return false
		}
	}
	return !strings.Contains(name, "xn--")
}

// checkLabel checks one label of a host name in ASCII form.
func checkLabel(name, label string) *Fault {
	const remedy = "use letters, digits, hyphens and dots"
	switch {
	case label == "":
		return &Fault{fmt.Sprintf("host name %q has an empty label", name), "remove the doubled or leading dot"}
	case len(label) > 63:
		return &Fault{fmt.Sprintf("label %q of a host name is longer than 63 characters", label), "shorten it"}
	case label[0] == '-' || label[len(label)-1] == '-':
		return &Fault{fmt.Sprintf("label %q of a host name starts or ends with a hyphen", label), remedy}
	}
	for i := range len(label) {
		c := label[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return &Fault{fmt.Sprintf("host name %q contains %q", name, rune(c)), remedy}
		}
	}
	return nil
}
