package control

import (
	"cmp"
	"slices"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
)

// CertificateState is the state of a certificate, whether the configuration names it or
// ACME issues it. It is the one definition for the API, the command line, the console and
// the metrics.
type CertificateState struct {
	// Name is the name in the configuration, or of a certificate by ACME its own.
	Name string `json:"name" required:"true"`
	// Source is configured or acme.
	Source string `json:"source" required:"true"`
	// OnDemand is the proxy of a certificate that was ordered when a client connected.
	OnDemand string `json:"on_demand,omitempty"`
	// State is valid; expiring in its last 14 days, or in the last third of a shorter
	// life; expired; missing when its files cannot be used; and of a certificate by ACME
	// also waiting before the first order, ordering, blocked when an order would fail and
	// is not placed, or failed. One that is blocked or failed may have a certificate that
	// is still valid: then NotAfter is set.
	State certs.State `json:"state" required:"true"`
	// Since is when the certificate or its order came to the state.
	Since time.Time `json:"since,omitzero"`
	// Problem is why the certificate is missing, or why the last order failed.
	Problem string `json:"problem,omitempty"`
	// Hint is what to do about that.
	Hint string `json:"hint,omitempty"`
	// NextTry is when ACME orders again, or renews.
	NextTry time.Time `json:"next_try,omitzero"`
	// Names are the host names of the certificate, or those that one is ordered for.
	Names []string `json:"names,omitempty"`
	// NotBefore is when its validity starts.
	NotBefore time.Time `json:"not_before,omitzero"`
	// NotAfter is when its validity ends; absent while there is no certificate.
	NotAfter time.Time `json:"not_after,omitzero"`
	// DaysLeft is how many whole days are left, below zero when it has expired.
	DaysLeft *int `json:"days_left,omitempty"`
}

// The sources of certificates.
const (
	CertificateConfigured = "configured"
	CertificateACME       = "acme"
)

// The states that certificates by ACME have besides those of certs.State.
const (
	CertificateWaiting  certs.State = "waiting"
	CertificateOrdering certs.State = "ordering"
	CertificateBlocked  certs.State = "blocked"
	CertificateFailed   certs.State = "failed"
)

// certificateUrgency orders the states that need attention, the most urgent first.
var certificateUrgency = []certs.State{certs.Expired, certs.Missing, CertificateFailed, CertificateBlocked, certs.Expiring}

// NeedsAttention reports whether an operator should act on the certificate.
func (c *CertificateState) NeedsAttention() bool {
	return slices.Contains(certificateUrgency, c.State)
}

// CertificatesByUrgency returns those certificates that need attention, the most urgent
// first.
func CertificatesByUrgency(all []CertificateState) []CertificateState {
	var out []CertificateState
	for i := range all {
		if all[i].NeedsAttention() {
			out = append(out, all[i])
		}
	}
	slices.SortStableFunc(out, func(a, b CertificateState) int {
		return cmp.Compare(slices.Index(certificateUrgency, a.State), slices.Index(certificateUrgency, b.State))
	})
	return out
}

// CertificateStates returns the states of all certificates: the configured ones, then those
// by ACME, each by name.
func (c *Control) CertificateStates() []CertificateState {
	own, issued := c.Certificates()
	return certificateStates(own, issued, time.Now())
}

func certificateStates(own []certs.Status, issued []*acme.Record, now time.Time) []CertificateState {
	out := make([]CertificateState, 0, len(own)+len(issued))
	for i := range own {
		s := &own[i]
		out = append(out, CertificateState{
			Name: s.Name, Source: CertificateConfigured, State: s.State, Since: s.Since, Problem: s.Problem,
			Names: s.Names, NotBefore: s.NotBefore, NotAfter: s.NotAfter, DaysLeft: s.DaysLeft,
		})
	}
	for _, r := range issued {
		if r.State == acme.Idle && r.NotAfter.IsZero() || r.Refused() && now.After(r.NotAfter) {
			continue // no host uses it
		}
		out = append(out, issuedState(r, now))
	}
	return out
}

// issuedState returns the state of a certificate by ACME.
func issuedState(r *acme.Record, now time.Time) CertificateState {
	s := CertificateState{
		Name: r.Name, Source: CertificateACME, State: orderWord(r.State), Since: r.Since, NextTry: r.NextTry,
		Names: r.Names, NotBefore: r.NotBefore, NotAfter: r.NotAfter,
	}
	if r.Demand != nil {
		s.OnDemand = r.Demand.Proxy
	}
	if r.Trouble != nil {
		s.Problem, s.Hint = r.Trouble.Message, r.Trouble.Hint
	}
	if r.NotAfter.IsZero() {
		return s
	}
	days := certs.DaysLeft(r.NotAfter, now)
	s.DaysLeft = &days
	if r.Refused() {
		s.State, s.Problem = certs.Valid, "it is not renewed: its host is no longer allowed"
		return s
	}
	at := certs.StateAt(r.NotBefore, r.NotAfter, now)
	failing := s.State == CertificateFailed || s.State == CertificateBlocked
	switch {
	case at == certs.Expired, !failing:
		s.State = at
	}
	// What is renewed in time is not reported: the authority decides when.
	if s.State == certs.Expiring && now.Before(r.NextTry) && r.NextTry.Before(r.NotAfter) && r.Failures == 0 {
		s.State = certs.Valid
	}
	return s
}

// orderWord returns the state of a certificate by ACME that was never issued.
func orderWord(s acme.State) certs.State {
	switch s {
	case acme.Blocked:
		return CertificateBlocked
	case acme.Failed:
		return CertificateFailed
	case acme.Idle:
		return CertificateWaiting
	}
	return CertificateOrdering
}
