package gate

import (
	"slices"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/matchers"
	"headgate/internal/proto/uri"
	"headgate/internal/schema"
)

// Bypass are requests that need no sign-in. They never include paths that a server may read
// as other ones, such as /api/..%2fadmin.
type Bypass struct {
	// Paths are the paths of the requests, with everything below them.
	Paths []string `json:"paths,omitempty" max:"64" example:"[/api/health]"`
	// Preset is a set of paths that browsers and apps request without cookies. `app_files`
	// are /manifest.json, /*.webmanifest, /.well-known/assetlinks.json and
	// apple-app-site-association, by GET and HEAD.
	Preset string `json:"preset,omitempty" enum:"app_files" example:"app_files"`
	// Matchers restrict the requests further, like those of a route.
	Matchers *matchers.Config `json:"matchers,omitempty"`
}

// presetAppFiles is the preset for files about an application.
const presetAppFiles = "app_files"

// check reports what is wrong with a bypass at a place.
func (b *Bypass) check(at schema.Place) {
	if (len(b.Paths) > 0) == (b.Preset != "") && !at.Reported() {
		at.Problem("a bypass needs paths, or a preset", "write paths: [/api/health], or preset: app_files")
	}
	for i, path := range b.Paths {
		if _, err := gate.NormalPath(path); err != nil {
			at.Field("paths").Index(i).Problem(err.Error(), "write a path such as /api/health")
		}
	}
	if b.Matchers != nil {
		b.Matchers.Check(at.Field("matchers"))
	}
}

// String returns the requests in words. Bypasses with the same text are the same.
func (b *Bypass) String() string {
	text := strings.Join(b.Paths, ", ")
	if b.Preset != "" {
		text = "preset " + b.Preset
	}
	return matchers.Label(text, b.Matchers)
}

// Bypasses returns the requests that need no sign-in, in words.
func (c *Config) Bypasses() []string {
	var out []string
	for i := range c.Bypass {
		out = append(out, c.Bypass[i].String())
	}
	return out
}

// bypass is a compiled Bypass.
type bypass struct {
	text     string
	prefixes []string // without a slash at the end
	appFiles bool
	matchers *matchers.Matchers
}

func compileBypasses(all []Bypass) ([]bypass, error) {
	var out []bypass
	for i := range all {
		c := &all[i]
		b := bypass{text: c.String(), appFiles: c.Preset == presetAppFiles}
		for _, path := range c.Paths {
			normal, err := gate.NormalPath(path)
			if err != nil {
				return nil, err
			}
			b.prefixes = append(b.prefixes, strings.TrimSuffix(normal, "/"))
		}
		var err error
		if b.matchers, err = matchers.Compile(c.Matchers); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// has reports whether a request needs no sign-in.
func (b *bypass) has(ex *exchange.Exchange) bool {
	rq := &ex.Request
	if b.appFiles && !(rq.Method == "GET" || rq.Method == "HEAD") {
		return false
	}
	if b.appFiles && !appFile(rq.Path) || !b.appFiles && !gate.Below(rq.Path, b.prefixes) {
		return false
	}
	return b.matchers.Match(ex)
}

// appFile reports whether a path is that of a file about an application. Only the root and
// /.well-known/ count: below other paths a server may run a program.
func appFile(path string) bool {
	if uri.SpellingOf(path) == uri.Loose {
		return false
	}
	switch path {
	case "/manifest.json", "/apple-app-site-association", "/.well-known/assetlinks.json", "/.well-known/apple-app-site-association":
		return true
	}
	return strings.HasSuffix(path, ".webmanifest") && strings.LastIndexByte(path, '/') == 0
}

// bypassed returns the bypass of a request, nil without one.
func (f *filter) bypassed(ex *exchange.Exchange) *bypass {
	i := slices.IndexFunc(f.bypasses, func(b bypass) bool { return b.has(ex) })
	if i < 0 {
		return nil
	}
	return &f.bypasses[i]
}
