package acme

import (
	"math/big"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// TestRenewalsComeByThemselves has certificates live for seconds, so that what takes months
// happens in one test: each is renewed by itself before its end, by ARI and by its lifetime,
// and an authority that fails for a while delays it and no more.
func TestRenewalsComeByThemselves(t *testing.T) {
	for _, by := range []Renew{ByARI, ByLifetime} {
		t.Run(string(by), func(t *testing.T) {
			a := start(t, acmetest.Settings{Life: 12 * time.Second})
			u := a.manager(newStore())
			e := a.entry()
			e.Renew = by
			u.setWanted(e, []string{"shop.example.com"})
			u.state("shop.example.com", Valid)
			seen := map[string]bool{}
			serial := func() *big.Int { return u.certificate("shop.example.com").Certificate.Leaf.SerialNumber }
			for round := range 2 {
				was := serial()
				if seen[was.String()] {
					t.Errorf("round %d: serial %v was there before", round, was)
				}
				seen[was.String()] = true
				if round == 1 { // the authority fails, and comes back
					a.Fail(8)
				}
				u.until("shop.example.com", "renewed by itself", func(r *Record) bool { return r.State == Valid && serial().Cmp(was) != 0 })
			}
			if n := a.Orders(); n < 3 || n > 12 {
				t.Errorf("%d orders for 3 certificates", n)
			}
		})
	}
}
