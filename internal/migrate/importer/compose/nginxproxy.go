package compose

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// known has the variables of nginx-proxy and its ACME companion that need no look at
// their values.
var known = importer.NewTable([]importer.Row{
	importer.NewRow("LETSENCRYPT_TEST ACME_CA_URI", importer.Impossible, "another directory: set acme.letsencrypt.directory"),
	importer.NewRow("LETSENCRYPT_KEYSIZE", importer.Impossible, "set acme.letsencrypt.key_type"),
	importer.NewRow("LETSENCRYPT_SINGLE_DOMAIN_CERTS LETSENCRYPT_RESTART_CONTAINER ACME_PRE_HOOK ACME_POST_HOOK LETSENCRYPT_MIN_VALIDITY", importer.Ignored, "certificates are ordered one by one, and used without a restart"),
	importer.NewRow("ACME_EAB_KID ACME_EAB_HMAC_KEY ZEROSSL_API_KEY", importer.Impossible, "set acme.letsencrypt.eab"),
	importer.NewRow("ACME_CHALLENGE ACMESH_DNS_API_CONFIG ACME_OCSP", importer.Impossible, "set acme.letsencrypt.challenge and dns"),
	importer.NewRow("SERVER_TOKENS", importer.Ignored, "versions are not sent"),
	importer.NewRow("SSL_POLICY", importer.Impossible, "TLS versions are set at the port: tls.min_version"),
	importer.NewRow("EXTERNAL_HTTP_PORT EXTERNAL_HTTPS_PORT", importer.Impossible, "set the address of the port"),
	importer.NewRow("DEFAULT_ROOT VIRTUAL_ROOT", importer.Impossible, "files are not served: let a server do that"),
	importer.NewRow("VIRTUAL_HOST_MULTIPORTS", importer.Impossible, "write each host with its paths as a proxy with routes"),
	importer.NewRow("DHPARAM_SKIP DHPARAM_BITS DHPARAM_GENERATION", importer.Ignored, "the key exchange of TLS 1.3 and ECDHE need none"),
	importer.NewRow("ENABLE_IPV6 PREFER_IPV6_NETWORK RESOLVERS TRUST_DOWNSTREAM_PROXY LOG_FORMAT LOG_JSON DISABLE_ACCESS_LOGS ENABLE_HTTP2 ENABLE_HTTP3 TRUST_DEFAULT_CERT DEFAULT_HOST", importer.Impossible, "it is a setting of the proxy container for all hosts: look at ports, client_ip and access_log"),
})

// others are the prefixes of names of variables for nginx-proxy or its
// companion.
var others = []string{"VIRTUAL_", "LETSENCRYPT_", "ACME_"}

const labelPrefix = "com.github.nginx-proxy."

// virtual is a virtual host of nginx-proxy with what the services behind it say.
type virtual struct {
	host   string
	method string // HTTPS_METHOD
	acme   bool
	cert   string
	hsts   string
	local  bool
	paths  []*path
}

// path is a location of a virtual host.
type path struct {
	path, dest string
	servers    []importer.Object
}

// companion makes proxies of what services say to nginx-proxy.
type companion struct {
	*importer.Translation
	files []string
	hosts []*virtual
	email string
}

// NginxProxy makes the document of services that have the variables of nginx-proxy.
func NginxProxy(services []*Service, files []string) ([]byte, *importer.Report, error) {
	c := &companion{Translation: importer.NewTranslation("nginx-proxy"), files: files}
	for _, s := range services {
		c.service(s)
	}
	c.write()
	c.Check("nginx-proxy lets a body have 1 MiB by default; headgate has no limit: set request_body_limit where you want one")
	c.Check("files below vhost.d, conf.d and htpasswd of nginx-proxy are not part of a Compose file: import their content as nginx, and set basic_auth")
	return c.Finish("the variables of nginx-proxy in Compose files", "variable and label", files)
}

// service translates one service.
func (c *companion) service(s *Service) {
	env := map[string]*Setting{}
	for _, e := range s.Env {
		env[e.Key] = e
	}
	value := func(name string) string {
		if e := env[name]; e != nil {
			return strings.TrimSpace(e.Value)
		}
		return ""
	}
	hosts := split(value("VIRTUAL_HOST"))
	if len(hosts) > 0 {
		c.virtualHosts(s, env, value, hosts)
	}
	for _, e := range s.Env {
		ours := c.SayKnown(e, known, e.Key)
		if !ours && slices.ContainsFunc(others, func(p string) bool { return strings.HasPrefix(e.Key, p) }) {
			c.AddVerdict(e, importer.Impossible, "headgate does not know this variable, or the service has no VIRTUAL_HOST")
		}
		if strings.Contains(e.Value, "${") && e.Settled() {
			c.Check("%s:%d: %s has ${…}, which Compose fills in; headgate does that from its own environment", e.File, e.Line, e.Key)
		}
	}
	for _, l := range s.AllLabels() {
		if key, ok := strings.CutPrefix(l.Key, labelPrefix); ok {
			c.label(l, key)
		}
	}
}

