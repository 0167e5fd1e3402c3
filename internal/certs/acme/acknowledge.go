package acme

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/store"
)

// An authority may come to any of the machines. It is notified only after those that run have
// acknowledged the answer, each under store.PrefixAcknowledged with the digest of its place
// and the name of the machine.

const (
	// acknowledgeWait is how long an order waits for the other machines.
	acknowledgeWait = 5 * time.Second
	// acknowledgeLook is the pause between two looks.
	acknowledgeLook = 50 * time.Millisecond
	// acknowledgeLife is for how long an acknowledgement is kept.
	acknowledgeLife = 10 * time.Minute
)

// acknowledgedKey returns under which prefix an answer is acknowledged, which a node's name
// follows. The value is part of it, as a place can have another answer later.
func acknowledgedKey(place string, value []byte) string {
	sum := sha256.Sum256([]byte(place + "\x00" + string(value)))
	return store.PrefixAcknowledged + hex.EncodeToString(sum[:16]) + "/"
}

// acceptAnswer takes the answer of another machine, and acknowledges it.
func (m *Manager) acceptAnswer(ctx context.Context, place string, value []byte) {
	if err := m.answer(place, value); err != nil {
		m.log.Warn("the answer of another machine to a challenge cannot be used", "place", place, "error", err)
		return
	}
	if _, own := m.own.Load(place); own || m.node == "" {
		return
	}
	_, err := m.store.Commit(ctx, store.Change{
		Put: []store.Entry{{Key: acknowledgedKey(place, value) + m.node, Value: []byte("1"), TTL: acknowledgeLife}},
		Who: who, Why: "challenge acknowledged by " + m.node,
	})
	if err != nil && ctx.Err() == nil {
		m.log.Warn("the answer of another machine to a challenge is not acknowledged", "error", err)
	}
}

// awaitOthers waits until all other machines that run answer as the solver does. It returns
// those that do not after a while.
func (s *portSolver) awaitOthers(ctx context.Context) (missing []string, err error) {
	if s.m.node == "" {
		return nil, nil
	}
	end := time.NewTimer(acknowledgeWait)
	defer end.Stop()
	look := time.NewTicker(acknowledgeLook)
	defer look.Stop()
	for {
		if missing, err = s.missing(ctx); err != nil || len(missing) == 0 {
			return missing, err
		}
		select {
		case <-look.C:
		case <-end.C:
			return missing, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// missing returns the machines that run and have not acknowledged the answer.
func (s *portSolver) missing(ctx context.Context) ([]string, error) {
	now, err := s.m.store.Now(ctx)
	if err != nil {
		return nil, storeTrouble(err)
	}
	nodes, err := store.Nodes(ctx, s.m.store)
	if err != nil {
		return nil, storeTrouble(err)
	}
	prefix := acknowledgedKey(s.name, s.value)
	list, err := s.m.store.List(ctx, prefix, "", store.MaxPage)
	if err != nil {
		return nil, storeTrouble(err)
	}
	var missing []string
	for _, n := range nodes {
		if n.Name != s.m.node && n.Running(now) && !slices.ContainsFunc(list, func(e store.Meta) bool { return e.Key == prefix+n.Name }) {
			missing = append(missing, n.Name)
		}
	}
	return missing, nil
}

// errOthers means that other machines have not confirmed that they serve a response; dns-01
// can be used instead.
var errOthers = errors.New("other machines do not respond")

// awaitOthers waits for the other machines before the authority is notified. The error is
// errOthers if they do not answer and the entry has dns-01, too.
func (o *order) awaitOthers(ctx context.Context, s solver, name string) error {
	p, ok := s.(*portSolver)
	if !ok {
		return nil
	}
	missing, err := p.awaitOthers(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	o.step(Pending, "%s: %s not acknowledged the answer to %s within %s", name, verbFor(missing), p.kind, acknowledgeWait)
	if _, err := netip.ParseAddr(name); err != nil && o.entry.Challenge == Auto && o.entry.DNS != nil {
		return errOthers
	}
	return nil
}

func verbFor(nodes []string) string {
	if len(nodes) == 1 {
		return "machine " + nodes[0] + " has"
	}
	return "machines " + strings.Join(nodes, ", ") + " have"
}

// recordLease is for how long a record in the DNS belongs to one machine: writing it takes
// seconds.
const recordLease = 2 * time.Minute

// leaseRecord waits until this machine alone may write the record with a name. Its context
// ends when that is over.
func (m *Manager) leaseRecord(ctx context.Context, record string) (context.Context, func(), error) {
	name := "acme/dns/" + record
	if store.CheckName(name) != nil {
		sum := sha256.Sum256([]byte(record))
		name = "acme/dns/" + hex.EncodeToString(sum[:])
	}
	var lease *store.Lease
	for {
		var err error
		lease, err = m.store.Acquire(ctx, name, recordLease)
		if err == nil {
			break
		}
		if !errors.As(err, new(*store.Held)) {
			return nil, nil, fmt.Errorf("acquire the lease of the record: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("acquire the lease of the record: %w", err)
		case <-time.After(acknowledgeLook * 4):
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-lease.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-done
		end, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		if err := lease.Release(end); err != nil {
			m.log.Warn("release the lease of a DNS record", "record", record, "error", err)
		}
	}, nil
}
