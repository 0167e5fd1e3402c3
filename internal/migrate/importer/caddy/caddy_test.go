package caddy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// imported writes a Caddyfile, and files beside it, and imports it.
func imported(t *testing.T, text string, beside ...string) (string, *importer.Report, error) {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(beside); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, beside[i]), []byte(beside[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data, report, err := Import([]string{name}, importer.Files{})
	return string(data), report, err
}

// accepted imports a Caddyfile and fails where the document is not valid.
func accepted(t *testing.T, text string, beside ...string) (string, *importer.Report) {
	t.Helper()
	got, report, err := imported(t, text, beside...)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("headgate.yaml", []byte(got)); len(problems) > 0 {
		t.Errorf("not valid: %v\n%s", problems, got)
	}
	for _, e := range report.Entries {
		if e.Line == 0 || e.File == "" || e.Verdict == "" || e.Verdict == importer.Impossible && e.Note == "" {
			t.Errorf("an entry without place, verdict or reason: %+v", e)
		}
	}
	return strings.NewReplacer("'", "", `"`, "").Replace(got), report
}

func expectLines(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

const caddyfile = `
{
	email ada@example.com
	log {
		output stdout
	}
}

(secure) {
	header {
		Strict-Transport-Security "max-age=31536000"
		-Server
		?X-Frame-Options {args[0]}
	}
}

shop.example.com, www.shop.example.com {
	import secure DENY
	encode zstd gzip
	# a comment
	handle_path /api/* {
		reverse_proxy 10.0.0.1:3000 10.0.0.2:3000 {
			lb_policy least_conn
			health_uri /up
			health_interval 5s
			header_up X-Real-IP {remote_host}
			header_up Host {upstream_hostport}
		}
	}
	handle /admin* {
		basic_auth {
			ada $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
		}
		reverse_proxy https://10.0.0.3 {
			transport http {
				tls_insecure_skip_verify
			}
		}
	}
	@static path /css/* /js/*
	handle @static {
		reverse_proxy cdn:8080
	}
	@post not method GET
	handle @post {
		reverse_proxy other:1
	}
	redir /old /new permanent
	handle {
		reverse_proxy h2c://10.0.0.4:9000
	}
	log
}

http://plain.example.com {
	respond /health 200
	respond "hello {host}" 203
}

old.example.com {
	redir https://new.example.com{uri} 301
}

files.example.com {
	root * /srv
	file_server
}

*.wild.example.com {
	tls /certs/a.pem /certs/a.key
	forward_auth authelia:9091 {
		uri /api/authz/forward-auth
		copy_headers Remote-User Remote-Groups
	}
	reverse_proxy localhost:8080
	request_body {
		max_size 10MB
	}
	nonsense here
}

:8080 {
	reverse_proxy 127.0.0.1:1
}
`

func TestCaddyfile(t *testing.T) {
	got, report := accepted(t, caddyfile)
	expectLines(t, got,
		"web: {address: 0.0.0.0:80, protocol: http}", "websecure: {address: 0.0.0.0:443, protocol: https}", "quic: {address: 0.0.0.0:443, protocol: http3}", "web-8080: {address: 0.0.0.0:8080, protocol: http}",
		"main:\n    directory: letsencrypt\n    email: ada@example.com", "cert_file: /certs/a.pem",
		"virtual_hosts: [shop.example.com, www.shop.example.com]\n    redirect_http_to_https: true\n    acme: main\n    ports: [quic, web, websecure]",
		"name: Strict-Transport-Security, value: max-age=31536000", "operation: remove", "operation: set_if_absent, name: X-Frame-Options, value: DENY", "compression: {enabled: true}",
		"path: /api\n", "strip_prefix: true", "url: http://10.0.0.2:3000", "host_header: upstream", "load_balancing: least_connections", "health_check:\n          path: /up\n          interval: 5s", "value: {client_ip}",
		"path: /admin\n        basic_auth:", "name: ada", "url: https://10.0.0.3:443, tls: {insecure_skip_verify: true}",
		"path: /css\n", "path: /js\n", "url: h2c://10.0.0.4:9000", "regex: (?i)^/old$, target: /new?, status: 301", "http://other:1", "methods: [GET]",
		"path: /health\n        fixed_response: {status: 200}", "status: 203, body: hello {host}", "target: https://new.example.com{path}, status: 301",
		"virtual_hosts: [*.wild.example.com]", "url: http://authelia:9091/api/authz/forward-auth", "response_headers: [Remote-User, Remote-Groups]", "request_body_limit: 10000000B")
	check := strings.Join(report.Check, "\n")
	expectLines(t, check, "nonsense here was left out")
	told := fmt.Sprint(report.Entries)
	expectLines(t, told, "nonsense here", "/adminx does not reach it", "/index.html does not redirect to /")
	expectLines(t, got, "files: {root: /srv}")
	if strings.Contains(told, "$2a$14") {
		t.Error("a hash is in the report")
	}
}

func TestImportsAndForms(t *testing.T) {
	got, _ := accepted(t, "import sites/*.conf\nimport one.conf\n", "one.conf", "one.example.com {\n\treverse_proxy {$BACKEND:localhost}:80 127.0.0.1:7\n}\n")
	expectLines(t, got, "one.example.com", "url: http://127.0.0.1:7")
	got, _ = accepted(t, "bare.example.com\nreverse_proxy 127.0.0.1:1\nencode gzip\n")
	expectLines(t, got, "virtual_hosts: [bare.example.com]", "url: http://127.0.0.1:1", "compression")
	got, _ = accepted(t, "a.example.com {\n\trespond <<TEXT\n\t\thello\n\t\tthere\n\t\tTEXT 201\n}\n")
	expectLines(t, got, "status: 201", "there")
	got, _ = accepted(t, "a.example.com,\nb.example.com {\n\treverse_proxy `127.0.0.1:1` \\\n\t\t127.0.0.1:2\n}\n")
	expectLines(t, got, "[a.example.com, b.example.com]", "127.0.0.1:2")
}

func TestWhatCannotBeRead(t *testing.T) {
	laughs := "x.example.com {\n\timport l0\n}\n"
	for i := range 25 {
		laughs += fmt.Sprintf("(l%d) {\n\timport l%d\n\timport l%d\n}\n", i, i+1, i+1)
	}
	laughs += "(l25) {\n\tencode gzip\n}\n"
	circle := "(a) {\n\timport b\n}\n(b) {\n\timport a\n}\nx.example.com {\n\timport a\n}\n"
	for name, c := range map[string]struct{ text, want string }{
		"binary":         {"\x00", "not a text"},
		"open":           {"a {\n", "not closed"},
		"closed":         {"a {\n}\n}\n", ":3: a } closes nothing"},
		"quote":          {"a {\n\trespond \"x\n}\n", ":2: a text is not closed"},
		"heredoc":        {"a {\n\trespond <<X\n}\n", ":2:"},
		"deep":           {strings.Repeat("a {\n", 100), "nested too deep"},
		"circle":         {circle, "circle"},
		"self":           {"import Caddyfile\n", "without end"},
		"laughs":         {laughs, "imports put in more"},
		"empty":          {"", "no site"},
		"other json":     {`{"apps": {"http": {}}}`, "nothing of Caddy's HTTP server"},
		"truncated json": {"{\"apps\":\n{\"http\": {\"servers\"", ":2: the file ends inside"},
		"broken json":    {"{\"apps\":\n{\"http\" 1", ":2: invalid character"},
		"two json":       {"{\"a\": 1}\n{}", ":2: something follows"},
		"deep json":      {`{"a":` + strings.Repeat("[", 500), "nested too deep"},
	} {
		if _, _, err := imported(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Snippets that import each other are read as deep as the bound, whose last line may be
// one without a block.
func TestSnippetsAreReadToTheBound(t *testing.T) {
	for deep := range 50 {
		text := "x.example.com {\n\timport s0\n}\n"
		for i := range deep {
			text += fmt.Sprintf("(s%d) {\n\timport s%d\n}\n", i, i+1)
		}
		text += fmt.Sprintf("(s%d) {\n\trespond ok\n}\n", deep)
		_, _, err := imported(t, text)
		if told := err != nil && strings.Contains(err.Error(), "circle"); told != (deep >= 31) {
			t.Errorf("%d deep: %v", deep, err)
		}
	}
}

// adapted is what "caddy adapt --pretty" made of the Caddyfile of the tests with Caddy.
func adapted(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/adapted.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every key of Caddy's JSON has a verdict, at its own line, and secrets are not told.
func TestJSON(t *testing.T) {
	text := string(adapted(t))
	got, report := accepted(t, text)
	expectLines(t, got, "web-8080: {address: 127.0.0.1:8080, protocol: http}", "virtual_hosts: [shop.example.com, www.shop.example.com]", "methods: [POST, PUT]", "host_header: fixed.example.com", "strip_prefix: true",
		"regex: ^/api, replacement: ", "url: http://127.0.0.1:9000/check", "response_headers: [X-Who]", "ip_filter: {allow: [192.0.2.0/24]}", "target: https://new.example.com{path}, status: 301")
	if strings.Contains(fmt.Sprint(report.Entries), "$2a$04") {
		t.Error("a hash is in the report")
	}
	lines := strings.Split(text, "\n")
	for _, e := range report.Entries {
		name := e.Directive[:strings.Index(e.Directive, ": ")]
		name = name[strings.LastIndexByte(name, '.')+1:]
		if _, value, _ := strings.Cut(e.Directive, ": "); value != "…" && !strings.Contains(lines[e.Line-1], name) && !strings.Contains(strings.ReplaceAll(lines[e.Line-1], `\u003c`, "<"), value) {
			t.Errorf("%s is not on line %d: %s", e.Directive, e.Line, lines[e.Line-1])
		}
	}
	for _, e := range report.Entries {
		if e.Verdict == importer.Impossible {
			t.Errorf("%+v", e)
		}
	}
}

// A Caddy that runs is asked at its admin address.
func TestFromAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/config/" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Write(adapted(t))
	}))
	defer server.Close()
	doc, report, err := FromAPI(t.Context(), server.Client(), server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	expectLines(t, string(doc), "virtual_hosts: [shop.example.com, www.shop.example.com]")
	if report.Entries[0].File != server.URL+"/config/" {
		t.Errorf("got %+v", report.Entries[0])
	}
	if _, _, err := FromAPI(t.Context(), server.Client(), "127.0.0.1:2019", ""); err == nil || !strings.Contains(err.Error(), "invalid address") {
		t.Errorf("got %v", err)
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(caddyfile))
	f.Add(adapted(f))
	f.Add([]byte("(a) {\nimport a\n}\nb {\nimport a\n}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{read: func(string) ([]byte, error) { return data, nil }, glob: func(string) ([]string, error) { return nil, nil }, snippets: map[string]*directive{}}
		_, report, err := importWith([]string{"Caddyfile"}, r)
		if err != nil {
			return
		}
		for _, e := range report.Entries {
			if e.Verdict == "" {
				t.Errorf("%+v has no verdict", e)
			}
		}
	})
}

// Named matchers become those of routes.
func TestNamedMatchers(t *testing.T) {
	got, report := accepted(t, `
a.example.com {
	@api {
		path /api/*
		method get HEAD
		header X-V 2*
	}
	@beta header_regexp Cookie (^|;\s*)beta=1
	@q query a=1 b=*
	@twin {
		path /api/*
		method GET
		header X-V 3
		query c=1
	}
	handle @api {
		reverse_proxy 127.0.0.1:1
	}
	reverse_proxy @beta 127.0.0.1:2
	respond @q "query" 200
	header @q X-A b
	reverse_proxy @twin 127.0.0.1:4
	reverse_proxy 127.0.0.1:3
}
`)
	text := got
	for _, want := range []string{"path: /api\n        matchers:\n          methods: [GET, HEAD]\n          headers:\n            - {name: X-V, regex: ^2}", "{name: Cookie, regex: (^|;\\s*)beta=1}",
		"query:\n            - {name: a, value: 1}\n            - {name: b}", "127.0.0.1:3", "127.0.0.1:4"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, e := range report.Entries {
		if strings.Contains(e.Directive, "@odd") && strings.Contains(e.Directive, "respond") && e.Verdict != importer.Impossible || strings.HasPrefix(e.Directive, "header @q") && e.Verdict != importer.Close ||
			strings.HasPrefix(e.Directive, "reverse_proxy @beta") && e.Verdict != importer.Same {
			t.Errorf("%+v", e)
		}
	}
}

// What Caddy chooses by a matcher of hosts, virtual hosts choose.
func TestHostsOfAWildcardSite(t *testing.T) {
	got, report := accepted(t, `
*.example.com {
	tls /c.pem /k.pem
	encode gzip
	@foo host foo.example.com
	@two host Bar.example.com baz.example.com
	@some {
		host foo.example.com bar.example.com
		method POST
		path /upload/*
	}
	@none host foo.example.org
	handle /all/* {
		reverse_proxy 127.0.0.1:1
	}
	handle {
		respond "nothing here" 404
	}
	handle @some {
		reverse_proxy 127.0.0.1:4
	}
	handle @foo {
		header X-Of foo
		reverse_proxy 127.0.0.1:2
	}
	handle @two {
		reverse_proxy 127.0.0.1:3
	}
	handle @none {
		reverse_proxy 127.0.0.1:5
	}
}
`)
	head, got, _ := strings.Cut(got, "proxies:\n")
	if strings.Count(head, "/c.pem") != 1 {
		t.Errorf("the certificate is there more than once:\n%s", head)
	}
	proxies := map[string]string{}
	name := ""
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "  ") && line[2] != ' ' {
			name = strings.Trim(line, " :\n")
		}
		proxies[name] += line
	}
	for name, want := range map[string][]string{
		"example.com":     {"virtual_hosts: [*.example.com]", ":1", "nothing here"},
		"foo.example.com": {"virtual_hosts: [foo.example.com]", ":1", ":2", ":4", "X-Of", "methods: [POST]"},
		"bar.example.com": {"virtual_hosts: [bar.example.com]", ":1", ":3", ":4", "methods: [POST]"},
		"baz.example.com": {"virtual_hosts: [baz.example.com]", ":1", ":3"},
	} {
		text := proxies[name]
		for _, w := range append(want, "compression", "path: /all") {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", name, w, text)
			}
		}
		for _, port := range []string{":1", ":2", ":3", ":4", ":5", "nothing here", "X-Of"} {
			if strings.Contains(text, port) && !slices.Contains(want, port) {
				t.Errorf("%s has %s:\n%s", name, port, text)
			}
		}
	}
	seen := map[int]int{}
	for _, e := range report.Entries {
		if seen[e.Line]++; seen[e.Line] > 1 && e.Line != 2 {
			t.Errorf("line %d has %d entries: %+v", e.Line, seen[e.Line], e)
		}
		if want := map[bool]importer.Verdict{true: importer.Ignored}[e.Line >= 32 && e.Line <= 33]; want != "" && e.Verdict != want || want == "" && e.Verdict == importer.Impossible {
			t.Errorf("%+v", e)
		}
	}
	if len(report.Check) > 0 {
		t.Errorf("to look at: %q", report.Check)
	}
}

func TestHostsOfOtherSites(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want, not  []string
	}{
		{"of a port", ":8080 {\n\t@a host a.example.com\n\treverse_proxy @a 127.0.0.1:1\n\treverse_proxy 127.0.0.1:2\n}\n",
			[]string{"virtual_hosts: [a.example.com]", ":1", ":2", "address: 0.0.0.0:8080"}, nil},
		{"of names", "a.example.com, http://b.example.com {\n\t@b host b.example.com\n\tredir @b https://a.example.com{uri}\n\trespond hi\n}\n",
			[]string{"virtual_hosts: [a.example.com]", "virtual_hosts: [b.example.com]", "https://a.example.com"}, nil},
		{"of the environment", "*.{$DOMAIN} {\n\t@a host a.{$DOMAIN}\n\thandle @a {\n\t\treverse_proxy 127.0.0.1:1\n\t}\n}\n",
			[]string{"virtual_hosts: [a.${DOMAIN}]", "virtual_hosts: [*.${DOMAIN}]"}, nil},
		{"by a placeholder", "*.example.com {\n\t@a host {http.vars.x}.example.com\n\thandle @a {\n\t\treverse_proxy 127.0.0.1:1\n\t}\n}\n",
			[]string{"virtual_hosts: [*.example.com]"}, []string{"127.0.0.1:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := imported(t, c.text)
			got = strings.NewReplacer("'", "", `"`, "").Replace(got)
			if err != nil {
				t.Fatal(err)
			}
			expectLines(t, got, c.want...)
			for _, not := range c.not {
				if strings.Contains(got, not) {
					t.Errorf("%q in\n%s", not, got)
				}
			}
		})
	}
}

