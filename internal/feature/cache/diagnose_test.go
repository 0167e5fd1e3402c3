package cache

import (
	"strings"
	"testing"

	"headgate/internal/exchange/exchangetest"
)

// TestDiagnose: a diagnosis names the reason, the field and the remedy, stores nothing, and says
// what the cache does with the same request afterwards.
func TestDiagnose(t *testing.T) {
	body := strings.Repeat("x", 3000)
	for _, c := range []struct {
		request, response string
		detail, field     string
		fresh             int64
	}{
		{"GET /", "200|Cache-Control: max-age=60||x", "", "Cache-Control: max-age=60", 60},
		{"GET /", "200|Cache-Control: s-maxage=60, max-age=5|Age: 20||x", "", "Cache-Control: s-maxage=60, max-age=5", 40},
		{"GET /", "200|CDN-Cache-Control: max-age=9|Cache-Control: no-store||x", "", "CDN-Cache-Control: max-age=9", 9},
		{"GET /", `200|Cache-Control: no-cache|ETag: "a"||x`, "", "Cache-Control: no-cache", 0},
		{"GET /", "200|Cache-Control: max-age=60, no-store||x", "no-store", "Cache-Control: max-age=60, no-store", 0},
		{"GET /", "200|Cache-Control: private|Cache-Control: max-age=5||x", "private", "Cache-Control: private, max-age=5", 0},
		{"GET /", "200|Cache-Control: max-age=60|Set-Cookie: session=secret||x", "set-cookie", "Set-Cookie: session=…", 0},
		{"GET /|Authorization: Basic eDp5", "200|Cache-Control: max-age=60||x", "authorization", "Authorization", 0},
		{"GET /", "200|Cache-Control: max-age=60|Vary: *||x", "not-keyed", "Vary: *", 0},
		{"GET /", "200|||x", "no-lifetime", "", 0},
		{"GET /", "200|Cache-Control: max-age=0||x", "no-validator", "", 0},
		{"GET /", "200|Cache-Control: max-age=60||" + body, "too-large", "Content-Length: 3000", 0},
		{"GET /", "200|Cache-Control: max-age=60|Content-Type: text/event-stream||x", "event-stream", "Content-Type: text/event-stream", 0},
		{"GET /", "200|Cache-Control: max-age=60, must-understand, no-store||x", "", "Cache-Control: max-age=60, must-understand, no-store", 60},
		{"PUT /", "200|Cache-Control: max-age=60||x", "method", "", 0},
		{"GET /|Cache-Control: no-store", "200|Cache-Control: max-age=60||x", "request", "Cache-Control: no-store", 0},
		{"GET /|If-Match: \"a\"", "200|Cache-Control: max-age=60||x", "bypass", "", 0},
		{"GET /", "200|Cache-Control: max-age=60|chunked||" + body, "too-large", "", 0},
		{"GET /", "down", "upstream_refused", "", 0},
	} {
		s := newStage(t, settings(func(c *Config) { c.MaxEntry = 2000 }))
		s.origin.reply = answer(c.response, s.clock)
		before := s.origin.count()
		lines := strings.Split(c.request, "|")
		method, target, _ := strings.Cut(lines[0], " ")
		d := s.cache.Diagnose(exchangetest.New(t, exchangetest.Head(method, target, lines[1:]...)))
		if _, _, entries, _ := (Store{store: s.cache.store}).Memory(); entries != 0 {
			t.Errorf("%s, %.60s: a diagnosis stored %d responses", c.request, c.response, entries)
		}
		if asked := s.origin.count() > before; asked != d.Asked {
			t.Errorf("%s, %.60s: asked is %v, want %v", c.request, c.response, d.Asked, asked)
		}
		if d.Stored != (c.detail == "") || d.Detail != c.detail || d.Field != c.field || d.Fresh != c.fresh || d.Why == "" || !d.Stored && d.Fix == "" {
			t.Errorf("%s, %.60s:\ngot  %+v\nwant detail %q, field %q, fresh %d", c.request, c.response, d, c.detail, c.field, c.fresh)
		}
		status := ""
		for _, f := range s.request(c.request).Fields {
			if name, value, _ := strings.Cut(f, ": "); name == "Cache-Status" {
				status = value
			}
		}
		switch {
		case d.Stored && !strings.HasSuffix(status, "; stored"):
			t.Errorf("%s, %.60s: the cache has %q, the diagnosis says stored", c.request, c.response, status)
		case strings.Contains(c.response, "chunked"): // it is found out after the head
		case !d.Stored && d.Asked && d.Status > 0 && !strings.HasSuffix(status, "detail="+d.Detail), !d.Asked && !strings.HasSuffix(status, "="+d.Detail):
			t.Errorf("%s, %.60s: the cache has %q, the diagnosis %q", c.request, c.response, status, d.Detail)
		}
	}
}

// TestEveryReasonHasARemedy: a reason that judge has is explained.
func TestEveryReasonHasARemedy(t *testing.T) {
	for why, r := range remedies {
		if r.why == "" || r.rule == "" || r.fix == "" {
			t.Errorf("%s: %+v", why, r)
		}
	}
}
