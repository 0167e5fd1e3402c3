package haproxy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
	"headgate/internal/setting/unit"
)

// stream makes TCP proxies of a frontend in mode tcp: one for its addresses, or those of
// the names in TLS that its rules match.
func (t *translator) stream(s *section) {
	acls := t.acls(s)
	t.bound = boundPorts(s)
	var named []importer.Object
	for _, d := range s.own("use_backend") {
		words, c := t.splitIf(s, d, acls)
		names, what := serverNames(c)
		if len(words) < 2 {
			what = "no backend is named"
		}
		if what != "" {
			t.AddVerdict(d, importer.Impossible, "%s", what)
			t.Check("%s:%d: %s was left out: %s", d.File, d.Line, d.Text(), what)
			continue
		}
		if o := t.streamBackend(d, words[1]); !o.Empty() {
			sni := importer.NewObject().Set("sni", names)
			named = append(named, sni.Merge(o))
			t.ruled(d, c.Notes...)
			t.lines[d].acted, t.lines[d].field = true, t.lines[d].field.Or(sni.Field("sni"))
		}
	}
	var other importer.Object
	for _, d := range s.find("default_backend") {
		if other = t.streamBackend(d, d.arg(0)); !other.Empty() {
			t.Became(d, importer.Same, other.Field("servers"), "the servers of the TCP proxy")
		}
	}
	if s.kind == "listen" && other.Empty() && len(named) == 0 {
		other = t.streamBackend(s.d, s.name)
	}
	var spoken protocol
	if len(named) > 0 && other.Empty() {
		spoken = speaksTLS // others have no proxy
	}
	kept := t.rejected(s, acls, spoken)
	made := 0
	for _, d := range s.own("bind") {
		made += t.streamBind(s, d, named, other, kept)
	}
	t.streamLimits(s)
	if made == 0 {
		t.AddVerdict(s.d, importer.Impossible, "it has no address or no servers that can be translated")
		t.Check("%s:%d: %s was left out", s.d.File, s.d.Line, s.d.Text())
		return
	}
	t.Became(s.d, importer.Same, importer.Through(s.own("bind")...), "a TCP proxy")
}

// boundPorts are the ports of a section if it has one address; the zero range otherwise.
func boundPorts(s *section) (r unit.AddressRange) {
	for _, d := range s.own("bind") {
		address, _, what := bindAddress(d.arg(0))
		if what != "" || r.IsValid() || r.UnmarshalText([]byte(address)) != nil {
			return unit.AddressRange{}
		}
	}
	return r
}

// serverPort returns the address of a server with its port: without one, HAProxy uses the port
// to which the client connected, and with +N the one N after that.
func serverPort(text string, bound unit.AddressRange) string {
	host, port, ok := strings.Cut(text, ":")
	if strings.Contains(port, ":") || !bound.IsValid() || ok && !strings.HasPrefix(port, "+") && !strings.HasPrefix(port, "-") {
		return text
	}
	shift, err := strconv.Atoi(cmp.Or(port, "0"))
	first, last := int(bound.Port())+shift, int(bound.Last())+shift
	if err != nil || first < 1 || last > math.MaxUint16 {
		return text
	}
	if first == last {
		return fmt.Sprintf("%s:%d", host, first)
	}
	return fmt.Sprintf("%s:%d-%d", host, first, last)
}

// serverNames are the names that a condition matches.
func serverNames(c condition) (names []string, what string) {
	if c.Problem != "" {
		return nil, c.Problem
	}
	for _, list := range c.Any {
		if len(list) != 1 || list[0].Kind != rules.SNI || list[0].Not {
			return nil, "in mode tcp a backend is chosen by the name in TLS alone"
		}
		names = append(names, list[0].Value)
	}
	if len(names) == 0 {
		return nil, "it is never chosen"
	}
	return names, ""
}

// streamBind makes the proxies of one line bind.
func (t *translator) streamBind(s *section, d *directive, named []importer.Object, other importer.Object, kept denied) (made int) {
	verdict, notes, became := importer.Same, []string{}, importer.Field{}
	var tls importer.Object
	if d.has("ssl") {
		tls = t.streamTLS(d, func(text string) { verdict, notes = importer.Close, append(notes, text) })
	}
	add := func(o importer.Object) {
		if !tls.Empty() {
			o.Set("tls", tls)
		}
		t.settings(s, o)
		t.keepOut(kept, o)
		t.TCP.Set(importer.Unused(t.TCP, s.name, "tcp"), o)
		became = became.Or(o.Field("address"))
		made++
	}
	for _, text := range strings.Split(d.arg(0), ",") {
		address, quic, what := bindAddress(text)
		if what != "" || quic {
			verdict, notes = importer.Close, append(notes, text+" was left out: "+what)
			continue
		}
		for _, o := range named {
			add(importer.NewObject().Set("address", address).Merge(o))
		}
		if !other.Empty() {
			add(importer.NewObject().Set("address", address).Merge(other))
		}
	}
	if d.has("accept-proxy") {
		verdict, notes = importer.Close, append(notes, "name the load balancers in accept_proxy_protocol: {trusted: […]}")
		t.Check("%s:%d: accept-proxy needs the addresses of the load balancers: accept_proxy_protocol of the TCP proxy", d.File, d.Line)
	}
	if made == 0 {
		verdict, notes = importer.Impossible, append(notes, "nothing serves it")
	}
	t.Became(d, verdict, became, "%s", strings.Join(notes, "; "))
	return made
}

