package clientip

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/setting/unit"
	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// publisher is a CDN's web server.
type publisher struct {
	*httptest.Server
	body  atomic.Value // string
	asked atomic.Int64
}

func newPublisher(t *testing.T, secure bool) *publisher {
	t.Helper()
	p := &publisher{}
	p.body.Store("")
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		switch text := p.body.Load().(string); {
		case text == "404":
			w.WriteHeader(404)
		case strings.HasPrefix(text, "to "):
			http.Redirect(w, r, text[3:], http.StatusFound)
		default:
			fmt.Fprint(w, text)
		}
	})
	if secure {
		p.Server = httptest.NewTLSServer(answer)
	} else {
		p.Server = httptest.NewServer(answer)
	}
	t.Cleanup(p.Close)
	return p
}

// freshOf returns what keeps a CDN up to date that is known by two networks.
func freshOf(t *testing.T, url string, kept store.Values, client *http.Client) (*fresh, *bytes.Buffer) {
	t.Helper()
	base := &cdn{preset: preset{name: "test", from: []string{url}, read: lines}}
	base.embedded = &list{networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}, date: time.Date(2026, 2, 11, 0, 0, 0, 0, time.UTC)}
	base.networks.Store(base.embedded.set())
	told := &bytes.Buffer{}
	env := exchangetest.Env(t, func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) })
	env.Log = slog.New(slog.NewTextHandler(told, nil))
	read := func(cdn string) ([]byte, error) { return ReadKept(kept, cdn) }
	f := newFresh(base, Lists{Refresh: Refresh{Enabled: true, Interval: unit.Duration(24 * time.Hour)}, Values: kept, Kept: read}, env)
	if client != nil {
		client.CheckRedirect = onlyHTTPS
		f.client = client
	}
	return f, told
}

func (f *fresh) trusts(address string) bool { return f.cdn.has(netip.MustParseAddr(address)) }

func TestFetchedNetworksAreUsedAndKept(t *testing.T) {
	p, values := newPublisher(t, true), store.ValuesOf(memory.New())
	f, _ := freshOf(t, p.URL, values, p.Client())
	p.body.Store("192.0.2.0/24\n2001:db8::/32\n\n198.51.100.0/24\n")
	if err := f.fetchAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !f.trusts("198.51.100.7") || !f.trusts("2001:db8::1") || f.trusts("203.0.113.1") {
		t.Error("the list is not in use")
	}
	kept, err := values.Load(store.PrefixCDN + "test")
	if err != nil || !strings.Contains(string(kept), "fetched 2026-11-21") || !strings.Contains(string(kept), "198.51.100.0/24\n") {
		t.Errorf("kept %q, %v", kept, err)
	}
	// The next process begins with it, unless the program's list is newer.
	next, _ := freshOf(t, p.URL, values, nil)
	if !next.trusts("198.51.100.7") || next.first() < 11*time.Hour {
		t.Errorf("the kept list is not in use, or is fetched again in %v", next.first())
	}
	old := strings.Replace(string(kept), "2026-11-21", "2025-01-01", 1)
	if err := values.Keep(store.PrefixCDN+"test", []byte(old)); err != nil {
		t.Fatal(err)
	}
	if next, _ := freshOf(t, p.URL, values, nil); next.trusts("198.51.100.7") || next.first() > 2*spread {
		t.Error("a list older than the program's is in use")
	}
	if err := values.Keep(store.PrefixCDN+"test", []byte("# 2026-11-20\n0.0.0.0/1\n")); err != nil {
		t.Fatal(err)
	}
	if next, told := freshOf(t, p.URL, values, nil); next.trusts("198.51.100.7") || !next.trusts("192.0.2.1") || next.unread == nil || told.Len() > 0 {
		t.Errorf("a kept list that is absurd is in use, or %q is told before its plan is: %v", told, next.unread)
	}
}

