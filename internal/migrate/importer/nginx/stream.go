package nginx

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// streamBlock makes TCP and UDP proxies of a stream block.
func (t *translator) streamBlock(d *directive) {
	upstreams := map[string]*directive{}
	for _, u := range d.find("upstream") {
		upstreams[u.arg(0)] = u
		t.Say(u, importer.Same, "its servers stand at each proxy that uses it")
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
	if len(listens) == 0 || len(passes) != 1 || strings.Contains(passes[0].arg(0), "$") {
		t.Say(d, importer.Impossible, "it needs a listen and one proxy_pass without variables; TLS names are passed on by a TCP proxy with port and sni")
		return
	}
	for _, listen := range listens {
		address, what := listenAddress(listen.arg(0))
		if what != "" {
			t.Say(listen, importer.Impossible, what)
			continue
		}
		out, kind := t.TCP, "tcp"
		if slices.Contains(listen.args, "udp") {
			out, kind = t.UDP, "udp"
		}
		if slices.Contains(listen.args, "ssl") {
			t.Say(listen, importer.Impossible, "TCP proxies do not end TLS")
			continue
		}
		o := importer.NewObject().Set("address", address)
		t.streamServers(o, passes[0].arg(0), upstreams)
		t.streamSettings(o, d, kind)
		out.Set(fmt.Sprintf("%s-%s", kind, address[strings.LastIndexByte(address, ':')+1:]), o)
		t.Say(listen, importer.Same, "")
	}
	t.Say(d, importer.Same, "")
	t.Say(passes[0], importer.Same, "")
}

func (t *translator) streamServers(o importer.Object, pass string, upstreams map[string]*directive) {
	up := upstreams[pass]
	if up == nil {
		o.Append("servers", importer.NewObject().Set("address", pass).Flow())
		return
	}
	for _, c := range up.block {
		switch c.name {
		case "server":
			s := importer.NewObject().Set("address", c.arg(0)).Flow()
			verdict, note := importer.Same, ""
			for _, option := range c.args[min(1, len(c.args)):] {
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
			t.Say(c, verdict, note)
		case "least_conn":
			o.Set("load_balancing", "least_connections")
			t.Say(c, importer.Same, "")
		case "hash":
			o.Set("load_balancing", "client_ip_hash")
			t.Say(c, importer.Close, "by the client's address")
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
				t.Say(c, importer.Same, "")
			}
		case "proxy_connect_timeout":
			if v, ok := duration(c.arg(0)); ok && kind == "tcp" {
				o.Set("connect_timeout", v)
				t.Say(c, importer.Same, "")
			}
		case "proxy_protocol":
			if c.arg(0) == "on" && kind == "tcp" {
				o.Set("proxy_protocol", "v1")
			}
			t.Say(c, importer.Same, "")
		case "allow", "deny":
			if c.arg(0) != "all" {
				filter := o.Object("ip_filter")
				if filter.Empty() {
					o.Set("ip_filter", importer.NewObject().Flow())
					filter = o.Object("ip_filter")
				}
				filter.Append(c.name, c.arg(0))
				t.Say(c, importer.Close, "deny wins over allow here, whatever their order")
			} else {
				t.Say(c, importer.Same, "a list of allow denies all others")
			}
		}
	}
}

// byServerName makes TCP proxies of a server that chooses by the name in TLS: one for
// each value of the map.
func (t *translator) byServerName(d, pass, names *directive, upstreams map[string]*directive) {
	hosts := map[string][]string{} // by upstream
	var order []string
	for _, e := range names.block {
		to, name := e.arg(0), strings.ToLower(e.name)
		switch {
		case e.name == "hostnames" && len(e.args) == 0:
			t.Say(e, importer.Same, "")
			continue
		case e.name == "default":
			t.Say(e, importer.Impossible, "all other names stay with the https port: give it proxies and a certificate, or name them in sni")
			t.Check("%s:%d: %s took all other names in TLS; name them in sni of a TCP proxy", e.File, e.Line, to)
			continue
		case strings.HasPrefix(name, "*."):
			t.Say(e, importer.Close, "a wildcard stands for one label")
		case !exactHost.MatchString(name) || strings.Contains(to, "$"):
			t.Say(e, importer.Impossible, "names in TLS are exact ones or *. and a name")
			continue
		}
		t.Say(e, importer.Same, "sni")
		if hosts[to] == nil {
			order = append(order, to)
		}
		hosts[to] = append(hosts[to], name)
	}
	made := 0
	for _, listen := range d.find("listen") {
		address, what := listenAddress(listen.arg(0))
		if what != "" {
			t.Say(listen, importer.Impossible, "%s", what)
			continue
		}
		port := t.port(address, "https")
		for _, to := range order {
			o := importer.NewObject().Set("port", port).Set("sni", hosts[to])
			t.streamServers(o, to, upstreams)
			t.streamSettings(o, d, "tcp")
			t.TCP.Set(importer.Unused(t.TCP, "sni-"+hosts[to][0], "tcp"), o)
			made++
		}
		t.Say(listen, importer.Close, "an https port: other names than those of the map are served by its proxies")
	}
	if made == 0 {
		t.Say(d, importer.Impossible, "it has no address and no names that can be taken over")
		return
	}
	t.Say(d, importer.Same, "")
	t.Say(pass, importer.Same, "by the map")
	t.Say(names, importer.Same, "")
	for _, p := range d.find("ssl_preread") {
		t.Say(p, importer.Same, "")
	}
}
