package api

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

func TestSummaryCountsProxiesAndNamesThoseThatNeedAttention(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nproxies:\n")
	for _, name := range []string{"a", "b", "c"} {
		text.WriteString("  " + name + ": {virtual_hosts: [" + name + ".test], routes: [{servers: [{url: \"http://127.0.0.1:1\"}, {url: \"http://127.0.0.2:1\"}]}]}\n")
	}
	text.WriteString("  off: {active: false, virtual_hosts: [off.test], routes: [{fixed_response: {status: 200}}]}\n")
	h := startWith(t, text.String())
	_, out := h.does("GET", "/summary", "", 200, "", "as: viewer")
	if got := asJSON(t, out["proxies"]); got != `[{"count":3,"state":"active"},{"count":1,"state":"inactive"}]` || out["total"] != 4.0 {
		t.Errorf("got %v proxies in states %s", out["total"], got)
	}
	if got := asJSON(t, out["servers"]); got != `{"healthy":0,"total":6,"unknown":6}` {
		t.Errorf("got servers %s", got)
	}
	if got := asJSON(t, out["attention"]); got != "[]" || out["attention_total"] != 0.0 {
		t.Errorf("got attention %s, want none", got)
	}

	// A server whose checks fail makes its proxy one to look at.
	h.does("PATCH", "/proxies/b", `{"routes":[{"health_check":{"path":"/","interval":"1s","fall":1},"servers":[{"url":"http://127.0.0.1:1"}]}]}`, 200, "", "as: editor", always)
	testhouse.Eventually(t, "attention for b", func() bool {
		_, out = h.does("GET", "/summary", "", 200, "", "as: viewer")
		return out["attention_total"] == 1.0
	})
	if first := out["attention"].([]any)[0].(map[string]any); first["name"] != "b" || len(first["issues"].([]any)) == 0 {
		t.Errorf("got %v, want b with what is wrong", first)
	}
}

// A TCP or UDP proxy counts as one of HTTP does, and is named where it is down.
func TestSummaryTellsOfTCPAndUDPProxies(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := startWith(t, "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\n"+
		"proxies:\n  a: {virtual_hosts: [a.test], routes: [{servers: [{url: \"http://127.0.0.1:1\"}]}]}\n"+
		"tcp_proxies:\n  db: {address: \""+at[0]+"\", servers: [{address: \"127.0.0.1:1\"}, {address: \"127.0.0.2:1\"}]}\n"+
		"udp_proxies:\n  dns: {address: \""+at[1]+"\", servers: [{address: \"127.0.0.1:1\"}]}\n  off: {active: false, address: \"127.0.0.1:2\", servers: [{address: \"127.0.0.1:1\"}]}\n")
	_, out := h.does("GET", "/summary", "", 200, "", "as: viewer")
	if got := asJSON(t, out["proxies"]); got != `[{"count":3,"state":"active"},{"count":1,"state":"inactive"}]` || out["total"] != 4.0 || out["attention_total"] != 0.0 {
		t.Errorf("got %v proxies in states %s, %v for attention", out["total"], got, out["attention"])
	}
	if got := asJSON(t, out["servers"]); got != `{"healthy":0,"total":4,"unknown":4}` {
		t.Errorf("got servers %s", got)
	}
	for _, s := range []string{`"proxy":"dns","server":"127.0.0.1:1","kind":"udp_proxies"`, `"proxy":"db","server":"127.0.0.1:1","kind":"tcp_proxies"`, `"proxy":"db","server":"127.0.0.2:1","kind":"tcp_proxies"`} {
		h.does("POST", "/servers/disable", "{"+s+"}", 200, "", "as: editor")
	}
	_, out = h.does("GET", "/summary", "", 200, "", "as: viewer")
	var named []string
	for _, one := range out["attention"].([]any) {
		p := one.(map[string]any)
		named = append(named, p["kind"].(string)+"/"+p["name"].(string)+" "+p["state"].(string))
		if len(p["issues"].([]any)) == 0 {
			t.Errorf("%v says nothing of what is wrong", p)
		}
	}
	if got := strings.Join(named, ", "); got != "tcp_proxies/db down, udp_proxies/dns down" {
		t.Errorf("got attention for %s", got)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The list of streams tells what the status does: not only whether they are active.
func TestStreamsAreListedWithTheirServers(t *testing.T) {
	h := start(t)
	h.controlOf(t, mainConfig)
	_, out := h.does("GET", "/tcp_proxies/main", "", 200, "", "as: viewer")
	if out["state"] != "inactive" || out["health"] != nil {
		t.Errorf("inactive: %v", out)
	}
	at := testhouse.Addresses(t, 2)
	for i, kind := range []string{"tcp_proxies", "udp_proxies"} {
		h.does("PATCH", "/"+kind+"/main", `{"address":"`+at[i]+`","active":true,"servers":[{"address":"127.0.0.1:1"}]}`, 200, "", "as: editor", always)
		_, out = h.does("GET", "/"+kind+"/main", "", 200, "", "as: viewer")
		if got := asJSON(t, out["health"]); out["state"] != "active" || got != `{"healthy":0,"total":1,"unknown":1}` || out["issues"] != nil {
			t.Errorf("%s: %v", kind, out)
		}
		h.does("POST", "/servers/disable", `{"proxy":"main","server":"127.0.0.1:1","kind":"`+kind+`"}`, 200, "", "as: editor")
		_, out = h.does("GET", "/"+kind, "", 200, "", "as: viewer")
		one := out["items"].([]any)[0].(map[string]any)
		if one["state"] != "down" || !strings.Contains(asJSON(t, one["issues"]), "no server takes new clients") {
			t.Errorf("%s: %v", kind, one)
		}
	}
}

// A certificate that ACME cannot issue needs attention, in the summary, the status and the
// metrics in the same word.
func TestSummaryNamesCertificatesThatNeedAttention(t *testing.T) {
	h := startWith(t, ordersConfig)
	var out map[string]any
	testhouse.Eventually(t, "failed certificates", func() bool {
		_, out = h.does("GET", "/summary", "", 200, "", "as: viewer")
		return out["certificates_attention_total"] == 2.0
	})
	if got := asJSON(t, out["certificates"]); got != `[{"count":2,"state":"failed"}]` || out["certificates_total"] != 2.0 {
		t.Errorf("got %v certificates in states %s", out["certificates_total"], got)
	}
	first := out["certificates_attention"].([]any)[0].(map[string]any)
	if first["source"] != "acme" || first["state"] != "failed" || first["problem"] == "" || first["hint"] == "" {
		t.Errorf("got %v", first)
	}
	_, out = h.does("GET", "/status", "", 200, "", "as: viewer")
	for _, c := range out["certificates"].([]any) {
		if c := c.(map[string]any); c["state"] != "failed" {
			t.Errorf("status: got %v", c)
		}
	}
}

// A proxy whose only server is not healthy is down: its clients get errors.
func TestAProxyWithADeadServerIsDown(t *testing.T) {
	h := startWith(t, "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nproxies:\n"+
		"  a: {virtual_hosts: [a.test], routes: [{health_check: {path: /, interval: 1s, fall: 1}, servers: [{url: \"http://127.0.0.1:1\"}]}]}\n")
	var out map[string]any
	testhouse.Eventually(t, "a to be down", func() bool {
		_, out = h.does("GET", "/summary", "", 200, "", "as: viewer")
		return asJSON(t, out["proxies"]) == `[{"count":1,"state":"down"}]`
	})
	_, out = h.does("GET", "/proxies/a", "", 200, "", "as: viewer")
	if out["state"] != "down" {
		t.Errorf("got state %v", out["state"])
	}
}
