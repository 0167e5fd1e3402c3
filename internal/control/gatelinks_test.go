package control

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/gate"
)

// share makes a share link and returns its id and address.
func (g *gated) share(address string, l gate.Link) (id, link string) {
	g.t.Helper()
	l.Expires = time.Now().Add(time.Hour)
	made, link, err := g.house.c.Gate().CreateLink(address, l, false)
	if err != nil {
		g.t.Fatal(err)
	}
	return made.ID, link
}

// press opens a share link as a person does.
func (b *browser) press(link string) reply {
	b.t.Helper()
	return b.do("POST", link, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate")
}

func TestAShareLinkOpensOnePath(t *testing.T) {
	g := startGated(t)
	id, link := g.share(g.at("wiki", "/album/7/"), gate.Link{Uses: 1})
	guest := g.browser()
	// What only looks at the link uses up nothing.
	for range 3 {
		r := guest.get(link)
		r.want(t, 200, "Continue to wiki.example.com?", "<form method=\"post\"")
		if r.Header.Get("Referrer-Policy") != "no-referrer" || r.Header.Get("Cache-Control") != "no-store" || len(r.Header.Values("Set-Cookie")) > 0 {
			t.Errorf("fields %v", r.Header)
		}
	}
	// The secret counts at its origin only.
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	guest.get(g.at("chiefs", u.Path)).want(t, 403, "not valid")
	guest.press(g.at("chiefs", u.Path)).want(t, 403, "not valid")
	guest.do("PUT", link, "").want(t, 404)
	r := guest.press(link)
	r.want(t, 303)
	if got := r.Header.Get("Location"); got != g.at("wiki", "/album/7/") || r.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("leads to %q with %v", got, r.Header)
	}
	guest.press(link).want(t, 403, "not valid") // used
	guest.get(link).want(t, 403)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/album/7", 200}, {"GET", "/album/7/x?y", 200}, {"HEAD", "/album/7/x", 200},
		{"POST", "/album/7/x", 401}, {"DELETE", "/album/7/x", 401}, {"OPTIONS", "/album/7/x", 401},
		{"GET", "/", 401}, {"GET", "/album", 401}, {"GET", "/album/71", 401}, {"GET", "/ALBUM/7/x", 401}, {"GET", "/album/7/../8", 401},
		{"GET", "/album/7/..%2f8", 401}, {"GET", "/album/7;/x", 401}, {"GET", "/album/7/..%5c8", 401},
	} {
		r := guest.do(c.method, g.at("wiki", c.path), "", "Accept", "*/*", "Remote-User", "ann")
		if r.StatusCode != c.status || strings.Contains(r.text, "Remote-") || strings.Contains(r.text, "Cookie") {
			t.Errorf("%s %s: status %d, want %d; %s", c.method, c.path, r.StatusCode, c.status, r.text)
		}
	}
	guest.do("GET", g.at("wiki", "/album/7/x"), "", "Connection", "Upgrade", "Upgrade", "websocket").want(t, 401)
	guest.do("GET", g.at("chiefs", "/album/7/x"), "").want(t, 401)
	g.browser().do("GET", g.at("wiki", "/album/7/x"), "").want(t, 401)
	// It outlives a restart, and ends when it is revoked.
	g.house = g.house.again()
	guest.do("GET", g.at("wiki", "/album/7/x"), "").want(t, 200)
	if all := g.house.c.Gate().Links(); len(all) != 1 || all[0].ID != id || all[0].Visits != 1 || !all[0].Used {
		t.Errorf("listed are %+v", all)
	}
	if err := g.house.c.Gate().RevokeLink(id, "test", false); err != nil {
		t.Fatal(err)
	}
	guest.do("GET", g.at("wiki", "/album/7/x"), "").want(t, 401)
	if err := g.house.c.Gate().RevokeLink(id, "test", false); !errors.Is(err, gate.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	if log := g.house.log.String(); strings.Contains(log, u.Path[len(gate.LinkPath):]) {
		t.Errorf("the log has the secret: %s", log)
	}
}

// A link for several uses is opened that often, however many press at once.
func TestAShareLinkIsNotOpenedMoreOftenThanItMay(t *testing.T) {
	g := startGated(t)
	_, link := g.share(g.at("wiki", "/x"), gate.Link{Uses: 3, Writes: true})
	var opened atomic.Int32
	var all sync.WaitGroup
	for range 12 {
		b := g.browser()
		all.Go(func() {
			rs, err := b.client.Post(link, "", http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			rs.Body.Close()
			if rs.StatusCode == 303 {
				opened.Add(1)
			}
		})
	}
	all.Wait()
	if opened.Load() != 3 {
		t.Errorf("opened %d times, want 3", opened.Load())
	}
}

func TestShareLinksLeadToGatedApplicationsOnly(t *testing.T) {
	g := startGated(t)
	for _, address := range append(openRedirects(g), g.at("wiki", "/x?y"), g.at("wiki", "/x/..%2fy"), g.at("wiki", "/x;y")) {
		if _, _, err := g.house.c.Gate().CreateLink(address, gate.Link{Expires: time.Now().Add(time.Hour)}, false); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}
