package spec

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// stateKey is the key of sticky cookies of every script.
var stateKey = strings.Repeat("0123456789abcdef", 4)

// state returns what is kept, with a known key.
func state(t *testing.T) store.Values {
	values := store.ValuesOf(memory.New())
	if err := values.Keep(store.KeySticky, []byte(stateKey+"\n")); err != nil {
		t.Fatal(err)
	}
	return values
}

// affinity returns the value of the cookie for a server of the route /app of the
// proxy p, as any node that has the key makes it.
func affinity(url string) string {
	key, _ := hex.DecodeString(stateKey)
	h := hmac.New(sha256.New, key)
	h.Write([]byte("affinity\x00p\x00/app\x00" + url + "\x00"))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// cookieSecure returns what a cookie carries over TLS beside its other attributes.
func (w transport) cookieSecure() string {
	if w.scheme() == "https" {
		return "; Secure"
	}
	return ""
}
