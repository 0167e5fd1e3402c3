package config

import "testing"

const withheldText = `version: 1
policies:
  pages: {error_pages: [{status: [500], file: 500.html}]}
  closed: {maintenance: {enabled: false, file: closed.html}}
defaults: {headers: [{direction: response, name: X-A, value: b}]}
acme: {main: {default: true}}
proxies:
  a: {virtual_hosts: [a.example.com], access_log: {path: /var/log/a.log}, gate: {allow: [group:staff]}, routes: [{servers: [{url: "unix:/run/a.sock"}]}, {path: /x, servers: [{url: "unix:/run/a.sock"}]}]}
  b: {virtual_hosts: [b.example.com], use: [pages], routes: [{fixed_response: {status: 204}}]}
  c: {virtual_hosts: [c.example.com], routes: [{use: [closed], fixed_response: {status: 204}}]}
  d: {virtual_hosts: [d.example.com], routes: [{fixed_response: {status: 204}}]}
  login: {virtual_hosts: [login.example.com], error_pages: [{status: [500], file: 500.html}], routes: [{sign_in: {logo: /etc/logo.svg, title: Example}}]}
sign_in: {local: true}
ports: {web: {address: "127.0.0.1:443", protocol: https}}
`

// What is withheld changes what is used, and not what is defined.
func TestWithheldObjectsAreStillDefined(t *testing.T) {
	c, _, problems := Load("x.yaml", []byte(withheldText))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := c.Withholding(&Withhold{}); got != c {
		t.Error("a configuration of which nothing is withheld is another one")
	}
	w := &Withhold{
		Objects: map[[2]string]bool{{"proxies", "a"}: true, {"policies", "closed"}: true, {"acme", "main"}: true},
		Pages:   map[[2]string]bool{{"policies", "pages"}: true},
		Logos:   map[string]bool{"login": true},
		Logs:    map[string]bool{"/var/log/a.log": true},
	}
	used := c.Withholding(w)
	if used.Documents() != c || !used.WithheldObjects().Equal(w) || c.WithheldObjects() != nil {
		t.Error("the documents are not those of the configuration")
	}
	for name, closed := range map[string]bool{"a": true, "b": false, "c": true, "d": false} {
		p := used.Proxies[name]
		if p.IsWithheld() != closed || p.Written() != c.Proxies[name].Written() || c.Proxies[name].IsWithheld() {
			t.Errorf("proxy %s is withheld: %v, want %v; or it is no longer defined", name, p.IsWithheld(), closed)
		}
	}
	if p := used.Proxies["a"]; p.Gated() || len(p.Routes) != 1 || p.VirtualHosts[0] != "a.example.com" {
		t.Errorf("the routes of a withheld proxy: %v", p.Routes)
	}
	if b := used.Proxies["b"]; b.ErrorPages != nil || c.Proxies["b"].ErrorPages == nil || b.Routes[0].FixedResponse == nil || b.Headers == nil {
		t.Error("more or less is withheld of b than its error pages")
	}
	login := used.Proxies["login"]
	if login.Routes[0].SignIn.Logo != "" || login.Routes[0].SignIn.Title != "Example" || login.ErrorPages == nil || c.Proxies["login"].Routes[0].SignIn.Logo == "" {
		t.Errorf("more or less is withheld of the sign-in page than its logo: %+v", login.Routes[0].SignIn)
	}
	if used.Proxies["d"] != c.Proxies["d"] {
		t.Error("a proxy of which nothing is withheld is another one")
	}
	all := func(string) bool { return false }
	if _, wants := c.ACMEWants(all); len(wants) == 0 {
		t.Error("the ACME entry wants nothing")
	}
	if entries, wants := used.ACMEWants(all); len(entries)+len(wants) != 0 {
		t.Errorf("a withheld ACME entry wants %v", wants)
	}
	if used.LogHere("/var/log/a.log") != "" || used.LogHere("/var/log/b.log") == "" {
		t.Error("another log is withheld")
	}
	before := NewGrant(used.Documents(), c)
	if before != nil {
		t.Errorf("the documents of a configuration grant %v", before)
	}
}
