package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"headgate/internal/server/safedial"
)

// side is a proxy to be compared: it answers with text, after gate has let it.
func side(t testing.TB, text string, gate chan struct{}) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if gate != nil {
			select {
			case <-gate:
			case <-rq.Context().Done():
			}
		}
		if rq.URL.Path == "/other" {
			w.Write([]byte(text))
			return
		}
		fmt.Fprintf(w, "%s %s", rq.Host, rq.URL.RequestURI())
	}))
	t.Cleanup(s.Close)
	return s
}

// until asks for the comparison until it is in a state.
func (h *house) until(state string) map[string]any {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		rs, out := h.call("GET", "/compare", "", "as: admin")
		h.expect("GET /compare", rs, out, 200, "")
		if out["state"] == state {
			return out
		}
		if time.Now().After(end) {
			h.t.Fatalf("the comparison is not %s: %v", state, out)
		}
	}
}

func TestCompare(t *testing.T) {
	h := start(t)
	t.Cleanup(h.api.Close)
	for _, method := range []string{"GET", "DELETE"} {
		rs, out := h.call(method, "/compare", "", "as: admin")
		h.expect(method+" before the first", rs, out, 404, "not_found")
	}
	old, ours := side(t, "old", nil), side(t, "new", nil)
	body := func(fields map[string]any) string {
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	list := "http://shop.example.com/a\nhttp://shop.example.com/other\nPOST http://shop.example.com/b\n"
	rs, out := h.call("POST", "/compare", body(map[string]any{"old": []string{old.Listener.Addr().String()}, "new": []string{ours.Listener.Addr().String()}, "list": list, "rate": 1000, "no_dns": true}), "as: admin")
	if h.expect("POST", rs, out, 202, ""); out["state"] == nil || out["who"] != "token:admin" && out["who"] == "" {
		t.Errorf("got %v", out)
	}
	out = h.until("done")
	report, _ := out["report"].(map[string]any)
	if report["requests"] != 2.0 || report["ready"] != 1.0 || report["percent"] != 50.0 || !strings.Contains(fmt.Sprint(report["notes"]), "1 requests with methods that change something") {
		t.Errorf("got %v", out)
	}
	if text := fmt.Sprint(report["results"]); !strings.Contains(text, "/other") || !strings.Contains(text, "proxy:main") {
		t.Errorf("got %s", text)
	}
	rs, out = h.call("POST", "/compare", body(map[string]any{"old": []string{old.Listener.Addr().String()}, "domains": []string{"https://example.com/"}}), "as: admin")
	h.expect("POST what is no domain", rs, out, 400, "invalid")
	// A list that is longer than other texts.
	long := strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 200) + "http://a.example/\n"
	rs, out = h.call("POST", "/compare", body(map[string]any{"old": []string{old.Listener.Addr().String()}, "new": []string{ours.Listener.Addr().String()}, "list": long, "no_dns": true}), "as: admin")
	h.expect("POST a long list", rs, out, 202, "")
	h.until("done")
	_, audit := h.call("GET", "/audit", "", "as: admin")
	if !strings.Contains(fmt.Sprint(audit), "compare.start") {
		t.Errorf("the audit does not tell it: %v", audit)
	}
}

func TestCompareStops(t *testing.T) {
	h := start(t)
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	old, ours := side(t, "old", gate), side(t, "new", nil)
	input := fmt.Sprintf(`{"old":[%q],"new":[%q],"list":"http://a.example/1\nhttp://a.example/2","rate":1000,"no_dns":true}`, old.Listener.Addr(), ours.Listener.Addr())
	rs, out := h.call("POST", "/compare", input, "as: admin")
	h.expect("POST", rs, out, 202, "")
	rs, out = h.call("POST", "/compare", input, "as: admin")
	h.expect("a second one", rs, out, 409, "compare_running")
	rs, out = h.call("DELETE", "/compare", "", "as: admin")
	h.expect("DELETE", rs, out, 204, "")
	if out := h.until("stopped"); !strings.Contains(fmt.Sprint(out), "stopped before its end") {
		t.Errorf("got %v", out)
	}
	rs, out = h.call("POST", "/compare", input, "as: admin")
	h.expect("another one", rs, out, 202, "")
	h.api.Close()
	h.until("stopped")
	rs, out = h.call("POST", "/compare", input, "as: admin")
	h.expect("after the end", rs, out, 503, "unavailable")
}

