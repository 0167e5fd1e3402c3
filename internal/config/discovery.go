package config

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"strings"

	"headgate/internal/certs/acme"
	"headgate/internal/config/decode"
	"headgate/internal/schema"
	"headgate/internal/server/target"
)

// Discovery are the providers that proxies are discovered from.
type Discovery struct {
	// Docker are the container engines, Docker or Podman, by name. Labels of their
	// containers define proxies.
	Docker map[string]*Docker `json:"docker,omitempty" max:"16" object:"provider" example:"{local: {hosts: [\"*.example.com\"]}}"`
	// Agent are other machines whose containers are published, by name. On each runs
	// `headgate agent` with a token of the same name, which `headgate agent invite` makes.
	// Names differ from those of docker and http.
	Agent map[string]*Agent `json:"agent,omitempty" max:"256" object:"provider" example:"{web7: {hosts: [\"*.example.com\"]}}"`
	// HTTP are documents with proxies that are downloaded again and again, by name. Names
	// differ from those of docker.
	HTTP map[string]*HTTPDocument `json:"http,omitempty" max:"16" object:"provider" example:"{cmdb: {url: \"https://cmdb.example.com/headgate.yaml\"}}"`
}

// Docker is a container engine. Labels are trusted less than operators; these settings
// restrict what they can do.
type Docker struct {
	// Endpoint is the address of the engine: `unix://` and the path of its socket,
	// `tcp://host:port`, or `https://host:port` with tls. Write access to the socket is
	// equivalent to root on the machine: use a socket proxy that allows /_ping, /events and
	// /containers/json only.
	Endpoint string `json:"endpoint" host:"admin" default:"unix:///var/run/docker.sock" max:"2048" example:"tcp://socket-proxy:2375"`
	// TLS are the TLS settings of a tcp or https endpoint. Absent means no TLS for tcp, and
	// verification with the system's authorities for https.
	TLS *DockerTLS `json:"tls,omitempty"`
	// Nodes are the names of the nodes that watch the engine, as `headgate node list` shows
	// them. Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitempty" max:"64" example:"[web1]"`
	// ExposedByDefault is whether containers are proxied without headgate.enable or another
	// headgate label. They still need a host.
	ExposedByDefault bool `json:"exposed_by_default" default:"false"`
	// Network is the network at which containers are reached, if a container does not
	// name another. Absent means the one that headgate's own container shares with it,
	// or else the container's only one.
	Network string `json:"network,omitempty" max:"256" example:"proxy"`
	// Filters select containers, in the syntax of `docker ps --filter`. Filters with the
	// same key are alternatives; filters with different keys must all match.
	Filters []string `json:"filters,omitempty" max:"64" example:"[label=com.example.stage=production]"`
	// Ports names the ports for proxies of containers; a label can select some of them.
	// Absent means all.
	Ports []string `json:"ports,omitempty" max:"1000" example:"[web, websecure]"`
	// Hosts are the virtual hosts that labels may name: names, and `*.` and a name for
	// everything below it. Absent means any that the configuration files leave free, but
	// neither `localhost` nor an IP address; names in `admin.hosts` are never theirs.
	Hosts []string `json:"hosts,omitempty" max:"1000" example:"[\"*.apps.example.com\"]"`
	// ACME are the ACME entries that labels may name; `[none]` lets them name none.
	// Absent means all of them.
	ACME []string `json:"acme,omitempty" max:"100" example:"[main]"`
	// Listen are the addresses on which TCP and UDP proxies of labels may listen.
	// Absent means none: then they can only have names on an https port.
	Listen []netip.AddrPort `json:"listen,omitempty" max:"1000" example:"[\"0.0.0.0:5432\"]"`
}

// DockerTLS are the TLS settings for an engine.
type DockerTLS struct {
	// CAFile is a PEM file with the certificate authorities to trust in place of the
	// system's. A relative path begins at the configuration file.
	CAFile string `json:"ca_file,omitempty" host:"admin" max:"4096" example:"docker-ca.pem"`
	// CertFile is a PEM file with the certificate that is shown to the engine. A
	// relative path begins at the configuration file.
	CertFile string `json:"cert_file,omitempty" host:"admin" max:"4096" example:"docker-cert.pem"`
	// KeyFile is a PEM file with the private key of that certificate.
	KeyFile string `json:"key_file,omitempty" host:"admin" max:"4096" example:"docker-key.pem"`
	// ServerName is the name that the engine's certificate must have. Absent means the
	// host of the endpoint.
	ServerName string `json:"server_name,omitempty" max:"253" example:"docker.internal"`
}

