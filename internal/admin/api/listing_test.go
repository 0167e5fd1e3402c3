package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"headgate/internal/config"
)

// TestFormsAreKeptForTheConfigurationInForce reads objects again and again while they are
// changed and planned, and wants to be told what they are each time.
func TestFormsAreKeptForTheConfigurationInForce(t *testing.T) {
	h := start(t)
	read := func(want string) string {
		t.Helper()
		rs, out := h.does("GET", "/proxies/main", "", 200, "", "as: viewer")
		_, list := h.does("GET", "/proxies", "", 200, "", "as: viewer")
		item := list["items"].([]any)[0].(map[string]any)
		if out["description"] != want || item["description"] != want || item["etag"] != rs.Header.Get("ETag") {
			t.Errorf("got %v and %v in the list, want %q", out["description"], item["description"], want)
		}
		return rs.Header.Get("ETag")
	}
	first := read("the shop")
	if again := read("the shop"); again != first {
		t.Errorf("the ETag is %s, and was %s", again, first)
	}
	kept, ok := h.api.listing.Load().form(formKey{"proxies", "main"})
	if !ok || kept.etag != first || !strings.Contains(string(kept.text), masked) || strings.Contains(string(kept.text), "$2y$") {
		t.Errorf("kept: %v %s", ok, kept.text)
	}
	_, out := h.does("PATCH", "/proxies/main?dry_run=true", `{"description":"a draft"}`, 200, "", "as: editor", always)
	if out["description"] != "a draft" || out["etag"] == first {
		t.Errorf("the draft is told as %v", out)
	}
	read("the shop")
	h.does("PATCH", "/proxies/main", `{"description":"another"}`, 200, "", "as: editor", "If-Match: "+first)
	if second := read("another"); second == first {
		t.Error("the ETag of a changed object is the same")
	}
	// Many who read at once see whole objects.
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 20 {
				o, err := h.api.showOne(h.c.Plan().Config(), config.KindOf("proxies"), "main")
				if text := string(o.(objectText).text); err != nil || !strings.HasSuffix(text, "}") || strings.Count(text, `"description"`) != 1 {
					t.Errorf("got %s, %v", text, err)
				}
			}
		})
	}
	readers.Wait()
}

// TestKeptFormsAreBounded keeps more than there is room for.
func TestKeptFormsAreBounded(t *testing.T) {
	l := &listing{}
	l.keep(formKey{"proxies", "huge"}, written{text: make([]byte, maxForms/8)})
	if _, ok := l.form(formKey{"proxies", "huge"}); ok {
		t.Error("a huge form was kept")
	}
	for i := range 1000 {
		key := formKey{"proxies", fmt.Sprint(i)}
		l.keep(key, written{text: make([]byte, 64<<10)})
		if _, ok := l.form(key); !ok || l.mu.size > maxForms || l.mu.size < len(l.mu.forms)*64<<10 {
			t.Fatalf("after %d: kept %v, %d bytes in %d forms", i, ok, l.mu.size, len(l.mu.forms))
		}
	}
}
