package signin

import (
	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
	"headgate/internal/proto/header"
)

// The paths of the launchpad. Below iconPath are the hosts of applications.
const (
	sitesPath = "/sites"
	iconPath  = "/sites/icon/"
)

// applications returns what a person may open.
func (v *visit) applications(s *gate.Session) (out []gate.Application) {
	for _, a := range v.engine.Applications() {
		if a.Allow.Has(s.Person()) {
			out = append(out, a)
		}
	}
	return out
}

// listApplications adds what a person may open to a page.
func (v *visit) listApplications(p *page.View, s *gate.Session) {
	all := v.applications(s)
	if len(all) == 0 {
		p.Lines = append(p.Lines, v.texts.NoSites)
	}
	for _, a := range all {
		link := page.Link{URL: a.Origin + "/", Label: a.Host}
		if !v.launchpad {
			p.Sites = append(p.Sites, link)
			continue
		}
		p.Tiles = append(p.Tiles, page.Tile{Link: link, Name: a.Name, Icon: iconPath + a.Host, Problem: v.problemOf(a.State())})
	}
	if len(p.Tiles) > 0 {
		p.Title = v.texts.MySites
	}
}

// problemOf returns why an application cannot be used, "" if it can.
func (v *visit) problemOf(s gate.AppState) string {
	switch s {
	case gate.AppDown:
		return v.texts.SiteDown
	case gate.AppMaintenance:
		return v.texts.SiteMaintenance
	}
	return ""
}

// icon answers with the icon of an application, for people who may open it. One that has none
// gets the first letter of its name.
func (v *visit) icon(host string) *exchange.Answer {
	// An image runs nothing, but an address that is opened as a page could.
	as, reported := v.ex.Request.Header.Lookup("Sec-Fetch-Dest")
	s := v.engine.SignedIn(v.cookies.SignIn, v.ex.Times.Start)
	if s == nil || reported && as != "image" {
		return exchange.Fail(exchange.NoRoute, "sign_in: there is no such page")
	}
	for _, a := range v.applications(s) {
		if a.Host != host {
			continue
		}
		answer := &exchange.Answer{Status: 200, Fields: []header.Field{
			page.Plain("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
			page.Plain("X-Content-Type-Options", "nosniff"),
			page.Plain("Cross-Origin-Resource-Policy", "same-origin"),
		}}
		kept := "private, max-age=60"
		if found := v.engine.Icon(&a); found != nil {
			answer.Body, answer.ContentType, kept = found.Data, found.Type, "private, max-age=3600"
		} else {
			answer.Body, answer.ContentType = page.Letter(a.Name), "image/svg+xml"
		}
		answer.Fields = append(answer.Fields, page.Plain("Cache-Control", kept), page.Plain("Vary", "Cookie"))
		return answer
	}
	return exchange.Fail(exchange.NoRoute, "sign_in: there is no such page")
}
