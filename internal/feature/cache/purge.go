package cache

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"

	"headgate/internal/proto/header"
)

// Purge selects what to remove from caches. Exactly one of URL, Prefix, Tag and All is set.
type Purge struct {
	// Proxy restricts it to the caches of one proxy; "" means all.
	Proxy string `json:"proxy,omitempty"`
	// URL removes the responses of one URL, in all variants and for both schemes.
	URL string `json:"url,omitempty"`
	// Prefix removes the responses of URLs with this prefix.
	Prefix string `json:"prefix,omitempty"`
	// Tag removes responses with this tag in Cache-Tag, Surrogate-Key, xkey or Cache-Groups.
	Tag string `json:"tag,omitempty"`
	// All removes everything.
	All bool `json:"all,omitempty"`
	// Soft marks responses as stale instead of removing them: they are validated before
	// they are used again, or served stale where that is allowed.
	Soft bool `json:"soft,omitempty"`
	// Count only counts what would be removed.
	Count bool `json:"-"`
}

// sweep is what to do with the selected entries.
type sweep uint8

const (
	takeOut   sweep = iota
	makeStale       // they are validated before they are used again
	onlyCount
)

// sweep returns what becomes of the entries that the purge means.
func (p *Purge) sweep() sweep {
	switch {
	case p.Count:
		return onlyCount
	case p.Soft:
		return makeStale
	}
	return takeOut
}

// Check returns what is wrong with a purge, for who wrote it.
func (p *Purge) Check() error {
	given := 0
	for _, is := range []bool{p.URL != "", p.Prefix != "", p.Tag != "", p.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("set exactly one of url, prefix, tag and all")
	}
	if ref := p.URL + p.Prefix; ref != "" {
		if _, _, err := splitURL(ref); err != nil {
			return err
		}
	}
	switch {
	case strings.ContainsAny(p.Tag, ",\""):
		return errors.New("a tag contains no comma and no quotation mark: purge one tag at a time")
	case len(p.Tag) > maxTag:
		return fmt.Errorf("the tag is longer than %d bytes", maxTag)
	}
	return nil
}

// Purge removes what a valid p selects, or counts it, and returns how many responses
// there were.
func (s Store) Purge(p Purge) (n int) {
	switch {
	case p.URL != "":
		host, rest, _ := splitURL(p.URL)
		path, query, _ := strings.Cut(rest, "?")
		if query != "" {
			query = "?" + query
		}
		for _, scheme := range [...]string{"http", "https"} {
			b := appendHost(append([]byte(scheme), 0), host, schemeOf(p.URL))
			b = append(append(b, 0), normalPath(path)...)
			n += s.forget(s.ignored.appendQuery(b, query), p.sweep())
		}
	case p.Prefix != "":
		host, path, _ := splitURL(p.Prefix)
		begin := append(appendHost(nil, host, schemeOf(p.Prefix)), 0)
		begin = append(begin, path...)
		n = s.drop(func(e *entry) bool {
			_, rest, _ := bytes.Cut(e.key(), []byte{0})
			return bytes.HasPrefix(rest, begin)
		}, p.sweep())
	case p.Tag != "":
		n = s.drop(func(e *entry) bool { return e.hasTag(p.Tag) }, p.sweep())
	case p.All:
		n = s.drop(func(*entry) bool { return true }, p.sweep())
	}
	return n
}

// splitURL splits a URL into its host and the rest, which starts with a slash.
func splitURL(ref string) (host, rest string, err error) {
	scheme, rest, ok := strings.Cut(ref, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return "", "", errors.New("write a whole URL, such as https://shop.example.com/page")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if host, rest = rest[:end], rest[end:]; host == "" {
		return "", "", errors.New("the URL has no host")
	}
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	return host, rest, nil
}

func schemeOf(ref string) string {
	scheme, _, _ := strings.Cut(ref, "://")
	return scheme
}

// maxTag is the longest tag that a purge can name, in bytes.
const maxTag = 1024

// hasTag reports whether a tag is among those of the entry, in any case. Tags are compared
// completely: a tag that only contains the one asked for is not meant.
func (e *entry) hasTag(tag string) bool {
	for t := range e.tags {
		if header.EqualFold(t, tag) {
			return true
		}
	}
	return false
}

// tags yields the tags of the entry: the words of Cache-Tag, Surrogate-Key and xkey, and the
// strings of Cache-Groups (RFC 9875, section 2). They are views.
func (e *entry) tags(yield func(string) bool) {
	if !e.tagged {
		return
	}
	var list header.List
	e.fields(&list, isTag)
	for _, f := range list.All() {
		all := words
		if f.ID == header.CacheGroups {
			all = groups
		}
		for t := range all(f.Value) {
			if !yield(t) {
				return
			}
		}
	}
}

// words splits a list at commas and blanks.
func words(value string) iter.Seq[string] {
	return strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// groups yields the strings of a list (RFC 9651, section 3.1), without their parameters. A string
// with an escape is as it is written.
func groups(value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for value != "" {
			start := strings.IndexByte(value, '"')
			if start < 0 {
				return
			}
			group, rest, quoted := argument(value[start:])
			if !quoted || group != "" && !yield(group) {
				return
			}
			value, _ = skip(rest)
		}
	}
}

// isTag reports whether a field has tags.
func isTag(id header.ID) bool {
	switch id {
	case header.CacheTag, header.SurrogateKey, header.XKey, header.CacheGroups:
		return true
	}
	return false
}
