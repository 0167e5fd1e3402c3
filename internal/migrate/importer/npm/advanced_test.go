package npm

import (
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// hostWith is a source with one host of a table.
func hostWith(table string, fields map[string]any) *source {
	s := &source{name: "database.sqlite", files: importer.Given(nil), tables: map[string][]*record{}}
	row := map[string]any{"id": int64(7), "domain_names": `["a.example.com"]`, "forward_scheme": "http", "forward_host": "10.0.0.1", "forward_port": int64(80), "forward_domain_name": "b.example.com", "forward_http_code": int64(301)}
	for name, value := range fields {
		row[name] = value
	}
	s.add(table, row)
	return s
}

// Each line of nginx has its verdict, and what can be translated is.
func TestAdvanced(t *testing.T) {
	const lines = `client_max_body_size 20m; # as for uploads
proxy_read_timeout 1h;
proxy_set_header X-Secret hush;
add_header X-Frame-Options DENY always;
proxy_buffering off;
sub_filter a b;
allow 192.0.2.0/24;
deny all;
include /data/nginx/custom/more.conf;
location /api/ {
  proxy_pass http://10.0.0.2:3000/v1/;
  proxy_set_header Host $host;
  add_header X-Api yes always;
}
location ~ \.php$ { return 404; }
if ($http_user_agent ~ bad) { return 403; }
`
	data, report, err := translate(hostWith("proxy_host", map[string]any{"advanced_config": lines}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]importer.Verdict{
		"client_max_body_size 20m;": importer.Close, "proxy_read_timeout 1h;": importer.Close, "proxy_set_header X-Secret hush;": importer.Ignored,
		"add_header X-Frame-Options DENY always;": importer.Same, "proxy_buffering off;": importer.Ignored, "sub_filter a b;": importer.Impossible,
		"allow 192.0.2.0/24;": importer.Same, "deny all;": importer.Same, "include /data/nginx/custom/more.conf;": importer.Impossible,
		"location /api/ { … }": importer.Close, "proxy_pass http://10.0.0.2:3000/v1/;": importer.Same, "proxy_set_header Host $host;": importer.Close,
		"add_header X-Api yes always;": importer.Same, `location ~ \.php$ { … }`: importer.Impossible, "if ($http_user_agent ~ bad) { … }": importer.Same,
	}
	got := map[string]importer.Entry{}
	for _, e := range report.Entries {
		if text, ok := strings.CutPrefix(e.Directive, "proxy host 7 (a.example.com): advanced: "); ok {
			got[text] = e
		}
	}
	for text, verdict := range want {
		e := got[text]
		if e.Verdict != verdict || verdict != importer.Same && e.Note == "" {
			t.Errorf("%s: %s (%s), want %s", text, e.Verdict, e.Note, verdict)
		}
		if first, _, _ := strings.Cut(lines, text); text != "" && !strings.Contains(text, "{") && e.Line != 1+strings.Count(first, "\n") {
			t.Errorf("%s: line %d", text, e.Line)
		}
	}
	c, _, problems := config.Load("headgate.yaml", data)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, data)
	}
	text := plain(data)
	for _, part := range []string{"request_body_limit: 20MiB", "request_timeout: 1h", "allow: [192.0.2.0/24]", "path: /api\n", "http://10.0.0.2:3000/v1/", "{direction: response, operation: append, name: X-Api, value: yes}"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for _, no := range []string{"X-Secret", "X-Served-By", "1MiB", "2000MiB"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is in\n%s", no, text)
		}
	}
	if n := len(c.Proxies["a.example.com"].Routes); n != 4 {
		t.Errorf("%d routes, want /api and /, each with and without the condition", n)
	}
}

func TestAdvancedOfOtherHostsAndPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		source   *source
		has, not []string
		entry    string
	}{
		"a location / of its own stands for the host's": {hostWith("proxy_host", map[string]any{"advanced_config": "location / { proxy_pass http://10.0.0.9:9; }"}),
			[]string{"http://10.0.0.9:9"}, []string{"10.0.0.1"}, "proxy_pass"},
		"headers of a redirect": {hostWith("redirection_host", map[string]any{"advanced_config": "add_header X-Moved yes always;"}),
			[]string{"name: X-Moved, value: yes", "b.example.com"}, nil, "add_header X-Moved"},
		"a 404 host, which answers before it asks who is there": {hostWith("dead_host", map[string]any{"advanced_config": "deny all;"}),
			[]string{"status: 404"}, []string{"ip_filter"}, "deny all"},
		"a location": {hostWith("proxy_host", map[string]any{"locations": `[{"path":"/x/","forward_scheme":"http","forward_host":"10.0.0.3","forward_port":80,"advanced_config":"proxy_set_header X-Deep yes;\nclient_max_body_size 1m;"}]`}),
			[]string{"request_body_limit: 1MiB", "name: X-Deep, value: yes"}, nil, "location /x/: advanced: proxy_set_header"},
		"a location with unknown users": {hostWith("proxy_host", map[string]any{"locations": `[{"path":"/x/","forward_scheme":"http","forward_host":"10.0.0.3","forward_port":80,"advanced_config":"auth_basic x; auth_basic_user_file /data/x;"}]`}),
			[]string{"fixed_response: {status: 403}"}, []string{"10.0.0.3"}, "auth_basic_user_file"},
		"HSTS, which keeps fields of the server block from being sent": {hostWith("proxy_host", map[string]any{"advanced_config": "add_header X-Odd yes;\nlocation /own/ { proxy_pass http://10.0.0.2; }", "certificate_id": int64(1), "ssl_forced": int64(1), "hsts_enabled": int64(1)}),
			[]string{"path: /own\n", "name: X-Odd", "name: Strict-Transport-Security,"}, []string{"X-Served-By", "2000MiB"}, "add_header X-Odd yes;"},
		"torn": {hostWith("proxy_host", map[string]any{"advanced_config": "location / {"}),
			[]string{"http://10.0.0.1:80"}, nil, "advanced_config = location / {"},
		"a file of passwords of this machine": {hostWith("proxy_host", map[string]any{"advanced_config": "auth_basic x;\nauth_basic_user_file /etc/passwd;"}),
			[]string{"status: 403"}, []string{"root"}, "auth_basic_user_file"},
	} {
		data, report, err := translate(c.source)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := plain(data)
		for _, part := range c.has {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", name, part, text)
			}
		}
		for _, part := range c.not {
			if strings.Contains(text, part) {
				t.Errorf("%s: %q in\n%s", name, part, text)
			}
		}
		if _, _, problems := config.Load("headgate.yaml", data); len(problems) > 0 {
			t.Errorf("%s: %v\n%s", name, problems, data)
		}
		found := false
		for _, e := range report.Entries {
			found = found || strings.Contains(e.Directive, c.entry)
		}
		if !found {
			t.Errorf("%s: nothing is told of %s: %v", name, c.entry, report.Entries)
		}
	}
}

// An access list stays in force whatever the lines of nginx say.
func TestAdvancedDoesNotTakeAnAccessListOff(t *testing.T) {
	s := hostWith("proxy_host", map[string]any{"access_list_id": int64(1), "advanced_config": "allow all;\nauth_basic off;\nlocation /open/ { allow all; proxy_pass http://10.0.0.2; }"})
	s.add("access_list", map[string]any{"id": int64(1), "name": "Office"})
	s.add("access_list_client", map[string]any{"id": int64(1), "access_list_id": int64(1), "address": "192.0.2.0/24", "directive": "allow"})
	data, report, err := translate(s)
	if err != nil {
		t.Fatal(err)
	}
	if text := plain(data); !strings.Contains(text, "use: [office]") || strings.Contains(text, "basic_auth") {
		t.Errorf("got\n%s", text)
	}
	told := 0
	for _, e := range report.Entries {
		if e.Verdict == importer.Impossible && strings.Contains(e.Note, "the host has an access list") {
			told++
		}
	}
	if told != 3 {
		t.Errorf("%d lines are told: %+v", told, report.Entries)
	}
}
