package nginx

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

var update = flag.Bool("update", false, "write the golden files again")

// text imports configurations by name; the first is the main one.
func text(files ...string) ([]byte, *importer.Report, error) {
	all := map[string]string{}
	for i := 0; i < len(files); i += 2 {
		all[files[i]] = files[i+1]
	}
	return Import([]string{files[0]}, Files{
		Read: func(name string) ([]byte, error) {
			if s, ok := all[name]; ok {
				return []byte(s), nil
			}
			return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
		},
		Glob: func(pattern string) (out []string, err error) {
			for n := range all {
				if ok, err := filepath.Match(pattern, n); err != nil {
					return nil, err
				} else if ok {
					out = append(out, n)
				}
			}
			slices.Sort(out)
			return out, nil
		},
	})
}

// imported imports a configuration in an http block and returns the document and what
// became of each directive.
func imported(t *testing.T, s string) (string, map[string]importer.Entry) {
	t.Helper()
	doc, report, err := text("/etc/nginx/nginx.conf", "http {\n"+s+"\n}")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("x.yaml", doc); len(problems) > 0 {
		t.Errorf("%v\n%s", problems, doc)
	}
	entries := map[string]importer.Entry{}
	for _, e := range report.Entries {
		if (e.Verdict == importer.Same || e.Verdict == importer.Close) && len(e.Became) == 0 {
			t.Errorf("%s is %s and names no field", e.Directive, e.Verdict)
		}
		entries[strings.TrimSuffix(e.Directive, ";")] = e
	}
	return string(doc), entries
}

