package bans

import (
	"bufio"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/setting/ipset"
)

// protected are the addresses that are never banned.
type protected struct {
	// cdn returns the CDN that has an address of a network, "" if none has; it may be nil.
	cdn func(netip.Prefix) string
	// trusted are the proxies that the configuration trusts anywhere.
	trusted atomic.Pointer[ipset.Set]
	// machine are the addresses of this machine and of its gateways.
	machine atomic.Pointer[ipset.Set]

	mu struct {
		sync.Mutex
		operators map[netip.Addr]time.Time // when one signed in from there last
	}
	signedIn atomic.Pointer[ipset.Set] // of operators
}

var loopback = ipset.Of([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")})

// why returns why a network must not be banned, "" if it may be.
func (p *protected) why(n netip.Prefix, includePrivate bool) string {
	switch {
	case loopback.Overlaps(n):
		return "this machine"
	case !includePrivate && ipset.Private().Overlaps(n):
		return "a private network"
	case p.machine.Load().Overlaps(n):
		return "an address of this machine or its gateway"
	case p.signedIn.Load().Overlaps(n):
		return "an address that an operator signed in from"
	}
	return p.proxyIn(n)
}

// proxyIn returns which proxy in front has an address of a network.
func (p *protected) proxyIn(n netip.Prefix) string {
	if p.trusted.Load().Overlaps(n) {
		return "a proxy that the configuration trusts"
	}
	if p.cdn != nil {
		if cdn := p.cdn(n); cdn != "" {
			return "a network of the CDN " + cdn
		}
	}
	return ""
}

// proxy is proxyIn for an address.
func (p *protected) proxy(a netip.Addr) string {
	if !a.IsValid() {
		return "unknown"
	}
	return p.proxyIn(netip.PrefixFrom(a, a.BitLen()))
}

// operatorTime is for how long an address is protected that an operator signed in from.
const operatorTime = 7 * 24 * time.Hour

// maxOperators is how many such addresses are known.
const maxOperators = 10_000

// operator notes that an operator signed in, and reports whether that is news worth
// keeping.
func (p *protected) operator(a netip.Addr, at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.operators == nil {
		p.mu.operators = map[netip.Addr]time.Time{}
	}
	last, known := p.mu.operators[a]
	if known && at.Sub(last) < time.Hour || !known && len(p.mu.operators) >= maxOperators {
		return false
	}
	p.mu.operators[a] = at
	p.operatorsLocked(at)
	return true
}

// operatorsLocked makes the set of those that are protected at a moment.
func (p *protected) operatorsLocked(now time.Time) {
	var all []netip.Prefix
	for a, at := range p.mu.operators {
		if now.Sub(at) > operatorTime {
			delete(p.mu.operators, a)
			continue
		}
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	p.signedIn.Store(ipset.Of(all))
}

// refresh finds the addresses of this machine and of its gateways.
func (p *protected) refresh() {
	var all []netip.Prefix
	add := func(a netip.Addr) {
		if a = ipset.Plain(a); a.IsValid() && !a.IsUnspecified() {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	addresses, _ := net.InterfaceAddrs() // without, there are the others
	for _, one := range addresses {
		if n, ok := one.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok {
				add(a)
			}
		}
	}
	for _, a := range gateways() {
		add(a)
	}
	p.machine.Store(ipset.Of(all))
}

// gateways returns the default gateways, where the system has them in a file: in a
// container that is who clients seem to come from whose address its engine hides.
func gateways() (out []netip.Addr) {
	for _, table := range []struct {
		file       string
		to, via    int
		reversed   bool
		everywhere string
	}{{"/proc/net/route", 1, 2, true, "00000000"}, {"/proc/net/ipv6_route", 0, 4, false, strings.Repeat("0", 32)}} {
		f, err := os.Open(table.file)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) <= table.via || fields[table.to] != table.everywhere {
				continue
			}
			b, err := hex.DecodeString(fields[table.via])
			if err != nil {
				continue
			}
			if table.reversed {
				for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
					b[i], b[j] = b[j], b[i]
				}
			}
			if a, ok := netip.AddrFromSlice(b); ok {
				out = append(out, a)
			}
		}
		f.Close()
	}
	return out
}
