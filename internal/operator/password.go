package operator

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"headgate/internal/setting/password"
)

// common are the commonest passwords of at least minPassword characters, in lower
// case, a line each.
//
//go:embed common.txt
var common string

const minPassword = 10

// stems are words that make no password by digits and signs around them.
var stems = map[string]bool{
	"password": true, "passwort": true, "passw0rd": true, "p@ssword": true, "p@ssw0rd": true, "motdepasse": true, "contraseña": true,
	"qwerty": true, "qwertz": true, "azerty": true, "qwertyuiop": true, "asdfghjkl": true, "welcome": true, "willkommen": true,
	"letmein": true, "changeme": true, "iloveyou": true, "admin": true, "administrator": true, "headgate": true, "default": true,
	"secret": true, "login": true, "master": true, "superuser": true, "football": true, "baseball": true, "sunshine": true,
	"princess": true, "dragon": true, "monkey": true, "test": true, "testing": true, "hello": true, "spring": true, "summer": true,
	"autumn": true, "winter": true, "january": true, "december": true, "abc": true, "abcdef": true, "server": true, "proxy": true,
}

// checkPassword returns what is wrong with a new password of a user.
func checkPassword(user, text string) error {
	bad := func(what string) error {
		return &Error{Code: CodeInvalid, Field: "password", Detail: what, Remedy: "choose at least 10 characters that nobody can guess; several words do well"}
	}
	if err := password.Check(text); err != nil {
		return bad(err.Error())
	}
	lower := strings.ToLower(password.Prepare(text))
	core := strings.TrimFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) })
	distinct := map[rune]bool{}
	for _, r := range lower {
		distinct[r] = true
	}
	switch {
	case utf8.RuneCountInString(lower) < minPassword:
		return bad("the password is shorter than 10 characters")
	case len(distinct) < 5:
		return bad("the password has fewer than 5 different characters")
	case isCommon(lower), core == "", stems[core]:
		return bad("the password is one of the commonest")
	case user != "" && (core == user || strings.Contains(lower, user) && len(user)*2 > len(lower)):
		return bad("the password is made of the user's name")
	}
	return nil
}

func isCommon(lower string) bool {
	return strings.Contains("\n"+common, "\n"+lower+"\n")
}

// hashPassword returns what is kept of a new password.
func hashPassword(user, text string) (string, error) {
	if err := checkPassword(user, text); err != nil {
		return "", err
	}
	return password.Argon2id(text)
}

// nobody is a hash of the kind that users have, of a password that nobody knows: it
// is checked for users that do not exist, so that they take as long.
var nobody = sync.OnceValue(func() *password.Hash {
	text, err := password.Argon2id(secret())
	if err != nil {
		panic("operator: " + err.Error())
	}
	h, err := password.Parse(text)
	if err != nil {
		panic("operator: " + err.Error())
	}
	return h
})
