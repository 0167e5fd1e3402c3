package traefik

import (
	"strings"
	"testing"
)

func TestTCPRoutersTerminateTLS(t *testing.T) {
	t.Parallel()
	doc, _ := accepted(t, map[string]string{
		"traefik.yml": "entryPoints:\n  websecure: {address: ':443'}\n  mqtts: {address: ':8883'}\ncertificatesResolvers:\n  le: {acme: {email: a@example.com, storage: acme.json, tlsChallenge: {}}}\n",
		"dynamic.yml": `
http:
  routers: {web: {entryPoints: [websecure], rule: "Host(` + "`www.example.com`" + `)", service: web, tls: {}}}
  services: {web: {loadBalancer: {servers: [{url: "http://127.0.0.1:1"}]}}}
tcp:
  routers:
    xmpp: {entryPoints: [websecure], rule: "HostSNI(` + "`chat.example.com`" + `) && ALPN(` + "`xmpp-client`" + `)", service: s, tls: {certResolver: le}}
    mqtt: {entryPoints: [mqtts], rule: "HostSNI(` + "`mqtt.example.com`" + `)", service: s, tls: {options: strict}}
    rest: {entryPoints: [mqtts], rule: "HostSNI(` + "`*`" + `)", service: s}
  services: {s: {loadBalancer: {servers: [{address: "127.0.0.1:2"}]}}}
tls: {options: {strict: {minVersion: VersionTLS13, alpnProtocols: [mqtt]}}}
`})
	doc = plain(doc)
	for _, want := range []string{"sni: [chat.example.com]", "alpn: [xmpp-client]", "acme: le", "sni: [mqtt.example.com]", "alpn: [mqtt]", "min_version: 1.3"} {
		if !strings.Contains(doc, want) {
			t.Errorf("the document has no %q:\n%s", want, doc)
		}
	}
	if strings.Count(doc, "address: 0.0.0.0:8883")+strings.Count(doc, "address: [::]:8883") != 2 {
		t.Errorf("the routers do not share the address:\n%s", doc)
	}
}
