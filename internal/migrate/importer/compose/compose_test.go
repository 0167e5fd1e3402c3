package compose

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

func given(text string) ([]string, importer.Files) {
	return []string{"compose.yml"}, importer.Given(map[string][]byte{"compose.yml": []byte(text)})
}

func read(t *testing.T, text string) []*Service {
	t.Helper()
	names, files := given(text)
	p, err := Read(names, files)
	if err != nil {
		t.Fatal(err)
	}
	return p.Services
}

const nginxProxy = `
x-common: &common {CERT_NAME: shared}
services:
  nginx-proxy: {image: nginxproxy/nginx-proxy, labels: [com.github.nginx-proxy.nginx]}
  blog:
    image: ghost
    expose: ["2368"]
    environment:
      VIRTUAL_HOST: blog.example.com, www.blog.example.com
      LETSENCRYPT_HOST: blog.example.com,www.blog.example.com
      LETSENCRYPT_EMAIL: ops@example.com
  blog2:
    expose: ["2368"]
    environment: ["VIRTUAL_HOST=blog.example.com,www.blog.example.com", "LETSENCRYPT_HOST=blog.example.com,www.blog.example.com"]
  api:
    ports: ["8080:80", "9090:9000/tcp"]
    environment:
      - VIRTUAL_HOST=api.example.com
      - VIRTUAL_PORT=9000
      - VIRTUAL_PATH=/v1
      - VIRTUAL_DEST=/
      - VIRTUAL_PROTO=https
      - HTTPS_METHOD=noredirect
      - CERT_NAME=star
      - HSTS=off
      - NETWORK_ACCESS=internal
      - SERVER_TOKENS=off
      - VIRTUAL_ODD=x
      - PATH=/bin
  deep:
    environment: {VIRTUAL_HOST: "api.example.com", VIRTUAL_PATH: /v2/, VIRTUAL_DEST: /new/}
  many:
    environment: {<<: *common, VIRTUAL_HOST: "~^v[0-9]+\\.example\\.com$,mail.*,*.wild.example.com", HTTPS_METHOD: nohttp}
  back: {environment: {VIRTUAL_HOST: "~^(?=a)b$"}}
  php: {environment: {VIRTUAL_HOST: php.example.com, VIRTUAL_PROTO: fastcgi}}
  plain: {environment: {VIRTUAL_HOST: plain.example.com, HTTPS_METHOD: nohttps}}
`

func TestNginxProxy(t *testing.T) {
	data, report, err := NginxProxy(read(t, nginxProxy), []string{"compose.yml"})
	if err != nil {
		t.Fatal(err)
	}
	c, _, problems := config.Load("headgate.yaml", data)
	if len(problems) > 0 {
		t.Fatalf("not valid: %v\n%s", problems, data)
	}
	got := strings.NewReplacer("'", "", `"`, "").Replace(string(data))
	for _, want := range []string{
		"virtual_hosts: [blog.example.com, www.blog.example.com]\n    ports: [web, websecure]\n    redirect_http_to_https: true\n    acme: letsencrypt",
		"{url: http://blog:2368}\n          - {url: http://blog2:2368}", "value: max-age=31536000", "email: ops@example.com",
		"path: /v1\n        strip_prefix: true\n        servers:\n          - {url: https://api:9000, tls: {insecure_skip_verify: true}}",
		"path: /v2\n        strip_prefix: true\n        rewrite: {add_prefix: /new}", "allow: [127.0.0.0/8, 10.0.0.0/8",
		"cert_file: /etc/nginx/certs/star.crt", `virtual_hosts: [~^v[0-9]+\.example\.com$, ~^mail\..+$, *.wild.example.com]` + "\n    ports: [websecure]",
		"virtual_hosts: [plain.example.com]\n    ports: [web]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if c.Proxies["api.example.com"] == nil || len(c.Proxies["api.example.com"].Headers) != 0 || strings.Contains(got, "php") {
		t.Errorf("got\n%s", got)
	}
	verdicts := map[string]importer.Verdict{}
	for _, e := range report.Entries {
		verdicts[e.Directive] = e.Verdict
		if e.Line == 0 || e.File == "" || e.Verdict != importer.Same && e.Note == "" {
			t.Errorf("an entry without a place or reason: %+v", e)
		}
	}
	for directive, want := range map[string]importer.Verdict{
		"api: VIRTUAL_PATH=/v1": importer.Close, "deep: VIRTUAL_PATH=/v2/": importer.Same, "api: VIRTUAL_ODD=x": importer.Impossible, "api: SERVER_TOKENS=off": importer.Ignored,
		"back: VIRTUAL_HOST=~^(?=a)b$": importer.Impossible, "php: VIRTUAL_PROTO=fastcgi": importer.Impossible, "nginx-proxy: com.github.nginx-proxy.nginx=": importer.Ignored,
		"blog: LETSENCRYPT_EMAIL=ops@example.com": importer.Same, "many: CERT_NAME=shared": importer.Same,
	} {
		if verdicts[directive] != want {
			t.Errorf("%s is %q, want %s", directive, verdicts[directive], want)
		}
	}
	if _, there := verdicts["api: PATH=/bin"]; there {
		t.Error("a variable of the service itself has a verdict")
	}
	if told := fmt.Sprint(report.Check); !strings.Contains(told, "headgate.enable=true headgate.host=api.example.com headgate.port=9000 headgate.path=/v1 headgate.scheme=https") {
		t.Errorf("the labels of headgate are not told: %s", told)
	}
}

