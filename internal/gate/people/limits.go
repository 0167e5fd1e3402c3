package people

import (
	"fmt"
	"net/netip"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/clock"
)

// How many sign-ins may fail. Only failures count. An account has few, because a guess can
// come from anywhere; a network has more, because many people may share it.
const (
	accountFailures = 10
	accountPeriod   = time.Hour
	addressFailures = 20
	networkFailures = 100
	addressPeriod   = 5 * time.Minute
)

// limits count failed sign-ins: by account, by address (IPv6 by its /64, which one client
// has whole) and by /48. Browsers in which the owner of an account has signed in before
// have a count of their own, so guesses of others never keep the owner out.
type limits struct {
	now                       func() int64
	account, address, network bucket.Policy
	accounts, addresses       bucket.Table
	networks, browsers        bucket.Table
	accountSeed, addressSeed  bucket.Seed
	networkSeed, browserSeed  bucket.Seed
}

func newLimits() *limits {
	return &limits{
		now:     clock.Now,
		account: bucket.New(accountFailures, accountPeriod, 0), address: bucket.New(addressFailures, addressPeriod, 0),
		network:     bucket.New(networkFailures, addressPeriod, 0),
		accountSeed: bucket.NewSeed(), addressSeed: bucket.NewSeed(), networkSeed: bucket.NewSeed(), browserSeed: bucket.NewSeed(),
	}
}

// Throttled is the error of a sign-in that was not looked at.
type Throttled struct {
	// Wait is after how long to try again.
	Wait time.Duration
}

// Error says how long to wait.
func (t *Throttled) Error() string {
	return fmt.Sprintf("too many failed sign-ins; try again in %v", t.Wait.Round(time.Second))
}

// count is one table with a key of it.
type count struct {
	table  *bucket.Table
	key    uint64
	policy *bucket.Policy
}

// counts returns those that an attempt is held against. Account is "" for attempts that name
// none; browser identifies a known browser of the account, "" for others.
func (l *limits) counts(account, browser string, from netip.Addr) []count {
	if browser != "" {
		return []count{{&l.browsers, l.browserSeed.String(browser), &l.account}}
	}
	var all []count
	if account != "" {
		all = append(all, count{&l.accounts, l.accountSeed.String(account), &l.account})
	}
	if from = from.Unmap(); from.Is4() {
		return append(all, count{&l.addresses, l.addressSeed.Address(from), &l.address})
	}
	if from.Is6() {
		one, _ := from.WithZone("").Prefix(64)
		site, _ := from.WithZone("").Prefix(48)
		all = append(all, count{&l.addresses, l.addressSeed.Address(one.Addr()), &l.address}, count{&l.networks, l.networkSeed.Address(site.Addr()), &l.network})
	}
	return all
}

// check returns a *Throttled when one of the counts is used up. It changes none.
func (l *limits) check(all []count) error {
	var wait int64
	for _, c := range all {
		_, w := c.table.Admit(c.key, l.now(), c.policy, true)
		wait = max(wait, w)
	}
	if wait > 0 {
		return &Throttled{max(time.Duration(wait), time.Second)}
	}
	return nil
}

// failed adds a failure to all counts.
func (l *limits) failed(all []count) {
	for _, c := range all {
		c.table.Admit(c.key, l.now(), c.policy, false)
	}
}
