package page

import (
	"mime"
	"path"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/schema"
)

// Config is a page in settings.
type Config struct {
	// Body is the text of the page, with the variables of header values and {status} and
	// {reason}; `{{` is a brace. In HTML, XML and JSON their values are escaped. At most 64
	// KiB; put a longer page in a file.
	Body string `json:"body,omitempty" label:"true" max:"65536" example:"<h1>Back soon</h1>"`
	// File is the file with the page, at most 1 MiB. Variables in it are replaced, too; all
	// other braces have no special meaning. A relative path is relative to the
	// configuration file. Changes of the file are used within seconds.
	File string `json:"file,omitempty" host:"admin" local:"true" max:"4096" example:"pages/503.html"`
	// ContentType is the media type of the page. The default is the type of the file's
	// extension; for text, HTML if it starts with <, JSON if it starts with { or [,
	// otherwise plain text.
	ContentType string `json:"content_type,omitempty" label:"true" max:"256" example:"text/html; charset=utf-8"`
}

// CheckPage reports what is wrong with the page whose settings are at at.
func (c *Config) CheckPage(at schema.Place) {
	if c.Body != "" && c.File != "" {
		at.Field("file").Problem("body and file cannot be combined", "keep one of body and file")
	}
	if strings.ContainsRune(c.File, 0) {
		at.Field("file").Problem("the path contains a NUL", "remove it")
	}
	if _, err := exchange.ParseTemplate(c.Body); err != nil {
		what, remedy, _ := strings.Cut(err.Error(), "; write ")
		at.Field("body").Problem(what, "write "+remedy)
	}
	CheckMediaType(c.ContentType, at.Field("content_type"))
}

// CheckMediaType reports what is wrong with a media type; "" is none.
func CheckMediaType(text string, at schema.Place) {
	if what, remedy := schema.CheckFieldValue(text); what != "" {
		at.Problem(what, remedy)
	} else if _, _, err := mime.ParseMediaType(text); err != nil && text != "" {
		at.Problemf(`write it like "text/html; charset=utf-8"`, "%q is not a media type", text)
	}
}

// The default media types of pages.
const (
	html  = "text/html; charset=utf-8"
	plain = "text/plain; charset=utf-8"
	json  = "application/json"
)

// mediaType returns the media type of the page.
func (c *Config) mediaType() string {
	if c.ContentType != "" {
		return c.ContentType
	}
	if c.File != "" {
		switch strings.ToLower(path.Ext(c.File)) {
		case ".html", ".htm":
			return html
		case ".json":
			return json
		case ".xml":
			return "application/xml"
		case ".svg":
			return "image/svg+xml"
		}
		return plain
	}
	switch text := strings.TrimSpace(c.Body); {
	case strings.HasPrefix(text, "<"):
		return html
	case strings.HasPrefix(text, "{{"), strings.HasPrefix(text, "["):
		return json
	}
	return plain
}
