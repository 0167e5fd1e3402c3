package control

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/certs/demand"
	"headgate/internal/clock"
	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/store"
)

// issuer participates in changes for ACME certificates: it configures the manager with the
// required ones. The certificates are installed without a change.
type issuer struct {
	manager *acme.Manager
	managed *certs.Managed
	gate    *demand.Gate // gets certificates on demand
	log     *slog.Logger
}

// newIssuer returns an issuer that knows the certificates which are kept, and orders
// none before the first change.
func newIssuer(log *slog.Logger, kept store.Store, open *ports.Set, node, agent string, tell func(*acme.Record), limited func(proxy string, l *acme.Limited)) *issuer {
	i := &issuer{log: log}
	i.managed = certs.NewManaged(func(name string) (*tls.Certificate, error) { return readIssued(kept, name) })
	i.gate = demand.New(demand.Options{Log: log, Agent: agent, Limited: limited, Now: clock.Now})
	i.manager = acme.New(acme.Options{
		Log: log, Store: kept, Ports: openPorts{open}, Node: node, Agent: agent, Tell: tell,
		Install: func(c *acme.Issued) { i.managed.Put(c.Name, c.Certificate) },
		Loaded:  i.announce,
		Forget:  func(name string) { i.managed.Remove(name) },
		Allowed: i.gate.Allowed,
	})
	if i.manager.Load() {
		i.announce()
	}
	return i
}

// announce makes the certificates known that are kept. They are read when they are
// asked for.
func (i *issuer) announce() {
	var known []certs.Announced
	for _, r := range i.manager.Records() {
		if !r.NotAfter.IsZero() {
			known = append(known, certs.Announced{Name: r.Name, Hosts: r.Has, Until: r.NotAfter})
		}
	}
	i.managed.Announce(known)
}

// readTime is how long a handshake waits for a certificate to be read.
const readTime = 5 * time.Second

func readIssued(kept store.Store, name string) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	e, err := kept.Get(ctx, store.PrefixCertificate+name)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s: %w", name, err)
	}
	issued, err := acme.ParseIssued(name, e.Value)
	if err != nil {
		return nil, err
	}
	return issued.Certificate, nil
}

// Prepare finds out which certificates a configuration wants: those of hosts that
// none of its own covers.
func (i *issuer) Prepare(next *Next) (Change, error) {
	var own []certs.Status
	for _, s := range next.Plan.Certificates() {
		if s.State == certs.Valid || s.State == certs.Expiring {
			own = append(own, s)
		}
	}
	entries, wants := next.Config.ACMEWants(func(name string) bool {
		for _, s := range own {
			if acme.Covers(s.Names, name) {
				return true
			}
		}
		return false
	})
	return &wanted{issuer: i, plan: next.Plan, entries: entries, wants: wants, first: next.Starting()}, nil
}

// wanted is what a change wants of an issuer.
type wanted struct {
	issuer  *issuer
	plan    *plan.Plan
	entries map[string]*acme.Config
	wants   []acme.Want
	first   bool
}

// Commit configures the manager, which starts with the first change. Ports that it waited
// for may be open now.
func (w *wanted) Commit() {
	p := w.plan
	w.issuer.manager.SetDemands(func(host string) *acme.Demand { return p.OnDemand("", host) })
	w.issuer.gate.Set(p.OnDemand)
	w.issuer.manager.Set(w.entries, w.wants)
	if w.first {
		w.issuer.manager.Start()
	}
}

// Cancel does nothing.
func (w *wanted) Cancel() {}

// openPorts reports to the manager which ports are open.
type openPorts struct{ *ports.Set }

func (o openPorts) OpenHTTP(number int) bool  { return o.listens(config.HTTP, number) }
func (o openPorts) OpenHTTPS(number int) bool { return o.listens(config.HTTPS, number) }

func (o openPorts) listens(protocol config.Protocol, number int) bool {
	for _, s := range o.States() {
		if a, err := netip.ParseAddrPort(s.Address); err == nil && s.Protocol == protocol && s.State == "listening" && int(a.Port()) == number {
			return true
		}
	}
	return false
}

// Addresses returns the addresses of this machine's interfaces.
func (o openPorts) Addresses() []netip.Addr {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range found {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, prefix.Addr().Unmap())
		}
	}
	return out
}
