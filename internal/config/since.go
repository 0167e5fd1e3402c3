package config

import (
	"maps"
	"slices"
)

// lineage tells one loading of documents from others, without keeping anything of it.
type lineage struct{ _ byte }

// ProxiesSince returns the names of the proxies that are not those of before, by pointer: added,
// changed or removed, sorted. It returns false where c was not loaded right after before:
// then nobody knows without a look at all of them.
func (c *Config) ProxiesSince(before *Config) (proxies []string, ok bool) {
	if !c.asLoaded() || !before.asLoaded() || c.loaded.since != before.loaded.is {
		return nil, false
	}
	return c.loaded.renewed, true
}

// asLoaded reports whether the configuration is the very one that documents were loaded
// into. c may be nil.
func (c *Config) asLoaded() bool { return c != nil && c.loaded != nil && c.loaded.config == c }

// compare notes which proxies are not those of before, which may be nil: some of those that
// were read, or of all.
func (l *Loaded) compare(before *Loaded, read []string, all bool) {
	l.is = new(lineage)
	if before == nil {
		return
	}
	was, is := before.config.Proxies, l.config.Proxies
	l.since, l.renewed = before.is, []string{}
	if all {
		read = slices.Collect(maps.Keys(is))
		for name := range was {
			if is[name] == nil {
				l.renewed = append(l.renewed, name)
			}
		}
	}
	for _, name := range read {
		if was[name] != is[name] {
			l.renewed = append(l.renewed, name)
		}
	}
	slices.Sort(l.renewed)
}

// few are names of proxies, sorted, that have what most have not, so that nobody has to
// look for them among all.
type few struct {
	pinning []string // to servers, by a cookie
	logging []string // in a log, or a way, of their own
}

// fewOf returns the few of a configuration; those of before are known, which may be nil.
func fewOf(c, before *Config) few {
	var out few
	names, ok := c.ProxiesSince(before)
	if !ok {
		for name, p := range c.Proxies {
			out.add(name, p)
		}
		out.sort()
		return out
	}
	known := before.loaded.few
	out = few{without(known.pinning, names), without(known.logging, names)}
	for _, name := range names {
		if p := c.Proxies[name]; p != nil {
			out.add(name, p)
		}
	}
	out.sort()
	return out
}

func (f *few) add(name string, p *Proxy) {
	if pinsClients(p) {
		f.pinning = append(f.pinning, name)
	}
	if p.AccessLog != nil {
		f.logging = append(f.logging, name)
	}
}

func (f *few) sort() {
	slices.Sort(f.pinning)
	slices.Sort(f.logging)
}

// without returns names that are not among others. Both are sorted.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, found := slices.BinarySearch(others, name)
		return found
	})
}

// fewest returns the few of a configuration, which are known if documents were loaded
// into it.
func (c *Config) fewest() few {
	if c.asLoaded() {
		return c.loaded.few
	}
	return fewOf(c, nil)
}
