package geo

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/geo/geotest"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var today = time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)

// countries is a database in the form of MaxMind, flat one in that of IPinfo.
func countries() []byte {
	of := func(code string) map[string]any {
		return map[string]any{"country": map[string]any{"iso_code": code}}
	}
	return geotest.Write("DBIP-Country-Lite", today,
		geotest.Of("203.0.113.0/24", of("DE")), geotest.Of("198.51.100.0/25", of("FR")), geotest.Of("2001:db8::/32", of("DE")),
		geotest.Of("192.0.2.0/24", map[string]any{"continent": map[string]any{"code": "EU"}}))
}

func flat() []byte {
	return geotest.Write("ipinfo bundle_location_lite.mmdb", today,
		geotest.Of("203.0.113.0/24", map[string]any{"country_code": "de", "asn": "AS64500"}), geotest.Of("198.51.100.0/24", map[string]any{"country_code": "FR", "autonomous_system_number": uint32(64501)}))
}

// manager returns a manager that is closed with the test.
func manager(t *testing.T, o Options) *Manager {
	t.Helper()
	var log testhouse.Log
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	if o.Clock == nil {
		o.Clock = func() time.Time { return today }
	}
	m := New(o)
	t.Cleanup(func() {
		m.Close()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return m
}

func put(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCountriesAndNetworks(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "country.mmdb", countries())
	put(t, dir, "flat.mmdb", flat())
	m := manager(t, Options{})
	s := m.Prepare(&Config{Country: Source{File: "country.mmdb"}, ASN: Source{File: "flat.mmdb"}}, dir)
	s.Commit()
	l := s.Locator()
	for text, want := range map[string]string{
		"203.0.113.7": "DE", "198.51.100.1": "FR", "198.51.100.200": "unknown", "2001:db8::1": "DE", "192.0.2.1": "unknown",
		"10.0.0.1": "", "127.0.0.1": "", "fd00::1": "", "2001:db9::1": "unknown",
	} {
		for range 2 { // the second time what the record says is known
			if got := l.Country(netip.MustParseAddr(text)); got != want {
				t.Errorf("country of %s: %q, want %q", text, got, want)
			}
		}
	}
	for text, want := range map[string]uint32{"203.0.113.7": 64500, "198.51.100.1": 64501, "2001:db8::1": 0} {
		if got := l.ASN(netip.MustParseAddr(text)); got != want {
			t.Errorf("network of %s: %d, want %d", text, got, want)
		}
	}
	if states := m.States(); len(states) != 2 || !strings.Contains(states[0].Attribution, "DB-IP") || states[0].State != "ready" || len(states[0].Issues) > 0 {
		t.Errorf("states %+v", states)
	}

	match, err := ipset.Compile([]string{"country:de", "asn:64501"}, exchange.Addresses{Locator: l})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"203.0.113.7": "country:DE", "198.51.100.1": "asn:64501", "192.0.2.1": "", "10.0.0.1": ""} {
		a := netip.MustParseAddr(text)
		if match.Contains(a) != (want != "") || match.Why(a) != want {
			t.Errorf("%s: %v by %q, want %q", text, match.Contains(a), match.Why(a), want)
		}
	}
	unknown, _ := ipset.Compile([]string{"country:unknown"}, exchange.Addresses{Locator: l})
	if !unknown.Contains(netip.MustParseAddr("192.0.2.1")) || unknown.Contains(netip.MustParseAddr("10.0.0.1")) || unknown.Contains(netip.MustParseAddr("203.0.113.7")) {
		t.Error("country:unknown is not the public addresses without a country")
	}
}

// TestLookupIsKeptWithItsAddress holds that the client of a CDN's connection does not
// inherit the country of the one before, and that a new database is used at once.
func TestLookupIsKeptWithItsAddress(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "country.mmdb", countries())
	m := manager(t, Options{filePause: time.Millisecond})
	s := m.Prepare(&Config{Country: Source{File: "country.mmdb"}}, dir)
	s.Commit()
	ex, conn := &exchange.Exchange{}, &exchange.Conn{}
	country := func(a string) string {
		ex.Reset(conn, nil)
		ex.Locator, ex.ClientIP = s.Locator(), netip.MustParseAddr(a)
		return ex.Country()
	}
	for _, c := range [][2]string{{"203.0.113.7", "DE"}, {"198.51.100.1", "FR"}, {"203.0.113.7", "DE"}} {
		if got := country(c[0]); got != c[1] {
			t.Errorf("%s is in %q, want %q", c[0], got, c[1])
		}
	}
	put(t, dir, "country.mmdb", geotest.Write("test", today, geotest.Of("203.0.113.0/24", map[string]any{"country_code": "AT"})))
	testhouse.Eventually(t, "the new database is used", func() bool { return country("203.0.113.7") == "AT" })
	put(t, dir, "country.mmdb", []byte("<html>"))
	testhouse.Eventually(t, "the issue is open", func() bool { return len(m.States()[0].Issues) > 0 })
	if got := country("203.0.113.7"); got != "AT" {
		t.Errorf("with a broken file the country is %q", got)
	}
}

