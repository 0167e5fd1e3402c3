package plan

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/clock"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/server/balance"
	"headgate/internal/server/health"
	"headgate/internal/server/target"
)

// StreamQuestion is a connection, or the first datagram of a session, to explain.
type StreamQuestion struct {
	// Protocol is tcp or udp.
	Protocol string
	// Host is what the client connects to: an address, or the name that a TLS client
	// asks for. Port is the port number.
	Host string
	Port uint16
	// Protocols are the application protocols that a TLS client offers.
	Protocols []string
	// From is the client's address.
	From netip.Addr
}

// StreamExplanation is how a connection or a session would be handled.
type StreamExplanation struct {
	// Protocol is tcp or udp.
	Protocol string `json:"protocol"`
	// Listener is the port or proxy that has the address, "" if there is none.
	Listener string `json:"listener,omitempty"`
	// Address is the one on which it listens.
	Address string `json:"address,omitempty"`
	// Proxy is the TCP or UDP proxy that takes it, "" if none does.
	Proxy string `json:"proxy,omitempty"`
	// Name is the name by which the proxy was found.
	Name string `json:"name,omitempty"`
	// Offered are the application protocols of the question.
	Offered []string `json:"alpn,omitempty"`
	// TLS is what becomes of TLS: terminated or forwarded. It is empty where the proxy takes
	// connections without a look at them.
	TLS string `json:"tls,omitempty"`
	// MinVersion is the minimum version of terminated TLS.
	MinVersion string `json:"tls_min_version,omitempty"`
	// Protocols are the protocols of terminated TLS.
	Protocols []string `json:"tls_alpn,omitempty"`
	// ClientAuth is whether clients must present a certificate.
	ClientAuth string `json:"tls_client_auth,omitempty"`
	// Certificate is the one that the client gets.
	Certificate *Chosen `json:"certificate,omitempty"`
	// Filters are the proxy's filters in the order in which they act.
	Filters []string `json:"filters,omitempty"`
	// Denied is why the client may not come in.
	Denied string `json:"denied,omitempty"`
	// Header is the version of the PROXY header that servers get; of UDP, before each datagram.
	Header string `json:"proxy_protocol,omitempty"`
	// Balance is how a server is chosen.
	Balance string `json:"load_balancing,omitempty"`
	// Servers are the candidates.
	Servers []StreamCandidate `json:"servers,omitempty"`
	// Notes are hints.
	Notes []string `json:"notes,omitempty"`
}

// StreamCandidate is a server that may take it.
type StreamCandidate struct {
	// Address is its address.
	Address string `json:"address"`
	// Weight is its share.
	Weight int `json:"weight"`
	// Next is whether it would be the server now.
	Next bool `json:"next"`
	// State is its state, "" if nothing is wrong.
	State string `json:"state,omitempty"`
}

// ParseStream reads what a client connects to, such as tcp://db.example.com:5432, and its own
// address. ?alpn=h2,http/1.1 behind it are the application protocols that the client offers.
// The error names what is wrong.
func ParseStream(address, from string) (q StreamQuestion, err error) {
	scheme, rest, _ := strings.Cut(address, "://")
	rest, offered, _ := strings.Cut(rest, "?alpn=")
	host, port, err := net.SplitHostPort(strings.TrimSuffix(rest, "/"))
	number, nerr := strconv.ParseUint(port, 10, 16)
	if scheme = strings.ToLower(scheme); err != nil || nerr != nil || number == 0 || scheme != string(config.TCP) && scheme != string(config.UDP) {
		return q, fmt.Errorf("invalid address %q: expected an address like tcp://db.example.com:5432", address)
	}
	q = StreamQuestion{Protocol: scheme, Host: host, Port: uint16(number)}
	if offered != "" {
		q.Protocols = strings.Split(offered, ",")
	}
	if q.From, err = netip.ParseAddr(from); err != nil {
		return q, fmt.Errorf("invalid client address %q: expected an address like 192.0.2.1", from)
	}
	return q, nil
}

// ExplainStream returns how the plan would handle a connection or a session. Nothing is
// sent and no server is selected.
func (p *Plan) ExplainStream(q StreamQuestion) StreamExplanation {
	e := StreamExplanation{Protocol: q.Protocol}
	if q.Protocol == string(config.UDP) {
		p.explainUDP(q, &e)
	} else {
		p.explainTCP(q, &e)
	}
	return e
}

func (p *Plan) explainUDP(q StreamQuestion, e *StreamExplanation) {
	for _, u := range p.udpProxies {
		if !u.Settings.Address.Has(q.Port) {
			continue
		}
		e.Listener, e.Proxy, e.Address = u.Settings.Name, u.Settings.Name, u.Settings.Address.String()
		if v := u.Settings.ProxyProtocol; v != config.SendOff {
			e.Header = string(v)
		}
		e.decide(q, u.Proxy.Filters, u.Settings.LoadBalancing, u.Servers, u.Proxy.Group, int(q.Port-u.Settings.Address.Port()))
		return
	}
	e.Notes = append(e.Notes, fmt.Sprintf("no active UDP proxy listens on %d", q.Port)+p.elsewhere(int(q.Port), true))
}

