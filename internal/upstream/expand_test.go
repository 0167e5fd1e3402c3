package upstream

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/server/resolve/resolvetest"
)

// named returns a source whose servers go by names that zone tells of, and ends it
// with the test.
func named(t *testing.T, zone *resolvetest.Zone, policy Policy, targets ...Target) *Servers {
	t.Helper()
	env := exchange.Env{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Keep: func(_ string, open func() exchange.Kept) exchange.Kept {
		k := open()
		t.Cleanup(k.Retire)
		return k
	}}
	set := settings
	set.ResolveInterval, set.Resolvers = time.Minute, []netip.AddrPort{zone.Address}
	policy.Expand = true
	return New(targets, set, policy, env)
}

// twins are servers of one port on several addresses of loopback.
func twins(t *testing.T, n int) (all []*odd, port int) {
	t.Helper()
	all = append(all, newOdd(t, respondText(fine)))
	port = int(netip.MustParseAddrPort(all[0].address).Port())
	for i := 2; i <= n; i++ {
		all = append(all, newOddAt(t, fmt.Sprintf("127.0.0.%d:%d", i, port), respondText(fine)))
	}
	return all, port
}

// counts returns how many requests each server has had since the last call.
func countsOf(all []*odd, before []int) []int {
	out := make([]int, len(all))
	for i, o := range all {
		_, n := o.seen()
		out[i], before[i] = n-before[i], n
	}
	return out
}

func request(t *testing.T, s *Servers, options ...exchangetest.Option) *exchange.Exchange {
	t.Helper()
	ex := exchangetest.New(t, options...)
	ex.Limits.ConnectTimeout = 5 * time.Second
	exchangetest.Run(t, ex, s)
	return ex
}

// until asks until the servers are as many as wanted.
func until(t *testing.T, s *Servers, want int) {
	t.Helper()
	for begun := time.Now(); ; <-time.After(5 * time.Millisecond) {
		request(t, s)
		if got := len(s.current(exchange.Now()).list); got == want {
			return
		} else if time.Since(begun) > time.Minute {
			t.Fatalf("%d servers, want %d", got, want)
		}
	}
}

func TestANameWithSeveralAddressesIsSeveralServers(t *testing.T) {
	zone := resolvetest.New(t)
	all, port := twins(t, 3)
	records := func(n int) (list []resolvetest.Record) {
		for i := range n {
			list = append(list, resolvetest.Record{TTL: 1, IP: fmt.Sprintf("127.0.0.%d", i+1)})
		}
		return list
	}
	zone.Set("app.test", records(2)...)
	address := "app.test:" + strconv.Itoa(port)
	s := named(t, zone, Policy{}, Target{URL: "http://" + address, Address: address, Authority: address, Weight: 1})
	before := make([]int, 3)
	until(t, s, 2)
	countsOf(all, before)
	for range 20 {
		equal(t, "server", request(t, s).Server, "http://"+address)
	}
	equal(t, "requests of two servers", fmt.Sprint(countsOf(all, before)), "[10 10 0]")

	zone.Set("app.test", records(3)...)
	until(t, s, 3)
	countsOf(all, before)
	for range 30 {
		request(t, s)
	}
	equal(t, "requests of three servers", fmt.Sprint(countsOf(all, before)), "[10 10 10]")
	equal(t, "standing", s.Standing(false)[2].Address, fmt.Sprintf("127.0.0.3:%d", port))

	pool := s.current(exchange.Now()).list[2].pool
	zone.Set("app.test", records(1)...)
	until(t, s, 1)
	equal(t, "what is known of one address is known of the server", s.current(exchange.Now()).list[0].live == s.list[0].live, true)
	equal(t, "connections to an address that is gone", pool.Idle(), 0)
	zone.Be(false, true, false) // the name server cannot tell: what is known stays
	for range 5 {
		equal(t, "reason", request(t, s).Reason, exchange.None)
	}
}

