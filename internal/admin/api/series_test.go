package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/internal/metrics"
)

func TestSeriesAreOfTheWholeAProxyOrAServer(t *testing.T) {
	h := start(t)
	s := h.c.Series()
	now := time.Now().Add(metrics.FineStep)
	s.Sample(now)
	s.Sample(now.Add(metrics.FineStep)) // a step in which nothing happened
	for _, query := range []string{"", "?proxy=main", "?proxy=main&server=http://127.0.0.1:1", "?tcp_proxy=main", "?udp_proxy=main&server=127.0.0.1:1", "?step=10s&period=15m"} {
		_, out := h.does("GET", "/series"+query, "", 200, "", "as: viewer")
		points, _ := out["points"].([]any)
		if len(points) == 0 || out["step"] != 10.0 {
			t.Fatalf("%s: got %v, want a point", query, out)
		}
		if p := points[0].(map[string]any); p["requests"] != 0.0 || p["errors_5xx"] != 0.0 || p["p99_ms"] != nil {
			t.Errorf("%s: got %v, want zeros", query, p)
		}
	}
	if _, out := h.does("GET", "/series?period=24h", "", 200, "", "as: viewer"); out["step"] != 60.0 {
		t.Errorf("a day has points of %v seconds", out["step"])
	}
	for query, want := range map[string]struct {
		status int
		code   string
	}{
		"?proxy=none":             {404, "not_found"},
		"?proxy=main&server=none": {404, "not_found"},
		"?server=none":            {400, "invalid"},
		"?proxy=main&tcp_proxy=x": {400, "invalid"},
		"?period=soon":            {400, "invalid"},
		"?step=1s":                {400, "invalid"},
	} {
		h.does("GET", "/series"+query, "", want.status, want.code, "as: viewer")
	}
}

func TestListsAreSortedAndPaged(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nproxies:\n")
	for i := range 7 {
		fmt.Fprintf(&text, "  p%d: {active: %v, description: 'number %d', routes: [{servers: [{url: \"http://127.0.0.1:1\"}]}]}\n", i, i%2 == 0, i)
	}
	h := startWith(t, text.String())
	h.does("PATCH", "/proxies/p3", `{"description":"another"}`, 200, "", "as: editor", always)
	names := func(query string) (all []string, last map[string]any) {
		cursor := ""
		for {
			_, out := h.does("GET", "/proxies?limit=2"+query+cursor, "", 200, "", "as: viewer")
			for _, item := range out["items"].([]any) {
				last = item.(map[string]any)
				all = append(all, last["name"].(string))
			}
			next, _ := out["next"].(string)
			if next == "" {
				return all, last
			}
			cursor = "&cursor=" + next
		}
	}
	for query, want := range map[string]string{
		"":                       "p0 p1 p2 p3 p4 p5 p6",
		"&sort=-name":            "p6 p5 p4 p3 p2 p1 p0",
		"&sort=state":            "p0 p2 p4 p6 p1 p3 p5",
		"&sort=-state":           "p5 p3 p1 p6 p4 p2 p0",
		"&sort=-last_change":     "p3 p6 p5 p4 p2 p1 p0",
		"&sort=requests":         "p0 p1 p2 p3 p4 p5 p6",
		"&sort=errors":           "p0 p1 p2 p3 p4 p5 p6",
		"&q=NUMBER&sort=servers": "p1 p5 p0 p2 p4 p6",
		"&q=nothing":             "",
	} {
		if got, _ := names(query); strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
	_, p3 := names("&q=another")
	change, _ := p3["last_change"].(map[string]any)
	recent, _ := p3["recent"].(map[string]any)
	if change["revision"] != 2.0 || change["who"] != "token:editor" || recent["requests"] != 0.0 {
		t.Errorf("p3 was changed by %v and has %v", change, recent)
	}
	h.does("GET", "/proxies?cursor=nonsense", "", 400, "invalid", "as: viewer")
	h.does("GET", "/policies?sort=servers", "", 400, "invalid", "as: viewer")
}
