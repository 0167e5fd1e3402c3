package gate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// Return is where a browser wants to go when it is signed in.
type Return struct {
	// URL is the whole address; "" leads to the sign-in page itself.
	URL string `json:"u,omitempty"`
	// Nonce is the digest of the browser's nonce cookie at the application's host.
	Nonce string `json:"n,omitempty"`
}

// codeAge is how long a code can be redeemed.
const codeAge = 30 * time.Second

// maxReturn is how long an address to return to may be.
const maxReturn = 2048

// keptCode is a code as the store has it.
type keptCode struct {
	Session string    `json:"session"`
	Origin  string    `json:"origin"`
	Nonce   string    `json:"nonce"`
	Path    string    `json:"path"`
	Until   time.Time `json:"until"`
}

// nonceOf returns the digest of a nonce cookie, as it is in addresses.
func nonceOf(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Find returns the application that an address leads to, with the address in its one form.
// The address is not compared as a text: it is looked up as a request for it would be.
func (e *Engine) Find(r Return) (Site, bool) {
	u := e.use.Load()
	if u.sites == nil || r.URL == "" || len(r.URL) > maxReturn {
		return Site{}, false
	}
	for i := range len(r.URL) {
		if c := r.URL[i]; c <= ' ' || c > '~' || c == '\\' || c == '#' || c == '"' || c == '<' || c == '>' {
			return Site{}, false // browsers read some of them in ways of their own
		}
	}
	rest, ok := strings.CutPrefix(r.URL, "https://")
	if !ok {
		return Site{}, false
	}
	authority, target := rest, "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, target = rest[:i], rest[i:]
	}
	if strings.ContainsAny(authority, "@%") || target[0] != '/' {
		return Site{}, false
	}
	host, port := authority, 443
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		n, err := strconv.ParseUint(authority[i+1:], 10, 16)
		if err != nil || n == 0 {
			return Site{}, false
		}
		host, port = authority[:i], int(n)
	}
	path, query, hasQuery := strings.Cut(target, "?")
	site, ok := u.sites.Site(host, port, path)
	if !ok {
		return Site{}, false
	}
	if hasQuery {
		site.Path += "?" + query
	}
	return site, true
}

// Code makes a code that leads a session to an application, and returns the address with it.
func (e *Engine) Code(s *Session, site Site, nonce string) (string, error) {
	if nonce == "" {
		return site.Origin + site.Path, nil // the application's host makes one, and sends it back
	}
	secret := credential.NewSecret()
	value, err := json.Marshal(keptCode{Session: s.key.String(), Origin: site.Origin, Nonce: nonce, Path: site.Path, Until: e.time().Add(codeAge)})
	if err != nil {
		return "", err
	}
	key := store.PrefixGateCode + digestOf(secret).String()
	if _, err := e.commit(store.Change{Put: []store.Entry{{Key: key, Value: value, TTL: codeAge}}, Who: "headgate", Why: "sign-in code"}); err != nil {
		return "", err
	}
	return site.Origin + EnterPath + "?code=" + url.QueryEscape(secret), nil
}

// The paths on every host with a gate that are headgate's own.
const (
	// Reserve is what all of them start with.
	Reserve = "/.headgate"
	// EnterPath is where codes are redeemed.
	EnterPath = Reserve + "/enter"
	// SignOutPath is where people sign out.
	SignOutPath = Reserve + "/sign-out"
)

// HostCookie returns the value of Set-Cookie for the secret of an application's host. Framed is
// whether browsers send it from frames of other sites, too.
//
// Such a cookie is not Partitioned: people sign in in a window of their own, and a partitioned
// cookie that is set there would not be sent from a frame, which has another partition.
func (e *Engine) HostCookie(secret string, framed bool) string {
	age := e.use.Load().age
	if framed {
		return setCookie(CookieGate, secret, age) + "None"
	}
	return SetCookie(CookieGate, secret, age)
}

// SignInCookie returns the value of Set-Cookie for the secret of a session at the sign-in
// host.
func (e *Engine) SignInCookie(secret string) string {
	return SetCookie(CookieSignIn, secret, e.use.Load().age)
}

// Redeem uses up a code at an application's host. It returns the secret for the host's
// cookie, and the address to return to. Origin and nonce are those of the request.
func (e *Engine) Redeem(code, origin, host, nonce string) (secret, to string, err error) {
	if !IsSecret(code) || !IsSecret(nonce) {
		return "", "", ErrExpired
	}
	key := store.PrefixGateCode + digestOf(code).String()
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	entry, err := e.o.Store.Get(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", "", ErrExpired
	case err != nil:
		e.o.Log.Warn("a sign-in code cannot be read", "error", err)
		return "", "", ErrUnavailable
	}
	// Each attempt uses up the code, right or wrong: a stolen one is worth one attempt.
	if _, err := e.commit(store.Change{If: []store.Condition{{Key: key, Revision: entry.Revision}}, Delete: []string{key}, Who: "headgate", Why: "sign-in code used"}); err != nil {
		return "", "", err
	}
	var k keptCode
	if json.Unmarshal(entry.Value, &k) != nil || !e.time().Before(k.Until) || k.Origin != origin || !credential.SameSecret(k.Nonce, nonceOf(nonce)) {
		return "", "", ErrExpired
	}
	d, ok := parseDigest(k.Session)
	if !ok {
		return "", "", ErrExpired
	}
	s := e.sessions.signIn(d)
	if s == nil || s.ended.Load() || s.foreign.Load() {
		return "", "", ErrExpired
	}
	if secret, err = e.enter(s, host); err != nil {
		return "", "", err
	}
	// The whole address: browsers take a path that starts with // for another host.
	return secret, k.Origin + k.Path, nil
}

// NonceFor returns the nonce of a browser at an application's host as addresses have it, and
// the cookie that it is to get, "" if it has one.
func NonceFor(c *Cookies) (nonce, setCookie string) {
	value := c.Nonce
	if !IsSecret(value) || c.Repeated {
		value = credential.NewSecret()
		setCookie = SetCookie(CookieNonce, value, PendingAge)
	}
	return nonceOf(value), setCookie
}

// SignInURL returns the address of the sign-in page for a request that came to a port with
// an authority, "" if there is none. Query is appended as it is.
func (e *Engine) SignInURL(port, authority, query string) string {
	origin := e.SignInOrigin(port, authority)
	if origin == "" {
		return ""
	}
	return origin + "/" + query
}

// SignInOrigin returns the origin of the sign-in page as clients reach it that came to a
// port with an authority. For no port it is the one for links that are sent to people: with
// the number of an https port of the page, unless that is 443.
func (e *Engine) SignInOrigin(port, authority string) string {
	u := e.use.Load()
	if u.host == "" {
		return ""
	}
	number, ok := u.ports[port]
	if ok && port != "" {
		// The port has the page, too: clients reach it as they reached the application.
		if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
			if n, err := strconv.ParseUint(authority[i+1:], 10, 16); err == nil {
				number = int(n)
			}
		} else {
			number = 443
		}
	} else {
		number = u.ports[""]
	}
	if number == 443 || number == 0 {
		return "https://" + u.host
	}
	return "https://" + u.host + ":" + strconv.Itoa(number)
}
