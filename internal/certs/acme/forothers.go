package acme

import (
	"reflect"
	"slices"

	"headgate/internal/store"
)

// Missing returns the certificates that the configuration of this machine wants and that are
// not among the names of others, in order, at most store.MaxNodeOrders: as the follower of a
// pair, this machine cannot order them.
func (m *Manager) Missing(others []string) []store.NodeOrder {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.NodeOrder
	for _, name := range sortedKeys(m.mu.jobs) {
		if j := m.mu.jobs[name]; j.listed && !j.others && !slices.Contains(others, name) && len(out) < store.MaxNodeOrders {
			out = append(out, store.NodeOrder{Entry: j.entryName, Names: j.names})
		}
	}
	return out
}

// SetOthers replaces the certificates that are managed for machines which cannot order. They
// are ordered with the entries of this machine; unknown entries, and names that no authority
// accepts, are ignored. The caller must not change the argument afterwards.
func (m *Manager) SetOthers(orders []store.NodeOrder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(orders) == 0 && len(m.mu.others) == 0 || reflect.DeepEqual(orders, m.mu.others) {
		return
	}
	m.mu.others = orders
	m.configureAllLocked()
}

// orderForOthersLocked makes a certificate managed that another machine wants, unless this one
// does.
func (m *Manager) orderForOthersLocked(o store.NodeOrder) {
	settings := m.mu.entries[o.Entry]
	if settings == nil || len(o.Names) == 0 || checkNames(o.Names) != nil {
		return
	}
	if groups := Group(o.Names); len(groups) != 1 || nameOf(groups[0]) != nameOf(o.Names) {
		return // not one that this release would order
	}
	if j := m.mu.jobs[nameOf(o.Names)]; j != nil && j.wanted {
		return
	}
	j := m.jobLocked(nameOf(o.Names))
	m.configureLocked(j, Want{Entry: o.Entry, Settings: settings, Names: o.Names})
	j.listed, j.others = true, true
}
