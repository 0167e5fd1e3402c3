package tracing

import (
	"net/url"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// Config configures which requests are traced, and where spans are sent.
type Config struct {
	// Enabled is whether requests get a traceparent header (W3C Trace Context). The trace
	// of a peer in client_ip.trusted is continued; others are replaced by a new one. When
	// disabled, traceparent and tracestate are forwarded as clients send them.
	Enabled bool `json:"enabled" default:"false"`
	// Endpoint is the URL that spans are sent to, with OTLP over HTTP as JSON. If absent,
	// no spans are sent: only the header is forwarded, and the log has trace_id.
	Endpoint string `json:"endpoint,omitempty" host:"admin" max:"2048" example:"http://127.0.0.1:4318/v1/traces"`
	// Headers are headers of the requests to the endpoint, such as a token that a collector
	// requires.
	Headers []Header `json:"headers,omitempty" max:"16"`
	// Sample is the percentage of new traces that are sampled. A trace that is continued is
	// sampled if the peer sampled it.
	Sample int `json:"sample" default:"1" min:"0" max:"100"`
	// ServiceName is the service.name of spans.
	ServiceName string `json:"service_name" default:"headgate" min:"1" max:"128"`
}

// Header is a header of requests to a collector.
type Header struct {
	// Name is the name of the header.
	Name string `json:"name" required:"true" max:"256" example:"Authorization"`
	// Value is the value of the header.
	Value string `json:"value" required:"true" secret:"true" max:"4096" example:"Bearer ${OTLP_TOKEN}"`
}

// Check reports an endpoint that nothing can be sent to, and fields that cannot be sent.
func (c *Config) Check(at schema.Place) {
	for i := range c.Headers {
		h, at := &c.Headers[i], at.Field("headers").Index(i)
		id := header.Lookup(h.Name)
		switch {
		case !http1.ValidName(h.Name):
			at.Field("name").Problem("invalid name", "write one like Authorization")
		case id.HopByHop(), id == header.Host, id == header.ContentLength, id == header.ContentType, id == header.ContentEncoding:
			at.Field("name").Problem(h.Name+" is set by headgate itself", "remove it")
		case !http1.ValidValue(h.Value):
			at.Field("value").Problem("the value contains control characters", "remove them; a file may end in one newline")
		}
	}
	if c.Endpoint == "" {
		return
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		at.Field("endpoint").Problem("not a URL that spans can be sent to", "write one like http://127.0.0.1:4318/v1/traces")
	}
}
