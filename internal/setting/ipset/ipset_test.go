package ipset

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/schema"
)

func TestContains(t *testing.T) {
	s, err := New([]string{"192.0.2.7", "10.0.0.0/8", "2001:db8::/32", "::ffff:198.51.100.0/120", "fe80::/10", "10.1.0.0/16", "10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"192.0.2.7": true, "192.0.2.8": false, "::ffff:192.0.2.7": true, "::ffff:192.0.2.8": false,
		"10.255.255.255": true, "11.0.0.0": false, "::ffff:10.0.0.1": true,
		"2001:db8::1": true, "2001:db9::": false, "198.51.100.255": true, "::ffff:198.51.101.0": false,
		"fe80::1%eth0": true, "::": false, "0.0.0.0": false, "::a00:1": false,
	} {
		if got := s.Contains(netip.MustParseAddr(text)); got != want {
			t.Errorf("Contains(%s) = %v, want %v", text, got, want)
		}
	}
	if s.Contains(netip.Addr{}) || (*Set)(nil).Contains(netip.MustParseAddr("10.0.0.1")) {
		t.Error("an address that is none, or a set that is none, matches")
	}
	if s.Len() != 6 {
		t.Errorf("Len = %d, want 6", s.Len())
	}
}

func TestWithin(t *testing.T) {
	s, _ := New([]string{"10.0.0.0/8"})
	if p, ok := s.Within(netip.MustParsePrefix("10.2.0.0/16")); !ok || p.String() != "10.0.0.0/8" {
		t.Errorf("10.2.0.0/16 lies in %v, %v", p, ok)
	}
	if _, ok := s.Within(netip.MustParsePrefix("0.0.0.0/0")); ok {
		t.Error("0.0.0.0/0 lies in 10.0.0.0/8")
	}
}

func TestCovered(t *testing.T) {
	s, _ := New([]string{"10.0.0.0/8", "10.2.0.0/16", "10.1.0.0/16", "10.1.0.1", "::/0", "2001:db8::/32", "192.0.2.1", "192.0.2.1"})
	n, first, wider := s.Covered()
	if n != 4 || first.String() != "10.1.0.0/16" && first.String() != "10.1.0.1/32" || !wider.Contains(first.Addr()) {
		t.Errorf("Covered = %d, %v, %v; want 4, the first of IPv4, and what it lies in", n, first, wider)
	}
	if n, _, _ := (*Set)(nil).Covered(); n != 0 {
		t.Errorf("%d entries of no set are covered", n)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ text, what, remedy string }{
		{"192.0.2.1", "", ""},
		{"0.0.0.0/0", "", ""},
		{"::/0", "", ""},
		{"2001:DB8::/32", "", ""},
		{"::ffff:10.0.0.0/104", "", ""},
		{"", "empty", "write an address"},
		{"shop.example.com", `"shop.example.com" is not an address`, "write an address like"},
		{"192.0.2.1:80", "has a port", `write "192.0.2.1"`},
		{"[2001:db8::1]:80", "has a port", `write "2001:db8::1"`},
		{"[2001:db8::1]", "has brackets", `write "2001:db8::1"`},
		{"fe80::1%eth0", "has a zone", `write "fe80::1"`},
		{"fe80::%eth0/10", "has a zone", "remove %eth0"},
		{"010.0.0.1", "is not an address", ""},
		{"1.2.3", "is not an address", ""},
		{"192.0.2.0/33", `invalid prefix length "33"`, "between 0 and 32"},
		{"192.0.2.0/", "invalid prefix length", "between 0 and 32"},
		{"2001:db8::/129", "invalid prefix length", "between 0 and 128"},
		{"192.0.2.0/255.255.255.0", "invalid prefix length", "between 0 and 32"},
		{"x/8", "is not a network", "write an address"},
		{"192.168.1.1/24", "host bits are set", "write 192.168.1.0/24 for the network, or 192.168.1.1 for the address"},
		{"::ffff:0:0/90", "more than the IPv4-mapped addresses", "write the IPv4 network"},
		{"10.0.0.1-10.0.0.4", "is a range", "write 10.0.0.1, 10.0.0.2/31, 10.0.0.4"},
		{"10.0.0.0 - 10.0.0.255", "is a range", "write 10.0.0.0/24"},
		{"10.0.0.9-10.0.0.1", "is inverted", "write 10.0.0.1, 10.0.0.2/31, 10.0.0.4/30, 10.0.0.8/31"},
		{"0.0.0.0-255.255.255.255", "is a range", "write 0.0.0.0/0"},
		{"2001:db8::1-2001:db8::ffff", "is a range", "and so on up to 2001:db8::ffff"},
		{"10.0.0.1-::2", "mixes IPv4", ""},
	} {
		r := schema.NewReport("", nil)
		Check([]string{"127.0.0.1", c.text}, r.Root().Field("allow"))
		if c.what == "" {
			if !r.Empty() {
				t.Errorf("%q: %v, want no problem", c.text, r.Problems())
			}
			continue
		}
		if r.Empty() {
			t.Errorf("%q: no problem, want %q", c.text, c.what)
			continue
		}
		p := r.Problems()[0]
		if p.Field != "allow[1]" || !strings.Contains(p.What, c.what) || !strings.Contains(p.Remedy, c.remedy) {
			t.Errorf("%q: %s: %s; %s, want %q; %q", c.text, p.Field, p.What, p.Remedy, c.what, c.remedy)
		}
		if _, err := New([]string{c.text}); err == nil {
			t.Errorf("New takes %q", c.text)
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

func BenchmarkContains(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		s, err := New(many(n))
		if err != nil {
			b.Fatal(err)
		}
		for _, text := range []string{"1.0.4.9", "203.0.113.9", "2001:0:5::1"} {
			a := netip.MustParseAddr(text)
			b.Run(fmt.Sprintf("%d/%s", n, text), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Contains(a)
				}
			})
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "::1", "10.0.0.1-10.0.0.9", "fe80::1%eth0", "::ffff:1.2.3.4/128", "[::1]:80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(p.String()); err != nil || again != p || p != p.Masked() || p.Addr().Is4In6() {
			t.Fatalf("%q reads as %v, which reads as %v, %v", s, p, again, err)
		}
	})
}

