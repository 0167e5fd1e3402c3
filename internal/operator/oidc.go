package operator

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"headgate/internal/credential"
	"headgate/internal/event"
	"headgate/internal/server/safedial"
	"headgate/internal/setting/shown"
	"headgate/internal/store"
)

// The bounds of signing in through a provider.
const (
	oidcTimeout = 15 * time.Second
	oidcPending = 10 * time.Minute
	maxPending  = 1000
	// maxPendingOfOne is how many of them come from one address, IPv6 by /64.
	maxPendingOfOne = 20
	maxClaimName    = 64
	maxProvider     = 1 << 20 // bytes of an answer of the provider
	maxTrouble      = 1 << 10 // bytes of what is logged of one
)

// methodOIDC is how people with a session through a provider have signed in.
const methodOIDC = "oidc"

// OIDC is a sign-in provider that speaks OpenID Connect.
type OIDC struct {
	// Issuer is the provider's URL, at which its configuration is found.
	Issuer string
	// ClientID and ClientSecret are what the provider knows this headgate by.
	ClientID, ClientSecret string
	// RedirectURL is the console's page that the provider sends people back to.
	RedirectURL string
	// Scopes are requested in addition to openid; none is profile and email.
	Scopes []string
	// NameClaim is the claim that people are called by; "" is preferred_username,
	// email or sub, the first that is there.
	NameClaim string
	// Roles say who gets which role. Of several that match the highest counts; who
	// matches none is refused.
	Roles []OIDCRole
	// Roots are the authorities to trust, nil for those of the system.
	Roots *x509.CertPool
}

// OIDCRole assigns a role to all people with a claim.
type OIDCRole struct {
	// Claim is the name of the claim; a dot leads into an object ("realm.roles").
	Claim string
	// Value is what the claim is, or has in its list; "" is any value but false.
	Value string
	// Role is the role that these users get.
	Role Role
}

// grants returns a text that is another one when the people or the roles that they get may
// be others.
func (c *OIDC) grants() string {
	if c == nil {
		return ""
	}
	return credential.Digest(fmt.Sprintf("%q %q %q %q", c.Issuer, c.ClientID, c.NameClaim, c.Roles))
}

// provider is the sign-in provider of the moment.
type provider struct {
	mu struct {
		sync.Mutex
		known   bool // SetOIDC was called
		config  *OIDC
		client  *http.Client
		found   *oidc.Provider // nil until the first sign-in
		pending map[string]pending
	}
}

// pending is a sign-in in progress at the provider.
type pending struct {
	nonce, verifier, browser string
	from                     netip.Prefix
	until                    time.Time
}

// SetOIDC sets the provider, nil for none. Sign-ins in progress at the previous one
// have to start again, as have people who signed in at one with other people or roles.
// Until the first call no session from a provider is valid.
func (o *Operators) SetOIDC(c *OIDC) {
	p := &o.oidc
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.client != nil {
		p.mu.client.CloseIdleConnections()
	}
	p.mu.known, p.mu.config, p.mu.found, p.mu.client, p.mu.pending = true, c, nil, nil, nil
	if c != nil {
		p.mu.client, p.mu.pending = safedial.Bound(safedial.Client(oidcTimeout, c.Roots), maxProvider), map[string]pending{}
	}
}

// checkOIDC returns an error for a session through a provider that is not in use, or not
// as it was.
func (o *Operators) checkOIDC(s *session) error {
	o.oidc.mu.Lock()
	known, config := o.oidc.mu.known, o.oidc.mu.config
	o.oidc.mu.Unlock()
	switch {
	case !known:
		return &Error{Code: CodeOverloaded, Detail: "the sign-in provider is not known yet", Remedy: "try again", RetryAfter: time.Second}
	case config == nil || s.Grants != config.grants():
		return errCredentials()
	}
	return nil
}

// HasOIDC reports whether people can sign in through a provider.
func (o *Operators) HasOIDC() bool {
	o.oidc.mu.Lock()
	defer o.oidc.mu.Unlock()
	return o.oidc.mu.config != nil
}

// flow is what a step of signing in works with.
type flow struct {
	config   *OIDC
	provider *oidc.Provider
	oauth    oauth2.Config
}

