package forwardauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// The bounds of what is kept: 4 096 answers, of 4 KiB each.
const (
	keptSets    = 1024
	keptWays    = 4
	maxKeptBody = 4 << 10
)

// kept contains responses that allow requests, each for a session and the content
// of the subrequest. Of a session only a hash is stored that only this process can
// compute. Concurrent calls are allowed.
type kept struct {
	ttl     time.Duration
	cookie  string
	name    string // of a field
	anyPath bool
	secret  [32]byte
	sets    [keptSets][keptWays]atomic.Pointer[word]
}

// word is what the auth server said.
type word struct {
	sum   sum
	said  header.List
	until int64
}

type sum [sha256.Size]byte

func newKept(c *Cache) *kept {
	k := &kept{ttl: c.TTL.D(), anyPath: c.AnyPath}
	rand.Read(k.secret[:]) // never fails: crypto/rand ends the process instead
	k.name, _ = strings.CutPrefix(c.Key, "header:")
	if name, ok := strings.CutPrefix(c.Key, "cookie:"); ok {
		k.cookie, k.name = name, ""
	}
	return k
}

// Retire does nothing: what is kept is memory.
func (k *kept) Retire() {}

// sum returns the hash of a request of a session, and whether it has one.
// Everything that an auth server is likely to consider is in it, each with its
// length, so that no two requests have the same.
func (k *kept) sum(ex *exchange.Exchange) (s sum, ok bool) {
	if k == nil {
		return s, false
	}
	rq := &ex.Request
	session := ""
	if k.cookie != "" {
		session = rq.Header.CookieValue(k.cookie)
	} else {
		session, _ = rq.Header.Lookup(k.name)
	}
	if session == "" {
		return s, false
	}
	method, path, query := rq.Method, rq.Path, rq.Query
	if k.anyPath {
		method, path, query = "", "", ""
	}
	b := append(ex.Text.Buffer(), k.secret[:]...)
	for _, part := range [...]string{
		session, rq.Scheme, rq.Host, method, path, query, rq.Upgrade, ex.Conn.ClientFingerprint,
		ex.Told.Method, ex.Told.Host, ex.Told.URI,
	} {
		b = appendPart(b, part)
	}
	ip := ex.ClientIP.As16()
	b = append(b, ip[:]...)
	for _, f := range rq.Header.All() {
		if f.ID == header.Authorization {
			b = appendPart(b, f.Value)
		}
	}
	return sha256.Sum256(b), true
}

func appendPart(b []byte, part string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
}

func (k *kept) set(s *sum) *[keptWays]atomic.Pointer[word] {
	return &k.sets[binary.LittleEndian.Uint64(s[:])%keptSets]
}

// letIn lets a request pass as the auth server said a moment ago, if it did.
func (k *kept) letIn(r *room, ex *exchange.Exchange, s *sum) bool {
	set := k.set(s)
	for i := range set {
		if w := set[i].Load(); w != nil && w.sum == *s && w.until > ex.Times.Start {
			r.letIn(ex, &w.said)
			return true
		}
	}
	return false
}

// remember keeps what the auth server said, unless it is long or sets a cookie,
// which is for one response only.
func (k *kept) remember(s *sum, said *header.List, names []named) {
	if said.Has(header.SetCookie) {
		return
	}
	w := &word{sum: *s, until: exchange.Now() + int64(k.ttl)}
	size := 0
	for _, f := range said.All() {
		for i := range names {
			if names[i].is(&f) {
				size += len(f.Name) + len(f.Value)
				w.said.AddKnown(f.ID, strings.Clone(f.Name), strings.Clone(f.Value))
				break
			}
		}
	}
	if size > maxKeptBody {
		return
	}
	set := k.set(s)
	oldest := 0
	for i := range set {
		old := set[i].Load()
		if old == nil || old.sum == *s {
			oldest = i
			break
		}
		if old.until < set[oldest].Load().until {
			oldest = i
		}
	}
	set[oldest].Store(w)
}
