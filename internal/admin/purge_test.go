package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate/internal/feature/cache"
)

func TestPurgeIsGuarded(t *testing.T) {
	var asked []cache.Purge
	h := purge(func(q cache.Purge) (int, int) {
		asked = append(asked, q)
		if q.Proxy == "none" {
			return 0, 0
		}
		return 3, 1
	})
	const good = `{"url":"http://a.example/x"}`
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		body   string
		status int
	}{
		{"as it should be", nil, good, 200},
		{"with a character set", func(rq *http.Request) { rq.Header.Set("Content-Type", "application/json; charset=utf-8") }, good, 200},
		{"GET", func(rq *http.Request) { rq.Method = "GET" }, good, 405},
		{"a form", func(rq *http.Request) { rq.Header.Set("Content-Type", "text/plain") }, good, 415},
		{"no type", func(rq *http.Request) { rq.Header.Del("Content-Type") }, good, 415},
		{"a page's script", func(rq *http.Request) { rq.Header.Set("Origin", "https://evil.example") }, good, 403},
		{"a page without an origin", func(rq *http.Request) { rq.Header.Set("Sec-Fetch-Site", "cross-site") }, good, 403},
		{"another machine", func(rq *http.Request) { rq.RemoteAddr = "192.0.2.1:4711" }, good, 403},
		{"no JSON", nil, "url=x", 400},
		{"an unknown key", nil, `{"ulr":"http://a/b"}`, 400},
		{"two objects", nil, good + good, 400},
		{"nothing to purge", nil, `{}`, 400},
		{"no such cache", nil, `{"proxy":"none","all":true}`, 404},
		{"much too long", nil, `{"url":"http://a/` + strings.Repeat("x", purgeSize) + `"}`, 400},
	} {
		asked = nil
		rq := httptest.NewRequest("POST", purgePath, strings.NewReader(c.body))
		rq.RemoteAddr = "127.0.0.1:4711"
		rq.Header.Set("Content-Type", "application/json")
		if c.change != nil {
			c.change(rq)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, rq)
		if w.Code != c.status {
			t.Errorf("%s: got %d %s, want %d", c.name, w.Code, w.Body, c.status)
		}
		if got := len(asked); (got > 0) != (c.status == 200 || c.status == 404) {
			t.Errorf("%s: purged %d times", c.name, got)
		}
		if c.name == "an unknown key" && !strings.Contains(w.Body.String(), "url, prefix, tag and all") {
			t.Errorf("%s: got %s, want what may be sent", c.name, w.Body)
		}
		if c.status == 200 && strings.TrimSpace(w.Body.String()) != `{"caches":1,"purged":3}` {
			t.Errorf("%s: got %s", c.name, w.Body)
		}
	}
}
