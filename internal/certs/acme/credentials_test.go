package acme

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/server/safedial"
)

// TestCredentialsAreTriedByReading holds what providers ask before an order, which has
// to change nothing, and what becomes of refusals.
func TestCredentialsAreTriedByReading(t *testing.T) {
	t.Parallel()
	const ok = http.StatusOK
	for name, test := range map[string]struct {
		want    []exchanged
		refusal exchanged // the first answer for credentials of another account
	}{
		"cloudflare": {[]exchanged{
			{"GET /zones?name=example.com", ok, `{"success":true,"result":[{"id":"z1"}]}`},
			{"GET /zones/z1/dns_records?type=TXT&name=_acme-challenge.example.com", ok, `{"result":[]}`},
		}, exchanged{"", ok, `{"success":true,"result":[]}`}},
		"digitalocean": {[]exchanged{{"GET /domains/example.com/records?type=TXT&per_page=1&name=_acme-challenge.example.com", ok, `{"domain_records":[]}`}}, exchanged{"", 404, `{"id":"not_found"}`}},
		"hetzner":      {[]exchanged{{"GET /zones/example.com", ok, `{"zone":{"id":1}}`}}, exchanged{"", 404, `{"error":{"code":"not_found"}}`}},
		"vultr":        {[]exchanged{{"GET /domains/example.com/records?per_page=1", ok, `{"records":[]}`}}, exchanged{"", 404, `{"error":"Invalid domain."}`}},
		"desec":        {[]exchanged{{"GET /domains/example.com/", ok, `{"name":"example.com"}`}}, exchanged{"", 404, `{"detail":"Not found."}`}},
		"gandi":        {[]exchanged{{"GET /domains/example.com", ok, `{"fqdn":"example.com"}`}}, exchanged{"", 404, `{"code":404}`}},
		"ionos":        {[]exchanged{{"GET /v1/zones", ok, `[{"id":"z1","name":"example.com"}]`}}, exchanged{"", ok, `[]`}},
		"linode":       {[]exchanged{{`GET /domains X-Filter {"domain":"example.com"}`, ok, `{"data":[{"id":12}]}`}}, exchanged{"", ok, `{"data":[]}`}},
		"ovh": {[]exchanged{
			{"GET /auth/time", ok, "1366560945"},
			{"GET /domain/zone/example.com/record?fieldType=TXT&subDomain=_acme-challenge", ok, `[]`},
		}, exchanged{"", 403, `{"message":"This credential is not valid"}`}},
		"porkbun": {[]exchanged{
			{`POST /dns/retrieveByNameType/example.com/TXT/_acme-challenge {"apikey":"s3cret","secretapikey":"s3cret"}`, ok, `{"status":"SUCCESS","records":[]}`},
		}, exchanged{"", 400, `{"status":"ERROR","message":"Invalid domain."}`}},
		"netcup": {[]exchanged{
			{`POST /?JSON {"action":"login","param":{"apikey":"s3cret","apipassword":"s3cret","customernumber":"s3cret"}}`, ok, `{"status":"success","responsedata":{"apisessionid":"s1"}}`},
			{`POST /?JSON {"action":"infoDnsZone","param":{"apikey":"s3cret","apisessionid":"s1","customernumber":"s3cret","domainname":"example.com"}}`, ok, `{"status":"success","responsedata":{"name":"example.com"}}`},
			{`POST /?JSON {"action":"logout","param":{"apikey":"s3cret","apisessionid":"s1","customernumber":"s3cret"}}`, ok, `{"status":"success","responsedata":""}`},
		}, exchanged{"", ok, `{"status":"error","statuscode":4013,"shortmessage":"Validation Error","longmessage":"The login was refused"}`}},
		"bunny": {[]exchanged{{"GET /dnszone?page=1&perPage=1000&search=example.com", ok, `{"Items":[{"Id":2,"Domain":"example.com"}]}`}}, exchanged{"", ok, `{"Items":[]}`}},
		"dnsimple": {[]exchanged{
			{"GET /whoami", ok, `{"data":{"account":{"id":1010}}}`},
			{"GET /1010/zones/example.com/records?type=TXT&name=_acme-challenge", ok, `{"data":[]}`},
		}, exchanged{"", ok, `{"data":{"user":{"id":1},"account":null}}`}},
		"godaddy":  {[]exchanged{{"GET /v1/domains/example.com/records/TXT/_acme-challenge", ok, `[]`}}, exchanged{"", 403, `{"code":"ACCESS_DENIED","message":"Authenticated user is not allowed access"}`}},
		"scaleway": {[]exchanged{{"GET /dns-zones/example.com/records?type=TXT&name=_acme-challenge", ok, `{"records":[]}`}}, exchanged{"", 403, `{"message":"insufficient permissions"}`}},
		"namecheap": {[]exchanged{
			{"POST / ApiKey=s3cret&ApiUser=s3cret&ClientIp=s3cret&Command=namecheap.domains.dns.getHosts&SLD=example&TLD=com&UserName=s3cret", ok, namecheapHosts("")},
		}, exchanged{"", ok, `<ApiResponse Status="ERROR" xmlns="http://api.namecheap.com/xml.response"><Errors><Error Number="1011150">Invalid request IP: 192.0.2.7</Error></Errors></ApiResponse>`}},
		"route53": {[]exchanged{
			{"GET /2013-04-01/hostedzonesbyname?dnsname=example.com", ok, xmlAnswer("ListHostedZonesByNameResponse", `<HostedZones><HostedZone><Id>/hostedzone/Z1</Id><Name>example.com.</Name></HostedZone></HostedZones>`)},
			{"GET /2013-04-01/hostedzone/Z1/rrset?maxitems=1&name=_acme-challenge.example.com.&type=TXT", ok, xmlAnswer("ListResourceRecordSetsResponse", `<ResourceRecordSets></ResourceRecordSets>`)},
		}, exchanged{"", ok, xmlAnswer("ListHostedZonesByNameResponse", `<HostedZones></HostedZones>`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try := func(want []exchanged) error {
				server, seen := vendor(t, want, nil)
				defer server.Close()
				d := &DNS{Provider: name, Credentials: map[string]string{anEndpoint: server.URL + "/"}}
				for _, key := range providers[name].needs {
					d.Credentials[key] = "s3cret"
				}
				p, err := newProvider(d)
				if err != nil {
					t.Fatal(err)
				}
				err = p.(checker).check(t.Context(), "example.com", "_acme-challenge.example.com")
				if *seen != len(want) {
					t.Errorf("%d requests, want %d: %v", *seen, len(want), err)
				}
				return err
			}
			if err := try(test.want); err != nil {
				t.Errorf("good credentials are refused: %v", err)
			}
			test.refusal.request = anyRequest
			refusals := []exchanged{test.refusal, {anyRequest, 401, "no such token"}}
			for _, refusal := range refusals {
				if err := try([]exchanged{refusal}); !isRefusal(err) {
					t.Errorf("%d %s: got %v, want a refusal", refusal.status, refusal.answer, err)
				}
			}
			if err := try([]exchanged{{anyRequest, 503, "away"}}); err == nil || isRefusal(err) {
				t.Errorf("503: got %v, want an error that is no refusal", err)
			}
		})
	}
}

func TestWrongCredentialsBurnNoOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var answer atomic.Value
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := answer.Load().(exchanged)
		w.WriteHeader(now.status)
		io.WriteString(w, now.answer)
	}))
	defer provider.Close()
	answer.Store(exchanged{"", 403, `{"success":false,"errors":[{"code":9109,"message":"Invalid access token"}]}`})
	u := a.manager(newStore())
	e := a.entry()
	e.DNS = &DNS{Provider: "cloudflare", Zone: "example.com", Credentials: map[string]string{"api_token": "s3cret", anEndpoint: provider.URL}}
	u.setWanted(e, []string{"*.example.com"})
	const name = "_wildcard.example.com"
	r := u.state(name, Blocked)
	if r.Trouble.Code != "dns_credentials" || !strings.Contains(r.Trouble.Message, "Invalid access token") || !strings.Contains(r.Trouble.Hint, "make new ones at cloudflare") || r.NextTry.IsZero() {
		t.Errorf("wrong credentials: got %+v", r.Trouble)
	}
	answer.Store(exchanged{"", 200, `{"success":true,"result":[]}`})
	r = u.until(name, "blocked by another zone", func(r *Record) bool {
		return r.State == Blocked && strings.Contains(r.Trouble.Message, "sees no such zone")
	})
	if r.Trouble.Code != "dns_credentials" || !strings.Contains(r.Trouble.Hint, "use the credentials of the account that has it") {
		t.Errorf("another zone: got %+v", r.Trouble)
	}
	if strings.Contains(r.Trouble.Error(), "s3cret") {
		t.Error("the secret is told")
	}
	if n := a.Orders(); n != 0 {
		t.Errorf("%d orders were placed", n)
	}
	answer.Store(exchanged{"", 503, "away"}) // may be over soon: the order is placed, and fails there
	r = u.until(name, "ordered", func(r *Record) bool {
		return len(r.Timeline) > 0 && r.Trouble != nil && r.Trouble.Code == "dns_provider"
	})
	if len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0], "could not be tried") {
		t.Errorf("got the warnings %q", r.Warnings)
	}
	u.setWanted(a.withDNS(), []string{"*.example.com"})
	u.state(name, Valid)
}

func TestACommandThatIsMissingBurnsNoOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	e := a.entry()
	e.DNS = &DNS{Provider: execProvider, Command: t.TempDir() + "/none"}
	u.setWanted(e, []string{"*.example.com"})
	r := u.state("_wildcard.example.com", Blocked)
	if r.Trouble.Code != "dns_credentials" || a.Orders() != 0 {
		t.Errorf("got %+v after %d orders", r.Trouble, a.Orders())
	}
}

// TestProvidersAreNotAskedAtTheLink names an endpoint that only this machine may reach.
func TestProvidersAreNotAskedAtTheLink(t *testing.T) {
	t.Parallel()
	p, err := newProvider(&DNS{Provider: "httpreq", Credentials: map[string]string{anEndpoint: "http://169.254.169.254/latest"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.present(t.Context(), "example.com", "_acme-challenge.example.com", "value"); !errors.Is(err, safedial.ErrRefused) {
		t.Errorf("got %v", err)
	}
}

// TestCredentialsStayAtTheirServer has a provider send its clients elsewhere: credentials
// in a field of the API's own or in the body do not go there.
func TestCredentialsStayAtTheirServer(t *testing.T) {
	t.Parallel()
	var elsewhere, within atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if strings.HasPrefix(rq.URL.Path, "/moved/") {
			within.Add(1)
			http.Redirect(w, rq, other.URL+rq.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		http.Redirect(w, rq, "/moved"+rq.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	for _, name := range []string{"bunny", "porkbun", "httpreq"} {
		d := &DNS{Provider: name, Credentials: map[string]string{anEndpoint: server.URL}}
		for _, credential := range providers[name].needs {
			if credential != anEndpoint {
				d.Credentials[credential] = "s3cret"
			}
		}
		p, err := newProvider(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.present(t.Context(), "example.com", "_acme-challenge.example.com", "value"); err == nil || !strings.Contains(err.Error(), "307") {
			t.Errorf("%s: got %v, want the redirect", name, err)
		}
	}
	if elsewhere.Load() != 0 || within.Load() != 3 {
		t.Errorf("%d requests went elsewhere, %d were redirected within the server; want 0 and 3", elsewhere.Load(), within.Load())
	}
}
