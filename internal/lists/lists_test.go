package lists

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	office = netip.MustParseAddr("203.0.113.7")
	other  = netip.MustParseAddr("198.51.100.1")
)

// manager returns a manager that is closed with the test.
func manager(t *testing.T, o Options) *Manager {
	t.Helper()
	var log testhouse.Log
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	m := New(o)
	t.Cleanup(func() {
		m.Close()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return m
}

// commit has a manager use one list.
func commit(m *Manager, name string, c *Config) *List {
	s := m.Prepare(map[string]*Config{name: c}, "")
	s.Commit()
	return s.lists[name]
}

func issueOf(l *List, code string) (Issue, bool) {
	issues := l.State().Issues
	i := slices.IndexFunc(issues, func(i Issue) bool { return i.Code == code })
	if i < 0 {
		return Issue{}, false
	}
	return issues[i], true
}

func TestEntriesAndNamesMakeAList(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	answer, fails := []netip.Addr{office}, false
	lookup := func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		if host != "home.example.net" {
			t.Errorf("looked up %q", host)
		}
		if fails {
			return nil, 0, errors.New("server failure")
		}
		return answer, time.Second, nil
	}
	c := &Config{Entries: []string{"192.0.2.0/24", "Home.example.net."}}
	m := manager(t, Options{Dir: dir, Lookup: lookup})
	l := commit(m, "office", c)
	testhouse.Eventually(t, "the name is resolved", func() bool { return l.Contains(office) })
	if !l.Contains(netip.MustParseAddr("192.0.2.9")) || l.Contains(other) {
		t.Error("the list has not what its entries say")
	}
	m.Close()

	// After a restart the last answer is there at once, also where nobody answers.
	mu.Lock()
	fails = true
	mu.Unlock()
	m = manager(t, Options{Dir: dir, Lookup: lookup})
	s := m.Prepare(map[string]*Config{"office": c}, "")
	if l = s.lists["office"]; !l.Contains(office) {
		t.Fatal("the last answer is forgotten by a restart")
	}
	s.Commit()
	testhouse.Eventually(t, "the issue is open", func() bool { _, open := issueOf(l, "name_unresolved"); return open })
	if !l.Contains(office) {
		t.Error("the last answer is not used while the name cannot be resolved")
	}
	m.Close()

	// A day later it is not used any more.
	m = manager(t, Options{Dir: dir, Lookup: lookup, Clock: func() time.Time { return time.Now().Add(25 * time.Hour) }})
	if l = m.Prepare(map[string]*Config{"office": c}, "").lists["office"]; l.Contains(office) {
		t.Error("an answer of yesterday is used")
	}
}

func TestFileIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "bad.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write("# comment\n203.0.113.7 ; why\n\n10.0.0.1/8\tinternal\nnonsense\n// more\n")
	m := manager(t, Options{filePause: time.Millisecond})
	s := m.Prepare(map[string]*Config{"bad": {File: "bad.txt"}}, dir)
	s.Commit()
	l := s.lists["bad"]
	if !l.Contains(office) || !l.Contains(netip.MustParseAddr("10.9.9.9")) || l.State().Entries != 2 {
		t.Errorf("state %+v", l.State())
	}
	if i, open := issueOf(l, "entries_invalid"); !open || !strings.Contains(i.Message, "the first is line 5") {
		t.Errorf("issues %+v", l.State().Issues)
	}
	write("198.51.100.1\n")
	testhouse.Eventually(t, "the file is read again", func() bool { return l.Contains(other) && !l.Contains(office) })
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "the issue is open", func() bool { _, open := issueOf(l, "list_unavailable"); return open })
	if !l.Contains(other) {
		t.Error("the entries went with the file")
	}
}

// site serves what a test puts there.
type site struct {
	*httptest.Server
	roots *x509.CertPool
	mu    sync.Mutex
	serve http.HandlerFunc
}

func newSite(t *testing.T) *site {
	s := &site{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		serve := s.serve
		s.mu.Unlock()
		serve(w, r)
	}))
	s.Server.Config.ErrorLog = nil
	s.roots = x509.NewCertPool()
	s.roots.AddCert(s.Certificate())
	t.Cleanup(s.Close)
	return s
}

