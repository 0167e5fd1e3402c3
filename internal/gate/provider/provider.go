// Package provider signs people in through OpenID Connect: it sends a browser to a
// provider and verifies what the provider returns about the person. Open makes a Provider
// of its settings; Start and Finish are the two halves of a sign-in.
//
// It keeps nothing about sign-ins in progress: the caller keeps the Pending of each, and
// binds it to the browser. It decides nothing about what people may do.
package provider

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"headgate/internal/credential"
	"headgate/internal/server/safedial"
)

// The limits of talking to a provider.
const (
	timeout     = 15 * time.Second
	maxAnswer   = 1 << 20 // bytes of one answer
	maxSubject  = 255     // bytes; OpenID Connect Core, section 2
	maxText     = 256     // bytes of a name or an address
	maxGroups   = 256
	maxGroup    = 128 // bytes of a group's name
	maxResponse = 4096
)

// algorithms are the signatures that are accepted. None is symmetric: the
// public key, or the client's secret, is enough to make such tokens.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// Provider is one sign-in provider. Its methods may be called by several goroutines at
// once.
type Provider struct {
	name   string
	config Config
	client *http.Client

	mu struct {
		sync.Mutex
		found *found // nil until it is first needed
	}
}

// found is what the provider's configuration document says.
type found struct {
	provider *oidc.Provider
	// oauth is used for all sign-ins: it remembers how the provider authenticates clients, so
	// that no request has to be sent in two ways.
	oauth *oauth2.Config
	// SendsIssuer is whether responses have the parameter iss (RFC 9207, section 3).
	SendsIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

// Open returns a provider with a name. Roots are the trusted authorities, nil for those of
// the system. Nothing is sent before the first sign-in. Close releases it.
func Open(name string, c Config, roots *x509.CertPool) *Provider {
	return &Provider{name: name, config: c, client: safedial.Bound(safedial.Client(timeout, roots), maxAnswer)}
}

// Close closes idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Name returns the provider's name in the configuration.
func (p *Provider) Name() string { return p.name }

// Label returns the text for people.
func (p *Provider) Label() string {
	if p.config.Label != "" {
		return p.config.Label
	}
	return p.name
}

// Issuer returns the provider's URL.
func (p *Provider) Issuer() string { return p.config.Issuer }

// Pending is a sign-in in progress. It is enough to finish the sign-in with a code of the
// provider: only the browser that started may receive it.
type Pending struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // PKCE, RFC 7636
}

// Identity is what the provider says about a person.
type Identity struct {
	// Subject is the person's id at the provider. It never changes.
	Subject string
	// Name is for people to read; it may be "".
	Name string
	// Email is in lower case, and "" unless it counts: see Config.Emails.
	Email string
	// User is the claim that Config.UserClaim names, "" without one.
	User string
	// Groups are the person's groups at the provider.
	Groups []string
	// Grant is what Refresh needs.
	Grant Grant
	// EmailUnknown and GroupsUnknown are set by Refresh if the provider reports nothing about
	// them.
	EmailUnknown, GroupsUnknown bool
}

// ErrUnavailable is wrapped by errors of a provider that cannot be reached or does not
// respond as OpenID Connect requires.
var ErrUnavailable = errors.New("the sign-in provider is not available")

// discover returns what the provider's configuration document says, which is fetched once.
func (p *Provider) discover(ctx context.Context) (*found, error) {
	p.mu.Lock()
	known := p.mu.found
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	// Keys are fetched later with the same context, so it must not end.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	f := &found{provider: provider}
	if err := provider.Claims(f); err != nil {
		return nil, fmt.Errorf("%w: read its configuration: %v", ErrUnavailable, err)
	}
	f.oauth = p.oauth(provider.Endpoint())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.found == nil {
		p.mu.found = f
	}
	return p.mu.found, nil
}

func (p *Provider) oauth(endpoint oauth2.Endpoint) *oauth2.Config {
	scopes := p.config.Scopes
	if len(scopes) == 0 {
		scopes = []string{"profile", "email"}
	}
	if !slices.Contains(scopes, oidc.ScopeOpenID) {
		scopes = append([]string{oidc.ScopeOpenID}, scopes...)
	}
	return &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: endpoint, Scopes: scopes}
}

