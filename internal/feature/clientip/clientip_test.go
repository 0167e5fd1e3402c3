package clientip

import (
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
)

func compile(t testing.TB, c *Config) exchange.Filter {
	t.Helper()
	f, err := Compile(c, Lists{}, exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// behindProxies trusts 10.0.0.0/8 and fd00::/8.
var behindProxies = &Config{Enabled: true, Trusted: []string{"10.0.0.0/8", "fd00::/8"}}

func TestClientIsThePeer(t *testing.T) {
	for _, from := range []string{"192.0.2.7", "::ffff:192.0.2.7"} {
		ex := exchangetest.New(t, exchangetest.From(from), exchangetest.Head("GET", "/", "X-Forwarded-For: 6.6.6.6"))
		if answer := compile(t, nil).Request(ex); answer != nil {
			t.Fatalf("answer %+v, want none", answer)
		}
		if got := ex.ClientIP.String(); got != "192.0.2.7" {
			t.Errorf("ClientIP = %s, want 192.0.2.7", got)
		}
	}
}

func TestChains(t *testing.T) {
	for _, c := range []struct {
		name, peer, want string
		fields           []string
	}{
		{"no field", "10.0.0.1", "10.0.0.1", nil},
		{"one element", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: 198.51.100.7"}},
		{"the right-most that is not trusted", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: 6.6.6.6, 198.51.100.7, 10.2.0.1 ,10.0.0.9"}},
		{"over several lines", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: 6.6.6.6", "Accept: */*", "X-Forwarded-For: 198.51.100.7", "x-forwarded-for: 10.0.0.2"}},
		{"all trusted", "10.0.0.1", "10.0.0.3", []string{"X-Forwarded-For: 10.0.0.3, 10.0.0.2"}},
		{"empty elements", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: ,6.6.6.6,198.51.100.7,, ,"}},
		{"empty field", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: "}},
		{"port", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: 198.51.100.7:4711"}},
		{"IPv6", "10.0.0.1", "2001:db8::1", []string{"X-Forwarded-For: 2001:db8::1"}},
		{"IPv6 with port", "10.0.0.1", "2001:db8::1", []string{"X-Forwarded-For: [2001:db8::1]:443"}},
		{"IPv6 in brackets", "10.0.0.1", "2001:db8::1", []string{"X-Forwarded-For: [2001:db8::1]"}},
		{"zone", "10.0.0.1", "fe80::1", []string{"X-Forwarded-For: fe80::1%eth0"}},
		{"zone with port", "10.0.0.1", "fe80::1", []string{"X-Forwarded-For: [fe80::1%25eth0]:80"}},
		{"IPv4-mapped client", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: ::ffff:198.51.100.7"}},
		{"IPv4-mapped hop", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: 198.51.100.7, [::ffff:10.0.0.2]:80"}},
		{"IPv4-mapped peer", "::ffff:10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: 198.51.100.7"}},
		{"IPv6 peer", "fd00::1", "198.51.100.7", []string{"X-Forwarded-For: 198.51.100.7"}},
		{"garbage", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: 6.6.6.6, garbage"}},
		{"garbage behind a good hop", "10.0.0.1", "10.0.0.2", []string{"X-Forwarded-For: 6.6.6.6, unknown, 10.0.0.2"}},
		{"bad port", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: 198.51.100.7:http"}},
		{"no port", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: 198.51.100.7:"}},
		{"open bracket", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: [2001:db8::1"}},
		{"IPv4 in brackets", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: [198.51.100.7]"}},
		{"IPv4 with zone", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: 198.51.100.7%eth0"}},
		{"leading zeros", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: 198.051.100.007"}},
		{"quotes", "10.0.0.1", "10.0.0.1", []string{`X-Forwarded-For: "198.51.100.7"`}},
		{"very long", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: " + strings.Repeat("1", 9000)}},
		{"Forwarded when there is no X-Forwarded-For", "10.0.0.1", "198.51.100.7", []string{"Forwarded: for=198.51.100.7;proto=https"}},
		{"X-Forwarded-For before Forwarded", "10.0.0.1", "198.51.100.7", []string{"Forwarded: for=6.6.6.6", "X-Forwarded-For: 198.51.100.7"}},
		{"other claims are not read", "10.0.0.1", "10.0.0.1", []string{"X-Real-IP: 6.6.6.6", "True-Client-IP: 6.6.6.6", "CF-Connecting-IP: 6.6.6.6"}},
		{"twins are not read", "10.0.0.1", "10.0.0.1", []string{"X_Forwarded_For: 6.6.6.6"}},
		{"not trusted", "192.0.2.7", "192.0.2.7", []string{"X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6"}},
		{"not trusted, says it is", "192.0.2.7", "192.0.2.7", []string{"X-Forwarded-For: 10.0.0.1"}},
	} {
		ex := exchangetest.New(t, exchangetest.From(c.peer), exchangetest.Head("GET", "/", append(c.fields, "Accept: */*")...))
		compile(t, behindProxies).Request(ex)
		if got := ex.ClientIP.String(); got != c.want {
			t.Errorf("%s: client %s, want %s", c.name, got, c.want)
		}
		for _, f := range ex.Request.Header.All() {
			if f.ID != header.Accept {
				t.Errorf("%s: field %s stays", c.name, f.Name)
			}
		}
	}
}

func TestForwarded(t *testing.T) {
	for _, c := range []struct{ value, want, scheme string }{
		{"for=198.51.100.7", "198.51.100.7", "http"},
		{"for=198.51.100.7;proto=https;by=10.0.0.1", "198.51.100.7", "https"},
		{"proto=https;FOR=198.51.100.7", "198.51.100.7", "https"},
		{`For="[2001:db8::1]:4711";Proto=HTTPS`, "2001:db8::1", "https"},
		{`for="198.51.100.7:_hidden"`, "198.51.100.7", "http"},
		{`for=6.6.6.6;proto=http, for=198.51.100.7;proto=https, for=10.0.0.2;proto=http`, "198.51.100.7", "https"},
		{`for=198.51.100.7;host="a,b;for=6.6.6.6";proto=https`, "198.51.100.7", "https"},
		{"for=unknown", "10.0.0.1", "http"},
		{"for=_hidden", "10.0.0.1", "http"},
		{"proto=https", "10.0.0.1", "http"},
		{"for=198.51.100.7;for=6.6.6.6", "10.0.0.1", "http"},
		{"for", "10.0.0.1", "http"},
		{"for=6.6.6.6;, for=10.0.0.2", "6.6.6.6", "http"},
		{`for="6.6.6.6`, "10.0.0.1", "http"},
		// A client leaves a quote open: what the proxy wrote behind it counts.
		{`for=", for=198.51.100.7`, "198.51.100.7", "http"},
		{`for="6.6.6.6, for="[2001:db8::1]"`, "2001:db8::1", "http"},
		{`for=6.6.6.6;host=", for=10.0.0.2`, "10.0.0.2", "http"},
		{`for="\"6.6.6.6", for=10.0.0.2`, "10.0.0.2", "http"},
		{"for=198.51.100.7;proto=gopher", "198.51.100.7", "http"},
		{";;;;", "10.0.0.1", "http"},
		{"", "10.0.0.1", "http"},
	} {
		for _, set := range []*Config{behindProxies, {Enabled: true, Trusted: behindProxies.Trusted, Header: "forwarded"}} {
			ex := exchangetest.New(t, exchangetest.From("10.0.0.1"), exchangetest.Head("GET", "/", "Forwarded: "+c.value))
			compile(t, set).Request(ex)
			if got := ex.ClientIP.String(); got != c.want || ex.Request.Scheme != c.scheme {
				t.Errorf("%q: client %s, %s, want %s, %s", c.value, got, ex.Request.Scheme, c.want, c.scheme)
			}
		}
	}
}

func TestScheme(t *testing.T) {
	for _, c := range []struct{ peer, proto, want string }{
		{"10.0.0.1", "https", "https"}, {"10.0.0.1", "HTTPS", "https"}, {"10.0.0.1", "wss", "https"}, {"10.0.0.1", "http", "http"},
		{"10.0.0.1", "http, https", "https"}, {"10.0.0.1", "https, http", "http"}, {"10.0.0.1", "gopher", "http"}, {"10.0.0.1", "", "http"},
		{"192.0.2.7", "https", "http"},
	} {
		ex := exchangetest.New(t, exchangetest.From(c.peer), exchangetest.Head("GET", "/", "X-Forwarded-For: 198.51.100.7", "X-Forwarded-Proto: "+c.proto))
		compile(t, behindProxies).Request(ex)
		if ex.Request.Scheme != c.want {
			t.Errorf("%s from %s: scheme %s, want %s", c.proto, c.peer, ex.Request.Scheme, c.want)
		}
	}
	ex := exchangetest.New(t, exchangetest.Secure(), exchangetest.From("10.0.0.1"), exchangetest.Head("GET", "/", "X-Forwarded-Proto: http"))
	compile(t, behindProxies).Request(ex)
	if ex.Request.Scheme != "http" {
		t.Errorf("a trusted peer spoke https and says that it was spoken to by http: scheme %s", ex.Request.Scheme)
	}
}

func TestHeader(t *testing.T) {
	for _, c := range []struct {
		name, header, peer, want string
		fields                   []string
		stay                     int
	}{
		{"read", "X-Real-IP", "10.0.0.1", "198.51.100.7", []string{"X-Real-IP: 198.51.100.7", "X-Forwarded-For: 6.6.6.6"}, 0},
		{"missing", "X-Real-IP", "10.0.0.1", "10.0.0.1", []string{"X-Forwarded-For: 6.6.6.6"}, 0},
		{"own name", "X-Client", "10.0.0.1", "198.51.100.7", []string{"x-client: 198.51.100.7", "X_Client: 6.6.6.6"}, 1},
		{"own name, not trusted", "X-Client", "192.0.2.7", "192.0.2.7", []string{"X-Client: 6.6.6.6", "X_CLIENT: 6.6.6.6", "XClient: 1"}, 1},
		{"Forwarded, not X-Forwarded-For", "Forwarded", "10.0.0.1", "198.51.100.7", []string{"Forwarded: for=198.51.100.7", "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https"}, 0},
	} {
		ex := exchangetest.New(t, exchangetest.From(c.peer), exchangetest.Head("GET", "/", c.fields...))
		compile(t, &Config{Enabled: true, Trusted: []string{"10.0.0.0/8"}, Header: c.header}).Request(ex)
		if got := ex.ClientIP.String(); got != c.want {
			t.Errorf("%s: client %s, want %s", c.name, got, c.want)
		}
		if got := ex.Request.Header.Len(); got != c.stay {
			t.Errorf("%s: %d fields stay, want %d: %v", c.name, got, c.stay, ex.Request.Header.All())
		}
		if ex.Request.Scheme != "http" {
			t.Errorf("%s: scheme %s", c.name, ex.Request.Scheme)
		}
	}
}

func TestFarHopsAreNotLookedAt(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{strings.Repeat("6.6.6.6,", 10_000) + "198.51.100.7", "198.51.100.7"},
		{strings.Repeat("10.0.0.2,", 10_000) + "10.0.0.3", "10.0.0.2"},
		{strings.Repeat("garbage,", 10_000) + "10.0.0.3", "10.0.0.3"},
		{strings.Repeat(",", 30_000), "10.0.0.1"},
	} {
		ex := exchangetest.New(t, exchangetest.From("10.0.0.1"), exchangetest.Head("GET", "/", "X-Forwarded-For: "+c.value))
		compile(t, behindProxies).Request(ex)
		if got := ex.ClientIP.String(); got != c.want {
			t.Errorf("%.20q…: client %s, want %s", c.value, got, c.want)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, c := range []struct {
		name string
		set  *Config
		from string
	}{
		{"nobody trusted", nil, "192.0.2.7"}, {"trusted", behindProxies, "10.0.0.1"}, {"not trusted", behindProxies, "192.0.2.7"},
		{"CDN", &Config{Enabled: true, CDN: []string{"cloudflare", "fastly"}}, "173.245.48.1"},
		{"header", &Config{Enabled: true, Trusted: []string{"10.0.0.0/8"}, Header: "X-Client"}, "10.0.0.1"},
	} {
		filter := compile(t, c.set)
		ex := exchangetest.New(t, exchangetest.From(c.from), exchangetest.Head("GET", "/", "Accept: */*", "User-Agent: t"))
		n := testing.AllocsPerRun(100, func() {
			for _, name := range []string{"X_Forwarded_For", "X-Forwarded-For", "Forwarded", "CF-Connecting-IP", "X-Client"} {
				ex.Request.Header.AddField(name, "[2001:db8::1]:80")
			}
			filter.Request(ex)
			ex.Request.Header.DelField("X-Client")
			ex.Request.Header.Del(header.CFConnectingIP)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want 0", c.name, n)
		}
	}
}

func FuzzChains(f *testing.F) {
	for _, s := range []string{`for="[::1]:80";proto=https, for=1.2.3.4`, `for="`, `a"\",b`, "1.2.3.4:80, [::1%a]:_x", ",,,"} {
		f.Add(s, "203.0.113.9")
	}
	filter := compile(f, behindProxies)
	f.Fuzz(func(t *testing.T, forged, client string) {
		if strings.ContainsAny(forged, "\r\n\x00") {
			return
		}
		// Whatever a client sends: what the trusted proxy writes behind it counts.
		for _, field := range []string{"X-Forwarded-For: " + forged + ", 203.0.113.9", "Forwarded: " + forged + ", for=203.0.113.9;proto=https"} {
			ex := exchangetest.New(t, exchangetest.From("10.0.0.1"), exchangetest.Head("GET", "/", field))
			filter.Request(ex)
			if ex.ClientIP != netip.MustParseAddr("203.0.113.9") {
				t.Fatalf("%q: client %v", field, ex.ClientIP)
			}
		}
	})
}

// What the short way reads is what the long way reads, and it takes every plain IPv4
// address.
func FuzzLastDotted(f *testing.F) {
	for _, s := range []string{"1.2.3.4", "::1, 255.255.255.255", "256.1.1.1", "01.2.3.4", ",\t 0.0.0.0", "00.0.0.0", "1.2.3", "1.2.3.4.5", "1..2.3", ".1.2.3", "1.2.3.", "1.2.3.4 ", "::ffff:1.2.3.4", "1.2.3.-4", "1111.1.1.1", "a1.2.3.4", "a 1.2.3.4", "........"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var list header.List
		list.Add(header.XForwardedFor, s)
		short, long := newChain(&list, field{id: header.XForwardedFor}), newChain(&list, field{id: header.XForwardedFor})
		got, ok := short.previousAddress()
		text, _ := long.previous()
		want, _, _ := long.read(text)
		plain, err := netip.ParseAddr(s[strings.LastIndexByte(s, ',')+1:])
		if must := err == nil && plain.Is4(); must && !ok {
			t.Fatalf("%q is not taken", s)
		}
		if !ok {
			return
		}
		if got != want || short.begun != long.begun || short.begun && short.rest != long.rest {
			t.Fatalf("%q: %v and %q are left, want %v and %q", s, got, short.rest, want, long.rest)
		}
	})
}

func BenchmarkClientIP(b *testing.B) {
	plain := []string{"Accept: */*", "Accept-Encoding: gzip", "Accept-Language: en", "Cookie: a=b", "User-Agent: t", "X-Requested-With: x", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none"}
	for _, c := range []struct {
		name   string
		set    *Config
		from   string
		fields []string
	}{
		{"nobody trusted", nil, "192.0.2.7", nil},
		{"not trusted", behindProxies, "192.0.2.7", nil},
		{"trusted", behindProxies, "10.0.0.1", []string{"X-Forwarded-For: 198.51.100.7", "X-Forwarded-Proto: https"}},
		{"two hops", behindProxies, "10.0.0.1", []string{"X-Forwarded-For: 198.51.100.7, 10.0.0.2", "X-Forwarded-Proto: https"}},
		{"cloudflare", &Config{Enabled: true, CDN: []string{"cloudflare"}}, "173.245.48.1", []string{"CF-Connecting-IP: 2001:db8::1", "X-Forwarded-For: 2001:db8::1", "X-Forwarded-Proto: https"}},
		{"10000 elements", behindProxies, "10.0.0.1", []string{"X-Forwarded-For: " + strings.Repeat("6.6.6.6,", 10_000) + "198.51.100.7"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			filter := compile(b, c.set)
			ex := exchangetest.New(b, exchangetest.From(c.from), exchangetest.Head("GET", "/", append(plain, c.fields...)...))
			ex.Times.Start = 16
			var full header.List
			ex.Request.Header.CopyTo(&full)
			b.ReportAllocs()
			for b.Loop() {
				full.CopyTo(&ex.Request.Header)
				filter.Request(ex)
			}
		})
	}
	b.Run("nothing", func(b *testing.B) {
		ex := exchangetest.New(b, exchangetest.Head("GET", "/", append(plain, "X-Forwarded-For: 198.51.100.7", "X-Forwarded-Proto: https")...))
		var full header.List
		ex.Request.Header.CopyTo(&full)
		for b.Loop() {
			full.CopyTo(&ex.Request.Header)
		}
	})
}

func TestRequestIDOfTrustedPeersOnly(t *testing.T) {
	for _, c := range []struct {
		name, peer string
		set        *Config
		adopted    string
	}{
		{"trusted", "10.0.0.1", behindProxies, "abc-123"},
		{"not trusted", "192.0.2.1", behindProxies, ""},
		{"nobody is", "10.0.0.1", nil, ""},
		{"switched off", "10.0.0.1", &Config{Trusted: behindProxies.Trusted}, ""},
		{"a CDN passes on what visitors say", "173.245.48.1", &Config{Enabled: true, CDN: []string{"cloudflare"}}, ""},
	} {
		ex := exchangetest.New(t, exchangetest.From(c.peer), exchangetest.Head("GET", "/", "X-Request-ID: abc-123"))
		compile(t, c.set).Request(ex)
		if got := ex.AdoptedID(); got != c.adopted {
			t.Errorf("%s: adopted %q, want %q", c.name, got, c.adopted)
		}
	}
}