func TestAUsualConfiguration(t *testing.T) {
	data, err := os.ReadFile("testdata/usual.conf")
	if err != nil {
		t.Fatal(err)
	}
	doc, report, err := text("/etc/nginx/nginx.conf", string(data))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(doc)
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
	if _, _, problems := config.Load("headgate.yaml", doc); len(problems) > 0 {
		t.Errorf("the document is not valid: %v", problems)
	}
	if n := strings.Count(string(data), ";") + strings.Count(string(data), "{"); len(report.Entries) < n-2 {
		t.Errorf("%d entries for about %d directives", len(report.Entries), n)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, source, directive string
		want                    importer.Verdict
		document                string // a part of it
	}{
		{"a prefix with a slash and a base path", `server { listen 80; location /api/ { proxy_pass http://127.0.0.1:3000/v2/; } }`, "proxy_pass http://127.0.0.1:3000/v2/", importer.Same, "path: /api\n        servers:\n          - {url: 'http://127.0.0.1:3000/v2/'}"},
		{"no URI keeps the path", `server { listen 80; location /api { proxy_pass http://127.0.0.1:3000; } }`, "proxy_pass http://127.0.0.1:3000", importer.Close, "strip_prefix: false"},
		{"variables in the server", `server { listen 80; location / { proxy_pass http://$backend; } }`, "proxy_pass http://$backend", importer.Impossible, ""},
		{"a regex that RE2 lacks", `server { listen 80; location / { rewrite ^/(?!x)(.*)$ /y/$1 break; proxy_pass http://127.0.0.1:1; } }`, "rewrite ^/(?!x)(.*)$ /y/$1 break", importer.Impossible, ""},
		{"a permanent rewrite", `server { listen 80; rewrite ^/a/(.*)$ /b/$1 permanent; location / { proxy_pass http://127.0.0.1:1; } }`, "rewrite ^/a/(.*)$ /b/$1 permanent", importer.Close, "target: /b/$1, status: 301"},
		{"an unknown directive", `server { listen 80; frobnicate on; location / { return 204; } }`, "frobnicate on", importer.Impossible, ""},
		{"lua", `server { listen 80; location / { content_by_lua_block { ngx.say("{") } } }`, "content_by_lua_block { … }", importer.Impossible, ""},
		{"the size of bodies", `server { listen 80; client_max_body_size 5m; location / { proxy_pass http://127.0.0.1:1; } }`, "client_max_body_size 5m", importer.Close, "request_body_limit: 5MiB"},
		{"a header with a variable", `server { listen 80; location / { proxy_pass http://127.0.0.1:1; proxy_set_header X-Host $host; } }`, "proxy_set_header X-Host $host", importer.Close, `value: '{host}'`},
		{"a header with an unknown variable", `server { listen 80; location / { proxy_pass http://127.0.0.1:1; proxy_set_header X-A $geoip_country; } }`, "proxy_set_header X-A $geoip_country", importer.Impossible, ""},
		{"braces stay braces", `server { listen 80; location / { proxy_pass http://127.0.0.1:1; proxy_set_header X-A '{"a":1}'; } }`, `proxy_set_header X-A "{"a":1}"`, importer.Same, `value: '{{"a":1}'`},
		{"methods that are refused", `server { listen 80; location / { limit_except GET { deny all; } proxy_pass http://127.0.0.1:1; } }`, "limit_except GET { … }", importer.Same, "methods: [GET, HEAD]"},
		{"methods that are refused from elsewhere", `server { listen 80; location / { limit_except GET POST { allow 10.0.0.0/8; deny all; } proxy_pass http://127.0.0.1:1; } }`, "deny all", importer.Same, "ip_filter: {allow: [10.0.0.0/8]}"},
		{"a header that is replaced", `server { listen 80; location / { proxy_hide_header X-A; add_header X-A a; proxy_pass http://127.0.0.1:1; } }`, "proxy_hide_header X-A", importer.Same, "operation: remove, name: X-A}\n          - {direction: response"},
		{"an internal location that returns", `server { listen 80; location = /e { internal; return 200 x; } location / { proxy_pass http://127.0.0.1:1; } }`, "location = /e { … }", importer.Close, "path: /e\n        fixed_response: {status: 404}"},
		{"an internal prefix", `server { listen 80; location /e { internal; } location / { proxy_pass http://127.0.0.1:1; } }`, "location /e { … }", importer.Close, "path: /e\n        fixed_response: {status: 404}"},
		{"the only server has unknown hosts", `server { listen 80; server_name a.example; location / { return 204; } }`, "server_name a.example", importer.Close, ""},
		{"the type of a text", `server { listen 80; location / { return 200 x; } }`, "return 200 x", importer.Close, ""},
		{"a dot before a name", `server { listen 80; server_name .example.com; location / { return 204; } }`, "server_name .example.com", importer.Close, `'*.example.com'`},
		{"allow without deny", `server { listen 80; allow 10.0.0.0/8; location / { return 204; } }`, "allow 10.0.0.0/8", importer.Ignored, ""},
		{"the size that nginx allows by itself", `server { listen 80; location / { proxy_pass http://127.0.0.1:1; } }`, "proxy_pass http://127.0.0.1:1", importer.Close, "request_body_limit: 1MiB"},
		{"locations with different Hosts", `server { listen 80; location / { proxy_pass http://127.0.0.1:1; proxy_set_header Host $http_host; } location /x { proxy_pass http://127.0.0.1:2/; } }`, "proxy_pass http://127.0.0.1:2/", importer.Close, "default-2:\n    host_header: upstream"},
		{"the name of an upstream as Host", `upstream app { server 127.0.0.1:1; } server { listen 80; location / { proxy_pass http://app/; } }`, "proxy_pass http://app/", importer.Same, "host_header: app"},
		{"a condition on the method", `server { listen 80; location / { if ($request_method !~ ^(GET|HEAD)$) { return 405; } proxy_pass http://127.0.0.1:1; } }`, "return 405", importer.Same, "methods: [GET, HEAD]"},
		{"a condition on a header", `server { listen 80; location / { if ($http_x_a = b) { return 403; } proxy_pass http://127.0.0.1:1; } }`, "if ($http_x_a = b) { … }", importer.Same, "- {name: X-A, value: b}"},
		{"a condition on a cookie", `server { listen 80; location / { if ($cookie_a) { return 403; } proxy_pass http://127.0.0.1:1; } }`, "if ($cookie_a) { … }", importer.Same, "name: Cookie, regex:"},
		{"a condition on a file", `server { listen 80; location / { if (-f $request_filename) { return 403; } proxy_pass http://127.0.0.1:1; } }`, "if (-f $request_filename) { … }", importer.Ignored, "servers:"},
		{"a condition that nobody can ask", `server { listen 80; location / { if ($geoip_country = XX) { return 403; } proxy_pass http://127.0.0.1:1; } }`, "if ($geoip_country = XX) { … }", importer.Impossible, ""},
		{"certbot's condition on the host", `server { if ($host = a.example.com) { return 301 https://$host$request_uri; } listen 80; server_name a.example.com; return 404; } server { listen 443 ssl; server_name a.example.com; location / { proxy_pass http://127.0.0.1:1; } }`,
			"return 301 https://$host$request_uri", importer.Close, "redirect_http_to_https: true"},
		{"a condition on the scheme", `server { listen 80; listen 443 ssl; server_name a.example.com; if ($scheme = http) { return 301 https://$host$request_uri; } location / { proxy_pass http://127.0.0.1:1; } }`,
			"return 301 https://$host$request_uri", importer.Close, "redirect_http_to_https: true"},
		{"a server that is set", `server { listen 80; set $up http://127.0.0.1:3000; location / { proxy_pass $up; } }`, "proxy_pass $up", importer.Close, "url: 'http://127.0.0.1:3000/'"},
		{"a map to servers", `map $http_x_v $up { default 127.0.0.1:1; 2 127.0.0.1:2; } server { listen 80; location / { proxy_pass http://$up; } }`, "2 127.0.0.1:2", importer.Same, "- {name: X-V, value: \"2\"}"},
		{"an expression that is a prefix", `server { listen 80; location / { proxy_pass http://127.0.0.1:1; } location ~ ^/api(/|$) { proxy_pass http://127.0.0.1:2; } }`, "location ~ ^/api(/|$) { … }", importer.Same, "path: /api"},
		{"a rewrite that some paths match", `server { listen 80; rewrite ^/v1/(.*)$ /v2/$1 last; location /v2/ { proxy_pass http://127.0.0.1:1; } }`, `rewrite ^/v1/(.*)$ /v2/$1 last`, importer.Close, "routes:\n      - path: /v1\n"},
		{"a server with a query", `server { listen 80; location /s { proxy_pass http://127.0.0.1:1/find?src=web; } }`, `proxy_pass http://127.0.0.1:1/find?src=web`, importer.Impossible, ""},
		{"a long time to connect", `server { listen 80; location / { proxy_connect_timeout 720s; proxy_pass http://127.0.0.1:1; } }`, `proxy_connect_timeout 720s`, importer.Close, "timeouts: {connect: 10m}"},
		{"a map of paths", `map $uri $new { default ""; /old /new; } server { listen 80; if ($new != "") { return 301 $new; } location / { proxy_pass http://127.0.0.1:1; } }`, `map $uri $new { … }`, importer.Close, "path: /old"},
		{"an expression that redirects", `server { listen 80; location / { proxy_pass http://127.0.0.1:1; } location ~ \.(php)$ { return 301 /index.$1; } }`, `location ~ \.(php)$ { … }`, importer.Same, "target: '/index.$1?'"},
		{"files of a root", `server { listen 80; location /img/ { root /srv/www; } }`, "root /srv/www", importer.Close, "path: /img\n        files: {root: /srv/www}\n        strip_prefix: false"},
		{"files of an alias", `server { listen 80; location /img/ { alias /srv/pics/; autoindex on; } }`, "alias /srv/pics/", importer.Close, "files: {root: /srv/pics, listing: true}"},
		{"a single-page application", `server { listen 80; root /srv/app; index index.html; location / { try_files $uri $uri/ /index.html; gzip_static on; } }`, "try_files $uri $uri/ /index.html", importer.Same, "files: {root: /srv/app, spa: true, precompressed: [gzip]}"},
		{"files of a server", `server { listen 80; root /srv/www; index a.html b.html; location /api { proxy_pass http://127.0.0.1:1; } }`, "index a.html b.html", importer.Same, "files: {root: /srv/www, index: [a.html, b.html]}"},
		{"files that are tried elsewhere", `server { listen 80; root /srv/www; location / { try_files $uri $uri.html =404; } }`, "try_files $uri $uri.html =404", importer.Close, "files: {root: /srv/www}"},
		{"files beside scripts", `server { listen 80; root /srv/www; location / { try_files $uri =404; } location ~ \.php$ { fastcgi_pass 127.0.0.1:9000; } }`, "root /srv/www", importer.Impossible, "fixed_response: {status: 404}"},
		{"PHP with a front controller", `server { listen 80; root /srv/wp; index index.php; location / { try_files $uri $uri/ /index.php?$args; } location ~ \.php$ { fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_param APP_ENV prod; fastcgi_pass unix:/run/php.sock; } }`, "location ~ \\.php$ { … }", importer.Close,
			"- {url: 'fcgi+unix:/run/php.sock'}\n        fastcgi:\n          root: /srv/wp\n          params:\n            - {name: APP_ENV, value: prod}\n          index: [index.php]"},
		{"PHP in a container", `server { listen 80; root /srv/wp; index index.php index.html; location / { try_files $uri =404; } location ~ [^/]\.php(/|$) { fastcgi_split_path_info ^(.+?\.php)(/.*)$; fastcgi_param SCRIPT_FILENAME /var/www/html$fastcgi_script_name; fastcgi_pass php:9000; } }`, "fastcgi_pass php:9000", importer.Same,
			"server_root: /var/www/html"},
		{"PHP on several servers", `upstream php { least_conn; server 10.0.0.1:9000 weight=2; server unix:/run/php.sock backup; } server { listen 80; root /srv/wp; index index.php; proxy_read_timeout 1s; fastcgi_send_timeout 9s; location / { try_files $uri /index.php; } location ~ \.php$ { fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass php; fastcgi_connect_timeout 3s; fastcgi_read_timeout 2m; } }`, "fastcgi_pass php", importer.Same,
			"load_balancing: least_connections\n        servers:\n          - {url: 'fcgi://10.0.0.1:9000', weight: 2}\n          - {url: 'fcgi+unix:/run/php.sock', backup: true}\n        fastcgi:\n          root: /srv/wp\n          index: [index.php]\n        request_timeout: 2m\n        timeouts: {connect: 3s}"},
		{"PHP on servers without a port", `upstream php { server 10.0.0.1; } server { listen 80; root /srv/wp; index index.php; location ~ \.php$ { fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass php; } }`, "fastcgi_pass php", importer.Impossible, "fixed_response: {status: 404}"},
		{"PHP of another folder", `server { listen 80; root /srv/wp; index index.php; location ~ \.php$ { root /srv/other; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass php:9000; } }`, "fastcgi_pass php:9000", importer.Impossible, "fixed_response: {status: 404}"},
		{"scripts by a variable", `server { listen 80; root /srv/wp; index index.php; location ~ \.php$ { fastcgi_param SCRIPT_FILENAME $script; fastcgi_pass php:9000; } }`, "fastcgi_pass php:9000", importer.Impossible, "fixed_response: {status: 404}"},
		{"a root with a variable", `server { listen 80; root /srv/$host; }`, "root /srv/$host", importer.Impossible, "fixed_response: {status: 404}"},
		{"a named location", `server { listen 80; location / { try_files $uri @app; } location @app { proxy_pass http://127.0.0.1:2; } }`, "try_files $uri @app", importer.Close, "url: 'http://127.0.0.1:2/'"},
		{"a fallback", `server { listen 80; location / { error_page 502 504 @late; proxy_pass http://127.0.0.1:1; } location @late { proxy_pass http://127.0.0.1:2; } }`, "error_page 502 504 @late", importer.Close, "url: 'http://127.0.0.1:2/', backup: true"},
		{"an auth server", `server { listen 80; location / { auth_request /a; proxy_pass http://127.0.0.1:1; } location = /a { internal; proxy_pass http://127.0.0.1:9/check; } }`, "auth_request /a", importer.Close, "forward_auth:\n          url: http://127.0.0.1:9/check"},
		{"an auth server that cannot be named", `server { listen 80; location / { auth_request /a; proxy_pass http://127.0.0.1:1; } location = /a { proxy_pass http://$geoip_city; } }`, "auth_request /a", importer.Impossible, "fixed_response: {status: 403}"},
		{"allow and deny in order", `server { listen 80; allow 10.0.0.1; deny 10.0.0.0/30; allow all; location / { proxy_pass http://127.0.0.1:1; } }`, "deny 10.0.0.0/30", importer.Same, "deny: [10.0.0.0, 10.0.0.2/31]"},
		{"no cache for a cookie", `server { listen 80; location / { proxy_cache a; proxy_no_cache $cookie_s; proxy_pass http://127.0.0.1:1; } }`, "proxy_no_cache $cookie_s", importer.Close, "cache: {enabled: false}"},
		{"a mirror", `server { listen 80; location / { mirror /m; proxy_pass http://127.0.0.1:1; } location = /m { internal; proxy_pass http://127.0.0.1:2$request_uri; } }`, "mirror /m", importer.Close, "mirror:"},
		{"when a server is left alone", `upstream a { server 127.0.0.1:1 max_fails=3 fail_timeout=30s; } server { listen 80; location / { proxy_pass http://a; } }`, "server 127.0.0.1:1 max_fails=3 fail_timeout=30s", importer.Close, "ejection: {failures: 3, time: 30s"},
		{"locations behind a return", `server { listen 80; return 410; location / { proxy_pass http://127.0.0.1:1; } }`, "return 410", importer.Same, "fixed_response: {status: 410}"},
		{"Location of servers", `server { listen 80; location / { proxy_redirect http://a.b/ https://c.d/; proxy_pass http://127.0.0.1:1; } }`, "proxy_redirect http://a.b/ https://c.d/", importer.Same, "name: Location, regex: '^http://a\\.b/',"},
		{"trusted proxies", `server { listen 80; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on; location / { return 204; } }`, "set_real_ip_from 10.0.0.0/8", importer.Same, "trusted: [10.0.0.0/8]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, entries := imported(t, test.source)
			e, ok := entries[test.directive]
			if !ok {
				t.Fatalf("no entry for %q in %v", test.directive, entries)
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

// TestWhatIsLeftOutIsToldWhereItProtects holds that nobody finds out by an open door
// that a rule could not be translated.
func TestWhatIsLeftOutIsToldWhereItProtects(t *testing.T) {
	t.Parallel()
	_, report, err := text("/n.conf", `http { server { listen 80; location / { proxy_pass http://127.0.0.1:1; }
location ~ \.bak$ { deny all; } if ($ssl_client_verify != SUCCESS) { return 403; } } }`)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(report.Check, "\n")
	for _, want := range []string{"location ~ \\.bak$", "if ($ssl_client_verify != SUCCESS)"} {
		if !strings.Contains(all, want) || !strings.Contains(all, "protects") {
			t.Errorf("%q is not told in:\n%s", want, all)
		}
	}
}

func TestEncryptedKeysAreToldWithTheRemedy(t *testing.T) {
	t.Parallel()
	_, report, err := text("/n.conf", "http { server { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; return 204; } }", "/a.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n")
	if err != nil || !strings.Contains(strings.Join(report.Check, "\n"), "/a.key: the key is encrypted") || !strings.Contains(strings.Join(report.Check, "\n"), "openssl pkey") {
		t.Errorf("%v %v", err, report)
	}
}

func TestServersWithOnePairOfFilesHaveOneCertificate(t *testing.T) {
	doc, _ := imported(t, `ssl_certificate a.crt; ssl_certificate_key a.key;
server { listen 443 ssl; server_name a.example; location / { proxy_pass http://127.0.0.1:1; } }
server { listen 443 ssl; server_name b.example; location / { proxy_pass http://127.0.0.1:2; } }
server { listen 443 ssl; server_name c.example; ssl_certificate c.crt; ssl_certificate_key c.key; return 403; }`)
	if a, c := strings.Count(doc, "/etc/nginx/a.crt"), strings.Count(doc, "/etc/nginx/c.crt"); a != 1 || c != 1 {
		t.Errorf("a.crt stands %d times, c.crt %d times in\n%s", a, c, doc)
	}
}

// importedAs is imported with what a person is to look at.
func importedAs(t *testing.T, s string) (doc string, entries map[string]importer.Entry, check string) {
	t.Helper()
	doc, entries = imported(t, s)
	_, report, err := text("/etc/nginx/nginx.conf", "http {\n"+s+"\n}")
	if err != nil {
		t.Fatal(err)
	}
	return doc, entries, strings.Join(report.Check, "\n")
}

// The shape in which the guides of auth servers write it: the server in a variable, the
// answer's headers in others, and the place to sign in behind error_page.
func TestAuthServersWhoseAddressIsSet(t *testing.T) {
	t.Parallel()
	const server = `server { listen 443 ssl; server_name app.example; ssl_certificate a.pem; ssl_certificate_key a.key;
location = /check { internal; set $auth_app auth; set $auth_port 9091; proxy_pass http://$auth_app:$auth_port/verify; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Original-URI $request_uri; }
location / { auth_request /check; auth_request_set $user $upstream_http_remote_user; auth_request_set $cookie $upstream_http_set_cookie;
 add_header Set-Cookie $cookie; proxy_set_header Remote-User $user; proxy_set_header X-WebAuth-User $user; %s set $app app; proxy_pass http://$app:80; }
%s }`
	for _, test := range []struct{ errorPage, signIn, want string }{
		{"", "", "url: http://auth:9091/verify"},
		{"error_page 401 = @signin;", `location @signin { internal; return 302 /start?rd=$scheme://$http_host$request_uri; }`, "signin_url: /start?rd={scheme}://{authority}{request_uri}"},
		{"auth_request_set $to $upstream_http_location; error_page 401 = @signin;", `location @signin { internal; if ($to = '') { set $to https://$http_host/auth/?rd=$request_uri; } return 302 $to; }`, "signin_url: https://{authority}/auth/?rd={request_uri}"},
		{"error_page 401 =302 https://auth.example/?rd=$request_uri;", "", "signin_url: https://auth.example/?rd={request_uri}"},
	} {
		doc, entries, check := importedAs(t, fmt.Sprintf(server, test.errorPage, test.signIn))
		for _, want := range []string{test.want, "response_headers: [Remote-User]", "name: X-WebAuth-User, value: '{header.Remote-User}'", "url: 'http://app:80/'"} {
			if !strings.Contains(doc, want) {
				t.Errorf("no %s in\n%s", want, doc)
			}
		}
		for text, e := range entries {
			if e.Verdict == importer.Impossible {
				t.Errorf("%s: %+v", text, e)
			}
		}
		// The only thing to check is how a gate could replace the auth server.
		if strings.Count(check, "auth server") != 1 || !strings.Contains(check, "http://auth:9091/verify") || !strings.Contains(check, "replace forward_auth with gate") {
			t.Errorf("got %s", check)
		}
	}
	// What Authelia's endpoint for nginx says in Location, the one for others says to the client.
	doc, _, _ := importedAs(t, `server { listen 80; location = /a { internal; proxy_pass http://authelia:9091/api/authz/auth-request; }
location / { auth_request /a; auth_request_set $to $upstream_http_location; error_page 401 =302 $to; proxy_pass http://127.0.0.1:1; } }`)
	if !strings.Contains(doc, "url: http://authelia:9091/api/authz/forward-auth") || strings.Contains(doc, "signin_url") {
		t.Errorf("got\n%s", doc)
	}
}

func TestWhatAnAuthServerDoesNotHearIsToLookAt(t *testing.T) {
	t.Parallel()
	_, entries, check := importedAs(t, `server { listen 80; location = /a { internal; proxy_pass http://ldap:8888; proxy_set_header X-Ldap-Realm "Restricted"; }
location / { auth_request /a; proxy_pass http://127.0.0.1:1; } }`)
	if e := entries[`proxy_set_header X-Ldap-Realm Restricted`]; e.Verdict != importer.Impossible || !strings.Contains(check, "X-Ldap-Realm") {
		t.Errorf("got %+v\n%s", e, check)
	}
}

func TestALocationThatIsLostIsToLookAt(t *testing.T) {
	t.Parallel()
	_, _, check := importedAs(t, `server { listen 80; location / { proxy_pass http://127.0.0.1:1; }
location ~ \.(php|cgi)$ { proxy_pass http://127.0.0.1:2; } location /static/ { alias /srv/static/; } location ~ \.js$ { expires 1d; } }`)
	for _, want := range []string{`location ~ \.(php|cgi)$ could not be translated`, "location /static/ could not be translated"} {
		if !strings.Contains(check, want) {
			t.Errorf("%q is not in\n%s", want, check)
		}
	}
	if strings.Contains(check, "js") {
		t.Errorf("got\n%s", check)
	}
}

func TestPathsWithoutALocationAreNamed(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]importer.Verdict{
		`server { listen 80; location /a/ { proxy_pass http://127.0.0.1:1; } }`: importer.Close,
		`server { listen 80; location / { proxy_pass http://127.0.0.1:1; } }`:   importer.Same,
		`server { listen 80; return 404; }`:                                     importer.Same,
	} {
		_, entries := imported(t, source)
		if e := entries["server { … }"]; e.Verdict != want || (want == importer.Close) != strings.Contains(e.Note, "paths that no location has") {
			t.Errorf("%s: %s: %s", source, e.Verdict, e.Note)
		}
	}
}

// Files of extensions that nginx or headgate does not know were sent with another type, and
// no line of the report was why.
func TestTypesOfFilesAreNamed(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]importer.Verdict{
		"default_type application/octet-stream": importer.Same,
		"default_type text/plain":               importer.Impossible,
	} {
		_, entries := imported(t, "server { listen 80; "+source+"; root /srv/www; location / { try_files $uri =404; } }")
		if e := entries[source]; e.Verdict != want {
			t.Errorf("%s: %s: %s", source, e.Verdict, e.Note)
		}
		if e := entries["root /srv/www"]; e.Verdict != importer.Close || !strings.Contains(e.Note, "Content-Type") {
			t.Errorf("root: %s: %s", e.Verdict, e.Note)
		}
	}
}

// TestMapsOfSeveralVariables holds that a map chooses servers by all variables of its source,
// through other maps, and is a line to look at where it has no piece for each of them.
func TestMapsOfSeveralVariables(t *testing.T) {
	t.Parallel()
	const server = ` server { listen 80; server_name a.test; location / { proxy_pass $to; } }`
	const kind, get = "headers:\n            - {name: X-Kind, value: json}", "methods: [GET]"
	for name, test := range map[string]struct {
		source string
		want   []string
		check  string
	}{
		"texts":             {`map $request_method:$http_x_kind $to { default http://127.0.0.1:1; POST:json http://127.0.0.1:2; }` + server, []string{"methods: [POST]\n          " + kind, "127.0.0.1:1/", "127.0.0.1:2/"}, ""},
		"expressions":       {`map "$request_method $http_x_kind" $to { default http://127.0.0.1:1; "~^GET j.*n$" http://127.0.0.1:2; }` + server, []string{get, "regex: ^j.*n$", "127.0.0.1:2/"}, ""},
		"anything behind":   {`map $request_method:$http_x_kind $to { default http://127.0.0.1:1; ~^GET: http://127.0.0.1:2; }` + server, []string{get, "127.0.0.1:2/"}, ""},
		"a map in a map":    {`map $http_x_kind $k { default none; json j; } map $k/$request_method $to { default http://127.0.0.1:1; j/GET http://127.0.0.1:2; ~^none/P http://127.0.0.1:3; }` + server, []string{get, kind, "127.0.0.1:1/", "127.0.0.1:2/", "127.0.0.1:3/"}, ""},
		"without a default": {`map $request_method:$http_x_kind $to { "~:json$" http://127.0.0.1:2; }` + server, []string{"regex: ^json$", "127.0.0.1:2/"}, ""},
		"nothing between":   {`map $request_method$http_x_kind $to { default http://127.0.0.1:1; ~^GETj http://127.0.0.1:2; }` + server, nil, "proxy_pass $to has variables"},
		"what is not asked": {`map $request_method:$connection $to { default http://127.0.0.1:1; GET:1 http://127.0.0.1:2; }` + server, nil, "proxy_pass $to has variables"},
		"a redirect":        {`map $scheme:$host $to { http:a.test /one; default /two; } server { listen 80; server_name a.test b.test; return 301 $to; }`, []string{"target: '/one?'", "target: '/two?'"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			doc, _, check := importedAs(t, test.source)
			for _, want := range test.want {
				if !strings.Contains(doc, want) {
					t.Errorf("no %q in\n%s", want, doc)
				}
			}
			if test.check == "" && strings.Contains(check, "has variables") || !strings.Contains(check, test.check) {
				t.Errorf("look at: %s", check)
			}
		})
	}
}

func TestAnExpressionThatMatchesAnywhereIsARouteToLookAt(t *testing.T) {
	t.Parallel()
	doc, entries, check := importedAs(t, `server { listen 80; location / { proxy_pass http://127.0.0.1:1; } location ~ (/app)?/api { proxy_pass http://127.0.0.1:2; } location ~ ^/(a|b|c) { proxy_pass http://127.0.0.1:3; } }`)
	for _, path := range []string{"/app/api", "/api", "/a", "/b", "/c"} {
		if !strings.Contains(doc, "path: "+path+"\n") {
			t.Errorf("no route for %s in\n%s", path, doc)
		}
	}
	if e := entries["location ~ (/app)?/api { … }"]; e.Verdict != importer.Close || !strings.Contains(check, "(/app)?/api matches anywhere") || strings.Contains(check, "a|b|c") {
		t.Errorf("got %+v, %s", e, check)
	}
}

func TestAPathThatIsSentToItsSlashIsARuleOfTheOther(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"location /x/", "location ^~ /x/"} {
		doc, entries, check := importedAs(t, `server { listen 80; location / { proxy_pass http://127.0.0.1:1; } location /x { return 301 /x/; } `+other+` { proxy_pass http://127.0.0.1:2; } }`)
		if !strings.Contains(doc, "{regex: ^/x$, target: '/x/?', status: 301}") || !strings.Contains(doc, "127.0.0.1:2") || check != "" {
			t.Errorf("got\n%s\n%s", doc, check)
		}
		if e := entries["location /x { … }"]; e.Verdict != importer.Close || !strings.Contains(e.Note, "whole segments") {
			t.Errorf("got %+v", e)
		}
	}
}

func TestVariablesOfRequestHeaders(t *testing.T) {
	t.Parallel()
	doc, entries := imported(t, `server { listen 80; location / { proxy_pass http://127.0.0.1:1;
proxy_set_header X-Original-URI $request_uri; proxy_set_header X-Forwarded-Port $server_port; proxy_set_header X-Copy $http_x_some_thing; proxy_set_header Early-Data $ssl_early_data;
proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Up $http_upgrade; } }`)
	for _, want := range []string{"name: X-Original-URI, value: '{request_uri}'", "name: X-Forwarded-Port, value: '{server_port}'", "name: X-Copy, value: '{header.X-Some-Thing}'", "operation: remove, name: Early-Data"} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %s in\n%s", want, doc)
		}
	}
	for text, want := range map[string]importer.Verdict{"proxy_set_header X-Original-URI $request_uri": importer.Close, "proxy_set_header X-Forwarded-Port $server_port": importer.Same, "proxy_set_header X-Copy $http_x_some_thing": importer.Same,
		"proxy_set_header Early-Data $ssl_early_data": importer.Same, "proxy_set_header X-Forwarded-Host $host": importer.Close, "proxy_set_header X-Up $http_upgrade": importer.Impossible} {
		if e := entries[text]; e.Verdict != want {
			t.Errorf("%s: got %+v, want %s", text, e, want)
		}
	}
}

