package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Masker returns a replacer of everything that came from ${file:/path} by that reference,
// for texts that are shown to people. It returns nil if nothing came from files.
func (c *Config) Masker() *strings.Replacer {
	if len(c.secrets) == 0 {
		return nil
	}
	// If a secret is a prefix of another one, replace the longer one first.
	values := slices.SortedFunc(maps.Keys(c.secrets), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, c.secrets[v])
	}
	return strings.NewReplacer(pairs...)
}

// Written returns the text that the documents have for the field with this path, if it
// contains ${…}. Its value came from the environment or from a file; it is never shown or
// written to a document.
func (c *Config) Written(path string) (text string, ok bool) {
	text, ok = c.expanded[path]
	return text, ok
}

// Writes reports whether a text with ${…} occurs in the documents.
func (c *Config) Writes(text string) bool {
	for _, have := range c.expanded {
		if have == text {
			return true
		}
	}
	return false
}
