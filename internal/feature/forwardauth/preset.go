package forwardauth

import (
	"slices"
	"strings"

	"headgate/internal/server/target"
)

// Preset names an auth server whose settings are known.
type Preset string

// The auth servers.
const (
	Authelia    Preset = "authelia"
	Authentik   Preset = "authentik"
	OAuth2Proxy Preset = "oauth2_proxy"
)

// known is what an auth server wants.
type known struct {
	path    string // of the subrequest
	signin  string
	headers []string
}

// presets are the settings that the auth servers' own guides name.
var presets = map[Preset]known{
	Authelia: {
		path:    "/api/authz/forward-auth",
		headers: []string{"Remote-User", "Remote-Groups", "Remote-Email", "Remote-Name"},
	},
	Authentik: {
		path: "/outpost.goauthentik.io/auth/traefik",
		headers: []string{"X-authentik-username", "X-authentik-groups", "X-authentik-entitlements", "X-authentik-email", "X-authentik-name",
			"X-authentik-uid", "X-authentik-jwt", "X-authentik-meta-jwks", "X-authentik-meta-outpost", "X-authentik-meta-provider",
			"X-authentik-meta-app", "X-authentik-meta-version"},
	},
	OAuth2Proxy: {
		path:    "/oauth2/auth",
		signin:  "/oauth2/start",
		headers: []string{"X-Auth-Request-User", "X-Auth-Request-Email", "X-Auth-Request-Groups", "X-Auth-Request-Preferred-Username"},
	},
}

// full returns the settings with what the preset adds: the path, where the URL has
// none, and what is not set.
func (c *Config) full() *Config {
	preset, ok := presets[c.Preset]
	if !ok {
		return c
	}
	out := *c
	base, query := splitQuery(c.URL)
	if t, f := target.Parse(base); f == nil && (t.BasePath == "" || t.BasePath == "/") && t.Socket == "" {
		out.URL = strings.TrimSuffix(base, "/") + preset.path + query
	}
	if len(c.ResponseHeaders) == 0 {
		out.ResponseHeaders = slices.Clone(preset.headers)
	}
	if c.SigninURL == "" {
		out.SigninURL = preset.signin
	}
	return &out
}