func TestAMissingIncludeDoesNotStopTheRest(t *testing.T) {
	t.Parallel()
	doc, report, err := text("/n.conf", `http { include gone.conf; server { listen 80; server_name a.example; location / { return 204; } } }`)
	if err != nil || !strings.Contains(string(doc), "a.example") || !strings.Contains(strings.Join(report.Check, "\n"), "/n.conf:1: include gone.conf;: the file does not exist") {
		t.Errorf("%v\n%s\n%v", err, doc, report)
	}
	for _, e := range report.Entries {
		if strings.HasPrefix(e.Directive, "include") && e.Verdict != importer.Impossible {
			t.Errorf("got %+v", e)
		}
	}
}

func TestNoCacheWhereNothingIsCached(t *testing.T) {
	t.Parallel()
	_, entries := imported(t, `server { listen 80; location / { proxy_no_cache $http_upgrade; proxy_cache_bypass $cookie_a; proxy_pass http://127.0.0.1:1; } }`)
	for _, text := range []string{"proxy_no_cache $http_upgrade", "proxy_cache_bypass $cookie_a"} {
		if e := entries[text]; e.Verdict != importer.Ignored {
			t.Errorf("%s: got %+v", text, e)
		}
	}
}

// Two servers of one port have to ask their clients alike: it is the port that asks.
func TestClientCertificatesAreThoseOfThePort(t *testing.T) {
	t.Parallel()
	const one = `server { listen 443 ssl; server_name a.example; ssl_certificate a.pem; ssl_certificate_key a.key; ssl_client_certificate ca.pem; ssl_verify_client on; location / { proxy_pass http://127.0.0.1:1; } }`
	doc, entries, _ := importedAs(t, one)
	if e := entries["ssl_verify_client on"]; e.Verdict != importer.Same || !strings.Contains(strings.Join(strings.Fields(doc), " "), "tls: {client_auth: required, client_ca: /etc/nginx/ca.pem}") {
		t.Errorf("got %+v of\n%s", e, doc)
	}
	doc, entries, check := importedAs(t, one+`server { listen 443 ssl; server_name b.example; ssl_certificate a.pem; ssl_certificate_key a.key; location / { proxy_pass http://127.0.0.1:2; } }`)
	if e := entries["ssl_verify_client on"]; e.Verdict != importer.Impossible || strings.Contains(doc, "client_auth") || !strings.Contains(check, "had to show a certificate") {
		t.Errorf("got %+v of\n%s\n%s", e, doc, check)
	}
}