func TestDownloadIsUnpackedAndKept(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	archive := tar.NewWriter(z)
	for name, data := range map[string][]byte{"GeoLite2-Country_20261126/README": []byte("x"), "GeoLite2-Country_20261126/GeoLite2-Country.mmdb": countries()} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	archive.Close()
	z.Close()
	served := packed.Bytes()
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(served) }))
	defer site.Close()
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	state := t.TempDir()
	c := &Config{Country: Source{URL: site.URL + "/country.tar.gz?license_key=secret", Interval: unit.Duration(time.Hour)}}
	m := manager(t, Options{Dir: DirOf(state), Roots: roots})
	s := m.Prepare(c, "")
	s.Commit()
	client := netip.MustParseAddr("203.0.113.7")
	testhouse.Eventually(t, "the database is downloaded", func() bool { return s.Locator().Country(client) == "DE" })
	if location := m.States()[0].Location; strings.Contains(location, "secret") {
		t.Errorf("location %q", location)
	}
	testhouse.Eventually(t, "it is kept", func() bool { all, _ := os.ReadDir(DirOf(state)); return len(all) == 1 })
	m.Close()
	m = manager(t, Options{Dir: DirOf(state)})
	if got := m.Prepare(c, "").Locator().Country(client); got != "DE" {
		t.Errorf("after a restart the country is %q", got)
	}
}

// TestUnchangedDatabaseEndsTheIssue checks that a 304 after a failure says that the database
// in use is good again, and that it is not due again at the next start (issue 34).
func TestUnchangedDatabaseEndsTheIssue(t *testing.T) {
	var broken atomic.Bool
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case broken.Load():
			http.Error(w, "down", http.StatusBadGateway)
		case r.Header.Get("If-None-Match") == `"1"`:
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", `"1"`)
			w.Write(countries())
		}
	}))
	defer site.Close()
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	var now atomic.Int64
	clock := func() time.Time { return today.Add(time.Duration(now.Load())) }
	dir := DirOf(t.TempDir())
	m := manager(t, Options{Dir: dir, Roots: roots, Clock: clock})
	c := &Config{Country: Source{URL: site.URL, Interval: unit.Duration(time.Millisecond)}}
	m.Prepare(c, "").Commit()
	state := func() State { return m.States()[0] }
	testhouse.Eventually(t, "the database is loaded", func() bool { return state().State == "ready" })
	broken.Store(true)
	testhouse.Eventually(t, "the failure is an issue", func() bool { s := state(); return s.State == "error" && len(s.Issues) == 1 })
	now.Store(int64(time.Hour))
	broken.Store(false)
	testhouse.Eventually(t, "the issue ends with a 304", func() bool { s := state(); return s.State == "ready" && len(s.Issues) == 0 })
	m.Close()

	m = manager(t, Options{Dir: dir, Clock: clock})
	s := m.Prepare(&Config{Country: Source{URL: site.URL, Interval: unit.Duration(2 * time.Hour)}}, "")
	if due := s.locator.country.due(); due < 2*time.Hour {
		t.Errorf("after a restart the database is due in %s, although its server had no newer one just now", due)
	}
}

func TestOldDatabaseIsAnIssue(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "c.mmdb", geotest.Write("GeoLite2-Country", today.AddDate(0, 0, -31), geotest.Of("203.0.113.0/24", map[string]any{"country_code": "DE"})))
	m := manager(t, Options{})
	m.Prepare(&Config{Country: Source{File: "c.mmdb"}}, dir).Commit()
	if s := m.States()[0]; len(s.Issues) != 1 || !strings.Contains(s.Issues[0], "31 days old, and its licence allows 30") || !strings.Contains(s.Attribution, "MaxMind") {
		t.Errorf("state %+v", s)
	}
}

func FuzzDatabase(f *testing.F) {
	f.Add(countries())
	f.Add(flat())
	f.Add([]byte("\xab\xcd\xefMaxMind.com\xe0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := openDatabase(data)
		if err != nil {
			return
		}
		for _, a := range []string{"203.0.113.7", "::1", "2001:db8::1"} {
			d.find(netip.MustParseAddr(a))
		}
	})
}

func BenchmarkCountry(b *testing.B) {
	var all []geotest.Network
	for i := range 50_000 {
		code := string([]byte{'A' + byte(i%26), 'A' + byte(i/26%10)})
		all = append(all, geotest.Of(fmt.Sprintf("%d.%d.%d.0/24", 11+i>>16, i>>8&255, i&255), map[string]any{"country": map[string]any{"iso_code": code}}))
	}
	d, err := openDatabase(geotest.Write("test", today, all...))
	if err != nil {
		b.Fatal(err)
	}
	l := &Locator{country: &source{}}
	l.country.current.Store(d)
	addresses := make([]netip.Addr, 4096)
	for i := range addresses {
		addresses[i] = netip.AddrFrom4([4]byte{11, byte(i >> 4), byte(i * 7), 9})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l.Country(addresses[i&4095])
		i++
	}
}
