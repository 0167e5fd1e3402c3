package api

import (
	"fmt"
	"strings"
	"testing"
)

// TestChangesAreToldInWords asks every way of changing something what it would do, or has
// done.
func TestChangesAreToldInWords(t *testing.T) {
	h := start(t)
	opens := func(what string, out map[string]any) {
		t.Helper()
		plan, _ := out["plan"].(map[string]any)
		if text := fmt.Sprint(plan); plan["severity"] != "danger" || !strings.Contains(text, "proxy main") || !strings.Contains(text, "need_no_password") {
			t.Errorf("%s: got %v, want that a password is gone", what, plan)
		}
	}
	edits := `{"edits":[{"op":"remove","path":"proxies.main.basic_auth"}]}`
	_, out := h.does("POST", "/config/plan", edits, 200, "", "as: editor")
	opens("config/plan", out)
	_, out = h.does("PATCH", "/proxies/main?dry_run=true", `{"basic_auth":null}`, 200, "", "as: editor", always)
	opens("a dry run", out)
	if _, out = h.does("GET", "/proxies/main", "", 200, "", "as: viewer"); out["plan"] != nil {
		t.Errorf("an object that nobody changes has the plan %v", out["plan"])
	}
	_, out = h.does("POST", "/config/edits", edits, 200, "", "as: editor", always)
	opens("a change", out)
	_, out = h.does("GET", "/revisions/1/diff/current", "", 200, "", "as: viewer")
	opens("a difference to now", out)
	_, out = h.does("GET", "/revisions/1/diff/2", "", 200, "", "as: viewer")
	opens("a difference", out)
	_, out = h.does("POST", "/revisions/1/rollback?dry_run=true", `{}`, 200, "", "as: editor", always)
	if text := fmt.Sprint(out["plan"]); !strings.Contains(text, "need_password") {
		t.Errorf("a roll-back: %v", text)
	}
	_, out = h.does("POST", "/config/plan", `{"edits":[{"op":"set","path":"proxies.main.virtual_hosts","value":["other.example.com"]}]}`, 200, "", "as: editor")
	if text := fmt.Sprint(out["plan"]); !strings.Contains(text, "shop.example.com") || !strings.Contains(text, "warning") {
		t.Errorf("a host that is lost: %v", text)
	}
}

// TestAnOperatorWhoWouldBeRefusedIsWarned closes a proxy to the address that asks.
func TestAnOperatorWhoWouldBeRefusedIsWarned(t *testing.T) {
	h := start(t)
	refused := func(body string) bool {
		t.Helper()
		_, out := h.does("PATCH", "/proxies/main?dry_run=true", body, 200, "", "as: editor", always)
		text := fmt.Sprint(out["plan"])
		return strings.Contains(text, "operator_refused") && strings.Contains(text, "ip_filter refuses 127.0.0.1, the address that this change comes from, at /")
	}
	if !refused(`{"ip_filter":{"allow":["192.0.2.0/24"]}}`) || !refused(`{"ip_filter":{"deny":["list:private"]}}`) {
		t.Error("no warning that the operator is shut out")
	}
	if refused(`{"ip_filter":{"allow":["192.0.2.0/24","127.0.0.0/8"]}}`) {
		t.Error("a warning where the operator is let in")
	}
	h.does("PATCH", "/proxies/main", `{"ip_filter":{"allow":["192.0.2.0/24"]}}`, 200, "", "as: editor", always)
	if refused(`{"ip_filter":{"allow":["192.0.2.0/25"]}}`) {
		t.Error("a warning about what is so already")
	}
}

func TestServersAreDrainedThroughTheAPI(t *testing.T) {
	h := start(t)
	server := `"proxy":"main","server":"127.0.0.1:1"`
	h.does("POST", "/servers/drain", `{`+server+`,"kind":"proxies","for":"1x"}`, 400, "invalid", "as: editor")
	h.does("POST", "/servers/drain", `{`+server+`}`, 400, "invalid", "as: editor") // there are three proxies main
	h.does("POST", "/servers/drain", `{"proxy":"none","server":"127.0.0.1:1"}`, 404, "not_found", "as: editor")
	h.does("POST", "/servers/enable", `{`+server+`,"kind":"proxies"}`, 409, "not_held", "as: editor")
	_, out := h.does("POST", "/servers/drain", `{`+server+`,"kind":"proxies","for":"10m","why":"a disk"}`, 200, "", "as: editor")
	if out["hold"] != "draining" || out["server"] != "http://127.0.0.1:1" || out["until"] == nil || out["who"] != "token:editor" {
		t.Errorf("got %v", out)
	}
	_, out = h.does("GET", "/status?proxy=main", "", 200, "", "as: viewer")
	if text := fmt.Sprint(out["proxies"]); !strings.Contains(text, "state:draining") || !strings.Contains(text, "drained by token:editor: a disk") {
		t.Errorf("status: %s", text)
	}
	if _, out = h.does("GET", "/servers/held", "", 200, "", "as: viewer"); len(out["items"].([]any)) != 1 {
		t.Errorf("held: %v", out)
	}
	_, out = h.does("GET", "/audit?action=server.", "", 200, "", "as: admin")
	if text := fmt.Sprint(out["items"]); !strings.Contains(text, "server.drain") || !strings.Contains(text, "a disk") {
		t.Errorf("audit: %s", text)
	}
	h.does("POST", "/servers/enable", `{`+server+`,"kind":"proxies"}`, 200, "", "as: editor")
}

