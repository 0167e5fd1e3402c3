package plan

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/plan/inputs"
	"headgate/internal/schema"
)

// portTLS is the TLS state of an HTTPS port. It is kept as long as its settings have not
// changed, and with it the sessions of clients.
type portTLS struct {
	config  *tls.Config
	set     *certs.Set
	tickets *certs.Tickets
	clients string // identifies the requirements for client certificates
}

// Retire ends the rotation of the session tickets' keys.
func (p *portTLS) Retire() { p.tickets.Forget(p.config) }

// covers reports whether a connection that was opened for a name may carry
// requests for a host. One that was opened for no name may carry all: the
// client took the certificate that the port has for such.
func (p *portTLS) covers(opened, host string) bool {
	return opened == "" || opened == host || p.set.Covers(opened, host)
}

// Continues reports whether connections that were opened on the port was, on the
// same socket, may go on on p: the same is spoken, and clients need not show more
// than they did.
func (p *Port) Continues(was *Port) bool {
	switch {
	case p.Protocol() != was.Protocol():
		return false
	case p.tls == nil || was.tls == nil || p.settings.TLS.ClientAuth == config.ClientAuthOff:
		return true
	}
	return p.tls.clients == was.tls.clients
}

// secure gives the ports with TLS their certificates.
func (c *compiler) secure() {
	if !c.config.SpeaksTLS() {
		return
	}
	pairs := c.pairs()
	selfSigned := c.selfSigned()
	if selfSigned == nil || !c.report.Empty() {
		return
	}
	c.shared.pairs, c.shared.selfSigned = pairs, selfSigned
	for _, port := range c.plan.ports {
		if port.Secure() {
			c.securePort(port, pairs, selfSigned)
		}
	}
	if c.config.Admin.TLS() {
		c.secureAdmin(pairs, selfSigned)
	}
}

// pairs returns the certificates of the configuration, by name.
func (c *compiler) pairs() map[string]*certs.Certificate {
	all := map[string]*certs.Certificate{}
	for _, name := range slices.Sorted(maps.Keys(c.config.Certificates)) {
		cert := c.config.Certificates[name]
		p, err := c.pair(name, inputs.PlaceOf(cert), "clients get a self-signed one")
		if err != nil {
			c.report.Root().Field("certificates").Field(name).Called("certificate", name).
				Problem(err.Error(), remedyOf(inputs.PlaceOf(cert)))
			continue
		}
		all[name] = p
		c.plan.certificates = append(c.plan.certificates, p)
	}
	return all
}

// pair returns a certificate that was loaded. One that cannot be used refuses a
// change that brings it; at the start, and when it was served by before, it is there
// without one, and otherwise says what follows from that.
func (c *compiler) pair(name string, at inputs.Place, otherwise string) (*certs.Certificate, error) {
	p, fresh := c.house.Inputs.Pair(name, at)
	if p == nil {
		return nil, fmt.Errorf("certificate %s was not loaded", name)
	}
	c.keeper.unit.pairs = append(c.keeper.unit.pairs, usedPair{name, at, p})
	err := p.Problem()
	switch {
	case err == nil || !fresh:
		return p, nil
	case !c.house.Start:
		return nil, err
	}
	c.note(exchange.Note{Level: slog.LevelError, Text: "certificate cannot be used, " + otherwise + "; everything else is served",
		Attrs: []any{"certificate", name, "error", err.Error(), "remedy", "put it right: it is taken up within seconds"}})
	return p, nil
}

// remedyOf says what to do about a certificate that cannot be used.
func remedyOf(at inputs.Place) string {
	if at.Stored != "" {
		return "upload it: headgate certificate upload " + at.Stored + " CERT KEY"
	}
	return "name files with a certificate and its key in PEM form"
}

// selfSigned returns the certificate for names that no other has.
func (c *compiler) selfSigned() *certs.SelfSigned {
	made, err := c.house.Inputs.SelfSigned()
	if err != nil {
		c.report.Root().Field("ports").Problem(err.Error(), "")
		return nil
	}
	return made
}

