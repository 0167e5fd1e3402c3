package credential

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strings"
	"testing"
	"time"
)

func TestPasswords(t *testing.T) {
	for text, ok := range map[string]bool{
		"correct horse 9": true, "Tr0ub4dor&3-x": true, "пароль-длинный-42": true,
		"short": false, "ninechars": false, "qwertyuiop": false, "QwertyUiop": false, "1234567890": false,
		"Password2024!": false, "!!welcome!!99": false, "aaaaaaaaaaaa": false, "abababababab": false, "112233112233": false,
		"margaret-77": false, "xmargaret99": false, "with\x00control": false, "19991231-2359": false,
	} {
		if err := CheckPassword("margaret", text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The vectors of RFC 6238, appendix B, with the keys of its reference implementation.
func TestTOTPVectors(t *testing.T) {
	seed := strings.Repeat("1234567890", 7)
	for _, v := range []struct {
		at                 int64
		one, two56, five12 string
	}{
		{59, "94287082", "46119246", "90693936"},
		{1111111109, "07081804", "68084774", "25091201"},
		{1111111111, "14050471", "67062674", "99943326"},
		{1234567890, "89005924", "91819424", "93441116"},
		{2000000000, "69279037", "90698825", "38618901"},
		{20000000000, "65353130", "77737706", "47863826"},
	} {
		for _, c := range []struct {
			new  func() hash.Hash
			key  int
			want string
		}{{sha1.New, 20, v.one}, {sha256.New, 32, v.two56}, {sha512.New, 64, v.five12}} {
			if got := totp(c.new, []byte(seed[:c.key]), uint64(v.at/30), 8); got != c.want {
				t.Errorf("at %d: got %s, want %s", v.at, got, c.want)
			}
		}
	}
}

func TestTOTPCodeServesOnceAndForAWhile(t *testing.T) {
	secret := NewTOTP()
	key, _ := base32Text.DecodeString(secret)
	at := time.Unix(1_800_000_000, 0)
	step := uint64(at.Unix() / 30)
	for shift, ok := range map[int64]bool{-2: false, -1: true, 0: true, 1: true, 2: false} {
		s := uint64(int64(step) + shift)
		if got := CheckTOTP(secret, totp(sha1.New, key, s, 6), 0, at); (got == s) != ok {
			t.Errorf("shift %d: got step %d", shift, got)
		}
	}
	if CheckTOTP(secret, totp(sha1.New, key, step, 6), step, at) != 0 {
		t.Error("a code was taken twice")
	}
}
