package upstream

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"headgate/internal/exchange"
	"headgate/internal/resolve"
)

// mostMembers is how many servers a route has at most, however many addresses its
// names stand for.
const mostMembers = 256

// expansion makes several servers of a name that stands for several addresses. It
// looks at the names when a request comes, so it costs nothing while there are
// none, and puts Servers of its own in place of those of the configuration when
// there is more than one address.
type expansion struct {
	// constant
	of       *Servers
	targets  []Target
	settings Settings
	policy   Policy
	env      exchange.Env
	names    []*resolve.Name // of the targets; nil for those that are addresses

	seen    atomic.Uint64 // the versions of the names that members were made of
	members atomic.Pointer[Servers]
	held    *holdings
}

// holdings is what the members of a route hold: connections, and what is known of
// them. It outlives plans that leave the route its name.
type holdings struct {
	mu struct {
		sync.Mutex
		kept    map[string]exchange.Kept
		retired bool
	}
}

// Retire ends what the members hold. Who still goes by them opens nothing more.
func (h *holdings) Retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.retired = true
	for _, kept := range h.mu.kept {
		kept.Retire()
	}
	h.mu.kept = nil
}

// expand gives s an expansion if a server of it goes by a name.
func (s *Servers) expand(targets []Target, settings Settings, policy Policy, env exchange.Env) {
	e := &expansion{of: s, targets: targets, settings: settings, policy: policy,
		env: exchange.Env{Log: env.Log, Clock: env.Clock}}
	e.names = make([]*resolve.Name, len(targets))
	some := false
	for i, srv := range s.list {
		if n := srv.pool.names; n != nil && !n.Fixed() {
			e.names[i], some = n.Name, true
		}
	}
	if !some {
		return
	}
	s.expansion = e
	key := fmt.Sprintf("members %s %s", policy.Proxy, policy.Route)
	e.held = env.Keep(key, func() exchange.Kept { return &holdings{} }).(*holdings)
}

// current returns the servers that ex is shared among at this moment.
func (s *Servers) current(now int64) *Servers {
	e := s.expansion
	if e == nil {
		return s
	}
	versions := uint64(0)
	for _, n := range e.names {
		if n != nil {
			versions += n.Poll(now)
		}
	}
	if versions != e.seen.Load() {
		e.renew(versions)
	}
	if m := e.members.Load(); m != nil {
		return m
	}
	return s
}

// renew makes the members anew. Whoever comes while another does goes by those that
// there are.
func (e *expansion) renew(versions uint64) {
	h := e.held
	if !h.mu.TryLock() {
		return
	}
	defer h.mu.Unlock()
	if h.mu.retired {
		return // only exchanges under way come here yet
	}
	targets, several := e.resolved()
	before := h.mu.kept
	h.mu.kept = map[string]exchange.Kept{}
	var members *Servers
	if several {
		members = e.newMembers(targets, before)
	}
	e.members.Store(members)
	e.seen.Store(versions)
	for key, kept := range before {
		if h.mu.kept[key] == nil {
			kept.Retire()
		}
	}
}

// newMembers returns the servers of targets, which hold what those before them held
// of the same addresses. The holdings are locked.
func (e *expansion) newMembers(targets []Target, before map[string]exchange.Kept) *Servers {
	env, now := e.env, e.held.mu.kept
	env.Keep = func(key string, open func() exchange.Kept) exchange.Kept {
		kept := now[key]
		if kept == nil {
			kept = before[key]
		}
		if kept == nil {
			kept = open()
		}
		now[key] = kept
		return kept
	}
	policy := e.policy
	policy.Expand = false
	members := New(targets, e.settings, policy, env)
	members.retry = e.of.retry // one budget for the route
	return members
}

// resolved returns a target for each address, and whether there are more of them
// than servers in the configuration.
func (e *expansion) resolved() (out []Target, several bool) {
	for i, t := range e.targets {
		var set []resolve.Endpoint
		if e.names[i] != nil {
			set = e.names[i].Endpoints()
		}
		if len(set) < 2 {
			out = append(out, t)
			continue
		}
		several = true
		for _, m := range set {
			out = append(out, t.member(m, set[0].Priority))
		}
	}
	return out[:min(len(out), max(mostMembers, len(e.targets)))], several
}

// member returns the target of one address of t. A target of a service has the
// weight of its record, and those of lower priorities are backups.
func (t Target) member(m resolve.Endpoint, best int) Target {
	texts := make([]string, len(m.Addresses))
	for i, a := range m.Addresses {
		texts[i] = a.String()
	}
	if t.Network == "srv" {
		t.Network = ""
		if t.Weight > 0 {
			t.Weight = max(m.Weight, 1)
		}
		t.Backup = t.Backup || m.Priority > best
	}
	t.Address, t.Member = strings.Join(texts, ","), texts[0]
	return t
}
