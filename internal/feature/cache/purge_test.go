package cache

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/exchange/exchangetest"
)

func TestPurge(t *testing.T) {
	for _, c := range []struct {
		name  string
		purge Purge
		gone  string // of abcdefg, the letters of what is gone
	}{
		{"URL", Purge{URL: "http://example.com/a"}, "ae"},
		{"URL over the other scheme", Purge{URL: "https://example.com/a"}, "ae"},
		{"URL in another form", Purge{URL: "http://EXAMPLE.com:80/x/../a"}, "ae"},
		{"URL with a query", Purge{URL: "http://example.com/a?q"}, "b"},
		{"URL with an ignored parameter", Purge{URL: "http://example.com/a?q&utm_x=1"}, "b"},
		{"prefix", Purge{Prefix: "http://example.com/a"}, "abce"},
		{"prefix of another host", Purge{Prefix: "http://other.example/"}, "d"},
		{"prefix that is a host", Purge{Prefix: "http://example.com"}, "abcefg"},
		{"tag", Purge{Tag: "red"}, "cf"},
		{"tag in another case", Purge{Tag: "GREEN"}, "f"},
		{"tag that is a part of another", Purge{Tag: "re"}, ""},
		{"tag of xkey", Purge{Tag: "amber"}, "g"},
		{"group", Purge{Tag: "on sale"}, "g"},
		{"parameter of a group", Purge{Tag: "never"}, ""},
		{"all", Purge{All: true}, "abcdefg"},
	} {
		for _, soft := range []bool{false, true} {
			s := newStage(t, settings(func(c *Config) { c.IgnoreQuery = []string{"utm_*"} }))
			s.origin.reply = answer("200|Cache-Control: max-age=60||x", s.clock)
			tagged := answer("200|Cache-Control: max-age=60|Cache-Tag: red,blue||x", s.clock)
			ask := map[byte]func() *exchangetest.Front{
				'a': func() *exchangetest.Front { return s.request("GET /a") },
				'b': func() *exchangetest.Front { return s.request("GET /a?q") },
				'c': func() *exchangetest.Front { return s.request("GET /a/c") },
				'd': func() *exchangetest.Front { return s.request("GET /a", exchangetest.Host("other.example")) },
				'e': func() *exchangetest.Front { return s.request("GET /a", exchangetest.Secure()) },
				'f': func() *exchangetest.Front { return s.request("GET /f") },
				'g': func() *exchangetest.Front { return s.request("GET /g") },
			}
			for letter := byte('a'); letter <= 'g'; letter++ {
				reply := s.origin.reply
				switch letter {
				case 'c':
					s.origin.reply = tagged
				case 'f':
					s.origin.reply = answer("200|Cache-Control: max-age=60|Surrogate-Key: green  red||x", s.clock)
				case 'g':
					s.origin.reply = answer("200|Cache-Control: max-age=60|xkey: teal amber|Cache-Groups: \"on sale\";a=\"never\", \"b\"||x", s.clock)
				}
				ask[letter]()
				s.origin.reply = reply
			}
			if err := c.purge.Check(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			c.purge.Soft, c.purge.Count = soft, true
			for range 2 { // nothing is gone that was only counted
				if n := (Store{s.cache.store, 0, s.cache.ignored}).Purge(c.purge); n != len(c.gone) {
					t.Errorf("%s, soft %v: %d responses are counted, want %d", c.name, soft, n, len(c.gone))
				}
			}
			c.purge.Count = false
			if n := (Store{s.cache.store, 0, s.cache.ignored}).Purge(c.purge); n != len(c.gone) {
				t.Errorf("%s, soft %v: %d responses, want %d", c.name, soft, n, len(c.gone))
			}
			gone := ""
			for letter := byte('a'); letter <= 'g'; letter++ {
				before := s.origin.count()
				if ask[letter](); s.origin.count() > before {
					gone += string(letter)
				}
			}
			if gone != c.gone {
				t.Errorf("%s, soft %v: gone are %q, want %q", c.name, soft, gone, c.gone)
			}
		}
	}
}

func TestPurgeIsChecked(t *testing.T) {
	for _, p := range []Purge{
		{}, {URL: "x"}, {URL: "ftp://a/b"}, {URL: "/a"}, {URL: "http:///a"}, {URL: "http://a/b", All: true}, {Tag: "a,b"}, {Tag: strings.Repeat("x", 2000)}, {Soft: true}, {Prefix: "shop.example.com/"},
	} {
		if p.Check() == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}

// TestSoftPurge serves what was purged while it is fetched anew.
func TestSoftPurge(t *testing.T) {
	s := newStage(t, settings())
	s.origin.reply = answer(`200|Cache-Control: max-age=60, stale-while-revalidate=60, stale-if-error=60|ETag: "a"||one`, s.clock)
	s.request("GET /")
	Store{store: s.cache.store}.Purge(Purge{All: true, Soft: true})
	s.origin.reply = answer("down", s.clock)
	if f := s.request("GET /"); f.Body != "one" {
		t.Errorf("got %d %q", f.Status, f.Body)
	}
}

// TestGroupInvalidation: an unsafe request invalidates the groups that its response names, for
// its own origin alone (RFC 9875, section 3).
func TestGroupInvalidation(t *testing.T) {
	for _, c := range []struct{ request, field, gone string }{
		{"POST /edit", `"one", "none"`, "a"},
		{"POST /edit", `"ONE"`, ""}, // names are case-sensitive
		{"POST /edit", `"one"; p=1, "two"`, "ab"},
		{"POST /edit", `one`, ""}, // not a string
		{"GET /safe", `"one"`, ""},
	} {
		s := newStage(t, settings())
		ask := map[string]func(){
			"a": func() { s.request("GET /a") },
			"b": func() { s.request("GET /b") },
			"c": func() { s.request("GET /a", exchangetest.Host("other.example")) },
		}
		s.origin.reply = answer(`200|Cache-Control: max-age=60|Cache-Groups: "one"||x`, s.clock)
		ask["a"]()
		ask["c"]()
		s.origin.reply = answer(`200|Cache-Control: max-age=60|Cache-Groups: "two"||x`, s.clock)
		ask["b"]()
		s.origin.reply = answer("200|Cache-Control: no-store|Cache-Group-Invalidation: "+c.field+"||x", s.clock)
		s.request(c.request)
		gone := ""
		for _, letter := range []string{"a", "b", "c"} {
			before := s.origin.count()
			if ask[letter](); s.origin.count() > before {
				gone += letter
			}
		}
		if gone != c.gone {
			t.Errorf("%s with %s: gone are %q, want %q", c.request, c.field, gone, c.gone)
		}
	}
}

// TestEntries lists what is stored in each order, no more than the limit, and leaves nothing held.
func TestEntries(t *testing.T) {
	s := newStage(t, settings())
	for i, size := range []int{10, 40000, 5000} {
		s.origin.reply = answer("200|Cache-Control: max-age=60|Vary: X-Kind|Cache-Tag: t"+fmt.Sprint(i)+", all||"+strings.Repeat("x", size), s.clock)
		for range i + 1 {
			s.request(fmt.Sprintf("GET /%d?k=v", i))
		}
		s.wait(1)
	}
	store := Store{store: s.cache.store}
	for by, want := range map[Order]string{BySize: "120", ByHits: "210", ByAge: "012"} {
		for limit := 1; limit <= 4; limit++ {
			got := ""
			for _, e := range store.Entries(by, limit) {
				got += e.URL[len("http://example.com/"):][:1]
			}
			if got != want[:min(limit, 3)] {
				t.Errorf("by %s, limit %d: got %q, want %q", by, limit, got, want[:min(limit, 3)])
			}
		}
	}
	e := store.Entries(ByHits, 1)[0]
	if e.URL != "http://example.com/2?k=v" || e.Hits != 2 || e.Status != 200 || e.Age != 1 || e.TTL != 59 || fmt.Sprint(e.Vary, e.Tags) != "[X-Kind] [t2 all]" || e.Size < 5000 || e.Size > 20000 {
		t.Errorf("got %+v", e)
	}
	store.Purge(Purge{All: true})
	if _, _, entries, _ := store.Memory(); entries != 0 {
		t.Errorf("%d entries are held after everything was removed", entries)
	}
}
