package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"headgate/internal/credential"
)

// Grant is what a provider needs to confirm a person again without the browser. It is secret.
type Grant struct {
	// Token is the refresh token, "" if the provider issued none.
	Token string `json:"token"`
	// Nonce is that of the ID token of the sign-in.
	Nonce string `json:"nonce"`
	// Lifetime is how long the token can be used, 0 if the provider does not report it.
	Lifetime time.Duration `json:"lifetime,omitempty"`
}

// maxRefreshToken is the longest refresh token that is kept, in bytes.
const maxRefreshToken = 8 << 10

// ErrRevoked is wrapped by the error of Refresh if the provider no longer confirms the person.
var ErrRevoked = errors.New("the provider no longer confirms the sign-in")

// grantOf returns the grant of a token response. Keycloak reports the lifetime of the refresh
// token as refresh_expires_in; OAuth 2.0 has no field for it.
func grantOf(token *oauth2.Token, nonce string) Grant {
	if len(token.RefreshToken) > maxRefreshToken {
		return Grant{}
	}
	g := Grant{Token: token.RefreshToken, Nonce: nonce}
	if seconds, ok := token.Extra("refresh_expires_in").(float64); ok && seconds > 0 && seconds < 1e9 {
		g.Lifetime = time.Duration(seconds) * time.Second
	}
	return g
}

// Refresh has the provider confirm a person again, and returns what it reports about the person
// now. The identity has the grant for the next time, also with an error unless its token is
// empty: many providers accept a refresh token only once. The error wraps ErrRevoked if the
// sign-in must end, and ErrUnavailable if the provider has not decided.
func (p *Provider) Refresh(ctx context.Context, subject string, g Grant) (Identity, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), timeout)
	defer cancel()
	f, err := p.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, err := f.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: g.Token}).Token()
	if rejected := (*oauth2.RetrieveError)(nil); errors.As(err, &rejected) && rejected.ErrorCode == "invalid_grant" {
		return Identity{}, fmt.Errorf("%w: invalid_grant", ErrRevoked)
	} else if err != nil {
		// Also errors such as invalid_client: they are of headgate's registration, not of the person.
		return Identity{}, fmt.Errorf("%w: refresh the token: %v", ErrUnavailable, err)
	}
	id, err := p.refreshed(ctx, f, token, subject, g)
	id.Grant = grantOf(token, g.Nonce)
	return id, err
}

// refreshed reads the response to a refresh. An ID token in it is optional (OpenID Connect Core,
// section 12.2); without one, claims that are not reported stay as they were.
func (p *Provider) refreshed(ctx context.Context, f *found, token *oauth2.Token, subject string, g Grant) (Identity, error) {
	claims := map[string]any{"sub": subject}
	_, signed := token.Extra("id_token").(string)
	if signed {
		id, verified, err := p.verify(ctx, f, token)
		if err != nil { // perhaps its keys could not be fetched
			return Identity{}, fmt.Errorf("%w: %v", ErrUnavailable, err)
		}
		if id.Subject != subject || id.Nonce != "" && !credential.SameSecret(id.Nonce, g.Nonce) {
			return Identity{}, fmt.Errorf("%w: the id_token is about another sign-in", ErrRevoked)
		}
		claims = verified
	}
	if err := p.complete(ctx, f, token, subject, claims); err != nil && !errors.Is(err, ErrUnavailable) {
		return Identity{}, fmt.Errorf("%w: %v", ErrRevoked, err)
	} else if err != nil {
		return Identity{}, err
	}
	id, err := p.identity(claims)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %v", ErrRevoked, err)
	}
	_, email := claims["email"]
	id.EmailUnknown, id.GroupsUnknown = !signed && !email, !signed && find(claims, p.config.GroupsClaim) == nil
	return id, nil
}
