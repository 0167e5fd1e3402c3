package caddy

import (
	"strings"
	"testing"
)

// phpJSON is what "caddy adapt" makes of php_fastcgi with a site and file_server.
const phpJSON = `{"apps":{"http":{"servers":{"srv0":{"listen":[":80"],"routes":[{"match":[{"host":["a.example.com"]}],"handle":[{"handler":"subroute","routes":[
{"handle":[{"handler":"vars","root":"/srv/app"}]},
{"handle":[{"handler":"static_response","headers":{"Location":["{http.request.orig_uri.path}/"]},"status_code":308}],"match":[{"file":{"try_files":["{http.request.uri.path}/index.php"]},"not":[{"path":["*/"]}]}]},
{"handle":[{"handler":"rewrite","uri":"{http.matchers.file.relative}"}],"match":[{"file":{"split_path":[".php"],"try_files":["{http.request.uri.path}","{http.request.uri.path}/index.php","index.php"]}}]},
{"handle":[{"handler":"reverse_proxy","transport":{"dial_timeout":3000000000,"env":{"APP_ENV":"prod"},"protocol":"fastcgi","split_path":[".php"]},"upstreams":[{"dial":"unix//run/fpm.sock"}]}],"match":[{"path":["*.php"]}]},
{"handle":[{"handler":"file_server"}]}]}],"terminal":true}]}}}}}`

func TestScriptsOfAdaptedConfigurations(t *testing.T) {
	for name, test := range map[string]struct {
		change [2]string
		want   string
		check  string
	}{
		"as adapted":         {[2]string{}, "fastcgi: {root: /srv/app, index: [index.php], params: [{name: APP_ENV, value: prod}]}", "must be able to search"},
		"without redirect":   {[2]string{`"status_code":308`, `"status_code":307`}, "", "was left out"},
		"another rewrite":    {[2]string{"{http.matchers.file.relative}", "/x"}, "", "was left out"},
		"other paths":        {[2]string{`"path":["*.php"]`, `"path":["*.txt"]`}, "", "was left out"},
		"another front file": {[2]string{`"index.php"]`, `"app.php"]`}, "status: 404", "cannot be translated"},
	} {
		text := phpJSON
		if test.change[0] != "" {
			text = strings.Replace(text, test.change[0], test.change[1], 1)
		}
		got, report := accepted(t, text)
		if !strings.Contains(got, test.want) || test.want == "" && strings.Contains(got, "fcgi") {
			t.Errorf("%s: no %q in\n%s", name, test.want, got)
		}
		if !strings.Contains(strings.Join(report.Check, "\n"), test.check) {
			t.Errorf("%s: no %q in %q", name, test.check, report.Check)
		}
	}
}
