package haproxy

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// front is a frontend, or the front half of a listen.
type front struct {
	s     *section
	acls  map[string]condition
	ports []*port
	rules []*rule // http-request and redirect, in order
	uses  []*rule // use_backend and default_backend
	heads []*rule // http-response and http-after-response

	rulesByHost, usesByHost *byHost // of rules and uses

	features importer.Object // of all of its routes

	kept denied // clients that are rejected by their addresses

	toHTTPS      *directive // the line that sends clients to https, if one does
	redirect     *rule      // the same line as a rule among others, where no port has TLS
	redirectAt   int
	redirectNote string
}

// proxy is a proxy before it is written.
type proxy struct {
	front *front
	hosts []string
	ports []string
	o     importer.Object // features and routes
	text  string
}

// written is a proxy that is in the document.
type written struct {
	o      importer.Object
	secure bool // a port of it is https
}

// front makes proxies of a frontend.
func (t *translator) front(s *section) {
	mode := "tcp"
	for _, d := range s.find("mode") {
		mode = d.arg(0)
	}
	if note := passedOver(s); note != "" {
		for _, d := range append([]*directive{s.d}, s.lines...) {
			t.AddVerdict(d, importer.Ignored, "%s", note)
		}
		return
	}
	if mode != "http" {
		t.stream(s)
		return
	}
	f := &front{s: s, acls: t.acls(s), features: importer.NewObject()}
	t.binds(f)
	t.collect(f)
	t.Became(s.d, importer.Close, importer.Field{}, "a proxy with its hosts; paths are matched and sent in their normal form (dot segments resolved, // merged), servers get forwarded, x-forwarded-* and via, and what a client sends of these is dropped; a server that cannot be reached gives 502, where HAProxy sends 503")
	if len(f.ports) == 0 {
		t.Check("%s:%d: %s listens nowhere that headgate can", s.d.File, s.d.Line, s.d.Text())
		for _, r := range slices.Concat(f.rules, f.uses, f.heads) {
			t.ruled(r.d).lost = true
		}
		return
	}
	if f.toHTTPS != nil && !slices.ContainsFunc(f.ports, func(p *port) bool { return p.secure }) {
		t.plain = append(t.plain, f)
		return
	}
	t.write(f)
}

// sendToHTTPS puts the ports of frontends that only send clients to https at the
// proxies that serve https.
func (t *translator) sendToHTTPS() {
	for _, f := range t.plain {
		found := false
		for _, w := range t.written {
			if !w.secure {
				continue
			}
			found = true
			for _, p := range f.ports {
				w.o.Append("ports", p.name)
			}
			w.o.Set("redirect_http_to_https", true)
			t.sentToHTTPS(f, w.o)
		}
		if !found { // TLS is ended elsewhere: the redirect is a rule like others
			f.toHTTPS = nil
			if f.redirect.act != nil {
				f.rules = slices.Insert(f.rules, f.redirectAt, f.redirect)
				t.ruled(f.redirect.d, f.redirectNote)
			}
			t.write(f)
		}
	}
}

// sentToHTTPS notes that a frontend is what sends the clients of a proxy to https.
func (t *translator) sentToHTTPS(f *front, proxy importer.Object) {
	became := proxy.Field("redirect_http_to_https")
	t.Became(f.s.d, importer.Close, became, "")
	r := t.ruled(f.toHTTPS, "redirect_http_to_https: GET and HEAD get 301, other methods 308, and requests of certificate authorities are not redirected")
	r.acted, r.field = true, r.field.Or(became)
}

// passedOver says why a whole section has nothing to do.
func passedOver(s *section) string {
	switch {
	case len(s.own("disabled")) > 0:
		return "the section is disabled"
	case len(s.own("stats")) > 0 && len(s.own("server", "use_backend", "default_backend")) == 0:
		return "a page of statistics: headgate has its console, /status and /metrics at the admin address"
	}
	return ""
}

