package config

import (
	"strings"

	"headgate/internal/feature/files"
	"headgate/internal/feature/signin"
	"headgate/internal/matchers"
	"headgate/internal/server/health"
	"headgate/internal/server/split"
	"headgate/internal/setting/unit"
	"headgate/internal/upstream"
)

// SignInPage is the page where people sign in.
type SignInPage = signin.Config

// Files is the folder that a route serves.
type Files = files.Config

// FastCGI is the folder whose scripts a route runs.
type FastCGI = files.FastCGI

// Route is a path prefix and what answers there: exactly one of servers,
// fixed_response, files and sign_in. Every feature set on a route replaces the proxy's.
type Route struct {
	// Path is matched as a prefix of whole segments: /api takes /api and
	// /api/users, not /apis. The longest path of all proxies of a host wins. A
	// slash at its end makes no difference.
	Path string `json:"path" label:"true" default:"/" max:"2048" example:"/api"`
	// Matchers restrict the requests that match the route, by method, header and query.
	// Absent means that all requests with its path match.
	Matchers *matchers.Config `json:"matchers,omitempty" label:"true"`
	// Servers are the upstream servers that share the route's requests.
	Servers []*Server `json:"servers,omitempty" max:"256" object:"server,url"`
	// FixedResponse makes the route answer by itself.
	FixedResponse *FixedResponse `json:"fixed_response,omitempty" label:"true"`
	// SignIn makes the route the sign-in page of the applications behind a gate. It needs a
	// proxy with one host and no other route.
	SignIn *SignInPage `json:"sign_in,omitempty"`
	// Unserved is whether containers define the route and none of them accepts requests.
	// FixedResponse is set, too. Only labels set it.
	Unserved bool `json:"-"`
	// Withheld is whether the route stands for all routes of a proxy that has no effect on
	// this machine: see Withhold.
	Withheld bool `json:"-"`
	// Files makes the route serve the files of a folder.
	Files *Files `json:"files,omitempty"`
	// FastCGI is the folder of the scripts that servers with an `fcgi` URL run.
	FastCGI *FastCGI `json:"fastcgi,omitempty"`
	// StripPrefix is whether the route's path is stripped before the path is
	// joined to the server's base path.
	StripPrefix bool `json:"strip_prefix" label:"true" default:"true"`
	// LoadBalancing is how requests are shared among servers, by their weights:
	// `round_robin` in turn, spread evenly; `least_connections` to the one with the
	// fewest running requests; `p2c_ewma` to the one of two drawn that will likely
	// answer sooner; `random`; `first` to the first of the list that can take it;
	// `client_ip_hash`, `hash:header:NAME`, `hash:cookie:NAME` and `hash:path`
	// always to the same one for an address, field, cookie or path.
	LoadBalancing string `json:"load_balancing" label:"true" default:"round_robin" max:"256" example:"least_connections"`
	// HealthCheck checks the health of the servers. Unhealthy servers get no requests.
	// Absent means no checks.
	HealthCheck *health.Config `json:"health_check,omitempty" label:"true"`
	// FailOpen is whether requests are sent to all servers when every server is unhealthy
	// or ejected, so that a wrong health check does not take a site down. With `false` the
	// response is then 503.
	FailOpen bool `json:"fail_open" label:"true" default:"true"`
	// Ejection excludes servers that fail requests for a limited time.
	Ejection health.Ejection `json:"ejection" label:"true"`
	// CircuitBreaker stops sending requests to a server for a while if too many of its
	// responses are errors. Absent means no circuit breaker.
	CircuitBreaker *health.Breaker `json:"circuit_breaker,omitempty" label:"true"`
	// SlowStart is the time in which a server that is healthy again, or no longer ejected,
	// reaches its full share of requests. With 0 it gets its full share immediately.
	SlowStart unit.Duration `json:"slow_start" label:"true" default:"0s" max:"1h"`
	// Queue is where requests wait when every server has max_requests requests.
	Queue Queue `json:"queue" label:"true"`
	// StickyCookie keeps a client at the server that answered it first.
	StickyCookie *upstream.Sticky `json:"sticky_cookie,omitempty" label:"true"`
	// Split sends a share of the clients to the servers with `group: candidate`, and stops
	// if these servers respond worse than the others.
	Split *split.Config `json:"split,omitempty"`
	// Mirror sends copies of requests to other servers, to test them.
	Mirror *Mirror `json:"mirror,omitempty"`
	// Retry configures when a request is sent again, to another server.
	Retry *upstream.Retry `json:"retry,omitempty" label:"true"`
	// Timeouts limits the time of requests to the route's servers.
	Timeouts Timeouts `json:"timeouts" label:"true"`
	// AllowTrace is whether TRACE requests go to the route's servers, which answer
	// with the request as they got it. Otherwise they get 405.
	AllowTrace bool `json:"allow_trace" label:"true" default:"false"`
	// AmbiguousPaths is how to handle a request whose path a server could interpret as that
	// of a more restricted route of the host, such as `/ADMIN`, `/admin;x` or
	// `/x/..%2fadmin` if `/admin` requires a password: `refuse` responds with 400, `allow`
	// forwards it. Use `allow` only if the route's servers interpret paths as headgate
	// does.
	AmbiguousPaths AmbiguousPaths `json:"ambiguous_paths" label:"true" default:"refuse" enum:"refuse,allow"`
	// Use names policies, whose features apply as if they were set here. If two set the
	// same feature, the later one applies; features that are set here take precedence over
	// policies.
	Use []string `json:"use,omitempty" label:"true" max:"32" example:"staff"`
	// Features of this route, in place of the proxy's.
	Features
}

