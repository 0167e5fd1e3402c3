package clientip

import (
	"embed"
	"net/netip"
	"sync"
	"sync/atomic"

	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// preset is what is known of a CDN.
type preset struct {
	name string
	// own is the field in which the CDN writes the client's address, Other if
	// it has none that it always writes.
	own header.ID
	// first means that the header takes precedence over X-Forwarded-For: the CDN never
	// forwards one of the client. Otherwise it is used if X-Forwarded-For contains only the
	// CDN.
	first bool
	// skip is how many addresses the CDN writes behind the client's: its own
	// public one.
	skip int
	// from is where the CDN publishes its networks for programs, and read how one
	// of these is read; without, only the program's list is known.
	from []string
	read func([]byte) ([]string, error)
	// alone says that the program has no list of them: they change every day.
	alone bool
}

// presets are the CDNs that are known.
var presets = [...]preset{
	{
		name: "cloudflare", own: header.CFConnectingIP, first: true,
		from: []string{"https://www.cloudflare.com/ips-v4/", "https://www.cloudflare.com/ips-v6/"}, read: lines,
	},
	// Fastly keeps a Fastly-Client-IP that a client sends, but adds the client
	// to X-Forwarded-For, so that comes first.
	{
		name: "fastly", own: header.FastlyClientIP,
		from: []string{"https://api.fastly.com/public-ip-list"}, read: fastlyList,
	},
	{
		name: "cloudfront",
		from: []string{"https://ip-ranges.amazonaws.com/ip-ranges.json"}, read: cloudfrontList,
	},
	// X-Forwarded-For: <what the client sent>, <client>, <load balancer>
	{name: "google", skip: 1},
	// Between Akamai's tiers X-Forwarded-For names servers outside of the
	// networks that speak to origins.
	{name: "akamai", own: header.TrueClientIP, first: true},
	{
		name: "bunny", alone: true,
		from: []string{"https://bunnycdn.com/api/system/edgeserverlist", "https://bunnycdn.com/api/system/edgeserverlist/IPv6"}, read: jsonList,
	},
}

// cdn is a CDN with its networks, and those that are part of the program.
type cdn struct {
	preset
	networks atomic.Pointer[ipset.Set]
	embedded *list
}

// has reports whether an address is in the networks of the CDN.
func (c *cdn) has(a netip.Addr) bool { return c.networks.Load().Contains(a) }

//go:embed ranges/*.txt
var ranges embed.FS

// known returns the CDNs of presets, in that order, with the networks that are
// part of the program.
var known = sync.OnceValue(func() []*cdn {
	all := make([]*cdn, len(presets))
	for i := range presets {
		all[i] = &cdn{preset: presets[i], embedded: &list{}}
		if !presets[i].alone {
			all[i].embedded = published(presets[i].name)
		}
		all[i].networks.Store(all[i].embedded.set())
	}
	return all
})

// published reads the networks of a CDN that are part of the program.
func published(name string) *list {
	text, err := ranges.ReadFile("ranges/" + name + ".txt")
	if err != nil {
		panic(err) // a test reads every one
	}
	l, err := parseList(text)
	if err != nil {
		panic(err)
	}
	return l
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
		if c.has(a) {
			return c
		}
	}
	return nil
}

// CDNOf returns the name of the CDN whose networks, as far as they are known, have an
// address; empty if none has. It may be called from several goroutines at once.
func CDNOf(a netip.Addr) string {
	for _, c := range known() {
		if c.has(a.Unmap()) {
			return c.name
		}
	}
	return ""
}

// CDNWith returns the name of a CDN of which a network has an address, as far as its
// networks are known; empty if no CDN has one. It may be called from several goroutines
// at once.
func CDNWith(n netip.Prefix) string {
	for _, c := range known() {
		if c.networks.Load().Overlaps(n) {
			return c.name
		}
	}
	return ""
}
