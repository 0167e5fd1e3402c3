package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"headgate/internal/admin/console"
)

func build() fstest.MapFS {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	packed := &bytes.Buffer{}
	w := gzip.NewWriter(packed)
	w.Write([]byte("plain"))
	w.Close()
	return fstest.MapFS{
		"index.html": text(`<meta name="csp-nonce" content="__NONCE__">`), "pages.json": text(`["","proxies"]`),
		"assets/a-1.js.br": text("brotli"), "assets/a-1.js.gz": text(packed.String()),
		"icon.svg": text("<svg/>"), ".keep": text(""),
	}
}

func get(h http.Handler, path string, fields ...string) *httptest.ResponseRecorder {
	rq := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(fields); i += 2 {
		rq.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, rq)
	return w
}

func TestPathsOfPagesGetTheConsoleAndOthers404(t *testing.T) {
	c := console.Of(build())
	for path, want := range map[string]int{
		"/": 200, "/proxies": 200, "/proxies/a.b/c": 200, "/wp-admin": 404, "/api/v1/x": 404, "/assets/b-2.js": 404,
		"/pages.json": 404, "/index.html": 404, "/.keep": 404, "/assets/a-1.js.br": 404,
	} {
		if w := get(c, path); w.Code != want {
			t.Errorf("GET %s: got %d, want %d", path, w.Code, want)
		}
	}
}

func TestABrowserAtAnUnknownPathGetsTheConsole(t *testing.T) {
	c := console.Of(build())
	const page = "text/html,application/xhtml+xml,*/*;q=0.8"
	for path, html := range map[string]bool{"/nosuch": true, "/nosuch/x": true, "/assets/b-2.js": false, "/api/v1/x": false} {
		w := get(c, path, "Accept", page)
		if w.Code != 404 || strings.Contains(w.Body.String(), "csp-nonce") != html {
			t.Errorf("GET %s: got %d, %q", path, w.Code, w.Body)
		}
	}
}

func TestEveryPageHasANonceOfItsOwnThatThePolicyNames(t *testing.T) {
	c := console.Of(build())
	seen := map[string]bool{}
	for range 3 {
		w := get(c, "/proxies")
		nonce := strings.TrimSuffix(strings.TrimPrefix(w.Body.String(), `<meta name="csp-nonce" content="`), `">`)
		policy := w.Header().Get("Content-Security-Policy")
		if len(nonce) < 20 || seen[nonce] || !strings.Contains(policy, "style-src 'self' 'nonce-"+nonce+"'") {
			t.Errorf("nonce %q, policy %q", nonce, policy)
		}
		seen[nonce] = true
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "connect-src 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("policy %q has no %s", policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || w.Header().Get("X-Frame-Options") != "DENY" || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("head %v", w.Header())
		}
	}
}

func TestFilesAreSentInTheCodingThatTheClientTakes(t *testing.T) {
	c := console.Of(build())
	for _, tt := range []struct{ accept, coding, body string }{
		{"gzip, br", "br", "brotli"}, {"gzip", "gzip", "plain"}, {"br;q=0, gzip;q=0.5", "gzip", "plain"}, {"", "", "plain"}, {"zstd", "", "plain"},
	} {
		w := get(c, "/assets/a-1.js", "Accept-Encoding", tt.accept)
		body := w.Body.String()
		if r, err := gzip.NewReader(strings.NewReader(body)); err == nil && tt.coding == "gzip" {
			text, _ := io.ReadAll(r)
			body = string(text)
		}
		if w.Header().Get("Content-Encoding") != tt.coding || body != tt.body || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("Accept-Encoding %q: got %q, %v", tt.accept, w.Body.String(), w.Header())
		}
		if again := get(c, "/assets/a-1.js", "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
			t.Errorf("If-None-Match: got %d, want 304", again.Code)
		}
	}
	if w := get(c, "/icon.svg"); w.Header().Get("Cache-Control") != "no-cache" || w.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("icon: %v", w.Header())
	}
}

func TestWithoutABuildAPageSaysHowToHaveOne(t *testing.T) {
	c := console.Of(fstest.MapFS{".keep": {}})
	w := get(c, "/")
	if c.Built() || w.Code != 200 || !strings.Contains(w.Body.String(), "make build") || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := get(c, "/proxies"); w.Code != 404 {
		t.Errorf("/proxies: got %d, want 404", w.Code)
	}
}