// collect goes through the rules of a frontend.
func (t *translator) collect(f *front) {
	f.rules = t.rules(f.s, f.acls, f)
	if kept := t.rejected(f.s, f.acls, speaksHTTP); len(kept.networks) > 0 {
		// Rules for requests may let in fewer clients, never more: deny wins over allow.
		networks := importer.Networks(kept.networks)
		f.rules = append([]*rule{{d: kept.lines[0], when: rules.Holds(), act: func(o *outcome) { o.deny = slices.Clone(networks) }}}, f.rules...)
		f.kept = kept
	} else {
		kept.addVerdicts(t, importer.NewObject(), "")
	}
	for _, d := range f.s.find("monitor-uri") {
		q := question{sample: sample{name: "path"}, how: "str"}
		c := q.path(d.arg(0))
		t.sayCondition(d, c)
		f.rules = append([]*rule{{d: d, when: c, became: fields("fixed_response"), act: func(o *outcome) {
			o.fixed, o.over = importer.NewObject().Set("status", 200).Set("content_type", "text/html").Set("body", monitorPage), true
			o.always = append(o.always, importer.NewObject().Set("direction", "response").Set("name", "Cache-Control").Set("value", "no-cache").Flow())
		}}}, f.rules...)
	}
	f.heads = t.heads(f.s, f.acls, f)
	t.pages(f.s, f.features)
	t.compression(f.s, f.features)
	for _, d := range f.s.own("use_backend") {
		f.uses = append(f.uses, t.use(f, d)...)
	}
	if last := f.s.find("default_backend"); len(last) > 0 {
		d := last[len(last)-1]
		if b := t.backend(d, d.arg(0)); b != nil {
			t.ruled(d)
			f.uses = append(f.uses, &rule{d: d, when: rules.Holds(), act: b.respond})
		}
	} else if f.s.kind == "listen" {
		if b := t.backend(f.s.d, f.s.name); b != nil {
			f.uses = append(f.uses, &rule{d: f.s.d, when: rules.Holds(), act: b.respond})
		}
	}
	f.uses = slices.DeleteFunc(f.uses, func(r *rule) bool { return r.when.Problem != "" })
}

// monitorPage is what HAProxy answers at monitor-uri.
const monitorPage = "<html><body><h1>200 OK</h1>\nService ready.\n</body></html>\n"

// use makes rules of use_backend: one, or one for each entry of a map.
func (t *translator) use(f *front, d *directive) []*rule {
	words, c := t.splitIf(f.s, d, f.acls)
	if len(words) < 2 {
		t.AddVerdict(d, importer.Impossible, "no backend is named")
		return nil
	}
	found := mapFound.FindStringSubmatch(strings.Join(d.words[1:], " "))
	if found != nil && found[1] == found[2] { // only what the map has
		return t.useMap(f, d, found[1], condition{Problem: "not in the map"})
	}
	if strings.HasPrefix(words[1], "%[") {
		return t.useMap(f, d, strings.TrimSuffix(strings.TrimPrefix(words[1], "%["), "]"), c)
	}
	if c = routable(c); c.Problem != "" {
		t.sayCondition(d, c)
		t.Check("%s:%d: %s was left out: its requests go on to the next rule (%s)", d.File, d.Line, d.Text(), c.Problem)
		return nil
	}
	b := t.backend(d, words[1])
	if b == nil {
		return nil
	}
	t.sayCondition(d, c)
	return []*rule{{d: d, when: c, act: b.respond}}
}

// routable refuses conditions about the client, by which no route is chosen.
func routable(c condition) condition {
	for _, list := range c.Any {
		for _, l := range list {
			switch l.Kind {
			case rules.Client, rules.Rate, rules.Login:
				return rules.Impossible("a route cannot be chosen by who the client is")
			case rules.SNI:
				return rules.Impossible("in mode http the host of the request chooses")
			}
		}
	}
	return c
}

// mapFound is a map whose backend is used only for keys of the map.
var mapFound = regexp.MustCompile(`^%\[(\S+)\] if \{ (\S+) -m found \}$`)