// to is the option with the address that the provider sends browsers back to.
func to(redirect string) oauth2.AuthCodeOption {
	return oauth2.SetAuthURLParam("redirect_uri", redirect)
}

// Start returns the page of the provider that a browser is sent to, and what is needed to
// finish. Redirect is the address that the provider sends it back to.
func (p *Provider) Start(ctx context.Context, redirect string) (string, Pending, error) {
	f, err := p.discover(ctx)
	if err != nil {
		return "", Pending{}, err
	}
	s := Pending{State: credential.NewSecret(), Nonce: credential.NewSecret(), Verifier: oauth2.GenerateVerifier()}
	return f.oauth.AuthCodeURL(s.State, to(redirect), oidc.Nonce(s.Nonce), oauth2.S256ChallengeOption(s.Verifier)), s, nil
}

// Finish exchanges the code in the provider's response for what it says about the person.
// The state, the issuer, and the token's signature, issuer, audience, time and nonce are
// checked.
func (p *Provider) Finish(ctx context.Context, redirect string, s Pending, response url.Values) (Identity, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), timeout)
	defer cancel()
	f, err := p.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	code, err := p.checkResponse(f, s, response)
	if err != nil {
		return Identity{}, err
	}
	token, err := f.oauth.Exchange(ctx, code, to(redirect), oauth2.VerifierOption(s.Verifier))
	if err != nil {
		if rejected := (*oauth2.RetrieveError)(nil); errors.As(err, &rejected) && rejected.Response != nil && rejected.Response.StatusCode < 500 {
			return Identity{}, fmt.Errorf("exchange the code: %v", err)
		}
		return Identity{}, fmt.Errorf("%w: exchange the code: %v", ErrUnavailable, err)
	}
	claims, err := p.claims(ctx, f, token, s)
	if err != nil {
		return Identity{}, err
	}
	id, err := p.identity(claims)
	id.Grant = grantOf(token, s.Nonce)
	return id, err
}

// checkResponse returns the code of a response that belongs to a sign-in.
func (p *Provider) checkResponse(f *found, s Pending, response url.Values) (string, error) {
	for _, name := range []string{"state", "code", "iss", "error"} {
		if values := response[name]; len(values) > 1 || len(values) == 1 && len(values[0]) > maxResponse {
			return "", fmt.Errorf("read the response: parameter %s is repeated or too long", name)
		}
	}
	if s.State == "" || !credential.SameSecret(response.Get("state"), s.State) {
		return "", errors.New("read the response: it belongs to another sign-in")
	}
	// Responses of one provider that are sent to the callback of another would have the
	// code exchanged there (mix-up, RFC 9207).
	switch issuer, sent := response.Get("iss"), response.Has("iss"); {
	case sent && issuer != p.config.Issuer:
		return "", errors.New("read the response: it is from another issuer")
	case !sent && f.SendsIssuer:
		return "", errors.New("read the response: it does not name its issuer")
	}
	if refused := response.Get("error"); refused != "" {
		return "", fmt.Errorf("the provider refused: %.100q", refused)
	}
	if response.Get("code") == "" {
		return "", errors.New("read the response: it has no code")
	}
	return response.Get("code"), nil
}

// claims returns the claims of the ID token of a sign-in, completed with those of the user info
// endpoint.
func (p *Provider) claims(ctx context.Context, f *found, token *oauth2.Token, s Pending) (map[string]any, error) {
	id, claims, err := p.verify(ctx, f, token)
	if err != nil {
		return nil, err
	}
	if s.Nonce == "" || !credential.SameSecret(id.Nonce, s.Nonce) {
		return nil, errors.New("check the id_token: it was made for another sign-in")
	}
	return claims, p.complete(ctx, f, token, id.Subject, claims)
}

// verify checks the ID token of a token response and returns its claims.
func (p *Provider) verify(ctx context.Context, f *found, token *oauth2.Token) (*oidc.IDToken, map[string]any, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, nil, errors.New("exchange the code: the response has no id_token")
	}
	id, err := f.provider.Verifier(&oidc.Config{ClientID: p.config.ClientID, SupportedSigningAlgs: algorithms}).Verify(ctx, raw)
	if err != nil {
		return nil, nil, fmt.Errorf("check the id_token: %v", err)
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, nil, fmt.Errorf("read the id_token: %v", err)
	}
	// OpenID Connect Core, section 3.1.3.7, steps 4 and 5.
	if azp, has := claims["azp"]; has && azp != p.config.ClientID || !has && len(id.Audience) > 1 {
		return nil, nil, errors.New("check the id_token: it was issued to another client")
	}
	return id, claims, nil
}

