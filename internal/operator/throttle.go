package operator

import (
	"context"
	"net/netip"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/clock"
	"headgate/internal/credential"
)

// How often a client may try to sign in. Both bounds count every attempt, also one that
// succeeds. That of a user is wider, because others can use it up, and is not for who
// comes from a known address.
const (
	addressAttempts = 10
	userAttempts    = 30
	attemptsPeriod  = 5 * time.Minute
)

// throttle limits attempts by address and by user, and how many passwords are checked at
// once: each check uses 19 MiB and a processor for a while.
type throttle struct {
	now                      func() int64
	address, user, telling   bucket.Policy
	addresses, users, told   bucket.Table
	addressesSeed, usersSeed bucket.Seed
	known                    *known
	checks                   *credential.Checks
}

func newThrottle() *throttle {
	return &throttle{
		now:     clock.Now,
		address: bucket.New(addressAttempts, attemptsPeriod, 0), user: bucket.New(userAttempts, attemptsPeriod, 0),
		telling:       bucket.New(60, time.Minute, 0),
		addressesSeed: bucket.NewSeed(), usersSeed: bucket.NewSeed(),
		known:  newKnown(),
		checks: credential.NewChecks(),
	}
}

// try consumes one attempt of an address and of a user, which may be "". It returns an
// error when either has used up all.
func (t *throttle) try(address netip.Addr, user string) error {
	if address.IsValid() {
		_, wait := t.addresses.Admit(t.addressesSeed.Address(address.Unmap()), t.now(), &t.address, false)
		if wait > 0 {
			return throttled(time.Duration(wait))
		}
	}
	if user != "" && !t.known.has(address, user) {
		_, wait := t.users.Admit(t.usersSeed.String(user), t.now(), &t.user, false)
		if wait > 0 {
			return throttled(time.Duration(wait))
		}
	}
	return nil
}

// used returns an error when an address has used up all of its attempts. It consumes
// none.
func (t *throttle) used(address netip.Addr) error {
	if !address.IsValid() {
		return nil
	}
	if _, wait := t.addresses.Admit(t.addressesSeed.Address(address.Unmap()), t.now(), &t.address, true); wait > 0 {
		return throttled(time.Duration(wait))
	}
	return nil
}

// MayTry returns an error when all attempts of an address to sign in are used up. It
// consumes none: it is for operations that cost something before an attempt is made.
func (o *Operators) MayTry(from Identity) error { return o.throttle.used(from.Address) }

// tellable reports whether to send an event about a rejected sign-in: some in a
// minute are enough.
func (t *throttle) tellable() bool {
	_, wait := t.told.Admit(1, t.now(), &t.telling, false)
	return wait == 0
}

func throttled(wait time.Duration) error {
	return &Error{Code: CodeThrottled, Detail: "too many attempts to sign in", Remedy: "wait, then try again", RetryAfter: max(wait, time.Second)}
}

// check runs f when there is a place for it; the error says that there is none. isKnown
// means that the user is known at the address.
func (t *throttle) check(ctx context.Context, isKnown bool, f func()) error {
	release, ok := t.checks.Acquire(ctx, isKnown)
	if !ok {
		return &Error{Code: CodeOverloaded, Detail: "too many passwords are being checked", Remedy: "try again", RetryAfter: time.Second}
	}
	defer release()
	f()
	return nil
}
