package bans

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"

	"headgate/internal/exchange"
)

// Source is who says that an address is the client's: 0 for the connection itself, which
// no client can forge, else a digest of the client_ip settings by which a proxy in front was
// believed. An address that was told acts only where the same settings hold.
type Source uint64

// Peer is the source of addresses of connections.
const Peer Source = 0

// hostKey is a client as bans tell them apart: an IPv4 address, or an IPv6 /64.
type hostKey struct {
	high, low uint64
	source    Source
}

// keyOf returns the key of an address without a zone and not IPv4-mapped.
func keyOf(a netip.Addr, s Source) hostKey {
	b := a.As16()
	if a.Is4() {
		return hostKey{low: binary.BigEndian.Uint64(b[8:]), source: s}
	}
	return hostKey{high: binary.BigEndian.Uint64(b[:8]), low: 1, source: s}
}

// networkOf returns the network that a client is banned by.
func networkOf(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(a, 32)
	}
	return netip.PrefixFrom(a, 64).Masked()
}

// isHost reports whether a network is what one client has.
func isHost(p netip.Prefix) bool {
	return p.Addr().Is4() && p.Bits() == 32 || p.Addr().Is6() && p.Bits() == 64
}

// Ban is a client, or a network, that is refused. It is not changed but for its counts.
type Ban struct {
	// Network is what is banned: an address, an IPv6 /64, or a wider network.
	Network netip.Prefix
	// Source says where the ban acts.
	Source Source
	// Rule is the name of the rule, "" for a ban by an operator.
	Rule string
	// Who is the operator, or headgate for a rule.
	Who string
	// Why is what it is for: "3 × /.env since 13:10", or what the operator said.
	Why string
	// Since and Until are when it began and ends.
	Since, Until time.Time
	// Times is the how-manieth ban of the client it is.
	Times int
	// Rejects says that new connections are closed.
	Rejects bool

	ends    int64 // Until by exchange.Now
	answer  *exchange.Answer
	refused atomic.Uint64
}

// Refused returns how many requests and connections were refused by this process.
func (b *Ban) Refused() uint64 { return b.refused.Load() }

// over reports whether the ban has ended at a moment of exchange.Now.
func (b *Ban) over(now int64) bool { return b.ends <= now }

// String says what the ban is, for people.
func (b *Ban) String() string {
	by := "by an operator"
	switch {
	case b.Rule != "":
		by = "by bans." + b.Rule
	case b.Who != "":
		by = "by " + b.Who
	}
	text := fmt.Sprintf("banned until %s %s", moment(b.Until, b.Since), by)
	if b.Why != "" {
		text += ": " + b.Why
	}
	return text
}

