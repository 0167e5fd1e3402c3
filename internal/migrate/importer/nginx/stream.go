package nginx

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/setting/unit"
)

// streamBlock makes TCP and UDP proxies of a stream block.
func (t *translator) streamBlock(d *directive) {
	t.stream = d
	upstreams := map[string]*directive{}
	for _, u := range d.find("upstream") {
		upstreams[u.arg(0)] = u
	}
	names := map[string]*directive{}
	for _, m := range d.find("map") {
		if m.arg(0) == "$ssl_preread_server_name" {
			names[m.arg(1)] = m
		}
	}
	for _, s := range d.find("server") {
		if passes := s.find("proxy_pass"); len(passes) == 1 && names[passes[0].arg(0)] != nil {
			t.byServerName(s, passes[0], names[passes[0].arg(0)], upstreams)
			continue
		}
		t.streamServer(s, upstreams)
	}
	for _, c := range d.block {
		t.known(c)
	}
}

// streamServer makes one proxy.
func (t *translator) streamServer(d *directive, upstreams map[string]*directive) {
	listens, passes := d.find("listen"), d.find("proxy_pass")
	pass, samePort := "", false
	if len(passes) == 1 {
		pass, samePort = strings.CutSuffix(passes[0].arg(0), ":$server_port")
	}
	if len(listens) == 0 || len(passes) != 1 || strings.Contains(pass, "$") {
		t.AddVerdict(d, importer.Impossible, "it needs a listen and one proxy_pass without variables; TLS names are passed on by a TCP proxy with port and sni")
		return
	}
	for _, listen := range listens {
		address, what := streamAddress(listen.arg(0))
		if what != "" {
			t.AddVerdict(listen, importer.Impossible, what)
			continue
		}
		out, kind := t.TCP, "tcp"
		if slices.Contains(listen.args, "udp") {
			out, kind = t.UDP, "udp"
		}
		name := fmt.Sprintf("%s-%s", kind, address[strings.LastIndexByte(address, ':')+1:])
		o := importer.NewObject().Set("address", address)
		if slices.Contains(listen.args, "ssl") && kind == "udp" {
			t.AddVerdict(listen, importer.Impossible, "DTLS is not terminated")
			continue
		}
		if slices.Contains(listen.args, "ssl") {
			o.Set("tls", t.streamClientTLS(d, name))
		}
		to := pass
		if samePort {
			to += address[strings.LastIndexByte(address, ':'):]
		}
		t.streamServers(o, to, upstreams)
		if tls := t.streamServerTLS(d); !tls.Empty() && kind == "tcp" {
			for _, s := range o.Objects("servers") {
				s.Set("tls", tls)
			}
		}
		t.streamSettings(o, d, kind)
		out.Set(name, o)
		t.Became(listen, importer.Same, o.Field("address"), "")
		t.Became(d, importer.Same, o.As("tcp_proxies"), "")
		t.Became(passes[0], importer.Same, o.Field("servers"), "")
	}
	t.AddVerdict(d, importer.Impossible, "none of its addresses can be translated")
}

// streamAddress returns the address of a listen of a stream, which can have a range of ports, or
// what is wrong.
func streamAddress(text string) (address, what string) {
	first, last, several := strings.Cut(text, "-")
	if address, what = listenAddress(first); what != "" || !several {
		return address, what
	}
	var r unit.AddressRange
	if err := r.UnmarshalText([]byte(address + "-" + last)); err != nil {
		return "", err.Error()
	}
	return r.String(), ""
}

func (t *translator) streamServers(o importer.Object, pass string, upstreams map[string]*directive) {
	up := upstreams[pass]
	if up == nil {
		o.Append("servers", importer.NewObject().Set("address", pass).Flow())
		return
	}
	t.Became(up, importer.Same, importer.Through(up.find("server")...), "its servers are those of each proxy that uses it")
	t.backups(o, up)
	for _, c := range up.block {
		switch c.name {
		case "server":
			if c.Settled() && c.Verdict() == importer.Impossible {
				continue
			}
			s := importer.NewObject().Set("address", c.arg(0)).Flow()
			verdict, note := importer.Same, ""
			for _, option := range c.args[min(1, len(c.args)):] {
				if option == "backup" {
					continue
				}
				if v, ok := strings.CutPrefix(option, "weight="); ok {
					var n int
					if _, err := fmt.Sscan(v, &n); err == nil {
						s.Set("weight", n)
						continue
					}
				}
				verdict, note = importer.Close, "the option "+option+" is left out"
			}
			o.Append("servers", s)
			t.Became(c, verdict, o.LastOf("servers"), "%s", note)
		case "least_conn":
			o.Set("load_balancing", "least_connections")
			t.Became(c, importer.Same, o.Field("load_balancing"), "")
		case "hash":
			o.Set("load_balancing", "client_ip_hash")
			t.Became(c, importer.Close, o.Field("load_balancing"), "by the client's address")
		default:
			t.known(c)
		}
	}
}

