package plan

import (
	"crypto/tls"
	"strconv"
	"strings"

	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/server/target"
	"headgate/internal/upstream"
)

// Unverified is a server whose certificate is not checked.
type Unverified struct {
	// Proxy and Route say where the server is configured, Server is its URL.
	Proxy  string `json:"proxy"`
	Route  string `json:"route"`
	Server string `json:"server"`
}

// Unverified returns the servers whose certificates are not checked, in the order
// of the configuration.
func (p *Plan) Unverified() []Unverified { return p.unverified }

// serverFault is what is wrong with the files of a server's TLS settings.
type serverFault struct {
	server int
	field  string
	err    error
	remedy string
}

// Error returns the text of the error below.
func (f *serverFault) Error() string { return f.err.Error() }

// tell tells of the fault at its place below the route's.
func (f *serverFault) tell(route schema.Place, servers []*config.Server) {
	route.Field("servers").Index(f.server).Called("server", servers[f.server].URL).Field("tls").Field(f.field).Problem(f.err.Error(), f.remedy)
}

// secureServer is how TLS is spoken to one server, before its parts are kept.
type secureServer struct {
	upstream.Secure
	pairKey string
	opened  *certs.Pair // nil if it is kept already, or if there is none
}

// keep returns the settings with the certificate that is shown to the server,
// which lives as long as who keeps it.
func (s *secureServer) keep(env exchange.Env) *upstream.Secure {
	if s.pairKey != "" {
		pair := env.Keep(s.pairKey, func() exchange.Kept { return s.opened }).(*certs.Pair)
		s.Certificate = func() *tls.Certificate { return pair.Certificate() }
	}
	return &s.Secure
}

// mayBeSecure reports whether a URL can be one of https: its scheme, in whatever
// case, ends in an s.
func mayBeSecure(url string) bool {
	i := strings.IndexByte(url, ':')
	return i > 0 && url[i-1]|0x20 == 's'
}

// secureServers reads the files of a route's https servers. The result has a place
// for each server, nil for those without TLS; it is nil if no server has any.
func (c *compiler) secureServers(b *body) ([]*secureServer, error) {
	var all []*secureServer
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
			all = make([]*secureServer, len(b.settings.Servers))
		}
		secure, fault := c.secureServer(s, t)
		if fault != nil {
			fault.server = i
			return nil, fault
		}
		all[i] = secure
		if secure.Unverified {
			c.plan.unverified = append(c.plan.unverified, Unverified{Proxy: b.proxy.Name, Route: b.path(), Server: s.URL})
			c.house.Log.Warn("the certificate of a server is not checked: who gets between can read and change everything",
				"proxy", b.proxy.Name, "route", b.path(), "server", s.URL, "remedy", "name its authority by tls.ca_file, and take insecure_skip_verify out")
		}
	}
	return all, nil
}

// secureServer reads the files of one server.
func (c *compiler) secureServer(s *config.Server, t target.Target) (*secureServer, *serverFault) {
	out := &secureServer{Secure: upstream.Secure{Name: t.Host}}
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
		if out.Authorities, digest, err = loadAuthorities(c.path(settings.CAFile)); err != nil {
			return nil, &serverFault{field: "ca_file", err: err, remedy: "name a PEM file with the certificates of the authorities"}
		}
	}
	if settings.ClientCertFile != "" {
		if fault := c.clientPair(out, settings); fault != nil {
			return nil, fault
		}
	}
	out.Key = strings.Join([]string{out.Name, digest, strconv.FormatBool(out.Unverified), out.pairKey}, "\x00")
	return out, nil
}

// clientPair opens the certificate that is shown to a server, unless it is open.
func (c *compiler) clientPair(out *secureServer, settings *upstream.TLS) *serverFault {
	certFile, keyFile := c.path(settings.ClientCertFile), c.path(settings.ClientKeyFile)
	out.pairKey = strings.Join([]string{"client certificate", certFile, keyFile}, "\x00")
	if c.keeper.has(out.pairKey) {
		return nil
	}
	var err error
	if out.opened, err = certs.Open("for servers: "+certFile, certFile, keyFile, c.house.Log); err != nil {
		return &serverFault{field: "client_cert_file", err: err, remedy: "name files with a certificate and its key in PEM form"}
	}
	return nil
}
