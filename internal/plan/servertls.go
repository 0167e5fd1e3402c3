package plan

import (
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/plan/inputs"
	"headgate/internal/schema"
	"headgate/internal/server/target"
	"headgate/internal/upstream"
)

// Unverified is a server whose certificate is not checked.
type Unverified struct {
	// Proxy is the proxy where the server is configured.
	Proxy string `json:"proxy"`
	// Route is the route where the server is configured.
	Route string `json:"route"`
	// Server is the URL of the server.
	Server string `json:"server"`
}

// Unverified returns the servers whose certificates are not checked, in the order
// of the configuration.
func (p *Plan) Unverified() []Unverified {
	all := slices.Clone(p.unverified)
	for _, proxy := range p.proxies {
		all = append(all, proxy.unverified...)
	}
	return all
}

// serverFault is what is wrong with the files of a server's TLS settings.
type serverFault struct {
	server int
	field  string
	err    error
	remedy string
}

// Error returns the text of the error below.
func (f *serverFault) Error() string { return f.err.Error() }

// report reports the fault at its place below the route's.
func (f *serverFault) report(route schema.Place, servers []*config.Server) {
	route.Field("servers").Index(f.server).Called("server", servers[f.server].URL).Field("tls").Field(f.field).Problem(f.err.Error(), f.remedy)
}

// mayBeSecure reports whether a URL can be one of https: its scheme, in whatever
// case, ends in an s.
func mayBeSecure(url string) bool {
	i := strings.IndexByte(url, ':')
	return i > 0 && url[i-1]|0x20 == 's'
}

// secureServers gives a route's https servers their authorities and certificates. The result has a place
// for each server, nil for those without TLS; it is nil if no server has any.
func (c *compiler) secureServers(b *body) ([]*upstream.Secure, error) {
	var all []*upstream.Secure
	for i, s := range b.settings.Servers {
		if !mayBeSecure(s.URL) {
			continue // most are not, and with ten thousand proxies parsing takes its time
		}
		t, err := s.Target()
		if err != nil {
			return nil, err
		}
		if t.Scheme != target.HTTPS {
			continue
		}
		if all == nil {
			all = make([]*upstream.Secure, len(b.settings.Servers))
		}
		secure, fault := c.secureServer(s, t)
		if fault != nil {
			fault.server = i
			return nil, fault
		}
		all[i] = secure
		if secure.Unverified {
			c.compiling.unverified = append(c.compiling.unverified, Unverified{Proxy: b.proxy.Name, Route: b.label, Server: s.URL})
		}
	}
	return all, nil
}

// secureServer returns how TLS is spoken to one server.
func (c *compiler) secureServer(s *config.Server, t target.Target) (*upstream.Secure, *serverFault) {
	out := &upstream.Secure{Name: t.Host}
	settings := s.TLS
	if settings == nil {
		out.Key = out.Name
		return out, nil
	}
	if settings.ServerName != "" {
		out.Name = settings.ServerName
		if name, fault := target.Host(settings.ServerName); fault == nil {
			out.Name = name
		}
	}
	out.Unverified = settings.InsecureSkipVerify
	digest := ""
	if settings.CAFile != "" {
		var err error
		if out.Authorities, digest, err = c.trusted(settings.CAFile, "requests to the server fail with upstream_tls", "server", s.URL); err != nil {
			return nil, &serverFault{field: "ca_file", err: err, remedy: "name a PEM file with the certificates of the authorities"}
		}
	}
	if settings.ClientCertFile != "" {
		pair, err := c.pair(inputs.ForServers(settings.ClientCertFile), inputs.Place{CertFile: settings.ClientCertFile, KeyFile: settings.ClientKeyFile}, "servers that ask for it get none")
		if err != nil {
			return nil, &serverFault{field: "client_cert_file", err: err, remedy: "name files with a certificate and its key in PEM form"}
		}
		out.Certificate = pair.TLS
	}
	out.Key = strings.Join([]string{out.Name, digest, strconv.FormatBool(out.Unverified), settings.ClientCertFile, settings.ClientKeyFile}, "\x00")
	return out, nil
}
