package acme

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate/internal/schema"
)

// exchanged is one request that a provider must send, and what its API answers.
type exchanged struct {
	request string // method, path with query, and body
	status  int
	answer  string
}

// TestProvidersSpeakTheirAPIs holds every byte of what providers send against the
// documentation of their APIs: two values for one name, then both taken back.
func TestProvidersSpeakTheirAPIs(t *testing.T) {
	const ok = http.StatusOK
	for name, test := range map[string]struct {
		credentials map[string]string
		zone, name  string
		header      [2]string
		want        []exchanged
	}{
		"cloudflare": {map[string]string{"api_token": "s3cret"}, "example.com", "_acme-challenge.example.com", [2]string{"Authorization", "Bearer s3cret"}, []exchanged{
			{"GET /zones?name=example.com", ok, `{"success":true,"result":[{"id":"z1"}]}`},
			{"GET /zones/z1/dns_records?type=TXT&name=_acme-challenge.example.com", ok, `{"result":[{"id":"r0","content":"\"other\""}]}`},
			{`POST /zones/z1/dns_records {"content":"\"v1\"","name":"_acme-challenge.example.com","ttl":120,"type":"TXT"}`, ok, `{"success":true}`},
			{"GET /zones?name=example.com", ok, `{"result":[{"id":"z1"}]}`},
			{"GET /zones/z1/dns_records?type=TXT&name=_acme-challenge.example.com", ok, `{"result":[{"id":"r0","content":"\"other\""},{"id":"r1","content":"\"v1\""}]}`},
			{"DELETE /zones/z1/dns_records/r1", ok, `{"success":true}`},
		}},
		"digitalocean": {map[string]string{"token": "s3cret"}, "example.com", "_acme-challenge.a.example.com", [2]string{"Authorization", "Bearer s3cret"}, []exchanged{
			{`POST /domains/example.com/records {"data":"v1","name":"_acme-challenge.a","ttl":30,"type":"TXT"}`, 201, `{"domain_record":{"id":7}}`},
			{"GET /domains/example.com/records?type=TXT&per_page=200&name=_acme-challenge.a.example.com", ok, `{"domain_records":[{"id":6,"data":"other"},{"id":7,"data":"v1"}]}`},
			{"DELETE /domains/example.com/records/7", 204, ""},
		}},
		"hetzner": {map[string]string{"api_token": "s3cret"}, "example.com", "_acme-challenge.a.example.com", [2]string{"Authorization", "Bearer s3cret"}, []exchanged{
			{`POST /zones/example.com/rrsets/_acme-challenge.a/TXT/actions/add_records {"records":[{"value":"\"v1\""}],"ttl":60}`, 201, `{"action":{"id":1}}`},
			{`POST /zones/example.com/rrsets/_acme-challenge.a/TXT/actions/remove_records {"records":[{"value":"\"v1\""}]}`, 404, `{"error":{"code":"not_found"}}`},
		}},
		"porkbun": {map[string]string{"api_key": "pk", "secret_api_key": "s3cret"}, "example.com", "_acme-challenge.a.example.com", [2]string{"Content-Type", "application/json"}, []exchanged{
			{`POST /dns/create/example.com {"apikey":"pk","content":"v1","name":"_acme-challenge.a","secretapikey":"s3cret","ttl":"600","type":"TXT"}`, ok, `{"status":"SUCCESS","id":"9"}`},
			{`POST /dns/retrieveByNameType/example.com/TXT/_acme-challenge.a {"apikey":"pk","secretapikey":"s3cret"}`, ok, `{"status":"SUCCESS","records":[{"id":"8","content":"other"},{"id":"9","content":"v1"}]}`},
			{`POST /dns/delete/example.com/9 {"apikey":"pk","secretapikey":"s3cret"}`, ok, `{"status":"SUCCESS"}`},
		}},
		"desec": {map[string]string{"token": "s3cret"}, "example.dedyn.io", "_acme-challenge.example.dedyn.io", [2]string{"Authorization", "Token s3cret"}, []exchanged{
			{"GET /domains/example.dedyn.io/rrsets/_acme-challenge/TXT/", 404, `{"detail":"Not found."}`},
			{`PUT /domains/example.dedyn.io/rrsets/ [{"records":["\"v1\""],"subname":"_acme-challenge","ttl":3600,"type":"TXT"}]`, ok, `[]`},
			{"GET /domains/example.dedyn.io/rrsets/_acme-challenge/TXT/", ok, `{"records":["\"other\"","\"v1\""]}`},
			{`PUT /domains/example.dedyn.io/rrsets/ [{"records":["\"other\""],"subname":"_acme-challenge","ttl":3600,"type":"TXT"}]`, ok, `[]`},
		}},
		"gandi": {map[string]string{"token": "s3cret"}, "example.com", "_acme-challenge.example.com", [2]string{"Authorization", "Bearer s3cret"}, []exchanged{
			{"GET /domains/example.com/records/_acme-challenge/TXT", ok, `{"rrset_values":["\"other\""]}`},
			{`PUT /domains/example.com/records/_acme-challenge/TXT {"rrset_ttl":300,"rrset_values":["\"other\"","\"v1\""]}`, 201, `{}`},
			{"GET /domains/example.com/records/_acme-challenge/TXT", ok, `{"rrset_values":["\"v1\""]}`},
			{"DELETE /domains/example.com/records/_acme-challenge/TXT", 204, ""},
		}},
		"acme-dns": {map[string]string{"username": "u", "password": "s3cret", "subdomain": "d420"}, "", "d420.auth.example.org", [2]string{"X-Api-Key", "s3cret"}, []exchanged{
			{`POST /update {"subdomain":"d420","txt":"v1"}`, ok, `{"txt":"v1"}`},
		}},
		"duckdns": {map[string]string{"token": "s3cret"}, "", "_acme-challenge.me.duckdns.org", [2]string{}, []exchanged{
			{"GET /update?domains=me&token=s3cret&txt=v1", ok, "OK"},
			{"GET /update?clear=true&domains=me&token=s3cret&txt=v1", ok, "OK"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got := strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(body))
				if seen >= len(test.want) {
					t.Errorf("one request too many: %s", got)
					return
				}
				want := test.want[seen]
				seen++
				if got != want.request {
					t.Errorf("request %d is\n%s, want\n%s", seen, got, want.request)
				}
				if h := test.header; h[0] != "" && (r.Header.Get(h[0]) != h[1] && len(body) > 0 || h[0] == "Authorization" && r.Header.Get(h[0]) != h[1]) {
					t.Errorf("%s is %q, want %q", h[0], r.Header.Get(h[0]), h[1])
				}
				w.WriteHeader(want.status)
				io.WriteString(w, want.answer)
			}))
			defer server.Close()
			test.credentials[anEndpoint] = server.URL + "/"
			d := &DNS{Provider: name, Credentials: test.credentials}
			if problems := check(d); len(problems) > 0 {
				t.Fatal(problems)
			}
			p, err := newProvider(d)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.present(t.Context(), test.zone, test.name, "v1"); err != nil {
				t.Fatal(err)
			}
			if err := p.cleanUp(t.Context(), test.zone, test.name, "v1"); err != nil {
				t.Fatal(err)
			}
			if seen != len(test.want) {
				t.Errorf("%d requests, want %d", seen, len(test.want))
			}
		})
	}
}

// check returns what is wrong with settings.
func check(d *DNS) []schema.Problem {
	report := schema.NewReport("", nil)
	d.check(report.Root())
	return report.Problems()
}

// TestProvidersKeepTheirSecrets looks for credentials in what is told of refusals and
// of servers that are away.
func TestProvidersKeepTheirSecrets(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "no such token")
	}))
	defer refusing.Close()
	for _, name := range Providers() {
		k := providers[name]
		if !strings.Contains(strings.Join(k.may, " "), anEndpoint) {
			continue
		}
		for _, endpoint := range []string{refusing.URL, "http://127.0.0.1:1", "http://bad host"} {
			d := &DNS{Provider: name, Credentials: map[string]string{anEndpoint: endpoint}}
			for _, key := range k.needs {
				d.Credentials[key] = "s3cret"
			}
			p, err := newProvider(d)
			if err != nil {
				t.Fatal(err)
			}
			err = p.present(context.Background(), "me.duckdns.org", "_acme-challenge.me.duckdns.org", "v1")
			if err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s at %s: got the error %v, want one without the secret", name, endpoint, err)
			}
		}
	}
}
