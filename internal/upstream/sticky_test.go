package upstream

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// stickyServers returns servers a, b, c … of equal weight with a cookie.
func stickyServers(t *testing.T, n int, c *Sticky) (*Servers, exchange.Filter, *AffinityKey) {
	t.Helper()
	var list []Target
	for i := range n {
		list = append(list, Target{URL: "http://" + string('a'+rune(i%26)) + strings.Repeat("x", i/26), Address: "127.0.0.1:1", Weight: 1})
	}
	key := OpenAffinityKey(nil)
	a := &Affinity{Sticky: c, Key: key, Proxy: "p", Route: "/app"}
	s := newServers(t, settings, list...)
	s.pins = newPins(a, s.list)
	return s, a.Filter(), key
}

func lax(name string) *Sticky { return &Sticky{Enabled: true, Name: name, SameSite: SameSiteLax} }

func TestOurCookieIsTakenOutAndOthersStay(t *testing.T) {
	s, f, key := stickyServers(t, 3, lax("sid"))
	v := key.value("p", "/app", s.List()[1].URL)
	other := key.value("p", "/other", s.List()[1].URL)
	for _, c := range []struct {
		fields []string
		want   string
		server int
	}{
		{[]string{"a=1"}, "a=1", 0},
		{[]string{"sid=" + v}, "", 2},
		{[]string{"sid=" + v + "; a=1"}, "a=1", 2},
		{[]string{"a=1; sid=" + v}, "a=1", 2},
		{[]string{"a=1;sid=" + v + " ;  b=2"}, "a=1;  b=2", 2},
		{[]string{"a=\"x; sid=" + v + "; b= y\t"}, "a=\"x; b= y\t", 2},
		{[]string{"a=1", "sid=" + v, "b=2"}, "a=1|b=2", 2},
		{[]string{"sid=x; sid=" + v + "; sid=y; sid=" + other}, "", 2},
		{[]string{"Sid=" + v + "; xsid=" + v + "; sidx=1; sid"}, "Sid=" + v + "; xsid=" + v + "; sidx=1", 0},
		{[]string{"sid=" + other}, "", 0},
		{[]string{"sid=" + v[:21]}, "", 0},
		{[]string{"sid=" + v + "A"}, "", 0},
		{[]string{"sid=" + strings.Repeat("\x00", pinLength)}, "", 0},
		{[]string{"sid=\"" + v + "\""}, "", 0},
		{[]string{"a=1; ;; b=2;"}, "a=1; ;; b=2;", 0},
		{[]string{"sid=" + v + ";"}, "", 2},
	} {
		ex := exchangetest.New(t)
		for _, value := range c.fields {
			ex.Request.Header.Add(header.Cookie, value)
		}
		f.Request(ex)
		var got []string
		for _, field := range ex.Request.Header.All() {
			got = append(got, field.Value)
		}
		equal(t, strings.Join(c.fields, "|"), strings.Join(got, "|"), c.want)
		equal(t, strings.Join(c.fields, "|")+" names", s.Pinned(ex)+1, c.server)
		equal(t, "there is a Cookie field", ex.Request.Header.Has(header.Cookie), c.want != "")
	}
}

func TestEachServerIsFoundByItsValue(t *testing.T) {
	s, f, key := stickyServers(t, 256, lax("sid"))
	for i, srv := range s.List() {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: sid="+key.value("p", "/app", srv.URL)))
		f.Request(ex)
		equal(t, srv.URL, s.Pinned(ex), i)
	}
}

func TestCookieHasItsAttributes(t *testing.T) {
	for _, c := range []struct {
		set  Sticky
		path string
		tls  bool
		want string
	}{
		{Sticky{Name: "sid", SameSite: SameSiteLax}, "/", false, "sid=V; Path=/; HttpOnly; SameSite=Lax"},
		{Sticky{Name: "sid", SameSite: SameSiteStrict}, "/a/b", true, "sid=V; Path=/a/b; HttpOnly; Secure; SameSite=Strict"},
		{Sticky{Name: "sid", SameSite: SameSiteNone, MaxAge: unit.Duration(90 * time.Minute)}, "/", false, "sid=V; Path=/; Max-Age=5400; HttpOnly; Secure; SameSite=None"},
		{Sticky{Name: "sid", SameSite: SameSiteLax}, "/a/b;c/d", false, "sid=V; Path=/a/; HttpOnly; SameSite=Lax"},
	} {
		equal(t, "cookie", c.set.cookie("V", c.path, c.tls || c.set.SameSite == SameSiteNone), c.want)
	}
}

