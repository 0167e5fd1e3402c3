// Package page makes bodies of what operators write: texts in settings, and files.
// Variables in them are replaced, and their values escaped, so that no client can
// put markup into a page.
package page

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/file"
)

// longestFile is the largest file of a page, in bytes.
const longestFile = 1 << 20

// lookInterval is how often a file is looked at for changes while its page is in
// use.
const lookInterval = 2 * time.Second

// Page is a compiled page. It may be used by any number of goroutines.
type Page struct {
	// constant
	name        string // of the file, "" for a text in the settings
	contentType string
	escape      func([]byte, int) []byte

	content atomic.Pointer[content]
	looked  atomic.Int64 // when, by exchange.Now
}

// content is a page as it stands in its file.
type content struct {
	stamp    stamp
	template exchange.Template
	fixed    []byte // when no variable is in it
}

// Open returns the page of settings that were checked, or nil if they have none.
// dir is where a relative path begins. The error tells of a file that cannot be
// read.
func Open(c *Config, dir string) (*Page, error) {
	if c.Body == "" && c.File == "" {
		return nil, nil
	}
	p := &Page{contentType: c.mediaType()}
	p.escape = Escaping(p.contentType)
	if c.File == "" {
		template, err := exchange.ParseTemplate(c.Body)
		p.content.Store(newContent(stamp{}, template))
		return p, err
	}
	p.name = c.File
	if !filepath.IsAbs(p.name) {
		p.name = filepath.Join(dir, p.name)
	}
	p.looked.Store(exchange.Now())
	first, err := read(p.name)
	p.content.Store(first)
	return p, err
}

func newContent(s stamp, template exchange.Template) *content {
	c := &content{stamp: s, template: template}
	if text, ok := template.Fixed(); ok {
		c.fixed = []byte(text)
	}
	return c
}

// read reads a file.
func read(name string) (*content, error) {
	s := stampOf(name)
	data, err := file.Read(name, longestFile, "more than the 1 MiB of a page")
	if err != nil {
		return nil, err
	}
	template, err := exchange.ParsePage(string(data))
	return newContent(s, template), err
}

// ContentType returns the media type.
func (p *Page) ContentType() string { return p.contentType }

// JSON reports whether the page is JSON.
func (p *Page) JSON() bool { return strings.Contains(p.contentType, "json") }

// Text returns the body for an exchange. It must not be changed.
func (p *Page) Text(ex *exchange.Exchange) []byte {
	c := p.current()
	if c.fixed != nil {
		return c.fixed
	}
	return []byte(ex.Text.End(c.template.AppendEscaped(ex.Text.Begin(), ex, p.escape)))
}

// current returns the content, and takes a changed file up now and then. A file
// that cannot be read any more leaves the page as it was.
func (p *Page) current() *content {
	c := p.content.Load()
	if p.name == "" {
		return c
	}
	looked, now := p.looked.Load(), exchange.Now()
	if now-looked < int64(lookInterval) || !p.looked.CompareAndSwap(looked, now) || stampOf(p.name) == c.stamp {
		return c
	}
	if changed, err := read(p.name); err == nil {
		p.content.Store(changed)
		return changed
	}
	return c
}