func TestRecordsOfAServiceHaveWeights(t *testing.T) {
	zone := resolvetest.New(t)
	all, port := twins(t, 3)
	var list []resolvetest.Record
	for i, weight := range []uint16{3, 1, 1} {
		name := fmt.Sprintf("s%d.test", i+1)
		zone.Set(name, resolvetest.Record{TTL: 60, IP: fmt.Sprintf("127.0.0.%d", i+1)})
		list = append(list, resolvetest.Service(60, uint16(i/2), weight, uint16(port), name))
	}
	zone.Set("_http._tcp.test", list...)
	s := named(t, zone, Policy{}, Target{URL: "srv+http://_http._tcp.test", Network: "srv", Address: "_http._tcp.test", Authority: "test", Weight: 1})
	before := make([]int, 3)
	until(t, s, 3)
	countsOf(all, before)
	for range 40 {
		request(t, s)
	}
	equal(t, "requests", fmt.Sprint(countsOf(all, before)), "[30 10 0]")
}

func TestAClientKeepsItsAddress(t *testing.T) {
	zone := resolvetest.New(t)
	all, port := twins(t, 3)
	zone.Set("app.test", resolvetest.Record{TTL: 1, IP: "127.0.0.1"}, resolvetest.Record{TTL: 1, IP: "127.0.0.2"})
	a := &Affinity{Sticky: lax("sid"), Key: OpenAffinityKey(nil), Proxy: "p", Route: "/"}
	address := "app.test:" + strconv.Itoa(port)
	s := named(t, zone, Policy{Affinity: a}, Target{URL: "http://" + address, Address: address, Authority: address, Weight: 1})
	until(t, s, 2)
	f := a.Filter()
	second := s.current(exchange.Now()).list[1]
	value := a.Key.value("p", "/", second.known())
	visit := func() *exchange.Exchange {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: sid="+value))
		ex.Limits.ConnectTimeout = 5 * time.Second
		exchangetest.Run(t, ex, s, f)
		return ex
	}
	before := make([]int, 3)
	countsOf(all, before)
	for range 10 {
		equal(t, "cookie for a client that has one", cookieOf(visit()), "")
	}
	equal(t, "requests", fmt.Sprint(countsOf(all, before)), "[0 10 0]")
	// Another address comes, in front of the client's: it stays where it is.
	zone.Set("app.test", resolvetest.Record{TTL: 1, IP: "127.0.0.1"}, resolvetest.Record{TTL: 1, IP: "127.0.0.2"}, resolvetest.Record{TTL: 1, IP: "127.0.0.3"})
	until(t, s, 3)
	countsOf(all, before)
	visit()
	equal(t, "requests", fmt.Sprint(countsOf(all, before)), "[0 1 0]")
	// Its address goes: it gets another one and its cookie.
	zone.Set("app.test", resolvetest.Record{TTL: 1, IP: "127.0.0.1"}, resolvetest.Record{TTL: 1, IP: "127.0.0.3"})
	until(t, s, 2)
	if cookie := cookieOf(visit()); !strings.HasPrefix(cookie, "sid=") || strings.Contains(cookie, value) {
		t.Errorf("cookie %q", cookie)
	}
}

func TestAddressesMayChangeUnderLoad(t *testing.T) {
	zone := resolvetest.New(t)
	_, port := twins(t, 3)
	records := []resolvetest.Record{{TTL: 1, IP: "127.0.0.1"}, {TTL: 1, IP: "127.0.0.2"}, {TTL: 1, IP: "127.0.0.3"}}
	zone.Set("app.test", records...)
	address := "app.test:" + strconv.Itoa(port)
	s := named(t, zone, Policy{}, Target{URL: "http://" + address, Address: address, Authority: address, Weight: 1})
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if ex := request(t, s); ex.Reason != exchange.None {
					t.Errorf("%v: %s", ex.Reason, ex.Cause)
					return
				}
			}
		})
	}
	for i := range 3 {
		zone.Set("app.test", records[:1+i%3]...)
		<-time.After(1100 * time.Millisecond)
	}
	close(stop)
	all.Wait()
}