// nginx looks at the certificate of a server only if it is told to.
func TestCertificatesOfServersAreVerifiedWhereNginxDoes(t *testing.T) {
	doc, entries := imported(t, `server { listen 80; server_name a.example;
location / { proxy_pass https://127.0.0.1:1/; }
location /b/ { proxy_pass https://127.0.0.1:2; proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_name b.example; }
location /c/ { proxy_pass https://127.0.0.1:3; proxy_ssl_verify off; } }`)
	for _, want := range []string{
		"{url: 'https://127.0.0.1:1/', tls: {insecure_skip_verify: true}}",
		"{url: 'https://127.0.0.1:2/', tls: {ca_file: /etc/nginx/ca.pem, server_name: b.example}}",
		"{url: 'https://127.0.0.1:3/', tls: {insecure_skip_verify: true}}",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %s in\n%s", want, doc)
		}
	}
	for text, verdict := range map[string]importer.Verdict{"proxy_pass https://127.0.0.1:1/": importer.Close, "proxy_ssl_verify on": importer.Same, "proxy_ssl_trusted_certificate ca.pem": importer.Same, "proxy_ssl_name b.example": importer.Same} {
		if e := entries[text]; e.Verdict != verdict {
			t.Errorf("%s: got %+v, want %s", text, e, verdict)
		}
	}
}