func TestCaddyfileOf(t *testing.T) {
	services := read(t, `
services:
  caddy: {labels: {caddy.email: ops@example.com}}
  one:
    expose: [8080]
    labels:
      caddy: shop.example.com
      caddy.reverse_proxy: "{{upstreams}}"
      caddy.1_header: -Server
      caddy.handle_path.0_rewrite: "* /x{path}"
  two: {labels: {caddy: shop.example.com, caddy.reverse_proxy: "{{upstreams 9000}}"}}
  three:
    labels:
      - caddy_0=a.example.com
      - caddy_0.reverse_proxy=/api/* {{upstreams https 8443}}
      - caddy_1=b.example.com
      - caddy_1.respond=hello
      - caddy_1.header={{ env "X" }}
`)
	left := map[string]string{}
	c := CaddyfileOf(services, func(s *Setting, why string) { left[s.Key] = why })
	const want = "{\n\temail ops@example.com\n}\n" +
		"shop.example.com {\n\theader -Server\n\treverse_proxy one:8080 two:9000\n\thandle_path {\n\t\trewrite * /x{path}\n\t}\n}\n" +
		"a.example.com {\n\treverse_proxy /api/* https://three:8443\n}\n" +
		"b.example.com {\n\trespond hello\n}\n"
	if c.Text != want {
		t.Errorf("got\n%s\nwant\n%s", c.Text, want)
	}
	if len(left) != 1 || !strings.Contains(left["caddy_1.header"], "template") {
		t.Errorf("left out %v", left)
	}
	if lines := strings.Count(c.Text, "\n"); lines != len(c.From) {
		t.Errorf("%d lines, %d places", lines, len(c.From))
	}
	r := &importer.Report{Entries: []importer.Entry{{File: "Caddyfile", Line: 5, Directive: "header -Server", Verdict: importer.Same}}}
	c.Places(r)
	if e := r.Entries[0]; e.File != "compose.yml" || e.Line != 9 || e.Directive != "one: caddy.1_header (header -Server)" {
		t.Errorf("got %+v", e)
	}
}

func TestFamilies(t *testing.T) {
	for text, want := range map[string]string{
		"services: {a: {labels: [traefik.enable=true]}}":                                       "[traefik]",
		"services: {a: {labels: {caddy_1.tls: x}}, b: {environment: [VIRTUAL_HOST=x]}}":        "[caddy nginx-proxy]",
		"services: {a: {labels: {caddyx: x}}, b: {environment: [A=x]}}":                        "[]",
		"x: &l {labels: {caddy: x}}\nservices: {a: *l, b: {<<: *l}}":                           "[caddy]",
		"services: {a: {deploy: {labels: [caddy=x]}, labels: [traefik.enable=true]}, b: null}": "[traefik caddy]",
	} {
		if got := fmt.Sprint(Families(read(t, text))); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "a: b", "services: [a]", "services: {", "\x00"} {
		names, files := given(text)
		if _, err := Read(names, files); err == nil || !strings.Contains(err.Error(), "compose.yml") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(nginxProxy))
	f.Add([]byte("services: {a: {labels: {caddy: a, caddy.1_x.y: \"{{upstreams 1}}\"}, ports: [{target: 1}, \"1:2/udp\"]}}"))
	for _, seed := range []string{"services: {a: {extends: b}}", "x: &a {<<: *a}\nservices: *a", "include: [{path: .env}]\nservices: {}", "services: {a: {labels: [\"${A:-${B}}\", $$, $], env_file: [.env], ports: [':-/']}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		names, files := []string{"compose.yml"}, importer.Given(map[string][]byte{"compose.yml": data, ".env": data})
		services, err := Read(names, files)
		if err != nil {
			return
		}
		if c := CaddyfileOf(services.Services, func(*Setting, string) {}); strings.Count(c.Text, "\n") != len(c.From) {
			t.Errorf("%q: %d places", c.Text, len(c.From))
		}
		_, report, err := NginxProxy(services.Services, names)
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
