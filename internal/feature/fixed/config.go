package fixed

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/setting/page"
)

// Config is a response that a route returns without a server.
type Config struct {
	// Status is the status code.
	Status int `json:"status" label:"true" required:"true" min:"200" max:"599" example:"410"`
	// Body is the body. Empty means no body. It can contain the variables of header values
	// ({host}, {path}, …); `{{` is a brace. In HTML, XML and JSON, according to the content
	// type, their values are escaped. At most 64 KiB.
	Body string `json:"body,omitempty" label:"true" max:"65536" example:"gone for good"`
	// ContentType is the media type of the body. It is sent only with a body.
	ContentType string `json:"content_type,omitempty" label:"true" default:"text/plain; charset=utf-8" max:"256"`
}

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	page.CheckMediaType(c.ContentType, at.Field("content_type"))
	if _, err := exchange.ParseTemplate(c.Body); err != nil {
		what, remedy, _ := strings.Cut(err.Error(), "; write ")
		at.Field("body").Problem(what, "write "+remedy)
	}
	if c.Body != "" && (c.Status == 204 || c.Status == 205 || c.Status == 304) {
		at.Field("body").Problemf("remove the body, or use another status", "a response with status %d has no body", c.Status)
	}
}