func TestWhatComesAfterARewriteThatIsLeftOutSaysWhy(t *testing.T) {
	_, entries := imported(t, `server { listen 80; server_name a.example; rewrite ^/(.*)$ /posts?id=$1 last; location / { proxy_pass http://127.0.0.1:1; } }`)
	if e := entries["proxy_pass http://127.0.0.1:1"]; e.Verdict != importer.Impossible || !strings.Contains(e.Note, "the rewrite before it") {
		t.Errorf("got %+v", e)
	}
}

func TestARewriteThatWritesAQueryLeavesOtherPaths(t *testing.T) {
	for _, text := range []string{
		`rewrite ^/blog/([0-9]+)$ /posts?id=$1 last; location / { proxy_pass http://127.0.0.1:1; }`,
		`rewrite ^(.*)\.html$ /page?of=$1 last; location / { proxy_pass http://127.0.0.1:1; } location /page { proxy_pass http://127.0.0.1:2; }`,
		`location / { rewrite ^/blog/([0-9]+)$ /posts?id=$1 break; proxy_pass http://127.0.0.1:1; }`,
	} {
		doc, entries := imported(t, `server { listen 80; server_name a.example; `+text+` }`)
		if e := entries["proxy_pass http://127.0.0.1:1"]; e.Verdict != importer.Close || !strings.Contains(doc, "- path: /\n        servers:\n          - {url: 'http://127.0.0.1:1/'}") {
			t.Errorf("got %+v of\n%s", e, doc)
		}
		for text, e := range entries {
			if strings.HasPrefix(text, "rewrite") && (e.Verdict != importer.Impossible || !strings.Contains(e.Note, "the query is sent as it came")) {
				t.Errorf("got %+v", e)
			}
		}
	}
}

