package acme

import (
	"context"
	"fmt"
)

// Outlook is what a look before an order has found.
type Outlook struct {
	// Trouble is why an order would fail, nil if nothing is known against it.
	Trouble *Trouble
	// Warnings are what is doubtful.
	Warnings []string
	// Chosen is the challenge for each name, as far as it could be chosen.
	Chosen map[string]Challenge
}

// Preflight runs the checks before an order for a configured certificate, and places none.
// The error means that it is not configured.
func (m *Manager) Preflight(ctx context.Context, name string) (Outlook, error) {
	m.mu.Lock()
	j := m.mu.jobs[name]
	if j == nil || !j.wanted {
		m.mu.Unlock()
		return Outlook{}, fmt.Errorf("no certificate %q is wanted by an acme entry", name)
	}
	e, names, r := j.entry, j.names, j.shown.Load()
	m.mu.Unlock()
	o := order{m: m, entry: e, names: names, record: r}
	if err := o.openDirectory(ctx); err != nil {
		if o.client != nil {
			o.client.HTTPClient.CloseIdleConnections()
		}
		return Outlook{Trouble: troubleOf(err)}, nil
	}
	defer o.client.HTTPClient.CloseIdleConnections()
	chosen, warnings, err := m.preflight(ctx, e, names, r, o.dir)
	out := Outlook{Warnings: warnings, Chosen: chosen}
	if err != nil {
		out.Trouble = troubleOf(err)
	}
	return out, nil
}