// streamTLS returns how TCP proxies terminate TLS for a line bind with ssl.
func (t *translator) streamTLS(d *directive, note func(string)) importer.Object {
	tls := importer.NewObject()
	if first := t.certificates(d, note); first != "" && !d.has("strict-sni") {
		tls.Set("default_certificate", first)
	}
	verify, ca := "", ""
	for i, w := range d.words {
		value := d.arg(i)
		switch {
		case w == "alpn" && value != "":
			tls.Set("alpn", strings.Split(value, ","))
		case w == "ssl-min-ver" && value == "TLSv1.3":
			tls.Set("min_version", "1.3")
		case w == "verify":
			verify = value
		case w == "ca-file":
			ca = t.pathIn(t.caBase, d, value)
		}
	}
	mode := map[string]string{"required": "required", "optional": "optional"}[verify]
	switch {
	case mode != "" && ca != "":
		tls.Set("client_auth", mode).Set("client_ca", ca)
	case mode != "":
		note("clients had to show a certificate: set client_auth and client_ca in tls")
		t.Check("%s:%d: clients had to show a certificate, and here none is requested: set client_auth and client_ca in tls", d.File, d.Line)
	}
	return tls.Flow()
}

// keepOut adds the filter of its frontend to a TCP proxy, beside that of its
// backend.
func (t *translator) keepOut(kept denied, o importer.Object) {
	if f := kept.filter(); !f.Empty() {
		if o.Has("ip_filter") { // of its backend: who either of them rejects
			own := o.Object("ip_filter")
			f = ipFilter(own.Texts("allow"), append(importer.Networks(kept.networks), own.Texts("deny")...))
		}
		o.Set("ip_filter", f)
	}
	kept.addVerdicts(t, o, "")
}

// settings are the times and bounds of a TCP proxy.
func (t *translator) settings(s *section, o importer.Object) {
	longest := uint64(0)
	if v := o.Text("idle_timeout"); v != "" { // of the backend
		longest = milliseconds(v)
	}
	for _, name := range []string{"timeout client", "timeout server"} {
		for _, d := range s.find(name) {
			if v, ok := duration(d.arg(1)); ok && milliseconds(v) > longest {
				longest = milliseconds(v)
				o.Set("idle_timeout", v)
			}
			t.Became(d, importer.Close, o.Field("idle_timeout"), "idle_timeout: nothing moves in either direction")
		}
	}
	for _, d := range s.find("timeout connect") {
		if v, ok := duration(d.arg(1)); ok && !o.Has("connect_timeout") {
			o.Set("connect_timeout", v)
		}
		t.Became(d, importer.Same, o.Field("connect_timeout"), "connect_timeout")
	}
	for _, d := range s.find("maxconn") {
		if n, err := strconv.Atoi(d.arg(0)); err == nil && n > 0 && o.Has("address") {
			o.Set("max_connections", n)
		}
		if o.Has("max_connections") {
			t.Became(d, importer.Same, o.Field("max_connections"), "max_connections")
		} else if o.Has("port") {
			t.AddVerdict(d, importer.Ignored, "connections of a name are bounded by limits: {max_connections} of the port")
		}
	}
}

func milliseconds(v string) uint64 {
	number := strings.TrimRight(v, "hms")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return n * map[string]uint64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}[strings.TrimPrefix(v, number)]
}

// streamLimits are the rules about clients.
func (t *translator) streamLimits(s *section) {
	for _, d := range s.rules("tcp-request") {
		switch text := strings.Join(d.words[1:], " "); {
		case strings.HasPrefix(text, "inspect-delay"), strings.HasPrefix(text, "content accept"):
			t.AddVerdict(d, importer.Ignored, "a port that passes names on waits for them by itself")
		case d.Settled():
		default:
			t.AddVerdict(d, importer.Impossible, "write it as ip_filter of the TCP proxy")
			t.Check("%s:%d: %s was left out: what it protects is open; ip_filter of the TCP proxy says who may connect", d.File, d.Line, d.Text())
		}
	}
}

