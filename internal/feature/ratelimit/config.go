package ratelimit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/unit"
)

// Config limits the requests of each client. Each client has a token bucket, which holds
// burst requests and is refilled with requests in each period. A proxy's limit is shared by
// its routes, except those with their own limit. Requests over the limit get 429.
type Config struct {
	// Enabled is whether the limit is active. `enabled: false` on a route overrides the
	// proxy's setting; the route's requests are then not counted.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Requests is the number of requests that a client can make in each period, on average.
	// It is required.
	Requests int `json:"requests,omitempty" label:"true" min:"1" max:"1000000" example:"100"`
	// Period is the time over which requests are counted: {requests: 600, period: 1m}
	// allows ten a second.
	Period unit.Duration `json:"period" label:"true" default:"1s" min:"1s" max:"24h"`
	// Burst is the number of requests that a client can make at once after a pause. Absent
	// means the value of requests.
	Burst int `json:"burst,omitempty" label:"true" min:"1" max:"1000000" example:"200"`
	// Key identifies clients: `client_ip` is their address, or the /64 network of an IPv6
	// address; `header:NAME` or `cookie:NAME` the value of a header or cookie; `user` the
	// authenticated user; `country` or `asn` the country or network of the address, from
	// the databases in geo. Requests without a value, or with an unknown country, are
	// counted by address.
	Key string `json:"key" label:"true" default:"client_ip" max:"256" example:"header:X-Api-Key"`
	// Mode is `enforce`, or `observe` to count and log requests over the limit without
	// rejecting them.
	Mode Mode `json:"mode" label:"true" default:"enforce" enum:"enforce,observe"`
	// Exempt are the addresses of clients that are not counted: addresses, networks,
	// list:NAME, country:DE or asn:64500.
	Exempt []string `json:"exempt,omitempty" label:"true" max:"10000" example:"10.0.0.0/8"`
}

// Mode is what to do with requests over the limit.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Observe Mode = "observe"
)

// Off reports whether the limit is switched off.
func (c *Config) Off() bool { return !c.Enabled }

// References returns what exempt refers to.
func (c *Config) References() []ipset.Referrer {
	return []ipset.Referrer{{Field: "exempt", Entries: c.Exempt}}
}

// Located returns which database the limit uses to distinguish clients, and whether it
// uses one.
func (c *Config) Located() (ipset.ReferenceKind, bool) {
	switch c.Key {
	case keyCountry:
		return ipset.ToCountry, true
	case keyASN:
		return ipset.ToASN, true
	}
	return 0, false
}

// AfterSignIn reports whether the limit has to know who signed in, so that it
// acts behind the sign-in and not in front of it.
func (c *Config) AfterSignIn() bool { return c.Key == keyUser }

// longestRefill is the longest time in which an empty bucket may fill up.
const longestRefill = 30 * 24 * time.Hour

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if c.Enabled && c.Requests == 0 {
		at.Field("requests").Problem("missing", "add requests: 100")
	}
	if c.Requests > 0 && c.Period > 0 {
		if p := policy(c); p.Interval() > longestRefill/time.Duration(p.Burst()) {
			at.Field("burst").Problemf("write a smaller burst, or more requests in the period",
				"a burst of %d takes more than 30 days to refill", p.Burst())
		}
	}
	if what, remedy := checkKey(c.Key); what != "" {
		at.Field("key").Problem(what, remedy)
	}
	ipset.CheckEntries(c.Exempt, at.Field("exempt"))
}

// The forms of key.
const (
	keyClientIP = "client_ip"
	keyUser     = "user"
	keyCountry  = "country"
	keyASN      = "asn"
	keyHeader   = "header:"
	keyCookie   = "cookie:"
)

func checkKey(key string) (what, remedy string) {
	const forms = "write client_ip, user, country, asn, header:NAME or cookie:NAME"
	words := []string{keyClientIP, keyUser, keyCountry, keyASN}
	if slices.Contains(words, key) {
		return "", ""
	}
	if name, ok := strings.CutPrefix(key, keyCookie); ok {
		if !http1.ValidName(name) {
			return fmt.Sprintf("%q is not the name of a cookie", name), "write a name like cookie:session"
		}
		return "", ""
	}
	name, ok := strings.CutPrefix(key, keyHeader)
	if !ok {
		if near := schema.Nearest(key, words); near != "" {
			return fmt.Sprintf("unknown key %q", key), fmt.Sprintf("did you mean %q?", near)
		}
		return fmt.Sprintf("unknown key %q", key), forms
	}
	switch id := header.Lookup(name); {
	case !http1.ValidName(name):
		return fmt.Sprintf("%q is not a header name", name), "write a name like header:X-Api-Key"
	case id.ClaimsClient():
		return name + " is dropped before the limit sees it", "write client_ip, and whom to trust under client_ip.trusted"
	case id.HopByHop() || id == header.Host:
		return name + " is not a field that a client can be known by", forms
	}
	return "", ""
}
