package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"headgate/internal/schema"
)

// Policy is a named set of features. Each proxy or route that uses it behaves as if the
// features were set there: a rate limit counts separately for each of them. A policy cannot
// use other policies.
type Policy struct {
	Object
	// Features for the proxies and routes that use the policy.
	Features
}

// Defaults holds features for all proxies: those that a proxy has neither of its
// own nor from a policy.
type Defaults struct {
	// Features of every proxy.
	Features
}

// Written returns the proxy as defined in its document. The proxy itself also has the
// features of policies and defaults.
func (p *Proxy) Written() *Proxy { return cmp.Or(p.written, p) }

// asWritten returns an object as defined in its document.
func asWritten(o Named) Named {
	if p, ok := o.(*Proxy); ok {
		return p.Written()
	}
	return o
}

// resolve adds to every proxy and route the features of its policies, and to every proxy
// the defaults. Results in before, which may be nil, are reused where nothing changed. Read
// are the names of the decoded proxies, unless all were: the others are those of before. It
// returns whether these had to be resolved, too.
func (c *Config) resolve(before *Config, read []string, all bool) bool {
	same := c.sameFeatures(before)
	if !same || all {
		for name, p := range c.Proxies {
			if same && before.Proxies[name] == p {
				continue // it had nothing from elsewhere, and has nothing now
			}
			c.resolveProxy(name, p.Written(), before, same)
		}
		return true
	}
	for _, name := range read {
		c.resolveProxy(name, c.Proxies[name].Written(), before, same)
	}
	return false
}

// sameFeatures reports whether policies and defaults are those of before, which may be
// nil.
func (c *Config) sameFeatures(before *Config) bool {
	return before != nil && reflect.DeepEqual(before.Defaults, c.Defaults) && reflect.DeepEqual(before.Policies, c.Policies)
}

// resolveProxy gives one proxy what policies and defaults have for it. Same is whether
// these are those of before.
func (c *Config) resolveProxy(name string, p *Proxy, before *Config, same bool) {
	switch {
	case isZero(&c.Defaults.Features) && len(p.Use) == 0 && !slices.ContainsFunc(p.Routes, func(r *Route) bool { return len(r.Use) > 0 }):
		c.Proxies[name] = p
	case same && before.Proxies[name] != nil && before.Proxies[name].Written() == p:
		c.Proxies[name] = before.Proxies[name]
	default:
		c.Proxies[name] = c.resolved(p)
	}
}

func isZero(f *Features) bool { return reflect.ValueOf(f).Elem().IsZero() }

// resolved returns a proxy with the features that it has from elsewhere.
func (c *Config) resolved(written *Proxy) *Proxy {
	p := *written
	p.written = written
	c.fill(&p.Features, written.Use, &c.Defaults.Features)
	p.Routes = slices.Clone(written.Routes)
	for i, r := range p.Routes {
		if len(r.Use) > 0 {
			filled := *r
			c.fill(&filled.Features, r.Use, nil)
			p.Routes[i] = &filled
		}
	}
	return &p
}

// fill sets the features of f that are absent to those of policies, the last of
// which wins, and then to those of last, which may be nil.
func (c *Config) fill(f *Features, use []string, last *Features) {
	into := reflect.ValueOf(f).Elem()
	for _, from := range append(c.policies(use), last) {
		if from == nil {
			continue
		}
		source := reflect.ValueOf(from).Elem()
		for _, field := range model().features.Fields {
			v, s := into.FieldByIndex(field.Index), source.FieldByIndex(field.Index)
			if v.IsNil() && !s.IsNil() {
				v.Set(ofItsOwn(field, s))
			}
		}
	}
}

// policies returns the features of the policies of a list that are there, the last
// one first.
func (c *Config) policies(use []string) []*Features {
	out := make([]*Features, 0, len(use)+1)
	for _, name := range slices.Backward(use) {
		if p := c.Policies[name]; p != nil {
			out = append(out, &p.Features)
		}
	}
	return out
}

// keepsState are the features with state about requests. Each user of a policy gets its own
// state for them; other features are shared.
var keepsState = []string{"rate_limit", "basic_auth", "forward_auth", "cache"}

// ofItsOwn returns a copy of settings for one more user.
func ofItsOwn(f *schema.Field, v reflect.Value) reflect.Value {
	if !slices.Contains(keepsState, f.Name) {
		return v
	}
	own := reflect.New(f.Type.Go)
	own.Elem().Set(v.Elem())
	return own
}

// FeatureOrigin is who gives a route one of its features.
type FeatureOrigin struct {
	// Feature is its name: "rate_limit".
	Feature string `json:"feature"`
	// Level is "route", "proxy" or "defaults": where the feature is written, or
	// where the policy is used.
	Level string `json:"level"`
	// Policy is the policy that has it, "" if it is set at the level itself.
	Policy string `json:"policy,omitempty"`
	// Place is the position of the object that sets it: "shop.yaml:12:3". It is "" if no
	// document has it.
	Place string `json:"place,omitempty"`
}

