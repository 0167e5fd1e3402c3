package nginx

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// TestAddressesOfClientsBecomeFilters holds that blocks geo, maps of addresses, and the
// conditions that refuse by them become ip_filter and the exemptions of rate_limit.
func TestAddressesOfClientsBecomeFilters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, source, directive string
		want                    importer.Verdict
		document                string
	}{
		{"a blocked network", `geo $bad { default 0; 203.0.113.0/24 1; } server { listen 80; if ($bad) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"if ($bad) { … }", importer.Same, "ip_filter: {deny: [203.0.113.0/24]}"},
		{"the narrowest network decides", `geo $bad { 203.0.113.0/24 1; 203.0.113.128/25 0; } server { listen 80; if ($bad = 1) { return 444; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"return 444", importer.Close, "ip_filter: {deny: [203.0.113.0/25]}"},
		{"of equal networks the last decides", `geo $bad { 203.0.113.0/24 1; 203.0.113.0/24 0; 198.51.100.7 1; } server { listen 80; if ($bad) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"if ($bad) { … }", importer.Same, "ip_filter: {deny: [198.51.100.7]}"},
		{"all but some", `geo $office { default no; 203.0.113.0/24 yes; } server { listen 80; location / { if ($office != yes) { return 403; } proxy_pass http://127.0.0.1:1; } }`,
			"geo $office { … }", importer.Same, "ip_filter: {allow: [203.0.113.0/24]}"},
		{"a range", `geo $bad { ranges; default 0; 203.0.113.4-203.0.113.9 1; } server { listen 80; if ($bad) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"203.0.113.4-203.0.113.9 1", importer.Same, "entries: [203.0.113.4/30, 203.0.113.8/31]"},
		{"a map of a geo", `geo $kind { default x; 203.0.113.0/24 bot; } map $kind $no { default 0; bot 1; } server { listen 80; if ($no) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"map $kind $no { … }", importer.Same, "ip_filter: {deny: [203.0.113.0/24]}"},
		{"a map of the address", `map $remote_addr $no { default 0; 203.0.113.9 1; } server { listen 80; if ($no) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"203.0.113.9 1", importer.Same, "ip_filter: {deny: [203.0.113.9]}"},
		{"one address", `server { listen 80; if ($remote_addr = 203.0.113.9) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"if ($remote_addr = 203.0.113.9) { … }", importer.Same, "ip_filter: {deny: [203.0.113.9]}"},
		{"beside allow and deny", `geo $bad { 10.0.0.9 1; } server { listen 80; if ($bad) { return 403; } location / { allow 10.0.0.8/30; deny all; proxy_pass http://127.0.0.1:1; } }`,
			"allow 10.0.0.8/30", importer.Same, "ip_filter: {allow: [10.0.0.8, 10.0.0.10/31]}"},
		{"a condition that no client meets", `geo $bad { default 0; } server { listen 80; if ($bad) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"if ($bad) { … }", importer.Same, "servers"},
		{"clients without a limit", `geo $limited { default 1; 10.0.0.0/8 0; } map $limited $key { 0 ""; 1 $binary_remote_addr; } limit_req_zone $key zone=z:1m rate=5r/s; server { listen 80; location / { limit_req zone=z; proxy_pass http://127.0.0.1:1; } }`,
			"geo $limited { … }", importer.Same, "exempt: [10.0.0.0/8]"},
		{"a geo that nothing uses", `geo $x { default 1; } server { listen 80; location / { proxy_pass http://127.0.0.1:1; } }`, "geo $x { … }", importer.Ignored, ""},
		{"another address", `geo $arg_ip $bad { 203.0.113.0/24 1; } server { listen 80; if ($bad) { return 403; } location / { proxy_pass http://127.0.0.1:1; } }`, "if ($bad) { … }", importer.Impossible, ""},
		{"a geo that sends elsewhere", `geo $bad { 203.0.113.0/24 1; } server { listen 80; if ($bad) { return 301 https://x.example/; } location / { proxy_pass http://127.0.0.1:1; } }`, "if ($bad) { … }", importer.Impossible, ""},
		{"a geo as a header", `geo $bad { 203.0.113.0/24 1; } server { listen 80; location / { proxy_pass http://127.0.0.1:1; proxy_set_header X-Bad $bad; } }`, "geo $bad { … }", importer.Impossible, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, entries := imported(t, test.source)
			if e := entries[test.directive]; e.Verdict != test.want {
				t.Errorf("%s is %q (%s), want %q\n%v", test.directive, e.Verdict, e.Note, test.want, entries)
			}
			if !strings.Contains(doc, test.document) {
				t.Errorf("the document has no %q:\n%s", test.document, doc)
			}
		})
	}
}

// TestManyAddressesBecomeLists holds that a file of addresses, and many of them in one
// place, are lists that settings refer to.
func TestManyAddressesBecomeLists(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "deny 198.%d.%d.%d;\n", 18+i>>15, i>>7&255, i<<1&255)
	}
	files := map[string][]byte{
		"/etc/nginx/nginx.conf": []byte("http { include /etc/nginx/blockips.conf;\n server { listen 80; server_name a.example; location / { proxy_pass http://127.0.0.1:1; } }\n" +
			" server { listen 80; server_name b.example; deny 203.0.113.9; include /etc/nginx/few.conf; location / { proxy_pass http://127.0.0.1:1; } } }"),
		"/etc/nginx/blockips.conf": []byte(many.String()),
		"/etc/nginx/few.conf":      []byte("deny 203.0.113.1;\ndeny 203.0.113.2;\n"),
	}
	doc, report, err := Import([]string{"/etc/nginx/nginx.conf"}, importer.Given(files))
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, problems := config.Load("x.yaml", doc)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, doc)
	}
	if n := len(cfg.Lists["blockips"].Entries); n != 3000 {
		t.Errorf("the list has %d entries", n)
	}
	if text := string(doc); !strings.Contains(text, "deny: ['list:blockips']") || !strings.Contains(text, "deny: ['list:few', 203.0.113.9]") {
		t.Errorf("%.2000s", doc)
	}
	for _, e := range report.Entries {
		if e.File != "/etc/nginx/nginx.conf" && (e.Verdict != importer.Same || len(e.Became) == 0) {
			t.Fatalf("%v", e)
		}
	}
}
