package certs

import "log/slog"

// Keeper holds the certificates that the configuration in use names. It takes part
// in changes, one at a time.
type Keeper struct {
	log   *slog.Logger
	pairs map[string]*Certificate // by their keys; those of the configuration in use
}

// NewKeeper returns a keeper without certificates. Close ends it.
func NewKeeper(log *slog.Logger) *Keeper { return &Keeper{log: log} }

// Wanted is a certificate that a configuration names.
type Wanted struct {
	// Name is what the log and the status call it.
	Name string
	// Loader loads it.
	Loader Loader
}

// key identifies a configured certificate.
func key(name, loader string) string { return name + "\x00" + loader }

// Change is a change of the certificates for a new configuration: exactly one of Commit and
// Cancel is called.
type Change struct {
	keeper *Keeper
	next   map[string]*Certificate
	loaded map[string]*Certificate // those of next that are not in use yet
}

// Prepare loads the certificates that are not in use already. Nothing of it can be
// seen, and nothing runs, before Commit.
func (k *Keeper) Prepare(next []Wanted) *Change {
	c := &Change{keeper: k, next: make(map[string]*Certificate, len(next)), loaded: map[string]*Certificate{}}
	for _, w := range next {
		key := key(w.Name, w.Loader.Key())
		if c.next[key] != nil {
			continue
		}
		if p := k.pairs[key]; p != nil {
			c.next[key] = p
			continue
		}
		p := newCertificate(w.Name, w.Loader, k.log)
		c.next[key], c.loaded[key] = p, p
	}
	return c
}

// Pair returns the certificate of this name from the loader with this key, and
// whether it comes into use by this change; nil if none such is wanted.
func (c *Change) Pair(name, loader string) (pair *Certificate, fresh bool) {
	k := key(name, loader)
	return c.next[k], c.loaded[k] != nil
}

// Commit takes the certificates into use: they follow their loaders from now on, and those
// that are no longer configured stop.
func (c *Change) Commit() {
	before := c.keeper.pairs
	c.keeper.pairs = c.next
	for _, p := range c.loaded {
		p.follow()
	}
	for key, p := range before {
		if c.next[key] != p {
			p.retire()
		}
	}
}

// Cancel forgets what was loaded.
func (c *Change) Cancel() {}

// Close ends what runs for the certificates.
func (k *Keeper) Close() {
	for _, p := range k.pairs {
		p.retire()
	}
	k.pairs = nil
}
