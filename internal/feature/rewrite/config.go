package rewrite

import (
	"regexp"
	"strings"
	"unicode"

	"headgate/internal/schema"
)

// Config changes the path that servers get. It is applied after the route's path was
// stripped (to the whole path with strip_prefix: false) and before the server's base path
// is added.
type Config struct {
	// Enabled is whether the rewrite is active. `enabled: false` on a route overrides the
	// proxy's setting.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Regex is an RE2 expression that is matched anywhere in the path; every match is
	// replaced. Use ^ and $ to match the ends.
	Regex string `json:"regex,omitempty" label:"true" max:"1024" expand:"no" example:"^/old/(.*)$"`
	// Replacement is the text that replaces each match. $1 and ${name} are replaced by
	// groups of the match, $$ by a dollar sign.
	Replacement string `json:"replacement,omitempty" label:"true" max:"1024" expand:"no" example:"/new/$1"`
	// AddPrefix is added in front of the path, after regex and replacement.
	AddPrefix string `json:"add_prefix,omitempty" label:"true" max:"1024" example:"/app"`
	// RewriteResponse also changes Location, Content-Location and the paths of cookies in
	// the response, so that they are valid for the client, whose paths differ from the
	// server's. This is also done for routes without a rewrite; false disables it.
	RewriteResponse bool `json:"rewrite_response" label:"true" default:"true"`
}

// Off reports whether the rewrite is switched off.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if c.Regex == "" && c.AddPrefix == "" && c.Enabled && c.RewriteResponse {
		at.Problem("the rewrite has neither regex nor add_prefix", "add one, or rewrite_response: false to leave responses alone")
	}
	if c.AddPrefix != "" {
		if what, remedy := schema.CheckPath(c.AddPrefix); what != "" {
			at.Field("add_prefix").Problem(what, remedy)
		}
	}
	if c.Regex == "" {
		if c.Replacement != "" {
			at.Field("replacement").Problem("replacement has no effect without regex", "add regex")
		}
		return
	}
	expr, err := regexp.Compile(c.Regex)
	if err != nil {
		at.Field("regex").Problem("invalid regular expression: "+schema.RegexError(err), "write it in RE2 syntax, without look-around and backreferences")
		return
	}
	if what, remedy := schema.CheckReplacement(c.Replacement, expr); what != "" {
		at.Field("replacement").Problem(what, remedy)
	} else if strings.ContainsAny(c.Replacement, "?#\\") {
		at.Field("replacement").Problem("the replacement contains ?, # or \\, which no path can have", "write %3F, %23 or %5C")
	} else if strings.ContainsFunc(c.Replacement, unicode.IsControl) {
		at.Field("replacement").Problem("the replacement contains a control character", "remove it")
	}
}
