package credential

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The parameters of TOTP (RFC 6238) that every authenticator knows.
const (
	totpStep   = 30 * time.Second
	totpDigits = 6
	totpSecret = 20 // bytes
	// totpSkew is how many steps a clock may be off, in either direction.
	totpSkew = 1
)

// RecoveryCodes is how many codes there are for a lost authenticator, each of 80 bits.
const RecoveryCodes = 10

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

// totp returns the code of a step (RFC 4226, section 5.3).
func totp(new func() hash.Hash, key []byte, step uint64, digits int) string {
	mac := hmac.New(new, key)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], step)
	mac.Write(b[:])
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	code := uint64(binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff)
	mod := uint64(1)
	for range digits {
		mod *= 10
	}
	return fmt.Sprintf("%0*d", digits, code%mod)
}

// CheckTOTP returns the step whose code was given, 0 if it is none that is valid now
// and later than the one used last: a code is accepted once (RFC 6238, section 5.2).
func CheckTOTP(secret, code string, last uint64, at time.Time) uint64 {
	key, err := base32Text.DecodeString(secret)
	if err != nil || len(code) != totpDigits {
		return 0
	}
	current := uint64(at.Unix()) / uint64(totpStep/time.Second)
	found := uint64(0)
	for step := current - totpSkew; step <= current+totpSkew; step++ {
		if subtle.ConstantTimeCompare([]byte(totp(sha1.New, key, step, totpDigits)), []byte(code)) == 1 && step > last {
			found = step
		}
	}
	return found
}

// NewTOTP returns the secret of a new authenticator.
func NewTOTP() string {
	b := make([]byte, totpSecret)
	rand.Read(b)
	return base32Text.EncodeToString(b)
}

// TOTPURI returns what an authenticator reads from a QR code: the secret, whose it is, and
// the name of the site that issues it.
func TOTPURI(issuer, name, secret string) string {
	q := url.Values{"secret": {secret}, "issuer": {issuer}}
	return "otpauth://totp/" + url.PathEscape(issuer+":"+name) + "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

// NewRecovery returns recovery codes, and what is kept of them.
func NewRecovery() (codes, kept []string) {
	for range RecoveryCodes {
		b := make([]byte, 10)
		rand.Read(b)
		text := strings.ToLower(base32Text.EncodeToString(b))
		code := text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
		codes = append(codes, code)
		kept = append(kept, digest(text))
	}
	return codes, kept
}

// UseRecovery returns what is kept of the codes that are left after one was used, and
// whether it was one.
func UseRecovery(kept []string, code string) ([]string, bool) {
	want := digest(strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(code)))
	at := -1
	for i, k := range kept {
		if subtle.ConstantTimeCompare([]byte(k), []byte(want)) == 1 {
			at = i
		}
	}
	if at < 0 {
		return kept, false
	}
	return slices.Delete(slices.Clone(kept), at, at+1), true
}

// digest returns what is kept of a code of many random bits.
func digest(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
