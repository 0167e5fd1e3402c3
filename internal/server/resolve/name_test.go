package resolve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/server/resolve/resolvetest"
)

// reply is what a test's name server says, and how long it takes.
type reply struct {
	set   []Endpoint
	ttl   time.Duration
	err   error
	takes time.Duration
}

// oracle is a name whose look-ups a test answers.
type oracle struct {
	*Name
	log strings.Builder
	mu  struct {
		sync.Mutex
		reply
		asked int
	}
}

func newOracle() *oracle {
	o := &oracle{}
	o.Name = newName("name.test", Options{Interval: 30 * time.Second, Log: slog.New(slog.NewTextHandler(&o.log, nil))})
	o.ask = func(ctx context.Context) ([]Endpoint, time.Duration, error) {
		o.mu.Lock()
		t := o.mu.reply
		o.mu.asked++
		o.mu.Unlock()
		select {
		case <-time.After(t.takes):
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		return t.set, t.ttl, t.err
	}
	return o
}

func (o *oracle) answer(t reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.reply = t
}

// get returns the first address now, or the error; and how long it took.
func (o *oracle) get() (string, time.Duration) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	set, err := o.endpoints(ctx)
	if err != nil {
		return err.Error(), time.Since(begun)
	}
	return set[0].Addresses[0].Addr().String(), time.Since(begun)
}

func at(ip string) []Endpoint {
	return []Endpoint{{Addresses: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(ip), 80)}, Weight: 1}}
}

var (
	errBroken = errors.New("server misbehaving")
	errNone   = &net.DNSError{Err: "no such host", Name: "name.test", IsNotFound: true}
)

func TestAddressesAreBelievedAsLongAsTheirTTL(t *testing.T) {
	for _, c := range []struct{ ttl, want time.Duration }{
		{5 * time.Second, 5 * time.Second}, {0, shortest}, {time.Hour, 30 * time.Second}, {unknownTTL, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOracle()
			o.answer(reply{set: at("10.0.0.1"), ttl: c.ttl})
			o.get()
			o.answer(reply{set: at("10.0.0.2"), ttl: c.ttl})
			time.Sleep(c.want - time.Millisecond)
			o.get()
			synctest.Wait()
			if got, _ := o.get(); got != "10.0.0.1" {
				t.Errorf("TTL %v: %s before its end", c.ttl, got)
			}
			time.Sleep(time.Millisecond)
			o.get() // begins the look-up and does not wait for it
			synctest.Wait()
			if got, _ := o.get(); got != "10.0.0.2" || o.mu.asked != 2 {
				t.Errorf("TTL %v: %s after its end, asked %d times", c.ttl, got, o.mu.asked)
			}
			if !strings.Contains(o.log.String(), "other addresses") {
				t.Errorf("log %q", o.log.String())
			}
		})
	}
}

func TestTheLastGoodAddressesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.answer(reply{set: at("10.0.0.1"), ttl: time.Second})
		o.get()
		o.answer(reply{err: errBroken, takes: time.Second})
		for range 1000 {
			time.Sleep(10 * time.Second)
			got, took := o.get()
			if got != "10.0.0.1" || took > refreshWait {
				t.Fatalf("%s after %v", got, took)
			}
		}
		synctest.Wait()
		if n := strings.Count(o.log.String(), "\n"); n != 1 || !strings.Contains(o.log.String(), "keeping its last addresses") {
			t.Errorf("log of %d lines: %s", n, o.log.String())
		}
		o.answer(reply{set: at("10.0.0.2")})
		time.Sleep(10 * time.Second)
		o.get()
		synctest.Wait()
		if got, _ := o.get(); got != "10.0.0.2" || !strings.Contains(o.log.String(), "can be resolved again") {
			t.Errorf("%s, log %s", got, o.log.String())
		}
	})
}

func TestANameThatIsGoneIsGivenUpAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.answer(reply{set: at("10.0.0.1"), ttl: time.Second})
		o.get()
		o.answer(reply{err: errNone})
		begun := time.Now()
		for {
			time.Sleep(time.Second)
			got, _ := o.get()
			synctest.Wait()
			if got != "10.0.0.1" {
				break
			}
		}
		if took := time.Since(begun); took < goneAfter || took > goneAfter+10*time.Second {
			t.Errorf("given up after %v, want %v", took, goneAfter)
		}
	})
}

func TestAddressesThatAreOldAreNotUsedWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.answer(reply{set: at("10.0.0.1"), ttl: time.Second})
		o.get()
		time.Sleep(time.Hour) // nobody asked
		o.answer(reply{set: at("10.0.0.2"), takes: time.Second})
		if got, took := o.get(); got != "10.0.0.2" || took != time.Second {
			t.Errorf("%s after %v, want the new address", got, took)
		}
		time.Sleep(time.Hour)
		o.answer(reply{set: at("10.0.0.3"), takes: 8 * time.Second})
		if got, took := o.get(); got != "10.0.0.2" || took != refreshWait {
			t.Errorf("%s after %v, want the old address when it takes too long", got, took)
		}
		time.Sleep(10 * time.Second)
	})
}

func TestManyWaitForOneLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.answer(reply{set: at("10.0.0.1"), takes: time.Second})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if got, took := o.get(); got != "10.0.0.1" || took != time.Second {
					t.Errorf("%s after %v", got, took)
				}
			})
		}
		all.Wait()
		if o.mu.asked != 1 {
			t.Errorf("asked %d times, want once", o.mu.asked)
		}
	})
}

func TestAFailureIsBelievedForAShortTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.answer(reply{err: errNone})
		for range 10 {
			if got, _ := o.get(); !strings.Contains(got, "no such host") {
				t.Errorf("got %s", got)
			}
		}
		if o.mu.asked != 1 {
			t.Errorf("asked %d times, want once", o.mu.asked)
		}
		o.answer(reply{set: at("10.0.0.1")})
		time.Sleep(askAgainSoon)
		if got, _ := o.get(); got != "10.0.0.1" {
			t.Errorf("%s when the name is there", got)
		}
	})
}

func TestASilentNameServerIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.answer(reply{takes: time.Hour})
		got, took := o.get()
		if took != 5*time.Second || !strings.Contains(got, "timed out") {
			t.Errorf("%s after %v", got, took)
		}
		time.Sleep(lookupTimeout) // the lookup ends by itself
	})
}

func TestDialGoesRoundTheServersOfAName(t *testing.T) {
	first := listenAt(t, "127.0.0.1:0")
	second := listenAt(t, fmt.Sprintf("127.0.0.2:%d", first.Port()))
	z := resolvetest.New(t)
	z.Set("two.test", resolvetest.Record{TTL: 60, IP: "127.0.0.1"}, resolvetest.Record{TTL: 60, IP: "127.0.0.2"})
	o := Options{Servers: []netip.AddrPort{z.Address}, Log: slog.New(slog.DiscardHandler)}
	n := New(fmt.Sprintf("two.test:%d", first.Port()), o)
	seen := map[string]int{}
	for range 6 {
		got, err := connected(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		seen[got]++
	}
	if seen[first.String()] != 3 || seen[second.String()] != 3 {
		t.Errorf("connected to %v, want both alike", seen)
	}
	// One that refuses is left for the other.
	z.Set("half.test", resolvetest.Record{TTL: 60, IP: "127.0.0.3"}, resolvetest.Record{TTL: 60, IP: "127.0.0.2"})
	n = New(fmt.Sprintf("half.test:%d", first.Port()), o)
	for range 4 {
		if got, err := connected(t.Context(), n); err != nil || got != second.String() {
			t.Errorf("%s, %v, want %v", got, err, second)
		}
	}
	z.Set("_x._tcp.test", resolvetest.Service(60, 0, 0, second.Port(), "two.test"))
	if got, err := connected(t.Context(), NewService("_x._tcp.test", o)); err != nil || seen[got] == 0 {
		t.Errorf("service: %s, %v", got, err)
	}
	if got, err := connected(t.Context(), New(first.String(), Options{})); err != nil || got != first.String() {
		t.Errorf("address: %s, %v", got, err)
	}
	var dns *net.DNSError
	if got, err := connected(t.Context(), New("no.test:80", o)); !errors.As(err, &dns) {
		t.Errorf("no such name: %s, %v", got, err)
	}
}

// runner is a connection that takes a while to come about.
type runner struct{ net.Conn }

func (runner) Close() error { return nil }

func TestTheRaceIsStaggered(t *testing.T) {
	list := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1"), netip.MustParseAddrPort("10.0.0.3:1")}
	const never = time.Hour
	errRefused := errors.New("refused")
	for _, c := range []struct {
		name  string
		takes [3]time.Duration
		fails [3]bool
		want  string
		after time.Duration
		tried int
	}{
		{"the first", [3]time.Duration{20, 0, 0}, [3]bool{}, "10.0.0.1:1", 20, 1},
		{"the first is slow and wins", [3]time.Duration{300, 100, 0}, [3]bool{}, "10.0.0.1:1", 300, 2},
		{"the first is silent", [3]time.Duration{never, 10, 0}, [3]bool{}, "10.0.0.2:1", 260, 2},
		{"the first fails", [3]time.Duration{10, 10, 0}, [3]bool{true}, "10.0.0.2:1", 20, 2},
		{"two are silent", [3]time.Duration{never, never, 10}, [3]bool{}, "10.0.0.3:1", 510, 3},
		{"all fail", [3]time.Duration{10, 10, 10}, [3]bool{true, true, true}, "refused", 30, 3},
		{"all are silent", [3]time.Duration{never, never, never}, [3]bool{}, "deadline", 5000, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			tried := 0
			var mu sync.Mutex
			r := &runners{results: make(chan result, 3)}
			inner, end := context.WithCancel(ctx)
			r.dial = func(a netip.AddrPort) (net.Conn, error) {
				i := int(a.Addr().As4()[3]) - 1
				mu.Lock()
				tried++
				mu.Unlock()
				takes := c.takes[i]
				if takes != never {
					takes *= time.Millisecond
				}
				select {
				case <-time.After(takes):
				case <-inner.Done():
					return nil, inner.Err()
				}
				if c.fails[i] {
					return nil, errRefused
				}
				return runner{&named{a.String()}}, nil
			}
			begun := time.Now()
			nc, err := r.run(ctx, list)
			took := time.Since(begun)
			end()
			r.giveUp()
			got := fmt.Sprint(err)
			if err == nil {
				got = nc.(runner).Conn.(*named).name
			}
			if !strings.Contains(got, c.want) || took != c.after*time.Millisecond || tried != c.tried {
				t.Errorf("%s: %s after %v and %d tries, want %s after %v and %d", c.name, got, took, tried, c.want, c.after*time.Millisecond, c.tried)
			}
		})
	}
}

// named is a connection with a name and nothing else.
type named struct{ name string }

func (n *named) Read([]byte) (int, error)         { return 0, net.ErrClosed }
func (n *named) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (n *named) Close() error                     { return nil }
func (n *named) LocalAddr() net.Addr              { return nil }
func (n *named) RemoteAddr() net.Addr             { return nil }
func (n *named) SetDeadline(time.Time) error      { return nil }
func (n *named) SetReadDeadline(time.Time) error  { return nil }
func (n *named) SetWriteDeadline(time.Time) error { return nil }