// securePort sets the TLS settings of a port, or keeps them if they have not changed.
func (c *compiler) securePort(port *Port, pairs map[string]*certs.Certificate, selfSigned *certs.SelfSigned) {
	settings := &port.settings.TLS
	protocols := []string{"h2", "http/1.1"}
	if port.Protocol() == config.HTTP3 {
		protocols = []string{"h3"}
	}
	at := c.report.Root().Field("ports").Field(port.Name()).Called("port", port.Name())
	policy, authorities, ok := c.policy(settings, protocols, at.Field("tls"), "port", port.Name())
	if !ok {
		return
	}
	if port.Protocol() == config.HTTP3 {
		policy.MinVersion = tls.VersionTLS13
	}
	identity := []string{port.Name(), string(port.Protocol())}
	if name := port.Name(); port.demands != nil && c.house.Demands != nil {
		demands := c.house.Demands
		policy.Demand = func(hello *tls.ClientHelloInfo) error { return demands.Await(name, hello) }
		identity = append(identity, "on demand")
	}
	if settings.ECH != nil {
		identity = append(identity, c.hideNames(port, &policy))
	}
	port.tls = c.newTLS(settings, policy, authorities, identity, pairs, selfSigned)
	c.logUncovered(port)
	c.logUncoveredPublic(port)
}

// newTLS returns the TLS state of a port or a TCP proxy, which identity distinguishes from
// others, or keeps it if it has not changed.
func (c *compiler) newTLS(settings *config.TLS, policy certs.Policy, authorities string, identity []string, pairs map[string]*certs.Certificate, selfSigned *certs.SelfSigned) *portTLS {
	clients := string(settings.ClientAuth) + "\x00" + authorities
	tickets := c.env.Keep("tickets\x00"+clients, func() exchange.Kept { return c.newTickets(clients) }).(*certs.Tickets)
	key := append([]string{"tls", fmt.Sprintf("%p", selfSigned)}, identity...)
	key = append(key, string(settings.MinVersion), clients, settings.DefaultCertificate)
	list, key := c.listed(pairs, key)
	return c.env.Keep(strings.Join(key, "\x00"), func() exchange.Kept {
		set := certs.NewSet(list, c.house.Managed, pairs[settings.DefaultCertificate], selfSigned)
		return &portTLS{config: certs.NewConfig(policy, set, tickets), set: set, tickets: tickets, clients: clients}
	}).(*portTLS)
}

// secureClients returns how a TCP proxy terminates TLS, nil if it does not; false after a
// problem.
func (c *compiler) secureClients(p *config.TCPProxy, at schema.Place) (*portTLS, bool) {
	if p.TLS == nil {
		return nil, true
	}
	if c.shared.selfSigned == nil {
		return nil, false // was reported
	}
	settings := &config.TLS{MinVersion: p.TLS.MinVersion, ClientAuth: p.TLS.ClientAuth, ClientCA: p.TLS.ClientCA, DefaultCertificate: p.TLS.DefaultCertificate}
	policy, authorities, ok := c.policy(settings, p.Protocols(), at.Field("tls"), "tcp_proxy", p.Name)
	if !ok {
		return nil, false
	}
	identity := append([]string{"stream", p.Name}, p.Protocols()...)
	secure := c.newTLS(settings, policy, authorities, identity, c.shared.pairs, c.shared.selfSigned)
	c.logUncoveredNames(p, secure.set)
	return secure, true
}

// logUncoveredNames logs the server names of a TCP proxy for which there is no certificate.
func (c *compiler) logUncoveredNames(p *config.TCPProxy, set *certs.Set) {
	if set.HasDefault() {
		return
	}
	names, _ := p.Names() // were checked
	awaited := c.awaited()
	var without []string
	for _, name := range names {
		known := name.Name
		if name.Class == config.HostWildcard {
			known = "any." + name.Name
		}
		if !set.Has(known) && !awaited[name.String()] {
			without = append(without, name.String())
		}
	}
	switch {
	case len(without) > 0:
		c.warn("server names have no certificate: clients get a self-signed one", "tcp_proxy", p.Name, "names", without[:min(len(without), maxUncovered)], "count", len(without), "remedy", "add one under certificates")
	case len(names) == 0 && set.Empty() && len(c.config.ACME) == 0:
		c.warn("TCP proxy has no certificate: clients get a self-signed one", "tcp_proxy", p.Name, "remedy", "add one under certificates")
	}
}