func TestIncludesAndDumpsAreRead(t *testing.T) {
	t.Parallel()
	main, part := "http { include sites/*.conf; }", "server { listen 8080; server_name a.example.com; location / { return 204; } }"
	doc, report, err := text("/etc/nginx/nginx.conf", main, "/etc/nginx/sites/a.conf", part)
	if err != nil || !strings.Contains(string(doc), "a.example.com") {
		t.Fatalf("%v\n%s", err, doc)
	}
	if !slices.ContainsFunc(report.Entries, func(e importer.Entry) bool { return e.File == "/etc/nginx/sites/a.conf" && e.Line == 1 }) {
		t.Errorf("no entry has its place in the included file: %+v", report.Entries)
	}
	dumped, _, err := text("all.txt", "nginx: ok\n# configuration file /etc/nginx/nginx.conf:\n"+main+"\n# configuration file /etc/nginx/sites/a.conf:\n"+part+"\n")
	if err != nil || string(dumped) != string(doc) {
		t.Errorf("%v; the dump gave\n%s\nwant\n%s", err, dumped, doc)
	}
}

func TestBadInputHasItsPlace(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("a {", 100) + strings.Repeat("}", 100)
	for _, test := range []struct{ source, want string }{
		{"http {\nserver {\nlisten 80;\n", "/n.conf:4: the file ends inside of a block"},
		{"http {}\n}\n", "/n.conf:2: a } without a {"},
		{"worker_processes 1\n", "/n.conf:1: the file ends in the directive worker_processes"},
		{"a \"b\n\n", "/n.conf:1: a quote is not closed"},
		{"location /x { proxy_pass http://127.0.0.1:1; }", "/n.conf:1: location /x is outside of a server"},
		{"include n.conf;", "/n.conf: it includes itself"},
		{"a \x00;", "/n.conf: not a text"},
		{deep, "nested more than"},
		{"x { lua_block_by_lua_block { ((", "not closed"},
	} {
		_, _, err := text("/n.conf", test.source)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %s", test.source, err, test.want)
		}
	}
}

func FuzzImport(f *testing.F) {
	data, err := os.ReadFile("testdata/usual.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	if data, err = os.ReadFile("testdata/rules.conf"); err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("http{server{listen 1;location ~ x{return 200 ${host}a;}}}")
	f.Add("stream{server{listen 1 udp;proxy_pass a:1;}}server{}upstream x{server;}")
	f.Fuzz(func(t *testing.T, s string) {
		doc, report, err := text("/n.conf", s)
		if err != nil {
			return
		}
		for _, e := range report.Entries {
			if e.Verdict == importer.Impossible && e.Note == "" {
				t.Errorf("no reason for %s", e.Directive)
			}
			if (e.Verdict == importer.Same || e.Verdict == importer.Close) && len(e.Became) == 0 {
				t.Errorf("%s is %s and names no field", e.Directive, e.Verdict)
			}
		}
		config.Load("x.yaml", doc) // must not panic
	})
}
