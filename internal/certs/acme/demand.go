package acme

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate/internal/store"
)

// Demand is the rule by which a certificate is ordered when a client first connects.
type Demand struct {
	// Proxy is the proxy with the rule, Entry the ACME entry to order under.
	Proxy, Entry string
	// Settings are the bounds.
	Settings *OnDemand
}

// Demanded is what a record keeps about a certificate on demand.
type Demanded struct {
	// Proxy is the proxy that it was ordered for.
	Proxy string `json:"proxy"`
	// Allowed is when the host was allowed last.
	Allowed time.Time `json:"allowed"`
	// Refused is when it was refused at a renewal, zero if it was not. The certificate is not
	// renewed then.
	Refused time.Time `json:"refused,omitzero"`
}

// ErrNotAllowed is wrapped by the error of Options.Allowed for a host that may not have a
// certificate. Other errors mean that it is not known.
var ErrNotAllowed = errors.New("not allowed")

// Limited is the error of OrderOnDemand when a bound of the settings is reached.
type Limited struct {
	// Bound is the setting, max_per_hour or max_certificates.
	Bound string
	// Max is its value.
	Max int
	// Until is when the next order is possible, zero if that is not known.
	Until time.Time
}

// Error names the bound.
func (l *Limited) Error() string { return fmt.Sprintf("%s of %d is reached", l.Bound, l.Max) }

// Progress is the state of a certificate on demand for those who wait for it.
type Progress struct {
	// Valid is whether there is a certificate that has not expired.
	Valid bool
	// Ordering is whether an order is in progress, here or on another machine. Changed is
	// closed when that may have changed.
	Ordering bool
	Changed  <-chan struct{}
	// NotBefore is when another order is possible after a failure.
	NotBefore time.Time
}

// Progress returns the state of the certificate for a host.
func (m *Manager) Progress(host string) Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.mu.jobs[nameOf([]string{host})]
	if j == nil {
		return Progress{}
	}
	r, now := j.shown.Load(), m.now()
	p := Progress{Valid: r.NotAfter.After(now) && slices.Contains(r.Has, host)}
	elsewhere := r.Trouble != nil && r.Trouble.elsewhere
	if p.Ordering = !p.Valid && (j.running || j.expected.After(now) || j.wanted && (elsewhere || !j.at.After(now))); p.Ordering {
		if j.changed == nil {
			j.changed = make(chan struct{})
		}
		p.Changed = j.changed
	} else if r.State == Failed || r.State == Blocked {
		p.NotBefore = r.NextTry
	}
	return p
}

// announceLocked wakes those who wait for a certificate.
func (j *job) announceLocked() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// SetDemands sets how the rule for a host is found, nil for a host without one; the next Set
// uses it. find is called with a lock held, and must be fast.
func (m *Manager) SetDemands(find func(host string) *Demand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.demands = find
}

// OrderOnDemand orders the certificate for a host which the rule allows. It returns when the
// order was counted, and does not wait for the certificate. The error is a *Limited, or one
// of the store.
func (m *Manager) OrderOnDemand(ctx context.Context, host string, d *Demand) error {
	if l := m.full(host, d); l != nil {
		return l
	}
	if err := m.spend(ctx, host, d); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := m.mu.entries[d.Entry]
	if entry == nil {
		return fmt.Errorf("there is no acme entry %q", d.Entry)
	}
	j := m.jobLocked(nameOf([]string{host}))
	if j.running {
		return nil // another machine's certificate came, and is being renewed
	}
	j.record.Names = []string{host}
	j.record.Demand = &Demanded{Proxy: d.Proxy, Allowed: m.now()}
	j.shown.Store(j.record.public())
	j.entryName, j.entry, j.names = d.Entry, entry, j.record.Names
	j.wanted, j.at = true, m.now()
	m.wakeUp()
	return nil
}

// CanOrderOnDemand reports whether this machine can answer a challenge for a host: it has the port
// for one that the entry of the rule allows open, or the entry has a DNS provider.
func (m *Manager) CanOrderOnDemand(host string, d *Demand) bool {
	m.mu.Lock()
	entry := m.mu.entries[d.Entry]
	m.mu.Unlock()
	if entry == nil {
		return false
	}
	_, t := choose(m.ports, entry, host)
	return t == nil
}

// full returns the limit that a proxy has reached with its certificates, nil if it has not.
func (m *Manager) full(host string, d *Demand) *Limited {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, now, n := nameOf([]string{host}), m.now(), 0
	for name, j := range m.mu.jobs {
		if r := j.shown.Load(); r.Demand != nil && r.Demand.Proxy == d.Proxy && name != own && (j.running || j.wanted || r.NotAfter.After(now)) {
			n++
		}
	}
	if n < d.Settings.MaxCertificates {
		return nil
	}
	return &Limited{Bound: "max_certificates", Max: d.Settings.MaxCertificates}
}

