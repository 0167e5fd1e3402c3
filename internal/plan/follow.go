package plan

import (
	"fmt"
	"net/url"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/redirects"
	"headgate/internal/feature/tohttps"
	"headgate/internal/proto/header"
)

// maxHops is how many redirects in a row are too many. Browsers give up after 20.
const maxHops = 20

// followRedirects looks for redirects that never end. For every rule it takes a
// path that the rule matches, asks for it as a client would and follows: what is
// still redirected after maxHops is a mistake, and that path is the proof.
// Rules for which no path is found, and ways that leave headgate, are not judged.
func (c *compiler) followRedirects() {
	type list struct {
		port  *Port
		proxy *config.Proxy
		first *redirects.Rule
	}
	judged := map[list]bool{}
	judge := func(port *Port, r *Route) {
		l := list{port, r.proxy, &r.redirects[0]}
		after := list{nil, l.proxy, l.first}
		if judged[l] || judged[after] {
			return
		}
		judged[l] = true
		for i, path := range redirects.Examples(r.redirects) {
			if path != "" && !judged[after] && !c.follow(port, r, i, path) {
				judged[after] = true
			}
		}
	}
	for _, p := range c.plan.proxies {
		if !p.sends {
			continue
		}
		for i, m := range p.members {
			if m == nil {
				continue
			}
			for _, r := range m.routes {
				if len(r.redirects) > 0 {
					judge(c.plan.ports[i], r)
				}
			}
		}
	}
}

// follow follows the result of rule number i of r's list for a path. It returns false, and
// reports it, if that is a loop.
func (c *compiler) follow(port *Port, r *Route, i int, path string) (ends bool) {
	host := someHost(r.proxy)
	if host == "" {
		return true
	}
	at := &url.URL{Scheme: port.scheme(), Host: fmt.Sprintf("%s:%d", host, port.Address().Port()), Path: "/"}
	at, err := at.Parse(path)
	if err != nil {
		return true
	}
	way := []string{at.RequestURI()}
	for range maxHops {
		next := c.plan.hop(at)
		if next == "" {
			return true
		}
		if at, err = at.Parse(next); err != nil {
			return true
		}
		way = append(way, next)
	}
	c.owner(r.body, len(r.settings.Redirects) > 0).Field("redirects").Index(i).Problemf("change the regex so that it does not match the target, or change one of the targets",
		"redirect loop: %s → …", strings.Join(way[:4], " → "))
	return false
}

// someHost returns a host that a proxy matches, "" if it cannot be determined.
func someHost(p *config.Proxy) string {
	if len(p.VirtualHosts) == 0 {
		return "any.example"
	}
	for _, h := range p.VirtualHosts {
		if !strings.HasPrefix(h, "~") {
			return strings.Replace(h, "*", "any", 1)
		}
	}
	return ""
}

// hop returns where a URL is redirected to, "" if it is not, or not by us.
func (p *Plan) hop(at *url.URL) string {
	e := Explanation{}
	q := Question{Method: "GET", Scheme: at.Scheme, Authority: at.Host, Target: at.RequestURI()}
	number, _ := portNumber(q)
	port := p.portFor(q, &e)
	if port == nil || int(port.Address().Port()) != number {
		return ""
	}
	ex, answer := port.read(q)
	if answer != nil {
		return ""
	}
	r, answer := port.selectRoute(ex)
	if answer != nil {
		return ""
	}
	answer, _ = r.pipeline.Only(redirects.Name, tohttps.Name).Rehearse(ex)
	if answer == nil {
		return ""
	}
	return strings.Clone(locationOf(answer))
}

// locationOf returns where an answer sends the client, or "".
func locationOf(answer *exchange.Answer) string {
	for i := range answer.Fields {
		if f := &answer.Fields[i]; f.ID == header.Location {
			return f.Value
		}
	}
	return ""
}
