package matchers

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"

	"headgate/internal/proto/header"
)

// maxLabel bounds a label in bytes, the path left out.
const maxLabel = 160

// Label returns the name of a route with a path and matchers in logs, metrics and messages:
// "/api GET,POST X-Version=2 ?beta". It does not depend on the order of the matchers. Parts
// that could be secret or are too long are hashed, so that two routes have two labels.
// Without matchers it is the path.
func Label(path string, c *Config) string {
	if c.Count() == 0 {
		return path
	}
	var parts []string
	if len(c.Methods) > 0 {
		methods := slices.Sorted(slices.Values(c.Methods))
		parts = append(parts, strings.Join(methods, ","))
	}
	parts = append(parts, labels("", c.Headers)...)
	parts = append(parts, labels("?", c.Query)...)
	text := strings.Join(parts, " ")
	if len(text) > maxLabel {
		sum := "… #" + hash(text)
		text = strings.ToValidUTF8(text[:maxLabel-len(sum)], "") + sum
	}
	return path + " " + text
}

func labels(before string, all []Condition) []string {
	out := make([]string, len(all))
	for i, c := range all {
		name := before + c.Name
		if before == "" {
			name = strings.ToLower(c.Name)
		}
		switch {
		case c.Value == "" && c.Regex == "":
			out[i] = name
		case secret(c.Name):
			out[i] = name + "=#" + hash(c.Value + "~" + c.Regex)[:4]
		case strings.ContainsFunc(c.Regex, unicode.IsControl):
			out[i] = name + "=~#" + hash(c.Regex)
		case c.Regex != "":
			out[i] = name + "=~" + c.Regex
		default:
			out[i] = name + "=" + c.Value
		}
	}
	slices.Sort(out)
	return out
}

// secret reports whether the values of a header or parameter are better not shown.
func secret(name string) bool {
	switch header.Lookup(name) {
	case header.Authorization, header.Cookie:
		return true
	}
	lower := strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "cookie", "key", "pass", "secret", "signature", "token"}, func(word string) bool {
		return strings.Contains(lower, word)
	})
}

// hash returns eight characters that identify a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
