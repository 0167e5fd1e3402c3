package rewrite

// Config changes the path that the upstream gets. It acts on the path that is
// left when the route's path was stripped (or on the whole path, with
// strip_prefix: false) and before the server's base path is put in front.
type Config struct {
	// Enabled is whether the rewrite acts. `enabled: false` on a route switches
	// off what the proxy would hand down.
	Enabled bool `json:"enabled" default:"true"`
	// Regex is an RE2 expression that is matched anywhere on the path; every
	// match is replaced. Write ^ and $ to match at the ends.
	Regex string `json:"regex,omitempty" max:"1024" expand:"no" example:"^/old/(.*)$"`
	// Replacement is what each match becomes. $1 and ${name} stand for what a
	// group matched, $$ for a dollar sign.
	Replacement string `json:"replacement,omitempty" max:"1024" expand:"no" example:"/new/$1"`
	// AddPrefix is put in front of the path, after regex and replacement.
	AddPrefix string `json:"add_prefix,omitempty" max:"1024" example:"/app"`
	// RewriteResponse also mends Location fields and cookie paths of the
	// response, so that they hold for the client where the route's path was
	// stripped.
	RewriteResponse bool `json:"rewrite_response" default:"true"`
}

// Off reports whether the rewrite is switched off.
func (c *Config) Off() bool { return !c.Enabled }
