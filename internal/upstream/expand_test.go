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
	"headgate/internal/resolve/resolvetest"
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
	s := New(targets, set, policy, env)
	t.Cleanup(s.Retire)
	return s
}

// twins are servers of one port on several addresses of loopback.
func twins(t *testing.T, n int) (all []*odd, port int) {
	t.Helper()
	all = append(all, newOdd(t, says(fine)))
	port = int(netip.MustParseAddrPort(all[0].address).Port())
	for i := 2; i <= n; i++ {
		all = append(all, newOddAt(t, fmt.Sprintf("127.0.0.%d:%d", i, port), says(fine)))
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

func ask(t *testing.T, s *Servers, options ...exchangetest.Option) *exchange.Exchange {
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
		ask(t, s)
		if got := len(s.current(exchange.Now()).list); got == want {
			return
		} else if time.Since(begun) > 20*time.Second {
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
		equal(t, "server", ask(t, s).Server, "http://"+address)
	}
	equal(t, "requests of two servers", fmt.Sprint(countsOf(all, before)), "[10 10 0]")

	zone.Set("app.test", records(3)...)
	until(t, s, 3)
	countsOf(all, before)
	for range 30 {
		ask(t, s)
	}
	equal(t, "requests of three servers", fmt.Sprint(countsOf(all, before)), "[10 10 10]")
	equal(t, "members", fmt.Sprint(len(s.Members())), "3")
	equal(t, "standing", s.Standing(false)[2].Address, fmt.Sprintf("127.0.0.3:%d", port))

	pool := s.current(exchange.Now()).list[2].pool
	zone.Set("app.test", records(1)...)
	until(t, s, 1)
	equal(t, "members of one address", s.Members() == nil, true)
	equal(t, "connections to an address that is gone", pool.Idle(), 0)
	zone.Be(false, true, false) // the name server cannot tell: what is known stays
	for range 5 {
		equal(t, "reason", ask(t, s).Reason, exchange.None)
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
		ask(t, s)
	}
	equal(t, "requests", fmt.Sprint(countsOf(all, before)), "[30 10 0]")
}

func TestAClientKeepsItsAddress(t *testing.T) {
	zone := resolvetest.New(t)
	all, port := twins(t, 3)
	zone.Set("app.test", resolvetest.Record{TTL: 1, IP: "127.0.0.1"}, resolvetest.Record{TTL: 1, IP: "127.0.0.2"})
	a := &Affinity{Sticky: lax("sid"), Key: OpenAffinityKey("", true, slog.New(slog.DiscardHandler)), Proxy: "p", Route: "/"}
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
		equal(t, "cookie for a client that has one", visit().Affinity.Cookie, "")
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
	if cookie := visit().Affinity.Cookie; !strings.HasPrefix(cookie, "sid=") || strings.Contains(cookie, value) {
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
				if ex := ask(t, s); ex.Reason != exchange.None {
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
	s.expand([]Target{target("127.0.0.1:1", 1), target("[::1]:1", 1)}, settings, Policy{}, exchange.Env{})
	equal(t, "expansion", s.expansion == nil, true)
}
