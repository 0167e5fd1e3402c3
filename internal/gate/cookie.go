package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// The names of cookies. Browsers accept names with __Host- only from the host itself, over
// https, and for all of its paths: no sibling of the host can set them.
const (
	// CookiePrefix is what all names start with. No server ever gets such a cookie.
	CookiePrefix = "__Host-headgate-"
	// CookieGate is the session of one application's host.
	CookieGate = CookiePrefix + "gate"
	// CookieNonce identifies a browser at an application's host while it signs in.
	CookieNonce = CookiePrefix + "nonce"
	// CookieSignIn is the session at the sign-in host.
	CookieSignIn = CookiePrefix + "sign-in"
	// CookieKnown are the people who have signed in in a browser before, sealed.
	CookieKnown = CookiePrefix + "known"
	// CookiePending is followed by a part of the state: a sign-in in progress.
	CookiePending = CookiePrefix + "pending-"
)

// SecretLength is how many characters a secret has: 256 bits in Base64.
const SecretLength = 43

// IsSecret reports whether a text has the form of a secret, or of the digest of one.
func IsSecret(text string) bool {
	if len(text) != SecretLength {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// digest is what is kept of a secret.
type digest [sha256.Size]byte

func digestOf(secret string) digest {
	var b [SecretLength]byte
	copy(b[:], secret)
	return sha256.Sum256(b[:])
}

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(text string) (d digest, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return digest(b), true
}

// SetCookie returns the value of a Set-Cookie field; a value of "" removes the cookie.
func SetCookie(name, value string, age time.Duration) string {
	return setCookie(name, value, age) + "Lax"
}

func setCookie(name, value string, age time.Duration) string {
	seconds := int64(age / time.Second)
	if value == "" {
		seconds = 0
	}
	return name + "=" + value + "; Path=/; Max-Age=" + strconv.FormatInt(seconds, 10) + "; Secure; HttpOnly; SameSite="
}

// Cookies are those of headgate in a request.
type Cookies struct {
	// Gate, Nonce, SignIn and Known are the values, "" without one.
	Gate, Nonce, SignIn, Known string
	// Pending are sign-ins in progress, with their names.
	Pending []Cookie
	// Links are visits of share links, with their names.
	Links []Cookie
	// Repeated is whether a name is in the request twice: one of the two is not headgate's.
	Repeated bool

	seen uint8 // names that have come, one bit each
}

// Cookie is a name and a value.
type Cookie struct{ Name, Value string }

// maxPending is how many sign-ins a browser may have in progress.
const maxPending = 8

// Strip removes all cookies of headgate from a request, however their names are spelled,
// and puts those that are spelled right into c.
func (c *Cookies) Strip(ex *exchange.Exchange) {
	*c = Cookies{Pending: c.Pending[:0], Links: c.Links[:0]}
	list := &ex.Request.Header
	if !list.Has(header.Cookie) {
		return
	}
	emptied := false
	fields := list.All()
	for i := range fields {
		if f := &fields[i]; f.ID == header.Cookie && mayHave(f.Value) {
			f.Value = c.strip(ex, f.Value)
			emptied = emptied || f.Value == ""
		}
	}
	if emptied {
		list.DeleteFunc(func(f *header.Field) bool { return f.ID == header.Cookie && f.Value == "" })
	}
}

// mayHave reports whether a Cookie field can have one of headgate's.
func mayHave(value string) bool {
	for {
		i := strings.IndexByte(value, '_')
		if i < 0 || len(value)-i < len(CookiePrefix) {
			return false
		}
		if header.EqualFold(value[i:i+len(CookiePrefix)], CookiePrefix) {
			return true
		}
		value = value[i+1:]
	}
}

// Reserved reports whether a cookie's name belongs to headgate, however it is spelled.
func Reserved(name string) bool {
	return len(name) >= len(CookiePrefix) && header.EqualFold(name[:len(CookiePrefix)], CookiePrefix)
}

// strip returns a Cookie field without headgate's. The others stay as they are written. Where what
// stays is in one piece, it is a part of the field; otherwise it is copied.
func (c *Cookies) strip(ex *exchange.Exchange, value string) string {
	kept := ""        // what stays, while it is in one piece
	var joined []byte // what stays in several pieces; nil while it is in one
	from := -1        // where the piece starts that ends at the current cookie; -1 for none
	flush := func(to int) {
		if from < 0 {
			return
		}
		piece := header.TrimOWS(value[from:to])
		from = -1
		switch {
		case piece == "":
		case kept == "" && joined == nil:
			kept = piece
		case joined == nil:
			joined = append(append(append(ex.Text.Buffer(), kept...), "; "...), piece...)
		default:
			joined = append(append(joined, "; "...), piece...)
		}
	}
	for at := 0; at <= len(value); {
		end := len(value)
		if i := strings.IndexByte(value[at:], ';'); i >= 0 {
			end = at + i
		}
		if name, text := splitCookie(value[at:end]); Reserved(name) {
			flush(at - 1) // without the semicolon
			c.note(name, text)
		} else if from < 0 {
			from = at
		}
		at = end + 1
	}
	flush(len(value))
	if joined == nil {
		return kept
	}
	return ex.Text.End(joined)
}

// splitCookie returns the name and the value of one cookie.
func splitCookie(part string) (name, value string) {
	i := strings.IndexByte(part, '=')
	if i < 0 {
		return header.TrimOWS(part), ""
	}
	return header.TrimOWS(part[:i]), header.TrimOWS(part[i+1:])
}

// note keeps the value of one of headgate's cookies.
func (c *Cookies) note(name, value string) {
	var at *string
	var bit uint8
	switch name {
	case CookieGate:
		at, bit = &c.Gate, 1
	case CookieNonce:
		at, bit = &c.Nonce, 2
	case CookieSignIn:
		at, bit = &c.SignIn, 4
	case CookieKnown:
		at, bit = &c.Known, 8
	default:
		if strings.HasPrefix(name, CookieLink) && len(c.Links) < maxPending {
			c.Links = append(c.Links, Cookie{name, value})
		}
		if strings.HasPrefix(name, CookiePending) && len(c.Pending) < maxPending {
			c.Pending = append(c.Pending, Cookie{name, value})
		}
		return
	}
	if c.seen&bit != 0 {
		c.Repeated = true // also if one of them is empty
	}
	c.seen |= bit
	*at = value
}

// DropSetCookies removes cookies with headgate's names from the response of a server.
func DropSetCookies(list *header.List) {
	list.DeleteFunc(func(f *header.Field) bool {
		if f.ID != header.SetCookie {
			return false
		}
		pair, _, _ := strings.Cut(f.Value, ";")
		name, _, _ := strings.Cut(pair, "=")
		return Reserved(header.TrimOWS(name))
	})
}