// flow finds the provider. The context that it returns has the client for its requests.
func (o *Operators) flow(ctx context.Context) (context.Context, *flow, error) {
	p := &o.oidc
	p.mu.Lock()
	config, client, found := p.mu.config, p.mu.client, p.mu.found
	p.mu.Unlock()
	if config == nil {
		return ctx, nil, &Error{Code: CodeNotFound, Detail: "no sign-in provider is configured"}
	}
	ctx = oidc.ClientContext(ctx, client)
	if found == nil {
		// The provider keeps the context for fetching keys later: it must not end.
		var err error
		if found, err = oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), config.Issuer); err != nil {
			o.log.Warn("the sign-in provider cannot be used", "issuer", config.Issuer, "error", shown.Line(err.Error(), maxTrouble))
			return ctx, nil, &Error{Code: CodeProvider, Detail: "the sign-in provider does not answer as it should", Remedy: "try again, or sign in with a password; the log says more"}
		}
		p.mu.Lock()
		if p.mu.config == config {
			p.mu.found = found
		}
		p.mu.Unlock()
	}
	scopes := config.Scopes
	if len(scopes) == 0 {
		scopes = []string{"profile", "email"}
	}
	return ctx, &flow{config: config, provider: found, oauth: oauth2.Config{
		ClientID: config.ClientID, ClientSecret: config.ClientSecret, RedirectURL: config.RedirectURL,
		Endpoint: found.Endpoint(), Scopes: append([]string{oidc.ScopeOpenID}, scopes...),
	}}, nil
}

// OIDCStart is where a browser is sent, and what it has to bring back.
type OIDCStart struct {
	// URL is the provider's page.
	URL string
	// State comes back in the address of the console's page, which compares it with
	// this one.
	State string
	// Browser is kept by the console's page and posted with the code, so that a
	// stolen code is useless.
	Browser string
}

// BeginOIDC returns the URL at the provider to sign in.
func (o *Operators) BeginOIDC(ctx context.Context, from Identity) (OIDCStart, error) {
	if err := o.throttle.try(from.Address, ""); err != nil {
		return OIDCStart{}, err
	}
	_, f, err := o.flow(ctx)
	if err != nil {
		return OIDCStart{}, err
	}
	state, p := credential.NewSecret(), pending{nonce: credential.NewSecret(), verifier: oauth2.GenerateVerifier(), browser: credential.NewSecret(), from: networkOf(from.Address), until: time.Now().Add(oidcPending)}
	if !o.oidc.remember(f.config, state, p) {
		return OIDCStart{}, &Error{Code: CodeOverloaded, Detail: "too many people are signing in", Remedy: "try again", RetryAfter: time.Second}
	}
	url := f.oauth.AuthCodeURL(state, oidc.Nonce(p.nonce), oauth2.S256ChallengeOption(p.verifier))
	return OIDCStart{URL: url, State: state, Browser: p.browser}, nil
}

// networkOf returns what counts as one address.
func networkOf(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero prefix for the zero address
	return p
}

// remember stores a sign-in in progress. At the limit it removes the oldest from the
// same address: one client cannot prevent others from signing in.
func (p *provider) remember(config *OIDC, state string, who pending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.config != config {
		return false
	}
	at, own, oldest := time.Now(), 0, ""
	for s, old := range p.mu.pending {
		switch {
		case at.After(old.until):
			delete(p.mu.pending, s)
		case old.from == who.from:
			if own++; oldest == "" || old.until.Before(p.mu.pending[oldest].until) {
				oldest = s
			}
		}
	}
	if own >= maxPendingOfOne {
		delete(p.mu.pending, oldest)
	}
	if len(p.mu.pending) >= maxPending {
		return false
	}
	p.mu.pending[state] = who
	return true
}

// pop returns who is on the way with a state, once.
func (p *provider) pop(state, browser string) (pending, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.mu.pending[state]
	delete(p.mu.pending, state)
	right := subtle.ConstantTimeCompare([]byte(credential.Digest(browser)), []byte(credential.Digest(who.browser))) == 1
	return who, ok && right && time.Now().Before(who.until)
}

// OIDCFinish is what the console's page posts.
type OIDCFinish struct {
	Code, State, Browser string
	Agent, OldCookie     string
}

