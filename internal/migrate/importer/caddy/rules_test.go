package caddy

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

// TestFormsOfCaddyfiles imports what was lost, or became something else, before the
// Caddyfile and Caddy's JSON had one translator.
func TestFormsOfCaddyfiles(t *testing.T) {
	t.Setenv("TOKEN", "a")
	t.Setenv("OTHER", "b")
	site := func(inner string) string { return "http://a.example.com:8080 {\n" + inner + "\n}\n" }
	for _, c := range []struct {
		name, text string
		want, not  []string // in the document
		check      []string
	}{
		{"the Host that is sent anyway", site("reverse_proxy b:1 {\n\theader_up Host {host}\n\theader_up -X-A\n}"), []string{"operation: remove, name: X-A"}, []string{"host_header"}, nil},
		{"an address that is refused with another status", site("@u not remote_ip 10.0.0.0/8\nrespond @u 401\nreverse_proxy b:1"), []string{"ip_filter: {allow: [10.0.0.0/8]}"}, nil, nil},
		{"a redirect of an exact path leaves what is below it", site("redir /app /app/\nhandle_path /app/* {\n\treverse_proxy b:1\n}\nrespond 404"),
			[]string{"path: /app\n        servers:\n          - {url: http://b:1}", "{regex: (?i)^/app$, target: /app/?, status: 302}"}, nil, nil},
		{"a refusal is at the path that is left", site("uri strip_prefix /v1\nerror /private* 403\nreverse_proxy b:1"),
			[]string{"path: /private\n        fixed_response: {status: 403}", "path: /v1/private\n        fixed_response: {status: 403}"}, nil, []string{"guards /private and what is below it"}},
		{"the braces of the only site are left out", "a.example.com\n\nhandle /x/* {\n\treverse_proxy b:1\n}\nreverse_proxy b:2 {\n\theader_up X-A b\n}\n",
			[]string{"virtual_hosts: [a.example.com]", "path: /x\n", "http://b:2", "name: X-A"}, nil, nil},
		{"global options come before a site without braces", "{\n\temail ada@example.com\n}\na.example.com\nreverse_proxy b:1\n",
			[]string{"email: ada@example.com", "http://b:1"}, nil, nil},
		{"WebSockets are told by their upgrade", site("@ws {\n\theader Connection *Upgrade*\n\theader Upgrade websocket\n}\nreverse_proxy @ws b:1\nreverse_proxy b:2"),
			[]string{"- {name: Upgrade, value: websocket}\n        servers:\n          - {url: http://b:1}", "http://b:2"}, []string{"Connection"}, nil},
		{"what is in no variable is left out", site("reverse_proxy b:1 {\n\theader_up X-A {vars.a}\n\theader_up X-B {http.request.host}\n}"),
			[]string{"name: X-B, value: {host}"}, []string{"X-A"}, []string{"the header X-A was left out: headgate has no variable for {http.vars.a}"}},
		{"the environment is read where Caddy reads it", site("reverse_proxy b:1 {\n\theader_up X-A {env.TOKEN}\n\theader_up X-B {$OTHER}\n}"),
			[]string{"value: ${TOKEN}", "value: ${OTHER}"}, nil, nil},
		{"an import has a block", "(site) {\n\t{args[0]} {\n\t\tencode gzip\n\t\t{block}\n\t}\n}\nimport site http://a.example.com:8080 {\n\treverse_proxy b:1\n}\n",
			[]string{"virtual_hosts: [a.example.com]", "compression", "http://b:1"}, nil, nil},
		{"a redirect of a prefix has no query of its own", site("redir /old* /new\nreverse_proxy b:1"),
			[]string{"{regex: (?i)^/old, target: /new?, status: 302}", "http://b:1"}, nil, nil},
		{"a redirect has the groups of an expression", site("@old path_regexp old ^/blog/([0-9]+)$\nredir @old /news/{re.old.1} 301\nreverse_proxy b:1"),
			[]string{"{regex: ^/blog/([0-9]+)$, target: /news/${1}?, status: 301}"}, nil, nil},
		{"a redirect of all but one path leaves that one", site("@x not path /login\nredir @x /login\nrespond hi"),
			[]string{"path: /login\n        fixed_response: {status: 200, body: hi}"}, nil, nil},
		{"the root alone is redirected", site("redir / /home\nreverse_proxy b:1"),
			[]string{"- {regex: (?i)^/$, target: /home?, status: 302}", "http://b:1"}, nil, nil},
		{"directives have Caddy's order", site("reverse_proxy b:1\nrespond /x/* 404\nroute /y/* {\n\treverse_proxy b:2\n\trespond 404\n}"),
			[]string{"path: /x\n        fixed_response: {status: 404}", "path: /y\n        servers:\n          - {url: http://b:2}"}, nil, nil},
		{"a rewrite is of the paths that it is for", site("rewrite /old /new\nrewrite / /index\nreverse_proxy b:1"),
			[]string{"http://b:1"}, nil, []string{"a route has one rewrite"}},
		{"clients of a network are let in", site("@in remote_ip 10.0.0.0/8 192.168.0.0/16\nhandle @in {\n\treverse_proxy b:1\n}\nrespond 403"),
			[]string{"ip_filter: {allow: [10.0.0.0/8, 192.168.0.0/16]}", "http://b:1"}, nil, nil},
		{"what depends on the address refuses", site("@in remote_ip 10.0.0.0/8\nhandle @in {\n\treverse_proxy b:1\n}\nreverse_proxy b:2"),
			[]string{"status: 403"}, []string{"b:1", "b:2"}, []string{"depends on the client's address"}},
		{"who is trusted in front", "{\n\tservers {\n\t\ttrusted_proxies static private_ranges\n\t}\n}\n" + site("reverse_proxy b:1"),
			[]string{"client_ip: {trusted: [192.168.0.0/16, 172.16.0.0/12, 10.0.0.0/8, 127.0.0.0/8,"}, nil, nil},
		{"scripts and files of a folder", site("root * /srv/app\nphp_fastcgi unix//run/php/php-fpm.sock {\n\tenv APP_ENV prod\n\tdial_timeout 3s\n\tread_timeout 60s\n\tcapture_stderr\n}\nfile_server"),
			[]string{"servers:\n          - {url: fcgi+unix:/run/php/php-fpm.sock}", "fastcgi: {root: /srv/app, index: [index.php], params: [{name: APP_ENV, value: prod}]}", "timeouts: {connect: 3s}", "request_timeout: 60s"}, []string{"static", "404"}, []string{"must be able to search /srv/app"}},
		{"scripts in a container", site("root * /srv/app\nphp_fastcgi a:9000 b:9000 {\n\troot /var/www\n\tsplit .php .php5\n\tindex app.php\n}"),
			[]string{"{url: fcgi://a:9000}\n          - {url: fcgi://b:9000}", "fastcgi: {root: /srv/app, index: [app.php], split_path: [.php, .php5], server_root: /var/www,\n          static: false}", "load_balancing: random"}, nil, []string{"must be able to search /srv/app"}},
		{"scripts without a front controller", site("root * /srv/app\nphp_fastcgi a:9000 {\n\ttry_files {path} {path}/index.php =404\n}\nfile_server"),
			[]string{"fastcgi: {root: /srv/app, index: [index.php], front_controller: false}"}, nil, []string{"must be able to search /srv/app"}},
		{"scripts without a folder", site("php_fastcgi b:9000\n"), []string{"status: 404"}, []string{"b:9000"}, []string{"the folder of php_fastcgi cannot be translated"}},
		{"scripts that are not found as in headgate", site("root * /srv/app\nphp_fastcgi b:9000 {\n\tindex off\n}\nfile_server"), []string{"status: 404"}, []string{"b:9000"}, []string{"php_fastcgi"}},
		{"what protects files of scripts", site("root * /srv/app\nroute {\n\tphp_fastcgi b:9000\n\trespond /secret/* 403\n\tfile_server\n}"),
			[]string{"path: /secret\n        servers:\n          - {url: fcgi://b:9000}\n        fastcgi: {root: /srv/app, index: [index.php], static: false}"}, nil, []string{"comes after php_fastcgi", "must be able to search /srv/app"}},
		{"scripts of a part", site("root * /srv/app\nhandle /blog/* {\n\tphp_fastcgi b:9000\n}\nhandle {\n\treverse_proxy a:1\n}"),
			[]string{"path: /blog\n        servers:\n          - {url: fcgi://b:9000}", "strip_prefix: false", "http://a:1"}, nil, []string{"must be able to search /srv/app"}},
		{"literal braces stay", site("respond `{\"ok\":true}` 200"), []string{"body: {{ok:true}"}, nil, nil},
		{"redirects to HTTPS once", "a.example.com {\n\treverse_proxy b:1\n}\na.example.com:8443 {\n\treverse_proxy b:2\n}\nhttp://b.example.com {\n\trespond plain\n}\nb.example.com {\n\treverse_proxy b:3\n}\n",
			[]string{"virtual_hosts: [b.example.com]\n    ports: [web]"}, nil, nil},
		{"a text has the path where an earlier block alone strips", site("handle_path /app/* {\n\treverse_proxy b:1\n}\nhandle {\n\trespond \"at {path}\"\n}"),
			[]string{"body: at {path}"}, nil, nil},
		{"local names get no certificates of an authority", "localhost {\n\treverse_proxy b:1\n}\n", []string{"virtual_hosts: [localhost]"}, []string{"acme"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, report := accepted(t, c.text)
			expectLines(t, got, c.want...)
			for _, not := range c.not {
				if strings.Contains(got, not) {
					t.Errorf("%q in\n%s", not, got)
				}
			}
			expectLines(t, strings.Join(report.Check, "\n"), c.check...)
			if len(c.check) == 0 && len(report.Check) > 0 {
				t.Errorf("to look at: %q\n%s", report.Check, got)
			}
			for _, e := range report.Entries {
				if strings.HasPrefix(e.Directive, "php_fastcgi") && (e.Verdict == importer.Impossible) != strings.Contains(got, "status: 404") {
					t.Errorf("%+v in\n%s", e, got)
				}
			}
			if told := fmt.Sprint(report.Entries); strings.Contains(told, "does not know") {
				t.Errorf("something has no verdict: %s", told)
			}
		})
	}
}
