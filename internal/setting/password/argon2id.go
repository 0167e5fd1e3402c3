package password

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

// argon2id holds the parameters of an argon2id hash and what it is of.
type argon2id struct {
	memory  uint32 // KiB
	time    uint32
	threads uint8
	salt    []byte
	sum     []byte
}

// The bounds of an argon2id hash. Memory times passes bounds the time of a check:
// at a GiB it is about a second.
const (
	maxMemory  = 256 << 10 // KiB
	maxWork    = 1 << 20   // KiB times passes
	maxThreads = 16
	minSalt    = 8
	maxSalt    = 64
	minSum     = 16
	maxSum     = 64
)

// The parameters of new hashes: the first choice of OWASP's password storage
// cheat sheet. One lane, so that a check never uses more than one processor.
const (
	newMemory  = 19 << 10
	newTime    = 2
	newThreads = 1
	newSalt    = 16
	newSum     = 32
)

// coding is the Base64 of PHC strings: the usual alphabet without padding, and
// no bits set that say nothing.
var coding = base64.RawStdEncoding.Strict()

// parseArgon2id reads a PHC string:
// $argon2id$v=19$m=<KiB>,t=<passes>,p=<lanes>$<salt>$<hash>.
func parseArgon2id(text string) (argon2id, error) {
	const form = "; the form is $argon2id$v=19$m=19456,t=2,p=1$salt$hash"
	parts := strings.Split(text, "$")
	if len(parts) == 4 && !strings.Contains(text, ",") {
		return argon2id{}, errors.New("the argon2id hash ends at its first comma; write it in quotes")
	}
	if len(parts) != 6 {
		return argon2id{}, errors.New("the argon2id hash is not whole" + form)
	}
	if parts[2] != "v=19" {
		return argon2id{}, errors.New("the argon2id hash is not of version 19 (0x13); make a new one with headgate hash-password")
	}
	var a argon2id
	if err := a.parameters(parts[3]); err != nil {
		return argon2id{}, fmt.Errorf("argon2id: %w", err)
	}
	var err error
	if a.salt, err = coding.DecodeString(parts[4]); err != nil || len(a.salt) < minSalt || len(a.salt) > maxSalt {
		return argon2id{}, fmt.Errorf("the salt of the argon2id hash is not %d to %d bytes in Base64 without padding", minSalt, maxSalt)
	}
	if a.sum, err = coding.DecodeString(parts[5]); err != nil || len(a.sum) < minSum || len(a.sum) > maxSum {
		return argon2id{}, fmt.Errorf("the last part of the argon2id hash is not %d to %d bytes in Base64 without padding", minSum, maxSum)
	}
	return a, nil
}

// parameters reads "m=…,t=…,p=…", in this order and nothing else.
func (a *argon2id) parameters(text string) error {
	values := [3]uint64{}
	pairs := strings.Split(text, ",")
	if len(pairs) != len(values) {
		return fmt.Errorf("want m, t and p, have %q", text)
	}
	for i, name := range [...]string{"m=", "t=", "p="} {
		digits, ok := strings.CutPrefix(pairs[i], name)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || digits[0] == '0' || digits[0] == '+' {
			return fmt.Errorf("want %s and a number, have %q", name, pairs[i])
		}
		values[i] = n
	}
	m, t, p := values[0], values[1], values[2]
	switch {
	case p > maxThreads:
		return fmt.Errorf("p=%d is more than %d lanes", p, maxThreads)
	case m < 8*p:
		return fmt.Errorf("m=%d is less than 8 KiB for each of %d lanes", m, p)
	case m > maxMemory:
		return fmt.Errorf("m=%d is more than %d MiB", m, maxMemory>>10)
	case m*t > maxWork:
		return fmt.Errorf("m=%d and t=%d take too long to check; m times t is at most %d", m, t, maxWork)
	}
	a.memory, a.time, a.threads = uint32(m), uint32(t), uint8(p)
	return nil
}

func (a *argon2id) matches(password string) bool {
	sum := argon2.IDKey([]byte(password), a.salt, a.time, a.memory, a.threads, uint32(len(a.sum)))
	return subtle.ConstantTimeCompare(sum, a.sum) == 1
}

// Argon2id returns an argon2id hash of a password that Check has nothing to say
// against.
func Argon2id(password string) (string, error) {
	password = Prepare(password)
	if err := Check(password); err != nil {
		return "", err
	}
	salt := make([]byte, newSalt)
	rand.Read(salt) // never fails: crypto/rand ends the process instead
	sum := argon2.IDKey([]byte(password), salt, newTime, newMemory, newThreads, newSum)
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", newMemory, newTime, newThreads,
		coding.EncodeToString(salt), coding.EncodeToString(sum)), nil
}

// equal compares two texts in a time that depends on their lengths only.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
