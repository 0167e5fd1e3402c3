package api

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
)

// TestCertificatesAreStored takes a certificate through its life: uploaded the wrong way
// round, named by the configuration, chosen for its host, replaced, exported, removed.
func TestCertificatesAreStored(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	h := startWith(t, `version: 1
admin: {address: ""}
ports:
  web: {address: "`+address+`", protocol: https}
proxies:
  shop:
    virtual_hosts: [shop.example.com, other.example.com]
    routes: [{fixed_response: {status: 200}}]
`)
	root := certstest.Sign(t, certstest.Authority("root"), nil)
	middle := certstest.Sign(t, certstest.Authority("middle"), &root)
	leaf := certstest.Sign(t, &x509.Certificate{DNSNames: []string{"shop.example.com"}}, &middle)
	input := func(name string, c tls.Certificate) string {
		data, err := json.Marshal(map[string]string{"name": name, "certificate": string(certstest.PEM(middle)) + string(certstest.PEM(c)), "key": string(certstest.KeyPEM(t, c))})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	must := func(what string, status int, code, method, path, body string, fields ...string) string {
		t.Helper()
		rs, out := h.call(method, path, body, append([]string{"as: admin"}, fields...)...)
		h.expect(what, rs, out, status, code)
		return text(t, out)
	}
	must("a dry run", 200, "", "POST", "/certificates/upload?dry_run=true", input("shop", leaf))
	must("nothing is kept by a dry run", 404, "not_found", "GET", "/stored_certificates/shop", "")
	got := must("upload", 201, "", "POST", "/certificates/upload", input("shop", leaf))
	if !strings.Contains(got, "put in order") || !strings.Contains(got, `"shop.example.com"`) || strings.Contains(got, "PRIVATE") {
		t.Errorf("got %s", got)
	}
	must("again", 409, "exists", "POST", "/certificates/upload", input("shop", leaf))
	must("a name of ACME's", 400, "invalid", "POST", "/certificates/upload", input("shop.example.com", leaf))
	must("a name that leads elsewhere", 400, "invalid", "POST", "/certificates/upload", input("../shop", leaf))
	must("another's key", 400, "invalid", "POST", "/certificates/upload", strings.Replace(input("x", leaf), `"key":"`, `"key":"junk`, 1))
	must("for no host", 400, "invalid", "POST", "/certificates/self_signed", `{"name":"self","hosts":[]}`)
	must("for what is no host", 400, "invalid", "POST", "/certificates/self_signed", `{"name":"self","hosts":["a b"]}`)
	must("self-signed", 201, "", "POST", "/certificates/self_signed", `{"name":"self","hosts":["bücher.example","192.0.2.1"]}`)
	if got := must("the list", 200, "", "GET", "/stored_certificates?limit=1", ""); !strings.Contains(got, "xn--bcher-kva.example") || !strings.Contains(got, `"next"`) || strings.Contains(got, "PRIVATE") {
		t.Errorf("got %s", got)
	}
	if got := must("who gets what", 200, "", "GET", "/certificates/chosen?proxy=shop", ""); strings.Count(got, `"from":"self-signed"`) != 2 || !strings.Contains(got, "no certificate has the name") {
		t.Errorf("without certificates got %s", got)
	}
	must("name what is not there", 400, "invalid", "POST", "/certificates", `{"name":"main","stored":"none"}`, "If-Match: *")
	must("name it", 201, "", "POST", "/certificates", `{"name":"main","stored":"shop"}`, "If-Match: *")
	if got := must("who gets it", 200, "", "GET", "/certificates/chosen?host=shop.example.com", ""); !strings.Contains(got, `"from":"stored"`) || !strings.Contains(got, `"name":"main"`) || !strings.Contains(got, "has the name shop.example.com") {
		t.Errorf("got %s", got)
	}
	must("a reserved name", 400, "invalid", "POST", "/certificates", `{"name":"upload","stored":"shop"}`, "If-Match: *")
	must("remove what is used", 409, "in_use", "DELETE", "/stored_certificates/shop", "", "If-Match: *")
	must("replace with a stale tag", 412, "stale", "PUT", "/stored_certificates/shop", input("shop", leaf), `If-Match: "999999"`)
	must("replace", 200, "", "PUT", "/stored_certificates/shop", input("", certstest.Sign(t, &x509.Certificate{DNSNames: []string{"shop.example.com", "other.example.com"}}, &middle)), "If-Match: *")
	for end, served := time.Now().Add(time.Minute), false; !served; { // it is taken into use at once
		c, err := tls.Dial("tcp", address, &tls.Config{ServerName: "other.example.com", InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		served = c.ConnectionState().PeerCertificates[0].VerifyHostname("other.example.com") == nil
		c.Close()
		if time.Now().After(end) {
			t.Fatal("the new certificate is not served")
		}
	}
	if got := must("export", 200, "", "POST", "/stored_certificates/shop/export", "{}"); !strings.Contains(got, "PRIVATE KEY") || !strings.Contains(got, "BEGIN CERTIFICATE") {
		t.Errorf("got %s", got)
	}
	must("export what is elsewhere", 404, "not_found", "POST", "/stored_certificates/..%2f..%2fkey%2fsticky/export", "{}")
	must("remove", 204, "", "DELETE", "/stored_certificates/self", "", "If-Match: *")
	if got := must("the audit", 200, "", "GET", "/audit?action=certificate.", ""); !strings.Contains(got, "certificate.export") || !strings.Contains(got, "certificate.upload") || strings.Contains(got, "PRIVATE") {
		t.Errorf("got %s", got)
	}
	must("neither host nor proxy", 400, "invalid", "GET", "/certificates/chosen", "")
}
