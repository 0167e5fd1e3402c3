package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"headgate/internal/event"
	"headgate/internal/notice"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// Webhook is a URL that events are sent to, with signatures as in Standard Webhooks.
// Undelivered messages are sent again for a day.
type Webhook struct {
	Object
	// URL is where messages are sent by POST. Redirects are not followed; addresses of
	// the link (169.254.0.0/16, fe80::/10) and of cloud metadata are refused.
	URL string `json:"url" required:"true" max:"2048" example:"https://hooks.example.com/headgate"`
	// Secret is what messages are signed with: a text of at least 16 characters, or
	// whsec_ and Base64.
	Secret string `json:"secret" required:"true" secret:"true" min:"16" max:"256" example:"${WEBHOOK_SECRET}"`
	// Events are the types that are sent, such as proxy.down, or certificate.* for
	// all of an object. Absent means all.
	Events []string `json:"events,omitempty" max:"64" example:"[proxy.*, certificate.*]"`
	// Active is whether events are sent. Events that occur while it is false are never
	// sent.
	Active bool `json:"active" default:"true"`
}

// Notice is a message to people about events.
type Notice struct {
	Object
	notice.Config
}

// OIDC is a sign-in provider that speaks OpenID Connect.
type OIDC struct {
	// Issuer is the provider's URL; its configuration is found below it.
	Issuer string `json:"issuer" required:"true" max:"2048" example:"https://login.example.com/realms/main"`
	// ClientID is the client ID that is registered at the provider.
	ClientID string `json:"client_id" required:"true" max:"256" example:"headgate"`
	// ClientSecret is the secret of that client.
	ClientSecret string `json:"client_secret" required:"true" secret:"true" max:"1024" example:"${OIDC_SECRET}"`
	// RedirectURL is the page of this headgate that the provider sends people back to.
	// It has to be registered there.
	RedirectURL string `json:"redirect_url" required:"true" max:"2048" example:"https://gate.example.com/signed-in"`
	// Scopes are requested in addition to openid. Absent means profile and email.
	Scopes []string `json:"scopes,omitempty" max:"16" example:"[profile, email, groups]"`
	// NameClaim is the claim with the name of the user. Absent means the first present of
	// preferred_username, email and sub.
	NameClaim string `json:"name_claim,omitempty" max:"64" example:"email"`
	// Roles assign roles to users. If several match, the highest applies; a user that
	// matches none is rejected.
	Roles []OIDCRole `json:"roles" required:"true" min:"1" max:"64"`
}

// OIDCRole assigns a role to all users with a claim.
type OIDCRole struct {
	// Claim is the name of the claim; a dot selects a member of an object
	// (realm_access.roles).
	Claim string `json:"claim" required:"true" max:"64" example:"groups"`
	// Value is the value of the claim, or an element of its list. Absent means any value
	// except false.
	Value string `json:"value,omitempty" max:"256" example:"ops"`
	// Role is the role that these users get.
	Role string `json:"role" required:"true" enum:"admin,editor,viewer" example:"editor"`
}

// webhook reports an invalid URL, and event types that do not exist.
func (ch *checker) webhook(w *Webhook, at schema.Place) {
	checkURL(w.URL, at.Field("url"), true)
	for i, pattern := range w.Events {
		if err := event.CheckPattern(pattern); err != nil {
			at.Field("events").Index(i).Problem(err.Error(), "the reference page of events lists them")
		}
	}
}

// checkURL reports a text that is not a valid URL for requests. Plain allows http, which is
// always allowed for this machine.
func checkURL(text string, at schema.Place, plain bool) {
	if text == "" {
		return // a missing value was reported
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		at.Problem("the URL cannot be used", "write it as https://host/path")
	case u.User != nil:
		at.Problem("the URL has a user in it", "remove it: everyone who can see the URL would see it")
	case u.Fragment != "":
		at.Problem("the URL has a fragment", "remove the # and what follows it")
	case u.Scheme == "http" && !plain && !onThisMachine(u.Hostname()):
		at.Problem("the URL is not https", "secrets would be sent unencrypted; write https://")
	}
}

func onThisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// admin reports problems of the admin listener's certificate, names and proxies, and of its
// sign-in provider.
func (ch *checker) admin(at schema.Place) {
	checkCertificate(ch.c, ch.c.Admin.Certificate, at.Field("certificate"))
	ipset.Check(ch.c.Admin.TrustedProxies, at.Field("trusted_proxies"))
	for i, host := range ch.c.Admin.Hosts {
		h, wrong := parseVirtualHost(host)
		if _, address := netip.ParseAddr(host); address == nil {
			at.Field("hosts").Index(i).Problem("an IP address needs no entry", "remove it")
		} else if wrong != nil || h.Class != HostExact || h.Name != host {
			at.Field("hosts").Index(i).Problem(fmt.Sprintf("%q is not one host name", host), "write a name in lower-case letters, without a port, such as gate.example.com")
		}
	}
	o := ch.c.Admin.OIDC
	if o == nil {
		return
	}
	at = at.Field("oidc")
	checkURL(o.Issuer, at.Field("issuer"), false)
	checkURL(o.RedirectURL, at.Field("redirect_url"), false)
	if u, err := url.Parse(o.Issuer); err == nil && (u.RawQuery != "" || strings.HasSuffix(o.Issuer, "/.well-known/openid-configuration")) {
		at.Field("issuer").Problem("not the URL of an issuer", "write the URL without a query and without /.well-known/openid-configuration")
	}
}
