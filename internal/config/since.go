package config

import (
	"maps"
	"slices"
)

// lineage identifies one load of documents, without keeping it in memory.
type lineage struct{ _ byte }

// ProxiesSince returns the names of the proxies that differ from those of before, by
// pointer: added, changed or removed, sorted. It returns false if c was not loaded directly
// after before: then all proxies have to be compared.
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

// special are names of proxies with rare settings, sorted, so that they need not be
// searched among all.
type special struct {
	pinning []string // to servers, by a cookie
	logging []string // in a log, or a way, of their own
}

// specialOf returns the special proxies of a configuration; before, which may be nil, has
// its own already.
func specialOf(c, before *Config) special {
	var out special
	names, ok := c.ProxiesSince(before)
	if !ok {
		for name, p := range c.Proxies {
			out.add(name, p)
		}
		out.sort()
		return out
	}
	known := before.loaded.special
	out = special{without(known.pinning, names), without(known.logging, names)}
	for _, name := range names {
		if p := c.Proxies[name]; p != nil {
			out.add(name, p)
		}
	}
	out.sort()
	return out
}

func (f *special) add(name string, p *Proxy) {
	if pinsClients(p) {
		f.pinning = append(f.pinning, name)
	}
	if p.AccessLog != nil {
		f.logging = append(f.logging, name)
	}
}

func (f *special) sort() {
	slices.Sort(f.pinning)
	slices.Sort(f.logging)
}

// without returns the names that are not in others. Both are sorted.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, found := slices.BinarySearch(others, name)
		return found
	})
}

// special returns the special proxies of a configuration, which are computed already if
// documents were loaded into it.
func (c *Config) special() special {
	if c.asLoaded() {
		return c.loaded.special
	}
	return specialOf(c, nil)
}
