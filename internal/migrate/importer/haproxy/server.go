package haproxy

import (
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// serverLine is a line server while its options are read.
type serverLine struct {
	t     *translator
	d     *directive
	o     importer.Object // the server
	tls   importer.Object
	notes []string
}

func (s *serverLine) note(text string) { s.notes = append(s.notes, text) }

// serverOption is what an option of a server does.
type serverOption struct {
	names string // with spaces between them
	value bool   // a word follows it
	act   func(s *serverLine, name, value string)
}

// serverOptions are those that a line server, or default-server, may have.
var serverOptions = func() map[string]serverOption {
	all := map[string]serverOption{}
	for _, o := range []serverOption{
		{"weight", true, func(s *serverLine, _, value string) {
			if n, err := strconv.Atoi(value); err == nil {
				s.o.Set("weight", n)
			}
		}},
		{"maxconn", true, func(s *serverLine, _, value string) {
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				s.o.Set("max_requests", n)
				s.note("max_requests counts requests, for each route by itself")
			}
		}},
		{"backup", false, func(s *serverLine, _, _ string) { s.o.Set("backup", true) }},
		{"disabled", false, func(s *serverLine, _, _ string) {
			s.o.Set("weight", 0)
			s.note("weight 0: the server gets no new clients")
		}},
		{"no-backup", false, func(s *serverLine, _, _ string) { s.o.Remove("backup") }},
		{"enabled", false, func(s *serverLine, _, _ string) {
			if s.o.Text("weight") == "0" {
				s.o.Remove("weight")
			}
		}},
		{"verify", true, func(s *serverLine, _, value string) {
			if value == "required" {
				s.tls.Remove("insecure_skip_verify")
				s.note("the name in the certificate is checked, too")
			}
		}},
		{"ca-file", true, func(s *serverLine, _, value string) { s.tls.Set("ca_file", s.t.pathIn(s.t.caBase, s.d, value)) }},
		{"crt", true, func(s *serverLine, _, value string) {
			path := s.t.pathIn(s.t.crtBase, s.d, value)
			s.tls.Set("client_cert_file", path).Set("client_key_file", path)
		}},
		{"verifyhost", true, func(s *serverLine, _, value string) { s.tls.Set("server_name", value) }},
		{"sni", true, (*serverLine).serverName},
		{"resolvers", true, func(s *serverLine, _, value string) { s.t.resolvers(value) }},
		{"send-proxy send-proxy-v2 send-proxy-v2-ssl send-proxy-v2-ssl-cn", false, func(s *serverLine, _, _ string) {
			s.note("servers of HTTP get the client's address in x-forwarded-for, not in a PROXY header")
			s.t.Check("%s:%d: the server expects a PROXY header, which headgate sends to servers of TCP proxies only: switch it off there", s.d.File, s.d.Line)
		}},
		{"check ssl check-ssl no-check no-ssl ssl-reuse allow-0rtt tfo check-send-proxy stick no-tls-tickets", false, nil},
		{"inter fastinter downinter rise fall cookie proto alpn check-alpn check-proto check-sni id slowstart observe error-limit on-error on-marked-down on-marked-up resolve-prefer init-addr " +
			"ciphers ciphersuites ssl-min-ver ssl-max-ver pool-max-conn pool-purge-delay pool-low-conn max-reuse maxqueue resolve-opts crl-file tcp-ut agent-port agent-addr agent-inter log-proto name", true, nil},
		{"minconn port addr track source", true, (*serverLine).leftOut},
		{"agent-check", false, (*serverLine).leftOut},
	} {
		for name := range strings.FieldsSeq(o.names) {
			all[name] = o
		}
	}
	return all
}()

func (s *serverLine) leftOut(name, _ string) { s.note("the option " + name + " is left out") }

func (s *serverLine) serverName(_, value string) {
	if name, ok := strings.CutPrefix(value, "str("); ok {
		s.tls.Set("server_name", strings.TrimSuffix(name, ")"))
		return
	}
	s.note("the name in TLS is that of the server's URL, or server_name")
}

// resolvers sets the name servers of a section. There is one list of them.
func (t *translator) resolvers(name string) {
	var servers []string
	i := slices.IndexFunc(t.all, func(s *section) bool { return s.kind == "resolvers" && s.name == name })
	if i < 0 {
		return
	}
	lines := t.all[i].own("nameserver")
	for _, d := range lines {
		servers = append(servers, strings.TrimPrefix(d.arg(1), "udp@"))
	}
	now := strings.Join(t.Upstreams.Texts("resolvers"), " ")
	switch {
	case len(lines) == 0: // those of the system
	case now != "" && now != strings.Join(servers, " "):
		t.Check("%s:%d: server names are resolved with one list of name servers (upstreams: {resolvers}), and another section has it already", t.all[i].d.File, t.all[i].d.Line)
		return
	default:
		t.Upstreams.Set("resolvers", servers[:min(len(servers), 8)])
	}
	for _, d := range append(lines, t.all[i].d) {
		t.Became(d, importer.Close, t.Upstreams.Field("resolvers"), "for the names of all servers")
	}
	for _, d := range t.all[i].own("parse-resolv-conf") {
		t.Became(d, importer.Same, importer.ByItself(), "")
	}
}

func lastIndex(words []string, w string) int {
	for i := len(words) - 1; i >= 0; i-- {
		if words[i] == w {
			return i
		}
	}
	return -1
}

// serverWords returns the options of a line server in the order in which they count, the
// last one wins: those of default-server before it come first.
func (t *translator) serverWords(s *section, d *directive) (words []string) {
	for at := s; at != nil; at = at.defaults {
		var here []string
		for _, def := range at.own("default-server") {
			if at == s && slices.Index(s.lines, def) > slices.Index(s.lines, d) {
				continue
			}
			here = append(here, def.words[1:]...)
			t.Became(def, importer.Same, importer.Through(d), "its options are those of each server behind it")
		}
		words = append(here, words...)
	}
	return append(words, d.words[min(3, len(d.words)):]...)
}

// server makes one server of a line, and of the options that all servers of its section
// have.
func (t *translator) server(s *section, d *directive) (o importer.Object, verdict importer.Verdict, note string) {
	words := t.serverWords(s, d)
	scheme := "http"
	if lastIndex(words, "ssl") > lastIndex(words, "no-ssl") {
		scheme = "https"
	} else if p := slices.Index(words, "proto"); p >= 0 && p+1 < len(words) && words[p+1] == "h2" {
		scheme = "h2c"
	}
	url, what := serverURL(scheme, d.arg(1))
	if what != "" {
		return importer.Object{}, importer.Impossible, what
	}
	if scheme == "https" && strings.HasPrefix(url, "unix:") {
		return importer.Object{}, importer.Impossible, "TLS is not spoken over a Unix socket"
	}
	line := &serverLine{t: t, d: d, o: importer.NewObject().Set("url", url), tls: importer.NewObject()}
	if scheme == "https" {
		// HAProxy checks the name only when verifyhost says so, and nothing by verify none.
		line.tls.Set("insecure_skip_verify", true)
	}
	for i := 0; i < len(words); i++ {
		name, value := words[i], ""
		option, known := serverOptions[name]
		if option.value && i+1 < len(words) {
			i++
			value = words[i]
		}
		switch {
		case !known:
			line.leftOut(name, "")
		case option.act != nil:
			option.act(line, name, value)
		}
	}
	if line.tls.Len() > 0 && scheme == "https" {
		line.o.Set("tls", line.tls.Flow())
	}
	note = strings.Join(line.notes, "; ")
	return line.o, verdictOf(note), note
}
