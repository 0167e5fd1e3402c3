package config

import (
	"encoding/hex"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"strings"

	"headgate/internal/config/decode"
	"headgate/internal/schema"
	"headgate/internal/server/download"
	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// Provider is an entry of discovery: *Docker, *HTTPDocument or *Agent.
type Provider interface {
	// Via is how its objects come into a configuration.
	Via() Via
	// Location is where it finds them, without credentials.
	Location() string
	// OnNodes are the names of the nodes that use it; none are all.
	OnNodes() []string
	// Bounds are what its objects may use.
	Bounds() Bounds
	// SameSource reports whether another entry finds the same: bounds and nodes are not
	// compared.
	SameSource(other Provider) bool
}

// Bounds are what the objects of a provider may use.
type Bounds struct {
	// Ports, Hosts, ACME and Listen are the settings of these names.
	Ports, Hosts, ACME []string
	Listen             []netip.AddrPort
	// Servers is the setting of this name. It is for objects that name their servers.
	Servers []string
}

// HTTPDocument is a document with proxies that another program serves over HTTP, such as an
// inventory or a Git server. Its proxies have the form of those in a configuration file, with
// the fields that container labels may set, and servers. It is trusted less than operators;
// these settings restrict what it can do.
type HTTPDocument struct {
	// URL is where the document is: https, or http on this machine. Redirects are followed
	// on the same host only. Link-local addresses and those of cloud metadata services are
	// refused. The document has at most 4 MiB.
	URL string `json:"url" required:"true" host:"admin" max:"2048" example:"https://cmdb.example.com/headgate.yaml"`
	// Interval is the time between two downloads, which varies by a twentieth. A document
	// that has not changed is not sent again if the server knows ETag or Last-Modified.
	Interval unit.Duration `json:"interval" default:"30s" min:"1s" max:"24h"`
	// Auth are the credentials that are sent with each download. Absent means none.
	Auth *HTTPAuth `json:"auth,omitempty"`
	// SHA256 is the digest of the only document that is used, in hexadecimal. Absent means
	// any document.
	SHA256 string `json:"sha256,omitempty" max:"64" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	// CAFile is a PEM file with the certificate authorities to trust in place of the
	// system's. A relative path begins at the configuration file.
	CAFile string `json:"ca_file,omitempty" host:"admin" max:"4096" example:"cmdb-ca.pem"`
	// Nodes are the names of the nodes that use the document, as `headgate node list` shows
	// them; each downloads it for itself. Absent means all nodes that share the
	// configuration.
	Nodes []string `json:"nodes,omitempty" max:"64" example:"[web1]"`
	// Ports names the ports for proxies of the document, which can select some of them.
	// Absent means all.
	Ports []string `json:"ports,omitempty" max:"1000" example:"[web, websecure]"`
	// Hosts are the virtual hosts that the document may name: names, and `*.` and a name for
	// everything below it. Absent means any that the configuration files leave free, but
	// neither `localhost` nor an IP address; names in `admin.hosts` are never its.
	Hosts []string `json:"hosts,omitempty" max:"1000" example:"[\"*.apps.example.com\"]"`
	// ACME are the ACME entries that the document may name; `[none]` lets it name none.
	// Absent means all of them.
	ACME []string `json:"acme,omitempty" max:"100" example:"[main]"`
	// Listen are the addresses on which TCP and UDP proxies of the document may listen.
	// Absent means none: then they can only have names on an https port.
	Listen []netip.AddrPort `json:"listen,omitempty" max:"1000" example:"[\"0.0.0.0:5432\"]"`
	// Servers are the servers that the document may name: networks, addresses, names, `*.` and
	// a name for everything below it, and `*` for every name. Absent means any address but
	// loopback, and no name, because a name can resolve to any address. Link-local addresses,
	// those of cloud metadata services and Unix sockets are never allowed.
	Servers []string `json:"servers,omitempty" max:"1000" example:"[10.0.0.0/8, \"*.internal.example.com\"]"`
}

// HTTPAuth are credentials for a download: bearer, or username and password.
type HTTPAuth struct {
	// Bearer is a token for the Authorization header.
	Bearer string `json:"bearer,omitempty" secret:"true" max:"4096" example:"${file:/etc/headgate/cmdb.token}"`
	// Username is the user of basic authentication.
	Username string `json:"username,omitempty" max:"256" example:"headgate"`
	// Password is the password of that user.
	Password string `json:"password,omitempty" secret:"true" max:"1024" example:"${CMDB_PASSWORD}"`
}

// Providers returns the providers that this node uses, by name.
func (c *Config) Providers() map[string]Provider {
	all := c.Discovery.Providers()
	maps.DeleteFunc(all, func(name string, p Provider) bool { return !c.Here(p.OnNodes()) || c.Withheld("discovery", name) })
	return all
}

// Providers returns all providers by name.
func (d *Discovery) Providers() map[string]Provider {
	all := make(map[string]Provider, len(d.Docker)+len(d.HTTP)+len(d.Agent))
	for name, p := range d.Docker {
		all[name] = p
	}
	for name, p := range d.HTTP {
		all[name] = p
	}
	for name, p := range d.Agent {
		all[name] = p
	}
	return all
}

// Via is ViaDocker.
func (*Docker) Via() Via { return ViaDocker }

// Location is the endpoint.
func (d *Docker) Location() string { return d.Endpoint }

// OnNodes are the nodes.
func (d *Docker) OnNodes() []string { return d.Nodes }

// Bounds are those of the labels.
func (d *Docker) Bounds() Bounds {
	return Bounds{Ports: d.Ports, Hosts: d.Hosts, ACME: d.ACME, Listen: d.Listen}
}

// SameSource reports whether another entry asks the same of the same engine.
func (d *Docker) SameSource(other Provider) bool {
	o, ok := other.(*Docker)
	if !ok {
		return false
	}
	x, y := *d, *o
	for _, p := range []*Docker{&x, &y} {
		p.Hosts, p.ACME, p.Listen, p.Ports, p.Nodes = nil, nil, nil, nil, nil
	}
	return reflect.DeepEqual(x, y)
}

// Via is ViaHTTP.
func (*HTTPDocument) Via() Via { return ViaHTTP }

// Location is the URL without its query.
func (d *HTTPDocument) Location() string { return download.Shown(d.URL) }

// OnNodes are the nodes.
func (d *HTTPDocument) OnNodes() []string { return d.Nodes }

// Bounds are those of the document.
func (d *HTTPDocument) Bounds() Bounds {
	return Bounds{Ports: d.Ports, Hosts: d.Hosts, ACME: d.ACME, Listen: d.Listen, Servers: d.Servers}
}

// SameSource reports whether another entry downloads the same document in the same way.
func (d *HTTPDocument) SameSource(other Provider) bool {
	o, ok := other.(*HTTPDocument)
	if !ok {
		return false
	}
	x, y := *d, *o
	for _, p := range []*HTTPDocument{&x, &y} {
		p.Hosts, p.ACME, p.Listen, p.Ports, p.Nodes, p.Servers = nil, nil, nil, nil, nil, nil
	}
	return reflect.DeepEqual(x, y)
}

func (ch *checker) httpDocument(d *HTTPDocument, at schema.Place) {
	if what, _ := download.Check(d.URL); what != "" && d.URL != "" {
		at.Field("url").Problem(what, "write it as https://cmdb.example.com/headgate.yaml; http is for this machine only")
	}
	if u, err := url.Parse(d.URL); err == nil && u.User != nil {
		at.Field("url").Problem("the URL contains credentials", "move them to auth")
	}
	if a := d.Auth; a != nil {
		basic := a.Username != "" || a.Password != ""
		switch {
		case a.Bearer == "" && !basic:
			at.Field("auth").Problem("there are no credentials", "add bearer, or username and password")
		case a.Bearer != "" && basic:
			at.Field("auth").Problem("there are two kinds of credentials", "keep bearer, or username and password")
		case basic && (a.Username == "" || strings.Contains(a.Username, ":")):
			at.Field("auth").Field("username").Problem("the username is empty or contains a colon", "write the name of a user")
		case strings.ContainsAny(a.Bearer, " \t\r\n"):
			at.Field("auth").Field("bearer").Problem("the token contains white space", "write the token alone, without Bearer")
		}
	}
	if sum, err := hex.DecodeString(d.SHA256); d.SHA256 != "" && (err != nil || len(sum) != 32) {
		at.Field("sha256").Problem("not a SHA-256 digest", "write the 64 digits that sha256sum prints")
	}
	for i, text := range d.Servers {
		if !validServerBound(text) {
			at.Field("servers").Index(i).Problemf("write a network like 10.0.0.0/8, an address, a name, *. and a name, or *", "%q is neither a network nor a name", decode.Shorten(text))
		}
	}
	ch.bounds(d, at)
}

// validServerBound reports whether a text is an element of servers.
func validServerBound(text string) bool {
	_, prefix := netip.ParsePrefix(text)
	if _, addr := netip.ParseAddr(text); addr == nil || prefix == nil || text == "*" {
		return true
	}
	_, f := target.Host(strings.TrimPrefix(text, "*."))
	return f == nil
}
