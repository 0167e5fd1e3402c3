// Package basicauth lets in who knows the password of a user (RFC 7617). This file
// is the filter; guard.go decides about a pair of name and password, with what
// outlives a plan: verified.go remembers pairs that were right, verifier.go lets a
// bounded number of passwords be hashed at a time, in fair turns.
//
// It fails closed: a request passes only when a hash said so. It does not hold
// sessions and has no sign-out: browsers send the pair with every request.
package basicauth

import (
	"encoding/base64"
	"errors"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/password"
)

// Compile returns the filter. The users are those of env.Scope. Settings that were checked give no error.
func Compile(c *Config, env exchange.Env) (exchange.Filter, error) {
	r := &room{keep: c.ForwardCredentials, users: make(map[string]*user, len(c.Users))}
	for i := range c.Users {
		hash, err := password.Parse(c.Users[i].PasswordHash)
		if err != nil {
			return exchange.Filter{}, err
		}
		u := &user{name: password.Prepare(c.Users[i].Name), hash: hash}
		r.users[u.name] = u
		r.all = append(r.all, u)
	}
	if len(r.all) == 0 {
		return exchange.Filter{}, errors.New("basic_auth has no users")
	}
	r.guard = exchange.Keep(env, "basic_auth", nil, newGuard)
	r.scope = r.guard.scope(env.Scope)
	ask := []header.Field{{ID: header.WWWAuthenticate, Name: header.WWWAuthenticate.String(), Value: challenge(c.Realm)}}
	refuse := func(cause string) *exchange.Answer {
		return &exchange.Answer{Reason: exchange.AuthRequired, Fields: ask, Cause: cause}
	}
	r.missing = refuse("basic_auth: no user name and password came with the request")
	r.garbled = refuse("basic_auth: the Authorization field is not one of Basic")
	r.unknown = refuse("basic_auth: there is no such user")
	r.wrong = ask
	return exchange.Filter{Name: "basic_auth", Request: r.request}, nil
}

// room is a compiled basic_auth. It is immutable but for its guard.
type room struct {
	users map[string]*user // by name
	all   []*user
	keep  bool // the credentials, for the server
	guard *guard
	scope [scopeSize]byte

	missing, garbled, unknown *exchange.Answer
	wrong                     []header.Field
}

// user is a user that can sign in.
type user struct {
	name string
	hash *password.Hash
}

var repeated = exchange.Fail(exchange.BadRequest, "basic_auth: the request has more than one Authorization header")

// request lets a client in, or tells what is missing.
func (r *room) request(ex *exchange.Exchange) *exchange.Answer {
	list := &ex.Request.Header
	switch list.Count(header.Authorization) {
	case 0:
		return r.missing
	case 1:
	default:
		return repeated
	}
	coded, ok := basic(list.Get(header.Authorization))
	if !ok {
		return r.garbled
	}
	if ex.Rehearsal {
		return r.rehearse(ex, coded)
	}
	u, answer := r.guard.check(ex, r, coded)
	if answer != nil {
		return answer
	}
	r.admit(ex, u)
	return nil
}

// admit notes who came in, and takes the credentials out of the request.
func (r *room) admit(ex *exchange.Exchange, u *user) {
	ex.User, ex.Personal = u.name, true
	if !r.keep {
		ex.Request.Header.Del(header.Authorization)
	}
}

// rehearse tells what would be done. It checks no password: who may ask could
// guess them.
func (r *room) rehearse(ex *exchange.Exchange, coded string) *exchange.Answer {
	name, _, ok := pair(coded)
	if !ok {
		return r.garbled
	}
	u := r.users[name]
	if u == nil {
		return r.unknown
	}
	ex.Note("basic_auth would check the password of " + u.name + "; assumed to be correct")
	r.admit(ex, u)
	return nil
}

// mismatch returns the answer to a wrong password.
func (r *room) mismatch(name string) *exchange.Answer {
	if r.users[name] == nil {
		return r.unknown
	}
	return &exchange.Answer{Reason: exchange.AuthRequired, Fields: r.wrong, Cause: "basic_auth: wrong password of " + name}
}

// longestCoded is the longest credentials that are looked at, in Base64.
const longestCoded = 2048

// basic returns the credentials of an Authorization field of the scheme Basic.
func basic(value string) (string, bool) {
	const scheme = "Basic "
	if len(value) <= len(scheme) || len(value) > longestCoded || !header.EqualFold(value[:len(scheme)], scheme) {
		return "", false
	}
	coded := strings.TrimLeft(value[len(scheme):], " ")
	return coded, coded != ""
}

// pair takes user name and password out of credentials: at the first colon, as
// only passwords may hold one (RFC 7617, section 2).
func pair(coded string) (name, secret string, ok bool) {
	b, err := base64.StdEncoding.Strict().DecodeString(coded)
	if err != nil {
		return "", "", false
	}
	name, secret, ok = strings.Cut(string(b), ":")
	return password.Prepare(name), password.Prepare(secret), ok && len(secret) <= password.Longest
}

// challenge returns the value of WWW-Authenticate.
func challenge(realm string) string {
	quote := strings.NewReplacer(`"`, `\"`, `\`, `\\`)
	return `Basic realm="` + quote.Replace(realm) + `", charset="UTF-8"`
}
