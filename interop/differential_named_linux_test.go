package interop

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reported is a line of the report of an import that names a difference: an entry with the
// verdict close or not_possible, or a line that a person should look at. A line of the
// second kind without a place has no Line.
type reported struct {
	Line                     int
	Directive, Verdict, Note string
}

func (r reported) String() string {
	return fmt.Sprintf("line %d, %s: %s: %s", r.Line, r.Verdict, r.Directive, r.Note)
}

// checkPlace is where a line to look at says that it is about.
var checkPlace = regexp.MustCompile(`^\S+?:([0-9]+): `)

// namingLines returns the lines of a report that can name a difference.
func namingLines(f importReport) (out []reported) {
	for _, e := range f.Entries {
		if e.Verdict == "close" || e.Verdict == "not_possible" {
			out = append(out, reported{e.Line, e.Directive, e.Verdict, e.Note})
		}
	}
	for _, text := range f.Check {
		r := reported{Verdict: "look at", Note: text}
		if m := checkPlace.FindStringSubmatch(text); m != nil {
			r.Line, _ = strconv.Atoi(m[1])
		}
		out = append(out, r)
	}
	return out
}

// served is what a server says of a request: see reflect.
var served = regexp.MustCompile(`^served at ([0-9]+): (\S+) (\S+) host=(\S*) map\[(.*)\] body=([0-9]+)$`)

// sentField is a field in the map of what a server says.
var sentField = regexp.MustCompile(`(?:^| )([A-Z][A-Za-z0-9_-]*):`)

// sentFields returns the fields of the map in what a server says.
func sentFields(text string) map[string]string {
	out, at := map[string]string{}, sentField.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out[text[m[2]:m[3]]] = text[m[1]:end]
	}
	return out
}

