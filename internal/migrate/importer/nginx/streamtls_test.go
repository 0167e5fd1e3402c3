package nginx

import (
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

func TestStreamsTerminateTLS(t *testing.T) {
	t.Parallel()
	data, report, err := text("nginx.conf", `
events {}
stream {
  ssl_certificate /etc/ssl/ldap.pem;
  ssl_certificate_key /etc/ssl/ldap.key;
  map $ssl_preread_server_name $to { a.example.com 127.0.0.1:1; default 127.0.0.1:2; }
  server { listen 636 ssl; ssl_protocols TLSv1.3; ssl_alpn ldap; ssl_verify_client on; ssl_client_certificate /etc/ssl/ca.pem; proxy_pass 127.0.0.1:389; }
  server { listen 5671; proxy_pass 127.0.0.1:5672; proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate /etc/ssl/ca.pem; proxy_ssl_name mq.example.com; }
  server { listen 443; ssl_preread on; proxy_pass $to; }
}
`)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, want := range []string{
		"default_certificate: tcp-636", "min_version: '1.3'", "alpn: [ldap]", "client_auth: required", "client_ca: /etc/ssl/ca.pem",
		"cert_file: /etc/ssl/ldap.pem", "ca_file: /etc/ssl/ca.pem", "server_name: mq.example.com", "sni: [a.example.com]",
	} {
		if !strings.Contains(doc, want) && !strings.Contains(doc, strings.ReplaceAll(want, "'", `"`)) {
			t.Errorf("the document has no %q:\n%s", want, doc)
		}
	}
	if strings.Count(doc, "address: 0.0.0.0:443") != 2 {
		t.Errorf("the names do not share the address with the default:\n%s", doc)
	}
	for _, e := range report.Entries {
		if e.Verdict == importer.Impossible {
			t.Errorf("%s: %s (%s)", e.Directive, e.Verdict, e.Note)
		}
	}
}
