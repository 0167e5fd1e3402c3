// Package sitemap reads sitemaps as sitemaps.org defines them (protocol 0.9): XML files with
// pages, indexes of other sitemaps, and text files with one URL per line, each also
// compressed with gzip. It streams: only the current element is in memory.
//
// It opens nothing and follows nothing. The caller fetches the sitemaps of an index.
package sitemap

import (
	"bufio"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The limits of one file. The protocol has the same limits for bytes and URLs.
const (
	MaxBytes = 50 << 20 // uncompressed
	MaxURLs  = 50_000
	maxLine  = 64 << 10
)

// Errors of Read.
var (
	// ErrTooLarge means that a file has more than MaxBytes or MaxURLs. What was read before
	// was passed on.
	ErrTooLarge = errors.New("the sitemap has more than 50 MiB or 50000 URLs, which the protocol does not allow")
	// ErrNoSitemap means that a file is not a sitemap, such as an HTML page.
	ErrNoSitemap = errors.New("not a sitemap: expected the XML element urlset or sitemapindex, or a URL in each line")
)

// Entry is a URL in a sitemap, as it is written there.
type Entry struct {
	URL string
	// Index means that it is the URL of another sitemap.
	Index bool
}

// errStop ends the parsers when the caller wants no more entries.
var errStop = errors.New("stopped")

// Read passes each entry of a sitemap to yield until that returns false. The returned error
// is ErrNoSitemap, ErrTooLarge, or that of the reader or parser; the entries before it were
// passed on.
func Read(r io.Reader, yield func(Entry) bool) error {
	in := bufio.NewReaderSize(r, maxLine)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		in = bufio.NewReaderSize(unzipped, maxLine)
	}
	limit := &limited{r: in, left: MaxBytes}
	in = bufio.NewReaderSize(limit, maxLine)
	urls := 0
	counted := func(e Entry) error {
		if urls++; urls > MaxURLs {
			return ErrTooLarge
		}
		if !yield(e) {
			return errStop
		}
		return nil
	}
	read := readText
	if startsWithTag(in) {
		read = readXML
	}
	err := read(in, counted)
	switch {
	case errors.Is(err, errStop):
		return nil
	case limit.left < 0:
		return ErrTooLarge
	}
	return err
}

// limited returns ErrTooLarge after a number of bytes.
type limited struct {
	r    io.Reader
	left int64 // below 0 once there was more
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, ErrTooLarge
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return max(0, n+int(l.left)), ErrTooLarge
	}
	return n, err
}

// startsWithTag reports whether the first character, after a byte order mark and spaces, is "<".
func startsWithTag(in *bufio.Reader) bool {
	head, _ := in.Peek(512)
	text := strings.TrimLeft(strings.TrimPrefix(string(head), "\ufeff"), " \t\r\n")
	return strings.HasPrefix(text, "<")
}

// readText reads a URL from each line.
func readText(in *bufio.Reader, found func(Entry) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for first := true; lines.Scan(); first = false {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" {
			continue
		}
		if first && !strings.HasPrefix(line, "http://") && !strings.HasPrefix(line, "https://") {
			return ErrNoSitemap
		}
		if err := found(Entry{URL: line}); err != nil {
			return err
		}
	}
	return lines.Err()
}

// readXML reads the loc of each url and sitemap. Other elements, such as image:loc, are
// skipped: the name of the parent decides, and namespaces are those of the protocol or none.
func readXML(in *bufio.Reader, found func(Entry) error) error {
	d := xml.NewDecoder(in)
	d.Strict = false // unescaped & in URLs are common
	root := false
	for {
		token, err := d.Token()
		if err == io.EOF && root {
			return nil
		}
		if err != nil {
			return notXML(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch name := start.Name.Local; {
		case !root && name != "urlset" && name != "sitemapindex":
			return ErrNoSitemap
		case !root:
			root = true
		case name == "url", name == "sitemap":
			e := Entry{Index: name == "sitemap"}
			if e.URL, err = location(d, start.Name.Space); err == nil && e.URL != "" {
				err = found(e)
			}
			if err != nil {
				return notXML(err)
			}
		default:
			if err := d.Skip(); err != nil {
				return notXML(err)
			}
		}
	}
}

// location returns the text of the loc of the element that has started, and reads to its end.
func location(d *xml.Decoder, space string) (text string, err error) {
	for {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.EndElement:
			return text, nil
		case xml.StartElement:
			if t.Name.Local != "loc" || t.Name.Space != space {
				if err := d.Skip(); err != nil {
					return "", err
				}
				continue
			}
			if text, err = content(d); err != nil {
				return "", err
			}
		}
	}
}

// content returns the text up to the end of an element, "" if it is longer than maxLine.
func content(d *xml.Decoder) (string, error) {
	var b strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); b.Len()+len(text) <= maxLine {
				b.WriteString(text)
			}
		case xml.EndElement:
			return b.String(), nil
		case xml.StartElement:
			if err := d.Skip(); err != nil {
				return "", err
			}
		}
	}
}

// notXML adds to an error of the parser what was read; other errors are returned as they are.
func notXML(err error) error {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("parse the sitemap: %w", err)
	}
	if err == io.EOF {
		return ErrNoSitemap
	}
	return err
}