func TestCompareRefuses(t *testing.T) {
	h := start(t)
	for name, c := range map[string]struct{ body, pointer string }{
		"no address":     {`{"old":[""],"list":"http://a.example/","new":["127.0.0.1:1"]}`, "/old"},
		"metadata":       {`{"old":["169.254.169.254"],"list":"http://a.example/","new":["127.0.0.1:1"]}`, "/old"},
		"mapped":         {`{"old":["[::ffff:169.254.169.254]:80"],"list":"http://a.example/","new":["127.0.0.1:1"]}`, "/old"},
		"link-local new": {`{"old":["127.0.0.1:1"],"list":"http://a.example/","new":["https://[fe80::1]:443"]}`, "/new"},
		"no port":        {`{"old":["127.0.0.1:1"],"list":"http://a.example/"}`, "/new"},
		"no request":     {`{"old":["127.0.0.1:1"],"new":["127.0.0.1:1"],"list":"nonsense"}`, "/list"},
		"routes":         {`{"old":["127.0.0.1:1"],"new":["127.0.0.1:1"]}`, "/list"},
		"too fast":       {`{"old":["127.0.0.1:1"],"rate":100000}`, "/rate"},
	} {
		rs, out := h.call("POST", "/compare", c.body, "as: admin")
		if h.expect(name, rs, out, 400, "invalid"); out["pointer"] != c.pointer {
			t.Errorf("%s: at %v, want %s: %v", name, out["pointer"], c.pointer, out)
		}
	}
}

// A name that leads to a refused address is refused when it is dialled.
func TestCompareDialsNothingThatIsRefused(t *testing.T) {
	in := &compareInput{Old: []string{"old.example"}, New: []string{"127.0.0.1:1"}, List: "http://a.example/"}
	o, _, err := in.options(nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, refused := range map[string]bool{"169.254.169.254:80": true, "[fe80::1]:80": true, "127.0.0.1:80": false, "10.0.0.1:80": false} {
		if err := o.Dial(t.Context(), "tcp", address, nil); errors.Is(err, safedial.ErrRefused) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestImport(t *testing.T) {
	h := start(t)
	rs, out := h.call("POST", "/import", `{"source":"nginx","files":[
		{"name":"/etc/nginx/nginx.conf","text":"http { include sites/*.conf; include /etc/passwd; server { listen 80; server_name b.example; location / { lua_code 1; } } }"},
		{"name":"/etc/nginx/sites/a.conf","included":true,"text":"server { listen 80; server_name a.example; location / { proxy_pass http://127.0.0.1:9000; } }"}]}`, "as: admin")
	if rs.StatusCode != 200 {
		if h.expect("include of a file that was not given", rs, out, 400, "invalid"); !strings.Contains(fmt.Sprint(out["detail"]), "/etc/passwd") {
			t.Errorf("got %v", out)
		}
	} else if strings.Contains(fmt.Sprint(out), "root:") {
		t.Error("a file of this machine was read")
	}
	rs, out = h.call("POST", "/import", `{"source":"nginx","ports":["80=8080"],"files":[
		{"name":"/etc/nginx/nginx.conf","text":"http { include sites/*.conf; }"},
		{"name":"/etc/nginx/sites/a.conf","included":true,"data":"c2VydmVyIHsgbGlzdGVuIDgwOyBzZXJ2ZXJfbmFtZSBhLmV4YW1wbGU7IGZvbyBiYXI7IGxvY2F0aW9uIC8geyBwcm94eV9wYXNzIGh0dHA6Ly8xMjcuMC4wLjE6OTAwMDsgfSB9"}]}`, "as: admin")
	h.expect("files", rs, out, 200, "")
	if !strings.Contains(fmt.Sprint(out["document"]), "virtual_hosts: [a.example]") || fmt.Sprint(out["problems"]) != "[]" {
		t.Errorf("got %v", out)
	}
	if !strings.Contains(fmt.Sprint(out["document"]), "0.0.0.0:8080") {
		t.Errorf("the port keeps its number: %v", out["document"])
	}
	report, _ := out["report"].(map[string]any)
	counts, _ := report["counts"].(map[string]any)
	if counts["not_possible"] != 1.0 || !strings.Contains(fmt.Sprint(report["entries"]), "/etc/nginx/sites/a.conf") {
		t.Errorf("got %v", report)
	}
	for name, c := range map[string]struct{ body, want string }{
		"source":   {`{"source":"apache","files":[{"name":"a","text":"b"}]}`, "unknown source"},
		"nothing":  {`{"source":"nginx"}`, "nothing to read"},
		"twice":    {`{"source":"nginx","files":[{"name":"a","text":"b"},{"name":"a","text":"b"}]}`, "twice"},
		"both":     {`{"source":"nginx","files":[{"name":"a","text":"b","data":"YQ=="}]}`, "text and data"},
		"broken":   {`{"source":"nginx","files":[{"name":"a.conf","text":"http {"}]}`, "a.conf:1"},
		"ports":    {`{"source":"nginx","ports":["80"],"files":[{"name":"a","text":"b"}]}`, "want pairs like"},
		"as a URL": {`{"source":"npm","files":[{"name":"http://127.0.0.1:81","text":"x"}]}`, "an address for its name"},
		"metadata": {`{"source":"npm","address":"http://169.254.169.254","token":"x"}`, "not allowed"},
	} {
		rs, out := h.call("POST", "/import", c.body, "as: admin")
		if h.expect(name, rs, out, 400, "invalid"); !strings.Contains(fmt.Sprint(out["detail"]), c.want) {
			t.Errorf("%s: got %v, want %q", name, out["detail"], c.want)
		}
	}
}
