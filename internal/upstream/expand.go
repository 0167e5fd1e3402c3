package upstream

import (
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"headgate/internal/exchange"
	"headgate/internal/server/resolve"
)

// maxMembers limits the servers of a route after names are resolved.
const maxMembers = 256

// expansion makes servers of the addresses of names. It resolves them when a request
// arrives, so that it has no cost without requests, and replaces the configured Servers as
// soon as a name is resolved: with a server for each address. A name whose address changes
// therefore does not use connections to the previous one.
type expansion struct {
	// constant
	of       *Servers
	targets  []Target
	settings Settings
	policy   Policy
	env      exchange.Env
	names    []*resolve.Name          // of the targets; nil for those that are addresses
	own      map[string]exchange.Kept // what is kept for the servers of the configuration

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

// Retire releases the members. Remaining users open no more connections.
func (h *holdings) Retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.retired = true
	for _, kept := range h.mu.kept {
		kept.Retire()
	}
	h.mu.kept = nil
}

// noting returns an env that notes what is kept.
func noting(env exchange.Env, in map[string]exchange.Kept) exchange.Env {
	keep := env.Keep
	env.Keep = func(key string, open func() exchange.Kept) exchange.Kept {
		kept := keep(key, open)
		in[key] = kept
		return kept
	}
	return env
}

// named reports whether a target has a host name, so that it can be several servers.
func (t Target) named() bool {
	if t.Network == "unix" {
		return false
	}
	_, err := netip.ParseAddrPort(t.Address)
	return err != nil
}

// expand adds an expansion to s if one of its servers has a host name. Own are the
// kept values of s.
func (s *Servers) expand(targets []Target, settings Settings, policy Policy, env exchange.Env, own map[string]exchange.Kept) {
	e := &expansion{of: s, targets: targets, settings: settings, policy: policy, own: own,
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
	of := [2]string{policy.Proxy, policy.Route}
	e.held = exchange.Keep(env, "members", of, func() *holdings { return &holdings{} })
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

// renew makes new members. Concurrent callers use the existing ones.
func (e *expansion) renew(versions uint64) {
	h := e.held
	if !h.mu.TryLock() {
		return
	}
	defer h.mu.Unlock()
	if h.mu.retired {
		return // only exchanges under way come here yet
	}
	targets, known := e.resolved()
	before := h.mu.kept
	h.mu.kept = map[string]exchange.Kept{}
	var members *Servers
	if known {
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
		// What is the same server is known already, and not held here.
		if kept := e.own[key]; kept != nil {
			return kept
		}
		kept := now[key]
		if kept == nil {
			kept = before[key]
		}
		if kept == nil {
			kept = open()
			if b, ok := kept.(interface{ Start() }); ok {
				b.Start() // the route is in use
			}
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

// resolved returns a target for each address, and whether a name is known.
func (e *expansion) resolved() (out []Target, known bool) {
	for i, t := range e.targets {
		var set []resolve.Endpoint
		if e.names[i] != nil {
			set = e.names[i].Endpoints()
		}
		known = known || len(set) > 0
		switch len(set) {
		case 0:
			out = append(out, t)
		case 1:
			t.Reach = texts(set[0])
			out = append(out, t)
		default:
			for _, m := range set {
				out = append(out, t.member(m, set[0].Priority))
			}
		}
	}
	return out[:min(len(out), max(maxMembers, len(e.targets)))], known
}

// texts returns the addresses of an endpoint in the form for resolve.New.
func texts(e resolve.Endpoint) string {
	all := make([]string, len(e.Addresses))
	for i, a := range e.Addresses {
		all[i] = a.String()
	}
	return strings.Join(all, ",")
}

// member returns the target of one address of t. A target of a service has the
// weight of its record, and those of lower priorities are backups.
func (t Target) member(m resolve.Endpoint, best int) Target {
	if t.Network == "srv" {
		t.Network = ""
		if t.Weight > 0 {
			t.Weight = max(m.Weight, 1)
		}
		t.Backup = t.Backup || m.Priority > best
	}
	t.Address, t.Member = texts(m), m.Addresses[0].String()
	return t
}
