package caddy

import (
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// TestCertificatesOnDemand holds what becomes of them: with a question it is on_demand, and
// without one nothing, as nothing would limit who gets certificates.
func TestCertificatesOnDemand(t *testing.T) {
	const proxied = "reverse_proxy 127.0.0.1:9000\n"
	const adapted = `{"apps":{"http":{"servers":{"srv0":{"listen":[":443"],"routes":[{"handle":[{"handler":"static_response","body":"x"}]}]}}},
	"tls":{"automation":{"policies":[{"on_demand":true}],"on_demand":{"permission":{"endpoint":"http://127.0.0.1:5555/check","module":"http"}}}}}}`
	for _, c := range []struct{ name, file, source, want, not string }{
		{"every host", "Caddyfile", "{\n on_demand_tls {\n  ask http://127.0.0.1:5555/check\n }\n}\nhttps:// {\n tls {\n  on_demand\n }\n " + proxied + "}\n", "on_demand: {ask: 'http://127.0.0.1:5555/check', max_per_hour: 100}", "virtual_hosts"},
		{"a wildcard", "Caddyfile", "{\n on_demand_tls {\n  permission http {\n   endpoint http://127.0.0.1:5555/check\n  }\n }\n}\n*.example.com {\n tls a@example.com {\n  on_demand\n }\n " + proxied + "}\n", "on_demand: {ask: 'http://127.0.0.1:5555/check', max_per_hour: 100}", "ordered by DNS"},
		{"a name", "Caddyfile", "{\n on_demand_tls {\n  ask http://127.0.0.1:5555/check\n }\n}\nshop.example.com {\n tls {\n  on_demand\n }\n " + proxied + "}\n", "acme: main", "on_demand"},
		{"no question", "Caddyfile", "https:// {\n tls {\n  on_demand\n }\n " + proxied + "}\n", "routes", "on_demand:"},
		{"adapted", "caddy.json", adapted, "on_demand: {ask: 'http://127.0.0.1:5555/check', max_per_hour: 100}", "virtual_hosts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, report, err := Import([]string{"/" + c.file}, importer.Given(map[string][]byte{"/" + c.file: []byte(c.source)}))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, problems := config.Load("x.yaml", doc); len(problems) > 0 {
				t.Errorf("%v\n%s", problems, doc)
			}
			text := string(doc)
			if !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
				t.Errorf("want %q and not %q in\n%s", c.want, c.not, text)
			}
			for _, e := range report.Entries {
				wanted := map[string]importer.Verdict{"every host": importer.Close, "a wildcard": importer.Close, "adapted": importer.Close, "a name": importer.Ignored, "no question": importer.Impossible}[c.name]
				if (strings.HasSuffix(e.Directive, "on_demand") || strings.HasSuffix(e.Directive, "on_demand: true")) && e.Verdict != wanted {
					t.Errorf("%+v, want %s", e, wanted)
				}
				if (strings.HasPrefix(e.Directive, "ask ") || strings.Contains(e.Directive, "endpoint")) && c.name != "a name" && (e.Verdict != importer.Same || len(e.Became) == 0) {
					t.Errorf("%+v, want it to be the same", e)
				}
			}
		})
	}
}
