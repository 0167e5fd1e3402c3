package forwardauth

import (
	"fmt"
	"strings"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/uri"
	"headgate/internal/schema"
	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// Config sends a subrequest to an auth server for every request, before anything else. A
// 2xx response admits the request; any other one is sent to the client. If the auth server
// does not respond, the request is rejected.
type Config struct {
	// Enabled is whether the auth server is queried. `enabled: false` on a route admits
	// everyone there.
	Enabled bool `json:"enabled" default:"true"`
	// Preset is the product that runs at url: `authelia`, `authentik` or `oauth2_proxy`. It
	// adds the path to a url without one, and sets response_headers and signin_url if they
	// are absent.
	Preset Preset `json:"preset,omitempty" enum:"authelia,authentik,oauth2_proxy" example:"authelia"`
	// URL is the URL of the subrequest, which is a GET without a body. It can have a query.
	// It is required.
	URL string `json:"url,omitempty" max:"2048" example:"http://authelia:9091/api/authz/forward-auth"`
	// ResponseHeaders are the headers of the auth server's response that servers get.
	// Headers of the client with these names, or with names that a server could treat as
	// the same, are removed.
	ResponseHeaders []string `json:"response_headers,omitempty" max:"64" example:"[Remote-User, Remote-Groups]"`
	// SigninURL is where a browser that opens a page is redirected when the auth server
	// responds with 401. Variables in it ({scheme}, {authority}, {path}, {query}, …) are
	// escaped. If it has no variables and no parameter rd, the URL of the page is added as
	// rd.
	SigninURL string `json:"signin_url,omitempty" max:"2048" example:"https://auth.example.com/oauth2/start"`
	// Timeout is the time limit for the auth server's response; then 504.
	Timeout unit.Duration `json:"timeout" default:"5s" min:"50ms" max:"5m"`
	// TrustForwardHeader is whether method, host and URI from a proxy that client_ip trusts
	// are sent to the auth server instead of those of the request. Other peers are not
	// trusted.
	TrustForwardHeader bool `json:"trust_forward_header" default:"false"`
	// SkipPaths are paths below which no subrequest is sent, as prefixes of whole segments.
	SkipPaths []string `json:"skip_paths,omitempty" max:"256" example:"[/healthz, /static]"`
	// Cache stores responses that admit a request, for a short time. Absent stores none.
	Cache *Cache `json:"cache,omitempty"`
}

// Cache stores responses of the auth server that admit a request, so that a page with many
// parts does not cause a subrequest for each of them.
type Cache struct {
	// TTL is how long a response is stored. A session that has ended can continue for this
	// time.
	TTL unit.Duration `json:"ttl" default:"10s" min:"1s" max:"1m"`
	// Key identifies a session: `cookie:NAME` or `header:NAME`. Requests without it are not
	// cached.
	Key string `json:"key" required:"true" max:"256" example:"cookie:authelia_session"`
	// AnyPath is whether a response applies to every method and path of the host. Set it
	// only if the auth server's response depends on neither.
	AnyPath bool `json:"any_path" default:"false"`
}

// Off reports whether the auth server is not queried.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if c.URL == "" && c.Enabled {
		at.Field("url").Problem("missing", "add url: http://127.0.0.1:9091/api/authz/forward-auth")
	} else if base, query := splitQuery(c.URL); c.URL != "" {
		if t, f := target.Parse(base); f != nil {
			at.Field("url").Problem(f.What, f.Remedy)
		} else if t.Scheme.IsFastCGI() {
			at.Field("url").Problem("an auth server cannot be reached with FastCGI", "write an http, https or h2c URL")
		} else if strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }) {
			at.Field("url").Problem("the query contains invalid characters", "write it percent-encoded")
		}
	}
	c.checkHeaders(at.Field("response_headers"))
	if c.SigninURL != "" {
		if _, err := parseSignin(c.SigninURL); err != nil {
			at.Field("signin_url").Problem(err.Error(), "")
		}
	}
	for i, path := range c.SkipPaths {
		what, remedy := schema.CheckPath(path)
		switch {
		case what != "":
			at.Field("skip_paths").Index(i).Problem(what, remedy)
		case !uri.Normal(path):
			at.Field("skip_paths").Index(i).Problem("the path is not normalized", "write it without dot segments, double slashes and letters that need no encoding")
		case path == "/":
			at.Field("skip_paths").Index(i).Problem("every path would be skipped", "write enabled: false")
		}
	}
	if c.Cache != nil {
		if what, remedy := checkKey(c.Cache.Key); what != "" {
			at.Field("cache").Field("key").Problem(what, remedy)
		}
	}
}

func (c *Config) checkHeaders(at schema.Place) {
	for i, name := range c.ResponseHeaders {
		id := header.Lookup(name)
		switch {
		case !http1.ValidName(name):
			at.Index(i).Problemf("write a name like Remote-User", "%q is not a header name", name)
		case id == header.SetCookie:
			at.Index(i).Problem("Set-Cookie always goes to the client", "remove it")
		case ours(id):
			at.Index(i).Problemf("remove it", "%s cannot be set by an auth server", name)
		}
		for _, other := range c.ResponseHeaders[:i] {
			if header.Twins(name, other) {
				at.Index(i).Problemf("remove one of them", "duplicate entry %s", other)
				break
			}
		}
	}
}

// ours reports whether a field of a request is headgate's own to write.
func ours(id header.ID) bool {
	switch id {
	case header.Host, header.ContentLength, header.Expect, header.Forwarded, header.Via,
		header.XForwardedFor, header.XForwardedProto, header.XForwardedHost:
		return true
	}
	return id.HopByHop()
}

func checkKey(key string) (what, remedy string) {
	kind, name, _ := strings.Cut(key, ":")
	switch {
	case kind != "cookie" && kind != "header":
		return fmt.Sprintf("unknown key %q", key), "write cookie:NAME or header:NAME"
	case !http1.ValidName(name):
		return fmt.Sprintf("%q is not a name", name), "write a name like cookie:session"
	case kind == "header" && (header.Lookup(name).HopByHop() || header.Lookup(name).ClaimsClient() || header.Lookup(name) == header.Host):
		return name + " is not a field that a session can be known by", "write cookie:NAME or header:NAME"
	}
	return "", ""
}

// splitQuery parts a URL before its query.
func splitQuery(url string) (base, query string) {
	if i := strings.IndexByte(url, '?'); i >= 0 {
		return url[:i], url[i:]
	}
	return url, ""
}
