package lists

import (
	"fmt"
	"strings"

	"headgate/internal/schema"
	"headgate/internal/server/download"
	"headgate/internal/server/target"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/unit"
)

// Config is a list of addresses that settings refer to as list:NAME. Exactly one of
// entries, url, file and crowdsec says where its entries come from. The last entries that
// could be used are kept in the state directory and used after a restart.
type Config struct {
	// Entries are addresses, networks, and host names, which are looked up again when their
	// time to live is over. While a name cannot be looked up, its last addresses are used
	// for 24 hours.
	Entries []string `json:"entries,omitempty" max:"200000" example:"[203.0.113.0/24, home.example.net]"`
	// URL is where the list is downloaded from, over https: one address or network per line,
	// with comments behind # or ;. At most three redirects are followed. Entries wider than
	// /8 (IPv6 /20), and those with an address that is never banned, are left out.
	URL string `json:"url,omitempty" host:"admin" max:"2048" example:"https://lists.example.com/drop.txt"`
	// File is a file in the same form. A relative path begins at the configuration file. It
	// is read again when it changes.
	File string `json:"file,omitempty" host:"admin" max:"4096" example:"/etc/headgate/bad.txt"`
	// CrowdSec takes the addresses that a CrowdSec engine has decided to ban.
	CrowdSec *CrowdSec `json:"crowdsec,omitempty"`
	// Interval is how often the list at url is downloaded.
	Interval unit.Duration `json:"interval" default:"12h" min:"1m" max:"720h"`
	// AllowShrink is whether a downloaded list is used that has a tenth of the entries of
	// the one before, or fewer.
	AllowShrink bool `json:"allow_shrink" default:"false"`
}

// CrowdSec is a CrowdSec engine whose decisions to ban make up a list. Decisions of other
// types, such as captcha, are ignored.
type CrowdSec struct {
	// URL is the local API of the engine.
	URL string `json:"url" required:"true" host:"admin" max:"2048" example:"http://127.0.0.1:8080"`
	// Key is the bouncer key: `cscli bouncers add headgate` prints it. Each node needs a key
	// of its own.
	Key string `json:"key" required:"true" secret:"true" max:"1024" example:"${file:/etc/headgate/crowdsec.key}"`
	// OnFailure is what happens while the engine cannot be reached: `keep` uses the last
	// decisions, `pass` treats the list as empty, and `deny` as if it contained every
	// address.
	OnFailure OnFailure `json:"on_failure" default:"keep" enum:"keep,pass,deny"`
	// Interval is how often the engine is queried for new decisions.
	Interval unit.Duration `json:"interval" default:"10s" min:"1s" max:"1h"`
}

// OnFailure is what happens while a CrowdSec engine cannot be reached.
type OnFailure string

// The values of on_failure.
const (
	Keep OnFailure = "keep"
	Pass OnFailure = "pass"
	Deny OnFailure = "deny"
)

// The bounds of a list.
const (
	// maxNames is how many host names a list has.
	maxNames = 64
	// maxEntries is how many entries of a downloaded list or file are used.
	maxEntries = 2_000_000
	// maxBytes is how large a downloaded list or file is.
	maxBytes = 64 << 20
)

// Source returns the word for where the entries come from: entries, url, file or crowdsec.
func (c *Config) Source() string {
	switch {
	case c.URL != "":
		return "url"
	case c.File != "":
		return "file"
	case c.CrowdSec != nil:
		return "crowdsec"
	}
	return "entries"
}

// Check reports what is wrong with the settings at at.
func (c *Config) Check(at schema.Place) {
	given := 0
	for _, is := range []bool{len(c.Entries) > 0, c.URL != "", c.File != "", c.CrowdSec != nil} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		at.Problem("the list has no source", "add entries, url, file or crowdsec")
	case given > 1:
		at.Problem("the list has more than one source", "keep one of entries, url, file and crowdsec; make one list for each source")
	}
	c.checkEntries(at.Field("entries"))
	if c.URL != "" {
		if what, remedy := download.Check(c.URL); what != "" {
			at.Field("url").Problem(what, remedy)
		}
	}
	if c.CrowdSec != nil {
		if !strings.HasPrefix(c.CrowdSec.URL, "http://") && !strings.HasPrefix(c.CrowdSec.URL, "https://") {
			at.Field("crowdsec").Field("url").Problem("not an http or https URL", "write it as http://127.0.0.1:8080")
		}
		if strings.ContainsAny(c.CrowdSec.Key, " \t\r\n") {
			at.Field("crowdsec").Field("key").Problem("the key contains white space", "write the key that cscli bouncers add prints")
		}
	}
}

func (c *Config) checkEntries(at schema.Place) {
	names := 0
	for i, text := range c.Entries {
		if ipset.IsReference(text) {
			at.Index(i).Problem("a list cannot refer to other lists, countries or networks by number", "name both where the list is used")
			continue
		}
		if _, err := ipset.Parse(text); err == nil {
			continue
		} else if name, ok := hostName(text); ok && name != "" {
			names++
		} else {
			at.Index(i).Problemf("write an address, a network or a host name", "%s", firstClause(err))
		}
	}
	if names > maxNames {
		at.Problemf("split the list", "the list has %d host names, more than the maximum of %d", names, maxNames)
	}
}

func firstClause(err error) string {
	what, _, _ := strings.Cut(err.Error(), "; ")
	return what
}

// hostName returns the host name of an entry in its one form, and whether it is one.
func hostName(text string) (string, bool) {
	if strings.ContainsAny(text, "/:[]%*") || !strings.ContainsAny(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz") {
		return "", false
	}
	name, f := target.Host(text)
	return name, f == nil
}

// split returns the networks and the host names of entries that were checked.
func split(entries []string) (networks []string, names []string, err error) {
	for _, text := range entries {
		if _, bad := ipset.Parse(text); bad == nil {
			networks = append(networks, text)
		} else if name, ok := hostName(text); ok {
			names = append(names, name)
		} else {
			return nil, nil, fmt.Errorf("entry %q: %w", text, bad)
		}
	}
	return networks, names, nil
}
