package fixed

// Config makes a route answer by itself, with no upstream behind it.
type Config struct {
	// Status is the status code of every answer.
	Status int `json:"status" required:"true" min:"200" max:"599" example:"410"`
	// Body is the text of every answer. Empty means an answer without a body.
	// The variables of header values ({host}, {path}, …) may be used; `{{` is a
	// brace. At most 64 KiB.
	Body string `json:"body,omitempty" max:"65536" example:"gone for good"`
	// ContentType is the media type of Body. It is sent only with a body.
	ContentType string `json:"content_type,omitempty" default:"text/plain; charset=utf-8" max:"256"`
}
