package config

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"headgate/internal/schema"
)

// Object is what every named object of a configuration has.
type Object struct {
	// Name is the object's name in the configuration.
	Name string `json:"-"`
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitempty" label:"true" max:"1024" example:"the shop, and its API for partners"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitempty" label:"true" max:"32" example:"[team-a, public]"`
}

// Info returns o. It is how a program gets at the name of an object of any kind.
func (o *Object) Info() *Object { return o }

// Named is an object of any kind: a *Port, a *Proxy, ….
type Named interface{ Info() *Object }

// Kind is a kind of object: what a configuration has many of by name, or one of.
// The table of Kinds is the one place where kinds are listed; whatever does
// something for objects of every kind goes through it.
type Kind struct {
	// Name is the key in a document and the last step of the path in the API:
	// "tcp_proxies". For a single object the path is settings/NAME.
	Name string
	// Noun is what people call one object: "TCP proxy".
	Noun string
	// Label is the name of the kind in the log, in metrics and in URLs of pages:
	// "tcp_proxy".
	Label string
	// Single is whether there is one object of the kind, without a name.
	Single bool

	// objects returns the objects of the kind, whose pointers are shared.
	objects func(c *Config) iter.Seq2[string, Named]
	find    func(c *Config, name string) Named
	count   func(c *Config) int
	check   func(k *checker, name string, at schema.Place)
	// carry copies an object of the documents from one configuration to another. It returns
	// false if there is none.
	carry func(from, to *Config, name string) bool
	// Changed calls visit for the objects of the documents that two configurations do not
	// share; the missing one of an added or removed object is nil.
	Changed func(before, after *Config, visit func(name string, was, is Named))
}

// Kinds returns the table of kinds, in the order of the reference. It is shared
// and must not be changed.
func Kinds() []*Kind { return kinds() }

// kinds returns the table, which is made once.
var kinds = sync.OnceValue(kindTable)

// KindOf returns the kind with this name, or nil.
func KindOf(name string) *Kind {
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Path returns the path of the kind in the API: "proxies", "settings/admin".
func (k *Kind) Path() string {
	if k.Single {
		return "settings/" + k.Name
	}
	return k.Name
}

// Schema returns the description of the kind's objects.
func (k *Kind) Schema() *schema.Object { return model().config.Field(k.Name).Type.Innermost().Object }

// Count returns how many objects of the kind there are; 1 for a single one.
func (k *Kind) Count(c *Config) int {
	if k.Single {
		return 1
	}
	return k.count(c)
}

// Names returns the names of all objects of the kind, sorted; nil for a single
// one.
func (k *Kind) Names(c *Config) []string {
	if k.Single {
		return nil
	}
	names := make([]string, 0, k.count(c))
	for name := range k.objects(c) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Find returns the object of the documents with this name, or nil. It returns nil for a
// kind with a single object.
func (k *Kind) Find(c *Config, name string) Named {
	if k.Single {
		return nil
	}
	return k.find(c, name)
}

// kindTable returns the rows of Kinds. A new kind is a field in Config and a row
// here.
func kindTable() []*Kind {
	return []*Kind{
		many("ports", "port", "port", func(c *Config) map[string]*Port { return c.Ports }, (*checker).port),
		many("proxies", "proxy", "proxy", func(c *Config) map[string]*Proxy { return c.Proxies }, (*checker).proxy),
		many("tcp_proxies", "TCP proxy", "tcp_proxy", func(c *Config) map[string]*TCPProxy { return c.TCPProxies }, (*checker).tcpProxy),
		many("udp_proxies", "UDP proxy", "udp_proxy", func(c *Config) map[string]*UDPProxy { return c.UDPProxies }, (*checker).udpProxy),
		many("certificates", "certificate", "certificate", func(c *Config) map[string]*Certificate { return c.Certificates }, (*checker).certificate),
		many("policies", "policy", "policy", func(c *Config) map[string]*Policy { return c.Policies }, (*checker).policy),
		single("defaults", "defaults", (*checker).defaults),
		many("lists", "list", "list", func(c *Config) map[string]*List { return c.Lists }, (*checker).list),
		many("bans", "ban rule", "ban_rule", func(c *Config) map[string]*Ban { return c.Bans }, func(ch *checker, b *Ban, at schema.Place) { b.Config.Check(at) }),
		single("sign_in", "sign-in for applications", (*checker).signIn),
		single("geo", "geo databases", func(ch *checker, at schema.Place) { ch.c.Geo.Check(at) }),
		many("acme", "ACME entry", "acme", func(c *Config) map[string]*ACME { return c.ACME }, (*checker).acme),
		single("discovery", "discovery", (*checker).discovery),
		many("webhooks", "webhook", "webhook", func(c *Config) map[string]*Webhook { return c.Webhooks }, (*checker).webhook),
		many("notices", "notice", "notice", func(c *Config) map[string]*Notice { return c.Notices }, func(_ *checker, n *Notice, at schema.Place) { n.Config.Check(at) }),
		single("access_log", "access log", (*checker).accessLog),
		single("tracing", "tracing", func(ch *checker, at schema.Place) { ch.c.Tracing.Check(at) }),
		single("upstreams", "settings for upstreams", (*checker).upstreams),
		single("cdn_networks", "networks of CDNs", nil),
		single("admin", "admin listener", (*checker).admin),
	}
}

// many returns the row of a kind whose objects have names. Check may be nil.
func many[T any, P interface {
	*T
	Named
}](name, noun, label string, in func(*Config) map[string]P, check func(k *checker, o P, at schema.Place)) *Kind {
	k := &Kind{
		Name: name, Noun: noun, Label: label,
		count: func(c *Config) int { return len(in(c)) },
		carry: func(from, to *Config, name string) bool {
			o := in(from)[name]
			if o != nil {
				in(to)[name] = asWritten(o).(P)
			}
			return o != nil
		},
		find: func(c *Config, name string) Named {
			if o := in(c)[name]; o != nil {
				return asWritten(o)
			}
			return nil
		},
		objects: func(c *Config) iter.Seq2[string, Named] {
			return func(yield func(string, Named) bool) {
				for name, o := range in(c) {
					if !yield(name, asWritten(o)) {
						return
					}
				}
			}
		},
	}
	k.Changed = func(before, after *Config, visit func(name string, was, is Named)) {
		if names, ok := after.ProxiesSince(before); ok && name == "proxies" {
			visitNamed(names, in(before), in(after), visit)
		} else {
			visitChanged(in(before), in(after), visit)
		}
	}
	if check != nil {
		k.check = func(ch *checker, name string, at schema.Place) { check(ch, in(ch.c)[name], at) }
	}
	return k
}

// visitNamed calls visit for the objects with these names.
func visitNamed[P interface {
	comparable
	Named
}](names []string, old, now map[string]P, visit func(name string, was, is Named)) {
	var none P
	for _, name := range names {
		var was, is Named
		if o := old[name]; o != none {
			was = asWritten(o)
		}
		if o := now[name]; o != none {
			is = asWritten(o)
		}
		visit(name, was, is)
	}
}

// visitChanged calls visit for the objects that two maps do not share.
func visitChanged[P interface {
	comparable
	Named
}](old, now map[string]P, visit func(name string, was, is Named)) {
	var none P
	known := 0
	for name, is := range now {
		switch was := old[name]; {
		case was == none:
			visit(name, nil, asWritten(is))
			continue
		case was != is:
			visit(name, asWritten(was), asWritten(is))
		}
		known++
	}
	if known == len(old) {
		return
	}
	for name, was := range old {
		if now[name] == none {
			visit(name, asWritten(was), nil)
		}
	}
}

// single returns the row of a kind with one object. Check may be nil.
func single(name, noun string, check func(k *checker, at schema.Place)) *Kind {
	k := &Kind{Name: name, Noun: noun, Label: name, Single: true}
	if check != nil {
		k.check = func(ch *checker, _ string, at schema.Place) { check(ch, at) }
	}
	return k
}

// checkKinds has every object checked, kind by kind.
func (ch *checker) checkKinds() {
	for _, k := range Kinds() {
		if k.check == nil {
			continue
		}
		at := ch.root.Field(k.Name)
		if k.Single {
			k.check(ch, "", at)
			continue
		}
		for _, name := range ch.names(k) {
			k.check(ch, name, at.Field(name).Called(k.Noun, name))
		}
	}
	ch.gates()
	ch.sticky(ch.root)
	ch.checkReferences()
	ch.noteNoPort()
}

// noteNoPort reports that proxies are not reachable because there is no port.
func (ch *checker) noteNoPort() {
	if len(ch.c.Ports) > 0 || len(ch.c.Proxies) == 0 {
		return
	}
	ch.root.Field("proxies").Note("there is no port, so nothing listens for these proxies", `add one: ports: {web: {address: "0.0.0.0:80", protocol: http}}`)
}

// names returns the names of the objects of a kind that have to be checked, sorted.
func (ch *checker) names(k *Kind) []string {
	if !ch.carried || k.Name != "proxies" {
		return k.Names(ch.c)
	}
	return ch.renewed
}

// sortedNames returns the names of objects, sorted.
func sortedNames[T any](objects map[string]T) []string { return slices.Sorted(maps.Keys(objects)) }
