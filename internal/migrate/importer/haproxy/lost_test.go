package haproxy

import (
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

// Issue 34, B: of two lines that a route can have one of, the second one was written over
// the first, and both were called the same.
func TestASecondRateOrUserlistIsALineToLookAt(t *testing.T) {
	t.Parallel()
	const f = "frontend f\n bind :80\n default_backend a\n "
	for name, test := range map[string]struct{ source, lost, kept string }{
		"rates": {f + "stick-table type ip size 1k store http_req_rate(1m)\n http-request track-sc0 src\n http-request deny if { sc_http_req_rate(0) gt 60 }\n http-request deny if { sc_http_req_rate(0) gt 900 }",
			"http-request deny if { sc_http_req_rate(0) gt 900 }", "rate_limit: {requests: 60, period: 1m}"},
		"users": {f + "http-request auth unless { http_auth(x) }\n http-request auth unless { http_auth(y) }\nuserlist x\n user ada insecure-password a\nuserlist y\n user bob insecure-password b",
			"http-request auth unless { http_auth(y) }", "name: ada"},
		"rewrites": {f + "http-request set-path /x%[path]\n http-request replace-path /a(.*) /b\\1", `http-request replace-path /a(.*) /b\1`, "replacement: /x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, report, entries := site(t, test.source)
			if e := entries[test.lost]; e.Verdict != importer.Impossible {
				t.Errorf("%s is %s: %s", test.lost, e.Verdict, e.Note)
			}
			if all := strings.Join(report.Check, "\n"); !strings.Contains(all, test.lost) {
				t.Errorf("nobody is told of it: %s", all)
			}
			if !strings.Contains(doc, test.kept) {
				t.Errorf("the document has no %q:\n%s", test.kept, doc)
			}
		})
	}
}

func TestLinesThatNothingCameOfAreNotTheSame(t *testing.T) {
	t.Parallel()
	const f = "frontend f\n bind :80\n default_backend a\n "
	for name, test := range map[string]struct {
		source, line string
		want         importer.Verdict
		check        string
	}{
		"behind a map that decides":           {"frontend f\n bind :80\n use_backend %[hdr(host),map(hosts.map)]\n use_backend b if { hdr(host) b.example.com }\n default_backend a", "use_backend b if { hdr(host) b.example.com }", importer.Ignored, ""},
		"an acl that no line names":           {f + "acl x path_reg ^/x(/|$)", "acl x path_reg ^/x(/|$)", importer.Ignored, ""},
		"a check of no server":                {f + "\nbackend c\n option httpchk GET /\n server c 127.0.0.1:3\nfrontend g\n bind :81\n default_backend c", "option httpchk GET /", importer.Ignored, ""},
		"what a database is asked":            {"listen r\n mode tcp\n bind :6379\n option tcp-check\n tcp-check expect string role:master\n server r 127.0.0.1:3 check", "tcp-check expect string role:master", importer.Impossible, "keeps servers away"},
		"a redirect of all paths to one":      {f + "http-request redirect location /start", "http-request redirect location /start", importer.Close, ""},
		"a redirect where TLS ends elsewhere": {f + "http-request redirect scheme https unless { ssl_fc }", "http-request redirect scheme https unless { ssl_fc }", importer.Close, ""},
		"an error with a text":                {f + "http-error status 404 content-type text/plain string gone", "http-error status 404 content-type text/plain string gone", importer.Impossible, ""},
		"a header of a stream":                {f + "\nfrontend g\n mode tcp\n bind :81\n http-request set-header x-name x\n default_backend a", "http-request set-header x-name x", importer.Impossible, ""},
		"a header whose name has a colon":     {f + "http-request set-header X-Forwarded-Scheme: http", "http-request set-header X-Forwarded-Scheme: http", importer.Impossible, ""},
		"a response header without a name":    {f + "http-response set-header X(A) b", "http-response set-header X(A) b", importer.Impossible, ""},
		"a prefix that keeps out":             {f + "http-request deny if { path_beg /admin }", "http-request deny if { path_beg /admin }", importer.Close, "/adminx is not below /admin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report, entries := site(t, test.source, "/hosts.map", "c.example.com a\n")
			if e := entries[test.line]; e.Verdict != test.want || strings.Contains(e.Note, "does not know") {
				t.Errorf("got %s (%s), want %s", e.Verdict, e.Note, test.want)
			}
			if all := strings.Join(report.Check, "\n"); !strings.Contains(all, test.check) {
				t.Errorf("no %q to look at in %s", test.check, all)
			}
		})
	}
}

