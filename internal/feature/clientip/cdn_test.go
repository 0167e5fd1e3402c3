package clientip

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/schema"
)

func TestEveryCDNHasDatedNetworks(t *testing.T) {
	dated := regexp.MustCompile(`(?m)^#.*https://`)
	date := regexp.MustCompile(`(?m)^#.*\d{4}-\d\d-\d\d`)
	alone := 0
	for _, c := range known() {
		if c.alone {
			alone++
			continue
		}
		text, err := ranges.ReadFile("ranges/" + c.name + ".txt")
		if err != nil || !dated.Match(text) || !date.Match(text) || c.networks.Load().Len() == 0 || c.embedded.date.IsZero() {
			t.Errorf("%s: %v; want networks, their source and their date", c.name, err)
		}
		if err := checkFetched(c.embedded.networks, c.embedded.networks); err != nil {
			t.Errorf("%s: what the program knows would be refused: %v", c.name, err)
		}
	}
	if files, _ := ranges.ReadDir("ranges"); len(files)+alone != len(presets) {
		t.Errorf("%d files of networks for %d CDNs", len(files), len(presets))
	}
}

func TestCDNs(t *testing.T) {
	const cloudflare, fastly, cloudfront, google, akamai = "173.245.48.1", "2a04:4e42::1", "130.176.1.1", "35.191.0.1", "23.32.0.1"
	for _, c := range []struct {
		name, cdn, peer, want string
		fields                []string
		stays                 header.ID
	}{
		{"own field", "cloudflare", cloudflare, "198.51.100.7", []string{"CF-Connecting-IP: 198.51.100.7", "X-Forwarded-For: 6.6.6.6, 198.51.100.7"}, header.CFConnectingIP},
		{"without own field", "cloudflare", cloudflare, "198.51.100.7", []string{"X-Forwarded-For: 6.6.6.6, 198.51.100.7"}, 0},
		{"own field is garbage", "cloudflare", cloudflare, "198.51.100.7", []string{"CF-Connecting-IP: x", "X-Forwarded-For: 6.6.6.6, 198.51.100.7"}, header.CFConnectingIP},
		{"another's field", "cloudflare", cloudflare, cloudflare, []string{"True-Client-IP: 6.6.6.6", "Fastly-Client-IP: 6.6.6.6"}, 0},
		{"not from the CDN", "cloudflare", "192.0.2.1", "192.0.2.1", []string{"CF-Connecting-IP: 6.6.6.6", "X-Forwarded-For: 6.6.6.6"}, 0},
		{"from another CDN", "cloudflare", fastly, fastly, []string{"CF-Connecting-IP: 6.6.6.6", "X-Forwarded-For: 6.6.6.6"}, 0},
		{"through our own proxy", "cloudflare", "10.0.0.1", "198.51.100.7", []string{"CF-Connecting-IP: 6.6.6.6", "X-Forwarded-For: 6.6.6.6, 198.51.100.7, " + cloudflare}, 0},
		{"a visitor's own Fastly-Client-IP", "fastly", fastly, "198.51.100.7", []string{"Fastly-Client-IP: 6.6.6.6", "X-Forwarded-For: 6.6.6.6, 198.51.100.7"}, 0},
		{"shield without client", "fastly", fastly, "198.51.100.7", []string{"Fastly-Client-IP: 198.51.100.7", "X-Forwarded-For: 157.52.91.44"}, 0},
		{"no chain", "fastly", fastly, "198.51.100.7", []string{"Fastly-Client-IP: 198.51.100.7"}, 0},
		{"cloudfront", "cloudfront", cloudfront, "198.51.100.7", []string{"X-Forwarded-For: 6.6.6.6, 198.51.100.7"}, 0},
		{"load balancer behind the client", "google", google, "198.51.100.7", []string{"X-Forwarded-For: 6.6.6.6, 198.51.100.7, 203.0.113.1"}, 0},
		{"load balancer alone", "google", google, google, []string{"X-Forwarded-For: 203.0.113.1"}, 0},
		{"load balancer, then our own proxy", "google", "10.0.0.1", "198.51.100.7", []string{"X-Forwarded-For: 6.6.6.6, 198.51.100.7, 203.0.113.1, " + google}, 0},
		{"akamai", "akamai", akamai, "198.51.100.7", []string{"True-Client-IP: 198.51.100.7", "X-Forwarded-For: 198.51.100.7, 203.0.113.77"}, header.TrueClientIP},
	} {
		ex := exchangetest.New(t, exchangetest.From(c.peer), exchangetest.Head("GET", "/", append(c.fields, "X-Forwarded-Proto: https")...))
		compile(t, &Config{Enabled: true, CDN: []string{c.cdn}, Trusted: []string{"10.0.0.0/8"}}).Request(ex)
		if got := ex.ClientIP.String(); got != c.want {
			t.Errorf("%s: client %s, want %s", c.name, got, c.want)
		}
		if want := ex.ClientIP.String() != c.peer || strings.Contains(c.name, "alone") || strings.Contains(c.name, "another's"); (ex.Request.Scheme == "https") != want {
			t.Errorf("%s: scheme %s", c.name, ex.Request.Scheme)
		}
		for _, f := range ex.Request.Header.All() {
			if f.ID != c.stays {
				t.Errorf("%s: field %s stays", c.name, f.Name)
			}
		}
	}
}

