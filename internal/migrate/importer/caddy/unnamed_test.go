package caddy

import (
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

// Issue 34, B: requests were answered otherwise than by Caddy, and the line of the report
// was called the same.
func TestDifferencesFromCaddyHaveALine(t *testing.T) {
	for name, test := range map[string]struct {
		source, line, note string
		want               importer.Verdict
	}{
		"hosts without a site":            {"http://a.example.com {\n respond hello\n}\n", "http://a.example.com", "hosts that no site has get 404", importer.Close},
		"a site without a host":           {"http:// {\n respond hello\n}\n", "http://", "", importer.Same},
		"clients refused with 401":        {":80 {\n respond 200\n @far not remote_ip 10.1.1.0/24\n respond @far 401\n}\n", "respond @far 401", "they get 403", importer.Close},
		"a redirect of plain HTTP":        {"{\n servers {\n  listener_wrappers {\n   http_redirect\n   tls\n  }\n }\n}\na.example.com {\n respond hello\n}\n", "http_redirect", "gets 400", importer.Impossible},
		"no HTTPS by itself":              {"{\n auto_https off\n}\na.example.com {\n respond hello\n}\n", "auto_https off", "self-signed", importer.Close},
		"types of files":                  {"a.example.com {\n root * /srv/www\n file_server\n}\n", "file_server", "Content-Type", importer.Close},
		"a part of what is left out":      {"a.example.com {\n vars {\n  abc true\n }\n respond hello\n}\n", "abc true", "around it", importer.Impossible},
		"only the redirects are left out": {"{\n auto_https disable_redirects\n}\na.example.com {\n respond hello\n}\n", "auto_https disable_redirects", "", importer.Same},
	} {
		t.Run(name, func(t *testing.T) {
			_, report := accepted(t, test.source)
			found := false
			for _, e := range report.Entries {
				if strings.HasPrefix(e.Directive, test.line) {
					if found = true; e.Verdict != test.want || !strings.Contains(e.Note, test.note) {
						t.Errorf("%s is %s: %s; want %s: %s", e.Directive, e.Verdict, e.Note, test.want, test.note)
					}
				}
			}
			if !found {
				t.Errorf("no line %s in %v", test.line, report.Entries)
			}
		})
	}
}
