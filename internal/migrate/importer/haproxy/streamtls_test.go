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

func TestRangesOfPorts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ bind, server, address, to string }{
		{"127.0.0.1:5000-5010", "10.0.0.1", "127.0.0.1:5000-5010", "10.0.0.1:5000-5010"},
		{":5000-5010", "10.0.0.1:+1000", "0.0.0.0:5000-5010", "10.0.0.1:6000-6010"},
		{":5000-5010", "10.0.0.1:6000", "0.0.0.0:5000-5010", "10.0.0.1:6000"},
		{":5000", "10.0.0.1", "0.0.0.0:5000", "10.0.0.1:5000"},
		{":5000", "10.0.0.1:-1000", "0.0.0.0:5000", "10.0.0.1:4000"},
	} {
		doc, _, entries := site(t, "listen t\n mode tcp\n bind "+c.bind+"\n server s "+c.server)
		if !strings.Contains(doc, "address: "+c.address+"\n") || !strings.Contains(doc, "'"+c.to+"'") {
			t.Errorf("%s to %s:\n%s", c.bind, c.server, doc)
		}
		if e := entries["bind "+c.bind]; e.Verdict != importer.Same {
			t.Errorf("bind %s: %s (%s)", c.bind, e.Verdict, e.Note)
		}
	}
	for _, server := range []string{"10.0.0.1:+65000", "10.0.0.1:+x"} {
		doc, _, entries := site(t, "listen t\n mode tcp\n bind :5000-5010\n server s "+server)
		if e := entries["server s "+server]; e.Verdict != importer.Impossible || strings.Contains(doc, "10.0.0.1") {
			t.Errorf("%s: %s (%s)\n%s", server, e.Verdict, e.Note, doc)
		}
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
