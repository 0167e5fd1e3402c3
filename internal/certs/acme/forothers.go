package acme

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"headgate/internal/store"
)

// Missing returns the certificates that the configuration of this machine needs and that are not
// among the names of others, in order, at most store.MaxNodeOrders. As the follower of a pair,
// this machine cannot order them.
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

// SetOthers replaces the list of certificates that are managed for machines that cannot order them.
// They are ordered with the entries of this machine; unknown entries, and names that no authority
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

// orderForOthersLocked starts to manage a certificate that another machine needs, unless this
// machine needs it, too.
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

// maxExpected is the maximum time to wait for the order of another machine.
const maxExpected = 30 * time.Second

// ExpectOnDemand makes handshakes wait for the certificate of a host, which another machine
// orders. They wait until it arrives, its order fails, half a minute has passed, or the caller calls
// the returned function.
func (m *Manager) ExpectOnDemand(host string) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := nameOf([]string{host})
	j := m.jobLocked(name)
	if r := j.shown.Load(); r.NotAfter.After(m.now()) && slices.Contains(r.Has, host) {
		return func() {}
	}
	until := m.now().Add(maxExpected)
	j.expected = until
	stop := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if j.expected.Equal(until) {
			m.endExpectedLocked(name, j)
		}
	}
	time.AfterFunc(maxExpected, stop)
	return stop
}

// endExpectedLocked wakes the handshakes that wait for the order of another machine, and removes the
// job if it was created for them.
func (m *Manager) endExpectedLocked(name string, j *job) {
	j.expected = time.Time{}
	if r := j.shown.Load(); m.mu.jobs[name] == j && !j.wanted && !j.running && r.Names == nil && r.NotAfter.IsZero() {
		delete(m.mu.jobs, name)
	}
	j.announceLocked()
}

// acceptFailure applies the record of a failed order of another machine, if handshakes wait for it
// here.
func (m *Manager) acceptFailure(name string, text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.mu.jobs[name]
	if j == nil || j.running || j.expected.IsZero() {
		return
	}
	r := &Record{}
	if err := json.Unmarshal(text, r); err != nil || r.State != Failed && r.State != Blocked {
		return
	}
	j.record = r
	j.shown.Store(r.public())
	m.endExpectedLocked(name, j)
}
