package interop

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const traefikStatic = `
entryPoints:
  web:
    address: "%[1]s"
providers:
  file:
    filename: %[2]s
global: {checkNewVersion: false, sendAnonymousUsage: false}
`

// traefikRules is a dynamic configuration in which each router and middleware has
// borders.
const traefikRules = `
http:
  routers:
    root: {rule: "Host(` + "`shop.example.com`) || Host(`www.shop.example.com`)" + `", priority: 1, service: one}
    api: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/api/`)" + `", service: two, middlewares: [strip]}
    write: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/api/`) && (Method(`POST`) || Method(`PUT`))" + `", service: one, middlewares: [named]}
    beta: {rule: "Host(` + "`shop.example.com`) && Header(`X-Version`, `2`)" + `", priority: 60, service: two}
    asked: {rule: "Host(` + "`shop.example.com`) && Query(`a`, `1`)" + `", service: two}
    exact: {rule: "Host(` + "`shop.example.com`) && Path(`/exact`)" + `", service: two}
    letters: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/letters`)" + `", service: two}
    added: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/added/`)" + `", service: one, middlewares: [add]}
    replaced: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/replaced/`)" + `", service: one, middlewares: [replace]}
    expr: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/expr/`)" + `", service: one, middlewares: [replaceexpr]}
    moved: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/moved/`)" + `", service: one, middlewares: [moved]}
    staff: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/staff/`)" + `", service: one, middlewares: [users]}
    office: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/office/`)" + `", service: one, middlewares: [office]}
    home: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/home/`)" + `", service: one, middlewares: [home]}
    private: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/private/`)" + `", service: one, middlewares: [ask]}
    framed: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/framed/`)" + `", service: one, middlewares: [frame]}
    chained: {rule: "Host(` + "`shop.example.com`) && PathPrefix(`/chained/`)" + `", service: one, middlewares: [chain]}
    own: {rule: "Host(` + "`own.example.com`)" + `", service: ownhost}
    pattern: {rule: "HostRegexp(` + "`^v[0-9]+\\\\.example\\\\.com$`)" + `", service: two}
  services:
    one: {loadBalancer: {servers: [{url: "http://%[1]s"}]}}
    two: {loadBalancer: {servers: [{url: "http://%[2]s"}]}}
    ownhost: {loadBalancer: {passHostHeader: false, servers: [{url: "http://%[2]s"}]}}
  middlewares:
    strip: {stripPrefix: {prefixes: [/api]}}
    named: {headers: {customRequestHeaders: {X-Secret: write, X-List: ""}}}
    add: {addPrefix: {prefix: /in}}
    replace: {replacePath: {path: /all}}
    replaceexpr: {replacePathRegex: {regex: "^/expr/(.*)", replacement: "/to/$1"}}
    moved: {redirectRegex: {regex: "^http://shop.example.com/moved/(.*)", replacement: "https://new.example.com/${1}", permanent: true}}
    users: {basicAuth: {realm: Staff, users: ["anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/"]}}
    office: {ipAllowList: {sourceRange: [192.0.2.0/24]}}
    home: {ipAllowList: {sourceRange: [127.0.0.0/8]}}
    ask: {forwardAuth: {address: "http://%[3]s/check", authResponseHeaders: [X-Who]}}
    frame: {headers: {frameDeny: true}}
    chain: {chain: {middlewares: [frame, add]}}
`

// TestAnImportOfTraefikAnswersAsTraefikDoes gives Traefik and headgate, by the import of
// the same files, the same requests. Debian has no Traefik: interop/traefik builds it.
func TestAnImportOfTraefikAnswersAsTraefikDoes(t *testing.T) {
	program := os.Getenv("HEADGATE_TRAEFIK")
	if program == "" {
		t.Skip("HEADGATE_TRAEFIK names no Traefik: interop/traefik builds one and prints where it is")
	}
	theirs, ours, dir := free(t), free(t), t.TempDir()
	static, dynamic := filepath.Join(dir, "traefik.yml"), filepath.Join(dir, "dynamic.yml")
	for name, text := range map[string]string{
		static:  fmt.Sprintf(traefikStatic, theirs, dynamic),
		dynamic: fmt.Sprintf(traefikRules, echo(t, "one"), echo(t, "two"), doorkeeper(t)),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	startPeer(t, theirs, program, "--configFile="+static)
	awaitAnswer(t, theirs, wanted{method: "GET", host: "shop.example.com", path: "/"}, http.StatusOK)
	got := importOf(t, "traefik", static, dynamic)
	start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(got.document, theirs, ours))

	var requests []wanted
	for _, host := range []string{"shop.example.com", "WWW.shop.example.com", "shop.example.com:8080", "own.example.com", "v12.example.com", "vx.example.com", "unknown.example.com"} {
		for _, path := range []string{"/", "/a/b?c=d&e", "/api/", "/api", "/api/users?page=2", "/apix", "/exact", "/exact/x", "/letters", "/letters/x", "/lettersx", "/added/x", "/replaced/x?y", "/expr/x", "/moved/x?y", "/staff/x", "/office/x",
			"/home/x", "/private/x", "/framed/x", "/chained/x", "/?a=1", "/b?x=2&a=1", "/?a=11", "/API/x"} {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
				for _, header := range []http.Header{{}, {"X-Version": {"2"}}, {"X-Version": {"22"}}, {"X-Secret": {"mine"}, "X-List": {"mine"}}, {authHeader: {"right"}}, {"Authorization": {"Basic YW5uYTpzZWNyZXQ="}}} {
					requests = append(requests, wanted{method: method, host: host, path: path, header: header})
				}
			}
		}
	}
	equivalent(t, theirs, ours, got, requests, []told{
		{"without the slash matches too", func(rq wanted, _, _ answer) bool { return rq.path == "/api" }},
		{"there are no exact paths", func(rq wanted, _, _ answer) bool { return rq.path == "/exact/x" }},
		{"headgate matches whole segments", func(rq wanted, _, _ answer) bool { return rq.path == "/lettersx" }},
		{"all methods get its status", func(rq wanted, want, have answer) bool {
			return have.status == 301 && (want.status == 308 && want.location == have.location || strings.HasSuffix(rq.host, ":8080"))
		}},
		{"the challenge names UTF-8", func(_ wanted, want, have answer) bool {
			return want.status == 401 && strings.TrimSuffix(have.auth, `, charset="UTF-8"`) == want.auth
		}},
	})
}
