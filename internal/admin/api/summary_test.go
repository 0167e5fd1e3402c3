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

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
