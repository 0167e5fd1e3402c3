package cors

import (
	"net/url"
	"slices"
	"strings"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Config allows pages of other origins to read responses (CORS, Fetch standard). headgate
// responds to preflight requests, and replaces CORS headers of the servers.
type Config struct {
	// Enabled is whether other origins are allowed. `enabled: false` leaves CORS to the
	// servers.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// AllowOrigins are the origins whose pages can read responses: exact ones; with `*.` in
	// front of the host for any one label; or `*` alone for every origin.
	AllowOrigins []string `json:"allow_origins,omitempty" label:"true" max:"1000" example:"[\"https://app.example.com\", \"https://*.example.com\"]"`
	// AllowMethods are the methods that those pages can use. `*` is all; absent means GET,
	// HEAD and POST.
	AllowMethods []string `json:"allow_methods,omitempty" label:"true" max:"64" example:"[GET, POST, PUT, DELETE]"`
	// AllowHeaders are the headers that their requests can have, besides those that are
	// always allowed. `*` is all.
	AllowHeaders []string `json:"allow_headers,omitempty" label:"true" max:"256" example:"[Content-Type, Authorization]"`
	// ExposeHeaders are the response headers that their scripts can read, besides those
	// that are always readable. `*` is all.
	ExposeHeaders []string `json:"expose_headers,omitempty" label:"true" max:"256" example:"[ETag, X-Total]"`
	// AllowCredentials is whether their requests can carry cookies and credentials. The
	// origins must then be listed.
	AllowCredentials bool `json:"allow_credentials" label:"true" default:"false"`
	// MaxAge is how long browsers cache the response to a preflight request. With 0 they
	// send one each time.
	MaxAge unit.Duration `json:"max_age" label:"true" default:"10m" min:"0" max:"24h"`
}

// Off reports whether headgate takes no part in CORS.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if c.Enabled && len(c.AllowOrigins) == 0 {
		at.Field("allow_origins").Problem("missing", `name the origins, like https://app.example.com, or write "*" for all`)
	}
	for i, text := range c.AllowOrigins {
		c.checkOrigin(text, at.Field("allow_origins").Index(i))
	}
	if len(c.AllowOrigins) > 1 && slices.Contains(c.AllowOrigins, "*") {
		at.Field("allow_origins").Problem(`"*" cannot be combined with other origins`, "remove it, or remove the others")
	}
	checkNames(c.AllowMethods, at.Field("allow_methods"), "a method like PUT")
	checkNames(c.AllowHeaders, at.Field("allow_headers"), "a field like Content-Type")
	checkNames(c.ExposeHeaders, at.Field("expose_headers"), "a field like ETag")
	if c.AllowCredentials && slices.Contains(c.ExposeHeaders, "*") {
		at.Field("expose_headers").Problem(`"*" is the name of a field where credentials are allowed`, "name the fields")
	}
}

func (c *Config) checkOrigin(text string, at schema.Place) {
	switch {
	case text == "*" && c.AllowCredentials:
		at.Problem("with allow_credentials, pages of any origin could act with the credentials of their visitors", "list the origins, or set allow_credentials: false")
	case text == "*":
	case text == "null":
		at.Problem("null is the origin of all local files and sandboxed pages", "remove it")
	default:
		if what := originFault(text); what != "" {
			at.Problem(what, "write scheme, host and port if it is not the usual one: https://app.example.com")
		}
	}
}

// originFault returns what is wrong with an origin, or "".
func originFault(text string) string {
	plain := strings.Replace(text, "://*.", "://", 1)
	u, err := url.Parse(plain)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(plain, "*"):
		return "not an origin"
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "an origin has neither path nor query"
	case strings.ToLower(text) != text:
		return "browsers write origins in lower case"
	case u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443":
		return "browsers leave the usual port away"
	}
	return ""
}

func checkNames(names []string, at schema.Place, like string) {
	for i, name := range names {
		switch {
		case name == "*" && len(names) > 1:
			at.Index(i).Problem(`"*" cannot be combined with other names`, "remove it, or remove the others")
		case !http1.ValidName(name):
			at.Index(i).Problem("invalid name", "write "+like)
		case slices.ContainsFunc(names[:i], func(other string) bool { return header.EqualFold(other, name) }):
			at.Index(i).Problem("duplicate entry", "remove one of them")
		}
	}
}
