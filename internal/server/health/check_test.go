package health

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
	"headgate/internal/server/balance"
	"headgate/internal/setting/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// defaults returns the settings that an empty health_check has.
func defaults() *Config {
	return &Config{
		Path: "/healthz", Interval: unit.Duration(10 * time.Second), UnhealthyInterval: unit.Duration(2 * time.Second),
		Timeout: unit.Duration(3 * time.Second), Method: "GET", Status: "200-399", Rise: 2, Fall: 3,
	}
}

// log counts the lines of each text.
type log struct {
	mu    sync.Mutex
	lines map[string]int
}

func newLog(t *testing.T) (*log, *slog.Logger) {
	l := &log{lines: map[string]int{}}
	return l, slog.New(slog.NewTextHandler(writer(func(p []byte) {
		_, rest, _ := strings.Cut(string(p), `msg="`)
		what, _, _ := strings.Cut(rest, `"`)
		l.mu.Lock()
		l.lines[what]++
		l.mu.Unlock()
		t.Log(strings.TrimSpace(string(p)))
	}), nil))
}

// count returns how often something was said.
func (l *log) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[what]
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// fake is a server that a test plays.
type fake struct {
	respond func(ex *exchange.Exchange) *exchange.Answer // guarded by mu
	mu      sync.Mutex
	asked   atomic.Int32
}

// set changes what the server does.
func (f *fake) set(respond func(ex *exchange.Exchange) *exchange.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.respond = respond
}

func (f *fake) Describe() string { return "fake" }

func (f *fake) Respond(ex *exchange.Exchange) *exchange.Answer {
	f.asked.Add(1)
	f.mu.Lock()
	respond := f.respond
	f.mu.Unlock()
	return respond(ex)
}

func status(code int, body string) func(*exchange.Exchange) *exchange.Answer {
	return func(ex *exchange.Exchange) *exchange.Answer {
		ex.Response.Reset()
		ex.Response.Status, ex.Response.Length, ex.Response.Body = code, int64(len(body)), exchangetest.Body(body)
		return nil
	}
}

// startCheck returns a check that runs.
func startCheck(c *Config, probe Probe, rounds *Rounds, log *slog.Logger) *Check {
	k := NewCheck(c, probe, rounds, log)
	k.Start()
	return k
}

func newServer(log *slog.Logger) *Server {
	return NewServer(Name{"shop", "/", "http://a"}, Options{Log: log})
}

func TestCheckRisesAndFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, log := newLog(t)
		f := &fake{respond: status(200, "")}
		k := startCheck(defaults(), Probe{Name: "http://a", Source: f}, NewRounds(), log)
		defer k.Retire()
		s := newServer(log)
		w := k.Watch(s, 0)
		defer w.Retire()
		equal(t, "at first", s.Status(false).State, Unknown)
		equal(t, "takes requests", s.Out(), 0)
		time.Sleep(time.Second)
		equal(t, "after one good check", s.Status(false).State, Healthy)
		equal(t, "checks", f.asked.Load(), 1)

		f.set(status(503, ""))
		failures := func(n uint64) time.Duration {
			began := time.Now()
			for s.Status(false).Failed < n {
				time.Sleep(10 * time.Millisecond)
			}
			return time.Since(began)
		}
		failures(1) // the next regular check
		equal(t, "after one bad check", s.Status(false).State, Healthy)
		if d := failures(2); d < 1800*time.Millisecond || d > 2220*time.Millisecond {
			t.Errorf("after a failure the next check came in %v", d)
		}
		equal(t, "after two", s.Status(false).State, Healthy)
		failures(3)
		st := s.Status(true)
		equal(t, "after three", st.State, Unhealthy)
		equal(t, "out", s.Out(), balance.Unhealthy)
		equal(t, "reason", st.Reason, "checks fail")
		equal(t, "error", st.LastError, "status 503, want 200-399")
		equal(t, "results", len(st.Results), 4)
		equal(t, "failed", st.Failed, 3)

		f.set(status(302, "")) // a redirect is not followed, and counts as itself
		passed := s.Status(false).Passed
		for s.Status(false).Passed == passed {
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, "after one good check", s.Status(false).State, Unhealthy)
		time.Sleep(2210 * time.Millisecond)
		equal(t, "after two", s.Status(false).State, Healthy)
		equal(t, "out", s.Out(), 0)
		equal(t, "lines of unhealthy", lines.count("server unhealthy"), 1)
		equal(t, "lines of healthy", lines.count("server healthy again"), 1)

		time.Sleep(time.Hour)
		equal(t, "results kept", len(s.Status(true).Results), Results)
		before := f.asked.Load()
		time.Sleep(100 * time.Second)
		if n := f.asked.Load() - before; n < 9 || n > 11 {
			t.Errorf("%d checks in 100 seconds", n)
		}
	})
}