func TestANodeIsDrainedThroughTheAPI(t *testing.T) {
	h := start(t)
	h.does("POST", "/nodes/local/drain", `{"why":"new kernel"}`, 403, "forbidden", "as: viewer")
	_, out := h.does("POST", "/nodes/local/drain", `{"why":"new kernel"}`, 200, "", "as: editor")
	if out["state"] != "drained" || out["self"] != true || out["drained_by"] != "token:editor" || out["drained_why"] != "new kernel" || h.c.NotReady() != "drained by an operator" {
		t.Errorf("got %v, not ready as %q", out, h.c.NotReady())
	}
	_, out = h.does("GET", "/audit?action=node.", "", 200, "", "as: admin")
	if text := fmt.Sprint(out["items"]); !strings.Contains(text, "node.drain") || !strings.Contains(text, "new kernel") {
		t.Errorf("audit: %s", text)
	}
	_, out = h.does("POST", "/nodes/local/undrain", `{}`, 200, "", "as: editor")
	if out["state"] != "ready" || out["drained_by"] != nil || h.c.NotReady() != "" {
		t.Errorf("got %v, not ready as %q", out, h.c.NotReady())
	}
}

func TestSplitsAreDecidedThroughTheAPI(t *testing.T) {
	h := start(t)
	h.does("PATCH", "/proxies/main", `{"routes":[{"servers":[{"url":"http://127.0.0.1:1"},{"url":"http://127.0.0.1:2","group":"candidate"}],"split":{"schedule":"5, 25"}}]}`, 200, "", "as: editor", always)
	proxy := `"proxy":"main"`
	h.does("POST", "/splits/promote", `{`+proxy+`}`, 403, "forbidden", "as: viewer")
	h.does("POST", "/splits/promote", `{"proxy":"none"}`, 404, "not_found", "as: editor")
	h.does("POST", "/splits/promote", `{`+proxy+`,"route":"/x"}`, 404, "not_found", "as: editor")
	h.does("POST", "/splits/hold", `{`+proxy+`,"to":7}`, 400, "invalid", "as: editor")
	_, out := h.does("POST", "/splits/promote?dry_run=true", `{`+proxy+`}`, 200, "", "as: editor")
	if out["share"] != 25.0 {
		t.Errorf("a dry run: %v", out)
	}
	_, out = h.does("POST", "/splits/return", `{`+proxy+`,"why":"looks odd"}`, 200, "", "as: editor")
	if out["phase"] != "returned" || out["share"] != 0.0 || out["who"] != "token:editor" || out["why"] != "looks odd" {
		t.Errorf("returned: %v", out)
	}
	h.does("POST", "/splits/hold", `{`+proxy+`}`, 409, "split_state", "as: editor")
	_, out = h.does("GET", "/status?proxy=main", "", 200, "", "as: viewer")
	if text := fmt.Sprint(out["proxies"], out["splits"]); !strings.Contains(text, "the candidate gets no requests since") || !strings.Contains(text, "phase:returned") {
		t.Errorf("status: %s", text)
	}
	_, out = h.does("GET", "/audit?action=split.", "", 200, "", "as: admin")
	if text := fmt.Sprint(out["items"]); !strings.Contains(text, "split.return") || !strings.Contains(text, "looks odd") || !strings.Contains(text, "proxies/main /") || strings.Contains(text, "split.promote") {
		t.Errorf("audit: %s", text)
	}
	h.does("POST", "/splits/restart", `{`+proxy+`}`, 200, "", "as: editor")
	if _, out = h.does("GET", "/splits", "", 200, "", "as: viewer"); !strings.Contains(fmt.Sprint(out["items"]), "share:5") {
		t.Errorf("splits: %v", out)
	}
}
