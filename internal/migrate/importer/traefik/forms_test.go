package traefik

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// of imports one file that is in memory, with others beside it.
func of(t *testing.T, name, text string, beside ...string) (string, *importer.Report, error) {
	t.Helper()
	files := map[string][]byte{name: []byte(text)}
	for i := 0; i+1 < len(beside); i += 2 {
		files[beside[i]] = []byte(beside[i+1])
	}
	data, report, err := Import([]string{name}, importer.Given(files))
	return string(data), report, err
}

const staticTOML = `[entryPoints.web]
address = ":80"
[entryPoints.websecure]
address = ":443"

# the routers
[http.routers]
  [http.routers.a]
    rule = "Host(` + "`a.example.com`" + `)"
    service = "a"
    middlewares = ["cors"]
    entryPoints = ["websecure"]
    [http.routers.a.tls]
  [http.routers.b]
    rule = "Host(` + "`b.example.com`" + `) && PathPrefix(` + "`/test`" + `)"
    service = "a"
    middlewares = ["strip"]
    entryPoints = ["web"]

[http.middlewares.cors.headers]
accessControlAllowMethods = ["GET"]
[http.middlewares.strip.stripPrefix]
prefixes = ["/test"]
[http.middlewares.spare.compress]

[[http.services.a.loadBalancer.servers]]
url = "http://b:1"
[[http.services.a.loadBalancer.servers]]
url = "http://b:2"

[[tls.certificates]]
certFile = "/missing.crt"
keyFile = "/missing.key"
`

func TestFormsOfTOML(t *testing.T) {
	got, report, err := of(t, "traefik.toml", staticTOML)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("headgate.yaml", []byte(got)); len(problems) > 0 {
		t.Errorf("not valid: %v\n%s", problems, got)
	}
	if strings.Contains(got, "cors:") || strings.Contains(got, "missing.crt") {
		t.Errorf("it has what does nothing:\n%s", got)
	}
	verdicts := map[string]importer.Entry{}
	lines := strings.Split(staticTOML, "\n")
	for _, e := range report.Entries {
		path, value, _ := strings.Cut(e.Directive, ": ")
		verdicts[path] = e
		if value != "" && !strings.Contains(lines[e.Line-1], value) {
			t.Errorf("%s is not on line %d: %s", e.Directive, e.Line, lines[e.Line-1])
		}
	}
	for path, want := range map[string]importer.Verdict{
		"http.routers.a.tls": importer.Same, "http.middlewares.cors.headers.accessControlAllowMethods.0": importer.Ignored,
		"http.middlewares.strip.stripPrefix.prefixes.0": importer.Close, "http.middlewares.spare.compress": importer.Ignored, "tls.certificates.0.certFile": importer.Impossible,
	} {
		if e := verdicts[path]; e.Verdict != want {
			t.Errorf("%s: got %+v, want %s", path, e, want)
		}
	}
	if check := strings.Join(report.Check, "\n"); !strings.Contains(check, "/missing.crt is not there") {
		t.Errorf("to look at: %s", check)
	}
}