// aspects are in what two answers differ: "answer" is who answers, and with which status;
// "method", "path", "host" and "sent NAME" are of the request that a server got, "field
// NAME" and "body" of the response.
func aspects(a, z networkAnswer) (out []string) {
	add := func(what string) {
		if !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	x, y := served.FindStringSubmatch(a.Body), served.FindStringSubmatch(z.Body)
	if a.Err != "" || z.Err != "" || a.Status != z.Status || (x == nil) != (y == nil) {
		return []string{"answer"} // and all else with it
	}
	for _, name := range slices.Sorted(maps.Keys(union(a.Header, z.Header))) {
		if a.Header[name] != z.Header[name] {
			add("field " + name)
		}
	}
	if x == nil {
		if a.Body != z.Body {
			return []string{"answer"}
		}
		return out
	}
	if x[1] != y[1] {
		add("answer")
	}
	for i, what := range []string{"method", "path", "host", "", "body"} {
		if what != "" && x[i+2] != y[i+2] {
			add(what)
		}
	}
	sent, got := sentFields(x[5]), sentFields(y[5])
	for _, name := range slices.Sorted(maps.Keys(union(sent, got))) {
		if sent[name] != got[name] {
			add("sent " + name)
		}
	}
	return out
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// source is the text of a configuration with the blocks around each of its places.
type source struct {
	kind, text string
	lines      []int // by line, from 1: where it begins
	around     []around
	hosts      map[string][]string // of nginx's servers
	ports      map[string][]string // of HAProxy's sections
}

// around are the heads of the blocks around all places from one on, the outermost first.
type around struct {
	from  int
	heads []string
}

// blockHead is the text in front of an opening brace.
var blockHead = regexp.MustCompile(`(?s)[^;{}]*$`)

// newSource reads the blocks of a configuration.
func newSource(kind, text string) *source {
	s := &source{kind: kind, text: text, lines: []int{0, 0}, hosts: map[string][]string{}, ports: map[string][]string{}}
	for i, c := range text {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	if kind == "haproxy" {
		s.sections(text)
		return s
	}
	from, servers := 0, 0
	var heads []string
	var quote rune
	for i, c := range text {
		switch {
		case c == '\n':
			if kind == "caddy" {
				from = i + 1
			}
			quote = 0
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '{' && opens(kind, text, i):
			head := strings.TrimSpace(blockHead.FindString(text[from:i]))
			begin := from + max(0, strings.LastIndex(text[from:i], head))
			if kind == "nginx" && head == "server" {
				servers++
				head = fmt.Sprint("server ", servers)
			}
			from, heads = i+1, append(slices.Clone(heads), head)
			s.around = append(s.around, around{begin, heads})
		case c == '}' && len(heads) > 0 && (kind != "caddy" || strings.TrimSpace(text[from:i]) == ""):
			from, heads = i+1, slices.Clone(heads[:len(heads)-1])
			s.around = append(s.around, around{i, heads})
		case c == ';':
			names := strings.Fields(text[from:i])
			if at := slices.IndexFunc(heads, func(h string) bool { return strings.HasPrefix(h, "server ") }); len(names) > 1 && names[0] == "server_name" && at >= 0 {
				s.hosts[heads[at]] = append(s.hosts[heads[at]], names[1:]...)
			}
			from = i + 1
		}
	}
	return s
}

// places returns the heads of the blocks around a line of a report: of its directive, which
// may be on the line more than once, otherwise of the end of the line.
func (s *source) places(r reported) (out [][]string) {
	if r.Line <= 0 || r.Line >= len(s.lines) {
		return nil
	}
	begin, end := s.lines[r.Line], len(s.text)
	if r.Line+1 < len(s.lines) {
		end = s.lines[r.Line+1]
	}
	words := strings.Fields(strings.TrimSuffix(r.Directive, " { … }"))
	for i, w := range words {
		words[i] = regexp.QuoteMeta(strings.Trim(w, ";\"'…"))
	}
	var at []int
	if re, err := regexp.Compile(`(?s)` + strings.Join(words, `[\s"';]+`)); err == nil && len(words) > 0 {
		for _, m := range re.FindAllStringIndex(s.text[begin:], -1) {
			if begin+m[0] < end {
				at = append(at, begin+m[0])
			}
		}
	}
	if len(at) == 0 {
		at = []int{end - 1}
	}
	for _, place := range at {
		i, found := slices.BinarySearchFunc(s.around, place, func(a around, to int) int { return cmp.Compare(a.from, to) })
		if !found {
			i--
		}
		if i >= 0 {
			out = append(out, s.around[i].heads)
		} else {
			out = append(out, nil)
		}
	}
	return out
}

// opens reports whether a brace opens a block: in nginx and Caddy it stands apart.
func opens(kind, text string, i int) bool {
	if kind == "caddy" {
		return strings.TrimSpace(text[i+1:i+1+max(0, strings.IndexByte(text[i+1:], '\n'))]) == ""
	}
	return i == 0 || text[i-1] != '$'
}

// sections reads the sections of HAProxy.
func (s *source) sections(text string) {
	section, at := "", 0
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && slices.Contains([]string{"global", "defaults", "frontend", "listen", "backend", "userlist", "peers", "resolvers", "cache", "http-errors", "ring", "program", "mailers", "fcgi-app"}, words[0]) {
			section = strings.Join(words[:min(2, len(words))], " ")
			s.around = append(s.around, around{at, []string{section}})
		}
		if len(words) > 1 && words[0] == "bind" {
			for _, m := range portToken.FindAllStringSubmatch(words[1], -1) {
				s.ports[section] = append(s.ports[section], m[1])
			}
		}
		at += len(line)
	}
}

// about reports whether a line of a report can be about a request: whether the request
// comes to the blocks around it.
func (s *source) about(r reported, rq networkRequest) bool {
	places := s.places(r)
	return places == nil || slices.ContainsFunc(places, func(heads []string) bool { return s.reaches(heads, rq) })
}

// reaches reports whether a request may come to a block.
func (s *source) reaches(heads []string, rq networkRequest) bool {
	for i, head := range heads {
		switch s.kind {
		case "haproxy":
			if ports := s.ports[head]; len(ports) > 0 && !slices.Contains(ports, strconv.Itoa(rq.Port)) {
				return false
			}
		case "caddy":
			if i == 0 && !siteTakes(head, rq) {
				return false
			}
		default:
			if strings.HasPrefix(head, "server ") && !s.serverTakes(head, rq.Host) || strings.HasPrefix(head, "location") && !locationTakes(head, rq.Path, i == len(heads)-1) {
				return false
			}
		}
	}
	return true
}

// siteTakes reports whether one of the addresses of a site of Caddy has a host.
func siteTakes(head string, rq networkRequest) bool {
	if head == "" || strings.HasPrefix(head, "(") || strings.HasPrefix(head, "import") {
		return true
	}
	for _, a := range strings.FieldsFunc(head, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		if _, rest, ok := strings.Cut(a, "://"); ok {
			a = rest
		}
		a, _, _ = strings.Cut(a, "/")
		host := a
		if h, _, err := net.SplitHostPort(a); err == nil {
			host = h
		}
		if host == "" || strings.EqualFold(host, rq.Host) || strings.ContainsAny(host, "*{") {
			return true
		}
	}
	return false
}

// serverTakes reports whether a server of nginx may take a host: one of its names is the
// host, or an expression or a wildcard, or no server has the host.
func (s *source) serverTakes(server, host string) bool {
	has := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			return strings.EqualFold(n, host) || strings.ContainsAny(n, "*~") || strings.HasPrefix(n, ".")
		})
	}
	if has(s.hosts[server]) || len(s.hosts[server]) == 0 {
		return true
	}
	for _, names := range s.hosts {
		if has(names) {
			return false
		}
	}
	return true
}

