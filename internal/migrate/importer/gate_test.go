package importer

import (
	"strings"
	"testing"
)

// Auth servers that people know are named with what takes their place.
func TestAuthServersAreNotedWithTheirReplacement(t *testing.T) {
	for url, want := range map[string]string{
		"http://authelia:9091/api/verify":                   "headgate person add",
		"http://10.0.0.5:9091/api/authz/forward-auth":       "headgate person add",
		"http://oauth2-proxy:4180/oauth2/auth":              "the provider that it uses",
		"http://authentik:9000/outpost.goauthentik.io/auth": "name Authentik",
		"http://10.0.0.5/check":                             "your OpenID Connect provider",
	} {
		tr := NewTranslation("test")
		tr.AuthServer(url)
		if all := strings.Join(tr.Report.Check, "\n"); len(tr.Report.Check) != 1 || !strings.Contains(all, url) || !strings.Contains(all, want) {
			t.Errorf("%s: got %s, want %s", url, all, want)
		}
	}
}
