package clientip

import (
	"embed"
	"net/netip"
	"strings"
	"sync"

	"headgate/internal/header"
	"headgate/internal/ipset"
)

// preset is what is known of a CDN.
type preset struct {
	name string
	// own is the field in which the CDN writes the client's address, Other if
	// it has none that it always writes.
	own header.ID
	// first says that the field is read before X-Forwarded-For: the CDN never
	// passes on one that a client made. Otherwise it is read when
	// X-Forwarded-For names nobody but the CDN.
	first bool
	// skip is how many addresses the CDN writes behind the client's: its own
	// public one.
	skip int
}

// presets are the CDNs that are known.
var presets = [...]preset{
	{name: "cloudflare", own: header.CFConnectingIP, first: true},
	// Fastly keeps a Fastly-Client-IP that a client sends, but adds the client
	// to X-Forwarded-For, so that comes first.
	{name: "fastly", own: header.FastlyClientIP},
	{name: "cloudfront"},
	// X-Forwarded-For: <what the client sent>, <client>, <load balancer>
	{name: "google", skip: 1},
	// Between Akamai's tiers X-Forwarded-For names servers outside of the
	// networks that speak to origins.
	{name: "akamai", own: header.TrueClientIP, first: true},
}

// cdn is a CDN with its networks.
type cdn struct {
	preset
	networks *ipset.Set
}

//go:embed ranges/*.txt
var ranges embed.FS

// known returns the CDNs of presets, in that order, with the networks that are
// part of the program.
var known = sync.OnceValue(func() []*cdn {
	all := make([]*cdn, len(presets))
	for i := range presets {
		all[i] = &cdn{preset: presets[i], networks: published(presets[i].name)}
	}
	return all
})

// published reads the networks of a CDN.
func published(name string) *ipset.Set {
	text, err := ranges.ReadFile("ranges/" + name + ".txt")
	if err != nil {
		panic(err) // a test reads every one
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	set, err := ipset.New(list)
	if err != nil {
		panic(err)
	}
	return set
}

// named returns the CDN with this name, or nil.
func named(name string) *cdn {
	for _, c := range known() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// owner returns which of some CDNs an address belongs to, or nil.
func owner(all []*cdn, a netip.Addr) *cdn {
	for _, c := range all {
		if c.networks.Contains(a) {
			return c
		}
	}
	return nil
}