func TestWhatACheckLooksAt(t *testing.T) {
	hang := func(ex *exchange.Exchange) *exchange.Answer {
		for !ex.Front.Gone() {
			time.Sleep(10 * time.Millisecond)
		}
		return exchange.Fail(exchange.ClientClosed, "gone")
	}
	drip := func(ex *exchange.Exchange) *exchange.Answer {
		status(200, "")(ex)
		ex.Response.Body = dripping{}
		return nil
	}
	for _, c := range []struct {
		change  func(*Config)
		respond func(*exchange.Exchange) *exchange.Answer
		want    string
	}{
		{func(*Config) {}, status(200, "error"), ""},
		{func(*Config) {}, status(404, ""), "status 404, want 200-399"},
		{func(c *Config) { c.Status = "204, 404" }, status(404, ""), ""},
		{func(c *Config) { c.Status = "204" }, status(200, ""), "status 200, want 204"},
		{func(c *Config) { c.Body = "^ok$" }, status(200, "ok"), ""},
		{func(c *Config) { c.Body = "^ok$" }, status(200, "<h1>error</h1>"), "the body does not match ^ok$"},
		{func(c *Config) { c.Body = "x$" }, status(200, strings.Repeat("x", 100<<10)), ""},
		{func(c *Config) { c.Body = "y" }, status(200, strings.Repeat("x", 100<<10)+"y"), "the first 65536 bytes of the body do not match y"},
		{func(c *Config) { c.Body = "y" }, drip, "the body broke off: not complete within 3s"},
		{func(*Config) {}, hang, "no answer in 3s"},
		{func(*Config) {}, func(*exchange.Exchange) *exchange.Answer {
			return exchange.Fail(exchange.UpstreamRefused, "connect to a: refused")
		}, "connect to a: refused"},
		{func(*Config) {}, func(*exchange.Exchange) *exchange.Answer { panic("a test broke it") }, "broken invariant: a test broke it"},
		{func(c *Config) { c.Path = "/h?deep=1"; c.Method = "HEAD" }, func(ex *exchange.Exchange) *exchange.Answer {
			rq := &ex.Request
			agent, _ := rq.Header.Lookup("user-agent")
			if rq.Method != "HEAD" || rq.Target != "/h" || rq.Query != "?deep=1" || agent != "headgate-health-check" {
				t.Errorf("asked %s %s%s by %s", rq.Method, rq.Target, rq.Query, agent)
			}
			return status(200, "")(ex)
		}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := defaults()
			c.change(cfg)
			r := NewCheck(cfg, Probe{Source: &fake{respond: c.respond}}, NewRounds(), slog.New(slog.DiscardHandler)).runOnce()
			equal(t, "error", r.Error, c.want)
			equal(t, "healthy", r.Healthy, c.want == "")
		})
	}
}

// dripping gives one byte a second for ever.
type dripping struct{}

func (dripping) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	p[0] = 'x'
	return 1, nil
}
func (dripping) Ready() bool  { return false }
func (dripping) Close() error { return nil }

func TestWithoutAPathAConnectionIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.Path = ""
		var refuse atomic.Bool
		_, log := newLog(t)
		k := startCheck(cfg, Probe{Connect: func(time.Duration) error {
			if refuse.Load() {
				return errors.New("connection refused")
			}
			return nil
		}}, NewRounds(), log)
		defer k.Retire()
		s := newServer(log)
		defer k.Watch(s, 0).Retire()
		time.Sleep(time.Second)
		equal(t, "state", s.Status(false).State, Healthy)
		refuse.Store(true)
		time.Sleep(20 * time.Second)
		equal(t, "state", s.Status(false).State, Unhealthy)
		equal(t, "error", s.Status(false).LastError, "connection refused")
	})
}