func TestWhatIsNoConfigurationOfTraefik(t *testing.T) {
	for name, text := range map[string]string{
		"kubernetes": "apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nspec: {routes: []}\n",
		"log alone":  "log: {level: INFO}\n",
		"another":    "name: x\non: push\n",
	} {
		if _, _, err := of(t, "a.yml", text); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Services of a file that is included alone count, and the project's .env is for all.
func TestComposeIncludes(t *testing.T) {
	const app = "services:\n  app:\n    labels:\n      - traefik.http.routers.a.rule=Host(`${A:-${B:-a}.example.com}`)\n      - traefik.http.routers.c.rule=Host(`c.${BASE}`)\n      - traefik.http.services.a.loadbalancer.server.port=80\n      - traefik.http.routers.a.service=a\n      - traefik.http.routers.c.service=a\n"
	got, report, err := of(t, "compose.yml", "include:\n  - sub/app.yml\n", "sub/app.yml", app, ".env", "BASE=example.net\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.example.com", "c.example.net", "http://app:80"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s%q", want, got, report.Check)
		}
	}
}

func TestLabelsOfTheFirstVersionHaveAVerdict(t *testing.T) {
	_, report, err := of(t, "compose.yml", "services:\n  app:\n    labels:\n      - traefik.frontend.rule=Host:a.example.com\n      - traefik.port=80\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range report.Entries {
		if e.Verdict != importer.Impossible || !strings.Contains(e.Note, "Traefik 1") {
			t.Errorf("got %+v", e)
		}
	}
	if len(report.Entries) != 2 {
		t.Errorf("got %+v", report.Entries)
	}
}

// TestEveryFieldHasItsVerdict holds the fields that need more than a look at themselves: of
// services without servers, of weighted services of streams, of timeouts and TLS options,
// of providers, and of routers below others.
func TestEveryFieldHasItsVerdict(t *testing.T) {
	got, report, err := of(t, "traefik.yml", `
entryPoints:
  web: {address: ":80"}
  db: {address: ":5432"}
  shared: {address: ":8093"}
  dns: {address: ":53/udp"}
api: {}
tracing: {serviceName: x, otlp: {http: {endpoint: "http://collector:4318"}}}
providers:
  providersThrottleDuration: 2s
  redis: {endpoints: ["redis:6379"], rootKey: traefik}
serversTransport: {insecureSkipVerify: true, forwardingTimeouts: {dialTimeout: 300ms, responseHeaderTimeout: 7, idleConnTimeout: 9s}}
tls: {options: {spare: {minVersion: VersionTLS12}}}
http:
  routers:
    app: {rule: "Host(`+"`a.example.com`"+`)", service: app, entryPoints: [web]}
    none: {rule: "Host(`+"`b.example.com`"+`)", service: none, entryPoints: [web]}
    parent: {rule: "Host(`+"`c.example.com`"+`)", middlewares: [add], entryPoints: [web]}
    child: {rule: "PathPrefix(`+"`/x`"+`)", service: app, parentRefs: [parent], entryPoints: [web]}
    mixed: {rule: "Host(`+"`d.example.com`"+`)", service: app, entryPoints: [shared]}
  middlewares:
    add: {headers: {customRequestHeaders: {X-Added: "1"}}}
  services:
    app: {middlewares: [add], loadBalancer: {passHostHeader: true, servers: [{url: "http://10.0.0.1:8080"}]}}
    none: {loadBalancer: {passHostHeader: true, healthCheck: {path: /up, interval: 1s}, servers: [{url: "http://10.0.0.1:8989474"}]}}
tcp:
  routers:
    db: {rule: "HostSNI(`+"`*`"+`)", service: both, entryPoints: [db]}
    mixed: {rule: "HostSNI(`+"`*`"+`)", service: one, entryPoints: [shared]}
  services:
    both: {weighted: {healthCheck: {}, services: [{name: one, weight: 3}, {name: two}]}}
    one: {loadBalancer: {healthCheck: {interval: 5s, send: PING}, servers: [{address: "10.0.0.2:5432"}]}}
    two: {loadBalancer: {servers: [{address: "10.0.0.3:5432"}]}}
udp:
  routers:
    dns: {service: dns, entryPoints: [dns]}
  services:
    dns: {weighted: {services: [{name: a, weight: 2}]}}
    a: {loadBalancer: {servers: [{address: "10.0.0.4:53"}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("headgate.yaml", []byte(got)); len(problems) > 0 {
		t.Errorf("not valid: %v\n%s", problems, got)
	}
	for _, e := range report.Entries {
		if strings.Contains(e.Note, "does not know this") {
			t.Errorf("no verdict: %s", e.Directive)
		}
	}
	doc := plain(got)
	expectLines(t, doc, "connect: 300ms", "request_timeout: 7s", "name: X-Added", "address: 10.0.0.2:5432, weight: 3", "interval: 5s", "address: 10.0.0.4:53, weight: 2")
	for _, not := range []string{"8989474", "insecure_skip_verify", "path: /x", "address: 0.0.0.0:8093\n    servers"} {
		if strings.Contains(doc, not) {
			t.Errorf("%q is in\n%s", not, doc)
		}
	}
	expectLines(t, strings.Join(report.Check, "\n"), "router child was left out", "TCP router mixed was left out", "the provider redis", `"http://10.0.0.1:8989474" is not the URL`)
}
