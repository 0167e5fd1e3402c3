package cache

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// chooseLanguage replaces Accept-Language by the best match of the languages in the
// settings, the first if none matches: so requests are distinguished by what servers
// can answer, and not by how browsers write preferences.
func (c *Cache) chooseLanguage(ex *exchange.Exchange) {
	if len(c.languages) == 0 || !ex.Request.Header.Has(header.AcceptLanguage) {
		return
	}
	ex.Request.Header.Set(header.AcceptLanguage, c.language(&ex.Request.Header))
}

// language returns the language for a request. Each range that the client names gets
// what fits it best: the same tag, one that it is more exact than (en for en-GB), or one
// that is more exact (en-GB for en; RFC 4647, sections 3.4 and 3.3.1). The range with
// the largest weight decides, the first of those with the same.
func (c *Cache) language(list *header.List) string {
	best, weight := c.languages[0], 0
	for _, f := range list.All() {
		if f.ID != header.AcceptLanguage {
			continue
		}
		for part := range strings.SplitSeq(f.Value, ",") {
			name, params, _ := strings.Cut(part, ";")
			n, ok := header.ParseWeight(params)
			if name = header.TrimOWS(name); !ok || n <= weight || name == "" {
				continue
			}
			if found := c.fitting(name); found != "" {
				best, weight = found, n
			}
		}
	}
	return best
}

// fitting returns the language that fits a range, "" for none.
func (c *Cache) fitting(wanted string) string {
	if wanted == "*" {
		return c.languages[0]
	}
	for shorter := wanted; shorter != ""; shorter = shorter[:max(strings.LastIndexByte(shorter, '-'), 0)] {
		for _, l := range c.languages {
			if header.EqualFold(l, shorter) {
				return l
			}
		}
	}
	for _, l := range c.languages {
		if len(l) > len(wanted) && l[len(wanted)] == '-' && header.EqualFold(l[:len(wanted)], wanted) {
			return l
		}
	}
	return ""
}
