package lists

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/setting/ipset"
)

// The times of host names in lists.
const (
	// nameGrace is for how long the last addresses of a name are used that cannot be looked
	// up.
	nameGrace = 24 * time.Hour
	// shortestTTL and longestTTL bound for how long an answer is used; unknownTTL is for
	// answers without a time to live.
	shortestTTL = 5 * time.Second
	longestTTL  = time.Hour
	unknownTTL  = time.Minute
	// nameRetry is after how long a failed look-up is tried again.
	nameRetry = 15 * time.Second
	// namesAtOnce is how many names are looked up at once, and maxNameAddresses how many
	// addresses of each are used.
	namesAtOnce      = 8
	maxNameAddresses = 64
)

// host is a name of a list.
type host struct {
	name      string
	addresses []netip.Addr
	at        time.Time // when they were looked up; zero for never
	err       error     // of the last look-up
	due       time.Time
}

// readEntries takes the entries that are written in the settings, with what names were
// resolved to when headgate ran last.
func (l *List) readEntries() {
	fixed, names, _ := split(l.settings.Entries)
	known := keptNames{}
	if len(names) > 0 {
		known = l.readNames()
	}
	hosts := make([]*host, len(names))
	for i, name := range names {
		k := known[name]
		hosts[i] = &host{name: name, addresses: k.Addresses, at: k.At}
	}
	l.combine(fixed, hosts)
}

// combine makes the list of fixed entries and of what names stand for.
func (l *List) combine(fixed []string, hosts []*host) {
	set, _ := ipset.New(fixed) // they were checked
	var add []netip.Prefix
	var states []NameState
	var issues []Issue
	resolved, now := 0, l.o.Clock()
	for _, h := range hosts {
		if now.Sub(h.at) > nameGrace {
			h.addresses, h.at = nil, time.Time{}
		}
		s := NameState{Name: h.name, Addresses: []string{}, Resolved: h.at}
		for _, a := range h.addresses {
			a = ipset.Plain(a)
			add = append(add, netip.PrefixFrom(a, a.BitLen()))
			s.Addresses = append(s.Addresses, a.String())
		}
		if !h.at.IsZero() {
			resolved++
		}
		if h.err != nil {
			s.Error = h.err.Error()
			issue := Issue{"name_unresolved", fmt.Sprintf("%s cannot be resolved: %v", h.name, h.err), "check the name and the resolver"}
			if len(h.addresses) > 0 {
				issue.Message += "; its last addresses are used"
			}
			issues = append(issues, issue)
		}
		states = append(states, s)
	}
	set = set.With(add, nil)
	if len(hosts) > 0 && resolved == 0 && set.Len() == 0 && len(issues) == 0 {
		return // nothing is known yet
	}
	l.put(set, issues)
	l.mu.Lock()
	l.mu.state.Names = states
	l.mu.Unlock()
}

// followNames looks the names of the list up when their time is over.
func (l *List) followNames(ctx context.Context) {
	fixed, names, _ := split(l.settings.Entries)
	known, hosts := l.readNames(), make([]*host, len(names))
	for i, name := range names {
		hosts[i] = &host{name: name, addresses: known[name].Addresses, at: known[name].At}
	}
	for {
		if l.lookUp(ctx, hosts); ctx.Err() != nil {
			return
		}
		l.combine(fixed, hosts)
		kept := keptNames{}
		for _, h := range hosts {
			if !h.at.IsZero() {
				kept[h.name] = keptName{h.addresses, h.at}
			}
		}
		if err := l.keepNames(kept); err != nil {
			l.log.Warn("addresses of host names cannot be saved for the next start", "error", err)
		}
		next := slices.MinFunc(hosts, func(a, b *host) int { return a.due.Compare(b.due) }).due
		l.noteFetch(next)
		if !clock.Sleep(ctx, max(next.Sub(l.o.Clock()), 0)) {
			return
		}
	}
}

// lookUp looks up the names that are due, several at once.
func (l *List) lookUp(ctx context.Context, hosts []*host) {
	var all sync.WaitGroup
	turn := make(chan struct{}, namesAtOnce)
	for _, h := range hosts {
		if h.due.After(l.o.Clock()) {
			continue
		}
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			h.lookUp(ctx, l.o)
		})
	}
	all.Wait()
}

// lookUp looks a name up.
func (h *host) lookUp(ctx context.Context, o *Options) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	addresses, ttl, err := o.Lookup(ctx, h.name)
	now := o.Clock()
	if h.err = err; err != nil {
		h.due = now.Add(nameRetry)
		return
	}
	if ttl <= 0 {
		ttl = unknownTTL
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	h.addresses, h.at = addresses[:min(len(addresses), maxNameAddresses)], now
	h.due = now.Add(min(max(ttl, shortestTTL), longestTTL))
}
