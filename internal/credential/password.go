// Package credential makes and checks what people and operators sign in with: passwords,
// one-time codes of an authenticator (TOTP, RFC 6238) and recovery codes. It keeps nothing:
// who has which credentials is known by the packages operator and gate/people.
package credential

import (
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"headgate/internal/setting/password"
)

// common are the commonest passwords of at least MinPassword characters, in lower
// case, a line each.
//
//go:embed common.txt
var common string

// MinPassword is how many characters a password must have.
const MinPassword = 10

// stems are words that make no password by digits and signs around them.
var stems = map[string]bool{
	"password": true, "passwort": true, "passw0rd": true, "p@ssword": true, "p@ssw0rd": true, "motdepasse": true, "contraseña": true,
	"qwerty": true, "qwertz": true, "azerty": true, "qwertyuiop": true, "asdfghjkl": true, "welcome": true, "willkommen": true,
	"letmein": true, "changeme": true, "iloveyou": true, "admin": true, "administrator": true, "headgate": true, "default": true,
	"secret": true, "login": true, "master": true, "superuser": true, "football": true, "baseball": true, "sunshine": true,
	"princess": true, "dragon": true, "monkey": true, "test": true, "testing": true, "hello": true, "spring": true, "summer": true,
	"autumn": true, "winter": true, "january": true, "december": true, "abc": true, "abcdef": true, "server": true, "proxy": true,
}

// CheckPassword returns what is wrong with a new password of the user or person with a name.
func CheckPassword(name, text string) error {
	if err := password.Check(text); err != nil {
		return err
	}
	lower := strings.ToLower(password.Prepare(text))
	core := strings.TrimFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) })
	distinct := map[rune]bool{}
	for _, r := range lower {
		distinct[r] = true
	}
	switch {
	case utf8.RuneCountInString(lower) < MinPassword:
		return errors.New("the password is shorter than 10 characters")
	case len(distinct) < 5:
		return errors.New("the password has fewer than 5 different characters")
	case isCommon(lower), core == "", stems[core]:
		return errors.New("the password is one of the commonest")
	case name != "" && (core == name || strings.Contains(lower, name) && len(name)*2 > len(lower)):
		return errors.New("the password is made of the user's name")
	}
	return nil
}

func isCommon(lower string) bool {
	return strings.Contains("\n"+common, "\n"+lower+"\n")
}

// HashPassword returns what is kept of a new password. It needs 19 MiB and a processor for a
// while: callers bound how many run at once.
func HashPassword(name, text string) (string, error) {
	if err := CheckPassword(name, text); err != nil {
		return "", err
	}
	return password.Argon2id(text)
}

// Matches reports whether a text is the password of a hash that HashPassword returned. With
// an empty hash, or one that cannot be read, it is false after the same time: names that do
// not exist cannot be found out by how long the answer takes.
func Matches(hash, text string) bool {
	h, exists := decoy(), false
	if hash != "" {
		if own, err := password.Parse(hash); err == nil {
			h, exists = own, true
		}
	}
	return h.Matches(password.Prepare(text)) && exists
}

// decoy is a hash of the same kind, of a password that is not known to anyone.
var decoy = sync.OnceValue(func() *password.Hash {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	text, err := password.Argon2id(base64.RawURLEncoding.EncodeToString(b[:]))
	if err != nil {
		panic("credential: " + err.Error())
	}
	h, err := password.Parse(text)
	if err != nil {
		panic("credential: " + err.Error())
	}
	return h
})