func TestWhatTheDocumentGets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source string
		want   []string
	}{
		"crt-base":                              {"global\n crt-base /etc/ssl/private\nfrontend f\n bind :443 ssl crt a.pem\n default_backend a", []string{"cert_file: /etc/ssl/private/a.pem"}},
		"rules of defaults come first":          {"defaults d\n mode http\n http-request set-header X-First 1\nfrontend f from d\n bind :80\n http-request set-header X-Second 2\n default_backend a", []string{"X-First, value: \"1\"}\n          - {direction: request, name: X-Second"}},
		"no TLS":                                {"frontend f\n bind :80\n default_backend c\nbackend c\n server c 127.0.0.1:3 ssl verify none no-ssl", []string{"url: 'http://127.0.0.1:3'"}},
		"HTTP/2 without TLS":                    {"frontend f\n bind :80 proto h2\n default_backend a", []string{"h2c: true"}},
		"spaces around a header":                {"frontend f\n bind :80\n http-request set-header X-A \" b \"\n default_backend a", []string{"name: X-A, value: b}"}},
		"a redirect alone":                      {"frontend f\n bind :80\n http-request redirect scheme https code 301 unless { ssl_fc }\n default_backend a", []string{"target: 'https://{host}{path}'", "status: 301"}},
		"checks by connecting":                  {"frontend f\n bind :80\n default_backend c\nbackend c\n server c 127.0.0.1:3 check inter 7s", []string{"health_check:\n          interval: 7s"}},
		"name servers":                          {"resolvers dns\n nameserver one 10.0.0.2:53\nfrontend f\n bind :80\n default_backend c\nbackend c\n server c c.internal:3 resolvers dns", []string{"resolvers: ['10.0.0.2:53']"}},
		"no retry":                              {"frontend f\n bind :80\n retries 0\n default_backend c\nbackend c\n retries 0\n server c 127.0.0.1:3", []string{"retry: {attempts: 1}"}},
		"cookies of two backends with one name": {"frontend f\n bind :80\n default_backend c\nfrontend g\n bind :81\n default_backend d\nbackend c\n cookie S insert\n server c 127.0.0.1:3 cookie c\nbackend d\n cookie S insert\n server d 127.0.0.1:4 cookie d", []string{"sticky_cookie: {name: S}", "sticky_cookie: {name: S-d}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, _, _ := site(t, test.source)
			for _, want := range test.want {
				if !strings.Contains(doc, want) {
					t.Errorf("the document has no %q:\n%s", want, doc)
				}
			}
		})
	}
}

// A response of its own may not have the fields of connections, and the page of monitor-uri
// is not cached.
func TestFieldsOfOwnResponses(t *testing.T) {
	t.Parallel()
	doc, _, entries := site(t, "frontend f\n bind :80\n monitor-uri /up\n http-request return status 200 hdr connection upgrade hdr X-Own on-time if { path /own }\n default_backend a\n")
	for _, want := range []string{"{direction: response, name: X-Own, value: on-time}", "{direction: response, name: Cache-Control, value: no-cache}"} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %s in\n%s", want, doc)
		}
	}
	if strings.Contains(doc, "connection") {
		t.Errorf("a rule for Connection in\n%s", doc)
	}
	const line = "http-request return status 200 hdr connection upgrade hdr X-Own on-time if { path /own }"
	if e := entries[line]; e.Verdict != importer.Close || !strings.Contains(e.Note, "connection is left out") {
		t.Errorf("%s is %s: %s", line, e.Verdict, e.Note)
	}
}
