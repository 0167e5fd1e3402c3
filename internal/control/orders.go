package control

import (
	"context"

	"headgate/internal/certs/acme"
)

// Orders returns the state of the ACME certificates, by name, with the timelines of their
// orders. They must not be changed.
func (c *Control) Orders() []*acme.Record { return c.issuer.manager.Records() }

// OrderOf returns the certificate by ACME that has a name, or is for a host; nil if
// there is none.
func (c *Control) OrderOf(name string) *acme.Record { return c.issuer.manager.Find(name) }

// Order orders a certificate by ACME now, also if it is valid still. The error says why
// it cannot.
func (c *Control) Order(name string) error { return c.issuer.manager.Order(name) }

// CanOrder returns what Order would, and orders nothing.
func (c *Control) CanOrder(name string) error { return c.issuer.manager.CanOrder(name) }

// Preflight looks whether an order for a certificate by ACME can succeed, and places
// none. The error says why it could not look.
func (c *Control) Preflight(ctx context.Context, name string) (acme.Outlook, error) {
	return c.issuer.manager.Preflight(ctx, name)
}

// RollOver gives the account of an acme entry a new key.
func (c *Control) RollOver(ctx context.Context, entry string) error {
	return c.issuer.manager.Rollover(ctx, entry)
}

// summaries are the records without the timelines of their orders, which are many.
func summaries(all []*acme.Record) []*acme.Record {
	for i, r := range all {
		all[i] = r.Brief()
	}
	return all
}
