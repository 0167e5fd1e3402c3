package unit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestDurationForms(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
		form string
	}{
		{"30s", 30 * time.Second, "30s"},
		{"60s", time.Minute, "1m"},
		{"1m30s", 90 * time.Second, "1m30s"},
		{"250ms", 250 * time.Millisecond, "250ms"},
		{"1.5h", 90 * time.Minute, "1h30m"},
		{"24h", 24 * time.Hour, "24h"},
		{"7d", 168 * time.Hour, "168h"},
		{"1d12h", 36 * time.Hour, "36h"},
		{"0", 0, "0s"},
		{" 5s ", 5 * time.Second, "5s"},
	} {
		got, err := ParseDuration(c.text)
		if err != nil || got.D() != c.want || got.String() != c.form {
			t.Errorf("ParseDuration(%q) = %v (%q), %v; want %v (%q)", c.text, got.D(), got, err, c.want, c.form)
		}
	}
}

func TestDurationRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "empty",
		"30":                    "no unit",
		"-1s":                   "negative",
		"+1s":                   "not a duration",
		"1 s":                   "not a duration",
		"soon":                  "not a duration",
		"1.5d":                  "whole days",
		"d":                     "whole days",
		"1d-1h":                 "not a duration",
		"9999999999d":           "too long",
		"106751d24h":            "too long",
		"99999999999999999999h": "not a duration",
	} {
		if got, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestSizeForms(t *testing.T) {
	for _, c := range []struct {
		text string
		want Size
		form string
	}{
		{"10MiB", 10 * MiB, "10MiB"},
		{"64KiB", 64 * KiB, "64KiB"},
		{"64kib", 64 * KiB, "64KiB"},
		{"1024", KiB, "1KiB"},
		{"4096 B", 4 * KiB, "4KiB"},
		{"1000", 1000, "1000"},
		{"1GB", 1e9, "1000000000"},
		{"1.5KiB", 1536, "1536"},
		{"2TiB", 2 * TiB, "2TiB"},
		{"0", 0, "0"},
	} {
		got, err := ParseSize(c.text)
		if err != nil || got != c.want || got.String() != c.form {
			t.Errorf("ParseSize(%q) = %d (%q), %v; want %d (%q)", c.text, got.Int64(), got, err, c.want, c.form)
		}
	}
}

func TestSizeRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "empty",
		"-1":                   "negative",
		"ten":                  "not a size",
		"10 miles":             "unknown unit",
		"1.5":                  "whole number of bytes",
		"1.2.3KiB":             "not a size",
		".5KiB":                "not a size",
		"5.KiB":                "not a size",
		"9223372036854775808":  "too large",
		"8388608TiB":           "too large",
		"99999999999999999TiB": "too large",
	} {
		if got, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSize(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestSwitchInheritsWhenUnset(t *testing.T) {
	for _, c := range []struct {
		s         Switch
		inherited bool
		want      bool
	}{{Unset, true, true}, {Unset, false, false}, {On, false, true}, {Off, true, false}} {
		if got := c.s.Or(c.inherited); got != c.want {
			t.Errorf("Switch(%q).Or(%v) = %v", c.s, c.inherited, got)
		}
	}
}

func TestScalarsPassThroughJSON(t *testing.T) {
	type all struct {
		D Duration
		S Size
		W Switch `json:"W,omitzero"`
	}
	want := all{Duration(90 * time.Second), 10 * MiB, On}
	data, err := json.Marshal(want)
	if err != nil || string(data) != `{"D":"1m30s","S":"10MiB","W":true}` {
		t.Fatalf("Marshal = %s, %v", data, err)
	}
	var got all
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Fatalf("Unmarshal = %v, %v", got, err)
	}
	if data, _ = json.Marshal(all{}); string(data) != `{"D":"0s","S":"0"}` {
		t.Errorf("an unset switch is written: %s", data)
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"30s", "1d2h", "0", "1.5h", "106751d", "9e9s", "1µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d || d < 0 {
			t.Fatalf("%q reads as %d, is written %q, reads as %d, %v", s, d, d, again, err)
		}
	})
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"10MiB", "1.5KiB", "0", "1 TB", "9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		if again, err := ParseSize(n.String()); err != nil || again != n || n < 0 {
			t.Fatalf("%q reads as %d, is written %q, reads as %d, %v", s, n, n, again, err)
		}
	})
}

func TestPercentForms(t *testing.T) {
	for text, want := range map[string]Percent{"10%": 10, "10": 10, " 5 % ": 5, "0": 0, "0%": 0, "100%": 100} {
		got, err := ParsePercent(text)
		if err != nil || got != want {
			t.Errorf("ParsePercent(%q) = %d, %v; want %d", text, got, err, want)
		}
		if again, err := ParsePercent(got.String()); err != nil || again != got {
			t.Errorf("%q is read back as %d, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "%", "-1%", "1.5%", "10%%", "ten", "99999999999"} {
		if got, err := ParsePercent(text); err == nil {
			t.Errorf("ParsePercent(%q) = %v, want an error", text, got)
		}
	}
	if got := Percent(10).Of(250); got != 25 {
		t.Errorf("got %d, want 25", got)
	}
}
