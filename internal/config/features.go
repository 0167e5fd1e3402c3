package config

import (
	"reflect"
	"sync"

	"headgate/internal/feature/basicauth"
	"headgate/internal/feature/bodylimit"
	"headgate/internal/feature/cache"
	"headgate/internal/feature/clientip"
	"headgate/internal/feature/compression"
	"headgate/internal/feature/cors"
	"headgate/internal/feature/errorpages"
	"headgate/internal/feature/fixed"
	"headgate/internal/feature/forwardauth"
	gatefeature "headgate/internal/feature/gate"
	"headgate/internal/feature/headers"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/feature/maintenance"
	"headgate/internal/feature/ratelimit"
	"headgate/internal/feature/redirects"
	"headgate/internal/feature/rewrite"
	"headgate/internal/feature/securityheaders"
	"headgate/internal/feature/timeout"
	"headgate/internal/feature/tohttps"
	"headgate/internal/file"
)

// FixedResponse makes a route answer by itself.
type FixedResponse = fixed.Config

// Gate lets in only people who have signed in.
type Gate = gatefeature.Config

// Rewrite changes the path that a server gets.
type Rewrite = rewrite.Config

// Features are the optional behaviours of a proxy or a route, in the order in
// which they act on a request; responses pass them backwards. A feature that is
// nil is inherited: a route's from its proxy, a proxy's from the defaults. A
// new feature is one field here.
type Features struct {
	// ClientIP configures which peers are trusted to report the client's address. By
	// default none is: the client's address is that of the connection.
	ClientIP *clientip.Config `json:"client_ip,omitempty"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *ipfilter.Config `json:"ip_filter,omitempty" label:"true"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *ratelimit.Config `json:"rate_limit,omitempty" label:"true"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same
	// proxy: to 443, or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods
	// 308.
	RedirectHTTPToHTTPS *tohttps.Config `json:"redirect_http_to_https,omitempty" label:"true" example:"true"`
	// CORS lets pages of other origins read responses.
	CORS *cors.Config `json:"cors,omitempty" label:"true"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *maintenance.Config `json:"maintenance,omitempty" label:"true"`
	// Redirects send clients from one path to another, or to another host.
	Redirects redirects.Config `json:"redirects,omitempty" label:"true" max:"1000" object:"redirect rule,regex"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no
	// limit, which is also the default.
	RequestBodyLimit *bodylimit.Config `json:"request_body_limit,omitempty" label:"true" example:"10MiB"`
	// RequestTimeout is the time until a server's response head, for each attempt;
	// then 504. 0 switches it off. Bodies and upgraded connections have idle
	// time-outs and no total.
	RequestTimeout *timeout.Config `json:"request_timeout,omitempty" label:"true" default:"60s" max:"24h" example:"30s"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitempty"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *basicauth.Config `json:"basic_auth,omitempty" label:"true"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get
	// its response.
	ForwardAuth *forwardauth.Config `json:"forward_auth,omitempty"`
	// Rewrite changes the path that a server gets.
	Rewrite *rewrite.Config `json:"rewrite,omitempty" label:"true"`
	// Headers change header fields of requests and responses.
	Headers headers.Config `json:"headers,omitempty" label:"true" max:"1000" object:"header rule,name"`
	// Cache keeps responses in memory and answers with them.
	Cache *cache.Config `json:"cache,omitempty" label:"true"`
	// Compression compresses responses for clients that support it.
	Compression *compression.Config `json:"compression,omitempty" label:"true"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *securityheaders.Config `json:"security_headers,omitempty" label:"true"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages errorpages.Config `json:"error_pages,omitempty" label:"true" max:"200" object:"error page,file"`
}

// switchable is implemented by all settings of features.
type switchable interface{ Off() bool }

// reader is implemented by settings of features that read files.
type reader interface{ Files() []file.Wanted }

// readers returns the fields of Features that read files.
var readers = sync.OnceValue(func() (found [][]int) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Features]()) {
		if f.Type.Implements(reflect.TypeFor[reader]()) {
			found = append(found, f.Index)
		}
	}
	return found
})

// Files returns the files that the settings of features name.
func (f *Features) Files() (files []file.Wanted) {
	v := reflect.ValueOf(f).Elem()
	for _, index := range readers() {
		if settings := v.FieldByIndex(index); !settings.IsNil() {
			files = append(files, settings.Interface().(reader).Files()...)
		}
	}
	return files
}

// Effective returns the features that act on a route of p: the route's own,
// else the proxy's, else the defaults. In the result nil means off, whether the
// feature was absent, `enabled: false`, 0 or an empty list. The settings are shared with p and
// r and must not be changed.
func (p *Proxy) Effective(r *Route) Features {
	merged := r.Features
	out := reflect.ValueOf(&merged).Elem()
	inherited := reflect.ValueOf(&p.Features).Elem()
	for _, field := range model().features.Fields {
		f := out.FieldByIndex(field.Index)
		if f.IsNil() {
			f.Set(inherited.FieldByIndex(field.Index))
		}
		if f.IsNil() {
			if value := field.DefaultOf(); value.IsValid() {
				f.Set(value)
			}
		}
		if !f.IsNil() && f.Interface().(switchable).Off() {
			f.SetZero()
		}
	}
	return merged
}
