package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
)

// all reads a sitemap into lines; those of other sitemaps start with "> ".
func all(text string) (string, error) {
	var lines []string
	err := Read(strings.NewReader(text), func(e Entry) bool {
		if e.Index {
			e.URL = "> " + e.URL
		}
		lines = append(lines, e.URL)
		return true
	})
	return strings.Join(lines, "\n"), err
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text) // a buffer
	_ = w.Close()
	return b.String()
}

func TestSitemapsOfEachFormAreRead(t *testing.T) {
	const pages = `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <url><loc> https://a.example/1?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod><image:image><image:loc>https://a.example/i.png</image:loc></image:image></url>
  <url><image:loc>https://a.example/j.png</image:loc><loc><![CDATA[https://a.example/2]]></loc></url>
  <url><loc></loc></url>
</urlset>`
	const want = "https://a.example/1?x=1&y=2\nhttps://a.example/2"
	for name, test := range map[string]struct{ text, want string }{
		"XML":                 {pages, want},
		"gzip":                {zipped(pages), want},
		"byte order mark":     {"\ufeff\n" + pages, want},
		"unescaped ampersand": {"<urlset><url><loc>http://a/?a=1&b=2</loc></url></urlset>", "http://a/?a=1&b=2"},
		"index":               {"<sitemapindex><sitemap><loc>http://a/1.xml.gz</loc></sitemap><other><loc>x</loc></other></sitemapindex>", "> http://a/1.xml.gz"},
		"text":                {"http://a/1\r\n\nhttp://a/2\n", "http://a/1\nhttp://a/2"},
		"nothing":             {"<urlset/>", ""},
	} {
		if got, err := all(test.text); got != test.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func TestWhatIsNoSitemapIsRefused(t *testing.T) {
	for _, text := range []string{"<html><a href='http://a/'>x</a></html>", "", "<", "hello\nhttp://a/", "<!-- -->"} {
		if got, err := all(text); got != "" || text != "" && err == nil {
			t.Errorf("%q: got %q, %v; want an error", text, got, err)
		}
	}
	if got, err := all("<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/2"); got != "http://a/1" || err == nil {
		t.Errorf("cut off: got %q, %v; want the first URL and an error", got, err)
	}
}

func TestFilesHaveLimits(t *testing.T) {
	big := "<urlset>" + strings.Repeat("<x>"+strings.Repeat(" ", 1000)+"</x>", MaxBytes/1000) + "<url><loc>http://a/</loc></url></urlset>"
	if got, err := all(zipped(big)); got != "" || !errors.Is(err, ErrTooLarge) {
		t.Errorf("51 MiB: got %q, %v; want %v", got, err, ErrTooLarge)
	}
	if _, err := all(strings.Repeat("http://a/\n", MaxURLs)); err != nil {
		t.Errorf("%d URLs: %v", MaxURLs, err)
	}
	if _, err := all(strings.Repeat("http://a/\n", MaxURLs+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d URLs: got %v, want %v", MaxURLs+1, err, ErrTooLarge)
	}
	n := 0
	if err := Read(strings.NewReader(strings.Repeat("http://a/\n", 100)), func(Entry) bool { n++; return n < 7 }); err != nil || n != 7 {
		t.Errorf("stopped after %d of 7: %v", n, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("<urlset><url><loc>http://a/?a&b</loc></url></urlset>"))
	f.Add([]byte("<sitemapindex><sitemap><loc>http://a/</loc></sitemap></sitemapindex>"))
	f.Add([]byte("http://a/\n"))
	f.Add([]byte(zipped("http://a/\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		_ = Read(bytes.NewReader(text), func(e Entry) bool { // only the limits count
			if n++; e.URL == "" || n > MaxURLs {
				t.Fatalf("entry %d is %q", n, e.URL)
			}
			return true
		})
	})
}
