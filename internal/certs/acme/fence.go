package acme

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"headgate/internal/store"
)

// takeLease makes this process the one that orders the certificate. The context
// ends when it is not any more.
func (o *order) takeLease(ctx context.Context) (context.Context, func(), error) {
	lease, err := o.m.store.Acquire(ctx, "acme/"+o.record.Name, leaseTime)
	var held *store.Held
	switch {
	case errors.As(err, &held):
		return nil, nil, &Trouble{Code: "ordered_elsewhere", Message: "another process orders this certificate: " + held.By, Hint: "headgate will check again", elsewhere: true}
	case err != nil:
		return nil, nil, storeTrouble(err)
	}
	o.lease = lease
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(leaseTime / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-lease.Lost():
				cancel()
				return
			case <-tick.C:
				if err := lease.Renew(ctx); err != nil {
					o.m.log.Warn("renew the lease of an order", "certificate", o.record.Title(), "error", err)
				}
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-done
		end, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		if err := lease.Release(end); err != nil {
			o.m.log.Warn("release the lease of an order", "certificate", o.record.Title(), "error", err)
		}
	}, nil
}

// adopt continues from what another process has done since the record was read: a
// certificate that it obtained, or an unfinished order.
func (o *order) adopt(ctx context.Context) error {
	e, err := o.m.store.Get(ctx, store.PrefixOrder+o.record.Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return storeTrouble(err)
	}
	kept := &Record{}
	if err := json.Unmarshal(e.Value, kept); err != nil || kept.Name != o.record.Name {
		return nil // a new one is written
	}
	if kept.Open != nil && o.record.Open == nil {
		o.record.Open, o.record.Timeline = kept.Open, kept.Timeline
	}
	if !kept.NotAfter.After(o.record.NotAfter) {
		return nil
	}
	found, err := o.m.store.Get(ctx, store.PrefixCertificate+o.record.Name)
	if err != nil {
		return storeTrouble(err)
	}
	issued, err := ParseIssued(o.record.Name, found.Value)
	if err != nil {
		return nil // it is ordered anew
	}
	kept.Entry, kept.Names = o.record.Entry, o.record.Names
	*o.record = *kept
	o.m.install(issued)
	o.adopted = !o.forced && o.m.dueAt(o.entry, o.record, o.names).After(o.m.now())
	return nil
}

func leaseLost(l *store.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}
