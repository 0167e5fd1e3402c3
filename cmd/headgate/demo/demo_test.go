package demo

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/config/format"
)

func TestConfigIsGoodAndCanonical(t *testing.T) {
	for _, p := range []Places{
		{Listen: "127.0.0.1:8080", Upstream: "127.0.0.1:40000", Admin: "127.0.0.1:9080"},
		{Listen: "[::1]:8080", Upstream: "127.0.0.1:40000"},
	} {
		data := Config(p)
		if _, _, problems := config.Load("headgate.yaml", data); len(problems) > 0 {
			t.Errorf("%+v: %v", p, problems)
		}
		out, problems := format.Canonical(data, config.Describe())
		if len(problems) > 0 || string(out) != string(data) {
			t.Errorf("%+v: %v\n%s", p, problems, out)
		}
	}
}

func TestHintsNameTheAddress(t *testing.T) {
	if h := Hints(Places{Listen: "127.0.0.1:81"}); !strings.Contains(h, "http://127.0.0.1:81/gone") {
		t.Error(h)
	}
}

func TestUpstreamTellsWhatReachedIt(t *testing.T) {
	ask := func(accept string) *httptest.ResponseRecorder {
		rq := httptest.NewRequest("POST", "/v2/x?<b>=1", strings.NewReader("four"))
		rq.Header.Set("Accept", accept)
		rq.Header.Set("X-Odd", "<script>")
		w := httptest.NewRecorder()
		Upstream("the demo upstream").ServeHTTP(w, rq)
		return w
	}
	if got := ask("*/*").Body.String(); !strings.Contains(got, "POST /v2/x?<b>=1 HTTP/1.1\nHost: example.com\n") || !strings.Contains(got, "\n4 bytes of body\n") {
		t.Errorf("text: %s", got)
	}
	var e echo
	if err := json.Unmarshal(ask("application/json").Body.Bytes(), &e); err != nil || e.Method != "POST" || e.BodyLength != 4 || e.Header.Get("X-Odd") != "<script>" {
		t.Errorf("JSON: %v %+v", err, e)
	}
	page := ask("text/html,*/*")
	if got := page.Body.String(); strings.Contains(got, "<script>") || !strings.Contains(got, "&lt;script&gt;") {
		t.Errorf("page: %s", got)
	}
}
