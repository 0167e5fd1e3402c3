package traefik

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// imported writes files and imports them.
func imported(t *testing.T, files map[string]string) (string, *importer.Report, error) {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, path)
	}
	data, report, err := Import(names, importer.Files{})
	return string(data), report, err
}

// accepted imports files and fails where the document is not valid.
func accepted(t *testing.T, files map[string]string) (string, *importer.Report) {
	t.Helper()
	got, report, err := imported(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("headgate.yaml", []byte(got)); len(problems) > 0 {
		t.Errorf("not valid: %v\n%s", problems, got)
	}
	return plain(got), report
}

// plain is a document without quotes.
func plain(text string) string { return strings.NewReplacer("'", "", `"`, "").Replace(text) }

func expectLines(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

const static = `
entryPoints:
  web:
    address: ":80"
    http: {redirections: {entryPoint: {to: websecure, scheme: https}}}
  websecure:
    address: ":443"
    http3: {}
    http: {tls: {certResolver: le}}
    forwardedHeaders: {trustedIPs: [10.0.0.0/8]}
  dns: {address: ":53/udp"}
  git: {address: ":2222"}
certificatesResolvers:
  le: {acme: {email: ada@example.com, storage: acme.json, httpChallenge: {entryPoint: web}}}
api: {dashboard: true}
log: {level: INFO}
`

const dynamic = "http:\n" +
	"  routers:\n" +
	"    shop: {rule: \"Host(`shop.example.com`) || Host(`www.shop.example.com`)\", service: shop, entryPoints: [websecure], middlewares: [secure, auth]}\n" +
	"    api: {rule: \"Host(`shop.example.com`) && PathPrefix(`/api/`)\", service: api, entryPoints: [websecure], middlewares: [strip, limit@file, cors], priority: 500}\n" +
	"    exact: {rule: \"Host(`shop.example.com`) && Path(`/health`)\", service: both, entryPoints: [websecure], priority: 400}\n" +
	"    late: {rule: \"Host(`shop.example.com`) && PathPrefix(`/l`)\", service: api, entryPoints: [websecure], priority: 1}\n" +
	"    odd: {rule: \"Host(`odd.example.com`) && Geo(`XX`)\", service: shop, entryPoints: [websecure]}\n" +
	"    broken: {rule: \"Host(`a\", service: shop}\n" +
	"    dashboard: {rule: \"Host(`t.example.com`)\", service: api@internal, entryPoints: [websecure]}\n" +
	"  services:\n" +
	"    shop: {loadBalancer: {servers: [{url: \"http://10.0.0.1:3000\", weight: 3}, {url: \"http://10.0.0.2:3000\"}], sticky: {cookie: {name: sid, secure: true}}, healthCheck: {path: /up, interval: 5, timeout: 2s}}}\n" +
	"    api: {loadBalancer: {servers: [{url: \"https://10.0.0.3\"}], serversTransport: own, passHostHeader: false}}\n" +
	"    both: {weighted: {services: [{name: shop, weight: 2}, {name: api, weight: 1}]}}\n" +
	"  serversTransports: {own: {insecureSkipVerify: true}}\n" +
	"  middlewares:\n" +
	"    strip: {stripPrefix: {prefixes: [/api]}}\n" +
	"    limit: {rateLimit: {average: 100, period: 1m, burst: 50}}\n" +
	"    auth: {basicAuth: {users: [\"ada:$2y$05$abcdefghijklmnopqrstuuu5rxdvLLNDDcRzcuRmZB/mWrs1eTIO2\"]}}\n" +
	"    secure: {headers: {stsSeconds: 63072000, stsIncludeSubdomains: true, frameDeny: true, customRequestHeaders: {X-Script: test, X-Gone: \"\"}}}\n" +
	"    cors: {headers: {accessControlAllowOriginList: [\"https://a.example\"], accessControlAllowMethods: [GET], accessControlMaxAge: 60}}\n" +
	"    unused: {plugin: {foo: {bar: 1}}}\n" +
	"tcp:\n" +
	"  routers:\n" +
	"    git: {rule: \"HostSNI(`*`)\", service: git, entryPoints: [git]}\n" +
	"  services: {git: {loadBalancer: {servers: [{address: \"10.0.0.4:22\"}]}}}\n" +
	"udp:\n" +
	"  routers: {dns: {service: dns, entryPoints: [dns]}}\n" +
	"  services: {dns: {loadBalancer: {servers: [{address: \"10.0.0.5:53\"}]}}}\n" +
	"tls: {certificates: [{certFile: /certs/a.pem, keyFile: /certs/a.key}]}\n"

func TestFiles(t *testing.T) {
	got, report := accepted(t, map[string]string{"traefik.yml": static, "dynamic.yml": dynamic})
	expectLines(t, got,
		"web:\n    address: 0.0.0.0:80\n    protocol: http\n", "websecure:\n    address: 0.0.0.0:443\n    protocol: https\n", "websecure-http3:\n    address: 0.0.0.0:443\n    protocol: http3\n",
		"le:\n    directory: letsencrypt\n    email: ada@example.com\n    challenge: http-01",
		"virtual_hosts: [www.shop.example.com]", "redirect_http_to_https: true", "acme: le", "client_ip: {trusted: [10.0.0.0/8]}",
		"path: /api\n        strip_prefix: true", "requests: 100\n          period: 1m0s\n          burst: 50", "allow_origins: [https://a.example]", "max_age: 60s",
		"{url: https://10.0.0.3:443, tls: {insecure_skip_verify: true}}", "{url: http://10.0.0.1:3000, weight: 3}", "sticky_cookie: {enabled: true, name: sid}", "interval: 5s",
		"value: max-age=63072000; includeSubDomains", "{direction: request, name: X-Gone, operation: remove}", "path: /health", "{url: https://10.0.0.3:443, tls: {insecure_skip_verify: true}, weight: 1}",
		"fixed_response: {status: 503}", "git:\n    address: 0.0.0.0:2222\n    servers:\n      - {address: 10.0.0.4:22}", "dns:\n    address: 0.0.0.0:53\n")
	check := strings.Join(report.Check, "\n")
	expectLines(t, check, "router late: routers of a higher priority get all of its requests", "router odd was left out", "router broken was left out", "api@internal", "/certs/a.pem is not there")
	if strings.Contains(got, "odd.example.com") {
		t.Error("a router with a matcher that cannot be translated is served to everybody")
	}
	for _, e := range report.Entries {
		if e.Line == 0 || e.File == "" || e.Verdict == "" || e.Verdict != importer.Same && e.Note == "" {
			t.Errorf("an entry without place, verdict or reason: %+v", e)
		}
		if strings.Contains(e.Directive, "$2y$") {
			t.Errorf("a hash of a password is shown: %s", e.Directive)
		}
	}
}

// A resolver by DNS needs credentials, which Traefik has in its environment: the
// document is not valid before they are there.
func TestResolverByDNS(t *testing.T) {
	got, report, err := imported(t, map[string]string{"traefik.yml": `
certificatesResolvers:
  wild: {acme: {storage: acme.json, caServer: "https://acme-staging-v02.api.letsencrypt.org/directory", dnsChallenge: {provider: cloudflare, resolvers: ["1.1.1.1:53"]}}}
`})
	if err != nil {
		t.Fatal(err)
	}
	expectLines(t, plain(got), "directory: letsencrypt-staging", "challenge: dns-01", "provider: cloudflare", "resolvers: [1.1.1.1:53]")
	expectLines(t, fmt.Sprint(report.Check), "set dns.credentials for cloudflare")
	if _, _, problems := config.Load("headgate.yaml", []byte(got)); len(problems) == 0 {
		t.Error("valid without credentials")
	}
}

// Matchers become those of routes, and routes decide as the routers do by their
// priorities.
func TestMatchers(t *testing.T) {
	const head = "entryPoints: {web: {address: \":8081\"}}\nhttp:\n  services: {s: {loadBalancer: {servers: [{url: \"http://127.0.0.1:1\"}]}}, u: {loadBalancer: {servers: [{url: \"http://127.0.0.1:2\"}]}}}\n  routers:\n"
	got, report := accepted(t, map[string]string{"a.yml": head +
		"    all: {rule: \"Host(`a.example`)\", service: s}\n" +
		"    get: {rule: \"Host(`a.example`) && Method(`get`)\", service: u}\n" +
		"    post: {rule: \"Host(`a.example`) && Method(`POST`) && Header(`X-V`, `2`)\", service: u}\n" +
		"    beta: {rule: \"Host(`a.example`) && PathPrefix(`/b/`) && HeaderRegexp(`Cookie`, `(^|; )beta=1`) && Query(`x`, `1`) && Query(`y`)\", service: u}\n" +
		"    old: {rule: \"Host(`a.example`) && PathPrefix(`/q/`) && Query(`m=1`)\", service: u}\n" +
		"    loud: {rule: \"Host(`b.example`)\", service: s, priority: 1000}\n" +
		"    quiet: {rule: \"Host(`b.example`) && PathPrefix(`/x/`)\", service: s}\n" +
		"    one: {rule: \"Host(`c.example`) && Header(`A`, `1`)\", service: s, priority: 5}\n" +
		"    two: {rule: \"Host(`c.example`) && Header(`B`, `1`)\", service: u, priority: 6}\n" +
		"    but: {rule: \"Host(`e.example`) && !Method(`GET`) && !Path(`/open`)\", service: s}\n" +
		"    near: {rule: \"Host(`d.example`) && ClientIP(`10.0.0.0/8`)\", service: s}\n"})
	expectLines(t, got, "matchers:\n          methods: [GET]", "methods: [POST]\n          headers:\n            - {name: X-V, value: 2}",
		"{name: Cookie, regex: (^|; )beta=1}", "{name: x, value: 1}\n            - {name: y}", "{name: m, value: 1}", "{name: B, value: 1}", "allow: [10.0.0.0/8]")
	expectLines(t, strings.Join(report.Check, "\n"), "router quiet: routers of a higher priority get all of its requests")
	expectLines(t, got, "headers:\n            - {name: A, value: 1}", "headers:\n            - {name: A, value: 1}\n            - {name: B, value: 1}", "methods: [GET]\n        fixed_response: {status: 404}", "path: /open\n        fixed_response: {status: 404}")
	verdicts := map[string]importer.Verdict{}
	for _, e := range report.Entries {
		name, _, _ := strings.Cut(e.Directive, ":")
		verdicts[name] = e.Verdict
	}
	for name, want := range map[string]importer.Verdict{"get": importer.Same, "post": importer.Same, "beta": importer.Close, "quiet": importer.Ignored, "loud": importer.Same, "one": importer.Same, "but": importer.Close, "two": importer.Same, "near": importer.Close} {
		if got := verdicts["http.routers."+name+".rule"]; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestRawData asks a Traefik that runs.
func TestRawData(t *testing.T) {
	answers := map[string]string{
		"/api/entrypoints": `[{"name":"web","address":":8081","transport":{"lifeCycle":{"graceTimeOut":"10s"}},"http":{}},{"name":"traefik","address":":8080"}]`,
		"/api/rawdata": `{"routers":{"api@internal":{"rule":"PathPrefix(` + "`/api`" + `)","service":"api@internal","entryPoints":["traefik"]},
			"shop@docker":{"entryPoints":["web"],"middlewares":["strip@file"],"service":"shop","rule":"Host(` + "`shop.example.com`) && PathPrefix(`/s/`)" + `","status":"enabled","using":["web"]}},
			"middlewares":{"strip@file":{"stripPrefix":{"prefixes":["/s/"]},"status":"enabled","usedBy":["shop@docker"]}},
			"services":{"shop@docker":{"loadBalancer":{"servers":[{"url":"http://172.17.0.2:80"}],"passHostHeader":true},"status":"enabled","usedBy":["shop@docker"],"serverStatus":{"http://172.17.0.2:80":"UP"}}}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "pw" {
			w.WriteHeader(401)
			return
		}
		w.Write([]byte(answers[r.URL.Path]))
	}))
	defer server.Close()
	data, report, err := FromAPI(t.Context(), server.Client(), server.URL+"/dashboard/", "ada:pw")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("headgate.yaml", data); len(problems) > 0 {
		t.Errorf("not valid: %v\n%s", problems, data)
	}
	got := plain(string(data))
	expectLines(t, got, "address: 0.0.0.0:8081", "virtual_hosts: [shop.example.com]", "path: /s", "strip_prefix: true", "url: http://172.17.0.2:80")
	if strings.Contains(got, ":8080") {
		t.Errorf("the port of Traefik's own pages was translated:\n%s", got)
	}
	for _, e := range report.Entries {
		if e.Verdict == importer.Impossible || e.Line == 0 {
			t.Errorf("%+v", e)
		}
	}
	for token, want := range map[string]string{"": "401", "x": "401"} {
		if _, _, err := FromAPI(t.Context(), server.Client(), server.URL, token); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", token, err)
		}
	}
	answers["/api/rawdata"] = "<html>"
	if _, _, err := FromAPI(t.Context(), server.Client(), server.URL, "ada:pw"); err == nil {
		t.Error("garbage was taken")
	}
}

func TestTOML(t *testing.T) {
	got, report := accepted(t, map[string]string{"traefik.toml": `
[entryPoints.web]
  address = ":8081"
[http.routers.r]
  rule = "Host(` + "`a.example`" + `)"
  service = "s"
[[http.services.s.loadBalancer.servers]]
  url = "http://127.0.0.1:1"
`})
	expectLines(t, got, "address: 0.0.0.0:8081", "virtual_hosts: [a.example]", "url: http://127.0.0.1:1")
	for _, e := range report.Entries {
		if strings.HasSuffix(e.Directive, "http.routers.r.service: s") && e.Line != 6 {
			t.Errorf("line %d, want 6: %+v", e.Line, e)
		}
	}
}

func TestComposeLabels(t *testing.T) {
	got, report := accepted(t, map[string]string{"compose.yml": "services:\n" +
		"  traefik:\n    image: traefik:v3\n    command: [\"--entryPoints.web.address=:80\", \"--entryPoints.websecure.address=:443\", \"--providers.docker=true\"]\n" +
		"  wiki:\n    image: wiki\n    labels:\n      - traefik.enable=true\n      - traefik.http.routers.wiki.rule=Host(`wiki.example.com`)\n" +
		"      - traefik.http.routers.wiki.entrypoints=websecure\n      - traefik.http.routers.wiki.tls=true\n      - traefik.http.services.wiki.loadbalancer.server.port=3000\n" +
		"      - traefik.http.routers.plain.rule=Host(`wiki.example.com`)\n      - traefik.http.routers.plain.entrypoints=web\n      - traefik.http.routers.plain.middlewares=tls\n" +
		"      - traefik.http.middlewares.tls.redirectscheme.scheme=https\n      - other.label=x\n" +
		"  bare:\n    expose: [\"8000\"]\n    labels:\n      traefik.http.routers.bare.rule: Host(`bare.example.com`)\n      traefik.http.routers.bare.nonsense: 1\n"})
	expectLines(t, got, "wiki:\n    virtual_hosts: [wiki.example.com]", "url: http://wiki:3000", "redirect_http_to_https: true", "url: http://bare:8000")
	if strings.Count(got, "wiki.example.com") != 1 {
		t.Errorf("the router that only redirects became a proxy:\n%s", got)
	}
	expectLines(t, fmt.Sprint(report.Entries), "nonsense")
	if strings.Contains(fmt.Sprint(report.Entries), "other.label") {
		t.Error("a label of somebody else is in the report")
	}
}

// A service that Traefik does not see has routers that answer nobody.
func TestComposeServicesThatAreNotExposed(t *testing.T) {
	compose := func(flag, label string) string {
		return "services:\n  traefik:\n    image: traefik:v3\n    command: [\"--entryPoints.web.address=:80\"" + flag + "]\n" +
			"  seen:\n    expose: [1]\n    labels: [\"traefik.enable=true\", \"traefik.http.routers.seen.rule=Host(`seen.example.com`)\"]\n" +
			"  hidden:\n    expose: [1]\n    labels:\n" + label + "      - traefik.http.routers.hidden.rule=Host(`hidden.example.com`)\n"
	}
	off := `, "--providers.docker.exposedByDefault=false"`
	for name, c := range map[string]struct {
		text  string
		there bool
	}{
		"enable=false":             {compose("", "      - traefik.enable=false\n"), false},
		"not by default":           {compose(off, ""), false},
		"by default":               {compose("", ""), true},
		"enable=true":              {compose(off, "      - traefik.enable=true\n"), true},
		"enable=FALSE in a letter": {compose("", "      - Traefik.Enable=FALSE\n"), false},
	} {
		got, report := accepted(t, map[string]string{"compose.yml": c.text})
		if strings.Contains(got, "hidden.example.com") != c.there || !strings.Contains(got, "seen.example.com") {
			t.Errorf("%s:\n%s", name, got)
		}
		if told := fmt.Sprint(report.Entries); !c.there && !strings.Contains(told, "hidden: traefik.http.routers.hidden.rule") {
			t.Errorf("%s: the label is not told: %s", name, told)
		}
	}
}

func TestStorageIsTakenAlong(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	got, report := accepted(t, map[string]string{"traefik.yml": static, "dynamic.yml": dynamic, "acme.json": `{"le":{"Account":{},"Certificates":[
		{"domain":{"main":"*.example.com"},"certificate":"` + encode([]byte("chain")) + `","key":"` + encode([]byte("key")) + `","Store":"default"},
		{"domain":{"main":"bad"},"certificate":"%%","key":""}]}}`})
	expectLines(t, got, "cert_file: imported/acme-wildcard.example.com.pem")
	if string(report.Files["imported/acme-wildcard.example.com.key"]) != "key" || len(report.Files) != 2 {
		t.Errorf("%q", report.Files)
	}
	if strings.Contains(fmt.Sprint(report.Entries), encode([]byte("key"))) {
		t.Error("a key is in the report")
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	deep := strings.Repeat("a: {", 100) + strings.Repeat("}", 100)
	for name, c := range map[string]struct{ file, text, want string }{
		"binary":   {"a.yml", "\x00\x01", "not a text"},
		"template": {"a.yml", "http:\n  routers: {{ range .Items }}", ":2: a Go template"},
		"yaml":     {"a.yml", "http: [", ""},
		"toml":     {"a.toml", "[http\n", "a.toml:"},
		"deep":     {"a.yml", deep, "nested too deep"},
		"nothing":  {"a.yml", "x: 1\n", "nothing of Traefik"},
		"empty":    {"a.yml", "", "nothing of Traefik"},
		"storage":  {"acme.json", "{", "not an acme.json"},
		"laughs":   {"a.yml", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "too much"},
	} {
		_, _, err := imported(t, map[string]string{c.file: c.text})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestRules(t *testing.T) {
	for text, want := range map[string]string{
		"Host(`a`)":               "[[host a]]",
		"Host(`a`, `b`)":          "[[host a b]]",
		"Host(`a`) && Path(`/x`)": "[[host a path /x]]",
		"(Host(`a`)||Host(`b`))&&PathPrefix(\"/x\")":   "[[host a pathprefix /x] [host b pathprefix /x]]",
		"!Host(`a`) || !(Path(`/x`) && Method(`GET`))": "[[!host a] [!path /x] [!method GET]]",
		"!(Path(`/x`) || Method(`GET`))":               "[[!path /x !method GET]]",
	} {
		alternatives, err := parseRule(text)
		var all []string
		for _, a := range alternatives {
			var parts []string
			for _, m := range a {
				part := m.name + " " + strings.Join(m.args, " ")
				if m.not {
					part = "!" + part
				}
				parts = append(parts, part)
			}
			all = append(all, "["+strings.Join(parts, " ")+"]")
		}
		if got := "[" + strings.Join(all, " ") + "]"; err != nil || got != want {
			t.Errorf("%s: got %s %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Host", "Host(", "Host(`a", "Host(a)", "Host(`a`) &&", "(Host(`a`)", "Host(`a`))", "&&", strings.Repeat("(", 1000), strings.Repeat("!", 1000), "(" + strings.Repeat("A(`a`)||", 300) + "A(`a`))&&(" + strings.Repeat("A(`a`)||", 300) + "A(`a`))"} {
		if got, err := parseRule(text); err == nil {
			t.Errorf("%.40s: %v", text, got)
		}
	}
	for text, want := range map[string]string{`^.+\.example\.com$`: `~^.+\.example\.com$`, `{sub:[a-z]+}.example.com`: `~^(?:[a-z]+)\.example\.com$`, `[a-z0-9-]+\.example\.com`: "*.example.com", `{sub`: ""} {
		if got, _ := hostExpression(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(static))
	f.Add([]byte(dynamic))
	f.Add([]byte("services: {a: {labels: [\"traefik.http.routers.a.rule=Host(`a`)\"]}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr := newTranslator("Traefik")
		if tr.read("a.yml", data) != nil {
			return
		}
		if _, report, err := tr.translate(); err == nil {
			for _, e := range report.Entries {
				if e.Verdict == "" {
					t.Errorf("%+v has no verdict", e)
				}
			}
		}
	})
}

// What Compose makes of its files is what Traefik sees: merges, what is extended and
// included, variables, and in a swarm the labels of the service.
func TestComposeFilesAsComposeReadsThem(t *testing.T) {
	files := map[string]string{"compose.yml": `
include: [more.yml]
x-labels: &labels {traefik.enable: "true", traefik.http.routers.a.entrypoints: web}
services:
  traefik:
    environment: [TRAEFIK_ENTRYPOINTS_WEB_ADDRESS=:8080, TRAEFIK_PROVIDERS_DOCKER_EXPOSEDBYDEFAULT=false]
    command: --providers.docker=true
  a:
    extends: {file: base.yml, service: base}
    labels: {<<: *labels, traefik.http.routers.a.rule: "Host(` + "`${HOST}`" + `)"}
    deploy: {labels: [traefik.http.routers.swarm.rule=Host(` + "`swarm.example.com`" + `)]}
`, "base.yml": "services: {base: {expose: [3000], labels: [traefik.http.middlewares.users.basicauth.users=ada:$$2y$$10$$aaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee, traefik.http.routers.a.middlewares=users]}}",
		"more.yml": "services: {b: {labels: [traefik.enable=true, traefik.http.routers.b.rule=Host(`b.example.com`), traefik.http.routers.b.entrypoints=web]}}", ".env": "HOST=a.example.com"}
	given := map[string][]byte{}
	for name, text := range files {
		given[name] = []byte(text)
	}
	data, report, err := Import([]string{"compose.yml"}, importer.Given(given))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.NewReplacer("'", "", `"`, "").Replace(string(data))
	for _, want := range []string{"virtual_hosts: [a.example.com]", "virtual_hosts: [b.example.com]", "http://a:3000", "address: 0.0.0.0:8080", "password_hash: $2y$10$aaaa", report.Summary()} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	verdicts := ""
	for _, e := range report.Entries {
		verdicts += fmt.Sprintf("%s:%d %s %s\n", e.File, e.Line, e.Directive, e.Verdict)
	}
	for _, want := range []string{"compose.yml:2 include: more.yml ignored", "a: extends base ignored", "a: traefik.http.routers.swarm.rule=Host(`swarm.example.com`) ignored"} {
		if !strings.Contains(verdicts, want) {
			t.Errorf("no %q in\n%s", want, verdicts)
		}
	}
}
