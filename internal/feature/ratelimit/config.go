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

// Config bounds how many requests a client may make. Each client has a bucket of
// its own, which holds burst requests and fills up again by requests in each
// period. A proxy's limit is one for all its routes but those with a limit of
// their own. Who is over it gets 429.
type Config struct {
	// Enabled is whether the limit acts. `enabled: false` on a route switches
	// off what the proxy would hand down; the route's requests are not counted.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Requests is how many requests a client may make in each period, in the
	// long run. It has to be set.
	Requests int `json:"requests,omitempty" label:"true" min:"1" max:"1000000" example:"100"`
	// Period is the time that requests are counted over: {requests: 600,
	// period: 1m} is ten a second.
	Period unit.Duration `json:"period" label:"true" default:"1s" min:"1s" max:"24h"`
	// Burst is how many requests a client may make at once after a pause.
	// Absent means as many as requests.
	Burst int `json:"burst,omitempty" label:"true" min:"1" max:"1000000" example:"200"`
	// Key is what tells clients apart: `client_ip` for their address, IPv6
	// addresses by their /64 network; `header:NAME` or `cookie:NAME` for the
	// value of a field or cookie; `user` for who signed in; `country` or `asn` for the
	// country or network of the address, by the databases under geo. Requests without
	// it are counted by address, as are those from a country that is unknown.
	Key string `json:"key" label:"true" default:"client_ip" max:"256" example:"header:X-Api-Key"`
	// Mode is `enforce`, or `observe` to count and log without refusing
	// anything.
	Mode Mode `json:"mode" label:"true" default:"enforce" enum:"enforce,observe"`
	// Exempt are the addresses of clients that are not counted: addresses, networks,
	// list:NAME, country:DE or asn:64500.
	Exempt []string `json:"exempt,omitempty" label:"true" max:"10000" example:"10.0.0.0/8"`
}

// Mode is what becomes of requests over the limit.
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

// Located returns which database the limit tells clients apart by, and whether it does.
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

// Check tells what is wrong with the settings, which stand at at.
func (c *Config) Check(at schema.Place) {
	if c.Enabled && c.Requests == 0 {
		at.Field("requests").Problem("missing", "add requests: 100")
	}
	if c.Requests > 0 && c.Period > 0 {
		if p := policy(c); p.Interval() > longestRefill/time.Duration(p.Burst()) {
			at.Field("burst").Problemf("write a smaller burst, or more requests in the period",
				"a burst of %d takes more than 30 days to come back", p.Burst())
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
