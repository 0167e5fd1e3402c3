package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"headgate/internal/feature/headers"
	"headgate/internal/schema"
)

// The note for a server whose certificate is not verified.
const (
	notVerified       = "server certificate is not verified, traffic can be intercepted"
	notVerifiedRemedy = "set its authority in tls.ca_file, and remove insecure_skip_verify"
)

// peerVariable finds variables of nginx in a value, and of HAProxy and Apache.
var peerVariable = regexp.MustCompile(`\$\{?([a-z][a-z_]*)\}?|%\[[a-z][^\]]*\]|%\{[A-Z_]+\}`)

// peerVariables are nginx's variables with the equivalent ones; "" means none.
var peerVariables = map[string]string{
	"remote_addr": "{client_ip}", "realip_remote_addr": "{client_ip}", "binary_remote_addr": "{client_ip}",
	"host": "{host}", "server_name": "{host}", "http_host": "{authority}", "scheme": "{scheme}",
	"request_method": "{method}", "request_uri": "{path}", "uri": "{path}", "document_uri": "{path}",
	"args": "{query}", "query_string": "{query}", "request_id": "{request_id}", "remote_user": "{user}",
	"status": "{status}", "ssl_client_s_dn": "{client_cert_subject}", "ssl_client_fingerprint": "{client_cert_fingerprint}",
	"proxy_add_x_forwarded_for": "", "http_upgrade": "", "connection_upgrade": "", "proxy_host": "", "proxy_port": "",
	"remote_port": "", "server_port": "", "server_addr": "", "https": "", "hostname": "", "http_x_forwarded_for": "",
	"http_origin": "", "ssl_protocol": "", "ssl_cipher": "", "upstream_addr": "", "upstream_cache_status": "", "time_local": "", "request_time": "",
}

// notePeerVariable reports a variable of another proxy, which is not expanded.
func notePeerVariable(text string, at schema.Place) {
	for _, m := range peerVariable.FindAllStringSubmatch(text, -1) {
		ours, known := peerVariables[m[1]]
		switch {
		case m[1] != "" && !known:
			continue
		case ours != "":
			ours = "write " + ours
		case m[1] == "proxy_add_x_forwarded_for" || m[1] == "http_x_forwarded_for":
			ours = "remove the rule: x-forwarded-for is sent anyway"
		case m[1] == "http_upgrade" || m[1] == "connection_upgrade":
			ours = "remove the rule: WebSocket works without it"
		default:
			ours = "use a variable of headgate, such as {client_ip}"
		}
		at.Note(fmt.Sprintf("%s is not a variable in headgate and is sent unchanged", m[0]), ours)
		return
	}
}

// noteSecrets reports header rules that contain a secret, which everyone can read who can
// read the file.
func (ch *checker) noteSecrets(rules headers.Config, at schema.Place) {
	for i := range rules {
		if !rules[i].Hides("value") {
			continue
		}
		value := at.Field("headers").Index(i).Called("header rule", rules[i].Name).Field("value")
		if _, ok := ch.c.Written(value.Path()); !ok {
			value.Note("the secret is in the configuration file", "write ${VARIABLE}, or ${file:/path}, in its place")
		}
	}
}

// noteRules notes variables of other proxies in header rules.
func noteRules(rules headers.Config, at schema.Place) {
	for i := range rules {
		if r := &rules[i]; r.Operation != headers.Replace && strings.ContainsAny(r.Value, "$%") {
			notePeerVariable(r.Value, at.Field("headers").Index(i).Called("header rule", r.Name).Field("value"))
		}
	}
}

// noteRoute notes what works on a route and is a bad idea.
func noteRoute(r *Route, at schema.Place) {
	for i, s := range r.Servers {
		if s.TLS != nil && s.TLS.InsecureSkipVerify {
			at.Field("servers").Index(i).Called("server", s.URL).Field("tls").Field("insecure_skip_verify").Note(notVerified, notVerifiedRemedy)
		}
	}
	if r.FixedResponse != nil {
		notePeerVariable(r.FixedResponse.Body, at.Field("fixed_response").Field("body"))
	}
}

// noteAmbiguous reports a route that allows ambiguous paths next to one that is restricted
// to some clients.
func noteAmbiguous(p *Proxy, r *Route, at schema.Place) {
	here := p.Effective(r)
	for _, other := range p.Routes {
		if other == r {
			continue
		}
		there := p.Effective(other)
		if !there.IPFilter.Enforces() {
			there.IPFilter = nil
		}
		for _, f := range []struct {
			name        string
			there, here any
		}{
			{"gate", there.Gate, here.Gate}, {"basic_auth", there.BasicAuth, here.BasicAuth}, {"forward_auth", there.ForwardAuth, here.ForwardAuth}, {"ip_filter", there.IPFilter, here.IPFilter},
		} {
			if reflect.ValueOf(f.there).IsNil() || reflect.DeepEqual(f.there, f.here) {
				continue
			}
			at.Note(fmt.Sprintf("a request for another spelling of %s, such as %s, reaches the server without the %s of that route", other.Path, otherSpelling(other.Path), f.name),
				"remove ambiguous_paths, unless the servers of this route read paths as headgate does")
			return
		}
	}
}

// otherSpelling returns a path that a server may read as path.
func otherSpelling(path string) string {
	if upper := strings.ToUpper(path); upper != path && !strings.Contains(path, "%") {
		return upper
	}
	return strings.TrimSuffix(path, "/") + ";x"
}
