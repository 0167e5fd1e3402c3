package acme

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate/internal/store"
)

// Records returns the state of all certificates, by name.
func (m *Manager) Records() []*Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*Record
	for _, name := range slices.Sorted(maps.Keys(m.mu.jobs)) {
		j := m.mu.jobs[name]
		if r := j.shown.Load(); j.expected.IsZero() || r.Names != nil {
			out = append(out, r)
		}
	}
	return out
}

// Wanted returns the names of the certificates that the configuration of this machine wants,
// in order.
func (m *Manager) Wanted() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.mu.jobs)) {
		if j := m.mu.jobs[name]; j.wanted && !j.others {
			names = append(names, name)
		}
	}
	return names
}

// Find returns the state of the certificate with a name, or for a host; nil if there is
// none. An exact name takes precedence over a wildcard.
func (m *Manager) Find(name string) *Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	host := fold(name)
	for _, n := range []string{name, nameOf([]string{host})} {
		if j := m.mu.jobs[n]; j != nil {
			return j.shown.Load()
		}
	}
	_, rest, dotted := strings.Cut(host, ".")
	if !dotted || strings.HasPrefix(host, "*.") {
		return nil
	}
	if j := m.mu.jobs[nameOf([]string{"*." + rest})]; j != nil {
		return j.shown.Load()
	}
	for _, j := range m.mu.jobs { // the second name of a wildcard's certificate
		if r := j.shown.Load(); slices.Contains(r.Names, host) || slices.Contains(r.Has, host) {
			return r
		}
	}
	return nil
}

func (m *Manager) entry(name string) *Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.entries[name]
}

// publish makes a record visible to readers.
func (m *Manager) publish(r *Record) {
	m.mu.Lock()
	j := m.mu.jobs[r.Name]
	m.mu.Unlock()
	if j == nil {
		return
	}
	shown := r.public()
	if before := j.shown.Swap(shown); m.tell != nil && before.State != shown.State {
		m.tell(shown)
	}
}

// keep writes a record to the store, with other entries in the same commit, and
// shows it.
func (m *Manager) keep(ctx context.Context, r *Record, lease *store.Lease, more ...store.Entry) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	put := append(more, store.Entry{Key: store.PrefixOrder + r.Name, Value: data})
	if _, err = m.store.Commit(ctx, store.Change{Put: put, Under: lease, Who: who, Why: r.Name + " is " + string(r.State)}); err != nil {
		if errors.Is(err, store.ErrFenced) {
			return err
		}
		return storeTrouble(err)
	}
	m.publish(r)
	return nil
}

// keepLoud is keep for callers that ignore the error: it logs it.
func (m *Manager) keepLoud(r *Record) {
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
	defer cancel()
	if err := m.keep(ctx, r, nil); err != nil {
		m.publish(r)
		if m.ctx.Err() == nil {
			m.log.Error("keep the state of an order", "certificate", r.Title(), "error", err)
		}
	}
}

// leaf returns the certificate that is in use.
func (m *Manager) leaf(ctx context.Context, name string) (*x509.Certificate, error) {
	e, err := m.store.Get(ctx, store.PrefixCertificate+name)
	if err != nil {
		return nil, err
	}
	issued, err := ParseIssued(name, e.Value)
	if err != nil {
		return nil, err
	}
	return issued.Certificate.Leaf, nil
}

// issuedFor counts the certificates that a directory has issued below a domain within
// a week.
func (m *Manager) issuedFor(domain, directory string, now time.Time) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.mu.jobs {
		r := j.shown.Load()
		if len(r.Has) > 0 && strings.HasSuffix(r.Has[0], domain) && registered(r.Has[0]) == domain {
			_, issued := r.count(directory, now)
			n += issued
		}
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