// discovery reports problems of the providers.
func (ch *checker) discovery(at schema.Place) {
	docker, http, agents := at.Field("docker"), at.Field("http"), at.Field("agent")
	for _, name := range sortedNames(ch.c.Discovery.Docker) {
		ch.docker(ch.c.Discovery.Docker[name], docker.Field(name).Called("provider", name))
	}
	for _, name := range sortedNames(ch.c.Discovery.HTTP) {
		place := http.Field(name).Called("provider", name)
		if ch.c.Discovery.Docker[name] != nil {
			place.Problemf("rename one of them", "there is a provider %s under docker too", name)
		}
		ch.httpDocument(ch.c.Discovery.HTTP[name], place)
	}
	for _, name := range sortedNames(ch.c.Discovery.Agent) {
		place := agents.Field(name).Called("provider", name)
		if ch.c.Discovery.Docker[name] != nil || ch.c.Discovery.HTTP[name] != nil {
			place.Problemf("rename one of them", "there is another provider %s, under docker or http", name)
		}
		ch.agent(ch.c.Discovery.Agent[name], place)
	}
}

func (ch *checker) docker(d *Docker, at schema.Place) {
	checkEndpoint(d, at)
	for i, f := range d.Filters {
		if key, value, ok := strings.Cut(f, "="); !ok || key == "" || value == "" {
			at.Field("filters").Index(i).Problemf("write it as `docker ps --filter` does, such as label=stage=production or name=web", "the filter %q is not a key and a value", decode.Shorten(f))
		}
	}
	ch.bounds(d, at)
}

// bounds reports problems of the nodes and the bounds of a provider.
func (ch *checker) bounds(p Provider, at schema.Place) {
	checkNodes(p.OnNodes(), at.Field("nodes"))
	b := p.Bounds()
	checkNames(b.Ports, ch.c.Ports, "port", "ports", at.Field("ports"))
	for i, text := range b.Hosts {
		switch h, f := parseVirtualHost(text); {
		case f != nil:
			at.Field("hosts").Index(i).Problem(f.What, f.Remedy)
		case h.Class == HostRegex:
			at.Field("hosts").Index(i).Problem("a regular expression is not allowed here", `write a name, or "*." and a name`)
		}
	}
	for i, name := range b.ACME {
		if name != acme.None && ch.c.ACME[name] == nil && !at.Root().Field("acme").Reported() {
			remedy := "add it under acme"
			if near := schema.Nearest(name, sortedNames(ch.c.ACME)); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			at.Field("acme").Index(i).Problemf(remedy, "there is no acme entry %q", name)
		}
	}
	for i, a := range b.Listen {
		if !a.IsValid() {
			at.Field("listen").Index(i).Problem("the address is empty", `write one like "0.0.0.0:5432"`)
		}
	}
}

// checkEndpoint reports an invalid endpoint, and TLS settings that do not fit it.
func checkEndpoint(d *Docker, at schema.Place) {
	const form = "write it as unix:///var/run/docker.sock, tcp://host:2375 or https://host:2376"
	scheme, rest, ok := strings.Cut(d.Endpoint, "://")
	endpoint := at.Field("endpoint")
	switch {
	case ok && scheme == "unix":
		if !path.IsAbs(rest) {
			endpoint.Problem("the path of the socket is not absolute", form)
		}
		if d.TLS != nil {
			at.Field("tls").Problem("tls is only valid for tcp and https endpoints", "remove it")
		}
	case ok && (scheme == "tcp" || scheme == "https"):
		if host, port, err := net.SplitHostPort(rest); err != nil || host == "" || port == "" {
			endpoint.Problemf(form, "the endpoint %q has no host, or no port", decode.Shorten(d.Endpoint))
		} else if _, _, f := target.SplitAuthority(rest); f != nil {
			endpoint.Problem(f.What, form)
		}
	default:
		endpoint.Problemf(form, "the endpoint %q has an unknown form", decode.Shorten(d.Endpoint))
	}
	if t := d.TLS; t != nil {
		switch {
		case t.CertFile != "" && t.KeyFile == "":
			at.Field("tls").Field("cert_file").Problem("the certificate has no key", "add key_file")
		case t.CertFile == "" && t.KeyFile != "":
			at.Field("tls").Field("key_file").Problem("the key has no certificate", "add cert_file")
		}
	}
}