// Machines that share a store fetch a list once: the others use what the first has kept, if it is
// newer than theirs and can be a CDN's list.
func TestMachinesFetchAListOnce(t *testing.T) {
	p, values := newPublisher(t, true), store.ValuesOf(memory.New())
	a, _ := freshOf(t, p.URL, values, p.Client())
	b, _ := freshOf(t, p.URL, values, nil)
	if b.adopt() {
		t.Error("a list that no machine has kept is used")
	}
	p.body.Store("192.0.2.0/24\n2001:db8::/32\n\n198.51.100.0/24\n")
	if err := a.fetchAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !b.adopt() || !b.trusts("198.51.100.7") || b.first() < 11*time.Hour {
		t.Errorf("the list of the other machine is not in use, or is fetched in %v", b.first())
	}
	if b.adopt() {
		t.Error("the same list is taken for a newer one")
	}
	for what, text := range map[string]string{"absurd": "# fetched 2026-11-22\n0.0.0.0/1\n", "of next year": "# fetched 2027-11-22\n192.0.2.0/24\n2001:db8::/32\n5.5.5.0/24\n"} {
		if err := values.Keep(store.PrefixCDN+"test", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b.adopt() || b.trusts("5.5.5.5") {
			t.Errorf("a list of another machine that is %s is in use", what)
		}
	}
}

// Whatever comes from the network, what is in use stays in use unless the answer
// can be a CDN's list.
func TestWhatIsRefused(t *testing.T) {
	p, plain := newPublisher(t, true), newPublisher(t, false)
	plain.body.Store("192.0.2.0/24\n2001:db8::/32\n198.51.100.0/24\n")
	same := "192.0.2.0/24\n2001:db8::/32\n"
	for name, body := range map[string]string{
		"not found": "404", "nothing": "", "only words": "# none\n", "a page": "<!doctype html><p>blocked", "everything": same + "0.0.0.0/0\n",
		"everything in v6": same + "::/0\n", "half of it": same + "128.0.0.0/1\n", "a wide network": same + "8.0.0.0/10\n",
		"a wide v6 network": same + "2400::/12\n", "private": same + "192.168.0.0/16\n", "around private": same + "192.160.0.0/11\n", "loopback": same + "127.0.0.1\n",
		"mapped": same + "::ffff:0:0/96\n", "multicast": same + "224.0.0.0/24\n", "too many addresses": same + "198.51.0.0/16\n",
		"another's list": "203.0.113.0/24\n203.0.114.0/24\n", "a range": same + "198.51.100.1-198.51.100.9\n", "bits behind": same + "198.51.100.1/24\n",
		"too many networks": same + strings.Repeat("198.51.100.1\n", maxNetworks), "too long": strings.Repeat("# x\n", maxFetched/4+1),
		"a redirect out of TLS": "to " + plain.URL, "a redirect to itself": "to " + p.URL,
	} {
		p.body.Store(body)
		f, _ := freshOf(t, p.URL, nil, p.Client())
		if err := f.fetchAll(context.Background()); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if !f.trusts("192.0.2.1") || f.cdn.networks.Load().Len() != 2 || f.kept() != nil {
			t.Errorf("%s: what was in use is gone, or the list was kept", name)
		}
	}
	p.body.Store(same)
	for name, client := range map[string]*http.Client{"a certificate nobody knows": {}, "plain HTTP": plain.Client()} {
		url := map[bool]string{true: plain.URL, false: p.URL}[name == "plain HTTP"]
		f, _ := freshOf(t, url, nil, client)
		if err := f.fetchAll(context.Background()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFormsOfLists(t *testing.T) {
	for _, c := range []struct {
		read       func([]byte) ([]string, error)
		text, want string
	}{
		{lines, "1.2.3.0/24\r\n\n # x\n2001:db8::/32", "[1.2.3.0/24 2001:db8::/32]"},
		{fastlyList, `{"addresses":["1.2.3.0/24"],"ipv6_addresses":["2001:db8::/32"]}`, "[1.2.3.0/24 2001:db8::/32]"},
		{cloudfrontList, `{"syncToken":"1","prefixes":[{"ip_prefix":"1.2.3.0/24","service":"CLOUDFRONT_ORIGIN_FACING"},{"ip_prefix":"3.0.0.0/8","service":"EC2"}],"ipv6_prefixes":[{"ipv6_prefix":"2001:db8::/32","service":"CLOUDFRONT_ORIGIN_FACING"}]}`, "[1.2.3.0/24 2001:db8::/32]"},
		{jsonList, `["1.2.3.4","2001:db8::1"]`, "[1.2.3.4 2001:db8::1]"},
	} {
		if got, err := c.read([]byte(c.text)); err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v, want %s", c.text, got, err, c.want)
		}
	}
	for _, read := range []func([]byte) ([]string, error){fastlyList, cloudfrontList, jsonList} {
		if got, err := read([]byte("<html>")); err == nil {
			t.Errorf("a page is read as %v", got)
		}
	}
}

// A CDN whose list changes every day is believed once it was fetched, and the
// fetching ends with the plan that wanted it.
func TestNetworksThatAreOnlyFetched(t *testing.T) {
	p := newPublisher(t, true)
	p.body.Store(`["203.0.113.7","2001:db8:7::1"]`)
	base := &cdn{preset: preset{name: "daily", alone: true, from: []string{p.URL}, read: jsonList}, embedded: &list{}}
	base.networks.Store(base.embedded.set())
	lists := Lists{Refresh: Refresh{Enabled: true, Interval: unit.Duration(time.Hour)}}
	f := newFresh(base, lists, exchangetest.Env(t))
	f.client = p.Client()
	if f.trusts("203.0.113.7") || f.first() != soon {
		t.Errorf("believed before it was fetched, or the first fetch waits %v", f.first())
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop, f.done = stop, make(chan struct{})
	go f.run(ctx)
	for end := time.Now().Add(time.Minute); !f.trusts("203.0.113.7"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never fetched")
		}
	}
	f.Retire()
	if !f.trusts("203.0.113.7") || f.trusts("203.0.113.8") {
		t.Error("another list is in use")
	}
	// A plan that serves nobody fetches nothing.
	asleep := current(base, lists, exchangetest.Env(t))
	if asleep.networks.Load().Len() != 0 || p.asked.Load() != 1 {
		t.Errorf("asked %d times", p.asked.Load())
	}
	kept := exchangetest.Env(t)
	c := current(named("cloudflare"), Lists{Refresh: Refresh{Interval: lists.Interval}}, kept)
	if c == named("cloudflare") || !c.has(netip.MustParseAddr("173.245.48.1")) || current(named("google"), Lists{}, kept) != named("google") {
		t.Error("the program's networks are not in use")
	}
}

func TestWhatATrustedPeerTells(t *testing.T) {
	fields := exchangetest.Head("GET", "/", "X-Forwarded-Method: PUT", "X-Forwarded-Host: outer.example", "X-Forwarded-Uri: /outer")
	for from, want := range map[string]exchange.Forwarded{"10.0.0.1": {Trusted: true, Method: "PUT", Host: "outer.example", URI: "/outer"}, "192.0.2.1": {}, "173.245.48.1": {}} {
		ex := exchangetest.New(t, exchangetest.From(from), fields)
		compile(t, &Config{Enabled: true, Trusted: []string{"10.0.0.0/8"}, CDN: []string{"cloudflare"}}).Request(ex)
		if ex.Told != want || ex.Request.Header.Len() != 0 {
			t.Errorf("from %s: told %+v, want %+v; %d fields stay", from, ex.Told, want, ex.Request.Header.Len())
		}
	}
}