// newTickets returns the session tickets of ports of a class.
func (c *compiler) newTickets(class string) *certs.Tickets {
	if c.house.SharedTickets != nil {
		return c.house.SharedTickets.Tickets(class)
	}
	return certs.NewTicketsOf(c.house.Tickets[class])
}

// secureAdmin gives the admin listener its TLS settings. It chooses as ports do: a
// certificate with the name that the client asks for, else the one that is named for
// it, else the self-signed one.
func (c *compiler) secureAdmin(pairs map[string]*certs.Certificate, selfSigned *certs.SelfSigned) {
	tickets := c.env.Keep("admin tickets", func() exchange.Kept { return c.newTickets(adminTickets) }).(*certs.Tickets)
	key := []string{"admin tls", fmt.Sprintf("%p", selfSigned), c.config.Admin.Certificate}
	list, key := c.listed(pairs, key)
	c.plan.admin = c.env.Keep(strings.Join(key, "\x00"), func() exchange.Kept {
		set := certs.NewSet(list, c.house.Managed, pairs[c.config.Admin.Certificate], selfSigned)
		policy := certs.Policy{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
		return &portTLS{config: certs.NewConfig(policy, set, tickets), set: set, tickets: tickets}
	}).(*portTLS)
}

// TicketKeys are the keys of session tickets, by what distinguishes the ports that share
// them: which certificates of clients they trust.
type TicketKeys map[string][][32]byte

// adminTickets is the name of the admin listener in TicketKeys.
const adminTickets = "admin"

// TicketKeys returns the keys of session tickets, for a process that replaces this one.
func (p *Plan) TicketKeys() TicketKeys {
	keys := TicketKeys{}
	for _, port := range p.Ports() {
		if port.tls != nil {
			keys[port.tls.clients] = port.tls.tickets.Keys()
		}
	}
	for _, t := range p.tcpProxies {
		if t.tls != nil {
			keys[t.tls.clients] = t.tls.tickets.Keys()
		}
	}
	if p.admin != nil {
		keys[adminTickets] = p.admin.tickets.Keys()
	}
	return keys
}

// listed returns certificates in the order of their names, and a key that identifies them.
func (c *compiler) listed(pairs map[string]*certs.Certificate, key []string) ([]*certs.Certificate, []string) {
	list := make([]*certs.Certificate, 0, len(pairs))
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		cert := c.config.Certificates[name]
		key = append(key, name, cert.CertFile, cert.KeyFile, cert.Stored, fmt.Sprintf("%p", pairs[name]))
		list = append(list, pairs[name])
	}
	return list, key
}

// AdminTLS is how the admin listener speaks TLS.
type AdminTLS struct {
	// Config are the settings.
	Config *tls.Config
	// Default is the certificate for clients that ask for no name, or for one that no
	// certificate has.
	Default *tls.Certificate
	// SelfSigned is whether that is a self-signed one.
	SelfSigned bool
}

// AdminTLS returns how the admin listener speaks TLS, nil if it does not.
func (p *Plan) AdminTLS() *AdminTLS {
	if p == nil || p.admin == nil {
		return nil
	}
	set := p.admin.set
	return &AdminTLS{Config: p.admin.config, Default: set.Choose("", ""), SelfSigned: !set.HasDefault()}
}

// AdminCovers reports whether the admin listener has a certificate for a host name, other than
// a self-signed one of headgate.
func (p *Plan) AdminCovers(host string) bool {
	return p != nil && p.admin != nil && p.admin.set.Has(host)
}

// maxUncovered is how many hosts without a certificate the log names.
const maxUncovered = 10