// String returns a description of the origin: "policy staff, used by the route".
func (o FeatureOrigin) String() string {
	switch {
	case o.Policy != "":
		return fmt.Sprintf("policy %s, used by the %s", o.Policy, o.Level)
	case o.Level == "defaults":
		return "the defaults"
	}
	return "the " + o.Level
}

// FeatureOrigins returns who gives a route of the proxy with this name the features
// that are set somewhere, those that are switched off among them, in their order.
func (c *Config) FeatureOrigins(proxy string, route int) []FeatureOrigin {
	p := c.Proxies[proxy]
	if p == nil || route < 0 || route >= len(p.Routes) {
		return nil
	}
	w := p.Written()
	r := w.Routes[route]
	place := func(kind, name string) string {
		if o, ok := c.Origin(kind, name); ok {
			return o.String()
		}
		return ""
	}
	var out []FeatureOrigin
	for _, field := range model().features.Fields {
		has := func(f *Features) bool { return !reflect.ValueOf(f).Elem().FieldByIndex(field.Index).IsNil() }
		of := func(use []string) string {
			for _, name := range slices.Backward(use) {
				if p := c.Policies[name]; p != nil && has(&p.Features) {
					return name
				}
			}
			return ""
		}
		o := FeatureOrigin{Feature: field.Name}
		switch routes, proxys := of(r.Use), of(w.Use); {
		case has(&r.Features):
			o.Level, o.Place = "route", place("proxies", proxy)
		case routes != "":
			o.Level, o.Policy, o.Place = "route", routes, place("policies", routes)
		case has(&w.Features):
			o.Level, o.Place = "proxy", place("proxies", proxy)
		case proxys != "":
			o.Level, o.Policy, o.Place = "proxy", proxys, place("policies", proxys)
		case has(&c.Defaults.Features):
			o.Level, o.Place = "defaults", place("defaults", "")
		default:
			continue
		}
		out = append(out, o)
	}
	return out
}

// Reference is where an object names another one.
type Reference struct {
	// Kind and Name are those of the object that names it.
	Kind string `json:"kind"`
	// Name is the name of that object.
	Name string `json:"name"`
	// Path is the field with the name: "proxies.shop.routes[0].use[1]".
	Path string `json:"path"`
}

// Users returns the references of other objects to the object of a kind with this name, in
// order: an object with users cannot be removed, and renaming it changes its references.
// For a policy these are the affected proxies.
func (c *Config) Users(kind, name string) []Reference {
	var out []Reference
	add := func(kind, of, path string, names ...string) {
		for i, n := range names {
			if n == name {
				at := schema.JoinPath(kind, of) + "." + path
				if strings.HasSuffix(path, "]") {
					at = fmt.Sprintf("%s[%d]", strings.TrimSuffix(at, "[]"), i)
				}
				out = append(out, Reference{Kind: kind, Name: of, Path: at})
			}
		}
	}
	switch kind {
	case "policies":
		for _, of := range sortedNames(c.Proxies) {
			p := c.Proxies[of].Written()
			add("proxies", of, "use[]", p.Use...)
			for i, r := range p.Routes {
				add("proxies", of, fmt.Sprintf("routes[%d].use[]", i), r.Use...)
			}
		}
	case "ports":
		for _, of := range sortedNames(c.Proxies) {
			add("proxies", of, "ports[]", c.Proxies[of].Ports...)
		}
		for _, of := range sortedNames(c.TCPProxies) {
			add("tcp_proxies", of, "port", c.TCPProxies[of].Port)
		}
	case "acme":
		for _, of := range sortedNames(c.Proxies) {
			add("proxies", of, "acme", c.Proxies[of].ACME)
		}
		for _, of := range sortedNames(c.Ports) {
			if e := c.Ports[of].TLS.ECH; e != nil {
				add("ports", of, "tls.ech.dns", e.DNS)
			}
		}
	case "lists":
		out = c.listUsers(name)
	case "certificates":
		for _, of := range sortedNames(c.Ports) {
			add("ports", of, "tls.default_certificate", c.Ports[of].TLS.DefaultCertificate)
		}
		if c.Admin.Certificate == name {
			out = append(out, Reference{Kind: "admin", Path: "admin.certificate"})
		}
	}
	return out
}

// policy reports problems of the features of a policy.
func (ch *checker) policy(p *Policy, at schema.Place) {
	ch.features(&p.Features, at)
	checkFetched(ch.c, p.ClientIP, at)
}

// defaults reports problems of the features of all proxies.
func (ch *checker) defaults(at schema.Place) {
	ch.features(&ch.c.Defaults.Features, at)
	checkFetched(ch.c, ch.c.Defaults.ClientIP, at)
}
