package nginx

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// servers adds the servers of an upstream block, or the one that is named, to the
// route.
func (c *content) servers(scheme, host, uri string) {
	up := c.t.upstreams[host]
	if up == nil {
		c.o.Append("servers", importer.NewObject().Set("url", serverURL(scheme, host, uri)).Flow())
		return
	}
	c.t.Became(up, importer.Same, importer.Through(up.find("server")...), "its servers are those of each route that uses it")
	fails := &failures{}
	for _, d := range up.block {
		switch d.name {
		case "server":
			c.upstreamServer(d, scheme, uri, fails)
		case "least_conn", "least_time":
			c.o.Set("load_balancing", "least_connections")
			note := ""
			if d.name == "least_time" {
				note = "by connections, not by time; p2c_ewma goes by time"
			}
			c.became(d, verdictOf(note), "load_balancing", note)
		case "ip_hash":
			c.o.Set("load_balancing", "client_ip_hash")
			c.became(d, importer.Close, "load_balancing", "clients are spread otherwise: each may get another server than before, once")
		case "hash":
			c.hash(d)
		case "random":
			policy, note := "random", ""
			if d.arg(0) == "two" {
				policy, note = "p2c_ewma", "of two servers the one that responds sooner is used"
			}
			c.o.Set("load_balancing", policy)
			c.became(d, verdictOf(note), "load_balancing", note)
		case "sticky":
			c.sticky(d)
		default:
			c.t.known(d)
		}
	}
	fails.set(c.o)
}

func (c *content) sticky(d *directive) {
	if d.arg(0) != "cookie" {
		c.lost(d, "clients are kept by a cookie of headgate's own: sticky_cookie")
		return
	}
	o := importer.NewObject().Set("name", cmp.Or(d.arg(1), "headgate_affinity"))
	for _, a := range d.args {
		if v, ok := strings.CutPrefix(a, "expires="); ok {
			if age, ok := duration(v); ok {
				o.Set("max_age", age)
			}
		}
	}
	c.o.Set("sticky_cookie", o.Flow())
	c.became(d, importer.Close, "sticky_cookie", "the cookie has another value and SameSite=Lax; a client that has one of nginx gets a new server, once")
}

func (c *content) hash(d *directive) {
	key := d.arg(0)
	switch {
	case key == "$remote_addr" || key == "$binary_remote_addr":
		c.o.Set("load_balancing", "client_ip_hash")
	case key == "$uri" || key == "$request_uri" || key == "$scheme$request_uri" || key == "$host$request_uri":
		c.o.Set("load_balancing", "hash:path")
	case strings.HasPrefix(key, "$http_"):
		c.o.Set("load_balancing", "hash:header:"+headerName(strings.TrimPrefix(key, "$http_")))
	case strings.HasPrefix(key, "$cookie_"):
		c.o.Set("load_balancing", "hash:cookie:"+strings.TrimPrefix(key, "$cookie_"))
	default:
		c.lost(d, "hashes are of the client's address, the path, a header or a cookie")
		return
	}
	c.became(d, importer.Close, "load_balancing", "requests are spread otherwise than before, once")
}

// failures is after how many failures, and for how long, nginx leaves a server alone.
type failures struct {
	told  bool
	count int
	time  string
	never int // servers that are never left alone
	all   int
}

func (f *failures) set(o importer.Object) {
	switch {
	case !f.told:
	case f.never >= f.all:
		o.Set("ejection", importer.NewObject().Set("enabled", false).Flow())
	default:
		e := importer.NewObject().Set("failures", max(f.count, 1))
		if f.time != "" {
			e.Set("time", f.time).Set("max_time", f.time)
		}
		o.Set("ejection", e.Flow())
	}
}

// upstreamServer adds one server of an upstream block.
func (c *content) upstreamServer(d *directive, scheme, uri string, fails *failures) {
	o := importer.NewObject().Set("url", serverURL(scheme, d.arg(0), uri)).Flow()
	var notes []string
	fails.all++
	for _, option := range d.args[min(1, len(d.args)):] {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "weight":
			if n, err := strconv.Atoi(value); err == nil && n <= 65535 {
				o.Set("weight", n)
			}
		case "backup":
			o.Set("backup", true)
		case "down":
			o.Set("weight", 0)
			notes = append(notes, "weight 0: the server gets no new clients")
		case "max_conns":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				o.Set("max_requests", n)
				notes = append(notes, "max_requests counts requests, for each route by itself")
			}
		case "max_fails", "fail_timeout":
			fails.told = true
			if n, err := strconv.Atoi(value); err == nil && key == "max_fails" {
				if fails.count = max(fails.count, n); n == 0 {
					fails.never++
				}
			}
			if v, ok := duration(value); ok && key == "fail_timeout" {
				if strings.Trim(value, "0smhd") == "" { // left alone for no time
					fails.never++
				} else {
					fails.time = v
				}
			}
			if note := "ejection of the route: failures in a row are counted, and never more than half of its servers are left alone"; !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		case "slow_start":
			if v, ok := duration(value); ok {
				c.o.Set("slow_start", v)
			}
		case "resolve":
		default:
			notes = append(notes, "the option "+option+" is left out")
		}
	}
	c.o.Append("servers", o)
	note := strings.Join(notes, "; ")
	c.t.Became(d, verdictOf(note), c.o.LastOf("servers"), "%s", note)
}

// serverURL returns the URL of a server.
func serverURL(scheme, host, base string) string {
	sock, unix := strings.CutPrefix(host, "unix:")
	switch {
	case unix && scheme == "fcgi":
		return "fcgi+unix:" + sock
	case unix:
		return "unix:" + sock
	case scheme == "fcgi":
		return "fcgi://" + host // it has a port, and no base path
	}
	if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
		host += map[string]string{"https": ":443"}[scheme]
		if scheme != "https" {
			host += ":80"
		}
	}
	return scheme + "://" + host + cmp.Or(base, "/")
}