// locationTakes reports whether a location of nginx may take a path. own says that the line
// is that of the location, which may be about paths beside those that it takes.
func locationTakes(head, path string, own bool) bool {
	words := strings.Fields(head)
	if len(words) < 2 {
		return true
	}
	path, _, _ = strings.Cut(path, "?")
	modifier, text := "", strings.Trim(words[len(words)-1], `"'`)
	if len(words) > 2 {
		modifier = words[1]
	}
	switch {
	case strings.HasPrefix(text, "@"):
		return true
	case strings.HasPrefix(modifier, "~"):
		re, err := regexp.Compile("(?i)" + text)
		return err != nil || re.MatchString(path) || own && strings.HasPrefix(path, literalOf(re))
	case modifier == "=" && !own:
		return path == text
	}
	return strings.HasPrefix(path, text) || own && strings.HasPrefix(strings.ToLower(path), strings.ToLower(strings.TrimSuffix(text, "/")))
}

func literalOf(re *regexp.Regexp) string {
	text, _ := re.LiteralPrefix()
	return cmp.Or(strings.TrimSuffix(text, "/"), "\x00")
}

// named returns for each aspect the line of the report that names it. It reports false if
// an aspect has none.
func (s *source) named(lines []reported, rq networkRequest, a, z networkAnswer) (out []reported, ok bool) {
	for _, aspect := range aspects(a, z) {
		i := slices.IndexFunc(lines, func(r reported) bool { return s.speaksOf(r, aspect) && s.about(r, rq) && fits(r, rq, a, z) })
		if i < 0 {
			return nil, false
		}
		out = append(out, lines[i])
	}
	return out, true
}

