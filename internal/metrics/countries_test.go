package metrics

import (
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/exchange"
)

// places says where addresses are.
type places map[string]string

func (p places) Country(a netip.Addr) string { return p[a.String()] }
func (places) ASN(netip.Addr) uint32         { return 0 }
func (places) Serial() uint64                { return 1 }

// TestRequestsAreCountedByCountry checks the page: private addresses have no country, and
// what is not two letters is unknown. Without a database there is no such metric.
func TestRequestsAreCountedByCountry(t *testing.T) {
	where := places{"192.0.2.1": "DE", "192.0.2.2": "unknown", "192.0.2.3": "ZZ", "192.0.2.4": "x!"}
	r := New(Build{})
	h := r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
	send := func(from string, status int, l exchange.Locator) {
		ex := &exchange.Exchange{}
		ex.Reset(&exchange.Conn{}, nil)
		ex.ClientIP, ex.Response.Status, ex.Locator = netip.MustParseAddr(from), status, l
		h.Done(ex)
	}
	send("192.0.2.1", 200, nil)
	if text := page(t, r, "headgate_requests_by"); strings.Contains(text, "by_country") {
		t.Errorf("without a database:\n%s", text)
	}
	for range 3 {
		send("192.0.2.1", 200, where)
	}
	send("192.0.2.1", 403, where)
	for from := range where {
		send(from, 204, where)
	}
	send("10.0.0.1", 200, where)
	text := page(t, r, "headgate_requests_by")
	for _, line := range []string{
		`headgate_requests_by_country_total{country="DE",status_class="2xx"} 4`,
		`headgate_requests_by_country_total{country="DE",status_class="4xx"} 1`,
		`headgate_requests_by_country_total{country="ZZ",status_class="2xx"} 1`,
		`headgate_requests_by_country_total{country="unknown",status_class="2xx"} 2`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the page does not have %s", line)
		}
	}
	if n := strings.Count(text, "headgate_requests_by_country_total{"); n != 4 {
		t.Errorf("%d lines, want 4", n)
	}
}

func TestPlacesOfCountries(t *testing.T) {
	for place := range countryPlaces {
		if got := countryPlace(countryAt(place)); got != place {
			t.Errorf("place %d is %q, which has place %d", place, countryAt(place), got)
		}
	}
}
