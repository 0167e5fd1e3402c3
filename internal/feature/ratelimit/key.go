package ratelimit

import (
	"strings"

	"headgate/internal/bucket"
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// key distinguishes clients.
type key struct {
	user, country, asn bool

	cookie string
	name   string // of a field
	id     header.ID
}

func newKey(text string) key {
	if name, ok := strings.CutPrefix(text, keyCookie); ok {
		return key{cookie: name}
	}
	if name, ok := strings.CutPrefix(text, keyHeader); ok {
		return key{name: name, id: header.Lookup(name)}
	}
	return key{user: text == keyUser, country: text == keyCountry, asn: text == keyASN}
}

// seeds keep addresses and texts apart, and everyone from guessing who shares a
// set of the table with whom.
type seeds struct{ address, text bucket.Seed }

func newSeeds() seeds { return seedsOf(bucket.NewSeed()) }

// seedsOf returns the seeds that follow from one: those of a process and of the one that
// replaces it.
func seedsOf(s bucket.Seed) seeds { return seeds{s, s.Derive()} }

// of returns the hash of the client of ex. A client without the text that
// distinguishes clients has the hash of its address, so that leaving it out
// has no advantage.
func (k *key) of(ex *exchange.Exchange, s *seeds) uint64 {
	if k.asn {
		if n := ex.ASN(); n != 0 {
			return s.text.Uint32(n)
		}
	} else if text := k.text(ex); text != "" {
		return s.text.String(text)
	}
	return s.address.Address(ex.ClientIP)
}

// text returns the text that distinguishes the client, or "".
func (k *key) text(ex *exchange.Exchange) string {
	switch {
	case k.user:
		return ex.User
	case k.country:
		if c := ex.Country(); c != ipset.UnknownCountry {
			return c
		}
		return ""
	case k.repeated(&ex.Request.Header):
		return ""
	case k.cookie != "":
		return ex.Request.Header.CookieValue(k.cookie)
	case k.id != header.Other:
		return ex.Request.Header.Get(k.id)
	case k.name != "":
		value, _ := ex.Request.Header.Lookup(k.name)
		return value
	}
	return ""
}

// repeated reports whether the cookie or header is present more than once, including under
// names that a server could treat as the same. It is unknown which one a server uses: a
// client could add a random value to its own to get a new bucket each time.
func (k *key) repeated(list *header.List) bool {
	n := 0
	for _, f := range list.All() {
		switch {
		case k.name != "" && header.Twins(f.Name, k.name):
			n++
		case k.cookie != "" && f.ID == header.Cookie:
			for pair := range strings.SplitSeq(f.Value, ";") {
				if name, _, ok := header.CutPair(pair); ok && name == k.cookie {
					n++
				}
			}
		}
	}
	return n > 1
}
