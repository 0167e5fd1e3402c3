package caddy

import (
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// TestTheHostStarIsOneLabel holds that a site for * has no hosts of other sites: in Caddy a
// star is one label, and a site without a host takes all.
func TestTheHostStarIsOneLabel(t *testing.T) {
	for source, want := range map[string]string{
		"http://* {\n respond star\n}\nhttp://a.example.com {\n respond a\n}\n": "virtual_hosts: ['~^[^.]+$']",
		"http:// {\n respond star\n}\n":                                         "body: star",
	} {
		doc, _, err := Import([]string{"/Caddyfile"}, importer.Given(map[string][]byte{"/Caddyfile": []byte(source)}))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, problems := config.Load("x.yaml", doc); len(problems) > 0 {
			t.Errorf("%v\n%s", problems, doc)
		}
		if !strings.Contains(string(doc), want) || strings.Contains(source, "*") != strings.Contains(string(doc), "~^") {
			t.Errorf("no %s in\n%s", want, doc)
		}
	}
}
