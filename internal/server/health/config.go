package health

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"headgate/internal/schema"
	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// Config configures the health checks of a route's servers. Checks use the same addresses
// and TLS settings as requests, on a new connection each time. A server of several routes
// is checked once.
type Config struct {
	// Type is `http` for a request, or a connection if there is no path, or `grpc` for the
	// gRPC health checking protocol, over h2c or https.
	Type Type `json:"type" label:"true" default:"http" enum:"http,grpc"`
	// Service is the name of the service in a grpc check. Empty means the whole server.
	Service string `json:"service,omitempty" label:"true" max:"256" example:"shop.v1.Orders"`
	// Path is the path of the request, from the root of the server: its base path is not
	// added. It can have a query. Empty means that the check is a connection, with a TLS
	// handshake for https.
	Path string `json:"path,omitempty" label:"true" max:"2048" example:"/healthz"`
	// Interval is the time between two checks of a server, with a jitter of a tenth.
	Interval unit.Duration `json:"interval" label:"true" default:"10s" min:"100ms" max:"24h"`
	// UnhealthyInterval is the time between two checks while a server is not
	// healthy, or its last check failed.
	UnhealthyInterval unit.Duration `json:"unhealthy_interval" label:"true" default:"2s" min:"100ms" max:"24h"`
	// Timeout is the time limit of a check: connection, response and the part of its body
	// that is checked.
	Timeout unit.Duration `json:"timeout" label:"true" default:"3s" min:"10ms" max:"1m"`
	// Method is the method of the request.
	Method string `json:"method" label:"true" default:"GET" enum:"GET,HEAD,OPTIONS"`
	// Status lists the status codes of a healthy response, and ranges of them. Redirects
	// are not followed: their own status counts.
	Status string `json:"status" label:"true" default:"200-399" max:"256" example:"200,204"`
	// Body is an RE2 expression that must match in the first 64KiB of the body. Empty skips
	// the body.
	Body string `json:"body,omitempty" label:"true" max:"1024" example:"\"status\": ?\"ok\""`
	// Host is the Host of the request. Empty means that of the server's URL.
	Host string `json:"host,omitempty" label:"true" max:"259" example:"shop.example.com"`
	// Rise is how many checks in a row an unhealthy server must pass to be healthy
	// again.
	Rise int `json:"rise" label:"true" default:"2" min:"1" max:"100"`
	// Fall is how many checks in a row must fail for a server to be unhealthy.
	Fall int `json:"fall" label:"true" default:"3" min:"1" max:"100"`
}

// Type is the kind of a check.
type Type string

// The types of checks.
const (
	HTTP Type = "http"
	GRPC Type = "grpc"
)

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if c.Type == GRPC {
		for _, f := range []struct{ name, value string }{{"path", c.Path}, {"body", c.Body}} {
			if f.value != "" {
				at.Field(f.name).Problem("not valid for checks of type grpc", "remove it")
			}
		}
	} else if c.Service != "" {
		at.Field("service").Problem("service applies only to checks of type grpc", "write type: grpc, or remove service")
	}
	path, query, asks := strings.Cut(c.Path, "?")
	switch {
	case c.Path == "":
		if c.Body != "" && c.Type != GRPC {
			at.Field("body").Problem("body needs path", "add path: /healthz")
		}
	case strings.ContainsFunc(query, notQuery) || asks && query == "":
		at.Field("path").Problem("the query is not valid", "write it in its encoded form, as a client sends it")
	default:
		if what, remedy := schema.CheckPath(path); what != "" {
			at.Field("path").Problem(what, remedy)
		}
	}
	if _, err := parseStatuses(c.Status); err != nil {
		at.Field("status").Problem(err.Error(), "write codes and ranges like 200-299,404")
	}
	if _, err := regexp.Compile(c.Body); err != nil {
		at.Field("body").Problem("invalid regular expression: "+schema.RegexError(err), "write it in RE2 syntax, without look-around and backreferences")
	} else if c.Body != "" && c.Method == "HEAD" {
		at.Field("body").Problem("a response to HEAD has no body", "write method: GET")
	}
	if c.Host != "" {
		if _, _, f := target.SplitAuthority(c.Host); f != nil {
			at.Field("host").Problem(f.What, "write a host name like shop.example.com")
		}
	}
}

