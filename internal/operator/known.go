package operator

import (
	"hash/maphash"
	"net/netip"
	"sync"
)

// maxKnown is how many addresses of users are remembered.
const maxKnown = 4096

// known remembers from which addresses users have signed in or used a session since
// the start. A client that tries passwords from everywhere can use up what unknown
// addresses share: the attempts of a user, and the capacity to check passwords. Known
// addresses have both for themselves, so they cannot be locked out. Concurrent calls
// are allowed.
type known struct {
	seed maphash.Seed
	mu   sync.Mutex
	all  map[uint64]struct{} // by address and user; guarded by mu
}

func newKnown() *known { return &known{seed: maphash.MakeSeed(), all: map[uint64]struct{}{}} }

func (k *known) key(address netip.Addr, user string) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	b := address.Unmap().As16()
	h.Write(b[:])
	h.WriteString(user)
	return h.Sum64()
}

// add remembers an address of a user. Where there are too many, any other is forgotten.
func (k *known) add(address netip.Addr, user string) {
	if !address.IsValid() || user == "" {
		return
	}
	key := k.key(address, user)
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.all[key]; !ok && len(k.all) >= maxKnown {
		for other := range k.all {
			delete(k.all, other)
			break
		}
	}
	k.all[key] = struct{}{}
}

// has reports whether a user has come from an address.
func (k *known) has(address netip.Addr, user string) bool {
	if !address.IsValid() || user == "" {
		return false
	}
	key := k.key(address, user)
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.all[key]
	return ok
}
