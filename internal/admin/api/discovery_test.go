package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/internal/discovery/discoverytest"
	"headgate/internal/testhouse"
)

func TestDiscoveredObjectsAreReadOnly(t *testing.T) {
	at := testhouse.Addresses(t, 1)[0]
	h := startWith(t, strings.Replace(mainConfig, "ports:\n", "ports:\n  web: {address: \""+at+"\", protocol: http}\n", 1))
	h.does("PUT", "/settings/discovery", `{"docker":{"local":{}}}`, 403, "host_field", "as: editor", always)
	h.does("PUT", "/settings/discovery", `{"docker":{"local":{}}}`, 200, "", "as: admin", always)
	h.engines.Get("local").Find(
		discoverytest.Proxy("found", 1, "http://172.18.0.5:80", "virtual_hosts=found.example"),
		discoverytest.Proxy("bad", 2, "http://172.18.0.6:80", "virtual_hosts=bad.example", "activ=false"),
	)
	for deadline := time.Now().Add(time.Minute); ; {
		if rs, _ := h.call("GET", "/proxies/found", "", "as: viewer"); rs.StatusCode == 200 {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("it was not found")
		}
	}
	rs, out := h.does("GET", "/proxies/found", "", 200, "", "as: viewer")
	origin, _ := out["origin"].(map[string]any)
	if origin["via"] != "docker" || origin["container"] != "found-1" || origin["provider"] != "local" {
		t.Errorf("origin %v", origin)
	}
	_, explained := h.does("POST", "/explain", `{"url":"http://found.example`+at[strings.LastIndexByte(at, ':'):]+`/x"}`, 200, "", "as: viewer")
	if explained["proxy"] != "found" || !strings.Contains(fmt.Sprint(explained), "172.18.0.5") {
		t.Errorf("explained: %v", explained)
	}
	for _, call := range [][2]string{{"PUT", `{"routes":[{"fixed_response":{"status":200}}]}`}, {"PATCH", `{"active":false}`}, {"DELETE", ""}} {
		_, out := h.does(call[0], "/proxies/found", call[1], 403, "read_only", "as: editor", "If-Match: "+rs.Header.Get("ETag"))
		if text, _ := out["detail"].(string); !strings.Contains(text, "container found-1") {
			t.Errorf("%s: %v", call[0], out)
		}
		if now, _ := out["current"].(map[string]any); now["origin"] == nil {
			t.Errorf("%s tells no origin: %v", call[0], out)
		}
	}
	h.does("POST", "/proxies/found/rename", `{"name":"other"}`, 403, "read_only", "as: editor", always)
	var issues []any
	for deadline := time.Now().Add(time.Minute); len(issues) == 0 && time.Now().Before(deadline); {
		_, out = h.does("GET", "/discovery", "", 200, "", "as: viewer")
		provider, _ := out["providers"].([]any)[0].(map[string]any)
		if provider["state"] != "running" || provider["name"] != "local" {
			t.Fatalf("provider %v", provider)
		}
		issues, _ = provider["issues"].([]any)
	}
	if len(issues) != 1 {
		t.Fatalf("issues %v", issues)
	}
	if i, _ := issues[0].(map[string]any); i["label"] != "headgate.http.bad.activ" || i["container"] != "bad-1" || i["hint"] != `did you mean "active"?` || i["since"] == nil {
		t.Errorf("issue %v", i)
	}
	// One of the same name here wins, and tells what it shadows.
	body := `{"name":"found","virtual_hosts":["hand.example"],"routes":[{"fixed_response":{"status":200}}]}`
	h.does("POST", "/proxies", body, 201, "", "as: editor", always)
	_, out = h.does("GET", "/proxies/found", "", 200, "", "as: viewer")
	if list, _ := out["issues"].([]any); len(list) != 1 || !strings.Contains(list[0].(string), "a configuration file has a proxy found too") {
		t.Errorf("issues %v", out["issues"])
	}
	if audit := strings.Count(h.text(), "found.example"); audit != 0 {
		t.Error("a document has what was discovered")
	}
	h.does("DELETE", "/proxies/found", "", 204, "", "as: editor", always)
	_, out = h.does("GET", "/proxies/found", "", 200, "", "as: viewer")
	if origin, _ = out["origin"].(map[string]any); origin["container"] != "found-1" {
		t.Errorf("origin %v", origin)
	}
}
