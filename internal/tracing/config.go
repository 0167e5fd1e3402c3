package tracing

import (
	"net/url"

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
	// Sample is how many percent of new traces are sampled. A trace that goes on is
	// sampled if the peer says so.
	Sample int `json:"sample" default:"1" min:"0" max:"100"`
	// ServiceName is what spans say as service.name.
	ServiceName string `json:"service_name" default:"headgate" min:"1" max:"128"`
}

// Check tells of an endpoint that nothing can be sent to.
func (c *Config) Check(at schema.Place) {
	if c.Endpoint == "" {
		return
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		at.Field("endpoint").Problem("this is no URL that spans can be sent to", "write one like http://127.0.0.1:4318/v1/traces")
	}
}
