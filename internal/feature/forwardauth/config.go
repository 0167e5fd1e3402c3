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

// Config asks an auth server about every request, before anything else is done
// with it. An answer 2xx lets the request in; any other is what the client gets.
// Without an answer nobody gets in.
type Config struct {
	// Enabled is whether the auth server is asked. `enabled: false` on a route
	// lets everyone in there.
	Enabled bool `json:"enabled" default:"true"`
	// Preset is the auth server that url is of: `authelia`, `authentik` or
	// `oauth2_proxy`. It adds the path to a url without one, and response_headers and
	// signin_url where they are absent.
	Preset Preset `json:"preset,omitempty" enum:"authelia,authentik,oauth2_proxy" example:"authelia"`
	// URL is what is asked, with GET and without a body. It may have a query. It
	// has to be set.
	URL string `json:"url,omitempty" max:"2048" example:"http://authelia:9091/api/authz/forward-auth"`
	// ResponseHeaders are the fields of the auth server's answer that servers get.
	// What a client sends under these names, or under names that look the same to
	// a server, never reaches one.
	ResponseHeaders []string `json:"response_headers,omitempty" max:"64" example:"[Remote-User, Remote-Groups]"`
	// SigninURL is where a browser that opens a page is sent when the auth server
	// answers 401. Variables in it ({scheme}, {authority}, {path}, {query}, …) are
	// escaped. Without variables and without an rd of its own, the address of the
	// page is added as the parameter rd.
	SigninURL string `json:"signin_url,omitempty" max:"2048" example:"https://auth.example.com/oauth2/start"`
	// Timeout is the time that the auth server has to answer; then 504.
	Timeout unit.Duration `json:"timeout" default:"5s" min:"50ms" max:"5m"`
	// TrustForwardHeader is whether the auth server hears what a proxy that
	// client_ip trusts says of method, host and URI, in place of those of the
	// request. Nobody else is believed.
	TrustForwardHeader bool `json:"trust_forward_header" default:"false"`
	// SkipPaths are paths below which nobody is asked, as prefixes of whole
	// segments.
	SkipPaths []string `json:"skip_paths,omitempty" max:"256" example:"[/healthz, /static]"`
	// Cache keeps answers that let in, for a short time. Absent keeps none.
	Cache *Cache `json:"cache,omitempty"`
}

// Cache keeps answers of the auth server that let in, so that a page with many
// parts does not ask for each of them.
type Cache struct {
	// TTL is how long an answer is kept. So long a session goes on that ended.
	TTL unit.Duration `json:"ttl" default:"10s" min:"1s" max:"1m"`
	// Key is what tells sessions apart: `cookie:NAME` or `header:NAME`. Requests
	// without it are always asked about.
	Key string `json:"key" required:"true" max:"256" example:"cookie:authelia_session"`
	// AnyPath is whether an answer holds for every method and path of the host.
	// Only set it when the auth server's answer depends on neither.
	AnyPath bool `json:"any_path" default:"false"`
}

// Off reports whether nobody is asked.
func (c *Config) Off() bool { return !c.Enabled }

// Check tells what is wrong with the settings, which stand at at.
func (c *Config) Check(at schema.Place) {
	if c.URL == "" && c.Enabled {
		at.Field("url").Problem("missing", "add url: http://127.0.0.1:9091/api/authz/forward-auth")
	} else if base, query := splitQuery(c.URL); c.URL != "" {
		if _, f := target.Parse(base); f != nil {
			at.Field("url").Problem(f.What, f.Remedy)
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
			at.Field("skip_paths").Index(i).Problem("the path is not normalised", "write it without dot segments, double slashes and letters that need no encoding")
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