func (s *site) set(serve http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = serve
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

// lines returns n addresses, one a line.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "198.18.%d.%d\n", i>>8, i&255)
	}
	return b.String()
}

func urlConfig(s *site) *Config {
	return &Config{URL: s.URL + "/drop.txt", Interval: unit.Duration(time.Millisecond)}
}

// TestHostileDownloadsLeaveTheListAlone holds what issue 30 asks of a list URL: each of
// these is refused with an issue that says why, and the entries before stay.
func TestHostileDownloadsLeaveTheListAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(s *site) http.HandlerFunc
		code  string
		says  string
	}{
		{"redirect to metadata", func(*site) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://169.254.169.254/latest/meta-data", http.StatusFound)
			}
		}, "list_unavailable", "not allowed"},
		{"redirect to http", func(s *site) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			}
		}, "list_unavailable", "not https"},
		{"redirects without end", func(s *site) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, s.URL+"/again", http.StatusFound)
			}
		}, "list_unavailable", "more than 3 redirects"},
		{"a gigabyte", func(*site) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				block := bytes.Repeat([]byte("198.51.100.1\n"), 8<<10)
				for range 1 << 30 / len(block) {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			}
		}, "list_unavailable", "larger than 64 MiB"},
		{"HTML", func(*site) http.HandlerFunc { return text("\n<!DOCTYPE html><html>Sign in</html>") }, "list_unavailable", "HTML page"},
		{"prose", func(*site) http.HandlerFunc { return text("Service moved\nsee elsewhere\n198.51.100.1\n") }, "list_unavailable", "neither addresses nor networks"},
		{"an error", func(*site) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusGone) }
		}, "list_unavailable", "410"},
		{"nothing", func(*site) http.HandlerFunc { return text("# no entries today\n") }, "list_shrunk", "from 100 to 0"},
		{"a tenth", func(*site) http.HandlerFunc { return text(lines(10)) }, "list_shrunk", "from 100 to 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.set(text(lines(100)))
			m := manager(t, Options{Roots: s.roots})
			l := commit(m, "drop", urlConfig(s))
			testhouse.Eventually(t, "the list is loaded", func() bool { return l.State().Entries == 100 })
			s.set(c.serve(s))
			testhouse.Eventually(t, "the issue is open", func() bool { _, open := issueOf(l, c.code); return open })
			if i, _ := issueOf(l, c.code); !strings.Contains(i.Message, c.says) {
				t.Errorf("issue %q does not say %q", i.Message, c.says)
			}
			if state := l.State(); state.Entries != 100 || state.State != Failed || !l.Contains(netip.MustParseAddr("198.18.0.99")) {
				t.Errorf("the entries before are gone: %+v", state)
			}
		})
	}
}

// TestUnchangedListEndsTheIssue checks that a 304 after a failure says that the list in use is
// good again (issue 34).
func TestUnchangedListEndsTheIssue(t *testing.T) {
	s := newSite(t)
	var broken atomic.Bool
	var unchanged atomic.Int64
	s.set(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case broken.Load():
			http.Error(w, "down", http.StatusBadGateway)
		case r.Header.Get("If-None-Match") == `"1"`:
			unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", `"1"`)
			fmt.Fprint(w, "203.0.113.7\n1.2.3.999\n")
		}
	})
	l := commit(manager(t, Options{Roots: s.roots}), "drop", urlConfig(s))
	testhouse.Eventually(t, "the list is loaded", func() bool { return l.Contains(office) && unchanged.Load() > 0 })
	broken.Store(true)
	testhouse.Eventually(t, "the failure is an issue", func() bool { _, ok := issueOf(l, "list_unavailable"); return ok })
	if st := l.State(); st.State != Failed {
		t.Errorf("the state after a failure is %q", st.State)
	}
	broken.Store(false)
	testhouse.Eventually(t, "the issue ends with a 304", func() bool {
		_, failed := issueOf(l, "list_unavailable")
		return !failed && l.State().State == Ready
	})
	if _, ok := issueOf(l, "entries_invalid"); !ok {
		t.Error("the 304 also removed the issue of the entries in use")
	}
}

