package haproxy

import (
	"cmp"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// backend is a backend, or the back half of a listen.
type backend struct {
	o     importer.Object // what its routes have
	rules []*rule
	heads []*rule

	reached bool // some route sends requests to it
}

// respond lets the backend answer.
func (b *backend) respond(o *outcome) { o.backend = b }

// backend returns the backend of a name, which is made the first time.
func (t *translator) backend(d *directive, name string) *backend {
	if b := t.made[name]; b != nil {
		return b
	}
	s := t.backends[name]
	if s == nil {
		t.AddVerdict(d, importer.Impossible, "there is no backend %s", name)
		t.Check("%s:%d: %s was left out: there is no backend %s", d.File, d.Line, d.Text(), name)
		return nil
	}
	b := &backend{o: importer.NewObject()}
	t.made[name] = b
	t.servers(s, b)
	if s.kind == "backend" {
		t.Became(s.d, importer.Same, importer.Field{}, "its servers are those of each route that uses it")
		acls := t.acls(s)
		b.rules = t.rules(s, acls, nil)
		b.heads = t.heads(s, acls, nil)
	}
	if b.o.Len() == 0 {
		b.o.Set("fixed_response", importer.NewObject().Set("status", 503).Flow())
	} else {
		t.balance(s, b.o)
		t.times(s, b.o)
		t.health(s, b.o)
		t.sticky(s, b.o)
		t.retry(s, b.o)
	}
	t.pages(s, b.o)
	t.compression(s, b.o)
	if s.kind == "backend" {
		t.Became(s.d, importer.Same, fields("servers", "fixed_response")(b.o), "")
	}
	return b
}

// servers adds the servers of a section.
func (t *translator) servers(s *section, b *backend) {
	defer func() {
		for _, d := range s.own("default-server") {
			if own := s.own("server", "server-template"); len(own) > 0 && slices.Index(s.lines, own[len(own)-1]) < slices.Index(s.lines, d) {
				t.AddVerdict(d, importer.Ignored, "no server is behind it, and it holds for those alone")
			}
		}
	}()
	for _, d := range s.own("server") {
		o, verdict, note := t.server(s, d)
		if !o.Empty() {
			b.o.Append("servers", o.Flow())
		}
		t.Became(d, verdict, o.As("servers"), "%s", note)
	}
	for _, d := range s.own("server-template") {
		n, err := strconv.Atoi(d.arg(1))
		host, number, _ := strings.Cut(d.arg(2), ":")
		if err != nil || n < 1 || host == "" {
			t.AddVerdict(d, importer.Impossible, "a template has a number and an address")
			continue
		}
		b.o.Append("servers", importer.NewObject().Set("url", "http://"+net.JoinHostPort(host, cmp.Or(number, "80"))).Flow())
		t.Became(d, importer.Close, b.o.LastOf("servers"), "one server by its name: each of its addresses is a server, however many")
	}
}

var portOffset = regexp.MustCompile(`:[+-]\d+$`)

// serverURL returns the URL of a server.
func serverURL(scheme, address string) (url, what string) {
	switch {
	case strings.HasPrefix(address, "unix@"), strings.HasPrefix(address, "/"):
		return "unix:" + strings.TrimPrefix(address, "unix@"), ""
	case strings.Contains(strings.ReplaceAll(address, "${", ""), "$"), strings.HasPrefix(address, "abns@"), strings.HasPrefix(address, "fd@"), strings.HasPrefix(address, "sockpair@"):
		return "", "not an address that a request can be sent to"
	case portOffset.MatchString(address):
		return "", "a port counted from the client's; write its number"
	}
	address = strings.TrimPrefix(strings.TrimPrefix(address, "ipv4@"), "ipv6@")
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		host, number = strings.Trim(address, "[]"), map[string]string{"https": "443"}[scheme]
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if n, err := strconv.ParseUint(number, 10, 16); number != "" && !strings.Contains(number, "$") && (err != nil || n == 0) {
		return "", "not the number of a port"
	}
	if host == "0.0.0.0" || host == "*" {
		return "", "the server is the client's original destination; name it"
	}
	return scheme + "://" + net.JoinHostPort(host, cmp.Or(number, "80")), ""
}

// balance says how requests are shared.
func (t *translator) balance(s *section, o importer.Object) {
	for _, d := range s.find("balance") {
		name, arg, _ := strings.Cut(d.arg(0), "(")
		policy, note := "", ""
		switch arg = strings.TrimSuffix(arg, ")"); name {
		case "roundrobin", "static-rr":
			policy = "round_robin"
		case "leastconn":
			policy = "least_connections"
		case "first":
			policy = "first"
		case "random":
			policy, note = "random", "one server is drawn, not the better of two; p2c_ewma does that by time"
		case "source":
			policy, note = "client_ip_hash", "clients are spread otherwise: each may get another server than before, once"
		case "uri":
			policy, note = "hash:path", "paths are spread otherwise than before, once; the query does not count"
		case "hdr":
			policy, note = "hash:header:"+strings.Split(arg, ",")[0], "values are spread otherwise than before, once"
		}
		if policy == "" {
			t.AddVerdict(d, importer.Impossible, "requests are shared in turn, by load, address, path, header or cookie, not by %s", name)
			continue
		}
		became := importer.ByItself()
		if policy != "round_robin" {
			became = o.Set("load_balancing", policy).Field("load_balancing")
		}
		t.Became(d, verdictOf(note), became, "%s", note)
	}
}

// times are the times towards servers.
func (t *translator) times(s *section, o importer.Object) {
	for _, d := range s.find("timeout") {
		v, ok := duration(d.arg(1))
		if !ok {
			t.AddVerdict(d, importer.Impossible, "not a time")
			continue
		}
		switch d.arg(0) {
		case "connect":
			t.Became(d, importer.Same, o.Set("timeouts", importer.NewObject().Set("connect", v).Flow()).Field("timeouts"), "timeouts: {connect}")
		case "server":
			t.Became(d, importer.Close, o.Set("request_timeout", v).Field("request_timeout"), "request_timeout, until the head of the response; bodies have an idle time of 60s (upstreams: {body_idle_timeout: …})")
		case "queue":
			t.Became(d, importer.Same, o.Set("queue", importer.NewObject().Set("timeout", v).Flow()).Field("queue"), "queue: {timeout}")
		}
	}
}

// sticky keeps clients at their servers.
func (t *translator) sticky(s *section, o importer.Object) {
	for _, d := range s.find("cookie") {
		if !d.has("insert") {
			t.AddVerdict(d, importer.Impossible, "the cookie is headgate's own: sticky_cookie inserts one; it neither prefixes nor rewrites those of servers")
			continue
		}
		c := importer.NewObject().Set("name", t.cookieName(s, d.arg(0)))
		if v, ok := duration(d.after("maxlife")); ok {
			c.Set("max_age", v)
		}
		t.Became(d, importer.Close, o.Set("sticky_cookie", c.Flow()).Field("sticky_cookie"), "the cookie has another value and SameSite=Lax; a client that has one of HAProxy gets a new server, once")
	}
}

// cookieName returns the name of a backend's cookie. Backends whose cookies have one name
// would use each other's if their routes have the same host and path.
func (t *translator) cookieName(s *section, name string) string {
	if first := t.cookies[name]; first != nil && first != s {
		name += "-" + s.name
	}
	t.cookies[name] = s
	return name
}

// retry says what is sent to another server.
func (t *translator) retry(s *section, o importer.Object) {
	for _, d := range s.find("retries") {
		if n, err := strconv.Atoi(d.arg(0)); err == nil && n >= 0 {
			o.Set("retry", importer.NewObject().Set("attempts", min(n+1, 10)).Flow())
		}
		t.Became(d, importer.Close, o.Field("retry"), "the first of the attempts is counted, and the next one goes to another server at once")
	}
	for _, d := range s.find("option redispatch") {
		t.Became(d, importer.Same, importer.ByItself(), "what could not be sent goes to another server")
	}
	for _, d := range s.find("retry-on") {
		var on []string
		for _, w := range d.words[1:] {
			if word := map[string]string{"502": "502", "503": "503", "504": "504", "conn-failure": "connect", "empty-response": "reset", "response-timeout": "timeout"}[w]; word != "" {
				on = append(on, word)
			}
		}
		r := o.Object("retry")
		if r.Empty() {
			r = importer.NewObject()
		}
		if len(on) == 0 {
			t.AddVerdict(d, importer.Impossible, "of what a server does, no connection, no response, no response in time, and 502, 503 and 504 count")
			continue
		}
		o.Set("retry", r.Set("on", on).Flow())
		t.Became(d, importer.Close, o.Field("retry"), "only what may be repeated is sent again; of statuses 502, 503 and 504 count")
	}
}

// compression compresses responses.
func (t *translator) compression(s *section, o importer.Object) {
	c := importer.NewObject()
	for _, d := range s.find("compression") {
		switch d.arg(0) {
		case "algo":
			t.Became(d, importer.Close, o.Set("compression", c.Flow()).Field("compression"), "clients get zstd, br or gzip, as they prefer")
		case "type":
			t.Became(d, importer.Same, c.Set("types", d.words[2:]).Field("types"), "")
		}
	}
}