// TestASetIsWhatWasPutIntoIt compares sets that change with a plain map of their entries.
func TestASetIsWhatWasPutIntoIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() netip.Prefix {
		// Few bits, so that entries meet; 0.0.0.0 is among them.
		if r.IntN(4) == 0 {
			return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(r.IntN(8))}), 120+r.IntN(9)).Masked()
		}
		bits := 32
		if r.IntN(3) == 0 {
			bits = 24 + r.IntN(9)
		}
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{0, 0, byte(r.IntN(2)), byte(r.IntN(64))}), bits).Masked()
	}
	for range 300 {
		var s *Set
		model := map[netip.Prefix]bool{}
		for range 6 {
			var add, remove []netip.Prefix
			for range r.IntN(20) {
				p := random()
				remove = append(remove, p)
				delete(model, p)
			}
			for range r.IntN(20) {
				p := random()
				add = append(add, p)
				model[p] = true
			}
			before := s.Networks()
			next := s.With(add, remove)
			if len(s.Networks()) != len(before) {
				t.Fatal("With has changed the set before")
			}
			if s = next; s.Len() != len(model) || len(s.Networks()) != len(model) {
				t.Fatalf("got %d entries, %v, want %v", s.Len(), s.Networks(), model)
			}
			for range 50 {
				p := random()
				contains, overlaps, within := false, false, false
				for e := range model {
					contains = contains || e.Contains(p.Addr())
					overlaps = overlaps || e.Overlaps(p)
					within = within || e.Contains(p.Addr()) && e.Bits() <= p.Bits()
				}
				_, ok := s.Within(p)
				if s.Contains(p.Addr()) != contains || s.Overlaps(p) != overlaps || ok != within {
					t.Fatalf("%v in %v: contains %v, overlaps %v, within %v, want %v, %v, %v", p, model, s.Contains(p.Addr()), s.Overlaps(p), ok, contains, overlaps, within)
				}
			}
		}
	}
}
