package review

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"headgate/internal/config"
)

// Every feature says what it means for visitors when it comes, also with its defaults alone,
// and when it goes.
func TestEveryFeatureSaysWhatItMeansForVisitors(t *testing.T) {
	settings := map[string]string{
		"client_ip": "{trusted: [10.0.0.0/8]}", "ip_filter": "{allow: [10.0.0.0/8]}", "rate_limit": "{requests: 5}", "redirect_http_to_https": "true",
		"cors": `{allow_origins: ["https://a.example.com"]}`, "maintenance": "{}", "redirects": `[{regex: "^/a$", target: /b}]`, "request_body_limit": "1MiB",
		"request_timeout": "5s", "basic_auth": `{users: [{name: ada, password_hash: "$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se"}]}`,
		"forward_auth": "{url: http://127.0.0.1:1}", "rewrite": "{add_prefix: /x}", "headers": "[{direction: response, name: X-A, value: b}]", "cache": "{}", "compression": "{}",
		"security_headers": "{}", "error_pages": "[{status: [404], body: gone}]", "sticky_cookie": "{}", "mirror": `{servers: [{url: "http://127.0.0.1:2"}]}`,
		"gate": "{allow: [group:company/staff]}",
	}
	document := func(feature string) string {
		return "ports: {secure: {address: \"127.0.0.1:443\", protocol: https}}\n" +
			"sign_in: {providers: {company: {issuer: \"https://id.example.com\", client_id: a, client_secret: b}}}\n" +
			"proxies:\n  login: {virtual_hosts: [login.example.com], routes: [{sign_in: {}}]}\n  shop:\n    virtual_hosts: [shop.example.com]\n    routes:\n      - servers: [{url: \"http://127.0.0.1:1\"}]\n" + feature
	}
	for feature, setting := range settings {
		before, after := load(t, []byte(document("")), nil), load(t, []byte(document("        "+feature+": "+setting+"\n")), nil)
		for what, c := range map[string]Change{"comes": {Before: before, After: after}, "goes": {Before: after, After: before}} {
			if got := visitorSentences(Of(c)); len(got) != 1 || !strings.HasPrefix(got[0], "proxy shop: route /: ") {
				t.Errorf("%s %s: got %q", feature, what, got)
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Features]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); settings[name] == "" || effects[name].off == "" {
			t.Errorf("%s: nothing is said", name)
		}
	}
}

func visitorSentences(r *Review) []string {
	var out []string
	for _, o := range r.Objects {
		for _, s := range o.Sentences {
			if s.Code == Visitor {
				out = append(out, s.Text)
			}
		}
	}
	slices.Sort(out)
	return out
}