func (c *companion) label(l *Setting, key string) {
	switch {
	case strings.HasSuffix(key, "keepalive"):
		c.AddVerdict(l, importer.Ignored, "connections to servers are kept anyway")
	case strings.HasSuffix(key, "loadbalance"):
		c.AddVerdict(l, importer.Impossible, "set load_balancing of the route")
	case strings.Contains(key, "http2"), strings.Contains(key, "http3"):
		c.AddVerdict(l, importer.Impossible, "HTTP/2 is always on; add a port with protocol http3")
	case strings.HasSuffix(key, "nginx"), strings.HasSuffix(key, "docker-gen"), strings.HasSuffix(key, "docker_gen"):
		c.AddVerdict(l, importer.Ignored, "it joins the containers of nginx-proxy")
	default:
		c.AddVerdict(l, importer.Impossible, "headgate has nothing like this label")
	}
}

func split(list string) (out []string) {
	for _, part := range strings.Split(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// virtualHosts adds what a service says of its hosts.
func (c *companion) virtualHosts(s *Service, env map[string]*Setting, value func(string) string, hosts []string) {
	server, ok := c.server(s, env, value)
	certified := split(value("LETSENCRYPT_HOST"))
	if c.email == "" {
		c.email = value("LETSENCRYPT_EMAIL")
	}
	became := func(name string, f importer.Field, note string) {
		if e := env[name]; e != nil {
			c.Became(e, importer.Same, f, "%s", note)
		}
	}
	became("LETSENCRYPT_HOST", importer.Value("acme", "letsencrypt"), "acme of its proxies")
	became("LETSENCRYPT_EMAIL", importer.Value("email", c.email), "email of the acme entry; the first counts for all")
	for _, host := range hosts {
		name, good := hostName(host)
		if !good {
			c.AddVerdict(env["VIRTUAL_HOST"], importer.Impossible, "the expression of the host cannot be read by RE2, which has no look-around and no backreferences")
			c.Check("service %s: the host %s was left out", s.Name, host)
			continue
		}
		i := slices.IndexFunc(c.hosts, func(v *virtual) bool { return v.host == name })
		if i < 0 {
			c.hosts = append(c.hosts, &virtual{host: name})
			i = len(c.hosts) - 1
		}
		v := c.hosts[i]
		v.method, v.hsts = cmp.Or(v.method, value("HTTPS_METHOD")), cmp.Or(v.hsts, value("HSTS"))
		v.cert = cmp.Or(v.cert, value("CERT_NAME"))
		v.acme = v.acme || slices.Contains(certified, host)
		v.local = v.local || value("NETWORK_ACCESS") == "internal"
		if !ok {
			continue
		}
		at, dest := cmp.Or(value("VIRTUAL_PATH"), "/"), value("VIRTUAL_DEST")
		j := slices.IndexFunc(v.paths, func(p *path) bool { return p.path == at })
		if j < 0 {
			v.paths = append(v.paths, &path{path: at, dest: dest})
			j = len(v.paths) - 1
		}
		v.paths[j].servers = append(v.paths[j].servers, server)
	}
	for _, host := range hosts {
		if name, good := hostName(host); good {
			became("VIRTUAL_HOST", importer.Value("virtual_hosts", name), "virtual_hosts")
		}
	}
	c.sayPath(env, value)
	c.sayTLS(env, value)
	if e := env["NETWORK_ACCESS"]; e != nil && value("NETWORK_ACCESS") != "internal" {
		c.AddVerdict(e, importer.Ignored, "all clients are let in")
	} else if e != nil {
		c.Became(e, importer.Close, importer.Value("allow", internal), "ip_filter with private networks; nginx-proxy reads its file network_internal.conf")
	}
	c.equivalentLabels(s, value, hosts)
}

// sayTLS adds verdicts to the TLS settings of a service.
func (c *companion) sayTLS(env map[string]*Setting, value func(string) string) {
	ports := map[string][]string{"nohttps": {"web"}, "nohttp": {"websecure"}, "noredirect": {"web", "websecure"}}[value("HTTPS_METHOD")]
	f := importer.Value("redirect_http_to_https", true).Or(importer.Value("ports", []string{"web"}))
	if ports != nil {
		f = importer.Value("ports", ports).Or(importer.Value("ports", []string{"web"}))
	}
	for _, one := range []struct {
		name, note string
		field      importer.Field
	}{
		{"HTTPS_METHOD", "ports, and redirect_http_to_https", f},
		{"CERT_NAME", "a certificate of /etc/nginx/certs", importer.Value("cert_file", "/etc/nginx/certs/"+value("CERT_NAME")+".crt")},
		{"HSTS", "a header rule", importer.Value("value", value("HSTS"))},
	} {
		switch e := env[one.name]; {
		case e == nil:
		case one.name == "HSTS" && value("HSTS") == "off":
			c.Became(e, importer.Same, importer.ByItself(), "no header is sent")
		default:
			c.Became(e, importer.Same, one.field, "%s", one.note)
		}
	}
}

func (c *companion) sayPath(env map[string]*Setting, value func(string) string) {
	if e := env["VIRTUAL_PATH"]; e != nil {
		switch at := value("VIRTUAL_PATH"); {
		case !strings.HasPrefix(at, "/"):
			c.AddVerdict(e, importer.Impossible, "only prefixes are paths of routes, no expressions and no exact ones")
		case at != "/" && !strings.HasSuffix(at, "/"):
			c.Became(e, importer.Close, importer.Value("path", at), "headgate matches whole segments: %sx does not reach it", at)
		case at == "/":
			c.Became(e, importer.Same, importer.ByItself(), "the path of a route")
		default:
			c.Became(e, importer.Same, importer.Value("path", strings.TrimSuffix(at, "/")), "the path of a route")
		}
	}
	if e := env["VIRTUAL_DEST"]; e != nil {
		f := importer.Value("strip_prefix", true)
		if to := strings.TrimSuffix(value("VIRTUAL_DEST"), "/"); to != "" {
			f = importer.Value("add_prefix", to)
		} else if value("VIRTUAL_DEST") == "" || value("VIRTUAL_PATH") == "" || value("VIRTUAL_PATH") == "/" {
			f = importer.ByItself()
		}
		c.Became(e, importer.Same, f, "strip_prefix, and rewrite.add_prefix where it is more than /")
	}
}

// equivalentLabels returns the labels of headgate that mean the same.
func (c *companion) equivalentLabels(s *Service, value func(string) string, hosts []string) {
	labels := []string{"headgate.enable=true", "headgate.host=" + strings.Join(hosts, ","), "headgate.port=" + s.port(value("VIRTUAL_PORT"))}
	if at := value("VIRTUAL_PATH"); at != "" && at != "/" {
		labels = append(labels, "headgate.path="+strings.TrimSuffix(at, "/"))
	}
	if scheme := value("VIRTUAL_PROTO"); scheme == "https" {
		labels = append(labels, "headgate.scheme=https")
	}
	if value("LETSENCRYPT_HOST") != "" {
		labels = append(labels, "headgate.acme=letsencrypt")
	}
	c.Check("service %s may have labels of headgate in place of this: %s", s.Name, strings.Join(labels, " "))
}

// server is the service as a server. It is false where headgate cannot speak to it.
func (c *companion) server(s *Service, env map[string]*Setting, value func(string) string) (importer.Object, bool) {
	scheme := "http"
	if e := env["VIRTUAL_PROTO"]; e != nil {
		switch value("VIRTUAL_PROTO") {
		case "", "http":
			c.Became(e, importer.Same, importer.ByItself(), "the scheme of the server")
		case "https":
			scheme = "https"
			c.Became(e, importer.Close, importer.Value("insecure_skip_verify", true), "nginx-proxy does not check the server's certificate, and so does this: set tls.ca_file")
		case "grpc":
			scheme = "h2c"
			c.Became(e, importer.Same, importer.Value("url", "h2c://"+s.Name+":"+s.port(value("VIRTUAL_PORT"))), "HTTP/2 without TLS")
		default:
			c.AddVerdict(e, importer.Impossible, "headgate speaks HTTP to servers, not "+value("VIRTUAL_PROTO"))
			c.Check("service %s: nothing was made of it, as it speaks %s", s.Name, value("VIRTUAL_PROTO"))
			return importer.Object{}, false
		}
	}
	if len(s.Ports) > 1 && value("VIRTUAL_PORT") == "" {
		c.Check("service %s has several ports and no VIRTUAL_PORT: nginx-proxy uses 80", s.Name)
	}
	at := importer.NewObject().Set("url", scheme+"://"+s.Name+":"+s.port(value("VIRTUAL_PORT")))
	if scheme == "https" {
		at.Set("tls", importer.NewObject().Set("insecure_skip_verify", true).Flow())
	}
	if e := env["VIRTUAL_PORT"]; e != nil {
		c.Became(e, importer.Same, at.Field("url"), "the port of the server")
	}
	return at.Flow(), true
}

// hostName makes a virtual host of a host: *.a.b and ~^… as they are, a.* an expression.
func hostName(host string) (string, bool) {
	if text, ok := strings.CutPrefix(host, "~"); ok {
		_, err := regexp.Compile(text)
		return host, err == nil
	}
	if head, ok := strings.CutSuffix(host, ".*"); ok {
		return "~^" + regexp.QuoteMeta(head) + `\..+$`, true
	}
	return host, true
}

// write makes proxies of the virtual hosts: those that are alike are one.
func (c *companion) write() {
	c.Ports.Set("web", importer.NewObject().Set("address", "0.0.0.0:80").Set("protocol", "http").Flow())
	secure := false
	alike := map[string]string{}
	names := map[string][]string{}
	for _, v := range c.hosts {
		if len(v.paths) == 0 {
			continue
		}
		o := c.proxy(v)
		secure = secure || v.encrypted()
		text, err := importer.NewObject().Set("x", o).Write("")
		key := string(text)
		name := alike[key]
		if name == "" || err != nil {
			name = importer.Unused(c.Proxies, strings.TrimLeft(v.host, "~^*."), "host")
			alike[key] = name
			c.Proxies.Set(name, importer.NewObject().Set("virtual_hosts", []string{}).Merge(o))
		}
		names[name] = append(names[name], v.host)
		c.Proxies.Object(name).Set("virtual_hosts", names[name])
	}
	if secure {
		c.Ports.Set("websecure", importer.NewObject().Set("address", "0.0.0.0:443").Set("protocol", "https").Flow())
	}
	if slices.ContainsFunc(c.hosts, func(v *virtual) bool { return v.acme }) {
		entry := importer.NewObject().Set("directory", "letsencrypt")
		if c.email != "" {
			entry.Set("email", c.email)
		}
		c.ACME.Set("letsencrypt", entry)
	}
}

// encrypted reports whether the host is served over https.
func (v *virtual) encrypted() bool { return v.method != "nohttps" && (v.acme || v.cert != "") }

// internal are the networks that NETWORK_ACCESS=internal lets in by default.
var internal = []string{"127.0.0.0/8", "10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12"}

func (c *companion) proxy(v *virtual) importer.Object {
	o := importer.NewObject()
	switch {
	case !v.encrypted():
		o.Set("ports", []string{"web"})
		if v.method != "nohttps" && v.method != "noredirect" {
			c.Check("%s has no LETSENCRYPT_HOST and no CERT_NAME, so it is served over http only; if nginx-proxy found a certificate by the name of the host, name it in certificates", v.host)
		}
	case v.method == "nohttp":
		o.Set("ports", []string{"websecure"})
	case v.method == "noredirect":
		o.Set("ports", []string{"web", "websecure"})
	default:
		o.Set("ports", []string{"web", "websecure"}).Set("redirect_http_to_https", true)
	}
	if v.encrypted() && v.acme {
		o.Set("acme", "letsencrypt")
	} else if v.encrypted() && !c.Certificates.Has(v.cert) {
		c.Certificates.Set(v.cert, importer.NewObject().Set("cert_file", "/etc/nginx/certs/"+v.cert+".crt").Set("key_file", "/etc/nginx/certs/"+v.cert+".key"))
		c.Check("certificate %s: its files are named as the container of nginx-proxy sees them; name them as headgate does", v.cert)
	}
	if v.encrypted() && v.hsts != "off" && v.method != "noredirect" {
		o.Append("headers", importer.NewObject().Set("direction", "response").Set("name", "Strict-Transport-Security").Set("value", cmp.Or(v.hsts, "max-age=31536000")).Flow())
	}
	if v.local {
		o.Set("ip_filter", importer.NewObject().Set("allow", internal))
	}
	for _, p := range v.paths {
		route := importer.NewObject()
		if at := strings.TrimSuffix(p.path, "/"); at != "" {
			if !strings.HasPrefix(at, "/") {
				c.Check("%s: the location %s was left out", v.host, p.path)
				continue
			}
			route.Set("path", at).Set("strip_prefix", p.dest != "")
		}
		if to := strings.TrimSuffix(p.dest, "/"); to != "" {
			route.Set("rewrite", importer.NewObject().Set("add_prefix", to).Flow())
		}
		o.Append("routes", route.Set("servers", p.servers))
	}
	if !o.Has("routes") {
		o.Append("routes", importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 503).Flow()))
	}
	return o
}