// spent are the orders on demand of one proxy within the last hour, as they are stored: they
// count for all machines, and after a restart.
type spent struct {
	Orders []spentOrder `json:"orders"`
}

type spentOrder struct {
	Host string    `json:"host"`
	At   time.Time `json:"at"`
}

// The time within which orders are counted, and for how long another machine's order for the
// same host counts as this one.
const (
	spentWithin = time.Hour
	sameOrder   = time.Minute
)

// spend counts an order on demand.
func (m *Manager) spend(ctx context.Context, host string, d *Demand) error {
	key := store.PrefixDemand + d.Proxy
	for {
		e, err := m.store.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var s spent
		if len(e.Value) > 0 {
			if err := json.Unmarshal(e.Value, &s); err != nil {
				m.log.Error("the orders on demand of the last hour cannot be read, they are counted anew", "proxy", d.Proxy, "error", err)
			}
		}
		now := m.now()
		s.Orders = slices.DeleteFunc(s.Orders, func(o spentOrder) bool { return now.Sub(o.At).Abs() >= spentWithin })
		if slices.ContainsFunc(s.Orders, func(o spentOrder) bool { return o.Host == host && now.Sub(o.At).Abs() < sameOrder }) {
			return nil
		}
		if n := len(s.Orders); n >= d.Settings.MaxPerHour {
			return &Limited{Bound: "max_per_hour", Max: d.Settings.MaxPerHour, Until: s.Orders[n-d.Settings.MaxPerHour].At.Add(spentWithin)}
		}
		s.Orders = append(s.Orders, spentOrder{host, now})
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = m.store.Commit(ctx, store.Change{
			If: []store.Condition{{Key: key, Revision: e.Revision}}, Put: []store.Entry{{Key: key, Value: data}},
			Who: who, Why: host + " is ordered on demand",
		})
		if conflict := (*store.Conflict)(nil); !errors.As(err, &conflict) {
			return err
		}
	}
}

// keepDemandedLocked goes on to manage a certificate on demand that is valid, or whose order
// was interrupted, if a rule is for its host. One that was never issued is ordered again when
// a client connects.
func (m *Manager) keepDemandedLocked(j *job) {
	if j.wanted || m.mu.demands == nil {
		return
	}
	r := j.shown.Load()
	if r.Demand == nil || !r.Demand.Refused.IsZero() || len(r.Names) != 1 {
		return
	}
	if !j.running && j.record.Open == nil && !r.NotAfter.After(m.now()) {
		return
	}
	d := m.mu.demands(r.Names[0])
	if d == nil || m.mu.entries[d.Entry] == nil {
		return
	}
	m.configureLocked(j, Want{Entry: d.Entry, Settings: m.mu.entries[d.Entry], Names: r.Names})
}

// endDemandedLocked stops to manage a certificate on demand after a run, if it may not be
// renewed, or if there is none and the order failed.
func (j *job) endDemandedLocked(now time.Time) {
	r := j.record
	if r.Demand == nil || j.listed {
		return
	}
	elsewhere := r.Trouble != nil && r.Trouble.elsewhere
	if !r.Demand.Refused.IsZero() || !r.NotAfter.After(now) && r.Open == nil && !elsewhere {
		j.wanted = false
	}
}

// renewable returns whether a certificate on demand may be renewed. If its host is no longer
// allowed, that is noted.
func (m *Manager) renewable(r *Record) (bool, *Trouble) {
	if r.Demand == nil || r.NotAfter.IsZero() || r.Open != nil || !r.NotAfter.After(m.now()) {
		return true, nil
	}
	m.mu.Lock()
	find := m.mu.demands
	m.mu.Unlock()
	d := (*Demand)(nil)
	if find != nil {
		d = find(r.Names[0])
	}
	err := ErrNotAllowed
	if d != nil {
		ctx, cancel := context.WithTimeout(m.ctx, requestTimeout)
		defer cancel()
		err = m.allowed(ctx, d, r.Names[0])
	}
	now := m.now()
	demand := *r.Demand
	switch {
	case err == nil:
		demand.Allowed = now
		r.Demand = &demand
		return true, nil
	case !errors.Is(err, ErrNotAllowed):
		return false, &Trouble{Code: "ask_failed", Message: cut("it is not known whether the host is still allowed: " + err.Error()), Hint: "headgate asks again; check the application at on_demand.ask", blocked: true}
	}
	demand.Refused = now
	r.Demand, r.State, r.Since, r.Trouble, r.NextTry = &demand, Idle, now, nil, time.Time{}
	m.keepLoud(r)
	m.log.Info("certificate is not renewed, its host is no longer allowed", "certificate", r.Title(), "proxy", r.Demand.Proxy, "not_after", r.NotAfter)
	return false, nil
}