// moment writes a time of this day without its date.
func moment(t, today time.Time) string {
	t, today = t.UTC(), today.UTC()
	if t.YearDay() == today.YearDay() && t.Year() == today.Year() {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// prepare makes what requests are answered with.
func (b *Ban) prepare(now int64, clock time.Time) {
	b.ends = now + int64(b.Until.Sub(clock))
	b.answer = exchange.Fail(exchange.Banned, b.String())
}

// tableShards is into how many pieces the table of bans is cut. A piece is replaced whole
// when a ban is added to it: readers take no lock.
const tableShards = 256

// table is the bans that are in force. Only the engine writes, with its lock held.
type table struct {
	hosts [tableShards]atomic.Pointer[map[hostKey]*Ban]
	wide  atomic.Pointer[bart.Table[[]*Ban]] // networks; nil without any
	count atomic.Int64
}

func (k hostKey) shard() int {
	h := (k.high ^ k.low*0x9e3779b97f4a7c15 ^ uint64(k.source)) * 0xd6e8feb86659fd93
	return int(h >> 56)
}

// find returns the ban of an address that acts on a source at a moment, or nil.
func (t *table) find(a netip.Addr, s Source, now int64) *Ban {
	if t.count.Load() == 0 || !a.IsValid() {
		return nil
	}
	if b := t.host(keyOf(a, Peer), now); b != nil {
		return b
	}
	if s != Peer {
		if b := t.host(keyOf(a, s), now); b != nil {
			return b
		}
	}
	if wide := t.wide.Load(); wide != nil {
		return within(wide, a, s, now)
	}
	return nil
}

func (t *table) host(k hostKey, now int64) *Ban {
	m := t.hosts[k.shard()].Load()
	if m == nil {
		return nil
	}
	if b := (*m)[k]; b != nil && !b.over(now) {
		return b
	}
	return nil
}

// within looks for a network with an address, the narrowest first.
func within(wide *bart.Table[[]*Ban], a netip.Addr, s Source, now int64) *Ban {
	if _, ok := wide.Lookup(a); !ok {
		return nil
	}
	for _, bans := range wide.Supernets(netip.PrefixFrom(a, a.BitLen())) {
		for _, b := range bans {
			if (b.Source == Peer || b.Source == s) && !b.over(now) {
				return b
			}
		}
	}
	return nil
}

// put adds a ban, or replaces the one of the same network and source.
func (t *table) put(b *Ban) {
	t.remove(b.Network, b.Source)
	t.count.Add(1)
	if isHost(b.Network) {
		k := keyOf(b.Network.Addr(), b.Source)
		at := &t.hosts[k.shard()]
		at.Store(with(at.Load(), k, b))
		return
	}
	wide := t.wide.Load()
	if wide == nil {
		wide = &bart.Table[[]*Ban]{}
	}
	before, _ := wide.Get(b.Network)
	t.wide.Store(wide.InsertPersist(b.Network, append(before[:len(before):len(before)], b)))
}

func with(before *map[hostKey]*Ban, k hostKey, b *Ban) *map[hostKey]*Ban {
	after := make(map[hostKey]*Ban, 1)
	if before != nil {
		after = make(map[hostKey]*Ban, len(*before)+1)
		for key, value := range *before {
			after[key] = value
		}
	}
	if b == nil {
		delete(after, k)
	} else {
		after[k] = b
	}
	return &after
}

// remove takes the ban of a network and source off the table.
func (t *table) remove(p netip.Prefix, s Source) {
	if isHost(p) {
		k := keyOf(p.Addr(), s)
		at := &t.hosts[k.shard()]
		if m := at.Load(); m != nil && (*m)[k] != nil {
			at.Store(with(m, k, nil))
			t.count.Add(-1)
		}
		return
	}
	wide := t.wide.Load()
	if wide == nil {
		return
	}
	before, ok := wide.Get(p)
	if !ok {
		return
	}
	var after []*Ban
	for _, b := range before {
		if b.Source != s {
			after = append(after, b)
		}
	}
	t.count.Add(int64(len(after) - len(before)))
	if len(after) > 0 {
		t.wide.Store(wide.InsertPersist(p, after))
	} else if wide = wide.DeletePersist(p); wide.Size() > 0 {
		t.wide.Store(wide)
	} else {
		t.wide.Store(nil)
	}
}

// get returns the ban of a network and source that is on the table, or nil.
func (t *table) get(p netip.Prefix, s Source) *Ban {
	if isHost(p) {
		if m := t.hosts[keyOf(p.Addr(), s).shard()].Load(); m != nil {
			return (*m)[keyOf(p.Addr(), s)]
		}
		return nil
	}
	if wide := t.wide.Load(); wide != nil {
		bans, _ := wide.Get(p)
		for _, b := range bans {
			if b.Source == s {
				return b
			}
		}
	}
	return nil
}

// Shown is a ban as it is shown.
type Shown struct {
	// Network is the address that is banned, its IPv6 /64, or a wider network.
	Network string `json:"network"`
	// Source is peer if the ban acts on connections from there, or header if it acts where
	// the same proxies in front are trusted that told the address.
	Source string `json:"source"`
	// Rule is the ban rule that made it; absent for a ban by an operator.
	Rule string `json:"rule,omitempty"`
	// Who is the operator who made it, or headgate.
	Who string `json:"who,omitempty"`
	// Why is what it is for: "3 × /.env since 13:10", or what the operator said.
	Why string `json:"why,omitempty"`
	// Since is when it began.
	Since time.Time `json:"since"`
	// Until is when it ends by itself.
	Until time.Time `json:"until"`
	// Times is the how-manieth ban of the client it is.
	Times int `json:"times"`
	// Refused is how many requests and connections it has refused on this node.
	Refused int `json:"refused"`
	// Answer is what the client gets: deny answers with 403, reject closes new connections
	// before TLS.
	Answer Response `json:"answer"`
}

// Shown returns the ban as it is shown.
func (b *Ban) Shown() Shown {
	source := "peer"
	if b.Source != Peer {
		source = "header"
	}
	answer := Deny
	if b.Rejects {
		answer = Reject
	}
	return Shown{Display(b.Network), source, b.Rule, b.Who, b.Why, b.Since.UTC(), b.Until.UTC(), b.Times, int(b.Refused()), answer}
}