func (t *translator) streamSettings(o importer.Object, d *directive, kind string) {
	for _, c := range d.block {
		switch c.name {
		case "proxy_timeout":
			if v, ok := duration(c.arg(0)); ok {
				o.Set("idle_timeout", v)
				t.Became(c, importer.Same, o.Field("idle_timeout"), "")
			}
		case "proxy_connect_timeout":
			if v, ok := duration(c.arg(0)); ok && kind == "tcp" {
				o.Set("connect_timeout", v)
				t.Became(c, importer.Same, o.Field("connect_timeout"), "")
			}
		case "proxy_protocol":
			if c.arg(0) == "on" && kind == "tcp" {
				o.Set("proxy_protocol", "v1")
				t.Became(c, importer.Same, o.Field("proxy_protocol"), "")
			} else if c.arg(0) != "on" {
				t.Became(c, importer.Same, importer.ByItself(), "")
			}
		}
	}
	t.streamFilter(o, d)
}

// streamFilter makes an ip_filter of allow and deny. One that allows no client denies
// all addresses.
func (t *translator) streamFilter(o importer.Object, d *directive) {
	f := t.listed(d.find("allow", "deny"))
	switch {
	case f.tooMany:
		t.Check("%s:%d: allow and deny result in more than %d networks: write ip_filter by hand", d.File, d.Line, maxNetworks)
		return
	case f.closed && len(f.allow) == 0:
		o.Set("ip_filter", importer.NewObject().Set("deny", []string{"0.0.0.0/0", "::/0"}).Flow())
	case f.closed:
		o.Set("ip_filter", importer.NewObject().Set("allow", importer.Networks(f.allow)).Flow())
	case len(f.deny) > 0:
		o.Set("ip_filter", importer.NewObject().Set("deny", importer.Networks(f.deny)).Flow())
	}
	became := importer.ByItself() // all clients are let in
	if o.Has("ip_filter") {
		became = o.Field("ip_filter")
	}
	for _, d := range f.taken {
		t.Became(d, importer.Same, became, "")
	}
}

// backups uses the servers with backup after one other: load_balancing first uses the
// first server that accepts connections. Beside several others they are left out.
func (t *translator) backups(o importer.Object, up *directive) {
	var late []*directive
	all := up.find("server")
	for _, s := range all {
		if slices.Contains(s.args, "backup") {
			late = append(late, s)
		}
	}
	switch {
	case len(late) == 0:
	case len(all)-len(late) == 1 && !slices.Contains(all[0].args, "backup"):
		o.Set("load_balancing", "first")
	default:
		for _, s := range late {
			t.AddVerdict(s, importer.Impossible, "servers of TCP proxies have no backup: it is left out")
			t.Check("%s:%d: %s is left out: servers of TCP proxies have no backup beside several others", s.File, s.Line, s.Text())
		}
	}
}

// byServerName makes TCP proxies of a server that chooses by the name in TLS: one for
// each value of the map.
func (t *translator) byServerName(d, pass, names *directive, upstreams map[string]*directive) {
	hosts := map[string][]string{} // by upstream
	var order []string
	rest := "" // accepts all other names
	for _, e := range names.block {
		to, name := e.arg(0), strings.ToLower(e.name)
		switch {
		case e.name == "hostnames" && len(e.args) == 0:
			t.Became(e, importer.Same, importer.Through(names), "")
			continue
		case e.name == "default" && !strings.Contains(to, "$"):
			rest = to
			t.Became(e, importer.Same, importer.Through(d), "the TCP proxy without sni")
			continue
		case strings.HasPrefix(name, "*."):
			t.Became(e, importer.Close, importer.Through(d), "a wildcard matches one label")
		case !exactHost.MatchString(name) || strings.Contains(to, "$"):
			t.AddVerdict(e, importer.Impossible, "names in TLS are exact ones or *. and a name")
			continue
		}
		t.Became(e, importer.Same, importer.Through(d), "sni")
		if hosts[to] == nil {
			order = append(order, to)
		}
		hosts[to] = append(hosts[to], name)
	}
	var proxies []importer.Object
	for _, listen := range d.find("listen") {
		address, what := listenAddress(listen.arg(0))
		if what != "" {
			t.AddVerdict(listen, importer.Impossible, "%s", what)
			continue
		}
		add := func(name, to string, o importer.Object) {
			t.streamServers(o, to, upstreams)
			t.streamSettings(o, d, "tcp")
			t.TCP.Set(importer.Unused(t.TCP, name, "tcp"), o)
			proxies = append(proxies, o)
		}
		for _, to := range order {
			add("sni-"+hosts[to][0], to, importer.NewObject().Set("address", address).Set("sni", hosts[to]))
		}
		if rest != "" {
			add("sni-default", rest, importer.NewObject().Set("address", address))
		}
		if len(proxies) > 0 {
			t.Became(listen, importer.Same, proxies[len(proxies)-1].Field("address"), "the proxies of the map share the address")
		}
	}
	if len(proxies) == 0 {
		t.AddVerdict(d, importer.Impossible, "it has no address and no names that can be translated")
		return
	}
	for _, o := range proxies {
		t.Became(d, importer.Same, o.As("tcp_proxies"), "")
		t.Became(pass, importer.Same, o.Field("servers"), "by the map")
		t.Became(names, importer.Same, o.Field("sni"), "")
		for _, p := range d.find("ssl_preread") {
			t.Became(p, importer.Same, o.Field("sni"), "")
		}
	}
}
