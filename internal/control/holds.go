package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/server/health"
	"headgate/internal/store"
)

// HeldServer is a server about which an operator has decided something at run time. No
// document is touched. It lasts over changes of the configuration that leave the server
// where it is, and over restarts.
type HeldServer struct {
	// Kind is the kind of the proxy: proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind"`
	// Proxy is its name.
	Proxy string `json:"proxy"`
	// Server is the address of the server, as the configuration has it.
	Server string `json:"server"`
	// Hold is draining, disabled, or enabled when a hold has ended.
	Hold string `json:"hold"`
	// Since is when it began.
	Since time.Time `json:"since"`
	// Until is when it ends by itself. Absent is never.
	Until time.Time `json:"until,omitzero"`
	// Who decided it.
	Who string `json:"who,omitempty"`
	// Why is the reason that the operator gave.
	Why string `json:"why,omitempty"`
	// Active is the number of requests, connections or sessions on it.
	Active int `json:"active"`
}

// Enabled is the HeldServer.Hold of a server that is not held any more.
const Enabled = "enabled"

// MaxHold is the longest time after which a hold ends by itself.
const MaxHold = 30 * 24 * time.Hour

// maxHeld is how many servers are held at once.
const maxHeld = 10_000

// The errors of HoldServer.
var (
	ErrNoServer = errors.New("the proxy has no such server")
	ErrNotHeld  = errors.New("the server is not drained or disabled")
	ErrHeldMany = fmt.Errorf("%d servers are drained or disabled already", maxHeld)
)

// holds are the held servers, and what is kept of them.
type holds struct {
	*health.Holds
	store   store.Store
	log     *slog.Logger
	changed func(HeldServer)
	node    string // of this machine among those that share the store, "" if none do
	// unknown reports whether a provider of a configuration has not reported its objects
	// yet; it is constant after New.
	unknown func(*config.Config) bool

	acting sync.Mutex // held while one is decided about, until it is kept and acts
	mu     struct {
		sync.Mutex
		held   map[health.HoldKey]*holding
		closed bool
	}
}

// holding is one held server.
type holding struct {
	HeldServer
	timer *time.Timer // nil when it has no end
}

func newHolds(st store.Store, log *slog.Logger, changed func(HeldServer)) *holds {
	h := &holds{Holds: health.NewHolds(), store: st, log: log, changed: changed, unknown: func(*config.Config) bool { return false }}
	h.mu.held = map[health.HoldKey]*holding{}
	return h
}

// protocols are the protocols of servers by the kind of their proxy.
var protocols = map[string]string{"proxies": "http", "tcp_proxies": "tcp", "udp_proxies": "udp"}

// keyOf returns by which key a server is held.
func (s *HeldServer) keyOf() health.HoldKey {
	protocol := protocols[s.Kind]
	server := s.Server
	if protocol != "http" && !strings.HasPrefix(server, protocol+"://") {
		server = protocol + "://" + server
	}
	return health.HoldKey{Protocol: protocol, Proxy: s.Proxy, Server: server}
}

// storeKey returns where a hold is kept.
func storeKey(k health.HoldKey) string {
	sum := sha256.Sum256([]byte(k.Protocol + "\x00" + k.Proxy + "\x00" + k.Server))
	return store.PrefixHeld + hex.EncodeToString(sum[:16])
}

// remember holds the servers that were held when the process ended.
func (h *holds) remember(ctx context.Context) {
	for _, e := range h.kept(ctx) {
		if s, hold, ok := h.read(e); ok {
			h.act(s, hold) // one whose time is over ends at once
		}
	}
}

// kept returns what is kept of decisions.
func (h *holds) kept(ctx context.Context) []store.Entry {
	entries, _, err := h.store.Snapshot(ctx, store.PrefixHeld)
	if err != nil {
		h.log.Error("which servers are drained or disabled cannot be read", "error", err)
	}
	return entries
}

// read returns a decision that is kept.
func (h *holds) read(e store.Entry) (s HeldServer, hold exchange.Hold, ok bool) {
	err := json.Unmarshal(e.Value, &s)
	if err == nil {
		hold, ok = exchange.ParseHold(s.Hold)
	}
	if !ok || protocols[s.Kind] == "" || storeKey(s.keyOf()) != e.Key {
		h.log.Warn("decision about a server cannot be read", "key", e.Key, "error", err)
		return s, hold, false
	}
	return s, hold, true
}

// refresh takes all decisions of other machines.
func (h *holds) refresh(ctx context.Context) {
	keys := map[string]bool{}
	for _, e := range h.kept(ctx) {
		keys[e.Key] = true
	}
	for _, s := range h.list() {
		keys[storeKey(s.keyOf())] = true
	}
	for key := range keys {
		h.follow(ctx, key)
	}
}

