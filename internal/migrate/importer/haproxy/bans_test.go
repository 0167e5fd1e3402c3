package haproxy

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

// TestCountersBecomeBans holds that lines that refuse clients by what a stick-table counts
// of them become ban rules that observe, and never rules that do nothing without a word.
func TestCountersBecomeBans(t *testing.T) {
	t.Parallel()
	const f = "frontend f\n bind :80\n default_backend a\n "
	const table = "stick-table type ip size 1k expire 30m store http_err_rate(5m),gpc0\n http-request track-sc0 src\n "
	for _, test := range []struct {
		name, source, line string
		want               importer.Verdict
		document           string
	}{
		{"errors", f + table + "http-request deny if { sc_http_err_rate(0) gt 10 }", "http-request deny if { sc_http_err_rate(0) gt 10 }", importer.Close, "count: 11}"},
		{"errors over a time", f + table + "http-request deny if { sc0_http_err_rate ge 10 }", "http-request track-sc0 src", importer.Close, "within: 5m\n    ban: {first: 30m, factor: 1, max: 30m}\n    mode: observe\n"},
		{"errors but of an office", f + table + "http-request deny if { sc_http_err_rate(0) gt 10 } !{ src 10.0.0.0/8 }", "http-request deny if { sc_http_err_rate(0) gt 10 } !{ src 10.0.0.0/8 }", importer.Close, "exempt: [10.0.0.0/8]"},
		{"marks of paths", f + table + "http-request sc-inc-gpc0(0) if { path /wp-login.php }\n http-request deny if { sc_get_gpc0(0) gt 0 }", "http-request sc-inc-gpc0(0) if { path /wp-login.php }", importer.Close, "- {path: [/wp-login.php, /wp-login.php/*], count: 1}"},
		{"marks of statuses", f + table + "http-response sc-inc-gpc0(0) if { status 401 403 }\n http-request deny if { sc_get_gpc0(0) ge 5 }", "http-response sc-inc-gpc0(0) if { status 401 403 }", importer.Close, "- {status: [401, 403], count: 5}"},
		{"marks of what cannot be counted", f + table + "http-request sc-inc-gpc0(0) if { hdr(user-agent) -m sub bot }\n http-request deny if { sc_get_gpc0(0) gt 0 }", "http-request deny if { sc_get_gpc0(0) gt 0 }", importer.Impossible, ""},
		{"connections that are rejected", f + "stick-table type ip size 1k store http_err_rate(5m)\n tcp-request connection track-sc0 src\n tcp-request connection reject if { src_http_err_rate gt 10 }", "tcp-request connection reject if { src_http_err_rate gt 10 }", importer.Close, "answer: reject"},
		{"a counter that no table has", f + "http-request deny if { sc_http_err_rate(0) gt 10 }", "http-request deny if { sc_http_err_rate(0) gt 10 }", importer.Impossible, ""},
		{"a rate but for an office", f + "stick-table type ip size 1k store http_req_rate(1m)\n http-request track-sc0 src\n http-request deny if { sc_http_req_rate(0) gt 60 } !{ src 10.0.0.0/8 }", "http-request deny if { sc_http_req_rate(0) gt 60 } !{ src 10.0.0.0/8 }", importer.Close, "rate_limit: {requests: 60, period: 1m, exempt: [10.0.0.0/8]}"},
		{"a network but for a part of it", f + "http-request deny if { src 10.0.0.0/30 } !{ src 10.0.0.1 }", "http-request deny if { src 10.0.0.0/30 } !{ src 10.0.0.1 }", importer.Same, "ip_filter: {deny: [10.0.0.0, 10.0.0.2/31]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, report, entries := site(t, test.source)
			if e := entries[test.line]; e.Verdict != test.want {
				t.Errorf("%s is %q (%s), want %q", test.line, e.Verdict, e.Note, test.want)
			}
			if !strings.Contains(doc, test.document) {
				t.Errorf("the document has no %q:\n%s", test.document, doc)
			}
			if strings.Contains(doc, "bans:") && !strings.Contains(fmt.Sprint(report.Check), "nothing is refused before its mode is enforce") {
				t.Errorf("nothing says that the ban only observes: %v", report.Check)
			}
		})
	}
}

// TestListsOfAddressesStayInTheirFiles holds that a list of many addresses is read from its
// file, and one that no file of the machine has is written out.
func TestListsOfAddressesStayInTheirFiles(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&list, "198.18.%d.%d\n", i>>7, i<<1&255)
	}
	const source = "defaults\n mode http\nfrontend f\n bind :80\n acl bad src -f bad.lst\n http-request deny if bad\n default_backend a\nbackend a\n server a 127.0.0.1:1\n"
	doc, report, err := imported("/h.cfg", source, "/bad.lst", list.String())
	if err != nil || !strings.Contains(string(doc), "file: /bad.lst") || !strings.Contains(string(doc), "ip_filter: {deny: ['list:bad']}") {
		t.Errorf("%v\n%.2000s", err, doc)
	}
	if !strings.Contains(fmt.Sprint(report.Check), "lists.bad reads /bad.lst") {
		t.Errorf("%v", report.Check)
	}
	doc, _, err = imported("h.cfg", source, "bad.lst", list.String())
	if err != nil || !strings.Contains(string(doc), "entries: [198.18.0.0,") || !strings.Contains(string(doc), "ip_filter: {deny: ['list:bad']}") {
		t.Errorf("%v\n%.2000s", err, doc)
	}
}