// TestServerThatHangsHoldsNobodyUp holds that a list whose server answers nothing neither
// delays the start nor the end.
func TestServerThatHangsHoldsNobodyUp(t *testing.T) {
	s := newSite(t)
	asked, hang := make(chan struct{}, 1), make(chan struct{})
	s.set(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-hang
	})
	t.Cleanup(func() { close(hang) })
	m := manager(t, Options{Roots: s.roots})
	l := commit(m, "drop", urlConfig(s))
	<-asked
	if state := l.State(); state.State != Loading || l.Contains(office) {
		t.Errorf("state %+v", state)
	}
	m.Close()
}

func TestWideAndProtectedEntriesAreLeftOut(t *testing.T) {
	s := newSite(t)
	s.set(text("0.0.0.0/0\n::/0\n2001:db8::/19\n192.0.2.0/24\n203.0.113.7\n"))
	protected := func(p netip.Prefix) string {
		if p.Contains(netip.MustParseAddr("192.0.2.1")) {
			return "an address of this machine"
		}
		return ""
	}
	dir := t.TempDir()
	m := manager(t, Options{Dir: dir, Roots: s.roots, Protected: protected})
	c := urlConfig(s)
	l := commit(m, "drop", c)
	testhouse.Eventually(t, "the list is loaded", func() bool { return l.State().Entries == 1 })
	if !l.Contains(office) || l.Contains(other) || l.Contains(netip.MustParseAddr("192.0.2.1")) {
		t.Error("the list has what it must not")
	}
	for code, says := range map[string]string{"entries_too_wide": "3 entries", "entries_protected": "an address of this machine"} {
		if i, open := issueOf(l, code); !open || !strings.Contains(i.Message, says) {
			t.Errorf("issues %+v, want %s that says %q", l.State().Issues, code, says)
		}
	}
	// The kept copy is used at the next start, and screened again: what is protected then
	// may be another address.
	m.Close()
	s.set(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	m = manager(t, Options{Dir: dir, Roots: s.roots})
	l = m.Prepare(map[string]*Config{"drop": c}, "").lists["drop"]
	if !l.Contains(office) || !l.Contains(netip.MustParseAddr("192.0.2.1")) || l.Contains(other) {
		t.Errorf("the saved list is not used: %+v", l.State())
	}
	// Another URL has another list.
	moved := &Config{URL: s.URL + "/other.txt", Interval: c.Interval}
	if l = m.Prepare(map[string]*Config{"drop": moved}, "").lists["drop"]; l.Contains(office) {
		t.Error("the list of another URL is used")
	}
}

func TestAllowShrink(t *testing.T) {
	s := newSite(t)
	s.set(text(lines(100)))
	m := manager(t, Options{Roots: s.roots})
	c := urlConfig(s)
	c.AllowShrink = true
	l := commit(m, "drop", c)
	testhouse.Eventually(t, "the list is loaded", func() bool { return l.State().Entries == 100 })
	s.set(text(""))
	testhouse.Eventually(t, "the list is empty", func() bool { return l.State().Entries == 0 })
	if _, open := issueOf(l, "list_empty"); !open {
		t.Errorf("issues %+v", l.State().Issues)
	}
}

func TestListIsTakenOverWhenItsSettingsStay(t *testing.T) {
	m := manager(t, Options{})
	one := m.Prepare(map[string]*Config{"a": {Entries: []string{"192.0.2.1"}}}, "")
	one.Commit()
	two := m.Prepare(map[string]*Config{"a": {Entries: []string{"192.0.2.1"}}, "b": {Entries: []string{"192.0.2.2"}}}, "")
	if two.lists["a"] != one.lists["a"] {
		t.Error("an unchanged list was made anew")
	}
	two.Cancel()
	if three := m.Prepare(map[string]*Config{"a": {Entries: []string{"192.0.2.3"}}}, ""); three.lists["a"] == one.lists["a"] {
		t.Error("a changed list was taken over")
	}
	if got := m.With(netip.MustParseAddr("192.0.2.1")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("lists with 192.0.2.1: %v", got)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{}, "no source"},
		{Config{Entries: []string{"192.0.2.1"}, File: "a"}, "more than one source"},
		{Config{Entries: []string{"list:other"}}, "cannot refer"},
		{Config{Entries: []string{"192.0.2.1/24"}}, "host bits"},
		{Config{Entries: []string{"a b.example"}}, "not an address"},
		{Config{URL: "http://lists.example.com/a"}, `does not download files over "http"`},
		{Config{URL: "file:///etc/passwd"}, "URL"},
		{Config{CrowdSec: &CrowdSec{URL: "127.0.0.1:8080", Key: "k"}}, "not an http"},
		{Config{Entries: []string{"home.example.net", "2001:db8::/32"}}, ""},
		{Config{URL: "https://lists.example.com/drop.txt"}, ""},
	} {
		r := schema.NewReport("", nil)
		c.c.Check(r.Root())
		got := ""
		for _, p := range r.Problems() {
			got += p.What + "\n"
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.c, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8 ; a\n", "# x\n::1\n", "<html>", "1.2.3.4,5\n\xff\x00", "\ufeff192.0.2.1\r\n", "::ffff:10.0.0.0/104"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parse(text)
		if err != nil {
			return
		}
		for _, n := range p.networks {
			if n != n.Masked() || n.Addr().Is4In6() || !n.IsValid() {
				t.Fatalf("%q has the network %v", text, n)
			}
		}
		kept, _ := screen(p.networks, nil)
		for _, n := range kept {
			if n.Bits() < widest4 {
				t.Fatalf("%v is kept", n)
			}
		}
	})
}

