package haproxy

import (
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

const streamFront = "frontend f\n mode tcp\n bind :5432\n default_backend d\n"

// One who may not connect to HAProxy may not connect to headgate.
func TestClientsThatTCPRulesRejectAreFiltered(t *testing.T) {
	t.Parallel()
	const back = "\nbackend d\n mode tcp\n server s 127.0.0.1:3\n"
	for _, test := range []struct{ name, lines, document string }{
		{"only a network", " tcp-request connection reject if !{ src 10.0.0.0/8 }", "ip_filter: {allow: [10.0.0.0/8]}"},
		{"all but a network", " tcp-request content reject if { src 10.0.0.0/8 }", "ip_filter: {deny: [10.0.0.0/8]}"},
		{"an acl, accepted before all others are rejected", " acl office src 192.0.2.0/24 192.0.3.1\n tcp-request connection accept if office\n tcp-request connection reject", "ip_filter: {allow: [192.0.2.0/24, 192.0.3.1]}"},
		{"a part of what is rejected is accepted before", " tcp-request content accept if { src 10.0.0.1 }\n tcp-request content reject if { src 10.0.0.0/31 }", "ip_filter: {deny: [10.0.0.0]}"},
		{"who a connection rule accepts, a content rule rejects", " tcp-request connection accept if { src 10.0.0.1 }\n tcp-request content reject if { src 10.0.0.1 }", "ip_filter: {deny: [10.0.0.1]}"},
		{"nobody", " tcp-request connection reject", "ip_filter: {deny: [0.0.0.0/0, '::/0']}"},
	} {
		doc, report, entries := site(t, streamFront+test.lines+back)
		if !strings.Contains(doc, test.document) {
			t.Errorf("%s: no %s in\n%s", test.name, test.document, doc)
		}
		for text, e := range entries {
			if strings.HasPrefix(text, "tcp-request") && (e.Verdict != importer.Same || len(e.Became) == 0) {
				t.Errorf("%s: got %+v", test.name, e)
			}
		}
		if len(report.Check) > 0 {
			t.Errorf("%s: got %q", test.name, report.Check)
		}
	}
}

// What is said by addresses in front of HTTP is said of its routes.
func TestClientsThatTCPRulesRejectAreFilteredInFrontOfHTTP(t *testing.T) {
	t.Parallel()
	doc, _, entries := site(t, "frontend f\n bind :80\n tcp-request connection reject if { src 10.0.0.0/8 }\n http-request deny if !{ src 10.0.0.0/7 }\n default_backend a\n")
	if !strings.Contains(doc, "ip_filter: {allow: [11.0.0.0/8]}") {
		t.Errorf("got\n%s", doc)
	}
	if e := entries["tcp-request connection reject if { src 10.0.0.0/8 }"]; e.Verdict != importer.Close || len(e.Became) == 0 {
		t.Errorf("got %+v", e)
	}
}

func TestARuleThatRejectsAndIsLostIsToLookAt(t *testing.T) {
	t.Parallel()
	for _, front := range []string{streamFront, "frontend f\n bind :80\n default_backend a\n"} {
		_, report, entries := site(t, front+" tcp-request content reject if { src_conn_rate gt 3 }\nbackend d\n mode tcp\n server s 127.0.0.1:3\n")
		if e := entries["tcp-request content reject if { src_conn_rate gt 3 }"]; e.Verdict != importer.Impossible || !strings.Contains(strings.Join(report.Check, "\n"), "what it protects is open") {
			t.Errorf("got %+v, %q", e, report.Check)
		}
	}
}

func TestServersOfTCPHaveTheTimesOfTheirBackend(t *testing.T) {
	t.Parallel()
	doc, report, entries := site(t, streamFront+"backend d\n mode tcp\n timeout connect 7s\n server s 127.0.0.1:3\n server late 127.0.0.1:4 backup\n")
	if !strings.Contains(doc, "connect_timeout: 7s") || !strings.Contains(doc, "load_balancing: first") || len(report.Check) > 0 || entries["server late 127.0.0.1:4 backup"].Verdict != importer.Same {
		t.Errorf("got\n%s%q", doc, report.Check)
	}
	doc, report, entries = site(t, streamFront+"backend d\n mode tcp\n server s 127.0.0.1:3\n server t 127.0.0.1:5\n server late 127.0.0.1:4 backup\n")
	if strings.Contains(doc, "127.0.0.1:4") || len(report.Check) != 1 || entries["server late 127.0.0.1:4 backup"].Verdict != importer.Impossible {
		t.Errorf("got\n%s%q", doc, report.Check)
	}
}

func TestHealthChecksExpectWhatHAProxyDoes(t *testing.T) {
	t.Parallel()
	for expect, want := range map[string]string{
		"status 200-299": "status: 200-299", "rstatus ^[23][0-9][0-9]$": "status: 200-399", "rstatus 404|^2": "status: 200-299,404",
		"string a.b": `body: a\.b`, "rstring ^ok": "body: ^ok", "! string err": "", "fhdr name x": "",
	} {
		doc, _, entries := site(t, "frontend f\n bind :80\n default_backend c\nbackend c\n option httpchk GET /h\n http-check expect "+expect+"\n server s 127.0.0.1:3 check\n")
		e := entries["http-check expect "+expect]
		if want == "" && e.Verdict != importer.Impossible || want != "" && (e.Verdict != importer.Same || !strings.Contains(doc, want)) {
			t.Errorf("%s: got %+v of\n%s", expect, e, doc)
		}
	}
}

func TestATimeFromTheEnvironmentHasItsDefault(t *testing.T) {
	t.Parallel()
	doc, _, _ := site(t, "frontend f\n bind :80\n default_backend c\nbackend c\n timeout connect \"${X-5s}\"\n server s 127.0.0.1:3 maxconn \"${N-100}\"\n")
	if !strings.Contains(doc, "connect: 5s") || !strings.Contains(doc, "max_requests: 100") {
		t.Errorf("got\n%s", doc)
	}
}

// A client has to pass every line that denies: what two lists let in is what they have in
// common.
func TestLinesThatDenyAllOthersIntersect(t *testing.T) {
	t.Parallel()
	const f, back = "frontend f\n bind :80\n", " default_backend a\n"
	for _, test := range []struct{ name, source, document string }{
		{"one list within the other", f + " http-request deny unless { src 10.0.0.0/8 }\n http-request deny unless { src 10.1.0.0/16 192.0.2.1 }\n" + back, "ip_filter: {allow: [10.1.0.0/16]}"},
		{"nothing in common", f + " http-request deny unless { src 10.0.0.0/8 }\n http-request deny unless { src 192.0.2.0/24 }\n" + back, "ip_filter: {deny: [0.0.0.0/0, '::/0']}"},
		{"of named ACLs in one line", f + " acl one src 10.0.0.0/8 192.0.2.0/24\n acl two src 192.0.2.7 198.51.100.0/24\n http-request deny if !one || !two\n" + back, "ip_filter: {allow: [192.0.2.7]}"},
		{"of the frontend and its backend", f + " http-request deny unless { src 10.0.0.0/8 }\n default_backend c\nbackend c\n http-request deny unless { src 10.1.0.0/16 192.0.2.1 }\n server s 127.0.0.1:3\n", "ip_filter: {allow: [10.1.0.0/16]}"},
		{"twice the same", f + " http-request deny unless { src 10.0.0.0/8 192.0.2.1 }\n http-request deny unless { src 192.0.2.1 10.0.0.0/8 }\n" + back, "ip_filter: {allow: [10.0.0.0/8, 192.0.2.1]}"},
		{"one line with two networks", f + " http-request deny if !{ src 10.0.0.0/8 } !{ src 192.0.2.1 }\n" + back, "ip_filter: {allow: [10.0.0.0/8, 192.0.2.1]}"},
		{"no client is left, and one is denied", f + " http-request deny unless { src 10.0.0.0/8 }\n http-request deny unless { src 192.0.2.0/24 }\n http-request deny if { src 203.0.113.1 }\n" + back, "ip_filter: {deny: [0.0.0.0/0, '::/0']}"},
	} {
		if doc, _, _ := site(t, test.source); !strings.Contains(doc, test.document) {
			t.Errorf("%s: no %s in\n%s", test.name, test.document, doc)
		}
	}
}

// A connection that is accepted because of what it speaks passes the reject behind it only
// where the port lets in nothing that speaks otherwise.
func TestAcceptedProtocolsDoNotOpenAPort(t *testing.T) {
	t.Parallel()
	const (
		http   = "frontend f\n bind :80\n default_backend a\n"
		named  = "frontend f\n mode tcp\n bind :443\n use_backend d if { req_ssl_sni -i d.example.com }\n"
		back   = "\nbackend d\n mode tcp\n server s 127.0.0.1:3\n"
		wait   = " tcp-request inspect-delay 5s\n"
		reject = " tcp-request content reject\n"
		hello  = "tcp-request content accept if { req_ssl_hello_type 1 }"
		closed = "ip_filter: {deny: [0.0.0.0/0, '::/0']}"
	)
	for _, test := range []struct {
		name, front, accept, rest string
		want                      importer.Verdict
		document                  string // the filter, "" for none
	}{
		{"TLS where names in TLS choose", named + wait, hello, reject, importer.Ignored, ""},
		{"TLS, for which HAProxy does not wait", named, hello, reject, importer.Impossible, closed},
		{"TLS by the name of an ACL", named + wait + " acl tls req.ssl_hello_type 1\n", "tcp-request content accept if tls", reject, importer.Ignored, ""},
		{"any name in TLS", named + wait, "tcp-request content accept if { req.ssl_sni -m found }", reject, importer.Ignored, ""},
		{"TLS, or HTTP", named + wait, "tcp-request content accept if { req_ssl_hello_type 1 } || HTTP", reject, importer.Ignored, ""},
		{"HTTP in front of HTTP", http + wait, "tcp-request content accept if HTTP", reject, importer.Ignored, ""},
		{"TLS on a port that passes everything on", streamFront + wait, hello, reject, importer.Impossible, closed},
		{"HTTP on a port that passes everything on", streamFront + wait, "tcp-request content accept if HTTP", reject, importer.Impossible, closed},
		{"TLS in front of HTTP", http + wait, hello, reject, importer.Impossible, closed},
		{"TLS of an office", named + wait, "tcp-request content accept if { req_ssl_hello_type 1 } { src 10.0.0.0/8 }", reject, importer.Impossible, closed},
		{"all but TLS", named + wait, "tcp-request content accept unless { req_ssl_hello_type 1 }", reject, importer.Ignored, closed},
		{"another message of TLS", named + wait, "tcp-request content accept if { req_ssl_hello_type 2 }", reject, importer.Impossible, closed},
		{"TLS, and a network is rejected", named + wait, hello, " tcp-request content reject if { src 10.0.0.0/8 }\n", importer.Ignored, ""},
		{"TLS, after a network is rejected", named + wait + " tcp-request content reject if { src 10.0.0.0/8 }\n", hello, reject, importer.Ignored, "ip_filter: {deny: [10.0.0.0/8]}"},
		{"all but TLS is rejected where names choose", named, "tcp-request content reject if !{ req_ssl_hello_type 1 }", "", importer.Ignored, ""},
		{"all but HTTP is rejected in front of HTTP", http, "tcp-request content reject unless HTTP", "", importer.Ignored, ""},
		{"all but HTTP is rejected on a port that passes everything on", streamFront, "tcp-request content reject if !HTTP", "", importer.Impossible, ""},
		{"nothing is rejected", streamFront, hello, "", importer.Ignored, ""},
	} {
		doc, report, entries := site(t, test.front+" "+test.accept+"\n"+test.rest+back)
		if e := entries[test.accept]; e.Verdict != test.want {
			t.Errorf("%s: got %+v", test.name, e)
		}
		if test.document == "" && strings.Contains(doc, "ip_filter") || !strings.Contains(doc, test.document) {
			t.Errorf("%s: want %q in\n%s", test.name, test.document, doc)
		}
		if look := strings.Contains(strings.Join(report.Check, "\n"), test.accept); look != (test.want == importer.Impossible) {
			t.Errorf("%s: look at %q", test.name, report.Check)
		}
	}
}
