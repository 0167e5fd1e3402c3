package unit

import "testing"

func TestAddressRange(t *testing.T) {
	for _, c := range []struct {
		text        string
		ports       int
		first, last uint16
	}{
		{"0.0.0.0:80", 1, 80, 80},
		{"[::1]:5000-5001", 2, 5000, 5001},
		{"127.0.0.1:64536-65535", MaxRange, 64536, 65535},
	} {
		var r AddressRange
		if err := r.UnmarshalText([]byte(c.text)); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if r.String() != c.text || r.Ports() != c.ports || r.Port() != c.first || r.Last() != c.last {
			t.Errorf("%s: got %v with %d ports, %d to %d", c.text, r, r.Ports(), r.Port(), r.Last())
		}
		if at := r.At(r.Ports() - 1); at.Port() != c.last || at.Addr() != r.Addr() {
			t.Errorf("%s: the last is %v", c.text, at)
		}
		if !r.Has(c.first) || !r.Has(c.last) || r.Has(c.first-1) || c.last < 65535 && r.Has(c.last+1) {
			t.Errorf("%s: wrong borders", c.text)
		}
	}
	for _, text := range []string{"", "80", "0.0.0.0", "0.0.0.0:2-1", "0.0.0.0:1-1", "0.0.0.0:1-", "0.0.0.0:-2", "0.0.0.0:1-65536", "0.0.0.0:1-1001", "0.0.0.0:1-2-3", "0.0.0.0:1-+2"} {
		var r AddressRange
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, r)
		}
	}
	if text, err := (AddressRange{}).MarshalText(); err != nil || len(text) > 0 || (AddressRange{}).Has(0) {
		t.Errorf("the zero range: %q, %v", text, err)
	}
}