// special are parts of notes that name only differences of one kind, whatever their
// directives.
var special = []struct {
	part *regexp.Regexp
	fits func(rq networkRequest, a, z networkAnswer) bool
}{
	{regexp.MustCompile(`[^;]*is not below [^;]*`), func(rq networkRequest, _, _ networkAnswer) bool { return rq.Change == "x" || rq.Change == "upper" }},
	{regexp.MustCompile(`[^;]*(hosts that no server has|requests for unknown hosts)[^;]*(; here they get 404)?`), func(rq networkRequest, _, z networkAnswer) bool {
		return z.Status == 404 && strings.Contains(z.Reason, "no_route")
	}},
	{regexp.MustCompile(`[^;]*without the slash[^;]*`), func(rq networkRequest, _, _ networkAnswer) bool {
		path, _, _ := strings.Cut(rq.Path, "?")
		return !strings.HasSuffix(path, "/")
	}},
	{regexp.MustCompile(`[^;]*normal form[^;]*(; nginx sends it as it came)?`), func(rq networkRequest, a, z networkAnswer) bool {
		return strings.Contains(rq.Path, "//") || strings.Contains(rq.Path, "/.")
	}},
	{regexp.MustCompile(`[^;]*(in the letters that|is case-sensitive)[^;]*(; nginx writes small ones|; in a map of nginx, it is not)?`), func(rq networkRequest, a, z networkAnswer) bool { return rq.Host != strings.ToLower(rq.Host) }},
	{regexp.MustCompile(`[^;]*paths are case-sensitive[^;]*(; with Caddy, they are not)?`), func(rq networkRequest, _, _ networkAnswer) bool { return rq.Change == "upper" }},
	{regexp.MustCompile(`redirect_http_to_https[^;]*`), func(rq networkRequest, a, z networkAnswer) bool { return z.Status == 301 || z.Status == 308 }},
	{regexp.MustCompile(`[^;]*(there is no exact match|there are no exact paths|matches paths below)[^;]*`), func(rq networkRequest, a, z networkAnswer) bool {
		return rq.Change == "below" || rq.Change == "slash"
	}},
	{regexp.MustCompile(`[^;]*are redirected to [^;]*: Location is relative; nginx writes scheme, host and port in front(, and does not look at allow and deny there)?|Location is relative; nginx writes scheme, host and port in front`), func(rq networkRequest, a, z networkAnswer) bool {
		return a.Header["Location"] != z.Header["Location"] || a.Header["Location"] != "" && a.Status != z.Status && strings.HasSuffix(a.Header["Location"], "/")
	}},
	{regexp.MustCompile(`a server that cannot be reached gives 502[^;]*`), func(rq networkRequest, a, z networkAnswer) bool { return a.Status == 503 && z.Status == 502 }},
	{regexp.MustCompile(`a request for the target itself[^;]*`), func(rq networkRequest, a, z networkAnswer) bool { return a.Header["Location"] != "" && z.Status == 404 }},
	{regexp.MustCompile(`hosts that no site has[^;]*`), func(rq networkRequest, a, z networkAnswer) bool {
		return a.Status == 200 && a.Body == "" && z.Status == 404
	}},
	{regexp.MustCompile(`paths that no location has[^;]*`), func(rq networkRequest, a, z networkAnswer) bool {
		return z.Status == 404 && strings.Contains(z.Reason, "no_route")
	}},
	{regexp.MustCompile(`every path gets the same type[^;]*(; nginx derives it from the extension[^;]*)?|clients that accept JSON get JSON|fixed_response|redirects|servers|rules for headers of the proxy hold for the redirect, too`), func(rq networkRequest, a, z networkAnswer) bool { return a.Status == z.Status }},
	// What these are about is never seen here.
	{regexp.MustCompile(`a proxy with its (virtual )?hosts[^;]*`), func(networkRequest, networkAnswer, networkAnswer) bool { return false }},
	{regexp.MustCompile(`sent by itself[^;]*|[^;]*ejection of the route[^;]*|[^;]*is not verified[^;]*|.*is not measured first[^;]*|[^;]*with its port[^;]*`), func(networkRequest, networkAnswer, networkAnswer) bool { return false }},
}

// fits reports whether a note that names differences of certain kinds alone names this one.
// A note with several parts fits if one of them does.
func fits(r reported, rq networkRequest, a, z networkAnswer) bool {
	if r.Verdict == "not_possible" || r.Note == "" {
		return true
	}
	rest := r.Note
	for _, k := range special {
		for _, part := range k.part.FindAllString(r.Note, -1) {
			if k.fits(rq, a, z) {
				return true
			}
			rest = strings.ReplaceAll(rest, part, "")
		}
	}
	return strings.Trim(rest, "; ") != ""
}

// headerDirectives are the directives that name the field that they change, by what they
// change.
var headerDirectives = map[string]map[string]string{
	"nginx":   {"proxy_set_header": "sent", "grpc_set_header": "sent", "add_header": "field", "add_trailer": "field", "more_set_headers": "field", "proxy_hide_header": "field", "proxy_ignore_headers": "field", "more_set_input_headers": "sent", "more_clear_headers": "field", "expires": "field"},
	"haproxy": {},
	"caddy":   {"header": "field", "request_header": "sent", "header_up": "sent", "header_down": "field"},
}

// routingDirectives choose what is done to a request.
var routingDirectives = []string{"location", "if", "use_backend", "default_backend", "acl", "handle", "handle_path", "route"}

// quietDirectives never change what a client or a server sees of a request in this test.
var quietDirectives = []string{"proxy_connect_timeout", "proxy_read_timeout", "proxy_send_timeout", "keepalive_timeout", "send_timeout", "client_body_timeout", "client_header_timeout", "resolver",
	"ssl_protocols", "ssl_ciphers", "access_log", "error_log", "log_format", "worker_connections", "keepalive", "timeout", "maxconn", "log", "tune.ssl.default-dh-param"}