// notQuery reports whether r has no place in an encoded query.
func notQuery(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("#\"<>\\^`{|}", r) }

// Ejection configures when a server that fails requests is ejected for a while. It is on by
// default: it needs no health checks, and it never ejects more than half of a route's
// servers.
type Ejection struct {
	// Enabled is whether servers are ejected.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Failures is how many requests in a row must fail: no connection, no response in time,
	// an invalid response, or an incomplete one.
	Failures int `json:"failures" label:"true" default:"5" min:"1" max:"10000"`
	// Time is how long a server is ejected the first time. The second time it is twice as
	// long, and so on.
	Time unit.Duration `json:"time" label:"true" default:"10s" min:"100ms" max:"24h"`
	// MaxTime limits the growth of time.
	MaxTime unit.Duration `json:"max_time" label:"true" default:"5m" min:"100ms" max:"24h"`
	// MaxPercent is the percentage of the route's servers that can be ejected at once. With
	// 50, a route's only server never is.
	MaxPercent int `json:"max_percent" label:"true" default:"50" min:"0" max:"100"`
}

// Check reports problems of the settings, which are at at.
func (e *Ejection) Check(at schema.Place) {
	if e.Enabled && e.MaxTime < e.Time {
		at.Field("max_time").Problemf("write at least "+e.Time.String(), "%v is shorter than time, %v", e.MaxTime, e.Time)
	}
}

// Breaker is a circuit breaker for each server of a route. When too many of its responses
// are errors, the circuit opens: for a while the server gets no requests, so that it can
// recover. Then a few probes are admitted, and if all succeed, the circuit is closed. While
// the circuits of all servers are open, clients get 503 immediately.
type Breaker struct {
	// ErrorPercent is the percentage of requests in the window that must fail to open the
	// circuit.
	ErrorPercent int `json:"error_percent" label:"true" default:"50" min:"1" max:"100"`
	// Window is the time over which requests are counted.
	Window unit.Duration `json:"window" label:"true" default:"10s" min:"1s" max:"10m"`
	// MinRequests is the minimum number of requests in the window for the circuit to open.
	MinRequests int `json:"min_requests" label:"true" default:"20" min:"1" max:"1000000"`
	// Status lists the status codes that count as errors. A missing response always
	// counts.
	Status string `json:"status" label:"true" default:"500-599" max:"256"`
	// SlowAfter is the time after which a response counts as an error whatever its status.
	// 0 disables it.
	SlowAfter unit.Duration `json:"slow_after" label:"true" default:"0s" max:"1h"`
	// OpenTime is how long the circuit stays open.
	OpenTime unit.Duration `json:"open_time" label:"true" default:"10s" min:"100ms" max:"1h"`
	// Probes is how many requests are then admitted; all must succeed.
	Probes int `json:"probes" label:"true" default:"3" min:"1" max:"1000"`
}

// Check reports problems of the settings, which are at at.
func (b *Breaker) Check(at schema.Place) {
	if _, err := parseStatuses(b.Status); err != nil {
		at.Field("status").Problem(err.Error(), "write codes and ranges like 500-599,429")
	}
}

// statuses is a set of status codes.
type statuses [8]uint64 // of the codes 100 to 611

func (s *statuses) has(code int) bool {
	return code >= 100 && code < 600 && s[(code-100)>>6]&(1<<((code-100)&63)) != 0
}

// parseStatuses reads a list such as "200-299,404".
func parseStatuses(text string) (*statuses, error) {
	s := &statuses{}
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			high = low
		}
		first, ok := statusCode(low)
		last, also := statusCode(high)
		if !ok || !also || first > last {
			return nil, fmt.Errorf("%q is not a status code from 100 to 599, or a range of them", strings.TrimSpace(part))
		}
		for code := first; code <= last; code++ {
			s[(code-100)>>6] |= 1 << ((code - 100) & 63)
		}
	}
	return s, nil
}

func statusCode(text string) (int, bool) {
	text = strings.TrimSpace(text)
	n, err := strconv.Atoi(text)
	return n, err == nil && len(text) == 3 && n >= 100 && n < 600
}