func (p *Plan) explainTCP(q StreamQuestion, e *StreamExplanation) {
	i := slices.IndexFunc(p.Listeners(), func(port *Port) bool {
		return port.Address().Port() == q.Port && port.Protocol() != config.HTTP3
	})
	if i < 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("no port or TCP proxy listens on %d", q.Port)+p.elsewhere(int(q.Port), false))
		return
	}
	port := p.Listeners()[i]
	e.Listener, e.Address = port.Name(), port.Address().String()
	if port.ReadsHello() || !port.IsStream() {
		if name, fault := target.Host(q.Host); fault == nil {
			e.Name = name
		}
		e.Offered = q.Protocols
	}
	proxy := port.StreamFor(e.Name, q.Protocols)
	if proxy == nil && port.IsStream() {
		e.Denied = "no TCP proxy of the address accepts the server name: the client gets the TLS alert unrecognized_name"
		return
	}
	if proxy == nil {
		e.Notes = append(e.Notes, fmt.Sprintf("port %s speaks %s itself: ask with a method and a URL", port.Name(), port.Protocol()))
		return
	}
	if port.announcers != nil {
		e.Notes = append(e.Notes, "from peers in proxy_protocol.trusted, the client address is taken from the PROXY protocol header")
	}
	for _, t := range p.tcpProxies {
		if t.Settings.Name == proxy.Name {
			e.Proxy = t.Settings.Name
			p.explainTLS(&t, port, e)
			if v := t.Settings.ProxyProtocol; v != config.SendOff {
				e.Header = string(v)
			}
			e.decide(q, proxy.Filters, t.Settings.LoadBalancing, t.Servers, proxy.Group, t.portIndex(q.Port))
		}
	}
}

// explainTLS returns what becomes of TLS of the client.
func (p *Plan) explainTLS(t *TCPProxy, port *Port, e *StreamExplanation) {
	switch settings := t.Settings.TLS; {
	case settings != nil:
		e.TLS, e.MinVersion, e.Protocols = "terminated", string(settings.MinVersion), t.Settings.Protocols()
		if settings.ClientAuth != config.ClientAuthOff {
			e.ClientAuth = string(settings.ClientAuth)
		}
		chosen := p.chosenOn(t.Settings.Name, t.tls, e.Name)
		e.Certificate = &chosen
	case port.ReadsHello():
		e.TLS = "forwarded"
	}
}

// decide returns whether the client is let in, and which server would serve it on the i-th port
// of the proxy.
func (e *StreamExplanation) decide(q StreamQuestion, filters exchange.StreamFilters, how string, servers []*StreamServer, group *balance.Group, port int) {
	for i := range filters {
		e.Filters = append(e.Filters, filters[i].Name)
	}
	if answer := filters.Admit(q.From.Unmap().WithZone("")); answer != nil {
		e.Denied = answer.Cause
	}
	e.Balance = how
	ask := balance.Ask{Now: clock.Now(), Key: balance.HashAddr(q.From)}
	likely, _ := group.Likely(&ask)
	for i, s := range servers {
		c := StreamCandidate{Address: s.addressAt(port), Weight: s.Weight, Next: i == likely}
		if state := s.Live.Status(false).State; state != health.Unknown && state != health.Healthy {
			c.State = state.String()
		}
		e.Servers = append(e.Servers, c)
	}
}

// tlsText returns what becomes of TLS, for people.
func (e *StreamExplanation) tlsText() string {
	if e.MinVersion == "" {
		return e.TLS
	}
	text := e.TLS + ", " + e.MinVersion + " or later"
	if len(e.Protocols) > 0 {
		text += ", negotiates " + strings.Join(e.Protocols, ", ")
	}
	if e.ClientAuth != "" {
		text += ", client certificate " + e.ClientAuth
	}
	return text
}

// Text returns the explanation for people.
func (e *StreamExplanation) Text() string {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s %s\n", label, text)
		}
	}
	if e.Listener != "" {
		line("listener", e.Listener+", "+e.Address)
	}
	line("name", e.Name)
	line("alpn", strings.Join(e.Offered, ", "))
	line("proxy", e.Proxy)
	line("tls", e.tlsText())
	if c := e.Certificate; c != nil {
		line("cert", c.text())
	}
	line("filters", strings.Join(e.Filters, " → "))
	if e.Denied != "" {
		line("answer", "closed: "+e.Denied)
	}
	if e.Header != "" {
		line("header", "PROXY "+e.Header)
	}
	for _, note := range e.Notes {
		line("note", note)
	}
	if len(e.Servers) > 0 {
		line("servers", e.Balance)
	}
	for _, s := range e.Servers {
		mark := ""
		if s.Next && e.Denied == "" {
			mark = ", next"
		}
		fmt.Fprintf(&b, "          %s, weight %d%s\n", s.Address, s.Weight, mark)
	}
	return b.String()
}