// Checks of many servers are spread, and no more than a bound run at once.
func TestChecksAreSpreadAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servers = 1000
		rounds := NewRounds()
		var running, most, asked atomic.Int32
		second := map[int64]int{}
		began := time.Now()
		var mu = make(chan struct{}, 1)
		f := &fake{respond: func(ex *exchange.Exchange) *exchange.Answer {
			most.Store(max(most.Load(), running.Add(1)))
			mu <- struct{}{}
			second[int64(time.Since(began)/time.Second)]++
			<-mu
			time.Sleep(20 * time.Millisecond)
			running.Add(-1)
			asked.Add(1)
			return status(200, "")(ex)
		}}
		var checks []*Check
		for range servers {
			checks = append(checks, startCheck(defaults(), Probe{Source: f}, rounds, slog.New(slog.DiscardHandler)))
		}
		time.Sleep(100 * time.Second)
		for _, k := range checks {
			k.Retire()
		}
		time.Sleep(time.Second) // those under way end
		if n := asked.Load(); n < 9*servers || n > 11*servers {
			t.Errorf("%d checks in 100 seconds", n)
		}
		if most.Load() > atOnce {
			t.Errorf("%d checks at once", most.Load())
		}
		for s, n := range second {
			if s > 20 && n > 3*servers/10 {
				t.Errorf("%d checks in second %d", n, s)
			}
		}
	})
}

// A check that is not wanted any more ends while it waits, and its server is
// unknown again.
func TestRetiredCheckSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		f := &fake{respond: status(500, "")}
		k := startCheck(defaults(), Probe{Source: f}, NewRounds(), log)
		s := newServer(log)
		w := k.Watch(s, 0)
		time.Sleep(time.Minute)
		equal(t, "state", s.Status(false).State, Unhealthy)
		// Another check takes over; until it knows something the verdict stands.
		next := startCheck(defaults(), Probe{Source: &fake{respond: status(200, "")}}, NewRounds(), log)
		w2 := next.Watch(s, 0)
		equal(t, "state", s.Status(false).State, Unhealthy)
		w.Retire()
		k.Retire()
		equal(t, "state", s.Status(false).State, Unhealthy)
		time.Sleep(time.Second)
		equal(t, "state", s.Status(false).State, Healthy)
		before := f.asked.Load()
		time.Sleep(time.Minute)
		equal(t, "asked after it was retired", f.asked.Load(), before)
		w2.Retire()
		next.Retire()
		equal(t, "state", s.Status(false).State, Unknown)
	})
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Path = "" }, ""},
		{func(c *Config) { c.Path = "/a?b=c" }, ""},
		{func(c *Config) { c.Path = "healthz" }, "path"},
		{func(c *Config) { c.Path = "/a?b c" }, "path"},
		{func(c *Config) { c.Path = "/a?" }, "path"},
		{func(c *Config) { c.Status = "20" }, "status"},
		{func(c *Config) { c.Status = "300-200" }, "status"},
		{func(c *Config) { c.Status = "" }, "status"},
		{func(c *Config) { c.Status = "200-600" }, "status"},
		{func(c *Config) { c.Body = "(" }, "body"},
		{func(c *Config) { c.Body, c.Method = "x", "HEAD" }, "body"},
		{func(c *Config) { c.Body, c.Path = "x", "" }, "body"},
		{func(c *Config) { c.Host = "a b" }, "host"},
		{func(c *Config) { c.Host = "shop.example.com:8443" }, ""},
	} {
		cfg := defaults()
		c.change(cfg)
		report := schema.NewReport("", nil)
		cfg.Check(report.Root().Field("health_check"))
		got := ""
		for _, p := range report.Problems() {
			got = strings.TrimPrefix(p.Field, "health_check.")
		}
		equal(t, "problem", got, c.want)
	}
}

// A server that turns out to be well was asked before, too: that is told to nobody, as
// after a start ten thousand proxies turn out so. That it is ejected is told.
func TestTheFirstAnswerIsNoChange(t *testing.T) {
	told := 0
	s := NewServer(Name{"shop", "/", "http://a"}, Options{Log: slog.New(slog.DiscardHandler), Changed: func(string) { told++ }})
	defer s.Retire()
	s.Answered()
	if now := s.Status(false); now.State != Healthy || told != 0 {
		t.Errorf("state %v, told %d times", now.State, told)
	}
	hour := unit.Duration(time.Hour)
	policy := &Policy{Ejection: Ejection{Enabled: true, Failures: 1, Time: hour, MaxTime: hour, MaxPercent: 100}, Servers: []*Server{s}}
	s.Failed(policy, &exchange.Error{Reason: exchange.UpstreamRefused, Err: errors.New("refused")})
	if now := s.Status(false); now.State != Ejected || told != 1 {
		t.Errorf("state %v, told %d times", now.State, told)
	}
}