func TestWatchTellsOfACDN(t *testing.T) {
	var told bytes.Buffer
	now := time.Now()
	env := exchangetest.Env(t, func() time.Time { return now })
	env.Log = slog.New(slog.NewTextHandler(&told, nil))
	ask := func(set *Config, n int, peers ...string) string {
		t.Helper()
		told.Reset()
		filter, err := Compile(set, Lists{}, env)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			ex := exchangetest.New(t, exchangetest.From(peers[i%len(peers)]))
			ex.Times.Start = 16 * oneIn
			filter.Request(ex)
		}
		return told.String()
	}
	if got := ask(nil, 1000, "192.0.2.1", "173.245.48.1"); got != "" {
		t.Errorf("half of the requests come from a CDN: %s", got)
	}
	got := ask(nil, 1000, "192.0.2.1", "173.245.48.1", "173.245.48.2")
	if strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "cdn=cloudflare") || !strings.Contains(got, "cdn: [cloudflare]") {
		t.Errorf("most requests come from a CDN: %q, want one warning", got)
	}
	now = now.Add(telling - 1)
	if got := ask(nil, 1000, "173.245.48.1"); got != "" {
		t.Errorf("within the hour: %s", got)
	}
	now = now.Add(1)
	if got := ask(nil, 1000, "2a04:4e42::1"); !strings.Contains(got, "cdn=fastly") {
		t.Errorf("an hour later: %q", got)
	}
	now = now.Add(telling)
	if got := ask(&Config{Enabled: true, CDN: []string{"cloudflare"}}, 1000, "173.245.48.1"); got != "" {
		t.Errorf("the CDN is named: %s", got)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Config
		want string
	}{
		{"nothing", Config{}, ""},
		{"all", Config{CDN: []string{"cloudflare", "fastly", "cloudfront", "google", "akamai", "bunny"}, Trusted: []string{"10.0.0.0/8", "::1"}, Header: "X-Real-IP"}, ""},
		{"typing error", Config{CDN: []string{"cloudfare"}}, `client_ip.cdn[0]: unknown CDN "cloudfare"; did you mean "cloudflare"?`},
		{"unknown", Config{CDN: []string{"zzz"}}, `client_ip.cdn[0]: unknown CDN "zzz"; known are cloudflare`},
		{"no network", Config{Trusted: []string{"10.0.0.1", "10.0.0.0/33"}}, "client_ip.trusted[1]:"},
		{"no name", Config{Trusted: []string{"::1"}, Header: "X Real"}, "client_ip.header: \"X Real\" is not a header name"},
		{"nobody trusted", Config{Header: "X-Real-IP"}, "client_ip.header: header has no effect"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("client_ip"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
