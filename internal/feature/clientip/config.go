package clientip

import (
	"fmt"
	"strings"

	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// Config configures which peers are trusted to report the client's address. The address is
// that of the connection unless the connection comes from one of these CDNs or proxies;
// filters, limits, the log and servers use the result. From other peers, headers with a
// client address are removed.
type Config struct {
	// Enabled is whether any peer is trusted. `enabled: false` on a route overrides the
	// proxy's setting.
	Enabled bool `json:"enabled" default:"true"`
	// CDN names the CDNs in front of the proxy: `cloudflare`, `fastly`, `cloudfront`,
	// `google` (Google Cloud load balancers), `akamai` and `bunny`. Their published
	// networks are trusted, and the header that each of them sets is used. cdn_networks
	// keeps the networks up to date.
	CDN []string `json:"cdn,omitempty" max:"16" example:"cloudflare"`
	// Trusted are the addresses and networks of other proxies in front, such as 192.0.2.7
	// or 10.0.0.0/8. Only list machines that you operate: a trusted peer can claim any
	// address.
	Trusted []string `json:"trusted,omitempty" max:"10000" example:"10.0.0.0/8"`
	// Header is the only header that is used from trusted peers. Empty means the CDN's own
	// header, else X-Forwarded-For, else Forwarded. Set it if your proxy sets another one
	// (X-Real-IP), or if it sets Forwarded and passes X-Forwarded-For from clients
	// unchanged.
	Header string `json:"header,omitempty" max:"128" example:"X-Real-IP"`
}

// Off reports whether no peer is trusted.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	for i, name := range c.CDN {
		if what, remedy := checkCDN(name); what != "" {
			at.Field("cdn").Index(i).Problem(what, remedy)
		}
	}
	ipset.Check(c.Trusted, at.Field("trusted"))
	field := at.Field("header")
	switch {
	case c.Header == "":
	case !http1.ValidName(c.Header):
		field.Problemf("write a name like X-Real-IP", "%q is not a header name", c.Header)
	case len(c.Trusted) == 0 && len(c.CDN) == 0:
		field.Problem("header has no effect without trusted or cdn", "add trusted or cdn")
	}
}

// checkCDN reports problems of the name of a CDN.
func checkCDN(name string) (what, remedy string) {
	names := make([]string, 0, len(presets))
	for i := range presets {
		if presets[i].name == name {
			return "", ""
		}
		names = append(names, presets[i].name)
	}
	if near := schema.Nearest(name, names); near != "" {
		return fmt.Sprintf("unknown CDN %q", name), fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("unknown CDN %q", name), "known are " + strings.Join(names, ", ") + "; name the networks of others under trusted"
}
