package importer

import "strings"

// gateGuide is where the replacement is described.
const gateGuide = "docs/guides/sign-in-providers.md"

// authPrograms are auth servers that people know by name: what their URLs contain, and what
// takes their place.
var authPrograms = []struct{ name, replacement string }{
	{"authelia", "add its people with headgate person add, or, if it is an OpenID Connect provider, name it under sign_in.providers"},
	{"/api/authz/", "add its people with headgate person add, or, if it is an OpenID Connect provider, name it under sign_in.providers"},
	{"oauth2", "name the provider that it uses under sign_in.providers, and register the redirect URI of headgate there"},
	{"authentik", "name Authentik under sign_in.providers, and register the redirect URI of headgate there"},
	{"goauthentik", "name Authentik under sign_in.providers, and register the redirect URI of headgate there"},
}

// AuthServer notes how a gate could replace an auth server that forward_auth asks. The
// translation keeps forward_auth: nothing is replaced by itself.
func (t *Translation) AuthServer(url string) {
	replacement := "name your OpenID Connect provider under sign_in.providers, or add people with headgate person add"
	for _, p := range authPrograms {
		if strings.Contains(strings.ToLower(url), p.name) {
			replacement = p.replacement
			break
		}
	}
	t.Check("forward_auth still uses the auth server %s. headgate can sign people in itself: after the migration you can replace forward_auth with gate: {allow: […]}; %s (%s)", url, replacement, gateGuide)
}

// SharedPasswords notes how a gate could replace a list of passwords, or of passwords or
// addresses.
func (t *Translation) SharedPasswords(list string, either bool) {
	more := ""
	if either {
		more = ", and from: […] lets its addresses in without a sign-in, as satisfy any does"
	}
	t.Check("access list %q still uses passwords that the browser asks for. After the migration you can replace basic_auth with gate: {allow: […]}: people then sign in with passkeys or a provider%s (docs/guides/passkeys.md)", list, more)
}
