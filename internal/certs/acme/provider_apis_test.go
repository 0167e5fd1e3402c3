package acme

import (
	"context"
	"encoding/xml"
	"fmt"
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
			{`POST /zones/example.com/rrsets/_acme-challenge.a/TXT/actions/add_records {"records":[{"value":"\"v1\""}],"ttl":60}`, 201, `{"action":{"id":1,"command":"add_rrset_records","status":"running","progress":50,"error":null}}`},
			{"GET /actions/1", ok, `{"action":{"id":1,"status":"running","error":null}}`},
			{"GET /actions/1", ok, `{"action":{"id":1,"status":"success","error":null}}`},
			{`POST /zones/example.com/rrsets/_acme-challenge.a/TXT/actions/remove_records {"records":[{"value":"\"v1\""}]}`, 404, `{"error":{"code":"not_found"}}`},
		}},
		"porkbun": {map[string]string{"api_key": "pk", "secret_api_key": "s3cret"}, "example.com", "_acme-challenge.a.example.com", [2]string{"Content-Type", "application/json"}, []exchanged{
			{`POST /dns/create/example.com {"apikey":"pk","content":"v1","name":"_acme-challenge.a","secretapikey":"s3cret","ttl":"600","type":"TXT"}`, ok, `{"status":"SUCCESS","id":"9"}`},
			{`POST /dns/retrieveByNameType/example.com/TXT/_acme-challenge.a {"apikey":"pk","secretapikey":"s3cret"}`, ok, `{"status":"SUCCESS","records":[{"id":"8","content":"other"},{"id":9,"content":"v1"}]}`},
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
		"ionos": {map[string]string{"api_key": "pre.s3cret"}, "example.com", "_acme-challenge.example.com", [2]string{"X-API-Key", "pre.s3cret"}, []exchanged{
			{"GET /v1/zones", ok, `[{"id":"z0","name":"a.example.com"},{"id":"z1","name":"example.com","type":"NATIVE"}]`},
			{`POST /v1/zones/z1/records [{"content":"v1","name":"_acme-challenge.example.com","ttl":60,"type":"TXT"}]`, 201, `[]`},
			{"GET /v1/zones", ok, `[{"id":"z1","name":"example.com"}]`},
			{"GET /v1/zones/z1?recordName=_acme-challenge.example.com&recordType=TXT", ok, `{"records":[{"id":"r0","content":"\"other\""},{"id":"r1","content":"\"v1\""}]}`},
			{"DELETE /v1/zones/z1/records/r1", ok, ""},
		}},
		"linode": {map[string]string{"token": "s3cret"}, "example.com", "_acme-challenge.a.example.com", [2]string{"Authorization", "Bearer s3cret"}, []exchanged{
			{`GET /domains X-Filter {"domain":"example.com"}`, ok, `{"data":[{"id":12,"domain":"example.com"}],"page":1,"pages":1}`},
			{`POST /domains/12/records {"name":"_acme-challenge.a","target":"v1","ttl_sec":300,"type":"TXT"}`, ok, `{"id":7}`},
			{`GET /domains X-Filter {"domain":"example.com"}`, ok, `{"data":[{"id":12,"domain":"example.com"}]}`},
			{`GET /domains/12/records X-Filter {"name":"_acme-challenge.a","type":"TXT"}`, ok, `{"data":[{"id":6,"target":"other"},{"id":7,"target":"v1"}]}`},
			{"DELETE /domains/12/records/7", ok, "{}"},
		}},
		"vultr": {map[string]string{"api_key": "s3cret"}, "example.com", "_acme-challenge.example.com", [2]string{"Authorization", "Bearer s3cret"}, []exchanged{
			{`POST /domains/example.com/records {"data":"\"v1\"","name":"_acme-challenge","ttl":120,"type":"TXT"}`, 201, `{"record":{"id":"r1"}}`},
			{"GET /domains/example.com/records?per_page=500&cursor=", ok, `{"records":[{"id":"r0","type":"TXT","name":"_acme-challenge","data":"\"other\""}],"meta":{"total":2,"links":{"next":"bmV4dA==","prev":""}}}`},
			{"GET /domains/example.com/records?per_page=500&cursor=bmV4dA%3D%3D", ok, `{"records":[{"id":"r1","type":"TXT","name":"_acme-challenge","data":"\"v1\""}],"meta":{"links":{"next":"","prev":""}}}`},
			{"DELETE /domains/example.com/records/r1", 204, ""},
		}},
		"bunny": {map[string]string{"api_key": "s3cret"}, "example.com", "_acme-challenge.a.example.com", [2]string{"AccessKey", "s3cret"}, []exchanged{
			{"GET /dnszone?page=1&perPage=1000&search=example.com", ok, `{"Items":[{"Id":1,"Domain":"my-example.com"},{"Id":2,"Domain":"example.com","Records":[]}]}`},
			{`PUT /dnszone/2/records {"Name":"_acme-challenge.a","Ttl":60,"Type":3,"Value":"v1"}`, 201, `{"Id":9}`},
			{"GET /dnszone?page=1&perPage=1000&search=example.com", ok, `{"Items":[{"Id":2,"Domain":"example.com","Records":[{"Id":7,"Type":0,"Name":"_acme-challenge.a","Value":"v1"},{"Id":8,"Type":3,"Name":"_acme-challenge.a","Value":"other"},{"Id":9,"Type":3,"Name":"_acme-challenge.a","Value":"v1"}]}]}`},
			{"DELETE /dnszone/2/records/9", 204, ""},
		}},
		"dnsimple": {map[string]string{"token": "s3cret"}, "example.com", "_acme-challenge.example.com", [2]string{"Authorization", "Bearer s3cret"}, []exchanged{
			{"GET /whoami", ok, `{"data":{"user":null,"account":{"id":1010,"email":"a@example.com"}}}`},
			{`POST /1010/zones/example.com/records {"content":"v1","name":"_acme-challenge","ttl":60,"type":"TXT"}`, 201, `{"data":{"id":5}}`},
			{"GET /whoami", ok, `{"data":{"user":null,"account":{"id":1010}}}`},
			{"GET /1010/zones/example.com/records?type=TXT&name=_acme-challenge", ok, `{"data":[{"id":4,"content":"other"},{"id":5,"content":"v1"}]}`},
			{"DELETE /1010/zones/example.com/records/5", 204, ""},
		}},
		"godaddy": {map[string]string{"api_key": "k", "api_secret": "s3cret"}, "example.com", "_acme-challenge.example.com", [2]string{"Authorization", "sso-key k:s3cret"}, []exchanged{
			{"GET /v1/domains/example.com/records/TXT/_acme-challenge", ok, `[{"type":"TXT","name":"_acme-challenge","data":"other","ttl":3600}]`},
			{`PUT /v1/domains/example.com/records/TXT/_acme-challenge [{"data":"other","ttl":600},{"data":"v1","ttl":600}]`, ok, ""},
			{"GET /v1/domains/example.com/records/TXT/_acme-challenge", ok, `[{"data":"v1","ttl":600}]`},
			{"DELETE /v1/domains/example.com/records/TXT/_acme-challenge", 204, ""},
		}},
		"scaleway": {map[string]string{"secret_key": "s3cret"}, "example.com", "_acme-challenge.a.example.com", [2]string{"X-Auth-Token", "s3cret"}, []exchanged{
			{`PATCH /dns-zones/example.com/records {"changes":[{"add":{"records":[{"data":"\"v1\"","name":"_acme-challenge.a","ttl":60,"type":"TXT"}]}}],"return_all_records":false}`, ok, `{"records":[]}`},
			{`PATCH /dns-zones/example.com/records {"changes":[{"delete":{"id_fields":{"data":"\"v1\"","name":"_acme-challenge.a","type":"TXT"}}}],"return_all_records":false}`, ok, `{"records":[]}`},
		}},
		"namecheap": {map[string]string{"api_user": "me", "api_key": "s3cret", "client_ip": "192.0.2.1"}, "example.co.uk", "_acme-challenge.example.co.uk", [2]string{"Content-Type", "application/x-www-form-urlencoded"}, []exchanged{
			{"POST / " + namecheapForm + "&Command=namecheap.domains.dns.getHosts&SLD=example&TLD=co.uk&UserName=me", ok, namecheapHosts("")},
			{"POST / Address1=192.0.2.9&Address2=mail.example.net.&Address3=v1&" + namecheapForm + "&Command=namecheap.domains.dns.setHosts&EmailType=MX&HostName1=%40&HostName2=%40&HostName3=_acme-challenge&MXPref1=10&MXPref2=5&RecordType1=A&RecordType2=MX&RecordType3=TXT&SLD=example&TLD=co.uk&TTL1=1800&TTL2=300&TTL3=60&UserName=me", ok, namecheapSet},
			{"POST / " + namecheapForm + "&Command=namecheap.domains.dns.getHosts&SLD=example&TLD=co.uk&UserName=me", ok, namecheapHosts(`<host HostId="3" Name="_acme-challenge" Type="TXT" Address="v1" MXPref="10" TTL="60" />`)},
			{"POST / Address1=192.0.2.9&Address2=mail.example.net.&" + namecheapForm + "&Command=namecheap.domains.dns.setHosts&EmailType=MX&HostName1=%40&HostName2=%40&MXPref1=10&MXPref2=5&RecordType1=A&RecordType2=MX&SLD=example&TLD=co.uk&TTL1=1800&TTL2=300&UserName=me", ok, namecheapSet},
		}},
		"netcup": {map[string]string{"customer_number": "77", "api_key": "k", "api_password": "s3cret"}, "example.com", "_acme-challenge.example.com", [2]string{"Content-Type", "application/json"}, []exchanged{
			{`POST /?JSON {"action":"login","param":{"apikey":"k","apipassword":"s3cret","customernumber":"77"}}`, ok, `{"status":"success","statuscode":2000,"responsedata":{"apisessionid":"s1"}}`},
			{`POST /?JSON {"action":"updateDnsRecords","param":{"apikey":"k","apisessionid":"s1","customernumber":"77","dnsrecordset":{"dnsrecords":[{"hostname":"_acme-challenge","type":"TXT","destination":"v1"}]},"domainname":"example.com"}}`, ok, `{"status":"success","statuscode":2000,"responsedata":{"dnsrecords":[]}}`},
			{`POST /?JSON {"action":"logout","param":{"apikey":"k","apisessionid":"s1","customernumber":"77"}}`, ok, `{"status":"success","statuscode":2000,"responsedata":""}`},
			{`POST /?JSON {"action":"login","param":{"apikey":"k","apipassword":"s3cret","customernumber":"77"}}`, ok, `{"status":"success","responsedata":{"apisessionid":"s2"}}`},
			{`POST /?JSON {"action":"infoDnsRecords","param":{"apikey":"k","apisessionid":"s2","customernumber":"77","domainname":"example.com"}}`, ok, `{"status":"success","responsedata":{"dnsrecords":[{"id":"1","hostname":"_acme-challenge","type":"TXT","destination":"other","priority":"0","deleterecord":false,"state":"yes"},{"id":"2","hostname":"_acme-challenge","type":"TXT","destination":"v1","deleterecord":false}]}}`},
			{`POST /?JSON {"action":"updateDnsRecords","param":{"apikey":"k","apisessionid":"s2","customernumber":"77","dnsrecordset":{"dnsrecords":[{"id":"2","hostname":"_acme-challenge","type":"TXT","destination":"v1","deleterecord":true}]},"domainname":"example.com"}}`, ok, `{"status":"success","responsedata":{}}`},
			{`POST /?JSON {"action":"logout","param":{"apikey":"k","apisessionid":"s2","customernumber":"77"}}`, ok, `{"status":"success","responsedata":""}`},
		}},
		"ovh": {map[string]string{"application_key": "ak", "application_secret": "s3cret", "consumer_key": "ck"}, "example.com", "_acme-challenge.a.example.com", [2]string{"X-Ovh-Application", "ak"}, []exchanged{
			{"GET /auth/time", ok, "1366560945"},
			{`POST /domain/zone/example.com/record {"fieldType":"TXT","subDomain":"_acme-challenge.a","target":"v1","ttl":60}`, ok, `{"id":7}`},
			{"POST /domain/zone/example.com/refresh", ok, "null"},
			{"GET /domain/zone/example.com/record?fieldType=TXT&subDomain=_acme-challenge.a", ok, `[6,7]`},
			{"GET /domain/zone/example.com/record/6", ok, `{"id":6,"target":"other"}`},
			{"GET /domain/zone/example.com/record/7", ok, `{"id":7,"target":"\"v1\""}`},
			{"DELETE /domain/zone/example.com/record/7", ok, "null"},
			{"POST /domain/zone/example.com/refresh", ok, "null"},
		}},
		"route53": {map[string]string{"access_key_id": "AKID", "secret_access_key": "s3cret", "session_token": "st"}, "example.com", "_acme-challenge.example.com", [2]string{"X-Amz-Security-Token", "st"}, []exchanged{
			{"GET /2013-04-01/hostedzonesbyname?dnsname=example.com", ok, xmlAnswer("ListHostedZonesByNameResponse", `<HostedZones><HostedZone><Id>/hostedzone/Z0</Id><Name>example.com.</Name><Config><PrivateZone>true</PrivateZone></Config></HostedZone><HostedZone><Id>/hostedzone/Z1</Id><Name>example.com.</Name><Config><PrivateZone>false</PrivateZone></Config></HostedZone></HostedZones>`)},
			{"GET /2013-04-01/hostedzone/Z1/rrset?maxitems=1&name=_acme-challenge.example.com.&type=TXT", ok, xmlAnswer("ListResourceRecordSetsResponse", `<ResourceRecordSets><ResourceRecordSet><Name>a.example.com.</Name><Type>A</Type><TTL>5</TTL></ResourceRecordSet></ResourceRecordSets>`)},
			{"GET /2013-04-01/hostedzonesbyname?dnsname=example.com", ok, xmlAnswer("ListHostedZonesByNameResponse", `<HostedZones><HostedZone><Id>/hostedzone/Z1</Id><Name>example.com.</Name></HostedZone></HostedZones>`)},
			{`POST /2013-04-01/hostedzone/Z1/rrset/ ` + xmlChange("UPSERT", 60, "v1"), ok, xmlAnswer("ChangeResourceRecordSetsResponse", `<ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status></ChangeInfo>`)},
			{"GET /2013-04-01/change/C1", ok, xmlAnswer("GetChangeResponse", `<ChangeInfo><Id>/change/C1</Id><Status>INSYNC</Status></ChangeInfo>`)},
			{"GET /2013-04-01/hostedzonesbyname?dnsname=example.com", ok, xmlAnswer("ListHostedZonesByNameResponse", `<HostedZones><HostedZone><Id>/hostedzone/Z1</Id><Name>example.com.</Name></HostedZone></HostedZones>`)},
			{"GET /2013-04-01/hostedzone/Z1/rrset?maxitems=1&name=_acme-challenge.example.com.&type=TXT", ok, xmlAnswer("ListResourceRecordSetsResponse", `<ResourceRecordSets><ResourceRecordSet><Name>_acme-challenge.example.com.</Name><Type>TXT</Type><TTL>99</TTL><ResourceRecords><ResourceRecord><Value>"v1"</Value></ResourceRecord></ResourceRecords></ResourceRecordSet></ResourceRecordSets>`)},
			{"GET /2013-04-01/hostedzonesbyname?dnsname=example.com", ok, xmlAnswer("ListHostedZonesByNameResponse", `<HostedZones><HostedZone><Id>/hostedzone/Z1</Id><Name>example.com.</Name></HostedZone></HostedZones>`)},
			{`POST /2013-04-01/hostedzone/Z1/rrset/ ` + xmlChange("DELETE", 99, "v1"), ok, xmlAnswer("ChangeResourceRecordSetsResponse", `<ChangeInfo><Id>/change/C2</Id><Status>INSYNC</Status></ChangeInfo>`)},
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
			server, seen := vendor(t, test.want, func(r *http.Request, body []byte) {
				if h := test.header; h[0] != "" && (r.Header.Get(h[0]) != h[1] && len(body) > 0 || h[0] == "Authorization" && r.Header.Get(h[0]) != h[1]) {
					t.Errorf("%s is %q, want %q", h[0], r.Header.Get(h[0]), h[1])
				}
			})
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
			if *seen != len(test.want) {
				t.Errorf("%d requests, want %d", *seen, len(test.want))
			}
		})
	}
}

