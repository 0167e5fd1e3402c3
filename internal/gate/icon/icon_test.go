package icon

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

const (
	png = "\x89PNG\r\n\x1a\n of a picture"
	ico = "\x00\x00\x01\x00\x01\x00 of a picture"
	svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
)

// application is a source that answers by target. It is not asked at once by several.
type application struct {
	pages map[string]*exchangetest.Source
	wait  chan struct{} // nil does not wait

	mu    sync.Mutex
	asked []string
}

func (a *application) Describe() string { return "application" }

func (a *application) Respond(ex *exchange.Exchange) *exchange.Answer {
	a.mu.Lock()
	a.asked = append(a.asked, strings.Clone(ex.Request.Host+ex.Request.Target+ex.Request.Query))
	a.mu.Unlock()
	if a.wait != nil {
		<-a.wait
	}
	if p := a.pages[ex.Request.Target+ex.Request.Query]; p != nil {
		return p.Respond(ex)
	}
	return (&exchangetest.Source{Status: 404, Body: "nothing here"}).Respond(ex)
}

func ok(body string) *exchangetest.Source { return &exchangetest.Source{Status: 200, Body: body} }

func to(location string) *exchangetest.Source {
	return &exchangetest.Source{Status: 302, Fields: []string{"Location: " + location}}
}

func find(t *testing.T, pages map[string]*exchangetest.Source) (*Icon, []string) {
	t.Helper()
	f, a := New(), &application{pages: pages}
	defer f.Close()
	return f.Of("wiki.example.com", a), a.asked
}

func TestIconsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		pages map[string]*exchangetest.Source
		want  string
	}{
		"usual place":           {map[string]*exchangetest.Source{"/": ok("<html>"), "/favicon.ico": ok(ico)}, "image/x-icon " + ico},
		"no first page":         {map[string]*exchangetest.Source{"/favicon.ico": ok(ico)}, "image/x-icon " + ico},
		"named":                 {map[string]*exchangetest.Source{"/": ok(`<head><LINK REL="shortcut icon" href="/a.png?v=1&amp;x">`), "/a.png?v=1&x": ok(png)}, "image/png " + png},
		"relative to the page":  {map[string]*exchangetest.Source{"/": to("web/login"), "/web/login": ok(`<link rel=icon href=a.png>`), "/web/a.png": ok(png)}, "image/png " + png},
		"absolute":              {map[string]*exchangetest.Source{"/": to("https://wiki.example.com/x"), "/x": ok(`<link rel=icon href="//WIKI.example.com/a.png">`), "/a.png": ok(png)}, "image/png " + png},
		"the one that scales":   {map[string]*exchangetest.Source{"/": ok(`<link rel=icon href=a.png sizes=192x192><link rel=icon href=b.svg>`), "/a.png": ok(png), "/b.svg": ok(svg)}, "image/svg+xml " + svg},
		"the large one":         {map[string]*exchangetest.Source{"/": ok(`<link rel=icon href=s.png sizes="16x16 32x32"><link rel=apple-touch-icon href=t.png>`), "/s.png": ok(png), "/t.png": ok(png + "t")}, "image/png " + png + "t"},
		"the next":              {map[string]*exchangetest.Source{"/": ok(`<link rel=icon href=gone.svg><link rel=icon href=page.png><link rel=stylesheet href=a.css>`), "/page.png": ok("<html>"), "/favicon.ico": ok(ico)}, "image/x-icon " + ico},
		"other hosts":           {map[string]*exchangetest.Source{"/": ok(`<link rel=icon href="https://evil.example.net/a.png"><link rel=icon href="data:image/png;base64,AAAA">`)}, ""},
		"redirect elsewhere":    {map[string]*exchangetest.Source{"/": to("https://id.example.net/"), "/favicon.ico": to("http://169.254.169.254/")}, ""},
		"endless redirects":     {map[string]*exchangetest.Source{"/": to("/"), "/favicon.ico": to("/favicon.ico")}, ""},
		"too large":             {map[string]*exchangetest.Source{"/favicon.ico": ok(ico + strings.Repeat("x", maxIcon))}, ""},
		"a page in its place":   {map[string]*exchangetest.Source{"/favicon.ico": ok("<!doctype html><title>404</title>")}, ""},
		"in the text of a page": {map[string]*exchangetest.Source{"/": ok(`<body><link rel=icon href=/a.png>`), "/a.png": ok(png)}, ""},
		"compressed":            {map[string]*exchangetest.Source{"/favicon.ico": {Status: 200, Body: ico, Fields: []string{"Content-Encoding: gzip"}}}, ""},
	} {
		got, asked := find(t, c.pages)
		text := ""
		if got != nil {
			text = got.Type + " " + string(got.Data)
		}
		if text != c.want {
			t.Errorf("%s: got %.80q, want %q", name, text, c.want)
		}
		if len(asked) > 1+maxRedirects+maxTried*(1+maxRedirects) {
			t.Errorf("%s: %d requests", name, len(asked))
		}
		for _, target := range asked {
			if !strings.HasPrefix(target, "wiki.example.com/") {
				t.Errorf("%s: asked for %s", name, target)
			}
		}
	}
}

func TestAnIconIsKept(t *testing.T) {
	f, a := New(), &application{pages: map[string]*exchangetest.Source{"/favicon.ico": ok(ico)}}
	defer f.Close()
	first := f.Of("wiki.example.com", a)
	if first == nil || f.Of("wiki.example.com", a) != first || len(a.asked) != 2 {
		t.Fatalf("asked %v", a.asked)
	}
	f.known["wiki.example.com"].until = clock.Now()
	if f.Of("wiki.example.com", a); len(a.asked) != 4 {
		t.Errorf("asked %v, want it again after its time", a.asked)
	}
	none := &application{}
	for range 2 {
		if f.Of("other.example.com", none) != nil {
			t.Error("an icon of an application without one")
		}
	}
	e := f.known["other.example.com"]
	if len(none.asked) != 2 || e.until-e.begun > int64(keepNone+time.Minute) {
		t.Errorf("asked %v, again after %v", none.asked, time.Duration(e.until-e.begun))
	}
}

func TestFewSearchesRunAndFewIconsAreKept(t *testing.T) {
	f, a := New(), &application{wait: make(chan struct{})}
	for i := range maxKept + 10 {
		f.entry(fmt.Sprintf("%d.example.com", i), a)
	}
	if len(f.known) != maxKept {
		t.Errorf("%d are kept", len(f.known))
	}
	ended := make(chan struct{})
	go func() { defer close(ended); f.Close() }()
	<-f.ctx.Done() // those that wait for a place end
	close(a.wait)
	<-ended
	if len(a.asked) > atOnce*(1+maxTried) {
		t.Errorf("%d requests", len(a.asked))
	}
	if f.Of("late.example.com", a) != nil {
		t.Error("a closed Finder finds something")
	}
}
