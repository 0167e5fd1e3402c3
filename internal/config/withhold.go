package config

import (
	"maps"
	"slices"
)

// Withhold lists the objects of a configuration that have no effect on this machine: another
// machine has set values in them that use programs or files of this machine, and this machine does
// not allow that. It must not be changed after it was passed to a configuration.
type Withhold struct {
	// Objects are withheld as a whole, by kind and name. A proxy responds with 503, and so do
	// the proxies that use a policy or have features of the defaults; an ACME entry orders no
	// certificate; a webhook or notice sends nothing; a provider ("discovery" and its name)
	// finds nothing.
	Objects map[[2]string]bool
	// Pages are proxies, policies and the defaults whose error pages are not used.
	Pages map[[2]string]bool
	// Logos are the proxies whose sign-in page has no logo, by name.
	Logos map[string]bool
	// Logs are paths of access logs that are not written to. The common log gets the lines
	// of proxies, and standard output those of the common log.
	Logs map[string]bool
}

// CanWithhold reports whether objects of a kind can be withheld. All other objects depend on those
// of other kinds.
func CanWithhold(kind string) bool {
	return slices.Contains([]string{"proxies", "policies", "defaults", "acme", "webhooks", "notices", "discovery"}, kind)
}

// Empty reports whether nothing is withheld. w may be nil.
func (w *Withhold) Empty() bool {
	return w == nil || len(w.Objects)+len(w.Pages)+len(w.Logos)+len(w.Logs) == 0
}

// Equal reports whether two configurations withhold the same objects. Both may be nil.
func (w *Withhold) Equal(other *Withhold) bool {
	if w.Empty() || other.Empty() {
		return w.Empty() == other.Empty()
	}
	return maps.Equal(w.Objects, other.Objects) && maps.Equal(w.Pages, other.Pages) && maps.Equal(w.Logos, other.Logos) && maps.Equal(w.Logs, other.Logs)
}

// Withholding returns the configuration as it is used on this machine: c itself if nothing is
// withheld. The documents of the result are those of c.
func (c *Config) Withholding(w *Withhold) *Config {
	if w.Empty() {
		return c
	}
	out := *c
	out.withheld, out.documents = w, c.Documents()
	out.Proxies = maps.Clone(c.Proxies)
	for name, p := range c.Proxies {
		out.Proxies[name] = out.withholding(p)
	}
	return &out
}

// WithheldObjects returns what is withheld on this machine, nil for nothing. c may be nil.
func (c *Config) WithheldObjects() *Withhold {
	if c == nil {
		return nil
	}
	return c.withheld
}

// Withheld reports whether an object has no effect on this machine.
func (c *Config) Withheld(kind, name string) bool {
	return c.withheld != nil && c.withheld.Objects[[2]string{kind, name}]
}

// IsWithheld reports whether the proxy has no effect on this machine.
func (p *Proxy) IsWithheld() bool { return len(p.Routes) == 1 && p.Routes[0].Withheld }

// LogHere returns the path that this machine uses for the access log with a path; "" is the common
// access log.
func (c *Config) LogHere(path string) string {
	if c.withheld != nil && c.withheld.Logs[path] {
		return ""
	}
	return path
}

// withholding returns a proxy as it is used on this machine.
func (c *Config) withholding(p *Proxy) *Proxy {
	switch {
	case c.concerns(c.withheld.Objects, p):
		own := *p
		own.written = p.Written()
		own.Features = Features{ClientIP: p.ClientIP}
		r := NewRoute()
		r.Withheld = true
		own.Routes = []*Route{r}
		return &own
	case c.concerns(c.withheld.Pages, p), c.withheld.Logos[p.Name]:
		own := *p
		own.written = p.Written()
		pages := !c.concerns(c.withheld.Pages, p)
		if !pages {
			own.ErrorPages = nil
		}
		own.Routes = slices.Clone(p.Routes)
		for i, r := range own.Routes {
			own.Routes[i] = r.plain(pages, !c.withheld.Logos[p.Name])
		}
		return &own
	}
	return p
}

// plain returns a route without its error pages or the logo of its sign-in page, unless it keeps
// them.
func (r *Route) plain(pages, logo bool) *Route {
	plain := *r
	if !pages {
		plain.ErrorPages = nil
	}
	if r.SignIn != nil && !logo {
		settings := *r.SignIn
		settings.Logo, plain.SignIn = "", &settings
	}
	return &plain
}

// concerns reports whether objects are a proxy, a policy of it or of its routes, or the
// defaults.
func (c *Config) concerns(objects map[[2]string]bool, p *Proxy) bool {
	uses := func(name string) bool { return objects[[2]string{"policies", name}] }
	return objects[[2]string{"proxies", p.Name}] || objects[[2]string{"defaults", ""}] ||
		slices.ContainsFunc(p.Written().Use, uses) || slices.ContainsFunc(p.Written().Routes, func(r *Route) bool { return slices.ContainsFunc(r.Use, uses) })
}
