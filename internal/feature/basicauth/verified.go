package basicauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// The shape of the memory of verified pairs: 16 384 of them at most, each for ten
// minutes.
const (
	verifiedSets = 4096
	verifiedWays = 4
	verifiedFor  = 10 * time.Minute
)

// mark stands for a pair of name and password, where it was shown. It says
// nothing of them to who does not have the key.
type mark [sha256.Size]byte

// verified caches pairs that a hash has confirmed. It holds no passwords and never caches a
// wrong pair. A pair belongs to a user with a hash: it is invalid if the user's hash has
// changed. It is safe for concurrent use, without blocking.
type verified struct {
	inner, outer [sha256.BlockSize]byte // the key, as HMAC uses it
	sets         [verifiedSets][verifiedWays]atomic.Pointer[yes]
}

// yes is a pair that was right.
type yes struct {
	mark  mark
	name  string
	hash  string // that said so
	until int64
}

func newVerified() *verified {
	v := &verified{}
	var key [32]byte
	rand.Read(key[:]) // never fails: crypto/rand ends the process instead
	copy(v.inner[:], key[:])
	copy(v.outer[:], key[:])
	for i := range v.inner {
		v.inner[i] ^= 0x36
		v.outer[i] ^= 0x5c
	}
	return v
}

// scopeSize is the size of what stands for a scope in a mark.
const scopeSize = 16

// mark returns the mark of credentials in a scope: HMAC-SHA256 (RFC 2104), put
// together on the stack.
func (v *verified) mark(scope *[scopeSize]byte, coded string) mark {
	var buf [sha256.BlockSize + scopeSize + longestCoded]byte
	b := append(append(append(buf[:0], v.inner[:]...), scope[:]...), coded...)
	sum := sha256.Sum256(b)
	var last [sha256.BlockSize + sha256.Size]byte
	return sha256.Sum256(append(append(last[:0], v.outer[:]...), sum[:]...))
}

func (v *verified) set(m *mark) *[verifiedWays]atomic.Pointer[yes] {
	return &v.sets[binary.LittleEndian.Uint64(m[:])%verifiedSets]
}

// find returns the user of a pair that was right, or nil.
func (v *verified) find(m *mark, users map[string]*user, now int64) *user {
	set := v.set(m)
	for i := range set {
		y := set[i].Load()
		if y == nil || subtle.ConstantTimeCompare(y.mark[:], m[:]) == 0 || y.until <= now {
			continue
		}
		if u := users[y.name]; u != nil && u.hash.Text() == y.hash {
			return u
		}
	}
	return nil
}

// remember notes that a pair was right. It takes the place of the pair that
// expires first when there is none left.
func (v *verified) remember(m *mark, u *user, now int64) {
	set := v.set(m)
	oldest := 0
	for i := range set {
		y := set[i].Load()
		if y == nil || y.mark == *m {
			oldest = i
			break
		}
		if y.until < set[oldest].Load().until {
			oldest = i
		}
	}
	set[oldest].Store(&yes{mark: *m, name: u.name, hash: u.hash.Text(), until: now + int64(verifiedFor)})
}
