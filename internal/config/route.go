package config

import (
	"strings"

	"headgate/internal/feature/signin"
	"headgate/internal/plan/matchers"
	"headgate/internal/server/health"
	"headgate/internal/setting/unit"
	"headgate/internal/upstream"
)

// SignInPage is the page where people sign in.
type SignInPage = signin.Config

// Route is a path prefix and what answers there: exactly one of servers,
// fixed_response and sign_in. Every feature set on a route replaces the proxy's.
type Route struct {
	// Path is matched as a prefix of whole segments: /api takes /api and
	// /api/users, not /apis. The longest path of all proxies of a host wins. A
	// slash at its end makes no difference.
	Path string `json:"path" label:"true" default:"/" max:"2048" example:"/api"`
	// Matchers narrow the requests that the route takes, by method, header and query.
	// Absent takes all that its path has.
	Matchers *matchers.Config `json:"matchers,omitempty" label:"true"`
	// Servers are the upstream servers that share the route's requests.
	Servers []*Server `json:"servers,omitempty" max:"256" object:"server,url"`
	// FixedResponse makes the route answer by itself.
	FixedResponse *FixedResponse `json:"fixed_response,omitempty" label:"true"`
	// SignIn makes the route the sign-in page of the applications behind a gate. It needs a
	// proxy with one host and no other route.
	SignIn *SignInPage `json:"sign_in,omitempty"`
	// Unserved is whether containers ask for the route and none of them takes requests.
	// FixedResponse is there too then. Only labels lead to it.
	Unserved bool `json:"-"`
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
	// HealthCheck has the servers asked whether they are well. Those that are not get
	// no requests. Absent asks nothing.
	HealthCheck *health.Config `json:"health_check,omitempty" label:"true"`
	// FailOpen is whether all servers are asked when every one of them is unhealthy or
	// ejected: a check that is wrong then takes no site down. `false` answers 503 at
	// once.
	FailOpen bool `json:"fail_open" label:"true" default:"true"`
	// Ejection leaves servers alone for a while that fail requests.
	Ejection health.Ejection `json:"ejection" label:"true"`
	// CircuitBreaker lets a server recover that answers with too many errors.
	// Absent breaks nothing.
	CircuitBreaker *health.Breaker `json:"circuit_breaker,omitempty" label:"true"`
	// SlowStart is the time in which a server that comes back, from being unhealthy
	// or ejected, grows to its full share of the requests. 0 gives it at once.
	SlowStart unit.Duration `json:"slow_start" label:"true" default:"0s" max:"1h"`
	// Queue is where requests wait when every server has max_requests requests.
	Queue Queue `json:"queue" label:"true"`
	// StickyCookie keeps a client at the server that answered it first.
	StickyCookie *upstream.Sticky `json:"sticky_cookie,omitempty" label:"true"`
	// Mirror sends copies of the requests to servers that are tried out.
	Mirror *Mirror `json:"mirror,omitempty"`
	// Retry says when a request is sent once more, to another server.
	Retry *upstream.Retry `json:"retry,omitempty" label:"true"`
	// Timeouts bound the steps towards the route's servers.
	Timeouts Timeouts `json:"timeouts" label:"true"`
	// AllowTrace is whether TRACE requests go to the route's servers, which answer
	// with the request as they got it. Otherwise they get 405.
	AllowTrace bool `json:"allow_trace" label:"true" default:"false"`
	// AmbiguousPaths is what becomes of a request for this route whose path a server
	// may read as one of another route of the host that lets in fewer, such as
	// `/ADMIN`, `/admin;x` or `/x/..%2fadmin` where `/admin` asks for a password:
	// `refuse` answers 400, `allow` passes it on. Only `allow` it where the route's
	// servers read paths as headgate does.
	AmbiguousPaths AmbiguousPaths `json:"ambiguous_paths" label:"true" default:"refuse" enum:"refuse,allow"`
	// Use names policies, whose features hold as if they stood here. Of two that set
	// the same feature the later one holds, and a feature that is set here itself
	// holds before all of them.
	Use []string `json:"use,omitempty" label:"true" max:"32" example:"staff"`
	// Features of this route, in place of the proxy's.
	Features
}

// AmbiguousPaths is what becomes of a request whose path can be read in two ways.
type AmbiguousPaths string

// What becomes of such requests.
const (
	RefuseAmbiguous AmbiguousPaths = "refuse"
	AllowAmbiguous  AmbiguousPaths = "allow"
)

// Prefix returns the path without a slash at its end; "" matches every path.
func (r *Route) Prefix() string { return strings.TrimSuffix(r.Path, "/") }

// Label returns the path as it was written, with the matchers: what tells the route from
// the others of its proxy.
func (r *Route) Label() string { return matchers.Label(r.Path, r.Matchers) }

// Queue is where requests wait when every server of the route has as many as its
// max_requests. Who finds it full, or waits too long, gets 503.
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
	// URL is where requests go: scheme, host, port (80 when absent, 443 for
	// https) and base path. The base path is put in front of the path that the
	// route leaves. The scheme is `http` for HTTP/1.1; `https` for TLS, with
	// HTTP/2 or HTTP/1.1 as the server prefers; `h2c` for HTTP/2 without TLS;
	// `unix` for HTTP/1.1 over a Unix socket, written as `unix:/run/app.sock` or
	// `unix:/run/app.sock:/base/path`; `unix+h2c` for HTTP/2 over one.
	// The host may be a name: each address that it stands for is a server then.
	// `srv+http://_http._tcp.example.com`, and the same with https or h2c, takes
	// hosts, ports and weights from the SRV records of a service.
	URL string `json:"url" required:"true" max:"2048" example:"http://127.0.0.1:3000/v2/"`
	// Weight is the server's share of the route's requests, against the weights
	// of the others. 0 takes no new clients.
	Weight int `json:"weight" label:"true" default:"1" min:"0" max:"65535"`
	// TLS says how an https server is spoken to.
	TLS *upstream.TLS `json:"tls,omitempty" label:"true"`
	// MaxRequests is how many requests may run on the server at once, for this
	// route; others take another server or wait in the route's queue. 0 is no
	// bound.
	MaxRequests int `json:"max_requests" label:"true" was:"max_connections" default:"0" min:"0" max:"1000000"`
	// Backup is whether the server is used only when no other server of the route
	// can be.
	Backup bool `json:"backup" label:"true" default:"false"`
}