// follow takes the decision under a key as it is now.
func (h *holds) follow(ctx context.Context, key string) {
	h.acting.Lock()
	defer h.acting.Unlock()
	e, err := h.store.Get(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		for _, s := range h.list() {
			if storeKey(s.keyOf()) == key {
				s.Hold, s.Since, s.Until, s.Why = Enabled, time.Now().UTC(), time.Time{}, "decided on another machine"
				h.act(s, exchange.NotHeld)
				h.report(s)
			}
		}
		return
	case err != nil:
		h.log.Error("the decision of another machine about a server cannot be read", "error", err)
		return
	}
	s, hold, ok := h.read(e)
	if !ok || h.has(s) {
		return
	}
	h.act(s, hold)
	h.report(s)
}

// has reports whether a server is held by just this decision.
func (h *holds) has(s HeldServer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.mu.held[s.keyOf()]
	if now == nil {
		return false
	}
	have := now.HeldServer
	return have.Hold == s.Hold && have.Since.Equal(s.Since) && have.Until.Equal(s.Until) && have.Who == s.Who && have.Why == s.Why
}

// act makes a decision so.
func (h *holds) act(s HeldServer, hold exchange.Hold) int {
	key := s.keyOf()
	h.mu.Lock()
	if old := h.mu.held[key]; old != nil && old.timer != nil {
		old.timer.Stop()
	}
	delete(h.mu.held, key)
	if hold != exchange.NotHeld {
		now := &holding{HeldServer: s}
		if !s.Until.IsZero() && !h.mu.closed {
			now.timer = time.AfterFunc(s.Until.Sub(store.Time(h.store)), func() { h.expire(now) })
		}
		h.mu.held[key] = now
	}
	h.mu.Unlock()
	return h.Set(key, exchange.Held{Hold: hold, Until: s.Until, Who: s.Who, Why: s.Why})
}

// expire ends a hold whose time is over.
func (h *holds) expire(of *holding) {
	h.acting.Lock()
	defer h.acting.Unlock()
	h.mu.Lock()
	still := h.mu.held[of.keyOf()] == of && !h.mu.closed
	h.mu.Unlock()
	if !still {
		return
	}
	s := of.HeldServer
	s.Hold, s.Since, s.Until, s.Who, s.Why = Enabled, time.Now().UTC(), time.Time{}, "headgate", "the time is over"
	if _, err := h.store.Commit(context.Background(), store.Change{Delete: []string{storeKey(s.keyOf())}}); err != nil {
		h.log.Error("that a server is enabled again could not be kept", "proxy", s.Proxy, "server", s.Server, "error", err)
	}
	h.act(s, exchange.NotHeld)
	h.report(s)
}

// report logs a decision and notifies the watcher.
func (h *holds) report(s HeldServer) {
	attrs := []any{"proxy", s.Proxy, "server", s.Server, "state", s.Hold, "who", s.Who}
	if s.Why != "" {
		attrs = append(attrs, "why", s.Why)
	}
	if !s.Until.IsZero() {
		attrs = append(attrs, "until", s.Until.Format(time.RFC3339))
	}
	h.log.Info("server is "+s.Hold, attrs...)
	h.changed(s)
}

// list returns the held servers, by proxy and address.
func (h *holds) list() []HeldServer {
	h.mu.Lock()
	all := make([]HeldServer, 0, len(h.mu.held))
	for _, one := range h.mu.held {
		all = append(all, one.HeldServer)
	}
	h.mu.Unlock()
	for i := range all {
		all[i].Active = h.Active(all[i].keyOf())
	}
	slices.SortFunc(all, func(a, b HeldServer) int {
		return cmp.Or(cmp.Compare(a.Proxy, b.Proxy), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server))
	})
	return all
}

// close ends the timers. What is held stays so.
func (h *holds) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.closed = true
	for _, one := range h.mu.held {
		if one.timer != nil {
			one.timer.Stop()
		}
	}
}

// Hold decides about a server at run time: hold is exchange.NotHeld to give it requests
// again. Of s the fields Kind, Proxy, Server, Who and Why are taken, and Until. The
// records are kept in the same commit. The error is ErrNoServer, ErrNotHeld, ErrHeldMany,
// or that of the store.
func (c *Control) Hold(ctx context.Context, s HeldServer, hold exchange.Hold, records ...store.Record) (HeldServer, error) {
	h := c.holds
	h.acting.Lock()
	defer h.acting.Unlock()
	s, err := c.decide(s, hold)
	if err != nil {
		return s, err
	}
	key := storeKey(s.keyOf())
	change := store.Change{Append: records, Who: s.Who, Why: s.Why}
	if hold == exchange.NotHeld {
		change.Delete = []string{key}
	} else {
		kept := s
		kept.Active = 0
		data, err := json.Marshal(kept)
		if err != nil {
			return s, err
		}
		change.Put = []store.Entry{{Key: key, Value: data}}
	}
	if _, err := h.store.Commit(ctx, change); err != nil {
		return s, fmt.Errorf("keep that the server is %s: %w", s.Hold, err)
	}
	h.act(s, hold)
	s.Active = h.Active(s.keyOf())
	h.report(s)
	return s, nil
}

// TryHold returns what Hold would, and changes nothing.
func (c *Control) TryHold(s HeldServer, hold exchange.Hold) (HeldServer, error) {
	return c.decide(s, hold)
}

