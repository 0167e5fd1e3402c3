// Package securityheaders adds fields to responses by which browsers protect a page:
// one of a few presets, of which single fields can be others.
package securityheaders

import (
	"slices"

	"headgate/internal/exchange"
)

// The fields.
const (
	hsts        = "Strict-Transport-Security"
	csp         = "Content-Security-Policy"
	frames      = "X-Frame-Options"
	referrer    = "Referrer-Policy"
	permissions = "Permissions-Policy"
	noSniff     = "X-Content-Type-Options"
	opener      = "Cross-Origin-Opener-Policy"
	resource    = "Cross-Origin-Resource-Policy"
)

// added is a field that is added.
type added struct {
	name, value string
	secure      bool // over HTTPS only
}

// presets are the fields of each preset, in the order in which they are sent.
func presets(p Preset) []added {
	switch p {
	case Strict:
		return []added{
			{hsts, "max-age=63072000; includeSubDomains", true},
			{noSniff, "nosniff", false},
			{frames, "DENY", false},
			{csp, "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; object-src 'none'", false},
			{referrer, "strict-origin-when-cross-origin", false},
			{permissions, "camera=(), geolocation=(), microphone=(), payment=(), usb=()", false},
			{opener, "same-origin", false},
			{resource, "same-origin", false},
		}
	case API:
		return []added{
			{hsts, "max-age=31536000", true},
			{noSniff, "nosniff", false},
			{frames, "DENY", false},
			{csp, "default-src 'none'; frame-ancestors 'none'", false},
			{referrer, "no-referrer", false},
		}
	}
	return []added{
		{hsts, "max-age=31536000", true},
		{noSniff, "nosniff", false},
		{frames, "SAMEORIGIN", false},
		{referrer, "strict-origin-when-cross-origin", false},
	}
}

// Compile returns the filter.
func Compile(c *Config, _ exchange.Env) (exchange.Filter, error) {
	fields := presets(c.Preset)
	for _, o := range c.own() {
		at := slices.IndexFunc(fields, func(f added) bool { return f.name == o.name })
		switch {
		case o.value == "":
		case at >= 0 && o.value == off:
			fields = slices.Delete(fields, at, at+1)
		case at >= 0:
			fields[at].value = o.value
		case o.value != off:
			fields = append(fields, added{o.name, o.value, o.name == hsts})
		}
	}
	override := c.Override
	return exchange.Filter{Name: "security_headers", Response: func(ex *exchange.Exchange) {
		list := &ex.Response.Header
		for i := range fields {
			f := &fields[i]
			if f.secure && ex.Request.Scheme != "https" {
				continue
			}
			if override {
				list.DelField(f.name)
			} else if _, there := list.Lookup(f.name); there {
				continue
			}
			list.AddField(f.name, f.value)
		}
	}}, nil
}
