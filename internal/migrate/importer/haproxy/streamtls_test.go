package haproxy

import (
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

func TestModeTCPTerminatesTLS(t *testing.T) {
	t.Parallel()
	bind := "bind :636 ssl crt /etc/haproxy/ldap.pem alpn ldap,other ssl-min-ver TLSv1.3 verify required ca-file /etc/haproxy/ca.pem"
	doc, _, entries := site(t, "frontend t\n mode tcp\n "+bind+"\n default_backend b")
	for _, want := range []string{"address: 0.0.0.0:636", "default_certificate: ldap", "alpn: [ldap, other]", "client_auth: required", "client_ca: /etc/haproxy/ca.pem", "cert_file: /etc/haproxy/ldap.pem"} {
		if !strings.Contains(doc, want) {
			t.Errorf("the document has no %q:\n%s", want, doc)
		}
	}
	if e := entries[bind]; e.Verdict != importer.Same {
		t.Errorf("got %s (%s)", e.Verdict, e.Note)
	}
}

func TestNamesInTLSShareTheAddressWithTheDefault(t *testing.T) {
	t.Parallel()
	doc, report, entries := site(t, "frontend t\n mode tcp\n bind :443\n use_backend a if { req.ssl_sni -i a.example.com }\n default_backend b")
	if strings.Count(doc, "address: 0.0.0.0:443") != 2 || !strings.Contains(doc, "sni: [a.example.com]") {
		t.Errorf("got\n%s", doc)
	}
	if e := entries["default_backend b"]; e.Verdict != importer.Same {
		t.Errorf("got %s (%s) for the default", e.Verdict, e.Note)
	}
	if len(report.Check) > 0 {
		t.Errorf("got %q to look at", report.Check)
	}
}