// decide returns what a decision makes of a server, or why it cannot be made.
func (c *Control) decide(s HeldServer, hold exchange.Hold) (HeldServer, error) {
	p := c.Plan()
	if p == nil {
		return s, ErrNoServer
	}
	server, ok := findServer(p.Config(), s.Kind, s.Proxy, s.Server)
	if !ok {
		return s, ErrNoServer
	}
	s.Server, s.Since = server, time.Now().UTC()
	h := c.holds
	h.mu.Lock()
	held, many := h.mu.held[s.keyOf()] != nil, len(h.mu.held) >= maxHeld
	h.mu.Unlock()
	switch {
	case hold == exchange.NotHeld && !held:
		return s, ErrNotHeld
	case hold == exchange.NotHeld:
		s.Hold, s.Until = Enabled, time.Time{}
	case many && !held:
		return s, ErrHeldMany
	default:
		s.Hold = hold.String()
	}
	s.Active = h.Active(s.keyOf())
	return s, nil
}

// HeldServers returns the servers that operators drain or have disabled.
func (c *Control) HeldServers() []HeldServer { return c.holds.list() }

// findServer returns the address of a server as the configuration has it. A host and port
// are enough for one that no other server of the proxy has.
func findServer(cfg *config.Config, kind, proxy, server string) (address string, ok bool) {
	var all []string
	switch kind {
	case "proxies":
		if p := cfg.Proxies[proxy]; p != nil {
			for _, r := range p.Written().Routes { // also of one that is withheld
				for _, s := range r.Servers {
					all = append(all, s.URL)
				}
			}
		}
	case "tcp_proxies":
		if p := cfg.TCPProxies[proxy]; p != nil {
			all = addresses(p.Servers)
		}
	case "udp_proxies":
		if p := cfg.UDPProxies[proxy]; p != nil {
			all = addresses(p.Servers)
		}
	}
	if slices.Contains(all, server) {
		return server, true
	}
	for _, one := range all {
		_, rest, _ := strings.Cut(one, "://")
		if host, _, _ := strings.Cut(rest, "/"); rest != "" && host == server {
			if ok && address != one {
				return "", false // it may be either
			}
			address, ok = one, true
		}
	}
	return address, ok
}

// hasProxy reports whether a configuration has a proxy of a kind and name.
func hasProxy(cfg *config.Config, kind, name string) bool {
	switch kind {
	case "proxies":
		return cfg.Proxies[name] != nil
	case "tcp_proxies":
		return cfg.TCPProxies[name] != nil
	}
	return cfg.UDPProxies[name] != nil
}

func addresses(servers []*config.StreamServer) (all []string) {
	for _, s := range servers {
		if address, fault := s.HostPort(); fault == nil {
			all = append(all, address)
		}
	}
	return all
}

// forgetAfter is how old a decision is before it is forgotten where a store is shared: the
// machine that has the server publishes that within this time.
const forgetAfter = time.Minute

// forget ends the holds of servers that a configuration has not any more. Those of a proxy
// that a provider may find still, as after a start, wait for it, and those of servers that
// another machine has are kept.
func (h *holds) forget(cfg *config.Config) {
	h.acting.Lock()
	defer h.acting.Unlock()
	for _, s := range h.list() {
		if h.present(cfg, s) || !hasProxy(cfg, s.Kind, s.Proxy) && h.unknown(cfg) || h.elsewhere(s) {
			continue
		}
		if _, err := h.store.Commit(context.Background(), store.Change{Delete: []string{storeKey(s.keyOf())}}); err != nil {
			h.log.Error("that a server is gone could not be kept", "proxy", s.Proxy, "server", s.Server, "error", err)
		}
		h.act(s, exchange.NotHeld)
	}
}

// present reports whether a configuration has a held server.
func (h *holds) present(cfg *config.Config, s HeldServer) bool {
	_, ok := findServer(cfg, s.Kind, s.Proxy, s.Server)
	return ok
}

// elsewhere reports whether another machine has a held server, or may have it.
func (h *holds) elsewhere(s HeldServer) bool {
	if h.node == "" {
		return false
	}
	nodes, err := store.Nodes(context.Background(), h.store)
	if err != nil || time.Since(s.Since).Abs() < forgetAfter {
		return true
	}
	key := strings.TrimPrefix(storeKey(s.keyOf()), store.PrefixHeld)
	return slices.ContainsFunc(nodes, func(n store.Node) bool { return n.Name != h.node && slices.Contains(n.Holds, key) })
}

// published returns the keys of the held servers that a configuration has.
func (h *holds) published(cfg *config.Config) (keys []string) {
	for _, s := range h.list() {
		if h.present(cfg, s) {
			keys = append(keys, strings.TrimPrefix(storeKey(s.keyOf()), store.PrefixHeld))
		}
	}
	slices.Sort(keys)
	return keys
}

// Prepare opens nothing. It makes holds a participant.
func (h *holds) Prepare(next *Next) (Change, error) { return holdsChange{h, next.Config}, nil }

type holdsChange struct {
	holds *holds
	cfg   *config.Config
}

// Commit forgets the servers that are gone.
func (ch holdsChange) Commit() { ch.holds.forget(ch.cfg) }

// Cancel does nothing.
func (holdsChange) Cancel() {}