// speaksOf reports whether a line of a report is of a kind that can name an aspect.
func (s *source) speaksOf(r reported, aspect string) bool {
	kind, name, ofField := strings.Cut(aspect, " ")
	text := strings.ToLower(r.Directive + " " + r.Note)
	if ofField && strings.Contains(text, strings.ToLower(name)) {
		return true
	}
	words := strings.Fields(r.Directive)
	if len(words) == 0 {
		return !ofField
	}
	if slices.Contains(quietDirectives, words[0]) {
		return false
	}
	if _, only := headerDirectives[s.kind][words[0]]; only {
		return kind == "host" && len(words) > 1 && strings.EqualFold(words[1], "host")
	}
	switch {
	case kind == "field" && name == "Location":
		return true
	case kind == "field" && name == "Content-Type" && slices.Contains([]string{"return", "default_type", "types", "respond", "http-request"}, words[0]):
		return strings.Contains(text, "type")
	case slices.Contains(routingDirectives, words[0]): // another route has other fields, too
		return true
	case ofField: // of a field that it does not name, only who answers can be the reason
		return strings.Contains(text, "header") || strings.Contains(text, "import") || strings.Contains(text, "lua")
	}
	return true
}

// TestDifferencesAreNamed holds how a difference finds its line in a report.
func TestDifferencesAreNamed(t *testing.T) {
	const text = `http {
 server {
  server_name a.test;
  location /one { proxy_pass http://x; }
  location ~ ^/two/ {
   deny all;
  }
 }
 server {
  server_name b.test;
  add_header X-Frame-Options DENY;
 }
}
`
	server := func(path, fields string) networkAnswer {
		return networkAnswer{Status: 200, Body: "served at 80: GET " + path + " host=a map[" + fields + "] body=0"}
	}
	refused := networkAnswer{Status: 403}
	s := newSource("nginx", text)
	for _, c := range []struct {
		line reported
		rq   networkRequest
		a, z networkAnswer
		want bool
	}{
		{reported{6, "deny all", "not_possible", ""}, networkRequest{Host: "a.test", Path: "/two/x"}, refused, server("/two/x", ""), true},
		{reported{6, "deny all", "not_possible", ""}, networkRequest{Host: "a.test", Path: "/one/x"}, refused, server("/one/x", ""), false},
		{reported{6, "deny all", "not_possible", ""}, networkRequest{Host: "b.test", Path: "/two/x"}, refused, server("/two/x", ""), false},
		{reported{4, "location /one", "close", "a path matches whole segments: /onex is not below /one"}, networkRequest{Host: "a.test", Path: "/onex", Change: "x"}, server("/onex", ""), refused, true},
		{reported{4, "location /one", "close", "a path matches whole segments: /onex is not below /one"}, networkRequest{Host: "a.test", Path: "/one/y"}, server("/one/y", ""), refused, false},
		{reported{11, "add_header X-Frame-Options DENY", "close", ""}, networkRequest{Host: "b.test", Path: "/"}, networkAnswer{Status: 404, Header: map[string]string{"X-Frame-Options": "DENY"}}, networkAnswer{Status: 404}, true},
		{reported{11, "add_header X-Frame-Options DENY", "close", ""}, networkRequest{Host: "b.test", Path: "/"}, networkAnswer{Status: 404}, networkAnswer{Status: 403}, false},
		{reported{0, "", "look at", "proxy x, path /: proxy_set_header X-User is left out"}, networkRequest{Host: "a.test", Path: "/"}, server("/", "X-User:ada"), server("/", ""), true},
		{reported{0, "", "look at", "proxy x, path /: proxy_set_header X-User is left out"}, networkRequest{Host: "a.test", Path: "/"}, server("/", "X-Role:ada"), server("/", ""), false},
	} {
		if _, ok := s.named([]reported{c.line}, c.rq, c.a, c.z); ok != c.want {
			t.Errorf("%s: %s %s: %v is %v: named %t, want %t", c.line, c.rq.Host, c.rq.Path, c.a, c.z, ok, c.want)
		}
	}
}
