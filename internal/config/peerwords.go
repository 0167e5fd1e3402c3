package config

import (
	"reflect"
	"strings"
)

// The remedies for settings of other proxies.
const (
	forHosts  = "write virtual_hosts: [shop.example.com]"
	forServer = "write servers: [{url: \"http://127.0.0.1:3000\"}]"
	forPath   = "write path: /api"
	forListen = "write address: \"0.0.0.0:80\""
	inRoute   = "servers are part of a route: write routes: [{servers: [{url: \"http://127.0.0.1:3000\"}]}]"
	inRoutes  = "paths are part of routes: write routes: [{path: /api, servers: […]}]"
	inProxy   = "it is part of a proxy: write proxies: {shop: {virtual_hosts: [shop.example.com], routes: […]}}"
	inHosts   = "hosts are part of the proxy, not of the route: write virtual_hosts: [shop.example.com] there"
	inPorts   = "write ports: {web: {address: \"0.0.0.0:80\", protocol: http}}"
	byPorts   = "write ports: [web], the name of a port in the top-level ports"
	byTLS     = "set protocol: https at the port, and define certificates at the top level; for certificates from an authority, use acme"
	forURL    = "write url: \"http://127.0.0.1:3000\""
	forStream = "write address: \"127.0.0.1:5432\""
	forACME   = "acme is part of a proxy, and names an entry of the top-level acme"
)

// peerWords are what operators who know other proxies write, by the object in which
// they write it, each with what is written here.
var peerWords = map[reflect.Type][]peerWord{
	reflect.TypeFor[Config](): {
		{"host hosts domain domains server_name virtual_hosts sites site vhosts path paths route routes location locations router routers", inProxy},
		{"upstream server servers backend backends service services reverse_proxy proxy_pass", inProxy},
		{"listen bind listeners entrypoint entrypoints entry_points frontend frontends", inPorts},
		{"tls ssl", byTLS},
		{"letsencrypt le resolvers", "write acme: {main: {email: you@example.com}}"},
	},
	reflect.TypeFor[Port](): {
		{"listen bind port host ip", forListen},
		{"ssl", "write protocol: https"},
		{"acme certificate certificates", byTLS},
	},
	reflect.TypeFor[Proxy](): {
		{"host hosts hostname hostnames domain domains domain_names server_name server_names vhost", forHosts},
		{"upstream upstreams backend backends server servers url target forward_host proxy_pass reverse_proxy service services", inRoute},
		{"path location locations handle match", inRoutes},
		{"listen port bind entrypoint entrypoints", byPorts},
		{"tls ssl certificate certificates", byTLS},
		{"letsencrypt cert_resolver certresolver", "write acme: main, the name of an entry of the outermost acme"},
	},
	reflect.TypeFor[Route](): {
		{"location match prefix path_prefix uri handle", forPath},
		{"upstream upstreams backend backends server url target proxy_pass reverse_proxy service services", forServer},
		{"host hosts hostname domain domains server_name virtual_host virtual_hosts", inHosts},
		{"acme tls ssl", forACME},
	},
	reflect.TypeFor[Server](): {
		{"host hostname address server upstream backend target location port ip addr scheme", forURL},
	},
	reflect.TypeFor[TCPProxy](): {
		{"listen bind", "write address: \"0.0.0.0:5432\""},
		{"host hosts domain virtual_hosts server_name", "write port, the name of an https port, and sni: [db.example.com]"},
		{"upstream upstreams backend backends server target proxy_pass", "write servers: [{address: \"127.0.0.1:5432\"}]"},
	},
	reflect.TypeFor[UDPProxy](): {
		{"listen bind port", "write address: \"0.0.0.0:53\""},
		{"upstream upstreams backend backends server target proxy_pass", "write servers: [{address: \"127.0.0.1:53\"}]"},
	},
	reflect.TypeFor[StreamServer](): {
		{"url host hostname port server upstream backend target ip addr", forStream},
	},
}

// peerWord are settings of other proxies with one meaning, separated by spaces, and the
// remedy for them.
type peerWord struct{ words, remedy string }

// forPeerWord returns the remedy for a setting of other proxies in an object, "" if it is
// none.
func forPeerWord(object reflect.Type, word string) string {
	word = strings.ReplaceAll(strings.ToLower(word), "-", "_")
	for _, p := range peerWords[object] {
		for w := range strings.FieldsSeq(p.words) {
			if w == word {
				return p.remedy
			}
		}
	}
	return ""
}
