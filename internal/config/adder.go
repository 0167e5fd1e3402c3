package config

import (
	"maps"
	"slices"

	"headgate/internal/schema"
)

// Adder adds discovered objects to those of the documents, one by one, and validates each
// against the others. The objects of the documents do not change. It belongs to one
// goroutine.
type Adder struct {
	config *Config
	before *Config
	same   bool // policies and defaults are those of before
	around bool // everything but proxies and streams is
	ch     *checker
}

// NewAdder returns an adder for a configuration of documents. Before is the configuration
// that an adder made last, or nil: valid objects of it that have not changed are not
// validated again.
func NewAdder(documents, before *Config) *Adder {
	c := *documents
	c.Proxies, c.TCPProxies, c.UDPProxies = cloned(c.Proxies), cloned(c.TCPProxies), cloned(c.UDPProxies)
	c.documents, c.found = documents, map[[2]string]*Found{}
	a := &Adder{config: &c, before: before}
	if before != nil {
		a.same = documents.sameFeatures(before.Documents())
		a.around = sameAround(streamless(documents), streamless(before.Documents()))
	}
	a.ch = newChecker(&c, schema.NewReport("", nil))
	for _, name := range []string{"ports", "tcp_proxies", "udp_proxies"} { // for what they take
		k := KindOf(name)
		for _, o := range k.Names(documents) {
			k.check(a.ch, o, a.ch.root.Field(name).Field(o))
		}
	}
	for _, p := range documents.Proxies {
		a.ch.pins.add(p, nil)
	}
	return a
}

// streamless returns a configuration without TCP and UDP proxies, for comparing.
func streamless(c *Config) *Config {
	out := *c
	out.TCPProxies, out.UDPProxies = nil, nil
	return &out
}

func cloned[T any](m map[string]T) map[string]T {
	if m == nil {
		return map[string]T{}
	}
	return maps.Clone(m)
}

// Config returns the configuration with the objects that were added. Nothing is added
// any more.
func (a *Adder) Config() *Config { return a.config }

// Has reports whether there is an object of a kind with this name.
func (a *Adder) Has(kind, name string) bool { return KindOf(kind).Find(a.config, name) != nil }

// Full reports whether a kind has as many objects as it may have.
func (a *Adder) Full(kind string) bool {
	return KindOf(kind).Count(a.config) >= int(*model().config.Field(kind).Max)
}

// Add adds an object whose name is free. If there are problems it was not added: they are
// those that it was found with, and what the configuration refuses it for besides.
func (a *Adder) Add(f *Found) []LabelProblem {
	d := f.Discovered
	k := KindOf(d.Kind)
	key := [2]string{d.Kind, d.Name}
	if f.Object == nil && (f.read == nil || a.Has(d.Kind, d.Name)) {
		return f.Problems
	}
	switch o := f.read.(type) {
	case *Proxy:
		a.config.resolveProxy(d.Name, o, a.before, a.same)
	case *TCPProxy:
		a.config.TCPProxies[d.Name] = o
	case *UDPProxy:
		a.config.UDPProxies[d.Name] = o
	}
	if d.Kind == "proxies" && a.around && a.before.found[key] == f && !pinsClients(f.Object) {
		a.config.found[key] = f
		return nil
	}
	report := schema.NewReport("", &f.places)
	a.ch.root = report.Root()
	taken, names := len(a.ch.taken), a.ch.sni
	if d.Kind == "tcp_proxies" {
		names = maps.Clone(names)
	}
	at := a.ch.root.Field(d.Kind).Field(d.Name).Called(k.Noun, d.Name)
	k.check(a.ch, d.Name, at)
	if p, ok := f.read.(*Proxy); ok {
		a.ch.gateByLabels(p, at)
		if resolved := a.config.Proxies[d.Name]; resolved != nil && resolved.Gated() {
			a.ch.gated(resolved, at)
		}
	}
	var added []pin
	if p := a.config.Proxies[d.Name]; d.Kind == "proxies" && p != nil {
		added = a.ch.pins.add(p, reportPinned(p, at))
	}
	if report.Empty() && f.Object != nil {
		a.config.found[key] = f
		return nil
	}
	a.ch.taken, a.ch.sni = a.ch.taken[:taken], names
	a.ch.pins.drop(added)
	delete(a.config.Proxies, d.Name)
	delete(a.config.TCPProxies, d.Name)
	delete(a.config.UDPProxies, d.Name)
	found := &Found{Discovered: d, Problems: slices.Clone(f.Problems), places: f.places}
	found.addReport(report)
	return found.Problems
}

// Documents returns the configuration of the documents alone, without discovered objects.
func (c *Config) Documents() *Config {
	if c == nil || c.documents == nil {
		return c
	}
	return c.documents
}

// Found returns the discovered object of a kind with this name, nil if a document has it
// or there is none.
func (c *Config) Found(kind, name string) *Found { return c.found[[2]string{kind, name}] }

// SameFound reports whether two configurations have the same discovered objects.
func (c *Config) SameFound(other *Config) bool { return maps.Equal(c.found, other.found) }
