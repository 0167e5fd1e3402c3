package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// conceal removes the contents of files and the values of variables of headgate itself from problems:
// another machine may have referred to them, and reads the problems.
func (c *Config) conceal(problems []Problem) []Problem {
	if len(c.secrets) == 0 {
		return problems
	}
	for i := range problems {
		if reference := c.concealed(&problems[i]); reference != "" {
			problems[i].What, problems[i].Remedy = fmt.Sprintf("the value of %s, which is not shown, cannot be used here", reference), "correct it at its source, or write another value"
		}
	}
	return problems
}

// concealed returns the reference to the secret that a problem could show, "" if none.
func (c *Config) concealed(p *Problem) string {
	text := p.What + p.Remedy
	for secret, reference := range c.secrets {
		if c.expanded[p.Field] != "" && strings.Contains(c.expanded[p.Field], reference) {
			return reference
		}
		const enough = 12 // bytes that do not occur by chance, where a message has shortened the rest
		begin := strings.TrimSpace(secret)
		if i := strings.IndexFunc(begin, func(r rune) bool { return r == '"' || r == '\\' || !strconv.IsPrint(r) }); i >= 0 {
			begin = begin[:i] // is written in another way where it is quoted
		}
		if begin = begin[:min(len(begin), enough)]; len(begin) >= 4 && strings.Contains(text, begin) {
			return reference
		}
	}
	return ""
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