// anyRequest is the request of an answer that is given whatever is asked.
const anyRequest = "*"

// vendor serves the API of a provider: it expects requests in their order, and gives
// their answers. look sees each request, nil none. seen counts them.
func vendor(t *testing.T, want []exchanged, look func(r *http.Request, body []byte)) (server *httptest.Server, seen *int) {
	seen = new(int)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got := strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(body))
		if filter := r.Header.Get("X-Filter"); filter != "" {
			got += " X-Filter " + filter
		}
		if *seen >= len(want) {
			t.Errorf("one request too many: %s", got)
			return
		}
		next := want[*seen]
		*seen++
		if next.request != anyRequest && got != next.request {
			t.Errorf("request %d is\n%s, want\n%s", *seen, got, next.request)
		}
		if look != nil {
			look(r, body)
		}
		w.WriteHeader(next.status)
		io.WriteString(w, next.answer)
	})), seen
}

// namecheapForm is what every command has in its form, in the order of the alphabet, and
// what follows are answers as Namecheap documents them.
const namecheapForm = "ApiKey=s3cret&ApiUser=me&ClientIp=192.0.2.1"

const namecheapSet = `<?xml version="1.0" encoding="utf-8"?><ApiResponse Status="OK" xmlns="http://api.namecheap.com/xml.response"><Errors /><CommandResponse Type="namecheap.domains.dns.setHosts"><DomainDNSSetHostsResult Domain="example.co.uk" IsSuccess="true" /></CommandResponse></ApiResponse>`