// What stands in a block for several paths holds for each.
func TestBlocksForSeveralPaths(t *testing.T) {
	got, report := accepted(t, "http://a.example.com:8080 {\n\t@x path /a/* /b/*\n\thandle @x {\n\t\theader X-A b\n\t\treverse_proxy 127.0.0.1:1\n\t}\n}\n")
	if strings.Count(got, "X-A") != 2 || len(report.Entries) != 5 {
		t.Errorf("%d entries of\n%s", len(report.Entries), got)
	}
}

// Header rules of a site hold for routes with rules of their own, too.
func TestHeadersOfSiteAndRoute(t *testing.T) {
	got, _ := accepted(t, "http://a.example.com:8080 {\n\theader X-Frame-Options DENY\n\thandle /x/* {\n\t\treverse_proxy 127.0.0.1:1 {\n\t\t\theader_up X-A b\n\t\t}\n\t}\n\treverse_proxy 127.0.0.1:2\n}\n")
	if strings.Count(got, "X-Frame-Options") != 2 {
		t.Errorf("the route has lost the site's rule:\n%s", got)
	}
}

// Two routes that a request may match both are asked in their order by a route for both.
func TestRoutesThatARequestMayMatchBoth(t *testing.T) {
	got, _ := accepted(t, "http://a.example.com:8080 {\n\t@a header A 1\n\t@b query b=1\n\trespond @a a 200\n\trespond @b b 200\n\treverse_proxy 127.0.0.1:2\n}\n")
	expectLines(t, got, "headers:\n            - {name: A, value: 1}\n          query:\n            - {name: b, value: 1}\n        fixed_response: {status: 200, body: a}")
}
