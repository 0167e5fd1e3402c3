// Package password parses password hashes, checks passwords against them, and
// makes new ones: argon2id (RFC 9106) in the PHC string format, bcrypt, and for
// files that htpasswd made its apr1.
//
// Every hash has a limit on the memory and the time of a check, so that no
// configuration can stop the process. The caller limits how many checks run at
// once. Nothing here stores a password.
package password

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/text/unicode/norm"
)

// Longest is the longest password, in bytes, that is checked or hashed.
const Longest = 1024

// LongestBcrypt is how many bytes of a password bcrypt looks at.
const LongestBcrypt = 72

// Hash is a password hash that was parsed. It is immutable.
type Hash struct {
	text  string
	argon argon2id
	salt  string // of apr1
	kind  kind
}

type kind uint8

const (
	isArgon2id kind = iota + 1
	isBcrypt
	isAPR1
)

// The limits of bcrypt's cost. Each step doubles the time; 15 takes two to three
// seconds.
const minCost, maxCost = 4, 15

// Parse parses a hash. The error says what is wrong and what to do.
func Parse(text string) (*Hash, error) {
	switch {
	case strings.HasPrefix(text, "$argon2id$"):
		a, err := parseArgon2id(text)
		if err != nil {
			return nil, err
		}
		return &Hash{text: text, kind: isArgon2id, argon: a}, nil
	case len(text) > 4 && text[:2] == "$2" && text[3] == '$':
		return parseBcrypt(text)
	case strings.HasPrefix(text, magic):
		salt, digest, ok := strings.Cut(text[len(magic):], "$")
		if !ok || len(salt) > 8 || len(digest) != 22 || !inAlphabet(salt) || !inAlphabet(digest) {
			return nil, errors.New("the apr1 hash is not whole; copy it from the file once more")
		}
		return &Hash{text: text, kind: isAPR1, salt: salt}, nil
	}
	return nil, unknown(text)
}

// unknown returns what to say of a text that is none of the known hashes. It
// does not repeat the text: it may be a password.
func unknown(text string) error {
	const remedy = "make one with headgate hash-password"
	for prefix, name := range map[string]string{
		"$argon2i$": "argon2i", "$argon2d$": "argon2d", "$1$": "MD5 crypt", "$5$": "SHA-256 crypt", "$6$": "SHA-512 crypt",
		"$y$": "yescrypt", "$scrypt$": "scrypt", "{SHA}": "unsalted SHA-1", "{SSHA}": "salted SHA-1", "{PLAIN}": "a plain password",
	} {
		if strings.HasPrefix(text, prefix) {
			return fmt.Errorf("%s is not among the hashes that are checked (argon2id, bcrypt, apr1); %s", name, remedy)
		}
	}
	return errors.New("not a password hash; " + remedy)
}

func parseBcrypt(text string) (*Hash, error) {
	switch text[2] {
	case 'a', 'b', 'y':
	default:
		return nil, fmt.Errorf("bcrypt version 2%c is not known; make a new hash with headgate hash-password", text[2])
	}
	if len(text) != 60 || text[6] != '$' || strings.Trim(text[7:], bcryptAlphabet) != "" {
		return nil, errors.New("the bcrypt hash is not whole; it has 60 characters")
	}
	cost, err := strconv.Atoi(text[4:6])
	if err != nil || cost < minCost || cost > maxCost {
		return nil, fmt.Errorf("the cost of the bcrypt hash is not between %d and %d", minCost, maxCost)
	}
	return &Hash{text: text, kind: isBcrypt}, nil
}

const bcryptAlphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Text returns the hash as it was written.
func (h *Hash) Text() string { return h.text }

// Weakness says why the hash should be replaced, or "" when it is as good as they
// come.
func (h *Hash) Weakness() string {
	if h.kind == isAPR1 {
		return "apr1 is a thousand rounds of MD5, which is guessed quickly by who gets hold of the file; make a new hash with headgate hash-password"
	}
	return ""
}

// Matches reports whether the hash is that of the password, in the form of
// Prepare. Its duration depends on the hash and not on the result.
func (h *Hash) Matches(password string) bool {
	switch h.kind {
	case isArgon2id:
		return h.argon.matches(password)
	case isBcrypt:
		return bcrypt.CompareHashAndPassword([]byte(h.text), []byte(password)) == nil
	case isAPR1:
		return equal(apr1(password, h.salt), h.text)
	}
	return false
}

// Prepare returns a user name or a password in the form that is compared: the
// composed form of Unicode (NFC), as required by RFC 7617, section 2.1. A text
// that is not UTF-8 stays as it is.
func Prepare(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			if utf8.ValidString(text) {
				return norm.NFC.String(text)
			}
			return text
		}
	}
	return text
}

// Check says what is wrong with a password that is to be hashed, or nil.
func Check(password string) error {
	switch {
	case password == "":
		return errors.New("the password is empty")
	case len(password) > Longest:
		return fmt.Errorf("the password is longer than %d bytes", Longest)
	case !utf8.ValidString(password):
		return errors.New("the password is not UTF-8")
	case strings.IndexFunc(password, unicode.IsControl) >= 0:
		return errors.New("the password contains a control character, which no browser can send")
	}
	return nil
}

// newCost is the cost of new bcrypt hashes: a quarter of a second.
const newCost = 12

// Bcrypt returns a bcrypt hash of a password. It returns an error for one that is
// longer than bcrypt supports, or that Check rejects.
func Bcrypt(password string) (string, error) {
	password = Prepare(password)
	if err := Check(password); err != nil {
		return "", err
	}
	if len(password) > LongestBcrypt {
		return "", fmt.Errorf("bcrypt looks at %d bytes of a password and this one is longer; use argon2id", LongestBcrypt)
	}
	b, err := bcrypt.GenerateFromPassword([]byte(password), newCost)
	return string(b), err
}