// streamBackend are the servers of a backend in mode tcp.
func (t *translator) streamBackend(d *directive, name string) importer.Object {
	s := t.backends[name]
	if s == nil {
		t.AddVerdict(d, importer.Impossible, "there is no backend %s", name)
		return importer.Object{}
	}
	o := importer.NewObject()
	for _, line := range t.withoutBackups(s, o) {
		t.streamServer(s, line, o)
	}
	if !o.Has("servers") {
		return importer.Object{}
	}
	if s.kind == "backend" {
		t.settings(s, o)
		kept := t.rejected(s, t.acls(s), "")
		t.keepOut(kept, o)
		t.streamLimits(s)
	}
	for _, line := range s.find("balance") {
		policy := map[string]string{"roundrobin": "round_robin", "static-rr": "round_robin", "leastconn": "least_connections", "random": "random", "first": "first", "source": "client_ip_hash"}[line.arg(0)]
		if policy == "" {
			t.AddVerdict(line, importer.Impossible, "connections are shared in turn, by load or by address")
			continue
		}
		if policy != "round_robin" && !o.Has("load_balancing") {
			o.Set("load_balancing", policy)
		}
		note, became := "", importer.ByItself()
		if policy != "round_robin" {
			became = o.Field("load_balancing")
		}
		if policy == "client_ip_hash" {
			note = "clients are spread otherwise: each may get another server than before, once"
		}
		t.Became(line, verdictOf(note), became, "%s", note)
	}
	if s.kind == "backend" {
		t.Became(s.d, importer.Same, o.Field("servers"), "its servers are those of each TCP proxy that uses it")
	}
	for _, line := range s.find("option tcp-check", "option ssl-hello-chk") {
		if o.Has("health_check") {
			t.Became(line, importer.Close, o.Field("health_check"), "servers are checked by a connection")
		} else {
			t.AddVerdict(line, importer.Ignored, "no server is checked")
		}
	}
	t.lostChecks(s)
	return o
}

// withoutBackups are the servers of a section, without those that are only used when no
// other accepts connections: load_balancing first does that for what comes after one
// server.
func (t *translator) withoutBackups(s *section, o importer.Object) (out []*directive) {
	all := s.own("server")
	var late []*directive
	for _, d := range all {
		if d.has("backup") {
			late = append(late, d)
		} else {
			out = append(out, d)
		}
	}
	switch {
	case len(late) == 0:
		return all
	case len(out) == 1:
		o.Set("load_balancing", "first")
		return append(out, late...)
	case len(out) == 0:
		return all[:1] // HAProxy uses the first of them
	}
	for _, d := range late {
		t.AddVerdict(d, importer.Impossible, "servers of TCP proxies have no backup beside several others: it is left out")
		t.Check("%s:%d: %s is left out: servers of TCP proxies have no backup beside several others", d.File, d.Line, d.Text())
	}
	return out
}

// streamServer adds one server.
func (t *translator) streamServer(s *section, d *directive, o importer.Object) {
	text := serverPort(d.arg(1), t.bound)
	first, last, err := unit.CutRange(text)
	url, what := serverURL("http", first)
	address := strings.TrimPrefix(url, "http://")
	if last > 0 {
		address += fmt.Sprintf("-%d", last)
	}
	if err != nil || what != "" || first == url || !strings.HasPrefix(url, "http://") || !strings.Contains(text, ":") {
		t.AddVerdict(d, importer.Impossible, "a server of a TCP proxy has an address and a port")
		return
	}
	one := importer.NewObject().Set("address", address)
	words := t.serverWords(s, d)
	note := ""
	if i := lastIndex(words, "weight"); i >= 0 && i+1 < len(words) {
		if n, err := strconv.Atoi(words[i+1]); err == nil {
			one.Set("weight", n)
		}
	}
	switch {
	case slices.Contains(words, "send-proxy-v2"):
		o.Set("proxy_protocol", "v2")
	case slices.Contains(words, "send-proxy"):
		o.Set("proxy_protocol", "v1")
	}
	if lastIndex(words, "check") > lastIndex(words, "no-check") {
		h := importer.NewObject()
		if i := lastIndex(words, "inter"); i >= 0 && i+1 < len(words) {
			if v, ok := duration(words[i+1]); ok {
				h.Set("interval", v)
			}
		}
		o.Set("health_check", h.Flow())
	}
	if lastIndex(words, "ssl") > lastIndex(words, "no-ssl") {
		tls := importer.NewObject()
		if i := lastIndex(words, "verify"); i >= 0 && i+1 < len(words) && words[i+1] == "none" {
			tls.Set("insecure_skip_verify", true)
		}
		one.Set("tls", tls.Flow())
	}
	for _, w := range []string{"maxconn", "source"} {
		if slices.Contains(words, w) {
			note = "the option " + w + " is left out"
		}
	}
	o.Append("servers", one.Flow())
	t.Became(d, verdictOf(note), o.LastOf("servers"), "%s", note)
}