// AmbiguousPaths is how to handle a request whose path has two interpretations.
type AmbiguousPaths string

// The values of AmbiguousPaths.
const (
	RefuseAmbiguous AmbiguousPaths = "refuse"
	AllowAmbiguous  AmbiguousPaths = "allow"
)

// Prefix returns the path without a slash at its end; "" matches every path.
func (r *Route) Prefix() string { return strings.TrimSuffix(r.Path, "/") }

// Label returns the path as it was written, with the matchers: what distinguishes the route
// from others of its proxy.
func (r *Route) Label() string { return matchers.Label(r.Path, r.Matchers) }

// Queue is where requests wait when every server of the route has its max_requests. If the
// queue is full, or a request waits too long, the response is 503.
type Queue struct {
	// Length is how many requests may wait. 0 lets none wait.
	Length int `json:"length" label:"true" default:"256" min:"0" max:"65536"`
	// Timeout is how long a request may wait.
	Timeout unit.Duration `json:"timeout" label:"true" default:"5s" max:"10m"`
}

// Timeouts bound the steps of a request towards a server.
type Timeouts struct {
	// Connect is the time for a connection to a server, name look-up included.
	Connect unit.Duration `json:"connect" label:"true" default:"5s" min:"10ms" max:"10m"`
}

// Server is one upstream address of a route.
type Server struct {
	// URL is the address of the server: scheme, host, port (by default 80, or 443 for
	// https) and base path. The base path is added in front of the path that the route
	// leaves. The scheme is `http` for HTTP/1.1; `https` for TLS, with HTTP/2 or HTTP/1.1
	// as the server prefers; `h2c` for HTTP/2 without TLS; `unix` for HTTP/1.1 over a Unix
	// socket, written as `unix:/run/app.sock` or `unix:/run/app.sock:/base/path`;
	// `unix+h2c` for HTTP/2 over one. If the host is a name, each of its addresses is a
	// server. `srv+http://_http._tcp.example.com`, and the same with https or h2c, uses
	// hosts, ports and weights from the SRV records of a service. `fcgi`, by default with
	// port 9000, is FastCGI as php-fpm speaks it, and `fcgi+unix:/run/php/php-fpm.sock` the
	// same over a Unix socket; the route needs `fastcgi`, and the URL has no base path.
	URL string `json:"url" required:"true" max:"2048" example:"http://127.0.0.1:3000/v2/"`
	// Weight is the server's share of the route's requests, relative to the weights of the
	// others. With 0 it gets no new clients.
	Weight int `json:"weight" label:"true" default:"1" min:"0" max:"65535"`
	// TLS are the TLS settings for an https server.
	TLS *upstream.TLS `json:"tls,omitempty" label:"true"`
	// MaxRequests is how many requests of this route the server handles at once; others go
	// to another server or wait in the route's queue. 0 means no limit.
	MaxRequests int `json:"max_requests" label:"true" was:"max_connections" default:"0" min:"0" max:"1000000"`
	// Backup is whether the server is used only when no other server of the route is
	// available.
	Backup bool `json:"backup" label:"true" default:"false"`
	// Group is the group of the server on a route with `split`: `stable`, or `candidate` for
	// a new version.
	Group Group `json:"group" default:"stable" enum:"stable,candidate"`
}

// IsCandidate reports whether the server is in the candidate group.
func (s *Server) IsCandidate() bool { return s.Group == GroupCandidate }

// Group is a group of servers.
type Group string

// The groups.
const (
	GroupStable    Group = "stable"
	GroupCandidate Group = "candidate"
)