// logUncovered logs the hosts of a port for which there is no certificate.
func (c *compiler) logUncovered(port *Port) {
	const what, remedy = "clients get a self-signed certificate, which browsers refuse", "add one under certificates"
	set := port.tls.set
	switch {
	case set.HasDefault():
		return
	case set.Empty() && len(c.config.ACME) == 0:
		port.uncovered = []string{"*"}
		c.warn("port has no certificate: "+what, "port", port.Name(), "remedy", remedy)
		return
	}
	var hosts []string
	awaited := c.awaited()
	wanted := &port.hosts
	for host := range wanted.exact {
		if !set.Has(host) && !awaited[host] {
			hosts = append(hosts, host)
		}
	}
	for host := range wanted.wildcard {
		if !set.Has("any."+host) && !awaited["*."+host] {
			hosts = append(hosts, "*."+host)
		}
	}
	if len(hosts) > 0 {
		slices.Sort(hosts)
		port.uncovered = hosts[:min(len(hosts), maxUncovered)]
		c.warn("hosts have no certificate: "+what, "port", port.Name(), "hosts", port.uncovered, "count", len(hosts), "remedy", remedy)
	}
}

// awaited returns the hosts that an ACME entry gets certificates for; their state is
// reported there.
func (c *compiler) awaited() map[string]bool {
	hosts := map[string]bool{}
	for _, names := range c.config.ACMEHolders() {
		for _, host := range names {
			hosts[host] = true
		}
	}
	return hosts
}

// policy returns TLS settings without certificates, and a key that identifies their
// authorities. kind and name are those of the object, for the log.
func (c *compiler) policy(settings *config.TLS, protocols []string, at schema.Place, kind, name string) (p certs.Policy, authorities string, ok bool) {
	p = certs.Policy{MinVersion: tls.VersionTLS12, NextProtos: protocols}
	if c.house.Challenges != nil {
		p.Challenge = c.house.Challenges.TLS
	}
	if settings.MinVersion == config.TLS13 {
		p.MinVersion = tls.VersionTLS13
	}
	switch settings.ClientAuth {
	case config.ClientAuthOff:
		return p, "", true
	case config.ClientAuthOptional:
		p.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		p.ClientAuth = tls.RequireAndVerifyClientCert
	}
	var err error
	if p.ClientCAs, authorities, err = c.trusted(settings.ClientCA, "every client certificate is rejected", kind, name); err != nil {
		at.Field("client_ca").Problem(err.Error(), "name a PEM file with the certificates of the authorities")
		return p, "", false
	}
	return p, authorities, true
}

// authorities are certificates of authorities, and a digest of their file.
type authorities struct {
	pool   *x509.CertPool
	digest string
}

// authorities returns those in a file.
func (c *compiler) authorities(name string) (*x509.CertPool, string, error) {
	f, err := c.file(name)
	if err != nil {
		return nil, "", err
	}
	content := f.Content()
	if a, known := c.shared.authorities[name]; known {
		return a.pool, a.digest, nil
	}
	sum := sha256.Sum256(content.Data)
	a := authorities{digest: hex.EncodeToString(sum[:])}
	if a.pool, err = certs.Authorities(name, content.Data); err != nil {
		return nil, "", err
	}
	c.shared.authorities[name] = a
	return a.pool, a.digest, nil
}

// trusted is authorities, but at the start a file that cannot be used is an empty pool, so
// that no client certificate is trusted and everything else is served. closed reports the
// consequence. A change is rejected.
func (c *compiler) trusted(name, closed string, attrs ...any) (*x509.CertPool, string, error) {
	pool, digest, err := c.authorities(name)
	if err == nil || !c.house.Start {
		return pool, digest, err
	}
	c.keeper.unit.files = append(c.keeper.unit.files, usedFile{name: name}) // is never the same
	c.note(exchange.Note{Level: slog.LevelError, Text: "authorities cannot be used, " + closed + "; everything else is served",
		Attrs: append(attrs, "error", err.Error(), "remedy", "put right the file and reload the configuration")})
	return x509.NewCertPool(), "none", nil
}