// A response of our own names no server, nor does one of a cache; and what a
// cache behind us may keep for everybody must not name one.
func TestCookieIsSetOnlyWhereAServerAnsweredOneClient(t *testing.T) {
	s, f, key := stickyServers(t, 2, lax("sid"))
	for _, c := range []struct {
		name           string
		wanted, served int
		ours           bool
		cache          string
		set            bool
	}{
		{"new client", 0, 1, false, "", true},
		{"other server", 1, 2, false, "", true},
		{"same server", 2, 2, false, "", false},
		{"cache", 1, 0, false, "", false},
		{"our own", 0, 1, true, "", false},
		{"private", 0, 1, false, "private, max-age=60", true},
		{"max-age", 0, 1, false, "max-age=60", true},
		{"public", 0, 1, false, "max-age=60, Public", false},
		{"s-maxage", 0, 1, false, "s-maxage=9", false},
	} {
		ex := exchangetest.New(t)
		if c.wanted > 0 {
			ex.Request.Header.Add(header.Cookie, "sid="+key.value("p", "/app", s.List()[c.wanted-1].URL))
		}
		f.Request(ex)
		ex.Response.Ours = c.ours
		if c.served > 0 {
			s.pins.served(ex, c.served-1)
		}
		if c.cache != "" {
			ex.Response.Header.Add(header.CacheControl, c.cache)
		}
		f.Response(ex)
		equal(t, c.name, ex.Response.Header.Has(header.SetCookie), c.set)
	}
}

func TestStickyAllocatesNothing(t *testing.T) {
	s, f, key := stickyServers(t, 8, lax("sid"))
	cookie := "a=1; sid=" + key.value("p", "/app", s.List()[7].URL) + "; b=2"
	ex := exchangetest.New(t)
	conn, front := ex.Conn, ex.Front
	n := testing.AllocsPerRun(1000, func() {
		ex.Reset(conn, front)
		ex.Request.Header.Add(header.Cookie, cookie)
		f.Request(ex)
		s.pins.served(ex, 2)
		f.Response(ex)
	})
	equal(t, "allocations", n, 0)
}

func TestAffinityKeySurvivesRestarts(t *testing.T) {
	kept := store.ValuesOf(memory.New())
	var fault error
	open := func(keep bool) string {
		k := OpenAffinityKey(kept)
		if fault = k.fault; keep {
			fault = k.Keep()
		}
		return k.value("p", "/", "http://a")
	}
	one, other := open(false), open(false)
	equal(t, "a key that is not kept twice", one == other, false)
	first := open(true)
	equal(t, "value after a restart", open(true), first)
	equal(t, "value for a reader", open(false), first)
	equal(t, "fault", fault, nil)
	for _, text := range []string{"", "abc", strings.Repeat("x", 64), strings.Repeat("a", 63), strings.Repeat("a", 66), strings.Repeat("a", 2000)} {
		if err := kept.Keep(store.KeySticky, []byte(text)); err != nil {
			t.Fatal(err)
		}
		one, other := open(true), open(true)
		equal(t, "two keys in memory are one", one == other, false)
		if fault == nil {
			t.Errorf("%q: no fault", text)
		}
		data, err := kept.Load(store.KeySticky)
		equal(t, "error", err, nil)
		equal(t, "a key that cannot be used is left alone", string(data), text)
	}
}

func TestStickySettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		set  Sticky
		path string
		want string
	}{
		{Sticky{Name: "sid"}, "/app", ""},
		{Sticky{Name: "__Host-sid"}, "/", ""},
		{Sticky{Name: "__host-sid"}, "/app", "sticky_cookie.name: browsers drop the cookie: a name that starts with __Host- is for the path /, not /app"},
		{Sticky{Name: "a b"}, "/", `sticky_cookie.name: "a b" is not the name`},
		{Sticky{Name: "a=b"}, "/", `sticky_cookie.name: "a=b" is not the name`},
		{Sticky{Name: "sid", MaxAge: unit.Duration(time.Millisecond)}, "/", "sticky_cookie.max_age: a cookie is kept for whole seconds"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(c.path, r.Root().Field("sticky_cookie"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
}

func BenchmarkSticky(b *testing.B) {
	list := make([]Target, 3)
	for i := range list {
		list[i] = Target{URL: "http://" + string('a'+rune(i)), Address: "127.0.0.1:1", Weight: 1}
	}
	s := &Servers{}
	for i := range list {
		s.list = append(s.list, &Server{URL: list[i].URL})
	}
	key := OpenAffinityKey(nil)
	a := &Affinity{Sticky: lax("sid"), Key: key, Proxy: "p", Route: "/"}
	s.pins = newPins(a, s.list)
	f := a.Filter()
	ex := exchangetest.New(b)
	conn, front := ex.Conn, ex.Front
	cookie := "a=1; sid=" + key.value("p", "/", list[2].URL) + "; b=2"
	b.ReportAllocs()
	for b.Loop() {
		ex.Reset(conn, front)
		ex.Request.Header.Add(header.Cookie, cookie)
		f.Request(ex)
		s.Pinned(ex)
	}
}
