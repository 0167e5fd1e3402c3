package basicauth

import (
	"crypto/sha256"
	"runtime"
	"strings"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/exchange"
)

// How many wrong passwords a client may send: so many at once, and then one each
// time so much has passed.
const (
	wrongAtOnce = 20
	wrongEach   = 3 * time.Second
)

// The bounds of waiting for a password to be hashed.
const (
	longestWait = 10 * time.Second
	// lookUp is how often a waiting request is checked for a client that has disconnected.
	lookUp = 250 * time.Millisecond
	// maxSlots is how many passwords are hashed at a time; on small machines
	// half of the processors.
	maxSlots = 4
)

// guard is what all rooms share and what outlives a plan. Safe for use by several
// goroutines.
type guard struct {
	verified *verified
	wrong    bucket.Table
	policy   bucket.Policy
	seed     bucket.Seed
	verifier verifier
	now      func() int64
}

func newGuard() *guard {
	g := &guard{
		verified: newVerified(), seed: bucket.NewSeed(), now: exchange.Now,
		policy: bucket.New(wrongAtOnce, wrongAtOnce*wrongEach, wrongAtOnce),
	}
	g.verifier.open(min(max(runtime.GOMAXPROCS(0)/2, 1), maxSlots))
	return g
}

// Retire does nothing: hashing that is under way ends by itself, and the rest is
// memory.
func (g *guard) Retire() {}

// Export returns who sent wrong passwords, for a process that replaces this one.
func (g *guard) Export() []byte { return bucket.Export(g.seed, &g.wrong) }

// Import accepts what Export returned.
func (g *guard) Import(data []byte) {
	if seed, ok := bucket.Import(data, &g.wrong, &g.policy); ok {
		g.seed = seed
	}
}

// scope returns what stands for a scope in the marks of its pairs.
func (g *guard) scope(name string) (s [scopeSize]byte) {
	sum := sha256.Sum256([]byte(name))
	copy(s[:], sum[:])
	return s
}

// check returns the user whose name and password these are, or the answer that
// the client gets.
func (g *guard) check(ex *exchange.Exchange, r *room, coded string) (*user, *exchange.Answer) {
	m := g.verified.mark(&r.scope, coded)
	if u := g.verified.find(&m, r.users, ex.Times.Start); u != nil {
		return u, nil
	}
	name, secret, ok := pair(coded)
	if !ok {
		return nil, r.garbled
	}
	q := &question{room: r, mark: m, client: g.seed.Address(ex.ClientIP), name: name, secret: secret}
	left, wait := g.wrong.Peek(q.client, g.now(), &g.policy)
	if wait > 0 {
		return nil, flood(wait)
	}
	q.clean = left == wrongAtOnce
	v := g.verifier.verify(ex, q, g.answer)
	ex.Times.Passed = exchange.Now()
	switch {
	case v.gone:
		return nil, exchange.Fail(exchange.ClientClosed, "the client left while its password waited to be checked")
	case v.wait > 0:
		return nil, flood(v.wait)
	case v.user == nil || r.users[name] == nil || r.users[name].hash.Text() != v.user.hash.Text():
		// the first request may have come before the last change of the plan
		return nil, r.mismatch(name)
	}
	return r.users[name], nil
}

// question is a pair that has to be hashed.
type question struct {
	room         *room
	mark         mark
	client       uint64
	clean        bool // the client sent no wrong pair of late
	name, secret string
}

// verdict is what becomes of a question.
type verdict struct {
	user *user // nil if the pair is wrong
	// wait is how long the client has to wait before it may ask again, if it may
	// not now.
	wait time.Duration
	gone bool
}

// answer hashes a password, with limited concurrency. An unknown name costs as much as a
// known one: another user's password is checked in its place, for the same name always that
// of the same user.
func (g *guard) answer(q *question) verdict {
	now := g.now()
	if u := g.verified.find(&q.mark, q.room.users, now); u != nil {
		return verdict{user: u} // who asked before it had the same pair
	}
	if _, wait := g.wrong.Peek(q.client, now, &g.policy); wait > 0 {
		return verdict{wait: wait}
	}
	u := q.room.users[q.name]
	checked := u
	if u == nil {
		checked = q.room.all[g.seed.String(q.name)%uint64(len(q.room.all))]
	}
	if !checked.hash.Matches(q.secret) || u == nil {
		g.wrong.Admit(q.client, g.now(), &g.policy, false)
		return verdict{}
	}
	g.verified.remember(&q.mark, u, g.now())
	return verdict{user: u}
}

// flood returns the answer to a client that has to wait.
func flood(wait time.Duration) *exchange.Answer {
	return &exchange.Answer{
		Reason: exchange.RateLimited, RetryAfter: int((wait + time.Second - 1) / time.Second),
		Cause: "basic_auth: too many wrong passwords from the client's address, or too many to check at once",
	}
}

// copied returns the question with texts that outlive the exchange.
func (q *question) copied() *question {
	c := *q
	c.name, c.secret = strings.Clone(q.name), strings.Clone(q.secret)
	return &c
}
