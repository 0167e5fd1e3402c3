package traefik

import (
	"regexp"
	"strings"

	"headgate/internal/migrate/importer"
)

// left is a field whose verdict follows from its path alone.
type left struct {
	path    *regexp.Regexp
	verdict importer.Omission
	note    string
}

var leftOut = []left{
	{leftPath(`(frontend|backend|port|protocol|weight|domain|tags|segment|[^.]+\.(frontend|backend|port|protocol|weight))(\..*)?`), importer.Impossible, "a label of Traefik 1: migrate it to Traefik 2 or 3, whose documentation describes how, and import that"},
	{leftPath(`http\.services\.[^.]+\.loadbalancer\.server\.(weight|preservepath)`), importer.Impossible, "it is a setting of the server: weight"},
	{leftPath(`http\.middlewares\.[^.]+\.headers\.(accesscontrol.*|addvaryheader)`), importer.Ignored, "without accessControlAllowOriginList there is nothing to allow; Vary is sent by itself"},
	{leftPath(`http\.middlewares\.[^.]+\.headers\.(allowedhosts|hostsproxyheaders|sslproxyheaders.*|isdevelopment|publickey)`), importer.Impossible, "hosts are those of the rule, and client_ip says which proxies in front are trusted"},
	{leftPath(`http\.middlewares\.[^.]+\.stripprefix\.forceslash`), importer.Ignored, "a path always starts with a slash"},
	{leftPath(`tcp\.services\..*\.(tls|proxyprotocol.*|serverstransport)`), importer.Impossible, "write it at the TCP proxy: servers: [{address: …, tls: {}}], proxy_protocol"},
	{leftPath(`tcp\.middlewares\..*`), importer.Impossible, "write it at the TCP proxy: ip_filter, max_connections"},
	{leftPath(`entrypoints\.[^.]+\.(asdefault|reuseport|allowacmebypass|http2.*|udp.*|observability.*)`), importer.Ignored, "ports are opened with what is best, and certificates' challenges are always answered"},
	{leftPath(`entrypoints\.[^.]+\.transport\..*`), importer.Impossible, "limits of the port, and drain_timeout; the defaults are 30s for a head and 60s for a silent body"},
	{leftPath(`entrypoints\.[^.]+\.http\.(encodequerysemicolons|sanitizepath|encodedcharacters.*|maxheaderbytes)`), importer.Ignored, "the query is never touched, and paths are brought into their normal form"},
	{leftPath(`entrypoints\.[^.]+\.http\.(alias|underscore)headersstrategy`), importer.Impossible, "a client's fields are passed on under the names that it wrote: remove those that servers must not get with header rules"},
	{leftPath(`providers\.http\..*`), importer.Impossible, "give the import the file that the URL has"},
	{leftPath(`providers\.(providersthrottleduration|precedence.*)`), importer.Ignored, "changes of containers are collected for 100 ms; files have precedence over containers"},
	{leftPath(`providers\..*`), importer.Impossible, "this provider is not read: give the address of Traefik's API, which has the routers that it found"},
	{leftPath(`tracing\..*`), importer.Impossible, "write the address of the collector in tracing"},
	{leftPath(`certificatesresolvers\.[^.]+\.acme\.(dns|http|tls)challenge.*`), importer.Impossible, "an acme entry has one challenge: dns-01 before tls-alpn-01 before http-01"},
	{leftPath(`core\..*`), importer.Ignored, "both syntaxes of rules are read"},
	{leftPath(`api`), importer.Ignored, "the console of headgate is at the admin address"},
	{leftPath(`ocsp\..*`), importer.Ignored, "OCSP responses are requested from the address that the certificate names"},
	{leftPath(`serverstransport\.forwardingtimeouts\.idleconntimeout`), importer.Impossible, "idle connections to servers have one setting for all of them: idle_timeout of the settings upstreams"},
	{leftPath(`serverstransport\.maxidleconnsperhost`), importer.Impossible, "idle connections to servers have one setting for all of them: the settings upstreams"},
	{leftPath(`(http\.serverstransports\.[^.]+|serverstransport)\..*`), importer.Impossible, "no server that was translated uses it"},
	{leftPath(`tls\.options\..*`), importer.Impossible, "no https port has these options: none of its routers names them, or several routers of one port name different ones"},
	{leftPath(`(http|tcp|udp)\.services\.[^.]+\.(weighted|failover|highestrandomweight|mirroring)\.healthcheck.*`), importer.Ignored, "each server is checked by itself, whichever service it is from"},
	{leftPath(`http\.services\.[^.]+\.mirroring\.mirrorbody`), importer.Impossible, "copies of requests have their bodies, up to mirror.max_body"},
	{leftPath(`(http|tcp|udp)\.services\..*`), importer.Impossible, "no router that was translated uses it, or the service has no server with a valid address"},
	{leftPath(`certificatesresolvers\.[^.]+\.(tailscale|spiffe).*`), importer.Impossible, "certificates come by ACME or from files"},
}

func leftPath(expr string) *regexp.Regexp { return regexp.MustCompile(`(?i)^` + expr + `$`) }

// nothingToDo has the fields of the static configuration that need nothing.
func nothingToDo(path string) (string, bool) {
	path = strings.ToLower(path)
	for prefix, note := range map[string]string{
		"global.": "about Traefik itself", "api.": "the console of headgate is at the admin address", "ping": "health pages are at the admin address: /livez, /readyz",
		"log.": "headgate's own log has flags of run", "accesslog": "the access log is on; access_log sets its place and form", "metrics.": "metrics are at /metrics of the admin address",
		"providers.file": "the files are read by the import", "providers.docker": "containers are found by discovery.docker", "hostresolver.": "names are looked up as the system does",
		"experimental.": "about Traefik itself", "serverstransport.": "",
	} {
		if note != "" && strings.HasPrefix(path, prefix) {
			return note, true
		}
	}
	return "", false
}
