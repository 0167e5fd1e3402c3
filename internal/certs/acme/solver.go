package acme

import (
	"context"
	"fmt"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"headgate/internal/store"
)

// solver puts the answer to one challenge in place and takes it back.
type solver interface {
	// present puts it in place.
	present(ctx context.Context, o *order) error
	// where returns the location for people, or "".
	where() string
	// await returns when the authority can see it.
	await(ctx context.Context) error
	// cleanUp takes it back. To do so twice does no harm.
	cleanUp(ctx context.Context) error
}

// solverFor returns the solver of a challenge.
func (m *Manager) solverFor(kind Challenge, e *Config, c protocol.Challenge, name string) (solver, error) {
	switch kind {
	case HTTP01:
		return newHTTPSolver(m, c), nil
	case TLSALPN01:
		return newALPNSolver(m, c, name), nil
	case DNS01:
		s, err := newDNSSolver(m, e, newLookup(e.Resolvers))
		if err != nil {
			return nil, err
		}
		s.name, s.value = c.DNS01TXTRecordName(), c.DNS01KeyAuthorization()
		return s, nil
	}
	return nil, fmt.Errorf("unknown challenge %q", kind)
}

// portSolver answers http-01 (RFC 8555, section 8.3) or tls-alpn-01 (RFC 8737) on our ports,
// and on those of the machines that share the store.
type portSolver struct {
	m     *Manager
	kind  Challenge
	name  string // its place below store.PrefixChallenge
	value []byte
}

func newHTTPSolver(m *Manager, c protocol.Challenge) *portSolver {
	return &portSolver{m: m, kind: HTTP01, name: c.Token, value: []byte(c.KeyAuthorization)}
}

func newALPNSolver(m *Manager, c protocol.Challenge, name string) *portSolver {
	return &portSolver{m: m, kind: TLSALPN01, name: alpnPlace + alpnName(name), value: alpnValue(c)}
}

func (s *portSolver) present(ctx context.Context, o *order) error {
	key := store.PrefixChallenge + s.name
	if err := store.CheckKey(key); err != nil {
		return storeTrouble(err)
	}
	s.m.own.Store(s.name, true)
	if err := s.m.answer(s.name, s.value); err != nil {
		return err
	}
	_, err := s.m.store.Commit(ctx, store.Change{
		Put:   []store.Entry{{Key: key, Value: s.value, TTL: answerLife}},
		Under: o.lease, Who: who, Why: string(s.kind) + " for " + o.record.Name,
	})
	if err != nil {
		return storeTrouble(err)
	}
	return nil
}

func (s *portSolver) where() string               { return "" }
func (s *portSolver) await(context.Context) error { return nil }

func (s *portSolver) cleanUp(ctx context.Context) error {
	s.m.withdraw(s.name)
	s.m.own.Delete(s.name)
	_, err := s.m.store.Commit(ctx, store.Change{Delete: []string{store.PrefixChallenge + s.name}, Who: who, Why: string(s.kind) + " answered"})
	return err
}

// dnsSolver responds to dns-01 (RFC 8555, section 8.4) with a record that a provider
// writes, at the end of CNAME records.
type dnsSolver struct {
	settings    *DNS
	provider    provider
	look        lookup
	name, value string

	zone, at string // where the record is written
	written  bool
}

// newDNSSolver returns a solver that writes to the provider of an entry.
func newDNSSolver(m *Manager, e *Config, look lookup) (*dnsSolver, error) {
	p, err := newProvider(e.DNS)
	if err != nil {
		return nil, &Trouble{Code: "dns_provider", Message: err.Error(), Hint: "correct dns in the entry", blocked: true}
	}
	if w, ok := p.(*setWriter); ok {
		w.zones = &m.zones
		if m.node != "" {
			w.lease = m.leaseRecord
		}
	}
	return &dnsSolver{settings: e.DNS, provider: p, look: look}, nil
}

// locate finds out where the record with a name is written. The error is a *Trouble.
func (s *dnsSolver) locate(ctx context.Context, name string) (err error) {
	if s.at, err = s.look.target(ctx, name); err != nil {
		return &Trouble{Code: "dns", Message: cut(fmt.Sprintf("look up the target of the dns-01 record: %v", err)), Hint: "check the zone's name servers", blocked: true}
	}
	if s.zone = s.settings.Zone; s.zone == "" && s.provider.wantsZone() {
		if s.zone, err = s.look.zone(ctx, s.at); err != nil {
			return &Trouble{Code: "dns", Message: cut(fmt.Sprintf("find the zone of %s: %v", s.at, err)), Hint: "name it: dns: {zone: …}", blocked: true}
		}
	}
	return nil
}

func (s *dnsSolver) present(ctx context.Context, _ *order) error {
	if err := s.locate(ctx, s.name); err != nil {
		return err
	}
	s.written = true // also if it fails: it may have been written
	if err := s.provider.present(ctx, s.zone, s.at, s.value); err != nil {
		return &Trouble{Code: "dns_provider", Message: cut(fmt.Sprintf("%s: write the record %s: %v", s.settings.Provider, s.at, err)), Hint: hintFor(err, s.settings, s.zone)}
	}
	return nil
}

func (s *dnsSolver) where() string { return " as TXT record " + s.at }

// The pauses between two looks for a record.
const (
	firstLook = 500 * time.Millisecond
	slowLook  = 10 * time.Second
)

// await waits until every server that holds the zone has the record.
func (s *dnsSolver) await(ctx context.Context) error {
	limit := time.Duration(s.settings.Propagation)
	if limit == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for pause := firstLook; ; pause = min(pause*2, slowLook) {
		if last = s.everywhere(ctx); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return &Trouble{Code: "dns_slow", Message: cut(fmt.Sprintf("the record %s was written, but not seen within %s: %v", s.at, limit, last)), Hint: "give it more time with dns: {propagation: …}, or name the servers to ask under resolvers"}
		case <-time.After(pause):
		}
	}
}

func (s *dnsSolver) everywhere(ctx context.Context) error {
	zone := s.zone
	if zone == "" && !s.look.named {
		var err error
		if zone, err = s.look.zone(ctx, s.at); err != nil {
			return err
		}
	}
	return s.look.everywhere(ctx, zone, func(server string) (bool, error) { return s.look.seen(ctx, server, s.at, s.value) })
}

func (s *dnsSolver) cleanUp(ctx context.Context) error {
	if !s.written {
		return nil
	}
	s.written = false
	if err := s.provider.cleanUp(ctx, s.zone, s.at, s.value); err != nil {
		return fmt.Errorf("%s: remove the record %s: %w", s.settings.Provider, s.at, err)
	}
	return nil
}
