package securityheaders

import "headgate/internal/schema"

// Config adds response headers with which browsers protect a page. Headers of the servers
// are kept.
type Config struct {
	// Enabled is whether headers are added.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Preset is the set of headers: `basic` for any site; `strict` for one that loads
	// everything from its own origin and is shown in no frame; `api` for one that serves no
	// pages. The guide lists the headers.
	Preset Preset `json:"preset" label:"true" default:"basic" enum:"basic,strict,api"`
	// Override is whether the preset's headers replace those of the servers.
	Override bool `json:"override" label:"true" default:"false"`
	// HSTS is the value of Strict-Transport-Security instead of the preset's. It is sent
	// over HTTPS only. `off` sends none.
	HSTS string `json:"hsts,omitempty" label:"true" max:"256" example:"max-age=63072000; includeSubDomains; preload"`
	// ContentSecurityPolicy is the value of Content-Security-Policy instead of the
	// preset's; `off` sends none.
	ContentSecurityPolicy string `json:"content_security_policy,omitempty" label:"true" max:"4096" example:"default-src 'self'; img-src *"`
	// FrameOptions is the value of X-Frame-Options instead of the preset's; `off` sends
	// none, so that any site can show the page in a frame.
	FrameOptions string `json:"frame_options,omitempty" label:"true" max:"64" example:"DENY"`
	// ReferrerPolicy is the value of Referrer-Policy instead of the preset's; `off` sends
	// none.
	ReferrerPolicy string `json:"referrer_policy,omitempty" label:"true" max:"128" example:"no-referrer"`
	// PermissionsPolicy is the value of Permissions-Policy instead of the preset's; `off`
	// sends none.
	PermissionsPolicy string `json:"permissions_policy,omitempty" label:"true" max:"2048" example:"geolocation=(self)"`
}

// Preset is a set of headers.
type Preset string

// The presets.
const (
	Basic  Preset = "basic"
	Strict Preset = "strict"
	API    Preset = "api"
)

// off is the value that sends no field.
const off = "off"

// Off reports whether nothing is added.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	for _, o := range c.own() {
		if what, remedy := schema.CheckFieldValue(o.value); o.value != "" && what != "" {
			at.Field(o.setting).Problem(what, remedy)
		}
	}
}

// own are the settings that replace a preset's field.
func (c *Config) own() []struct{ setting, name, value string } {
	return []struct{ setting, name, value string }{
		{"hsts", hsts, c.HSTS},
		{"content_security_policy", csp, c.ContentSecurityPolicy},
		{"frame_options", frames, c.FrameOptions},
		{"referrer_policy", referrer, c.ReferrerPolicy},
		{"permissions_policy", permissions, c.PermissionsPolicy},
	}
}
