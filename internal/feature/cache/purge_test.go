package cache

import (
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
		{"tag that nothing has", Purge{Tag: "re"}, ""},
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
		{}, {URL: "x"}, {URL: "ftp://a/b"}, {URL: "/a"}, {URL: "http:///a"}, {URL: "http://a/b", All: true}, {Tag: "a b"}, {Soft: true}, {Prefix: "shop.example.com/"},
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
