package provider

import (
	"net/netip"
	"net/url"
	"reflect"
	"strings"

	"headgate/internal/schema"
)

// Config is a provider that speaks OpenID Connect: Google, Microsoft Entra, Authentik,
// Keycloak, Pocket ID and others.
type Config struct {
	// Issuer is the provider's URL. Its configuration is found below it. Issuers for
	// several tenants, such as that of Microsoft for all organizations, are refused:
	// everybody in the world could sign in through them. Write the issuer of your tenant.
	Issuer string `json:"issuer" required:"true" max:"2048" example:"https://login.example.com/realms/main"`
	// ClientID is the name under which headgate is registered at the provider.
	ClientID string `json:"client_id" required:"true" max:"256" example:"headgate"`
	// ClientSecret is the secret of that registration.
	ClientSecret string `json:"client_secret" required:"true" secret:"true" max:"1024" example:"${file:/run/secrets/oidc}"`
	// Label is the name on the button of the sign-in page. Absent is the provider's name in
	// the configuration.
	Label string `json:"label,omitempty" max:"64" example:"Example Ltd."`
	// Scopes are requested beside openid. Absent is profile and email.
	Scopes []string `json:"scopes,omitempty" max:"16" example:"[profile, email, groups]"`
	// Emails are the domains of e-mail addresses that the provider manages: addresses below
	// them count even if the provider does not say that they are verified. All others count
	// only with `email_verified: true`.
	Emails []string `json:"emails,omitempty" max:"64" example:"[example.com]"`
	// GroupsClaim is the claim with a person's groups; a dot leads into an object.
	GroupsClaim string `json:"groups_claim" default:"groups" max:"64" example:"realm_access.roles"`
	// UserClaim is the claim that servers get as Remote-User. Absent is the e-mail address,
	// if it counts, or else the provider's name and the person's id there. Choose a claim
	// only if people cannot change it themselves at the provider.
	UserClaim string `json:"user_claim,omitempty" max:"64" example:"preferred_username"`
}

// Equal reports whether two settings are the same.
func (c *Config) Equal(other *Config) bool { return reflect.DeepEqual(c, other) }

// Check reports what is wrong with the settings at a place.
func (c *Config) Check(at schema.Place) {
	issuer := at.Field("issuer")
	u, err := url.Parse(c.Issuer)
	switch {
	case c.Issuer == "":
		// it is required, which is reported already
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		issuer.Problem("the URL cannot be used", "write it as https://host/path")
	case u.User != nil || u.Fragment != "" || u.RawQuery != "" || strings.HasSuffix(c.Issuer, "/.well-known/openid-configuration"):
		issuer.Problem("not the URL of an issuer", "write the URL without user, query and fragment, and without /.well-known/openid-configuration")
	case u.Scheme == "http" && !onThisMachine(u.Hostname()):
		issuer.Problem("the URL is not https", "secrets would be sent unencrypted; write https://")
	case severalTenants(u):
		issuer.Problem("this issuer is for several tenants: people of every organization could sign in", "write the issuer of your tenant, with its id in the place of "+firstSegment(u))
	}
	for i, domain := range c.Emails {
		if domain == "" || strings.ContainsAny(domain, "@*/ ") || domain != strings.ToLower(domain) {
			at.Field("emails").Index(i).Problemf("write a name in lower-case letters, such as example.com", "%q is not a domain", domain)
		}
	}
	for i, scope := range c.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			at.Field("scopes").Index(i).Problemf("write a word such as groups", "%q is not a scope", scope)
		}
	}
}

func onThisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// severalTenants reports whether people of organizations that the operator does not know
// get tokens of an issuer.
func severalTenants(u *url.URL) bool {
	switch firstSegment(u) {
	case "common", "organizations", "consumers":
		return strings.HasSuffix(u.Hostname(), "login.microsoftonline.com") || strings.HasSuffix(u.Hostname(), "login.microsoftonline.us") || strings.HasSuffix(u.Hostname(), "login.partner.microsoftonline.cn")
	}
	return false
}

func firstSegment(u *url.URL) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return first
}