// complete adds the claims of the user info endpoint that are missing: some providers report
// addresses and groups only there.
func (p *Provider) complete(ctx context.Context, f *found, token *oauth2.Token, subject string, claims map[string]any) error {
	_, email := claims["email"]
	if f.provider.UserInfoEndpoint() == "" || email && find(claims, p.config.GroupsClaim) != nil {
		return nil
	}
	return p.addUserInfo(ctx, f, token, subject, claims)
}

// addUserInfo adds the claims of the user info endpoint that the ID token does not have.
func (p *Provider) addUserInfo(ctx context.Context, f *found, token *oauth2.Token, subject string, claims map[string]any) error {
	info, err := f.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return fmt.Errorf("%w: request user info: %v", ErrUnavailable, err)
	}
	switch info.Subject { // OpenID Connect Core, section 5.3.2
	case subject:
	case "":
		return nil // it does not say whom it is about, so it cannot be used
	default:
		return errors.New("request user info: it is about another person")
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return fmt.Errorf("read user info: %v", err)
	}
	// An address and what is said about it belong together.
	if _, had := claims["email"]; had {
		delete(more, "email")
		delete(more, "email_verified")
	} else {
		delete(claims, "email_verified")
	}
	for name, value := range more {
		if _, had := claims[name]; !had {
			claims[name] = value
		}
	}
	return nil
}

// identity reads the claims.
func (p *Provider) identity(claims map[string]any) (Identity, error) {
	var id Identity
	id.Subject, _ = claims["sub"].(string)
	if !printable(id.Subject, maxSubject) || id.Subject == "" {
		return Identity{}, errors.New("read the id_token: no subject that can be used")
	}
	for _, claim := range []string{"name", "preferred_username", "email"} {
		if text, ok := claims[claim].(string); ok && readable(text, maxText) && text != "" {
			id.Name = text
			break
		}
	}
	id.Email = p.email(claims)
	if p.config.UserClaim != "" {
		text, ok := find(claims, p.config.UserClaim).(string)
		if !ok || text == "" || !printable(text, maxText) {
			return Identity{}, fmt.Errorf("read the id_token: no claim %s that can be used", p.config.UserClaim)
		}
		id.User = text
	}
	id.Groups = groups(find(claims, p.config.GroupsClaim))
	return id, nil
}

// email returns the address if it counts. People can write there what they like at some
// providers (OpenID Connect Core, section 5.7), so silence does not count.
func (p *Provider) email(claims map[string]any) string {
	text, _ := claims["email"].(string)
	text = strings.ToLower(text)
	at := strings.LastIndexByte(text, '@')
	// A slash could make an address look like a provider and a person's id there.
	if at <= 0 || !printable(text, maxText) || strings.ContainsAny(text, " ,;<>/\"") {
		return ""
	}
	// Some providers write the boolean as a text.
	if verified := claims["email_verified"]; verified == true || verified == "true" || slices.Contains(p.config.Emails, text[at+1:]) && verified == nil {
		return text
	}
	return ""
}

// groups returns the names in a claim: a list, or one text. Names that could be read as
// several by a server are left out.
func groups(claim any) []string {
	var list []any
	switch v := claim.(type) {
	case string:
		list = []any{v}
	case []any:
		list = v
	}
	var out []string
	for _, e := range list {
		if name, ok := e.(string); ok && name != "" && readable(name, maxGroup) && !strings.ContainsAny(name, ",;|") && len(out) < maxGroups {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// find returns a claim; a dot leads into an object, unless a claim has it in its name.
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

// printable reports whether a text is ASCII without control characters.
func printable(text string, max int) bool {
	return len(text) <= max && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// readable reports whether a text is valid UTF-8 without control characters.
func readable(text string, max int) bool {
	return len(text) <= max && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' }) < 0
}