func TestAddressesOfAServerCostNothing(t *testing.T) {
	s := newServers(t, settings, target("127.0.0.1:1", 1), target("[::1]:1", 1))
	s.expand([]Target{target("127.0.0.1:1", 1), target("[::1]:1", 1)}, settings, Policy{}, exchange.Env{}, nil)
	equal(t, "expansion", s.expansion == nil, true)
}

// What members hold outlives a change of the route.
func TestMembersAreKeptOverAChange(t *testing.T) {
	zone := resolvetest.New(t)
	_, port := twins(t, 2)
	zone.Set("app.test", resolvetest.Record{TTL: 60, IP: "127.0.0.1"}, resolvetest.Record{TTL: 60, IP: "127.0.0.2"})
	address := "app.test:" + strconv.Itoa(port)
	to := Target{URL: "http://" + address, Address: address, Authority: address, Weight: 1}
	env := exchangetest.Env(t)
	set := settings
	set.ResolveInterval, set.Resolvers = time.Minute, []netip.AddrPort{zone.Address}
	first := New([]Target{to}, set, Policy{Expand: true}, env)
	until(t, first, 2)
	for range 4 {
		request(t, first)
	}
	pool := first.current(exchange.Now()).list[0].pool
	equal(t, "kept connections", pool.Idle() > 0, true)
	to.Weight = 7
	second := New([]Target{to}, set, Policy{Expand: true}, env)
	until(t, second, 2)
	equal(t, "the pool is the same", second.current(exchange.Now()).list[0].pool == pool, true)
	equal(t, "weight", second.current(exchange.Now()).list[0].Weight, 7)
	second.expansion.held.Retire()
	first.list[0].pool.Retire()
	equal(t, "kept connections when it was retired", pool.Idle(), 0)
	equal(t, "reason", request(t, second).Reason, exchange.None) // exchanges under way go on
}

// A name that comes to stand for another address takes no connection along.
func TestANameThatMovesIsFollowed(t *testing.T) {
	zone := resolvetest.New(t)
	all, port := twins(t, 2)
	zone.Set("app.test", resolvetest.Record{TTL: 1, IP: "127.0.0.1"})
	address := "app.test:" + strconv.Itoa(port)
	to := []Target{{URL: "http://" + address, Address: address, Authority: address, Weight: 1}, target(all[0].address, 0)}
	s := named(t, zone, Policy{}, to...)
	for s.current(exchange.Now()) == s {
		request(t, s)
	}
	request(t, s)
	equal(t, "the other server is the same", s.current(exchange.Now()).list[1].pool == s.list[1].pool, true)
	zone.Set("app.test", resolvetest.Record{TTL: 1, IP: "127.0.0.2"})
	before := make([]int, 2)
	for begun := time.Now(); ; <-time.After(5 * time.Millisecond) {
		countsOf(all, before)
		request(t, s)
		if got := countsOf(all, before); got[1] == 1 {
			break
		} else if time.Since(begun) > time.Minute {
			t.Fatal("the name is not followed")
		}
	}
	for range 5 {
		request(t, s)
	}
	equal(t, "requests", fmt.Sprint(countsOf(all, before)), "[0 5]")
}

func FuzzStrip(f *testing.F) {
	f.Add("a=1; sid=0123456789012345678901; b=2", "sid")
	f.Fuzz(func(t *testing.T, value, name string) {
		if name == "" || strings.ContainsAny(name, "=; \t") {
			return
		}
		ex := exchangetest.New(t)
		k := &sticky{name: name}
		got := k.strip(ex, value)
		var want []string // the others, as they are written
		for part := range strings.SplitSeq(value, ";") {
			if n, _, _ := strings.Cut(strings.Trim(part, " \t"), "="); n != name {
				want = append(want, part)
			}
		}
		if joined := strings.Join(want, ";"); len(want) < strings.Count(value, ";")+1 && got != strings.TrimLeft(joined, " \t") || len(want) == strings.Count(value, ";")+1 && got != value {
			t.Errorf("%q without %q is %q, want %q", value, name, got, joined)
		}
	})
}

// cookieOf returns what a client is told of its server.
func cookieOf(ex *exchange.Exchange) string {
	if a := affinities.Get(ex); a != nil {
		return a.cookie
	}
	return ""
}