func namecheapHosts(more string) string {
	return `<?xml version="1.0" encoding="utf-8"?><ApiResponse Status="OK" xmlns="http://api.namecheap.com/xml.response"><Errors /><CommandResponse Type="namecheap.domains.dns.getHosts"><DomainDNSGetHostsResult Domain="example.co.uk" EmailType="MX" IsUsingOurDNS="true"><host HostId="1" Name="@" Type="A" Address="192.0.2.9" MXPref="10" TTL="1800" /><host HostId="2" Name="@" Type="MX" Address="mail.example.net." MXPref="5" TTL="300" />` + more + `</DomainDNSGetHostsResult></CommandResponse></ApiResponse>`
}

// xmlAnswer and xmlChange are documents as Route 53 documents them.
func xmlAnswer(name, content string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><` + name + ` xmlns="https://route53.amazonaws.com/doc/2013-04-01/">` + content + `</` + name + `>`
}

func xmlChange(action string, ttl int, value string) string {
	return fmt.Sprintf("%s<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch><Changes><Change><Action>%s</Action><ResourceRecordSet><Name>_acme-challenge.example.com.</Name><Type>TXT</Type><TTL>%d</TTL><ResourceRecords><ResourceRecord><Value>&#34;%s&#34;</Value></ResourceRecord></ResourceRecords></ResourceRecordSet></Change></Changes></ChangeBatch></ChangeResourceRecordSetsRequest>", xml.Header, action, ttl, value)
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
			if name == "google" {
				d.Credentials["service_account"] = accountFile(t, accountKey(t), endpoint)
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
