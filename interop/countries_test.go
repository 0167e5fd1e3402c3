package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// countriesFile is a database of countries made from public data, for tests that need real
// answers: interop/countries makes it.
const countriesFile = "HEADGATE_COUNTRIES"

// countries returns the name of the database, and skips the test where there is none.
func countries(t *testing.T) string {
	t.Helper()
	name := os.Getenv(countriesFile)
	if name == "" {
		t.Skipf("%s is not set: run interop/countries", countriesFile)
	}
	return name
}

const countriesConfig = `version: 1
admin: {address: ""}
access_log: {path: %q}
ports: {web: {address: %q, protocol: http}}
geo: {country: {file: %q}}
bans:
  scanners: {when: [{path: [/.env], count: 3}], exempt: ["country:DE"], mode: %[4]s}
proxies:
  shop:
    virtual_hosts: [shop.example.com]
    client_ip: {trusted: [127.0.0.1]}
    ip_filter: {deny: ["country:JP", "country:CH"], mode: %[4]s}
    headers: [{direction: response, name: X-Answer, value: "{country}"}]
    routes: [{fixed_response: {status: 204}}]
`

// realCountries are addresses of networks whose country does not change: Google's DNS, the
// RIPE NCC, and universities and research networks.
var realCountries = map[string]string{
	"8.8.8.8": "US", "193.0.6.139": "NL", "133.11.0.1": "JP", "129.132.1.1": "CH", "130.149.7.201": "DE",
	"2001:638::1": "DE", "2001:200::1": "JP", "203.0.113.9": "unknown", "10.0.0.9": "",
}

// TestCountriesOfARealDatabase refuses clients by country with a database made from public
// data: rules by country observe first, and report which clients they would refuse; then
// they are enforced.
func TestCountriesOfARealDatabase(t *testing.T) {
	file, address := countries(t), free(t)
	g := prepare(t)
	log := filepath.Join(g.dir, "access.log")
	config := func(mode string) string { return fmt.Sprintf(countriesConfig, log, address, file, mode) }
	g.start(config("observe"))
	get := func(client, path string) answer {
		t.Helper()
		r := askAll(address, wanted{method: "GET", host: "shop.example.com", path: path, header: http.Header{"X-Forwarded-For": {client}}})
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r
	}
	refused := func(country string) bool { return country == "JP" || country == "CH" }

	for client, country := range realCountries {
		if r := get(client, "/observed"); r.status != 204 || r.added != country {
			t.Errorf("observe: %s gets %d with the country %q, want 204 with %q", client, r.status, r.added, country)
		}
	}
	for range 3 {
		get("8.8.8.8", "/.env")
		get("130.149.7.201", "/.env")
	}
	for client, row := range g.rows(log, "/observed", len(realCountries)) {
		country, want := realCountries[client], ""
		if refused(country) {
			want = "observe mode: ip_filter would reject this request: the address is in ip_filter.deny by country:" + country
		}
		if row.Country != country || row.Cause != want || row.Reason != "" {
			t.Errorf("observe: the log has %+v of %s, want the cause %q", row, client, want)
		}
	}
	if out := g.command("explain", "--running", "--from", "133.11.0.1", "GET", "http://shop.example.com"+address[strings.LastIndex(address, ":"):]+"/"); !strings.Contains(out, "observe mode: ip_filter would reject this request") {
		t.Errorf("observe: explain prints\n%s", out)
	}
	if out := g.command("ban", "rules"); !strings.Contains(out, "8.8.8.8: 3 × /.env") || strings.Contains(out, "130.149.7.201") {
		t.Errorf("observe: the rule would ban others than 8.8.8.8:\n%s", out)
	}

	g.apply(config("enforce"))
	for client, country := range realCountries {
		want := 204
		if refused(country) {
			want = 403
		}
		if r := get(client, "/enforced"); r.status != want {
			t.Errorf("enforce: %s in %q gets %d, want %d", client, country, r.status, want)
		}
		var known struct{ Country string }
		if out := g.command("lists", "check", client, "--output", "json"); json.Unmarshal([]byte(out), &known) != nil || known.Country != country {
			t.Errorf("lists check %s prints %s, want the country %q", client, out, country)
		}
	}
	for client, row := range g.rows(log, "/enforced", len(realCountries)) {
		if country := realCountries[client]; refused(country) != (row.Reason == "address_denied") || refused(country) != strings.HasSuffix(row.Cause, "ip_filter.deny by country:"+country) {
			t.Errorf("enforce: the log has %+v of %s", row, client)
		}
	}
	if out := g.command("explain", "--running", "--from", "133.11.0.1", "GET", "http://shop.example.com"+address[strings.LastIndex(address, ":"):]+"/"); !strings.Contains(out, "403 address_denied, by ip_filter: the address is in ip_filter.deny by country:JP") {
		t.Errorf("enforce: explain prints\n%s", out)
	}
	for range 3 {
		get("8.8.8.8", "/.env")
		get("130.149.7.201", "/.env")
	}
	for end := time.Now().Add(patience); get("8.8.8.8", "/").status != 403; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("8.8.8.8 is not banned")
		}
	}
	if r := get("130.149.7.201", "/"); r.status != 204 {
		t.Errorf("130.149.7.201 is exempt by its country, and gets %d", r.status)
	}
	if out := g.command("lists", "check", "8.8.8.8"); !strings.Contains(out, "rule scanners: 3 × /.env") {
		t.Errorf("lists check prints\n%s", out)
	}
}

// logRow is what a test reads of a line of the access log.
type logRow struct {
	Client  string `json:"client_ip"`
	Path    string
	Country string
	Reason  string
	Cause   string
}

// rows waits until the access log has n lines of a path, and returns them by client.
func (g *gate) rows(log, path string, n int) map[string]logRow {
	g.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(log)
		out := map[string]logRow{}
		for line := range strings.Lines(string(data)) {
			var row logRow
			if json.Unmarshal([]byte(line), &row) == nil && row.Path == path {
				out[row.Client] = row
			}
		}
		if len(out) == n {
			return out
		}
		if time.Now().After(end) {
			g.t.Fatalf("the log has %d lines of %s, want %d; %v", len(out), path, n, err)
		}
	}
}
