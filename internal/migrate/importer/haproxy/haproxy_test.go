package haproxy

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// site imports a configuration of one frontend and returns the document and what became
// of each line.
func site(t *testing.T, s string, files ...string) (string, *importer.Report, map[string]importer.Entry) {
	t.Helper()
	doc, report, err := imported(append([]string{"/h.cfg", "defaults\n mode http\n" + s + "\nbackend a\n server a 127.0.0.1:1\nbackend b\n server b 127.0.0.1:2\n"}, files...)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("x.yaml", doc); len(problems) > 0 {
		t.Errorf("%v\n%s", problems, doc)
	}
	entries := map[string]importer.Entry{}
	for _, e := range report.Entries {
		entries[e.Directive] = e
	}
	return string(doc), report, entries
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	const f = "frontend f\n bind :80\n default_backend a\n "
	for _, test := range []struct {
		name, source, line string
		want               importer.Verdict
		document           string // a part of it
	}{
		{"whole segments by an expression", f + "use_backend b if { path_reg ^/api(/|$) }", "use_backend b if { path_reg ^/api(/|$) }", importer.Same, "path: /api"},
		{"a prefix of letters", f + "use_backend b if { path_beg /api }", "use_backend b if { path_beg /api }", importer.Close, "path: /api"},
		{"an exact path", f + "use_backend b if { path /api }", "use_backend b if { path /api }", importer.Close, "path: /api"},
		{"the end of a path", f + "use_backend b if { path_end .php }", "use_backend b if { path_end .php }", importer.Impossible, ""},
		{"a method", f + "use_backend b if METH_POST", "use_backend b if METH_POST", importer.Same, "methods: [POST]"},
		{"a header that is there", f + "use_backend b if { hdr(X-A) -m found }", "use_backend b if { hdr(X-A) -m found }", importer.Same, "- {name: X-A}"},
		{"the client's address", f + "use_backend b if { src 10.0.0.0/8 }", "use_backend b if { src 10.0.0.0/8 }", importer.Impossible, ""},
		{"only an office", f + "http-request deny if !{ src 10.0.0.0/8 }", "http-request deny if !{ src 10.0.0.0/8 }", importer.Same, "ip_filter: {allow: [10.0.0.0/8]}"},
		{"deny by a list", f + "http-request deny if { src -f bad.lst }", "http-request deny if { src -f bad.lst }", importer.Same, "file: /bad.lst"},
		{"an expression that RE2 lacks", f + "use_backend b if { hdr_reg(X-A) (?!x) }", `use_backend b if { hdr_reg(X-A) (?!x) }`, importer.Impossible, ""},
		{"a rate", f + "stick-table type ip size 1k store http_req_rate(1m)\n http-request track-sc0 src\n http-request deny if { sc_http_req_rate(0) gt 60 }", "http-request deny if { sc_http_req_rate(0) gt 60 }", importer.Close, "rate_limit: {requests: 60, period: 1m}"},
		{"a rate that nobody counts", f + "http-request deny if { sc_http_req_rate(0) gt 60 }", "http-request deny if { sc_http_req_rate(0) gt 60 }", importer.Impossible, ""},
		{"a redirect with a variable", f + "http-request redirect location https://%[hdr(host)]/x code 301", "http-request redirect location https://%[hdr(host)]/x code 301", importer.Same, "target: 'https://{authority}/x?'"},
		{"an unknown variable", f + "http-request set-header X-A %[rand]", "http-request set-header X-A %[rand]", importer.Impossible, ""},
		{"braces stay braces", f + `http-request set-header X-A '{"a":1}'`, `http-request set-header X-A "{"a":1}"`, importer.Same, `value: '{{"a":1}'`},
		{"a fixed Host", f + "http-request set-header Host a.example.com", "http-request set-header Host a.example.com", importer.Same, "host_header: a.example.com"},
		{"an option of all servers and one of its own", "frontend f\n bind :80\n default_backend c\nbackend c\n default-server weight 10\n server s 127.0.0.1:3 weight 20", "server s 127.0.0.1:3 weight 20", importer.Same, "{url: 'http://127.0.0.1:3', weight: 20}"},
		{"an option of the servers behind it", "frontend f\n bind :80\n default_backend c\nbackend c\n server s 127.0.0.1:3\n default-server ssl verify none\n server t 127.0.0.1:4 no-ssl", "server t 127.0.0.1:4 no-ssl", importer.Same, "- {url: 'http://127.0.0.1:3'}\n          - {url: 'http://127.0.0.1:4'}"},
		{"a connection's header", f + "http-request set-header Connection upgrade\n http-request set-header Upgrade %[req.hdr(upgrade)]", "http-request set-header Upgrade %[req.hdr(upgrade)]", importer.Close, "servers"},
		{"the framing of messages", f + "http-request set-header Content-Length 0", "http-request set-header Content-Length 0", importer.Impossible, "servers"},
		{"a connection's header of responses", f + "http-response set-header Connection close", "http-response set-header Connection close", importer.Close, "servers"},
		{"the time of servers", f + "timeout server 3s", "timeout server 3s", importer.Ignored, ""},
		{"Lua", f + "http-request lua.x", "http-request lua.x", importer.Impossible, ""},
		{"an unknown line", f + "frobnicate on", "frobnicate on", importer.Impossible, ""},
		{"a name in another branch", f + ".if 0\n use_backend b\n .endif", "use_backend b", importer.Ignored, ""},
		{"a secret is not told", f + "stats auth me:hush", "stats auth …", importer.Ignored, ""},
		{"a backend that is not there", f + "use_backend c if METH_POST", "use_backend c if METH_POST", importer.Impossible, ""},
		{"a variable with a host", f + "http-request set-var(txn.h) hdr(host),field(1,:),lower\n use_backend b if { var(txn.h) b.example.com }", "use_backend b if { var(txn.h) b.example.com }", importer.Same, "virtual_hosts: [b.example.com]"},
		{"names in TLS", "frontend t\n mode tcp\n bind :443\n use_backend b if { req.ssl_sni -i b.example.com }", "use_backend b if { req.ssl_sni -i b.example.com }", importer.Same, "sni: [b.example.com]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, _, entries := site(t, test.source, "/bad.lst", "# bad\n192.0.2.0/24\n")
			e, ok := entries[test.line]
			if !ok {
				t.Fatalf("no entry for %q in %v", test.line, entries)
			}
			if e.Verdict != test.want {
				t.Errorf("got %s (%s), want %s", e.Verdict, e.Note, test.want)
			}
			if (e.Verdict == importer.Impossible || e.Verdict == importer.Ignored) && e.Note == "" {
				t.Error("no reason is given")
			}
			if !strings.Contains(doc, test.document) {
				t.Errorf("the document has no %q:\n%s", test.document, doc)
			}
		})
	}
}

