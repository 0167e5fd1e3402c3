package ipfilter

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
)

func compile(t testing.TB, c *Config, env exchange.Env) exchange.Filter {
	t.Helper()
	c.Enabled = true
	f, err := Compile(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDenyWinsAndAllowRefusesTheRest(t *testing.T) {
	for _, c := range []struct {
		name        string
		allow, deny []string
		in, out     []string
	}{
		{"deny", nil, []string{"192.0.2.0/24", "2001:db8::/32"}, []string{"198.51.100.1", "2001:db9::1"}, []string{"192.0.2.9", "2001:db8::9"}},
		{"allow", []string{"192.0.2.0/24"}, nil, []string{"192.0.2.9"}, []string{"198.51.100.1", "::1", "2001:db8::1"}},
		{"both", []string{"10.0.0.0/8", "::1"}, []string{"10.1.0.0/16"}, []string{"10.0.0.1", "::1"}, []string{"10.1.0.1", "192.0.2.1"}},
		{"overlapping", []string{"10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/8", "10.1.2.3"}, nil, []string{"10.1.2.3", "10.9.9.9"}, []string{"11.0.0.1"}},
		{"IPv4-mapped client", nil, []string{"192.0.2.7"}, []string{"::ffff:192.0.2.8"}, []string{"::ffff:192.0.2.7"}},
		{"IPv4-mapped entry", nil, []string{"::ffff:192.0.2.0/120"}, []string{"192.0.3.7"}, []string{"192.0.2.7"}},
		{"zone", nil, []string{"fe80::/10"}, []string{"fd00::1"}, []string{"fe80::1%eth0"}},
		{"all of IPv4", nil, []string{"0.0.0.0/0"}, []string{"2001:db8::1"}, []string{"192.0.2.1", "::ffff:192.0.2.1"}},
	} {
		f := compile(t, &Config{Allow: c.allow, Deny: c.deny}, exchangetest.Env(t))
		judge := func(from string) exchange.Reason {
			ex := exchangetest.New(t, exchangetest.From(from))
			if answer := f.Request(ex); answer != nil {
				return answer.Reason
			}
			return exchange.None
		}
		for _, from := range c.in {
			if got := judge(from); got != exchange.None {
				t.Errorf("%s: %s: %q, want to come in", c.name, from, got)
			}
		}
		for _, from := range c.out {
			if got := judge(from); got != exchange.AddressDenied {
				t.Errorf("%s: %s: %q, want address_denied", c.name, from, got)
			}
		}
	}
}

func TestAnUnknownAddressIsNotAllowed(t *testing.T) {
	ex := exchangetest.New(t)
	ex.ClientIP = netip.Addr{}
	if answer := compile(t, &Config{Allow: []string{"0.0.0.0/0", "::/0"}}, exchangetest.Env(t)).Request(ex); answer == nil {
		t.Error("a client without an address came in")
	}
}

func TestTheSourceIsNotAsked(t *testing.T) {
	source := &exchangetest.Source{Status: 200}
	f := compile(t, &Config{Deny: []string{"192.0.2.0/24"}}, exchangetest.Env(t))
	ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept: application/json"))
	got := exchangetest.Run(t, ex, source, f)
	if got.Status != exchange.AddressDenied.Status() || source.Asked != 0 || !strings.Contains(got.Body, "address_denied") || strings.Contains(got.Body, "deny ") {
		t.Errorf("status %d, the source was asked %d times, body %s", got.Status, source.Asked, got.Body)
	}
	if ex.Cause != "the address is in ip_filter.deny" {
		t.Errorf("cause %q", ex.Cause)
	}
}

func TestEqualListsAreKept(t *testing.T) {
	var log bytes.Buffer
	env := exchangetest.Env(t)
	env.Note = func(n exchange.Note) { fmt.Fprintln(&log, "level="+n.Level.String(), n.Attrs) }
	keys := map[string]bool{}
	keep := env.Keep
	env.Keep = func(k string, open func() exchange.Kept) exchange.Kept {
		keys[k] = true
		return keep(k, open)
	}
	for _, c := range []*Config{
		{Allow: []string{"10.0.0.0/8", "10.1.0.0/16"}}, {Allow: []string{"10.0.0.0/8", "10.1.0.0/16"}},
		{Deny: []string{"10.0.0.0/8", "10.1.0.0/16"}}, {Allow: []string{"10.0.0.0/8"}, Deny: []string{"10.1.0.0/16"}},
	} {
		compile(t, c, env)
	}
	if len(keys) != 3 {
		t.Errorf("%d keys, want 3: the first two are equal", len(keys))
	}
	if got := log.String(); strings.Count(got, "level=INFO") != 2 || !strings.Contains(got, "[list allow entries 1 first 10.1.0.0/16 within 10.0.0.0/8]") {
		t.Errorf("log %q, want one line for each list with an entry that changes nothing", got)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Config
		want string
	}{
		{"lists", Config{Enabled: true, Allow: []string{"10.0.0.0/8"}, Deny: []string{"10.1.0.0/16"}}, ""},
		{"off", Config{}, ""},
		{"overlap", Config{Enabled: true, Deny: []string{"10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/8"}}, ""},
		{"nothing", Config{Enabled: true}, "ip_filter: the filter has neither allow nor deny"},
		{"range", Config{Enabled: true, Deny: []string{"10.0.0.1-10.0.0.9"}}, `ip_filter.deny[0]: "10.0.0.1-10.0.0.9" is a range; lists hold addresses and networks; write 10.0.0.1, 10.0.0.2/31, 10.0.0.4/30, 10.0.0.8/31`},
		{"inverted range", Config{Enabled: true, Allow: []string{"::1", "10.0.0.9-10.0.0.1"}}, `ip_filter.allow[1]: the range "10.0.0.9-10.0.0.1" is inverted`},
		{"bits behind the length", Config{Enabled: true, Allow: []string{"10.0.0.1/8"}}, `ip_filter.allow[0]: "10.0.0.1/8": host bits are set`},
		{"deny all, as nginx has it", Config{Enabled: true, Allow: []string{"10.0.0.0/8"}, Deny: []string{"0.0.0.0/0", "::/0"}}, "ip_filter.allow[0]: 10.0.0.0/8 lies in 0.0.0.0/0 of deny, and deny wins"},
		{"the same", Config{Enabled: true, Allow: []string{"::1", "10.0.0.1"}, Deny: []string{"10.0.0.1/32"}}, "ip_filter.allow[1]: 10.0.0.1 lies in 10.0.0.1/32 of deny"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("ip_filter"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// many returns n networks, half of them IPv6.
func many(n int) []string {
	list := make([]string, n)
	for i := range list {
		if i%2 == 0 {
			list[i] = fmt.Sprintf("%d.%d.%d.0/24", 1+i>>16, i>>8&255, i&255)
		} else {
			list[i] = fmt.Sprintf("2001:%x:%x::/48", i>>8, i&255)
		}
	}
	return list
}

func TestNothingIsAllocated(t *testing.T) {
	f := compile(t, &Config{Allow: []string{"0.0.0.0/0"}, Deny: many(1000)}, exchangetest.Env(t))
	for _, from := range []string{"203.0.113.1", "1.0.4.1", "2001:db8::1"} {
		ex := exchangetest.New(t, exchangetest.From(from))
		if n := testing.AllocsPerRun(100, func() { f.Request(ex) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", from, n)
		}
	}
}

func BenchmarkIPFilter(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		f := compile(b, &Config{Allow: []string{"0.0.0.0/0", "::/0"}, Deny: many(n)}, exchangetest.Env(b))
		for _, from := range []string{"203.0.113.1", "1.0.4.1", "2001:db8::1"} {
			ex := exchangetest.New(b, exchangetest.From(from))
			b.Run(fmt.Sprintf("%d/%s", n, from), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f.Request(ex)
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	c := &Config{Enabled: true, Deny: many(100_000)}
	env := exchangetest.Env(b)
	keep := env.Keep
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprintf("100000/kept=%v", known), func(b *testing.B) {
			env.Keep = keep
			if !known {
				env.Keep = func(_ string, open func() exchange.Kept) exchange.Kept { return open() }
			}
			for b.Loop() {
				compile(b, c, env)
			}
		})
	}
}

// TestObserveRejectsNoClientAndNamesTheCause checks that a filter that observes lets all
// clients in, and that the log and a rehearsal show which it would reject.
func TestObserveRejectsNoClientAndNamesTheCause(t *testing.T) {
	var log bytes.Buffer
	env := exchangetest.Env(t)
	env.Log, env.Scope = slog.New(slog.NewTextHandler(&log, nil)), "proxy shop"
	f := compile(t, &Config{Deny: []string{"192.0.2.0/24"}, Mode: Observe}, env)
	const text = "observe mode: ip_filter would reject this request: the address is in ip_filter.deny"
	for range 3 {
		ex := exchangetest.New(t, exchangetest.From("192.0.2.9"))
		if answer := f.Request(ex); answer != nil || ex.Cause != text {
			t.Errorf("got %v with the cause %q, want %q", answer, ex.Cause, text)
		}
	}
	ex := exchangetest.New(t, exchangetest.From("198.51.100.1"))
	if answer := f.Request(ex); answer != nil || ex.Cause != "" {
		t.Errorf("another client: %v with the cause %q", answer, ex.Cause)
	}
	ex = exchangetest.New(t, exchangetest.From("192.0.2.9"))
	ex.Rehearsal = true
	if answer := f.Request(ex); answer != nil || ex.Cause != "" || len(ex.Notes) != 1 || ex.Notes[0] != text {
		t.Errorf("in a rehearsal: %v with the cause %q and the notes %q", answer, ex.Cause, ex.Notes)
	}
	stream, err := CompileStream(&Config{Enabled: true, Deny: []string{"192.0.2.0/24"}, Mode: Observe}, env)
	if err != nil {
		t.Fatal(err)
	}
	if answer := stream.Admit(netip.MustParseAddr("192.0.2.9")); answer != nil {
		t.Errorf("a connection gets %v", answer)
	}
	if got := log.String(); strings.Count(got, "would reject clients") != 2 || !strings.Contains(got, `filter="proxy shop" count=1 client_ip=192.0.2.9`) {
		t.Errorf("the log has\n%s", got)
	}
}

// TestCountriesWithoutPrivateAddressesAreNoted checks that a filter that lets in only
// countries has a note: private addresses have none.
func TestCountriesWithoutPrivateAddressesAreNoted(t *testing.T) {
	for _, c := range []struct {
		allow []string
		noted bool
	}{
		{[]string{"country:DE"}, true},
		{[]string{"country:DE", "asn:64500"}, true},
		{[]string{"country:DE", "list:private"}, false},
		{[]string{"country:DE", "list:office"}, false},
		{[]string{"country:DE", "10.0.0.0/8"}, false},
		{nil, false},
	} {
		r := schema.NewReport("", nil)
		(&Config{Enabled: true, Allow: c.allow, Deny: []string{"country:JP"}}).Check(r.Root().Field("ip_filter"))
		if got := len(r.Notes()) > 0; got != c.noted || !r.Empty() {
			t.Errorf("allow %v: notes %v, problems %v; want a note: %v", c.allow, r.Notes(), r.Problems(), c.noted)
		}
	}
}
