package plan

import "testing"

// The route that a gate adds is not counted: where all others are closed, so is the proxy.
func TestMaintenanceOfAProxyWithAGate(t *testing.T) {
	p := compile(t, `
ports:
  websecure: {address: "0.0.0.0:443", protocol: https}
sign_in: {local: true}
proxies:
  login:
    virtual_hosts: [login.example.com]
    routes: [{path: /, sign_in: {}}]
  wiki:
    virtual_hosts: [wiki.example.com]
    gate: {allow: ["person:ann"]}
    routes: [{maintenance: {}, servers: [{url: "http://127.0.0.1:3000"}]}]
`)
	states := p.ProxiesNamed([]string{"wiki"})
	if len(states) != 1 || states[0].State != ProxyMaintenance || states[0].Reason != "closed for maintenance" {
		t.Errorf("got %+v, want the state %q", states, ProxyMaintenance)
	}
}