// TestRulesInOrderBecomeRoutes holds that the first rule wins, also where a later one is
// more exact.
func TestRulesInOrderBecomeRoutes(t *testing.T) {
	t.Parallel()
	doc, report, _ := site(t, `frontend f
 bind :80
 use_backend b if METH_POST
 use_backend a if { path_reg ^/api(/|$) }
 http-request deny if { path_reg ^/api/x(/|$) } !METH_PUT
 default_backend b`)
	for _, want := range []string{"path: /api\n        matchers:\n          methods: [POST]\n        servers:\n          - {url: 'http://127.0.0.1:2'}",
		"path: /api/x\n        fixed_response: {status: 403}", "path: /api/x\n        matchers:\n          methods: [PUT]\n        servers:\n          - {url: 'http://127.0.0.1:1'}"} {
		if !strings.Contains(doc, want) {
			t.Errorf("the document has no\n%s\nin\n%s", want, doc)
		}
	}
	if len(report.Check) > 0 {
		t.Errorf("got %q to look at", report.Check)
	}
}

// TestWhatProtectsIsToldWhereItIsLost holds that nobody finds out by an open door that a
// rule could not be translated, and that routes that cannot be told apart are no "same".
func TestWhatProtectsIsToldWhereItIsLost(t *testing.T) {
	t.Parallel()
	_, report, entries := site(t, `frontend f
 bind :80
 http-request deny if { path_end .php }
 use_backend b if { hdr_reg(X-A) ^1 }
 use_backend a if { hdr_reg(X-A) 2$ }
 use_backend a if { hdr(X-B) -m found }
 use_backend b if { hdr(X-C) -m found }`)
	all := strings.Join(report.Check, "\n")
	if !strings.Contains(all, "what it protects is open") || !strings.Contains(all, "cannot distinguish it from") {
		t.Errorf("got\n%s", all)
	}
	if e := entries["use_backend a if { hdr_reg(X-A) 2$ }"]; e.Verdict != importer.Impossible || !strings.Contains(e.Note, "cannot distinguish them") {
		t.Errorf("got %s (%s) for a route that was left out", e.Verdict, e.Note)
	}
}

func TestBadInputHasItsPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ source, want string }{
		{"", "no frontend"}, {"bind :80", "/h.cfg:1: bind is outside of a section"}, {"frontend a\n acl x path \"/a", "/h.cfg:2: a quote is not closed"},
		{"frontend a\n bind \x00", "/h.cfg: not a text"}, {"global\n.if 1\n", "/h.cfg:2: .if without .endif"}, {".else", "/h.cfg:1: .else without .if"},
		{strings.Repeat(".if 1\n", 100), "nested"}, {"frontend a\n acl " + strings.Repeat("x ", 5000), "more than 1000 words"},
	} {
		_, _, err := imported("/h.cfg", test.source)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %s", test.source[:min(40, len(test.source))], err, test.want)
		}
	}
}

func FuzzImport(f *testing.F) {
	data, err := os.ReadFile("testdata/usual.cfg")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("frontend a\n mode http\n bind :80\n acl x hdr(host) -i a b\n use_backend %[path,map(x,y)] if x !{ src 1.1.1.1 } || { method GET }\nbackend y\n server y unix@/x")
	f.Add("listen a\n mode tcp\n bind :1 ssl crt x\n use_backend b if { req.ssl_sni -m end .x }\nbackend b\n server s 1.1.1.1:1 send-proxy check inter 1")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "insecure-password") {
			s = strings.ReplaceAll(s, "insecure-password", "password") // a hash takes 50 ms
		}
		doc, report, err := imported("/h.cfg", s, "/x", "a b\nc d\n")
		if err != nil {
			return
		}
		for _, e := range report.Entries {
			if e.Verdict == importer.Impossible && e.Note == "" {
				t.Errorf("no reason for %s", e.Directive)
			}
		}
		config.Load("x.yaml", doc) // must not panic
	})
}

var update = flag.Bool("update", false, "write the golden files again")

// imported reads configurations by name; the first is the main one.
func imported(files ...string) ([]byte, *importer.Report, error) {
	all := map[string][]byte{}
	for i := 0; i < len(files); i += 2 {
		all[files[i]] = []byte(files[i+1])
	}
	return Import([]string{files[0]}, importer.Given(all))
}

// TestAFolderIsReadInOrder holds that files of a folder are one configuration.
func TestAFolderIsReadInOrder(t *testing.T) {
	doc, _, err := Import([]string{"/etc/haproxy"}, importer.Given(map[string][]byte{
		"/etc/haproxy/10.cfg": []byte("defaults\n mode http\nbackend a\n server a 127.0.0.1:1\n"), "/etc/haproxy/20.cfg": []byte("frontend f\n bind :80\n default_backend a\n"), "/etc/haproxy/other": []byte("\x00"),
	}))
	if err != nil || !strings.Contains(string(doc), "http://127.0.0.1:1") {
		t.Errorf("%v\n%s", err, doc)
	}
}

// hashes are those of passwords, which have another salt each time.
var hashes = regexp.MustCompile(`\$argon2id\$[^}'"\s]+`)

func TestAUsualConfiguration(t *testing.T) {
	data, err := os.ReadFile("testdata/usual.cfg")
	if err != nil {
		t.Fatal(err)
	}
	doc, report, err := imported("/etc/haproxy/haproxy.cfg", string(data),
		"/etc/haproxy/hosts.map", "# host backend\nblog.example.com blog\nwww.blog.example.com blog\nlost.example.com lost\n",
		"/etc/haproxy/errors/503.http", "HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n<h1>Back soon</h1>\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("headgate.yaml", doc); len(problems) > 0 {
		t.Errorf("the document is not valid: %v", problems)
	}
	var b strings.Builder
	b.Write(hashes.ReplaceAll(doc, []byte("HASH")))
	b.WriteString("\n# ---- report ----\n")
	for _, e := range report.Entries {
		fmt.Fprintf(&b, "%d %s | %s | %s\n", e.Line, e.Verdict, e.Directive, e.Note)
	}
	for _, c := range report.Check {
		fmt.Fprintf(&b, "look at: %s\n", c)
	}
	const golden = "testdata/usual.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
