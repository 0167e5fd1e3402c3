// Package page makes bodies of what operators write: texts in settings, and files.
// Variables in them are replaced, and their values escaped, so that no client can
// put markup into a page.
package page

import (
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/file"
	"headgate/internal/schema"
)

// MaxFile is the largest file of a page, in bytes.
const MaxFile = 1 << 20

// TooLarge says what a larger file is.
const TooLarge = "more than the 1 MiB of a page"

// lookInterval is how often a file is looked at for changes while its page is in
// use.
const lookInterval = 2 * time.Second

// Page is a compiled page. It may be used by any number of goroutines.
type Page struct {
	// constant
	file        *file.Followed // nil for a text in the settings
	contentType string
	escape      func([]byte, int) []byte

	content atomic.Pointer[content]
	looked  clock.Spacing // of looks at the file
}

// content is the content of the file of a page.
type content struct {
	of       *file.Content // nil for a text in the settings
	template exchange.Template
	fixed    []byte // when no variable is in it
}

// FileError is returned for a page whose file cannot be used.
type FileError struct {
	// Err is what is wrong with the file.
	Err error
}

// Error returns what is wrong with the file.
func (e *FileError) Error() string { return e.Err.Error() }

// Place returns the place of the file below that of the page.
func (e *FileError) Place(page schema.Place) schema.Place { return page.Field("file") }

// Compile returns the page of settings that were checked, or nil if they have none.
// The error is a *FileError of a file that cannot be used.
func Compile(c *Config, env exchange.Env) (*Page, error) {
	if c.Body == "" && c.File == "" {
		return nil, nil
	}
	p := &Page{contentType: c.mediaType()}
	p.escape = Escaping(p.contentType)
	if c.File == "" {
		template, err := exchange.ParseTemplate(c.Body)
		p.content.Store(newContent(nil, template))
		return p, err
	}
	var err error
	if p.file, err = env.File(c.File); err != nil {
		return nil, &FileError{err}
	}
	p.looked.Last.Store(exchange.Now())
	now := p.file.Content()
	template, err := exchange.ParsePage(string(now.Data))
	if err != nil {
		return nil, &FileError{err}
	}
	p.content.Store(newContent(now, template))
	return p, nil
}

// Files returns the files that settings name.
func (c *Config) Files() []file.Wanted {
	if c.File == "" {
		return nil
	}
	return []file.Wanted{{Name: c.File, Max: MaxFile, TooLarge: TooLarge}}
}

func newContent(of *file.Content, template exchange.Template) *content {
	c := &content{of: of, template: template}
	if text, ok := template.Fixed(); ok {
		c.fixed = []byte(text)
	}
	return c
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
	return []byte(ex.Text.End(c.template.AppendEscaped(ex.Text.Buffer(), ex, p.escape)))
}

// current returns the content, and reads a changed file from time to time. A
// file that cannot be used any more leaves the page as it was.
func (p *Page) current() *content {
	c := p.content.Load()
	if p.file == nil {
		return c
	}
	if !p.looked.Due(exchange.Now(), lookInterval) {
		return c
	}
	p.file.Refresh() // what cannot be read stays as it was
	is := p.file.Content()
	if is == c.of {
		return c
	}
	template, err := exchange.ParsePage(string(is.Data))
	if err != nil {
		return c
	}
	changed := newContent(is, template)
	p.content.Store(changed)
	return changed
}
