package tracing

import (
	"net/url"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// Config says whether requests are traced, and where spans are sent.
type Config struct {
	// Enabled is whether requests get a traceparent field (W3C Trace Context). The trace
	// of a peer in client_ip.trusted goes on; anyone else's is replaced by a new one.
	// Switched off, traceparent and tracestate pass as clients send them.
	Enabled bool `json:"enabled" default:"false"`
	// Endpoint is the URL to which spans are sent, by OTLP over HTTP as JSON. Absent
	// sends none: then only the field is passed on, and the log has trace_id.
	Endpoint string `json:"endpoint,omitempty" host:"admin" max:"2048" example:"http://127.0.0.1:4318/v1/traces"`
	// Headers are fields that go to the endpoint with every batch, such as the token
	// that a collector asks for.
	Headers []Header `json:"headers,omitempty" max:"16"`
	// Sample is how many percent of new traces are sampled. A trace that goes on is
	// sampled if the peer says so.
	Sample int `json:"sample" default:"1" min:"0" max:"100"`
	// ServiceName is what spans say as service.name.
	ServiceName string `json:"service_name" default:"headgate" min:"1" max:"128"`
}

// Header is a field that goes to a collector.
type Header struct {
	// Name is the name of the field.
	Name string `json:"name" required:"true" max:"256" example:"Authorization"`
	// Value is its value.
	Value string `json:"value" required:"true" secret:"true" max:"4096" example:"Bearer ${OTLP_TOKEN}"`
}

// Check tells of an endpoint that nothing can be sent to, and of fields that cannot be.
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
		at.Field("endpoint").Problem("this is no URL that spans can be sent to", "write one like http://127.0.0.1:4318/v1/traces")
	}
}