// FinishOIDC starts a session for a person who has returned from the provider.
func (o *Operators) FinishOIDC(ctx context.Context, from Identity, in OIDCFinish) (Credentials, error) {
	if err := o.throttle.try(from.Address, ""); err != nil {
		return Credentials{}, err
	}
	ctx, f, err := o.flow(ctx)
	if err != nil {
		return Credentials{}, err
	}
	who, ok := o.oidc.pop(in.State, in.Browser)
	if !ok {
		return Credentials{}, o.refuseOIDC(from, "", "state", &Error{Code: CodeSignedOut, Field: "state", Detail: "this sign-in was not started here, took too long or was used already", Remedy: "start again"})
	}
	claims, err := f.claims(ctx, in.Code, who)
	if err != nil {
		o.log.Warn("a sign-in through the provider failed", "issuer", f.config.Issuer, "error", shown.Line(err.Error(), maxTrouble))
		return Credentials{}, o.refuseOIDC(from, "", "provider", &Error{Code: CodeProvider, Detail: "the provider did not confirm the sign-in", Remedy: "start again; the log has details"})
	}
	name, role := f.config.name(claims), f.config.role(claims)
	if name == "" || role == "" {
		return Credentials{}, o.refuseOIDC(from, name, "role", &Error{Code: CodeForbidden, Detail: "you are known to the provider, and have no role here", Remedy: "ask an admin to map one of your claims to a role"})
	}
	from.Name = "oidc:" + name
	s := session{Session: Session{User: from.Name, Role: role, Method: methodOIDC}, Grants: f.config.grants()}
	c, err := o.startSession(ctx, from, s, in.Agent, in.OldCookie, store.Change{})
	if err == nil {
		o.entered(from, role, methodOIDC, "")
	}
	return c, err
}

func (o *Operators) refuseOIDC(from Identity, name, reason string, err *Error) error {
	o.refused(event.Auth{User: name, Address: addressText(from.Address), Method: methodOIDC, Reason: reason})
	return err
}

// claims exchanges the code and returns what the provider says of the person. The
// token's signature, issuer, audience, time and nonce are checked.
func (f *flow) claims(ctx context.Context, code string, who pending) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, oidcTimeout)
	defer cancel()
	token, err := f.oauth.Exchange(ctx, code, oauth2.VerifierOption(who.verifier))
	if err != nil {
		return nil, fmt.Errorf("exchange the code: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, fmt.Errorf("exchange the code: no id_token in the answer")
	}
	id, err := f.provider.Verifier(&oidc.Config{ClientID: f.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("check the id_token: %w", err)
	}
	if a, b := sha256.Sum256([]byte(id.Nonce)), sha256.Sum256([]byte(who.nonce)); subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return nil, fmt.Errorf("check the id_token: it was made for another sign-in")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, fmt.Errorf("read the id_token: %w", err)
	}
	dropUnverified(claims)
	return claims, nil
}

// dropUnverified removes an email address unless the provider says that it is verified:
// people can write there what they like (OpenID Connect Core, section 5.7), so that silence
// does not count either.
func dropUnverified(claims map[string]any) {
	if !has(claims["email_verified"], "true") {
		delete(claims, "email")
	}
}

// name returns the name of a person, in printable ASCII of a limited length.
func (c *OIDC) name(claims map[string]any) string {
	candidates := []string{"preferred_username", "email", "sub"}
	if c.NameClaim != "" {
		candidates = []string{c.NameClaim}
	}
	for _, claim := range candidates {
		if text, ok := find(claims, claim).(string); ok && text != "" && len(text) <= maxClaimName &&
			strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
			return strings.ToLower(text)
		}
	}
	return ""
}

// role returns the highest role from the claims of a person, "" for none.
func (c *OIDC) role(claims map[string]any) Role {
	best := Role("")
	for _, r := range c.Roles {
		if r.Role.Valid() && has(find(claims, r.Claim), r.Value) && r.Role.AtLeast(best) {
			best = r.Role
		}
	}
	return best
}

// find returns a claim; one with a dot in its own name is found, too.
func find(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok {
		return v
	}
	head, rest, ok := strings.Cut(path, ".")
	if inner, isObject := claims[head].(map[string]any); ok && isObject {
		return find(inner, rest)
	}
	return nil
}

// has reports whether a claim is a value, or a list that has it.
func has(claim any, value string) bool {
	switch v := claim.(type) {
	case nil:
		return false
	case string:
		return value == "" && v != "" || v == value
	case bool:
		return v && (value == "" || value == "true")
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return has(e, value) })
	}
	return fmt.Sprint(claim) == value
}