// useMap makes a rule of each entry of a map. What it has not goes to its default, else
// to default_backend; with the problem of a condition, on to the next rule.
func (t *translator) useMap(f *front, d *directive, text string, c condition) (out []*rule) {
	parts := splitOutside(text, ',')
	how, args, ok := strings.Cut(parts[len(parts)-1], "(")
	if !ok || !strings.HasPrefix(how, "map") {
		t.AddVerdict(d, importer.Impossible, "the backend is made of variables; name it, or use a map")
		t.Check("%s:%d: %s was left out", d.File, d.Line, d.Text())
		return nil
	}
	name, otherwise, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
	onlyFound := c.Problem != ""
	if onlyFound {
		c = rules.Holds()
	} else if last := f.s.find("default_backend"); otherwise == "" && len(last) > 0 {
		otherwise = last[len(last)-1].arg(0)
	}
	lines, err := t.entries(d, name)
	if err != nil {
		t.AddVerdict(d, importer.Impossible, "the map cannot be read: %v", err)
		t.Check("%s:%d: %s was left out: its map cannot be read", d.File, d.Line, d.Text())
		return nil
	}
	how = strings.TrimPrefix(strings.TrimPrefix(how, "map"), "_")
	if how == "beg" || how == "end" { // the longest one wins
		slices.SortStableFunc(lines, func(a, b []string) int { return len(b[0]) - len(a[0]) })
	}
	q := question{sample: t.sampleOf(f.s, d, strings.Join(parts[:len(parts)-1], ",")), how: how}
	all := condition{}
	for _, l := range append(lines, []string{"", otherwise}) {
		one := q
		one.values = []string{l[0]}
		when := rules.Holds()
		if l[0] != "" {
			when = one.condition()
		}
		when = routable(when.And(c))
		if l[1] == "" {
			continue
		}
		if when.Problem != "" {
			t.Check("%s:%d: the entry %q of %s was left out: %s", d.File, d.Line, l[0], name, when.Problem)
			all = all.Or(condition{Notes: []string{"some entries are left out: " + when.Problem}})
			continue
		}
		if t.backends[l[1]] == nil {
			t.Check("%s:%d: the entry %q of %s was left out: there is no backend %s", d.File, d.Line, l[0], name, l[1])
			all = all.Or(condition{Notes: []string{"entries without a backend are left out"}})
			continue
		}
		if b := t.backend(d, l[1]); b != nil {
			all = all.Or(condition{Notes: when.Notes})
			out = append(out, &rule{d: d, when: when, act: b.respond})
		}
	}
	t.sayCondition(d, all)
	return out
}

// write makes the proxies of a frontend: one for each host in a rule, and one for
// all others. Those with the same content are one.
func (t *translator) write(f *front) {
	var all []*proxy
	same := map[string]*proxy{}
	for _, p := range f.ports {
		for _, q := range t.atPort(f, p) {
			key := q.text + "\x00" + strings.Join(q.hosts, "\x00")
			if o := same[key]; o != nil {
				o.ports = append(o.ports, q.ports...)
				continue
			}
			same[key] = q
			all = append(all, q)
		}
	}
	for _, p := range all {
		name := f.s.name
		if len(p.hosts) > 0 && p.hosts[0][0] != '~' {
			name = p.hosts[0]
		}
		o := importer.NewObject()
		if len(p.hosts) > 0 {
			o.Set("virtual_hosts", p.hosts)
		}
		o.Set("ports", p.ports)
		if f.toHTTPS != nil {
			o.Set("redirect_http_to_https", true)
			t.sentToHTTPS(f, o)
		}
		name = importer.Unused(t.Proxies, name, f.s.kind)
		t.Proxies.Set(name, o.Merge(p.o))
		t.Became(f.s.d, importer.Close, t.Proxies.Field(name), "")
		t.written = append(t.written, written{o, slices.ContainsFunc(f.ports, func(q *port) bool { return q.secure && slices.Contains(p.ports, q.name) })})
	}
}

// atPort makes the proxies of one port.
func (t *translator) atPort(f *front, port *port) (all []*proxy) {
	places := f.places(port)
	same := map[string]*proxy{}
	var common []*atom // of all expressions, whose routes are compared with each other
	chains := make([]*chain, len(places))
	for i, p := range places {
		chains[i] = f.chain(p)
		if p.expr != nil {
			common = append(common, chains[i].atoms...)
		}
	}
	for i, p := range places {
		if p.expr != nil {
			chains[i].atoms = slices.Concat(chains[i].atoms, common)
		}
		for _, o := range t.routes(f, chains[i]) {
			q := &proxy{front: f, ports: []string{port.name}, o: o, text: o.Key()}
			if p.host != "" {
				q.hosts = []string{p.host}
				if o := same[q.text]; o != nil {
					o.hosts = append(o.hosts, p.host)
					continue
				}
				same[q.text] = q
			}
			all = append(all, q)
		}
	}
	return all
}
