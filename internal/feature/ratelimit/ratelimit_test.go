package ratelimit

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

const second = int64(time.Second)

func set(requests int, period time.Duration, burst int) *Config {
	return &Config{Enabled: true, Requests: requests, Period: unit.Duration(period), Burst: burst, Key: keyClientIP, Mode: Enforce}
}

func compile(t testing.TB, c *Config, env exchange.Env) exchange.Filter {
	t.Helper()
	f, err := Compile(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// filterAt passes a request through a filter at a moment.
func filterAt(t testing.TB, f exchange.Filter, at int64, options ...exchangetest.Option) (*exchangetest.Front, *exchange.Exchange) {
	t.Helper()
	ex := exchangetest.New(t, options...)
	ex.Times.Start = at
	return exchangetest.Run(t, ex, &exchangetest.Source{Status: 200, Fields: []string{`RateLimit: "server";r=1`}}, f), ex
}

func TestWhatAClientIsTold(t *testing.T) {
	f := compile(t, set(2, 10*time.Second, 0), exchangetest.Env(t))
	for _, c := range []struct {
		at                      int64 // milliseconds
		status                  int
		left, retry, limit, log string
	}{
		{1000, 200, "1", "", `"headgate";r=1;t=5`, ""},
		{1000, 200, "0", "", `"headgate";r=0;t=10`, ""},
		{1000, exchange.RateLimited.Status(), "0", "5", `"headgate";r=0;t=5`, "over the rate_limit of proxy site"},
		{5900, exchange.RateLimited.Status(), "0", "1", `"headgate";r=0;t=1`, "over the rate_limit of proxy site"},
		{6000, 200, "0", "", `"headgate";r=0;t=10`, ""},
		{60_000, 200, "1", "", `"headgate";r=1;t=5`, ""},
	} {
		got, ex := filterAt(t, f, c.at*int64(time.Millisecond))
		if got.Status != c.status || got.Field("Retry-After") != c.retry || ex.Cause != c.log {
			t.Errorf("at %d ms: status %d, Retry-After %q, cause %q, want %d, %q, %q", c.at, got.Status, got.Field("Retry-After"), ex.Cause, c.status, c.retry, c.log)
		}
		all := strings.Join(got.Fields, "\n") + "\n"
		if !strings.Contains(all, "RateLimit: "+c.limit+"\n") || got.Field("RateLimit-Policy") != `"headgate";q=2;w=10` {
			t.Errorf("at %d ms: fields\n%swant RateLimit: %s", c.at, all, c.limit)
		}
		if want := c.status == 200; strings.Contains(all, `"server"`) != want {
			t.Errorf("at %d ms: the server's own RateLimit: %v, want %v", c.at, !want, want)
		}
		if (ex.Reason == exchange.RateLimited) != (c.status != 200) {
			t.Errorf("at %d ms: reason %q", c.at, ex.Reason)
		}
	}
}

func TestAnnouncedPolicy(t *testing.T) {
	for _, c := range []struct {
		set  *Config
		want string
	}{
		{set(100, time.Second, 0), `"headgate";q=100;w=1`},
		{set(100, time.Minute, 10), `"headgate";q=100;w=60`},
		{set(100, time.Second, 1000), `"headgate";q=1000;w=10`},
		{set(100, 1500*time.Millisecond, 0), `"headgate";q=100;w=2`},
	} {
		p := policy(c.set)
		if got := announce(c.set, &p); got != c.want {
			t.Errorf("%d in %v, burst %d: %s, want %s", c.set.Requests, c.set.Period, c.set.Burst, got, c.want)
		}
	}
}

// world knows 192.0.2.0/24 as DE and 198.51.100.0/24 as FR, both of the network 64500.
type world struct{}

func (world) Country(a netip.Addr) string {
	switch a.As4()[0] {
	case 192:
		return "DE"
	case 198:
		return "FR"
	}
	return "unknown"
}

func (w world) ASN(a netip.Addr) uint32 {
	if w.Country(a) == "unknown" {
		return 0
	}
	return 64500
}

func (world) Serial() uint64 { return 1 }

func somewhere(ex *exchange.Exchange) { ex.Locator = world{} }

func TestWhoSharesABucket(t *testing.T) {
	head := func(fields ...string) exchangetest.Option { return exchangetest.Head("GET", "/", fields...) }
	user := func(name string) exchangetest.Option { return func(ex *exchange.Exchange) { ex.User = name } }
	from := exchangetest.From
	type who = []exchangetest.Option
	for _, c := range []struct {
		name, key string
		a, b      who
		same      bool
	}{
		{"one address", "client_ip", who{from("192.0.2.1")}, who{from("192.0.2.1")}, true},
		{"two addresses", "client_ip", who{from("192.0.2.1")}, who{from("192.0.2.2")}, false},
		{"one /64", "client_ip", who{from("2001:db8::1")}, who{from("2001:db8::ffff:0:0:1")}, true},
		{"two /64s", "client_ip", who{from("2001:db8::1")}, who{from("2001:db8:0:1::1")}, false},
		{"one value", "header:X-Api-Key", who{from("192.0.2.1"), head("X-Api-Key: k")}, who{from("192.0.2.2"), head("x-api-key: k")}, true},
		{"several values are none", "header:X-Api-Key", who{head("X-Api-Key: made up", "X-Api-Key: k")}, who{head("X-Api-Key: other", "X-Api-Key: k")}, true},
		{"values under names like it are none", "header:X-Api-Key", who{head("X-Api-Key: made up", "x_api_key: k")}, who{head("X-Api-Key: other", "x_api_key: k")}, true},
		{"several cookies are none", "cookie:sid", who{head("Cookie: sid=made up; sid=k")}, who{head("Cookie: sid=other", "Cookie: sid=k")}, true},
		{"two values", "header:X-Api-Key", who{head("X-Api-Key: k")}, who{head("X-Api-Key: l")}, false},
		{"well-known name", "header:authorization", who{from("192.0.2.1"), head("Authorization: k")}, who{from("192.0.2.2"), head("Authorization: k")}, true},
		{"no value, one address", "header:X-Api-Key", who{head("X-Api-Key: ")}, who{head()}, true},
		{"no value, two addresses", "header:X-Api-Key", who{from("192.0.2.1")}, who{from("192.0.2.2")}, false},
		{"a value like an address", "header:X-Api-Key", who{from("192.0.2.1"), head("X-Api-Key: \xc0\x00\x02\x01")}, who{from("192.0.2.1")}, false},
		{"one cookie", "cookie:sid", who{from("192.0.2.1"), head("Cookie: a=b; sid=x")}, who{from("192.0.2.2"), head("Cookie: a=c", "Cookie: sid=x;z=1")}, true},
		{"two cookies", "cookie:sid", who{head("Cookie: sid=x")}, who{head("Cookie: sid=y")}, false},
		{"another cookie", "cookie:sid", who{head("Cookie: xsid=x; sid2=y; Sid=z; sid")}, who{head()}, true},
		{"one user", "user", who{from("192.0.2.1"), user("jo")}, who{from("192.0.2.2"), user("jo")}, true},
		{"two users", "user", who{user("jo")}, who{user("al")}, false},
		{"nobody signed in", "user", who{from("192.0.2.1")}, who{from("192.0.2.2")}, false},
		{"one country", "country", who{from("192.0.2.1"), somewhere}, who{from("192.0.2.2"), somewhere}, true},
		{"two countries", "country", who{from("192.0.2.1"), somewhere}, who{from("198.51.100.1"), somewhere}, false},
		{"of no known country", "country", who{from("203.0.113.1"), somewhere}, who{from("203.0.113.2"), somewhere}, false},
		{"no database", "country", who{from("192.0.2.1")}, who{from("192.0.2.2")}, false},
		{"one network", "asn", who{from("192.0.2.1"), somewhere}, who{from("198.51.100.1"), somewhere}, true},
		{"of no known network", "asn", who{from("203.0.113.1"), somewhere}, who{from("203.0.113.2"), somewhere}, false},
	} {
		settings := set(1, time.Hour, 0)
		settings.Key = c.key
		f := compile(t, settings, exchangetest.Env(t))
		if got, _ := filterAt(t, f, second, c.a...); got.Status != 200 {
			t.Errorf("%s: the first request gets %d", c.name, got.Status)
		}
		if got, _ := filterAt(t, f, second, c.b...); (got.Status != 200) != c.same {
			t.Errorf("%s: status %d, want one bucket %v", c.name, got.Status, c.same)
		}
	}
}

func TestExemptClientsAreNotCounted(t *testing.T) {
	c := set(1, time.Hour, 0)
	c.Exempt = []string{"10.0.0.0/8", "2001:db8::/32"}
	f := compile(t, c, exchangetest.Env(t))
	for _, from := range []string{"10.1.2.3", "2001:db8::1"} {
		for range 3 {
			got, _ := filterAt(t, f, second, exchangetest.From(from))
			if got.Status != 200 || got.Field("RateLimit-Policy") != "" {
				t.Errorf("%s: status %d, policy %q, want 200 and none", from, got.Status, got.Field("RateLimit-Policy"))
			}
		}
	}
}

func TestObserveCountsAndRefusesNothing(t *testing.T) {
	var log bytes.Buffer
	env := exchangetest.Env(t)
	env.Log = slog.New(slog.NewTextHandler(&log, nil))
	c := set(1, time.Hour, 0)
	c.Mode = Observe
	f := compile(t, c, env)
	for i := range 12 {
		got, ex := filterAt(t, f, second+int64(i)*second)
		if over := i > 0; ex.Observed != over || quotas.Get(ex) != nil {
			t.Errorf("request %d: observed %v, quota %+v; want %v and none", i, ex.Observed, quotas.Get(ex), over)
		}
		if got.Status != 200 || got.Field("RateLimit-Policy") != "" {
			t.Errorf("request %d: status %d, policy %q, want 200 and none", i, got.Status, got.Field("RateLimit-Policy"))
		}
	}
	if got := log.String(); strings.Count(got, "would reject") != 2 || !strings.Contains(got, "requests=1 ") || !strings.Contains(got, "requests=10 ") || !strings.Contains(got, `limit="proxy site"`) {
		t.Errorf("log %q, want the first request over the limit, and ten seconds later ten more", got)
	}
	// What was observed counts when the limit is enforced.
	c.Mode = Enforce
	if got, _ := filterAt(t, compile(t, c, env), 13*second); got.Status == 200 {
		t.Error("enforce forgot what observe counted")
	}
}

func TestBucketsAreKeptWhileTheNumbersStay(t *testing.T) {
	env := exchangetest.Env(t)
	filterAt(t, compile(t, set(1, time.Hour, 0), env), second)
	for _, c := range []struct {
		name   string
		change func(*Config)
		kept   bool
	}{
		{"nothing", func(*Config) {}, true},
		{"the same burst written out", func(c *Config) { c.Burst = 1 }, true},
		{"exempt", func(c *Config) { c.Exempt = []string{"10.0.0.0/8"} }, true},
		{"requests", func(c *Config) { c.Requests = 2; c.Burst = 1 }, false},
		{"period", func(c *Config) { c.Period = unit.Duration(2 * time.Hour) }, false},
		{"burst", func(c *Config) { c.Burst = 2 }, false},
		{"key", func(c *Config) { c.Key = "user" }, false},
	} {
		settings := set(1, time.Hour, 0)
		c.change(settings)
		if got, _ := filterAt(t, compile(t, settings, env), second); (got.Status != 200) != c.kept {
			t.Errorf("%s changes: status %d, want the bucket kept %v", c.name, got.Status, c.kept)
		}
	}
	env.Scope = "proxy other"
	f, _ := Compile(set(1, time.Hour, 0), env)
	if got, _ := filterAt(t, f, second); got.Status != 200 {
		t.Error("two scopes share a bucket")
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Config)
		want string
	}{
		{"plain", func(*Config) {}, ""},
		{"off", func(c *Config) { *c = Config{Key: "client_ip"} }, ""},
		{"header", func(c *Config) { c.Key = "header:X-Api-Key" }, ""},
		{"cookie", func(c *Config) { c.Key = "cookie:__Host-sid" }, ""},
		{"user", func(c *Config) { c.Key = "user" }, ""},
		{"no requests", func(c *Config) { c.Requests = 0 }, "rate_limit.requests: missing; add requests: 100"},
		{"refill", func(c *Config) { c.Requests, c.Period, c.Burst = 1, unit.Duration(24*time.Hour), 31 }, "rate_limit.burst: a burst of 31 takes more than 30 days"},
		{"overflow", func(c *Config) { c.Requests, c.Period, c.Burst = 1, unit.Duration(24*time.Hour), 1_000_000 }, "rate_limit.burst:"},
		{"typing error", func(c *Config) { c.Key = "client-ip" }, `rate_limit.key: unknown key "client-ip"; did you mean "client_ip"?`},
		{"unknown key", func(c *Config) { c.Key = "path" }, `rate_limit.key: unknown key "path"; write client_ip`},
		{"no name", func(c *Config) { c.Key = "header:" }, `rate_limit.key: "" is not a header name`},
		{"no cookie", func(c *Config) { c.Key = "cookie:a b" }, `rate_limit.key: "a b" is not the name of a cookie`},
		{"claim", func(c *Config) { c.Key = "header:x-forwarded-for" }, "rate_limit.key: x-forwarded-for is dropped"},
		{"hop by hop", func(c *Config) { c.Key = "header:Connection" }, "rate_limit.key: Connection is not"},
		{"host", func(c *Config) { c.Key = "header:Host" }, "rate_limit.key: Host is not"},
		{"exempt", func(c *Config) { c.Exempt = []string{"10.0.0.9-10.0.0.1"} }, "rate_limit.exempt[0]: the range"},
	} {
		settings := set(10, time.Second, 0)
		c.set(settings)
		r := schema.NewReport("", nil)
		settings.Check(r.Root().Field("rate_limit"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for name, c := range map[string]*Config{"passes": set(1_000_000, time.Second, 0), "refused": set(1, time.Hour, 0)} {
		f := compile(t, c, exchangetest.Env(t))
		ex := exchangetest.New(t)
		conn, front := ex.Conn, ex.Front
		n := testing.AllocsPerRun(1000, func() {
			ip := ex.ClientIP
			ex.Reset(conn, front)
			ex.ClientIP, ex.Times.Start = ip, second
			f.Request(ex)
			f.Response(ex)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func BenchmarkRateLimit(b *testing.B) {
	for _, name := range []string{"passes", "refused", "observe", "header", "cookie"} {
		b.Run(name, func(b *testing.B) {
			c := *map[string]*Config{
				"passes":  set(1_000_000, time.Second, 0),
				"refused": set(1, time.Hour, 0),
				"observe": {Enabled: true, Requests: 1_000_000, Period: unit.Duration(time.Second), Key: keyClientIP, Mode: Observe},
				"header":  {Enabled: true, Requests: 1_000_000, Period: unit.Duration(time.Second), Key: "header:X-Api-Key"},
				"cookie":  {Enabled: true, Requests: 1_000_000, Period: unit.Duration(time.Second), Key: "cookie:sid"},
			}[name]
			f := compile(b, &c, exchangetest.Env(b))
			ex := exchangetest.New(b)
			conn, front, ip := ex.Conn, ex.Front, ex.ClientIP
			now := second
			b.ReportAllocs()
			for b.Loop() {
				ex.Reset(conn, front)
				ex.ClientIP, ex.Times.Start = ip, now
				ex.Request.Header.AddField("X-Api-Key", "0123456789abcdef")
				ex.Request.Header.AddField("Cookie", "a=b; sid=0123456789abcdef")
				now += 1000
				f.Request(ex)
				if f.Response != nil {
					f.Response(ex)
				}
			}
		})
	}
	b.Run("nothing", func(b *testing.B) {
		ex := exchangetest.New(b)
		conn, front, ip := ex.Conn, ex.Front, ex.ClientIP
		for b.Loop() {
			ex.Reset(conn, front)
			ex.ClientIP, ex.Times.Start = ip, second
			ex.Request.Header.AddField("X-Api-Key", "0123456789abcdef")
			ex.Request.Header.AddField("Cookie", "a=b; sid=0123456789abcdef")
		}
	})
}
