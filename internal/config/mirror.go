package config

import (
	"headgate/internal/schema"
	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// Mirror sends copies of a route's requests to other servers, for tests. Copies are not
// waited for, their responses are discarded unless compare is set, and their failures only appear in the metrics.
// The copy is the request as the route's servers get it, including cookies and credentials.
// Upgrades are not copied.
type Mirror struct {
	// Enabled is whether requests are copied.
	Enabled bool `json:"enabled" default:"true"`
	// Servers are the servers that receive the copies, which are shared like the requests
	// of a route.
	Servers []*Server `json:"servers" required:"true" min:"1" max:"16" object:"server,url" example:"[{url: http://127.0.0.1:3001}]"`
	// Percent is the percentage of requests that are copied, selected at random.
	Percent int `json:"percent" default:"100" min:"0" max:"100"`
	// MaxBody is the longest request body that is copied. It is held in memory
	// until the copy is sent; requests with longer ones are not copied.
	MaxBody unit.Size `json:"max_body" default:"64KiB" max:"1MiB"`
	// MaxRequests is the maximum number of copies in progress. Beyond it, requests are not
	// copied.
	MaxRequests int `json:"max_requests" was:"max_running" default:"64" min:"1" max:"10000"`
	// Timeout bounds a copy from its start to the end of the response.
	Timeout unit.Duration `json:"timeout" default:"10s" min:"10ms" max:"10m"`
	// Compare is whether the responses to copies are compared with those of the route's servers:
	// status, body, header fields and time. "headgate mirror report" shows the result, which is in
	// memory and starts anew with the process. Bodies are compared up to 16 MiB, and as they pass.
	Compare bool `json:"compare" default:"false"`
}

// Check reports problems of the settings, which are at at.
func (m *Mirror) Check(at schema.Place) {
	for i, s := range m.Servers {
		if s.IsCandidate() {
			at.Field("servers").Index(i).Called("server", s.URL).Field("group").Problem("servers of a mirror have no group", "remove group")
		}
	}
	if len(m.Servers) > 0 {
		checkServers(m.Servers, at.Field("servers"))
		for i, s := range m.Servers {
			if t, f := target.Parse(s.URL); f == nil && t.Scheme.IsFastCGI() {
				at.Field("servers").Index(i).Called("server", s.URL).Field("url").Problem("requests cannot be mirrored to FastCGI servers", "write the URL of an HTTP server")
			}
		}
	}
}
