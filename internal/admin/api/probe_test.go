package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

func TestAServerIsTestedBeforeItIsConfigured(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<html><head><title> Shop of\n %s &amp; co </title>", rq.Host)
	}))
	defer upstream.Close()
	h := start(t)
	_, out := h.does("POST", "/servers/test", `{"url":"`+upstream.URL+`","host":"shop.test"}`, 200, "", "as: editor")
	if out["reached"] != true || out["status"] != 200.0 || out["title"] != "Shop of shop.test & co" {
		t.Errorf("got %v", out)
	}
	_, out = h.does("POST", "/servers/test", `{"url":"http://`+testhouse.Address(t)+`"}`, 200, "", "as: editor")
	if out["reached"] != false || !strings.Contains(out["error"].(string), "refused") || out["hint"] == "" {
		t.Errorf("nothing listens: got %v", out)
	}
	_, out = h.does("POST", "/servers/test", `{"url":"https://`+strings.TrimPrefix(upstream.URL, "http://")+`"}`, 200, "", "as: editor")
	if out["reached"] != false || !strings.Contains(out["hint"].(string), "use http://") {
		t.Errorf("no TLS: got %v", out)
	}
	_, out = h.does("POST", "/servers/test", `{"url":"http://169.254.169.254/"}`, 200, "", "as: editor")
	if out["reached"] != false || !strings.Contains(out["error"].(string), "not allowed") {
		t.Errorf("metadata: got %v", out)
	}
	h.does("POST", "/servers/test", `{"url":"ftp://x"}`, 400, "invalid", "as: editor")
	h.does("POST", "/servers/test", `{"url":"`+upstream.URL+`"}`, 403, "forbidden", "as: viewer")
}
