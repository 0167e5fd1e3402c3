package headers

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/schema"
)

// credentialWords are parts of the names of fields that carry credentials.
var credentialWords = []string{"auth", "token", "secret", "key", "password", "credential", "session", "cookie", "signature"}

// notCredentials are names with such a word that carry none.
var notCredentials = []string{
	"authority", "cache-key", "idempotency-key", "proxy-authenticate", "public-key-pins", "sec-websocket-key", "surrogate-key", "www-authenticate", "xkey",
}

// Credentials reports whether a field of this name carries credentials, as far as its
// name tells.
func Credentials(name string) bool {
	name = strings.ToLower(name)
	return !slices.Contains(notCredentials, name) && slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) })
}

var _ schema.Hider = Rule{}

// Hides reports whether the value of a field of the rule is a secret: by secret: true, or
// because the field that the rule sets carries credentials. Variables are no secret.
func (r Rule) Hides(field string) bool {
	switch field {
	case "value":
		return r.Secret || r.Operation != Replace && Credentials(r.Name) && r.literal()
	case "regex":
		return r.Secret
	}
	return false
}

// withoutText matches what of a value says nothing: variables, the words before a
// credential, and separators.
var withoutText = regexp.MustCompile(`\{[a-z_.]+\}|(?i:\b(bearer|basic|token|digest)\b)|[\s,;=:"]+`)

// literal reports whether the value has more in it than variables.
func (r Rule) literal() bool { return withoutText.ReplaceAllString(r.Value, "") != "" }
