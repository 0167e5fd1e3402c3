// Package bans refuses clients that misbehave: rules count what clients do, and ban those
// that do it too often.
//
// An Engine knows who is banned. It outlives configurations, writes bans to the store, and
// takes those of other nodes from there. Rules are the rules of one configuration: their
// filter refuses banned clients and counts the responses of the others. counter.go counts
// in bounded memory, table.go answers for each request without a lock, protected.go has
// the addresses that are never banned, store.go what is kept.
package bans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/setting/ipset"
	"headgate/internal/store"
)

// The bounds of bans.
const (
	// maxBans is how many bans there are, with those that have ended and still count for
	// the next of the same client. Beyond, those that end first are given up.
	maxBans = 100_000
	// widenFrom is how many banned /64 of an IPv6 /48 have all of it banned.
	widenFrom = 8
	// rememberFor is how long after its end a ban counts at least for the next.
	rememberFor = 24 * time.Hour
)

// Options is what an Engine is made of.
type Options struct {
	// Log is the application's log. Nil discards.
	Log *slog.Logger
	// Store is where bans are kept; nil keeps none.
	Store store.Store
	// Clock returns the time; nil is the system's.
	Clock func() time.Time
	// CDN returns the name of the CDN that has an address of a network, "" if none has; nil
	// knows none.
	CDN func(netip.Prefix) string
	// Told is called when a client was banned, or is no longer. It must be quick. It may
	// be nil.
	Told func(Event)
	// Cut ends the open connections of the peers in a network. Nil ends none.
	Cut func(netip.Prefix)
}

// Event is a ban that began or ended.
type Event struct {
	Ban *Ban
	// Ended says that it ended; Who is the operator that lifted it, "" when its time was
	// over.
	Ended bool
	Who   string
}

// Engine knows who is banned. Its methods may be called by several goroutines at once.
type Engine struct {
	o         Options
	table     table
	protected protected
	seen      seen
	pardons   atomic.Pointer[ipset.Set]
	refused   atomic.Uint64
	made      atomic.Uint64
	unnamed   atomic.Pointer[Issue]

	stop    context.CancelFunc
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		all      map[banID]*Ban // those that have ended, too
		in48     map[wideID]int // bans in force of /64 networks, by their /48
		pardoned map[netip.Prefix]Pardon
		dirty    map[string]store.Entry // to be written; without a value, to be deleted
		writing  map[string]store.Entry // the part of it that is being written
		enforced map[string]*Config     // the rules that ban
		fullSaid time.Time
		cuts     []cut // whose connections are to be ended
	}
}

// cut are connections that are to be ended at a moment.
type cut struct {
	network netip.Prefix
	at      time.Time
}

// cutGrace is how long a client that is banned has to receive the answer to its last
// request before its connections are closed.
const cutGrace = 500 * time.Millisecond

type banID struct {
	network netip.Prefix
	source  Source
}

type wideID banID

