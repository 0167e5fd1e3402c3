package operator

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
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

// recoveryCodes is how many codes a user has for a lost device, each of 80 bits.
const recoveryCodes = 10

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

// checkTOTP returns the step whose code was given, 0 if it is none that is valid now
// and later than the one used last: a code serves once (RFC 6238, section 5.2).
func checkTOTP(secret, code string, last uint64, at time.Time) uint64 {
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

// newTOTP returns a secret.
func newTOTP() string {
	b := make([]byte, totpSecret)
	rand.Read(b)
	return base32Text.EncodeToString(b)
}

// totpURI returns what an authenticator reads from a picture.
func totpURI(user, secret string) string {
	q := url.Values{"secret": {secret}, "issuer": {"headgate"}}
	return "otpauth://totp/" + url.PathEscape("headgate:"+user) + "?" + q.Encode()
}

// newRecovery returns codes, and what is kept of them.
func newRecovery() (codes, kept []string) {
	for range recoveryCodes {
		b := make([]byte, 10)
		rand.Read(b)
		text := strings.ToLower(base32Text.EncodeToString(b))
		code := text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
		codes = append(codes, code)
		kept = append(kept, digest(text))
	}
	return codes, kept
}

// useRecovery returns the codes that are left when one was used, and whether it was
// one.
func useRecovery(kept []string, code string) ([]string, bool) {
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
