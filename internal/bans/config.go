package bans

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/unit"
)

// Config is a rule by which clients are banned: who meets one of its conditions often
// enough within a time is refused for a while, at all proxies. A new rule only observes:
// it shows whom it would have banned, and refuses no client.
type Config struct {
	// When are the conditions. Each condition counts separately, for each client address
	// (IPv6: each /64).
	When []Condition `json:"when" required:"true" min:"1" max:"32"`
	// Within is the time over which requests are counted.
	Within unit.Duration `json:"within" default:"10m" min:"10s" max:"24h"`
	// Ban is for how long clients are banned.
	Ban Length `json:"ban"`
	// Mode is `observe` to show whom the rule would ban, or `enforce` to ban.
	Mode Mode `json:"mode" default:"observe" enum:"observe,enforce"`
	// Answer is how banned clients are refused: `deny` answers with 403 and the reason,
	// `reject` also closes new connections before TLS. Connections are never closed of an
	// address of a trusted proxy, or from which a person signed in within 24 hours.
	Answer Response `json:"answer" default:"deny" enum:"deny,reject"`
	// Exempt are the addresses of clients that are never counted: addresses, networks,
	// list:NAME, country:DE or asn:64500.
	Exempt []string `json:"exempt,omitempty" max:"10000" example:"[list:office]"`
	// IncludePrivate is whether clients with private addresses can be banned, too.
	IncludePrivate bool `json:"include_private" default:"false"`
}

// Condition is what is counted: a request that meets all of what is set.
type Condition struct {
	// Reason is the reason of headgate's own answer, such as no_route or auth_required.
	Reason string `json:"reason,omitempty" max:"64" example:"no_route"`
	// Path are the requested paths. A path that ends with * matches every path that starts
	// with what is before it.
	Path []string `json:"path,omitempty" max:"256" example:"[/.env, /wp-login.php, \"/.git/*\"]"`
	// Status are the status codes of the response, from a server or from headgate. A 401 counts only where
	// the request had credentials: an Authorization field, or a POST to a path of the
	// condition.
	Status []int `json:"status,omitempty" max:"32" example:"[401, 403]"`
	// Count is the number of such requests that leads to a ban.
	Count int `json:"count" required:"true" min:"1" max:"60000" example:"10"`
}

// Length is for how long clients are banned.
type Length struct {
	// First is the length of the first ban of a client.
	First unit.Duration `json:"first" default:"10m" min:"10s" max:"720h"`
	// Factor is how many times as long each further ban is as the one before.
	Factor int `json:"factor" default:"4" min:"1" max:"100"`
	// Max is the longest ban.
	Max unit.Duration `json:"max" default:"7d" min:"10s" max:"8760h"`
}

// Mode is whether a rule bans.
type Mode string

// The modes.
const (
	Observe Mode = "observe"
	Enforce Mode = "enforce"
)

// Response is how banned clients are refused.
type Response string

// The ways to refuse.
const (
	Deny   Response = "deny"
	Reject Response = "reject"
)

// of returns the length of a ban, the times-th of a client.
func (l *Length) of(times int) time.Duration {
	d, most := l.First.D(), l.Max.D()
	for range min(times-1, 64) {
		hi, lo := bits.Mul64(uint64(d), uint64(l.Factor))
		if hi > 0 || lo > uint64(most) {
			return most
		}
		d = time.Duration(lo)
	}
	return min(d, most)
}

// References returns what exempt refers to.
func (c *Config) References() []ipset.Referrer {
	return []ipset.Referrer{{Field: "exempt", Entries: c.Exempt}}
}

// Check reports what is wrong with the settings at at.
func (c *Config) Check(at schema.Place) {
	for i := range c.When {
		c.When[i].check(at.Field("when").Index(i))
	}
	if c.Ban.Max < c.Ban.First {
		at.Field("ban").Field("max").Problemf("write a longer one", "the longest ban, %v, is shorter than the first, %v", c.Ban.Max, c.Ban.First)
	}
	ipset.CheckEntries(c.Exempt, at.Field("exempt"))
}

func (c *Condition) check(at schema.Place) {
	if c.Reason == "" && len(c.Path) == 0 && len(c.Status) == 0 {
		at.Problem("the condition is met by every request", "add reason, path or status")
	}
	if c.Reason != "" {
		if _, ok := reasonOf(c.Reason); !ok {
			var known []string
			for _, r := range exchange.Reasons() {
				known = append(known, r.String())
			}
			remedy := "docs/reference/reasons.md lists the reasons"
			if near := schema.Nearest(c.Reason, known); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			at.Field("reason").Problemf(remedy, "unknown reason %q", c.Reason)
		}
	}
	for i, s := range c.Status {
		if s < 400 || s > 599 {
			at.Field("status").Index(i).Problemf("write a status between 400 and 599", "clients are not banned for status %d", s)
		}
	}
	for i, p := range c.Path {
		if !strings.HasPrefix(p, "/") || strings.Contains(strings.TrimSuffix(p, "*"), "*") {
			at.Field("path").Index(i).Problem("not a path", "write it as /wp-login.php, or /.git/* for all paths that start with /.git/")
		} else if p == "/*" || p == "/" {
			at.Field("path").Index(i).Problem("every client requests this path", "write a path that only unwanted clients request")
		}
	}
}

// reasonOf returns the reason with a word. That a client is banned is no reason to ban it.
func reasonOf(word string) (exchange.Reason, bool) {
	for _, r := range exchange.Reasons() {
		if r.String() == word && r != exchange.Banned {
			return r, true
		}
	}
	return exchange.None, false
}