// TestEngineThatIsAwayAtTheStart checks each on_failure without a saved copy: `keep` and
// `pass` list no address, `deny` all public ones. When the engine answers, its decisions are
// used, and after it goes away again `keep` has the last ones.
func TestEngineThatIsAwayAtTheStart(t *testing.T) {
	for _, c := range []struct {
		mode                OnFailure
		atStart, afterwards bool // whether an address that nothing was decided about is listed
		decided             bool // whether one that was is listed while the engine is away again
	}{{Keep, false, false, true}, {Pass, false, false, false}, {Deny, true, true, true}} {
		t.Run(string(c.mode), func(t *testing.T) {
			var answers atomic.Bool
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if !answers.Load() {
					panic(http.ErrAbortHandler)
				}
				fmt.Fprintf(w, `{"new": [{"id": 1, "type": "ban", "scope": "Ip", "value": %q}], "deleted": null}`, office)
			}))
			s.Config.ErrorLog = nil
			defer s.Close()
			m := manager(t, Options{Dir: t.TempDir()})
			l := commit(m, "crowdsec", &Config{CrowdSec: &CrowdSec{URL: s.URL, Key: "k", Interval: unit.Duration(time.Millisecond), OnFailure: c.mode}})
			away := func() bool { _, open := issueOf(l, "list_unavailable"); return open }
			testhouse.Eventually(t, "the issue is open", away)
			if got := l.Contains(other); got != c.atStart {
				t.Errorf("at the start an address is listed: %v", got)
			}
			if l.Contains(netip.MustParseAddr("10.0.0.1")) {
				t.Error("a private address is listed")
			}
			answers.Store(true)
			testhouse.Eventually(t, "decisions are used", func() bool { return l.Contains(office) && !l.Contains(other) && !away() })
			answers.Store(false)
			testhouse.Eventually(t, "the issue is open again", away)
			if a, d := l.Contains(other), l.Contains(office); a != c.afterwards || d != c.decided {
				t.Errorf("without the engine: others listed %v, the decided one %v", a, d)
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	var entries []string
	for i := range 100_000 {
		entries = append(entries, fmt.Sprintf("%d.%d.%d.0/24", 1+i>>16, i>>8&255, i&255))
	}
	m := New(Options{})
	defer m.Close()
	l := commit(m, "drop", &Config{Entries: entries})
	b.ReportAllocs()
	for b.Loop() {
		l.Contains(other)
	}
}
