package diff

import (
	"maps"
	"testing"

	"headgate/internal/config"
)

// Values that run programs, send files or write to paths have an effect only where they are
// set; those that are only read, as a certificate is, everywhere.
func TestUsesOfHostValues(t *testing.T) {
	t.Setenv("PLACE", "/var/log/x")
	t.Setenv("HEADGATE_STORE_KEY", "0123")
	const text = `version: 1
certificates: {own: {cert_file: a.pem, key_file: b.pem}}
lists: {bad: {file: /etc/bad.txt}}
discovery: {docker: {local: {}}}
access_log: {path: stderr}
policies: {pages: {error_pages: [{status: [500], file: pages/500.html}]}}
acme: {main: {challenge: dns-01, dns: {provider: exec, command: /bin/dns}}}
proxies:
  a:
    virtual_hosts: [a.example.com]
    access_log: {path: "${PLACE}"}
    maintenance: {enabled: false, file: closed.html}
    routes:
      - {path: /, servers: [{url: "unix:/run/app.sock"}]}
      - {path: /files, files: {root: /srv}}
      - {path: /text, fixed_response: {status: 200, body: "${HEADGATE_STORE_KEY}"}}
      - {path: /php, fastcgi: {root: stdout}, servers: [{url: "FCGI+unix:/run/php.sock"}]}
      - {path: /h2, servers: [{url: "unix+h2c:/run/app.sock"}]}
      - {path: /tls, servers: [{url: "https://app.internal", tls: {ca_file: ca.pem, client_cert_file: client.pem, client_key_file: client.key}}]}
      - {path: /plain, fixed_response: {status: 200, body: "${PLACE}"}}
  login: {virtual_hosts: [login.example.com], routes: [{sign_in: {logo: logo.svg}}]}
sign_in: {local: true}
ports: {web: {address: "127.0.0.1:443", protocol: https}}
`
	c, _, problems := config.Load("x.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[string]Use{
		"policies.pages.error_pages[0].file": Page, "acme.main.dns.command": Runs, "proxies.a.access_log.path": Logs, "proxies.a.maintenance.file": Page,
		"proxies.a.routes[0].servers[0].url": Socket, "proxies.a.routes[1].files.root": Serves, "proxies.a.routes[2].fixed_response.body": Reveals,
		"proxies.login.routes[0].sign_in.logo": Logo,
		"proxies.a.routes[3].fastcgi.root":     Serves, "proxies.a.routes[3].servers[0].url": Socket, "proxies.a.routes[4].servers[0].url": Socket,
		"proxies.a.routes[5].servers[0].tls.client_cert_file": Proves, "proxies.a.routes[5].servers[0].tls.client_key_file": Proves,
	}
	values, index := (*HostIndex)(nil).Values(c)
	for range 2 {
		got := map[string]Use{}
		for _, v := range values {
			if use := v.Local(); use != "" {
				got[v.Path] = use
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		values, index = index.Values(c)
	}
}