// Issue is something about bans that an operator should know.
type Issue struct {
	// Code is unknown_client: a proxy in front sends requests that no route takes, and
	// defaults.client_ip does not say whom they come from.
	Code string `json:"code"`
	// Message says what it is.
	Message string `json:"message"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
}

// Pardon is a network that is never banned, because an operator said so.
type Pardon struct {
	// Network is the network, as address/length.
	Network netip.Prefix `json:"network"`
	// Who is the operator.
	Who string `json:"who,omitempty"`
	// Why is what the operator said.
	Why string `json:"why,omitempty"`
	// Since is when.
	Since time.Time `json:"since"`
}

// New returns an engine with what the store has. Close ends it.
func New(o Options) *Engine {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	e := &Engine{o: o}
	e.protected.cdn = o.CDN
	e.mu.all, e.mu.in48, e.mu.pardoned, e.mu.dirty = map[banID]*Ban{}, map[wideID]int{}, map[netip.Prefix]Pardon{}, map[string]store.Entry{}
	e.protected.refresh()
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	after := e.restore(ctx)
	e.running.Go(func() { e.keep(ctx) })
	if o.Store != nil {
		e.running.Go(func() { e.follow(ctx, after) })
	}
	return e
}

// Close writes what is to be kept, and ends what runs.
func (e *Engine) Close() {
	e.stop()
	e.running.Wait()
}

// Use tells the engine what the configuration in use says: the rules, and the networks of
// proxies that it trusts anywhere. Bans of rules that do not ban any more end.
func (e *Engine) Use(rules map[string]*Config, trusted []netip.Prefix) {
	e.protected.trusted.Store(ipset.Of(trusted))
	e.unnamed.Store(nil)
	e.mu.Lock()
	e.mu.enforced = map[string]*Config{}
	for name, c := range rules {
		if c.Mode == Enforce {
			e.mu.enforced[name] = c
		}
	}
	var ended []*Ban
	now := e.o.Clock()
	for _, b := range e.mu.all {
		if b.Rule != "" && e.mu.enforced[b.Rule] == nil && b.Until.After(now) {
			ended = append(ended, b)
		}
	}
	for _, b := range ended {
		e.removeLocked(b)
	}
	e.mu.Unlock()
	e.publishEnded(ended, "")
}

// Protected returns why nothing must ban a network, "" where it may be.
func (e *Engine) Protected(n netip.Prefix) string { return e.protected.why(n, false) }

// banByRule bans a client, or the /48 around it when many of it are banned.
func (e *Engine) banByRule(r *rule, n netip.Prefix, s Source, why string, now time.Time) {
	c := r.settings
	e.mu.Lock()
	if e.mu.enforced[r.name] == nil {
		e.mu.Unlock()
		return // the rule is on its way out
	}
	made := []*Ban{e.banLocked(&Ban{Network: n, Source: s, Rule: r.name, Who: "headgate", Why: why, Since: now, Rejects: c.Answer == Reject && s == Peer}, &c.Ban)}
	if n.Addr().Is6() {
		around := netip.PrefixFrom(n.Addr(), 48).Masked()
		if e.mu.in48[wideID{around, s}] >= widenFrom && e.mu.all[banID{around, s}] == nil && e.protected.why(around, c.IncludePrivate) == "" {
			made = append(made, e.banLocked(&Ban{
				Network: around, Source: s, Rule: r.name, Who: "headgate", Since: now, Rejects: c.Answer == Reject && s == Peer,
				Why: fmt.Sprintf("%d of its /64 networks are banned", e.mu.in48[wideID{around, s}]),
			}, &c.Ban))
		}
	}
	e.mu.Unlock()
	for _, b := range made {
		e.began(b)
	}
}

// banLocked puts a ban in force whose length depends on those before.
func (e *Engine) banLocked(b *Ban, l *Length) *Ban {
	b.Times = 1
	if was := e.mu.all[banID{b.Network, b.Source}]; was != nil && was.Rule == b.Rule {
		b.Times = was.Times + 1
		b.refused.Store(was.refused.Load())
	}
	b.Until = b.Since.Add(l.of(b.Times))
	e.putLocked(b)
	e.dirtyLocked(b)
	return b
}

// putLocked puts a ban on the table.
func (e *Engine) putLocked(b *Ban) {
	id := banID{b.Network, b.Source}
	if len(e.mu.all) >= maxBans && e.mu.all[id] == nil {
		e.makeRoomLocked()
	}
	e.offTableLocked(e.mu.all[id])
	now := e.o.Clock()
	b.prepare(exchange.Now(), now)
	e.mu.all[id] = b
	if b.Until.After(now) {
		e.table.put(b)
		if around, ok := around48(b); ok {
			e.mu.in48[around]++
		}
	}
}

// offTableLocked takes a ban off the table, if it is there. b may be nil.
func (e *Engine) offTableLocked(b *Ban) {
	if b == nil || e.table.get(b.Network, b.Source) != b {
		return
	}
	e.table.remove(b.Network, b.Source)
	if around, ok := around48(b); ok {
		if e.mu.in48[around]--; e.mu.in48[around] <= 0 {
			delete(e.mu.in48, around)
		}
	}
}

func around48(b *Ban) (wideID, bool) {
	if b.Network.Addr().Is4() || b.Network.Bits() != 64 {
		return wideID{}, false
	}
	return wideID{netip.PrefixFrom(b.Network.Addr(), 48).Masked(), b.Source}, true
}

// makeRoomLocked gives up a hundredth of the bans, those that end first.
func (e *Engine) makeRoomLocked() {
	all := slices.SortedFunc(maps.Values(e.mu.all), func(a, b *Ban) int { return a.Until.Compare(b.Until) })
	for _, b := range all[:max(len(all)/100, 1)] {
		e.removeLocked(b)
	}
	if now := e.o.Clock(); now.Sub(e.mu.fullSaid) > time.Hour {
		e.mu.fullSaid = now
		e.o.Log.Warn("the table of bans is full; those that end first are given up", "bans", maxBans)
	}
}

// removeLocked forgets a ban, here and in the store.
func (e *Engine) removeLocked(b *Ban) {
	e.offTableLocked(b)
	delete(e.mu.all, banID{b.Network, b.Source})
	e.mu.dirty[keyOfBan(b)] = store.Entry{}
}

// began publishes the event of a ban, and ends the connections of the client.
func (e *Engine) began(b *Ban) {
	e.made.Add(1)
	e.o.Log.Info("client banned", "client", Display(b.Network), "rule", b.Rule, "why", b.Why, "until", b.Until.UTC().Format(time.RFC3339), "who", b.Who)
	if e.o.Told != nil {
		e.o.Told(Event{Ban: b})
	}
	if e.o.Cut != nil && b.Source == Peer {
		e.mu.Lock()
		e.mu.cuts = append(e.mu.cuts, cut{b.Network, e.o.Clock().Add(cutGrace)})
		e.mu.Unlock()
	}
}

// publishEnded publishes the event of each ban that ended.
func (e *Engine) publishEnded(ended []*Ban, who string) {
	for _, b := range ended {
		e.o.Log.Info("client no longer banned", "client", Display(b.Network), "rule", b.Rule, "lifted_by", who)
		if e.o.Told != nil {
			e.o.Told(Event{Ban: b, Ended: true, Who: who})
		}
	}
}

// ErrProtected says that a network is never banned.
var ErrProtected = errors.New("is never banned")

// The widest networks that an operator may ban.
const (
	widest4 = 8
	widest6 = 20
)

// Request is a ban that an operator requests.
type Request struct {
	// Network is banned everywhere until Until.
	Network netip.Prefix
	Until   time.Time
	// Who is the operator, and Why is what the operator said.
	Who, Why string
	// Answer of Reject closes new connections from the network, before TLS: see Engine.Rejects
	// for those that are spared. "" is Deny.
	Answer Response
}

// Add bans a network. dry only checks whether it can be banned.
func (e *Engine) Add(r Request, dry bool) (*Ban, error) {
	n := r.Network.Masked()
	if n.Addr().Is6() && n.Bits() > 64 {
		n = networkOf(n.Addr())
	}
	if n.Addr().Is4() && n.Bits() < widest4 || n.Addr().Is6() && n.Bits() < widest6 {
		return nil, fmt.Errorf("%v is wider than /%d (IPv6 /%d): %w", n, widest4, widest6, ErrProtected)
	}
	if protected := e.protected.why(n, true); protected != "" {
		return nil, fmt.Errorf("%s %w: it is %s", Display(n), ErrProtected, protected)
	}
	b := &Ban{Network: n, Source: Peer, Who: r.Who, Why: r.Why, Since: e.o.Clock(), Until: r.Until, Times: 1, Rejects: r.Answer == Reject}
	if dry {
		return b, nil
	}
	e.mu.Lock()
	e.putLocked(b)
	e.dirtyLocked(b)
	e.mu.Unlock()
	e.began(b)
	return b, nil
}

// Lift ends all bans that have an address, or a network and those within it. Never says
// that it is not to be banned again. It returns the bans that ended.
func (e *Engine) Lift(n netip.Prefix, who, why string, never, dry bool) []*Ban {
	n = n.Masked()
	e.mu.Lock()
	now := e.o.Clock()
	var ended []*Ban
	for _, b := range e.mu.all {
		if b.Until.After(now) && (b.Network.Overlaps(n)) {
			ended = append(ended, b)
		}
	}
	if !dry {
		for _, b := range ended {
			e.removeLocked(b)
		}
		if never {
			p := Pardon{Network: n, Who: who, Why: why, Since: now}
			e.mu.pardoned[n] = p
			e.pardonsLocked()
			e.mu.dirty[keyOfPardon(n)] = entryOfPardon(p)
		}
	}
	e.mu.Unlock()
	if !dry {
		e.publishEnded(ended, who)
	}
	return ended
}

// Unpardon lets a network be banned again. It reports whether it was pardoned.
func (e *Engine) Unpardon(n netip.Prefix) bool {
	n = n.Masked()
	e.mu.Lock()
	defer e.mu.Unlock()
	_, was := e.mu.pardoned[n]
	delete(e.mu.pardoned, n)
	e.pardonsLocked()
	e.mu.dirty[keyOfPardon(n)] = store.Entry{}
	return was
}

func (e *Engine) pardonsLocked() {
	e.pardons.Store(ipset.Of(slices.Collect(maps.Keys(e.mu.pardoned))))
}

// pardoned reports whether an operator said that an address is never banned.
func (e *Engine) pardoned(a netip.Addr) bool { return e.pardons.Load().Contains(a) }

// Pardons returns the networks that are never banned, because operators said so.
func (e *Engine) Pardons() []Pardon {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(maps.Values(e.mu.pardoned), func(a, b Pardon) int { return a.Network.Addr().Compare(b.Network.Addr()) })
}

// List returns the bans in force, the latest first.
func (e *Engine) List() []*Ban {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.o.Clock()
	var out []*Ban
	for _, b := range e.mu.all {
		if b.Until.After(now) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *Ban) int { return b.Since.Compare(a.Since) })
	return out
}

// Of returns the bans in force that have an address.
func (e *Engine) Of(a netip.Addr) []*Ban {
	a = ipset.Plain(a)
	return slices.DeleteFunc(e.List(), func(b *Ban) bool { return !b.Network.Contains(a) })
}

// Rejects reports whether a new connection of a peer is to be closed. Trusted are never,
// and neither are addresses from which a person signed in lately.
func (e *Engine) Rejects(peer netip.Addr) bool {
	if e.table.count.Load() == 0 {
		return false
	}
	peer = ipset.Plain(peer)
	b := e.table.find(peer, Peer, exchange.Now())
	if b == nil || !b.Rejects || e.protected.proxy(peer) != "" || e.seen.lately(keyOf(peer, Peer)) {
		return false
	}
	b.refused.Add(1)
	e.refused.Add(1)
	return true
}

// SignedIn notes that an operator with the rights of an editor signed in from an address.
// What bans it ends.
func (e *Engine) SignedIn(a netip.Addr) {
	a = ipset.Plain(a)
	now := e.o.Clock()
	if !a.IsValid() || a.IsLoopback() || !e.protected.operator(a, now) {
		return
	}
	e.mu.Lock()
	e.mu.dirty[keyOfOperator(a)] = entryOfOperator(now)
	e.mu.Unlock()
	e.Lift(netip.PrefixFrom(a, a.BitLen()), "headgate", "", false, false)
}

// unknownClient notes that a proxy in front sends requests that no route takes.
func (e *Engine) unknownClient(peer netip.Addr) {
	if e.unnamed.Load() != nil {
		return
	}
	i := &Issue{"unknown_client", fmt.Sprintf("requests that no route takes come through the proxy %v, and defaults.client_ip does not trust it: they are not counted", peer),
		"set client_ip under defaults as the proxies have it"}
	if e.unnamed.CompareAndSwap(nil, i) {
		e.o.Log.Warn("bans do not count requests that no route takes", "peer", peer.String(), "remedy", i.Hint)
	}
}

// Issues returns what an operator should know.
func (e *Engine) Issues() []Issue {
	if i := e.unnamed.Load(); i != nil {
		return []Issue{*i}
	}
	return nil
}

// Counts returns how many bans are in force, how many were made, and how many requests and
// connections were refused, by this process.
func (e *Engine) Counts() (active int, made, refused uint64) {
	return int(e.table.count.Load()), e.made.Load(), e.refused.Load()
}

// Display returns a network as people write it: an address, or a network.
func Display(n netip.Prefix) string {
	if n.IsSingleIP() {
		return n.Addr().String()
	}
	return n.String()
}
