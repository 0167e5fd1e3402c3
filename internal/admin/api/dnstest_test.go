package api

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
)

// emptyZone starts a name server that knows no name.
func emptyZone(t *testing.T) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		w.WriteMsg(m.SetRcode(q, dns.RcodeNameError))
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); s.ActivateAndServe() }()
	t.Cleanup(func() { pc.Close(); <-ended })
	return pc.LocalAddr().String()
}

// dnsVendor is an API of Cloudflare that accepts the token "good".
func dnsVendor(t *testing.T, seen *atomic.Int32) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		seen.Add(1)
		switch {
		case rq.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(403)
			io.WriteString(w, `{"success":false,"errors":[{"code":9109,"message":"Invalid access token"}]}`)
		case rq.URL.Path == "/zones":
			io.WriteString(w, `{"success":true,"result":[{"id":"z1"}]}`)
		default:
			io.WriteString(w, `{"success":true,"result":[]}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestCredentialsOfADNSProviderAreTested holds that the answer of the provider is shown,
// and that saved credentials are only sent to where they were entered for.
func TestCredentialsOfADNSProviderAreTested(t *testing.T) {
	var mine, theirs atomic.Int32
	resolver, vendor, other := emptyZone(t), dnsVendor(t, &mine), dnsVendor(t, &theirs)
	h := startWith(t, strings.Replace(mainConfig, "acme:\n", "acme:\n  wild: {dns: {provider: cloudflare, zone: example.com, credentials: {api_token: good, endpoint: \""+vendor+"\"}}, default: false}\n", 1))
	try := func(status int, provider, token, endpoint string) map[string]any {
		t.Helper()
		rs, out := h.call("POST", "/dns_providers/test", `{"host":"*.example.com","entry":"wild","zone":"example.com","provider":"`+provider+
			`","resolvers":["`+resolver+`"],"credentials":{"api_token":"`+token+`","endpoint":"`+endpoint+`"}}`, "as: editor")
		if rs.StatusCode != status {
			t.Fatalf("%s %s at %s: status %d, want %d: %v", provider, token, endpoint, rs.StatusCode, status, out)
		}
		return out
	}
	if out := try(200, "cloudflare", "good", vendor); out["ok"] != true || out["checked"] != true || out["record"] != "_acme-challenge.example.com" {
		t.Errorf("good credentials: %v", out)
	}
	if out := try(200, "cloudflare", masked, masked); out["ok"] != true {
		t.Errorf("saved credentials: %v", out)
	}
	out := try(200, "cloudflare", "wrong", vendor)
	if trouble, _ := out["trouble"].(map[string]any); out["ok"] != false || !strings.Contains(trouble["message"].(string), "Invalid access token") || !strings.Contains(trouble["hint"].(string), "make new ones") {
		t.Errorf("wrong credentials: %v", out)
	}
	try(400, "cloudflare", masked, other)
	try(400, "hetzner", masked, masked)
	try(400, "cloudflare", "${TOKEN}", vendor)
	try(400, "exec", "x", vendor)
	if n := theirs.Load(); n != 0 {
		t.Errorf("%d requests with saved credentials reached another endpoint", n)
	}
	if out := try(200, "cloudflare", "good", "http://169.254.169.254"); out["ok"] != false || out["warning"] == nil {
		t.Errorf("an address of cloud metadata: %v", out)
	}
	rs, _ := h.call("POST", "/dns_providers/test", `{"host":"a.example.com","provider":"duckdns","credentials":{"token":"t"}}`, "as: viewer")
	if rs.StatusCode != 403 {
		t.Errorf("a viewer: status %d", rs.StatusCode)
	}
}

// TestEditorsCannotHaveTheSecretOfANoticeSentToThem moves a token to another server.
func TestEditorsCannotHaveTheSecretOfANoticeSentToThem(t *testing.T) {
	h := start(t)
	_, shown := h.call("GET", "/notices/phone", "", "as: viewer")
	if gotify, _ := shown["gotify"].(map[string]any); gotify["token"] != masked {
		t.Errorf("the token is shown as %v", shown)
	}
	for body, status := range map[string]int{
		`{"gotify":{"url":"http://127.0.0.1:2"}}`:                       403,
		`{"gotify":{"url":"http://127.0.0.1:2","token":"********"}}`:    403,
		`{"gotify":{"url":"http://127.0.0.1:2","token":"another-one"}}`: 200,
		`{"level":"error"}`: 200,
	} {
		if rs, out := h.call("PATCH", "/notices/phone?dry_run=true", body, "as: editor", "If-Match: *"); rs.StatusCode != status {
			t.Errorf("%s: status %d, want %d: %v", body, rs.StatusCode, status, out)
		}
	}
}
